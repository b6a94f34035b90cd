/*
 * keeper_names - answers a cage without a network, and counts what it tries to reach.
 *
 * Runs as:  the keeper.
 * Enters with: a socket in the cage's own network, bound to its port 53.
 * Leaves:   decisions in the record and in the log.
 * Must not: resolve a name, send anything to another network, wait for the cage, read a question:
 *           keeper_reader does, in a process without rights.
 *
 * Nothing answers in a network that is only a loopback, so libraries say "temporary failure" and
 * programs try again: npm for 70 seconds. Every name gets NXDOMAIN, and they give up at once.
 * What is sent to an address fails in the kernel, which counts that in the cage's own network; who
 * tried and where to is not known. The cage can ask as often as it likes: so rows are few, and a
 * flood is answered slowly.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/str.h"
#include "cage/cage_break.h"
#include "gate/dns/gate_dns.h"
#include "keeper/keeper_inside.h"
#include "keeper/stream/keeper_reader.h"

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

#define PATIENCE_MS 5000 /* which a busy machine may take, and nobody else does */
#define MIN_QUERY   12   /* a header; nothing shorter is a question */

/* What the child says: no type has values that a byte could not have. */
struct answer {
	uint8_t is_due, has_options;
	uint16_t type, size, code;
	char name[WIRE_NAME_SIZE];
};

static void keeper_reader_init(struct keeper_reader *r)
{
	*r = (struct keeper_reader){ .fd = -1 };
}

static void keeper_reader_done(struct keeper_reader *r)
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

/*
 * Has a question read. 1: a reply is due, and `ret` is what gate_dns_read says; 0: none is. -errno:
 * there is no such process, or it did not answer as one does; it has ended then.
 */
