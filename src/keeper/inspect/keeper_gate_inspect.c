/*
 * keeper_gate_inspect - looks from outside whether the gate stands, and only the gate.
 *
 * Runs as:     the keeper, before the command may start.
 * Enters with: the gate saying that it is ready, which is a claim.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/count.h"
#include "base/file.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "keeper/inspect/keeper_inspection.h"
#include "keeper/keeper_process.h"
#include "keeper/start/keeper_gate.h"

#define LISTENS   10 /* the state, as the kernel counts them */
#define MAX_TABLE ((size_t)4 << 20)
#define STACK     16384

struct opened {
	int cage, fd;
};

/* What the kernel is asked: who listens, of one family. */
struct question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 which;
};

/*
 * In a child that has our descriptors and not our namespaces: what it opens in the cage's network
 * is ours. Without rights over other networks it first becomes who made the cage's.
 */
static int open_in_cage(void *of)
{
	struct opened *o = of;

	if (setns(o->cage, geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) == 0)
		o->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	return 0;
}

/* A socket that tells of the cage's network; or -errno. */
static int open_listing(int cage)
{
	char stack[STACK] __attribute__((aligned(16)));
	struct opened o = { .cage = cage, .fd = -1 };
	pid_t pid = clone(open_in_cage, stack + sizeof(stack),
		CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, &o);

	if (pid < 0)
		return -errno;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return o.fd < 0 ? -EPERM : o.fd;
}

/* 1: there is more, 0: that was all, or -errno. */
static int read_some(int listing, uint8_t ret[static KEEPER_PORTS])
{
	char bytes[1 << 14] __attribute__((aligned(8)));
	ssize_t n = recv(listing, bytes, sizeof(bytes), 0);

	if (n < 0)
		return errno == EINTR ? 1 : -errno;
	for (struct nlmsghdr *m = (void *)bytes; NLMSG_OK(m, (size_t)n); m = NLMSG_NEXT(m, n)) {
		const struct inet_diag_msg *one = NLMSG_DATA(m);

		if (m->nlmsg_type == NLMSG_DONE)
			return m->nlmsg_len < NLMSG_LENGTH(sizeof(int))
				       ? -EINVAL
				       : *(const int *)NLMSG_DATA(m);
		if (m->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
			m->nlmsg_len < NLMSG_LENGTH(sizeof(*one)))
			return -EINVAL;
		ret[ntohs(one->id.idiag_sport)] = 1;
	}
	return 1;
}

