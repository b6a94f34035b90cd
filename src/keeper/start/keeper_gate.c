/*
 * keeper_gate - starts the gate, the dialer and the vault of a run, hears what they decide, and
 * ends them.
 *
 * Runs as:     the keeper.
 * Enters with: the rules, and a cage that has a network namespace.
 * Leaves:      none of them; their decisions in the record.
 * Must not:    believe a message that is none, or wait for them: a gate that says nothing more is
 *              ended, and a network without a gate is closed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "gate/gate.h"
#include "keeper/keeper_inside.h"
#include "wire/wire.h"

/* --- the rules --- */

/*
 * What gate and dialer are told: the destinations of the plan, in sealed memory. Written before
 * either of them is started.
 */

_Static_assert((int)WIRE_TLS == (int)SPEC_TLS && (int)WIRE_HTTP == (int)SPEC_HTTP &&
		       (int)WIRE_TCP == (int)SPEC_TCP,
	"the same names in the same order");

static size_t gate_rules_count_ops(const struct plan *p, enum plan_op_kind kind)
{
	size_t n = 0;

	for (uint32_t i = 0; i < p->op_count; i++)
		n += plan_ops(p)[i].kind == kind;
	return n;
}

/* --- destinations --- */

static int add_destination(
	const struct plan *p, const struct plan_rule *rule, struct wire_rules *rules, struct err *e)
{
	struct wire_rule *ret = &rules->rules[rules->rule_count++];

	if (!rule->port)
		return err_set(e, ERR_REFUSED, EINVAL,
			"cannot allow the registry of %s: nobody has asked it which one it uses",
			plan_rule_text(p, rule, PLAN_RULE_HOST));
	snprintf(ret->name, sizeof(ret->name), "%s", plan_rule_text(p, rule, PLAN_RULE_HOST));
	memcpy(ret->address, rule->address, sizeof(ret->address));
	ret->prefix = rule->prefix;
	ret->protocol = rule->protocol;
	ret->is_wildcard = rule->is_wildcard;
	ret->port = rule->port;
	return 0;
}

static void fill_host_port(const struct plan_op *op, struct wire_rule *ret)
{
	snprintf(ret->name, sizeof(ret->name), WIRE_HOST_NAME);
	ret->protocol = WIRE_TCP;
	ret->is_host = true;
	ret->port = (uint16_t)op->n;
}

/* --- secrets --- */

static int add_secret(
	const struct plan *p, const struct plan_rule *rule, struct wire_rules *rules, struct err *e)
{
	struct wire_secret *ret = &rules->secrets[rules->secret_count];

	if (rules->secret_count == WIRE_MAX_SECRETS)
		return err_set(e, ERR_REFUSED, ENOSPC, "cannot use secrets: there are more than %d",
			WIRE_MAX_SECRETS);
	snprintf(ret->name, sizeof(ret->name), "%s", plan_rule_text(p, rule, PLAN_RULE_NAME));
	snprintf(ret->host, sizeof(ret->host), "%s", plan_rule_text(p, rule, PLAN_RULE_HOST));
	ret->port = rule->port;
	rules->secret_count++;
	return 0;
}

/* Where the cage finds them. */
static void add_vault(struct wire_rules *rules)
{
	struct wire_rule *ret = &rules->rules[rules->rule_count++];

	snprintf(ret->name, sizeof(ret->name), WIRE_HOST_NAME);
	ret->protocol = WIRE_HTTP;
	ret->is_vault = true;
	ret->port = WIRE_VAULT_PORT;
}

/* --- ports of the host --- */

/* Taken before anything runs: where that fails, the operator is told at once. */
static int open_port(const char *address, const struct plan_rule *rule, struct err *e)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(rule->port) };
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(rule->port) };
	bool is_v6 = inet_pton(AF_INET, address, &v4.sin_addr) != 1;
	own_fd int fd = -1;
	int on = 1, r;

	if (is_v6)
		inet_pton(AF_INET6, address, &v6.sin6_addr);
	fd = wire_socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	r = fd < 0 ? fd : 0;
	if (r == 0) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		r = bind(fd, is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4,
			is_v6 ? sizeof(v6) : sizeof(v4));
		r = r < 0 || listen(fd, SOMAXCONN) < 0 ? -errno : 0;
	}
	if (r < 0)
		return err_set(e, ERR_REFUSED, -r,
			"cannot publish port %u of the cage at %s:%u: %s", rule->cage_port, address,
			rule->port, strerror(-r));
	return take_fd(&fd);
}

