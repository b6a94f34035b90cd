/*
 * keeper_reader - reads the questions of a cage without a network, in a process that can do
 * nothing.
 *
 * Runs as:  the keeper, and a child of it that can only read, write and exit (seccomp's strict
 *           mode) and has no descriptor but its end of a socket.
 * Leaves:   what a question asks for, as a message of a fixed size, which the keeper checks.
 * Must not: parse a byte of the cage in the keeper, or wait for the child for long.
 *
 * The child is made at the first question: a run that asks for no name does not pay for it.
 */
#include "keeper/stream/keeper_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cage/cage_break.h"

#define PATIENCE_MS 5000 /* which a busy machine may take, and nobody else does */
#define MIN_QUERY   12   /* a header; nothing shorter is a question */

/* What the child says: no type has values that a byte could not have. */
struct answer {
	uint8_t is_due, has_options;
	uint16_t type, size, code;
	char name[WIRE_NAME_SIZE];
};

void keeper_reader_init(struct keeper_reader *r)
{
	*r = (struct keeper_reader){ .fd = -1 };
}

void keeper_reader_done(struct keeper_reader *r)
{
	if (r->fd < 0)
		return;
	close(r->fd);
	kill(r->pid, SIGKILL);
	while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
		;
	keeper_reader_init(r);
}

static bool reader_confine(int fd)
{
	if (cage_is_broken("reader"))
		return true;
	return (fd == 0 || syscall(SYS_close_range, 0, (unsigned)fd - 1, 0) == 0) &&
	       syscall(SYS_close_range, (unsigned)fd + 1, ~0U, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0;
}

_Noreturn static void read_questions(int fd)
{
	uint8_t query[GATE_DNS_MAX_QUERY + 1];
	bool is_good;

	prctl(PR_SET_NAME, "bawn-reader");
	is_good = reader_confine(fd);
	while (is_good) {
		ssize_t n = read(fd, query, sizeof(query));
		struct answer said = { 0 };
		struct gate_question q;

		if (n <= 0)
			break;
		said.is_due = gate_dns_read(query, (size_t)n, &q);
		if (said.is_due) {
			said.has_options = q.has_options;
			said.type = q.type;
			said.size = (uint16_t)q.size;
			said.code = (uint16_t)q.r;
			memcpy(said.name, q.name, sizeof(said.name));
		}
		is_good = write(fd, &said, sizeof(said)) == (ssize_t)sizeof(said);
	}
	/* Not exit_group, which ends a process in strict mode by a signal. */
	for (;;)
		syscall(SYS_exit, 0);
}

static int reader_start(struct keeper_reader *r)
{
	sigset_t all, old;
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	pid = fork();
	if (pid == 0)
		read_questions(ends[0]);
	sigprocmask(SIG_SETMASK, &old, NULL);
	close(ends[0]);
	if (pid < 0) {
		close(ends[1]);
		return -EAGAIN;
	}
	*r = (struct keeper_reader){ .fd = ends[1], .pid = pid };
	return 0;
}

/* Is it what a reader could have said of a question of this size? */
static bool reader_is_sound(const struct answer *said, size_t n)
{
	size_t end = strnlen(said->name, sizeof(said->name));

	for (size_t i = 0; i < end; i++)
		if (said->name[i] <= ' ' || said->name[i] > '~')
			return false;
	return end < sizeof(said->name) && said->size >= MIN_QUERY && said->size <= n &&
	       said->code <= GATE_DNS_BAD_VERSION;
}

static int exchange(struct keeper_reader *r, const uint8_t *query, size_t n, struct answer *ret)
{
	struct pollfd p = { .fd = r->fd, .events = POLLIN };
	int ready;

	if (send(r->fd, query, n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)n)
		return -EPIPE;
	while ((ready = poll(&p, 1, PATIENCE_MS)) < 0 && errno == EINTR)
		;
	if (ready <= 0 || recv(r->fd, ret, sizeof(*ret), MSG_DONTWAIT) != (ssize_t)sizeof(*ret))
		return -EPROTO;
	return !ret->is_due || reader_is_sound(ret, n) ? 0 : -EPROTO;
}

int keeper_reader_ask(
	struct keeper_reader *r, const uint8_t *query, size_t n, struct gate_question *ret)
{
	struct answer said = { 0 };
	int failure;

	if (n < MIN_QUERY)
		return 0;
	failure = r->fd < 0 ? reader_start(r) : 0;
	if (failure == 0)
		failure = exchange(r, query, n, &said);
	if (failure < 0) {
		keeper_reader_done(r);
		return failure;
	}
	*ret = (struct gate_question){ .type = said.type,
		.has_options = said.has_options != 0,
		.size = said.size,
		.r = (enum gate_dns_code)said.code };
	snprintf(ret->name, sizeof(ret->name), "%s", said.name);
	return said.is_due != 0;
}
