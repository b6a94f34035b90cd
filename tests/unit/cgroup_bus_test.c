/*
 * What is said to a systemd manager, and what is made of its answers: messages built here by hand,
 * and a manager that is a child of the test. A real one is asked by tests/vm/systems.py.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "cgroup/cgroup_bus.h"
#include "cgroup/cgroup_place.h"
#include "check.h"

#define UNIT "bawn-20261115-224501-0a1b2c3d.scope"

/* --- messages, in little endian --- */

struct message {
	uint8_t bytes[1024];
	size_t len;
};

static void put(struct message *m, const void *bytes, size_t n)
{
	memcpy(m->bytes + m->len, bytes, n);
	m->len += n;
}

static void pad(struct message *m, size_t to)
{
	while (m->len % to)
		m->bytes[m->len++] = 0;
}

static void put_number(struct message *m, uint32_t n)
{
	pad(m, 4);
	put(m, &n, 4);
}

static void put_text(struct message *m, const char *text)
{
	put_number(m, (uint32_t)strlen(text));
	put(m, text, strlen(text) + 1);
}

static void set_number(struct message *m, size_t at, size_t n)
{
	uint32_t small = (uint32_t)n;

	memcpy(m->bytes + at, &small, 4);
}

/* The head of a message with one field; its body follows. */
static size_t begin(struct message *m, uint8_t type, const char *member, uint32_t reply_to)
{
	const uint8_t head[] = { 'l', type, 0, 1 };

	*m = (struct message){ 0 };
	put(m, head, 4);
	put_number(m, 0);
	put_number(m, 7);
	put_number(m, 0);
	if (member) {
		put(m, "\3\1s", 4);
		put_text(m, member);
	} else {
		put(m, "\5\1u", 4);
		put_number(m, reply_to);
	}
	set_number(m, 12, m->len - 16);
	pad(m, 8);
	return m->len;
}

static void end(struct message *m, size_t body)
{
	set_number(m, 4, m->len - body);
}

static void make_job_removed(struct message *m, const char *unit, const char *result)
{
	size_t body = begin(m, 4, "JobRemoved", 0);

	put_number(m, 42);
	put_text(m, "/org/freedesktop/systemd1/job/42");
	put_text(m, unit);
	put_text(m, result);
	end(m, body);
}

static void make_error(struct message *m, uint32_t reply_to, const char *text)
{
	size_t body = begin(m, 3, NULL, reply_to);

	put_text(m, text);
	end(m, body);
}

static int read_one(const struct message *m, struct err *e)
{
	*e = (struct err){ 0 };
	return cgroup_bus_read(m->bytes, m->len, UNIT, e);
}

/* --- tests --- */

static void test_request(void)
{
	static const char login[] = "\0AUTH EXTERNAL 31303030\r\nBEGIN\r\n";
	uint8_t bytes[CGROUP_BUS_MAX];
	const size_t n = sizeof(login) - 1;
	size_t size = cgroup_bus_request(1000, UNIT, 4711, bytes);
	struct err e = { 0 };
	char long_name[CGROUP_BUS_MAX];

	CHECK(size > n + CGROUP_BUS_HEAD && memcmp(bytes, login, n) == 0);
	CHECK(cgroup_bus_size(bytes + n) == size - n);
	/* A call is none of the messages that are waited for, and is a message. */
	CHECK(cgroup_bus_read(bytes + n, size - n, UNIT, &e) == 0);
	CHECK(memmem(bytes, size, UNIT, sizeof(UNIT)) != NULL);
	CHECK(memmem(bytes, size, "\4PIDs", 5) == NULL &&
		memmem(bytes, size, "PIDs\0\2au", 8) != NULL);
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	CHECK(cgroup_bus_request(1000, long_name, 4711, bytes) == 0);
}

static void test_answers(void)
{
	struct message m;
	struct err e;
	size_t body;

	make_job_removed(&m, UNIT, "done");
	CHECK(read_one(&m, &e) == 1);
	make_job_removed(&m, "another.scope", "failed");
	CHECK(read_one(&m, &e) == 0);
	make_job_removed(&m, UNIT, "failed");
	CHECK(read_one(&m, &e) == -EPERM);
	CHECK_STR(e.text, "the job ended as 'failed'");
	make_error(&m, 1, "Unit exists");
	CHECK(read_one(&m, &e) == -EPERM);
	CHECK_STR(e.text, "Unit exists");
	make_error(&m, 2, "of another call");
	CHECK(read_one(&m, &e) == 0);
	body = begin(&m, 4, "UnitNew", 0);
	end(&m, body);
	CHECK(read_one(&m, &e) == 0);
}