static int gate_rules_add_port(struct keeper_gate *g, const struct plan *p,
	const struct plan_rule *rule, struct wire_rules *rules, struct err *e)
{
	struct wire_publish *ret = &rules->publish[rules->publish_count];
	const char *address = plan_rule_text(p, rule, PLAN_RULE_HOST);
	int r;

	if (rules->publish_count == WIRE_MAX_PUBLISH)
		return err_set(e, ERR_REFUSED, ENOSPC,
			"cannot use network.publish: it has more than %d ports", WIRE_MAX_PUBLISH);
	r = open_port(address, rule, e);
	if (r < 0)
		return r;
	g->published[rules->publish_count++] = r;
	snprintf(ret->address, sizeof(ret->address), "%s", address);
	ret->host_port = rule->port;
	ret->cage_port = rule->cage_port;
	return 0;
}

/* --- all of it --- */

static int gate_rules_fill(
	struct keeper_gate *g, const struct plan *p, struct wire_rules *rules, struct err *e)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < p->op_count; i++) {
		const struct plan_op *op = &plan_ops(p)[i];

		if (op->kind == PLAN_ALLOW)
			r = add_destination(p, plan_rule_of(p, op), rules, e);
		else if (op->kind == PLAN_HOST_PORT)
			fill_host_port(op, &rules->rules[rules->rule_count++]);
		else if (op->kind == PLAN_PUBLISH)
			r = gate_rules_add_port(g, p, plan_rule_of(p, op), rules, e);
		else if (op->kind == PLAN_SECRET)
			r = add_secret(p, plan_rule_of(p, op), rules, e);
	}
	if (rules->secret_count)
		add_vault(rules);
	return r;
}