/* Notes the ports that somebody listens at. */
static int ask_listeners(int listing, int family, uint8_t ret[static KEEPER_PORTS])
{
	struct question q = { .head = { .nlmsg_len = sizeof(q),
				      .nlmsg_type = SOCK_DIAG_BY_FAMILY,
				      .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.which = { .sdiag_family = (uint8_t)family,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_states = 1U << LISTENS } };
	int r = 1;

	if (send(listing, &q, sizeof(q), 0) < 0)
		return -errno;
	while (r > 0)
		r = read_some(listing, ret);
	return r;
}

int keeper_gate_parse_listeners(const char *table, uint8_t ret[static KEEPER_PORTS])
{
	for (const char *line = strchr(table, '\n'); line && line[1];
		line = strchr(line + 1, '\n')) {
		/* "0: ADDRESS:PORT ADDRESS:PORT STATE …", in hex */
		const char *own = strchr(line, ':'), *other;
		uint64_t port, state[2];

		own = own ? strchr(own + 1, ':') : NULL;
		other = own ? strchr(own + 1, ':') : NULL;
		if (!other || !num_scan(own + 1, 16, &port, 1) ||
			!num_scan(other + 1, 16, state, 2))
			return -EINVAL;
		if (state[1] == LISTENS && port < KEEPER_PORTS)
			ret[port] = 1;
	}
	return 0;
}

/* The same from one of the kernel's tables. */
static int read_listeners(pid_t pid, const char *table, uint8_t ret[static KEEPER_PORTS])
{
	own_free char *text = NULL;
	char path[48];
	size_t size = 0;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/net/%s", pid, table);
	r = file_read_path(path, MAX_TABLE, &text, &size);
	/* A kernel without IPv6 has no such table. */
	if (r < 0)
		return r == -ENOENT && str_eq(table, "tcp6") ? 0 : r;
	return keeper_gate_parse_listeners(text, ret);
}

/*
 * A table is written by a walk through the places of all connections of the machine, which takes
 * milliseconds. So the kernel is asked, and the tables are read where it has no answer.
 */
static int find_listeners(const struct keeper_process *p, uint8_t ret[static KEEPER_PORTS])
{
	own_fd int listing = open_listing(p->pidfd);
	int r;

	if (listing >= 0 && ask_listeners(listing, AF_INET, ret) == 0 &&
		ask_listeners(listing, AF_INET6, ret) == 0)
		return 0;
	r = read_listeners(p->pid, "tcp", ret);
	return r < 0 ? r : read_listeners(p->pid, "tcp6", ret);
}

static void want_ports(const struct plan *p, uint8_t ret[static KEEPER_PORTS])
{
	static const uint16_t always[] = { 53, 80, 443 };

	for (size_t i = 0; i < COUNT_OF(always); i++)
		ret[always[i]] = 1;
	for (uint32_t i = 0; i < p->op_count; i++) {
		const struct plan_op *op = &plan_ops(p)[i];

		if (op->kind == PLAN_HOST_PORT)
			ret[op->n % KEEPER_PORTS] = 1;
		else if (op->kind == PLAN_ALLOW)
			ret[plan_rule_of(p, op)->port] = 1;
	}
}

void keeper_gate_compare_ports(
	const struct plan *p, const uint8_t seen[static KEEPER_PORTS], char *ret, size_t size)
{
	uint8_t wanted[KEEPER_PORTS] = { 0 };
	unsigned port = 0;

	want_ports(p, wanted);
	while (port < KEEPER_PORTS && seen[port] == wanted[port])
		port++;
	if (port < KEEPER_PORTS)
		snprintf(ret, size, "%s listens at port %u in the cage's network",
			seen[port] ? "somebody" : "nobody", port);
}

static void see_ports(
	const struct keeper_process *cage, const struct plan *p, char *ret, size_t size)
{
	uint8_t seen[KEEPER_PORTS] = { 0 };

	if (find_listeners(cage, seen) == 0)
		keeper_gate_compare_ports(p, seen, ret, size);
	else
		snprintf(ret, size, "the ports of the cage's network cannot be read");
}

bool keeper_gate_is_confined(const char *status)
{
	struct keeper_snapshot v = { 0 };
	uint64_t capabilities = 0;

	if (keeper_snapshot_parse_status(&v, status) < 0)
		return false;
	for (size_t i = 0; i < 3; i++)
		capabilities |= v.capabilities[i];
	return v.uids[0] && v.uids[1] && v.uids[2] && v.uids[3] && !capabilities &&
	       v.no_new_privileges == 1 && v.seccomp == 2;
}

/* Has the process lost what it has to lose? */
static bool see_confined(pid_t pid, const char *name, char *ret, size_t size)
{
	char path[48], text[4096];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (pid <= 0 || file_read_small(path, text, sizeof(text)) <= 0)
		snprintf(ret, size, "the %s cannot be looked at", name);
	else if (!keeper_gate_is_confined(text))
		snprintf(ret, size, "the %s is not confined", name);
	else
		return true;
	return false;
}

void keeper_gate_inspect(const struct keeper_gate *g, const struct keeper_process *cage,
	const struct plan *p, char *ret, size_t size)
{
	ret[0] = '\0';
	if (g->channel < 0)
		snprintf(ret, size, "there is no gate");
	else if (see_confined(g->pids[0], "gate", ret, size) &&
		 see_confined(g->pids[1], "dialer", ret, size) &&
		 (!g->has_secrets || see_confined(g->pids[2], "vault", ret, size)))
		see_ports(cage, p, ret, size);
}