/* No answer is believed beyond its end, whatever stands in it. */
static void test_broken_answers(void)
{
	struct message whole, m;
	struct err e;

	make_job_removed(&whole, UNIT, "done");
	for (size_t n = 0; n < whole.len; n++)
		CHECK(cgroup_bus_read(whole.bytes, n, UNIT, &e) == -EPROTO);
	for (size_t i = 0; i < whole.len; i++)
		for (int value = 0; value < 256; value++) {
			uint8_t *copy = malloc(whole.len); /* its end is the allocation's */
			int r;

			memcpy(copy, whole.bytes, whole.len);
			copy[i] = (uint8_t)value;
			e = (struct err){ 0 };
			r = cgroup_bus_read(copy, whole.len, UNIT, &e);
			CHECK(r == 0 || r == 1 || r == -EPROTO || r == -EPERM);
			free(copy);
		}
	m = whole;
	m.bytes[0] = 'x';
	CHECK(cgroup_bus_size(m.bytes) == 0);
	memset(m.bytes + 4, 0xff, 4);
	m.bytes[0] = 'l';
	CHECK(cgroup_bus_size(m.bytes) > CGROUP_BUS_MAX_SIZE);
}

/* --- a manager --- */

static void say_large(int fd)
{
	static const uint8_t zeros[4096];
	struct message m;
	size_t body = begin(&m, 4, "UnitFilesChanged", 0);
	size_t n = 256 * 1024;

	end(&m, body);
	set_number(&m, 4, n);
	CHECK(write(fd, m.bytes, m.len) == (ssize_t)m.len);
	for (; n; n -= sizeof(zeros))
		CHECK(write(fd, zeros, sizeof(zeros)) == (ssize_t)sizeof(zeros));
}

static void manage(int fd, const char *login, const struct message *answer)
{
	char asked[CGROUP_BUS_MAX];
	struct message m;

	CHECK(read(fd, asked, sizeof(asked)) > 100);
	CHECK(write(fd, login, strlen(login)) == (ssize_t)strlen(login));
	if (answer) {
		make_job_removed(&m, "another.service", "done");
		CHECK(write(fd, m.bytes, m.len) == (ssize_t)m.len);
		say_large(fd);
		CHECK(write(fd, answer->bytes, answer->len) == (ssize_t)answer->len);
	}
	_exit(0);
}

static int ask(const char *login, const struct message *answer, struct err *e)
{
	int ends[2], r;
	pid_t manager;

	*e = (struct err){ 0 };
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	manager = fork();
	if (manager == 0) {
		close(ends[0]);
		manage(ends[1], login, answer);
	}
	close(ends[1]);
	r = cgroup_scope_ask(ends[0], UNIT, getpid(), e);
	close(ends[0]);
	waitpid(manager, NULL, 0);
	return r;
}

static void test_asking(void)
{
	static const char in[] = "OK 0123456789abcdef0123456789abcdef\r\n";
	struct message m;
	struct err e;

	make_job_removed(&m, UNIT, "done");
	CHECK(ask(in, &m, &e) == 0);
	make_error(&m, 1, "Permission denied");
	CHECK(ask(in, &m, &e) == -EPERM);
	CHECK_STR(e.text, "Permission denied");
	CHECK(ask("REJECTED EXTERNAL\r\n", NULL, &e) == -EPERM);
	CHECK_STR(e.text, "it does not let us in");
	CHECK(ask(in, NULL, &e) == -EPERM);
	CHECK_STR(e.text, "it ended the conversation");
	m = (struct message){ .len = 64 };
	CHECK(ask(in, &m, &e) == -EPERM);
	CHECK_STR(e.text, "it ended the conversation");
}

int main(void)
{
	test_request();
	test_answers();
	test_broken_answers();
	test_asking();
	return check_report();
}
