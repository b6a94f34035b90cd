/* Messages between the processes of a run: whole or not at all, and the end is seen. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/count.h"
#include "base/own.h"
#include "check.h"
#include "wire/wire.h"

static void test_pair(void)
{
	int ends[2] = { -1, -1 };

	CHECK(wire_pair(ends) == 0);
	for (int i = 0; i < 2; i++) {
		CHECK(ends[i] >= 0 && fcntl(ends[i], F_GETFD) & FD_CLOEXEC);
		close(ends[i]);
	}
}

/* What is sent arrives as it was, in order, both ways. */
static void test_messages(void)
{
	struct wire_message got;
	struct err e = { 0 };
	int ends[2] = { -1, -1 };
	int fd = 7;

	CHECK(wire_pair(ends) == 0);
	err_set(&e, ERR_REFUSED, EPERM, "cannot do '%s'", "this");
	CHECK(wire_send(ends[1], WIRE_READY, 1, NULL) == 0);
	CHECK(wire_send(ends[1], WIRE_FAILED, -7, &e) == 0);
	CHECK(wire_receive(ends[0], &got, &fd) == 0);
	CHECK(got.kind == WIRE_READY && got.n == 1 && got.err.kind == ERR_NONE);
	CHECK_STR(got.err.text, "");
	CHECK(fd == -1);
	CHECK(wire_receive(ends[0], &got, NULL) == 0);
	CHECK(got.kind == WIRE_FAILED && got.n == -7 && got.err.kind == ERR_REFUSED);
	CHECK(got.err.num == EPERM);
	CHECK_STR(got.err.text, "cannot do 'this'");
	CHECK(wire_send(ends[0], WIRE_SIGNAL, 15, NULL) == 0);
	CHECK(wire_receive(ends[1], &got, NULL) == 0);
	CHECK(got.kind == WIRE_SIGNAL && got.n == 15);
	close(ends[0]);
	close(ends[1]);
}

/* A descriptor comes with its message, close-on-exec; who does not ask for it gets none. */
static void test_descriptor(void)
{
	struct wire_message got;
	int ends[2] = { -1, -1 }, pipe_ends[2] = { -1, -1 }, fd = -1;
	char byte = 0;

	CHECK(wire_pair(ends) == 0 && pipe(pipe_ends) == 0);
	CHECK(wire_send_fd(ends[1], WIRE_TERMINAL, pipe_ends[1]) == 0);
	CHECK(wire_send_fd(ends[1], WIRE_TERMINAL, pipe_ends[1]) == 0);
	close(pipe_ends[1]);
	CHECK(wire_receive(ends[0], &got, &fd) == 0 && got.kind == WIRE_TERMINAL);
	CHECK(fd > 2 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	CHECK(write(fd, "x", 1) == 1 && read(pipe_ends[0], &byte, 1) == 1 && byte == 'x');
	close(fd);
	CHECK(wire_receive(ends[0], &got, NULL) == 0 && got.kind == WIRE_TERMINAL);
	/* No copy is left: the pipe has ended. */
	CHECK(read(pipe_ends[0], &byte, 1) == 0);
	close(pipe_ends[0]);
	close(ends[0]);
	close(ends[1]);
}

/* Another size is not a message, and does not spoil the next one. */
static void test_sizes(void)
{
	static const size_t sizes[] = { 1, 4, sizeof(struct wire_message) - 1,
		sizeof(struct wire_message) + 1, 2 * sizeof(struct wire_message), 4096 };
	static char bytes[4096];
	struct wire_message got;
	int ends[2] = { -1, -1 };

	CHECK(wire_pair(ends) == 0);
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		CHECK(send(ends[1], bytes, sizes[i], 0) == (ssize_t)sizes[i]);
		CHECK(wire_send(ends[1], WIRE_GO, 3, NULL) == 0);
		CHECK(wire_receive(ends[0], &got, NULL) == -EBADMSG);
		CHECK(wire_receive(ends[0], &got, NULL) == 0);
		CHECK(got.kind == WIRE_GO && got.n == 3);
	}
	close(ends[0]);
	close(ends[1]);
}