/* A file without a name, which those who have it can only read. */
static int seal(struct keeper_gate *g, const struct wire_rules *rules, size_t size, struct err *e)
{
	int r;

	g->rules = memfd_create("rules", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	r = g->rules < 0 ? -errno : file_write_all(g->rules, rules, size);
	if (r == 0 && fcntl(g->rules, F_ADD_SEALS,
			      F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		r = -errno;
	if (r < 0)
		return err_sys(e, -r, "cannot hand the rules of the network over");
	return 0;
}

static int make_rules(struct keeper *k, struct err *e)
{
	const struct plan *p = k->start.plan;
	size_t secrets = gate_rules_count_ops(p, PLAN_SECRET);
	size_t count = gate_rules_count_ops(p, PLAN_ALLOW) +
		       gate_rules_count_ops(p, PLAN_HOST_PORT) + (secrets > 0);
	size_t size = sizeof(struct wire_rules) + count * sizeof(struct wire_rule);
	struct wire_rules *rules = NULL;
	int r;

	if (count > WIRE_MAX_RULES)
		return err_set(e, ERR_REFUSED, ENOSPC,
			"cannot use network.allow: it has more than %d entries", WIRE_MAX_RULES);
	if (record_expect_decisions(k->record))
		rules = calloc(1, size);
	if (!rules)
		return err_set(
			e, ERR_SYS, ENOMEM, "cannot make the rules of the network: out of memory");
	rules->uid = k->start.ids.uid;
	rules->gid = k->start.ids.gid;
	rules->is_landlocked = plan_find(p, PLAN_LANDLOCK, NULL) != NULL;
	r = gate_rules_fill(&k->gate, p, rules, e);
	k->gate.published_count = rules->publish_count;
	if (r == 0)
		r = seal(&k->gate, rules, size, e);
	free(rules);
	return r;
}

/* Gathers the rules of the plan's network, and takes the ports of the host that lead into it. */
static int keeper_gate_make(struct keeper *k, struct err *e)
{
	const struct plan *p = k->start.plan;
	char path[PATH_MAX];
	int r;

	/* Without a network of its own, which only a spec can choose, there is nothing to guard. */
	if (!plan_find(p, PLAN_NETWORK, "allowlist") || !plan_find(p, PLAN_NAMESPACE, "net"))
		return 0;
	k->gate.has_secrets = plan_find(p, PLAN_SECRET, NULL) != NULL;
	r = k->gate.has_secrets ? keeper_vault_find(path, sizeof(path), e) : 0;
	if (r == 0 && k->gate.has_secrets)
		r = keeper_keys_check(k, e);
	if (r == 0)
		r = make_rules(k, e);
	k->gate.is_awaited = r == 0;
	return r;
}

#define MAX_AT_ONCE 64
#define END_MS      4000 /* for the last words of the gate, which passes on what was said */
#define STACK       16384
#define ABOVE_ALL   128 /* descriptors are first moved above those that are given away */

static void keeper_gate_init(struct keeper *k)
{
	k->gate = (struct keeper_gate){ .channel = -1, .rules = -1, .for_vault = { -1, -1 } };
}

/* --- starting --- */

/* The descriptors of one of them, by enum gate_fd; -1: it has none there. */
struct given {
	int fds[GATE_FD_PUBLISH + WIRE_MAX_PUBLISH];
	int count;
};

/* Copies above all numbers that are given, so that none is overwritten before its turn. */
static int lift(struct given *given)
{
	for (int i = 0; i < given->count; i++) {
		if (given->fds[i] < 0)
			continue;
		given->fds[i] = fcntl(given->fds[i], F_DUPFD_CLOEXEC, ABOVE_ALL);
		if (given->fds[i] < 0) {
			given->count = i;
			/* EINVAL: the limit is below that number. */
			return errno == EINVAL ? -EMFILE : -errno;
		}
	}
	return 0;
}

struct program {
	const char *path, *name;
	const struct given *given;
	int failure;
};

/* In our memory, while we wait: posix_spawn would first ask what happens at each of 64 signals. */
static int become_program(void *of)
{
	struct program *p = of;
	const char *const named[] = { p->name, NULL }, *const nothing[] = { NULL };

	bool has_all = true;

	for (int i = 0; has_all && i < p->given->count; i++)
		has_all = p->given->fds[i] < 0 || dup2(p->given->fds[i], i) >= 0;
	if (has_all && setsid() >= 0)
		syscall(SYS_execve, p->path, named, nothing);
	p->failure = errno;
	_exit(127);
}

/* As a fresh program, with nothing of our memory, our environment or the operator's terminal. */
static int spawn_program(const char *path, const char *name, const struct given *given, pid_t *ret)
{
	char stack[STACK] __attribute__((aligned(16), uninitialized));
	struct program p = { .path = path, .name = name, .given = given };
	pid_t pid =
		clone(become_program, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, &p);

	if (pid < 0)
		return -errno;
	if (!p.failure) {
		*ret = pid;
		return 0;
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return -p.failure;
}

static int start_one(const char *path, const char *program, struct given *given, pid_t *ret)
{
	int r = lift(given);

	*ret = -1;
	if (r == 0)
		r = spawn_program(path, program, given, ret);
	for (int i = 0; i < given->count; i++)
		if (given->fds[i] >= 0)
			close(given->fds[i]);
	return r;
}

static void gate_give(struct given *g, int null)
{
	for (size_t i = 0; i < COUNT_OF(g->fds); i++)
		g->fds[i] = i < 3 ? null : -1;
	g->count = GATE_FD_PUBLISH;
}

/* Both ends of every channel; -1: there is none. */
struct channels {
	int keeper[2]; /* to the gate */
	int dialer[2]; /* to the gate */
	int visits[2]; /* from the gate to the vault */
	int calls[2];  /* from the vault to the dialer */
};

static void channels_done(struct channels *c)
{
	int *const pairs[] = { c->keeper, c->dialer, c->visits, c->calls };

	for (size_t i = 0; i < 2 * COUNT_OF(pairs); i++)
		if (pairs[i / 2][i % 2] >= 0)
			close(pairs[i / 2][i % 2]);
}

static int channels_open(struct channels *c, bool has_vault)
{
	int r;

	*c = (struct channels){ { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 } };
	if ((r = wire_pair(c->keeper)) < 0 || (r = wire_pair(c->dialer)) < 0)
		return r;
	if (has_vault && ((r = wire_pair(c->visits)) < 0 || (r = wire_pair(c->calls)) < 0))
		return r;
	return 0;
}

/* After the clone: a cage begins as a copy of us, and shall have nothing of the keys. */
static int start_vault(struct keeper *k, struct err *e)
{
	struct keeper_gate *g = &k->gate;
	own_fd int null = file_open("/dev/null", O_RDWR), keys = -1;
	char path[PATH_MAX];
	struct given given;
	int r = null < 0 ? err_sys(e, -null, "cannot open '/dev/null'")
			 : keeper_vault_find(path, sizeof(path), e);

	if (r == 0)
		r = keys = keeper_keys_open(k, e);
	if (r < 0)
		return r;
	gate_give(&given, null);
	given.fds[VAULT_FD_GATE] = g->for_vault[0];
	given.fds[VAULT_FD_DIALER] = g->for_vault[1];
	given.fds[VAULT_FD_RULES] = g->rules;
	given.fds[VAULT_FD_KEYS] = keys;
	r = start_one(path, GATE_VAULT_PROGRAM, &given, &g->pids[2]);
	return r < 0 ? err_sys(e, -r, "cannot start %s", path) : 0;
}

static int start_both(struct keeper *k, int null, const struct channels *c)
{
	static const char self[] = "/proc/self/exe";
	struct keeper_gate *g = &k->gate;
	struct given given;
	int r;

	gate_give(&given, null);
	given.fds[GATE_FD_KEEPER] = c->keeper[1];
	given.fds[GATE_FD_OTHER] = c->dialer[0];
	given.fds[GATE_FD_RULES] = g->rules;
	given.fds[GATE_FD_VAULT] = c->visits[0];
	for (uint32_t i = 0; i < g->published_count; i++)
		given.fds[given.count++] = g->published[i];
	r = start_one(self, GATE_PROGRAM, &given, &g->pids[0]);
	if (r < 0)
		return r;
	gate_give(&given, null);
	given.fds[GATE_FD_OTHER] = c->dialer[1];
	given.fds[GATE_FD_RULES] = g->rules;
	given.fds[GATE_FD_VAULT] = c->calls[1];
	return start_one(self, GATE_DIALER_PROGRAM, &given, &g->pids[1]);
}

static void close_published(struct keeper_gate *g)
{
	for (uint32_t i = 0; i < g->published_count; i++)
		close(g->published[i]);
	g->published_count = 0;
}

/*
 * Starts the gate and the dialer, which takes both as long as the cage: they become what they are
 * while it is made, and the gate then waits for the cage.
 */
static int keeper_gate_start(struct keeper *k, struct err *e)
{
	own(channels) struct channels c = { { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 } };
	own_fd int null = -1;
	int r;

	null = file_open("/dev/null", O_RDWR);
	r = null < 0 ? null : channels_open(&c, k->gate.has_secrets);
	if (r == 0)
		r = start_both(k, null, &c);
	if (r < 0)
		return err_hint(e, err_sys(e, -r, "cannot start the gate"), "%s",
			r == -EMFILE ? "raise the limit: ulimit -n" : "");
	k->gate.channel = take_fd(&c.keeper[0]);
	k->gate.for_vault[0] = take_fd(&c.visits[1]);
	k->gate.for_vault[1] = take_fd(&c.calls[0]);
	/* It never makes us wait. */
	fcntl(k->gate.channel, F_SETFL, O_RDWR | O_NONBLOCK);
	/* Theirs from here on: the ports close with the gate. */
	close_published(&k->gate);
	return 0;
}

static int keeper_gate_prepare(struct keeper *k, struct err *e)
{
	int r = keeper_gate_make(k, e);

	return r == 0 && k->gate.is_awaited ? keeper_gate_start(k, e) : r;
}

/* --- what it says --- */

static void take_decision(struct keeper *k, const struct wire_gate_message *m)
{
	bool is_new = m->row == k->record->decision_count;

	if (!wire_is_decision(&m->decision) || m->row >= WIRE_MAX_ROWS ||
		m->row > k->record->decision_count)
		return;
	k->record->decisions[m->row] = m->decision;
	if (is_new)
		k->record->decision_count++;
	keeper_log_decision(k, m->row, is_new);
	keeper_say_decided(k->q, k->record, &m->decision);
}

/* The network is closed from here on: there is nobody to connect to. */
static void note_end(struct keeper *k, const struct err *why)
{
	k->record->gate = *why;
	k->record->gate.kind = ERR_SYS;
	keeper_log_closed(k);
}

/* It does not stand: no run, unless the spec does without; then the network stays closed. */
static int take_failure(struct keeper *k, const struct err *why, struct err *e)
{
	const struct plan_promise *promise = &plan_promises(k->start.plan)[PLAN_NET_ALLOWLIST];
	bool is_needed = k->gate.is_awaited && promise->need == PLAN_MUST;

	k->gate.is_awaited = false;
	if (is_needed) {
		*e = *why;
		e->kind = why->kind == ERR_REFUSED ? ERR_REFUSED : ERR_SYS;
		e->num = EPROTO;
		return -EPROTO;
	}
	if (k->record->gate.kind == ERR_NONE)
		note_end(k, why);
	return 0;
}

/* One message: 1, 0 at the end of them, or an error that ends the run. */
static int gate_hear_one(struct keeper *k, struct err *e)
{
	struct keeper_gate *g = &k->gate;
	struct wire_gate_message m = { 0 };
	int r;

	r = wire_receive_message(g->channel, &m, sizeof(m), NULL);
	if (r == -EAGAIN)
		return 0;
	if (r < 0) {
		close(g->channel);
		g->channel = -1;
		if (g->is_over)
			return 0;
		err_set(&m.err, ERR_SYS, ECHILD, "%s",
			g->is_awaited ? "cannot start the gate: it ended before it was ready"
				      : "cannot connect any more: the gate has ended");
		return take_failure(k, &m.err, e);
	}
	switch (m.kind) {
	case WIRE_GATE_READY:
		g->is_awaited = false;
		return 1;
	case WIRE_GATE_FAILED:
		err_end_texts(&m.err);
		if (!m.err.text[0])
			err_set(&m.err, ERR_SYS, EPROTO,
				"cannot start the gate: it failed and gave no reason");
		r = take_failure(k, &m.err, e);
		return r < 0 ? r : 1;
	case WIRE_GATE_DECIDED:
		take_decision(k, &m);
		return 1;
	case WIRE_GATE_UNTOLD:
		k->record->decisions_untold = m.row;
		return 1;
	case WIRE_GATE_END:
		g->is_over = true;
		return 1;
	}
	return 1;
}

static void close_for_start(struct keeper_gate *g)
{
	int fds[] = { g->rules, g->for_vault[0], g->for_vault[1] };

	file_close_all(fds, COUNT_OF(fds));
	g->rules = g->for_vault[0] = g->for_vault[1] = -1;
}

/* The cage has its namespaces: the gate can enter its network. */
static int keeper_gate_enter(struct keeper *k, struct err *e)
{
	const uint8_t entry = 0;
	int r;

	if (!k->gate.is_awaited)
		return 0;
	r = wire_send_message(k->gate.channel, &entry, sizeof(entry), k->process.pidfd);
	/* One that has ended says itself why. */
	if (r < 0 && r != -EPIPE)
		return err_sys(e, -r, "cannot tell the gate its cage");
	r = k->gate.has_secrets ? start_vault(k, e) : 0;
	close_for_start(&k->gate);
	return r;
}

/* What the gate has said. An error: it will never stand. */
static int keeper_gate_hear(struct keeper *k, const struct pollfd *seen, struct err *e)
{
	int r = 1;

	(void)seen;
	for (int i = 0; r > 0 && k->gate.channel >= 0 && i < MAX_AT_ONCE; i++)
		r = gate_hear_one(k, e);
	return r < 0 ? r : 0;
}

/* --- the end --- */

/* Its last words: what was passed on is counted only when a connection ends. */
static void hear_last(struct keeper *k)
{
	uint64_t end_ns = clock_ns() + (uint64_t)END_MS * 1000000;
	struct err unused;

	for (uint64_t now = clock_ns(); k->gate.channel >= 0 && !k->gate.is_over && now < end_ns;
		now = clock_ns()) {
		struct pollfd channel = { .fd = k->gate.channel, .events = POLLIN };

		if (poll(&channel, 1, (int)((end_ns - now) / 1000000) + 1) <= 0 ||
			keeper_gate_hear(k, NULL, &unused) < 0)
			break;
	}
	if (!k->gate.is_over && k->record->gate.kind == ERR_NONE) {
		err_set(&unused, ERR_SYS, ECHILD,
			"cannot count what the gate passed on: it ended without saying");
		note_end(k, &unused);
	}
}

/* The cage has ended: hears the last of the gate, and ends it. */
static void keeper_gate_end(struct keeper *k)
{
	struct keeper_gate *g = &k->gate;

	if (g->channel >= 0 && !g->is_awaited) {
		shutdown(g->channel, SHUT_WR);
		hear_last(k);
	}
	/* Both at once, so that the second ends while the first is awaited. */
	for (size_t i = 0; i < COUNT_OF(g->pids); i++)
		if (g->pids[i] > 0)
			kill(g->pids[i], SIGKILL);
	for (size_t i = 0; i < COUNT_OF(g->pids); i++) {
		if (g->pids[i] <= 0)
			continue;
		while (waitpid(g->pids[i], NULL, 0) < 0 && errno == EINTR)
			;
		g->pids[i] = 0;
	}
}

static void keeper_gate_done(struct keeper *k)
{
	struct keeper_gate *g = &k->gate;

	if (g->channel >= 0)
		close(g->channel);
	close_for_start(g);
	close_published(g);
}

static void keeper_gate_want(const struct keeper *k, struct pollfd *ret)
{
	ret->fd = k->gate.channel;
}

const struct keeper_part keeper_gate_part = {
	.init = keeper_gate_init,
	.take = { [KEEPER_PREPARE] = keeper_gate_prepare, [KEEPER_START] = keeper_gate_enter },
	.want = keeper_gate_want,
	.hear = keeper_gate_hear,
	.end = keeper_gate_end,
	.done = keeper_gate_done,
};