static int keeper_reader_ask(
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

#define TURN_NS  ((uint64_t)10000000)
#define AT_ONCE  64    /* answers in one turn */
#define MAX_TEXT 16384 /* of counters */

static void keeper_names_init(struct keeper *k)
{
	k->names = (struct keeper_names){ .socket = -1, .counters = { -1, -1 } };
	keeper_reader_init(&k->names.reader);
}

static void keeper_names_done(struct keeper *k)
{
	struct keeper_names *n = &k->names;
	const int fds[] = { n->socket, n->counters[0], n->counters[1] };

	for (size_t i = 0; i < COUNT_OF(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	keeper_reader_done(&n->reader);
	keeper_names_init(k);
}

/* Opens the counters of the cage's network while its first process is there. */
static int keeper_names_open(struct keeper *k, struct err *e)
{
	static const char *const files[] = { "snmp", "snmp6" };
	char path[48];

	(void)e;
	if (!plan_find(k->q->plan, PLAN_NETWORK, "none"))
		return 0;
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/proc/%d/net/%s", k->process.pid, files[i]);
		k->names.counters[i] = file_open(path, O_RDONLY);
	}
	return 0;
}

/* --- what is counted --- */

/* The row of a name, or of all addresses (""), and so many times more. */
static void names_count(struct keeper *k, const char *name, uint64_t times)
{
	struct record *r = k->record;
	struct wire_decision *d = r->decisions, *end;
	bool is_new;

	if (!d && !record_expect_decisions(r)) {
		r->decisions_untold += times;
		return;
	}
	d = r->decisions;
	end = d + r->decision_count;
	while (d < end && !str_eq(d->name, name))
		d++;
	is_new = d == end;
	/* The last row is for addresses. */
	if (is_new && r->decision_count + (name[0] != '\0') >= WIRE_MAX_ROWS) {
		r->decisions_untold += times;
		return;
	}
	if (is_new) {
		*d = (struct wire_decision){ .kind = name[0] ? WIRE_NAME_DENIED : WIRE_NET_DENIED,
			.reason = WIRE_BECAUSE_NO_NETWORK };
		snprintf(d->name, sizeof(d->name), "%s", name);
		r->decision_count++;
	}
	d->times += times;
	keeper_log_decision(k, (uint32_t)(d - r->decisions), is_new);
	if (is_new)
		keeper_say_decided(k->q, r, d);
}

/* One question, if there is one. What cannot be read is answered too, and counts as nothing. */
static bool names_answer_one(struct keeper *k)
{
	uint8_t query[GATE_DNS_MAX_QUERY + 1], reply[GATE_DNS_MAX_REPLY];
	struct sockaddr_in from;
	socklen_t size = sizeof(from);
	ssize_t n = recvfrom(k->names.socket, query, sizeof(query), MSG_DONTWAIT,
		(struct sockaddr *)&from, &size);
	struct gate_answer a = { .code = GATE_DNS_NO_NAME, .why = "this run has no network" };
	struct gate_question q;
	int due;

	if (n < 0)
		return errno == EINTR;
	due = keeper_reader_ask(&k->names.reader, query, (size_t)n, &q);
	/* Without a reader nobody is answered: the keeper does not read them itself. */
	if (due < 0) {
		close(k->names.socket);
		k->names.socket = -1;
		return false;
	}
	if (due == 0)
		return true;
	if (q.r != GATE_DNS_OK)
		a = (struct gate_answer){ .code = q.r };
	else
		names_count(k, q.name, 1);
	(void)sendto(k->names.socket, reply, gate_dns_write(query, &q, &a, reply), MSG_DONTWAIT,
		(const struct sockaddr *)&from, size);
	return true;
}

/* --- while it runs --- */

static void keeper_names_want(const struct keeper *k, struct pollfd *ret)
{
	const struct keeper_names *n = &k->names;
	bool is_full = keeper_turn_is_full(&n->turn, AT_ONCE, TURN_NS);

	ret->fd = is_full ? -1 : n->socket;
}

/* How long nobody is answered, because too many asked, or -1. */
static int keeper_names_wait(const struct keeper *k)
{
	const struct keeper_names *n = &k->names;

	return n->socket < 0 ? -1 : keeper_turn_wait(&n->turn, AT_ONCE, TURN_NS);
}

/* Answers those that wait, but not too many. */
static int keeper_names_hear(struct keeper *k, const struct pollfd *seen, struct err *e)
{
	struct keeper_turn *turn = &k->names.turn;

	(void)seen, (void)e;
	keeper_turn_renew(turn, TURN_NS);
	while (turn->done < AT_ONCE && names_answer_one(k))
		turn->done++;
	return 0;
}

/* --- at the end --- */

/* The value in the line below a heading: "Ip: Forwarding …", and then "Ip: 1 …". */
static uint64_t find_below(const char *text, const char *word)
{
	const char *value = strstr(text, "\nIp: ");

	if (!str_starts(text, "Ip: ") || !value)
		return 0;
	value++;
	for (const char *name = text; *name && *name != '\n';) {
		size_t n = strcspn(name, " \n");

		if (n == strlen(word) && memcmp(name, word, n) == 0)
			return strtoull(value, NULL, 10);
		name += n + (name[n] == ' ');
		value += strcspn(value, " \n");
		value += *value == ' ';
	}
	return 0;
}

uint64_t keeper_names_count(const char *text)
{
	const char *v6 = strstr(text, "Ip6OutNoRoutes");

	return v6 ? strtoull(v6 + strlen("Ip6OutNoRoutes"), NULL, 10)
		  : find_below(text, "OutNoRoutes");
}

/* The cage has ended: the last questions, and how often an address was tried, go on record. */
static void keeper_names_end(struct keeper *k)
{
	struct keeper_names *n = &k->names;
	uint64_t times = 0;
	char text[MAX_TEXT];

	/* Nobody is left who could ask more. */
	for (int i = 0; n->socket >= 0 && i < AT_ONCE && names_answer_one(k); i++)
		continue;
	for (int i = 0; i < 2; i++) {
		ssize_t size = n->counters[i] < 0 ? -1 : read(n->counters[i], text, MAX_TEXT - 1);

		text[size > 0 ? size : 0] = '\0';
		times += keeper_names_count(text);
	}
	if (times)
		names_count(k, "", times);
	keeper_names_done(k);
}

const struct keeper_part keeper_names_part = {
	.init = keeper_names_init,
	.take = { [KEEPER_LET_RUN] = keeper_names_open },
	.want = keeper_names_want,
	.wait = keeper_names_wait,
	.hear = keeper_names_hear,
	.is_after_cage = true,
	.end = keeper_names_end,
	.done = keeper_names_done,
};