/* A sentence that does not end is ended. */
static void test_endless_sentence(void)
{
	struct wire_message m, got;
	int ends[2] = { -1, -1 };

	memset(&m, 'x', sizeof(m));
	CHECK(wire_pair(ends) == 0);
	CHECK(send(ends[1], &m, sizeof(m), 0) == (ssize_t)sizeof(m));
	CHECK(wire_receive(ends[0], &got, NULL) == 0);
	CHECK(strnlen(got.err.text, ERR_TEXT_SIZE) == ERR_TEXT_SIZE - 1);
	CHECK(strnlen(got.err.hint, ERR_HINT_SIZE) == ERR_HINT_SIZE - 1);
	close(ends[0]);
	close(ends[1]);
}

/* Descriptors that the cage sends along do not stay with the keeper. */
static void test_stowaway(void)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct wire_message m = { .kind = WIRE_READY }, got;
	struct iovec part = { &m, sizeof(m) };
	struct msghdr h = { .msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&h);
	int ends[2] = { -1, -1 }, stowaway = 0, before, after;

	CHECK(wire_pair(ends) == 0);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &stowaway, sizeof(int));
	before = dup(0);
	close(before);
	CHECK(sendmsg(ends[1], &h, 0) == (ssize_t)sizeof(m));
	wire_receive(ends[0], &got, NULL);
	after = dup(0);
	close(after);
	CHECK(after == before);
	close(ends[0]);
	close(ends[1]);
}

/* The end of the other side, after what it still said. */
static void test_end(void)
{
	struct wire_message got;
	int ends[2] = { -1, -1 };

	CHECK(wire_pair(ends) == 0);
	CHECK(wire_send(ends[1], WIRE_EXITED, 256, NULL) == 0);
	close(ends[1]);
	CHECK(wire_receive(ends[0], &got, NULL) == 0 && got.kind == WIRE_EXITED && got.n == 256);
	CHECK(wire_receive(ends[0], &got, NULL) == -EPIPE);
	CHECK(wire_receive(ends[0], &got, NULL) == -EPIPE);
	CHECK(wire_send(ends[0], WIRE_GO, 0, NULL) == -EPIPE); /* and no SIGPIPE */
	close(ends[0]);
}

/* Closed with something unread: the kernel calls it a reset, which is an end all the same. */
static void test_reset(void)
{
	struct wire_message got;
	int ends[2] = { -1, -1 };

	CHECK(wire_pair(ends) == 0);
	CHECK(wire_send(ends[0], WIRE_GO, 0, NULL) == 0);
	close(ends[1]);
	CHECK(wire_receive(ends[0], &got, NULL) == -EPIPE);
	close(ends[0]);
}

/* What was said before such an end is heard all the same. */
static void test_last_words(void)
{
	struct wire_message got;
	int ends[2] = { -1, -1 };

	CHECK(wire_pair(ends) == 0);
	CHECK(wire_send(ends[0], WIRE_SIGNAL, 15, NULL) == 0);
	CHECK(wire_send(ends[1], WIRE_EXITED, 256, NULL) == 0);
	close(ends[1]);
	CHECK(wire_receive(ends[0], &got, NULL) == 0 && got.kind == WIRE_EXITED && got.n == 256);
	CHECK(wire_receive(ends[0], &got, NULL) == -EPIPE);
	close(ends[0]);
}

/* One descriptor may come with a message; of two, none stays open. */
static void test_two_descriptors(void)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(2 * sizeof(int)),
			      .cmsg_level = SOL_SOCKET,
			      .cmsg_type = SCM_RIGHTS } };
	int ends[2], two[2] = { 0, 1 }, fd = -1, first, after;
	uint64_t word = 7;
	struct iovec part = { &word, sizeof(word) };
	struct msghdr h = { .msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control) };

	CHECK(wire_pair(ends) == 0);
	memcpy(CMSG_DATA(&control.head), two, sizeof(two));
	first = dup(0);
	close(first);
	CHECK(sendmsg(ends[0], &h, 0) == (ssize_t)sizeof(word));
	CHECK(wire_receive_message(ends[1], &word, sizeof(word), &fd) == -EBADMSG);
	if (fd >= 0)
		close(fd);
	after = dup(0);
	CHECK(after == first);
	close(after);
	CHECK(wire_send_message(ends[0], &word, sizeof(word), 0) == 0);
	CHECK(wire_receive_message(ends[1], &word, sizeof(word), &fd) == 0 && fd >= 0);
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	test_pair();
	test_messages();
	test_descriptor();
	test_sizes();
	test_endless_sentence();
	test_stowaway();
	test_end();
	test_reset();
	test_last_words();
	test_two_descriptors();
	return check_report();
}
