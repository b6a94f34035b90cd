/*
 * keeper_inspection - looks at the cage from outside, before a line of foreign code runs in it.
 *
 * Runs as:     the keeper, while the cage's first process waits.
 * Enters with: the cage saying that it is ready, which is a claim.
 * Leaves:      for every guarantee what was seen, and from where. One that must hold and does not
 *              is an error, and the dialer ends the cage.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "cage/cage_break.h"
#include "keeper/engine/keeper_engine.h"
#include "keeper/inspect/keeper_inspection.h"
#include "keeper/keeper_inside.h"
#include "keeper/keeper_process.h"
#include "keeper/start/keeper_gate.h"

/* --- the gate --- */

/* The gate says that it is ready, which is a claim: is it there, confined, and at its ports? */

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

/* Is the gate what it should be? "", or what is wrong. */
static void keeper_gate_inspect(const struct keeper_gate *g, const struct keeper_process *cage,
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

/* The standard ones, the channel, and, but for who joins, both ends of the latch. */
#define DESCRIPTORS   6
#define WITHOUT_LATCH 4

/* Notes what was seen; a fault that is "" is none. */
/* `good` is NULL where what is seen is what is seen usually. */
static void inspection_see(struct keeper_inspection *l, enum plan_guarantee g,
	enum record_vantage vantage, const char *fault, const char *good)
{
	struct record_observation *o = &l->record->observations[g];

	o->vantage = vantage;
	o->holds = !fault[0];
	if (!good)
		good = plan_guarantee_defs[g].usual;
	snprintf(o->seen, sizeof(o->seen), "%s", fault[0] ? fault : good);
}

/* --- namespaces --- */

static bool inspection_is_own(const struct keeper_inspection *l, enum keeper_namespace ns)
{
	return l->cage.namespaces[ns] != l->host.namespaces[ns] &&
	       (!l->joined || l->cage.namespaces[ns] == l->joined->inodes[ns]);
}

/* Whose it is, if it is not the cage's. */
static const char *owner(const struct keeper_inspection *l, enum keeper_namespace ns)
{
	return l->cage.namespaces[ns] == l->host.namespaces[ns] ? "the host's"
								: "not the session's";
}

static void see_namespace(
	struct keeper_inspection *l, enum plan_guarantee g, enum keeper_namespace ns)
{
	char fault[64] = "", good[64];

	if (!inspection_is_own(l, ns))
		snprintf(fault, sizeof(fault), "the %s namespace is %s", keeper_namespace_names[ns],
			owner(l, ns));
	snprintf(good, sizeof(good), "%s:[%" PRIu64 "]", keeper_namespace_names[ns],
		l->cage.namespaces[ns]);
	inspection_see(l, g, RECORD_OUTSIDE, fault, good);
}

static void see_namespaces(struct keeper_inspection *l, const struct keeper *k)
{
	(void)k;
	see_namespace(l, PLAN_IPC, KEEPER_NS_IPC);
	see_namespace(l, PLAN_UTS, KEEPER_NS_UTS);
	see_namespace(l, PLAN_CGROUP, KEEPER_NS_CGROUP);
}

/* Some kernels put the stubs of their tunnels into every network; without rights they are none. */
static bool has_only_loopback(const char *interfaces)
{
	static const char known[] = " lo tunl0 sit0 gre0 gretap0 erspan0 ip_vti0 ip6_vti0 ip6tnl0 "
				    "ip6gre0 ";

	for (const char *at = interfaces; *at; at = strchr(at, ' ') + 1) {
		char word[32];

		snprintf(word, sizeof(word), " %.*s ", (int)strcspn(at, " "), at);
		if (!strstr(known, word))
			return false;
	}
	return str_starts(interfaces, "lo ") || strstr(interfaces, " lo ");
}

static void see_network(struct keeper_inspection *l, const struct keeper *k)
{
	const struct plan_promise *promises = plan_promises(l->start->plan);
	char fault[128] = "";

	if (promises[PLAN_NET_NONE].need == PLAN_NONE &&
		promises[PLAN_NET_ALLOWLIST].need == PLAN_NONE)
		return;
	if (!inspection_is_own(l, KEEPER_NS_NET))
		snprintf(fault, sizeof(fault), "the network namespace is %s",
			owner(l, KEEPER_NS_NET));
	else if (!has_only_loopback(l->cage.interfaces))
		snprintf(fault, sizeof(fault), "its interfaces are %.64s", l->cage.interfaces);
	if (promises[PLAN_NET_NONE].need != PLAN_NONE) {
		inspection_see(l, PLAN_NET_NONE, RECORD_OUTSIDE, fault, NULL);
		return;
	}
	if (!fault[0] && !l->joined)
		keeper_gate_inspect(&k->gate, &k->process, l->start->plan, fault, sizeof(fault));
	inspection_see(l, PLAN_NET_ALLOWLIST, RECORD_OUTSIDE, fault,
		l->joined ? "loopback only, in the network of the session's cage" : NULL);
}

/* --- files --- */

/* What of it cannot be written anyway needs no mount of its own. */
static void see_protected(struct keeper_inspection *l)
{
	const struct plan *p = l->start->plan;
	size_t count = 0, mounts = 0;
	char good[80];

	for (uint32_t i = 0; i < p->op_count; i++)
		count += plan_ops(p)[i].kind == PLAN_PROTECT;
	for (size_t i = 0; i < CAGE_LAYER_COUNT; i++)
		mounts += l->start->protects[i].count;
	if (l->joined)
		snprintf(good, sizeof(good), "%zu paths, held in the session's cage", count);
	else
		snprintf(good, sizeof(good), "%zu paths, held by %zu mounts", count, mounts);
	if (count)
		inspection_see(l, PLAN_FS_PROTECT, RECORD_OUTSIDE,
			l->faults.protect[0] ? l->faults.protect : l->faults.project, good);
	else if (plan_promises(p)[PLAN_FS_PROTECT].need != PLAN_NONE)
		inspection_see(l, PLAN_FS_PROTECT, RECORD_UNSEEN, "nothing is held", "");
}

static void see_files(struct keeper_inspection *l, const struct keeper *k)
{
	char root[128] = "";
	const struct keeper_mount_faults *f = &l->faults;

	(void)k;
	snprintf(root, sizeof(root), "%s",
		inspection_is_own(l, KEEPER_NS_MOUNT) ? f->root
						      : "the mount namespace is not the cage's");
	inspection_see(l, PLAN_FS_ROOT, RECORD_OUTSIDE, root, NULL);
	inspection_see(l, PLAN_FS_READS, RECORD_OUTSIDE, root[0] ? root : f->reads, NULL);
	inspection_see(l, PLAN_FS_WRITES, RECORD_OUTSIDE, root[0] ? root : f->writes, NULL);
	inspection_see(l, PLAN_FS_PROJECT, RECORD_OUTSIDE, f->project, NULL);
	inspection_see(l, PLAN_HOME, RECORD_OUTSIDE, root,
		plan_find_from(l->start->plan, PLAN_BIND, PLAN_ROOT_SESSION_HOME)
			? "the session's own"
			: NULL);
	inspection_see(l, PLAN_DEV, RECORD_OUTSIDE, f->dev[0] ? f->dev : root, NULL);
	inspection_see(l, PLAN_PROCESSES, RECORD_OUTSIDE,
		inspection_is_own(l, KEEPER_NS_PID) ? f->proc
						    : "the pid namespace is not the cage's",
		NULL);
	see_protected(l);
}

/* --- who it is --- */

static bool are_all(const uint32_t ids[static 4], uint32_t id)
{
	return ids[0] == id && ids[1] == id && ids[2] == id && ids[3] == id;
}

static void see_ids(struct keeper_inspection *l, const struct keeper *k)
{
	static const char *const sets[] = { "inheritable", "permitted", "effective", "bounding",
		"ambient" };
	const struct keeper_snapshot *v = &l->cage;
	const struct cage_ids *ids = &l->start->ids;
	const struct plan_op *op = plan_find(l->start->plan, PLAN_IDS, NULL);
	char fault[128] = "", good[64];

	(void)k;
	for (int i = 0; i < 5 && !fault[0]; i++)
		if (v->capabilities[i])
			snprintf(fault, sizeof(fault), "its %s capabilities are %" PRIx64, sets[i],
				v->capabilities[i]);
	if (!v->no_new_privileges && !fault[0])
		snprintf(fault, sizeof(fault), "no_new_privs is not set");
	if (!inspection_is_own(l, KEEPER_NS_USER) && !fault[0])
		snprintf(
			fault, sizeof(fault), "the user namespace is %s", owner(l, KEEPER_NS_USER));
	if (!fault[0] &&
		(ids->uid == 0 || !are_all(v->uids, ids->uid) || !are_all(v->gids, ids->gid)))
		snprintf(fault, sizeof(fault), "outside it is user %u and group %u", v->uids[0],
			v->gids[0]);
	if (!fault[0] && (v->uid_map.lines != 1 || v->gid_map.lines != 1 ||
				 v->uid_map.outside != ids->uid || v->gid_map.outside != ids->gid ||
				 v->uid_map.count != 1 || v->gid_map.count != 1 || !op ||
				 v->uid_map.inside != op->n || v->gid_map.inside != op->n))
		snprintf(fault, sizeof(fault), "its id maps are not the planned ones");
	if (ids->is_team)
		snprintf(good, sizeof(good), "user %u and group %u outside, no capabilities",
			ids->uid, ids->gid);
	else
		snprintf(good, sizeof(good), "user %u outside, no capabilities", ids->uid);
	inspection_see(l, PLAN_IDS_UNPRIVILEGED, RECORD_OUTSIDE, fault, good);
}

static void see_groups(struct keeper_inspection *l, const struct keeper *k)
{
	char fault[64] = "";

	(void)k;
	if (l->cage.group_count)
		snprintf(fault, sizeof(fault), "%u supplementary groups", l->cage.group_count);
	else if (l->start->ids.gid == 0)
		snprintf(fault, sizeof(fault), "the own group is root's");
	inspection_see(l, PLAN_GROUPS, RECORD_OUTSIDE, fault, NULL);
}

/* What will be passed to execve, against the plan: every variable is one of its. */
static void see_environment(struct keeper_inspection *l, const struct keeper *k)
{
	const struct plan *p = l->start->plan;
	char fault[128] = "";

	(void)k;
	for (char *const *pair = l->start->environment; *pair && !fault[0]; pair++) {
		size_t n = strcspn(*pair, "=");
		bool is_planned = false;

		for (uint32_t i = 0; i < p->op_count && !is_planned; i++) {
			const struct plan_op *op = &plan_ops(p)[i];
			const char *name = plan_str(p, op->a);

			is_planned = (op->kind == PLAN_ENV || op->kind == PLAN_ENV_PASS) &&
				     strlen(name) == n && memcmp(name, *pair, n) == 0;
		}
		if (!is_planned)
			snprintf(fault, sizeof(fault), "the variable %.*s is not planned",
				n < 64 ? (int)n : 64, *pair);
	}
	inspection_see(l, PLAN_ENVIRONMENT, RECORD_KEEPER, fault, NULL);
}

/* --- what it is held to --- */

static void see_filter(struct keeper_inspection *l, const struct keeper *k)
{
	const struct keeper_snapshot *v = &l->cage;
	char fault[96] = "";

	(void)k;
	if (v->seccomp != 2 || v->filter_count != l->host.filter_count + 1)
		snprintf(fault, sizeof(fault), "seccomp mode %d with %d filters", v->seccomp,
			v->filter_count);
	inspection_see(l, PLAN_SYSTEM_CALLS, RECORD_OUTSIDE, fault, NULL);
}

static void see_landlock(struct keeper_inspection *l, const struct keeper *k)
{
	if (plan_find(l->start->plan, PLAN_LANDLOCK, NULL))
		inspection_see(l, PLAN_LANDLOCKED, RECORD_INSIDE,
			k->is_landlocked ? "" : "the cage did not enter its domain", NULL);
}

/* The first descriptor that is a terminal, but not the cage's own; or NULL. */
static const char *foreign_terminal(const struct keeper_inspection *l, const struct stat *own)
{
	const struct keeper_snapshot *v = &l->cage;

	for (unsigned i = 0; i < v->terminal_count && i < KEEPER_MAX_TERMINALS; i++)
		if (v->terminals[i].device != own->st_dev || v->terminals[i].number != own->st_rdev)
			return v->terminals[i].name;
	return v->terminal_count > KEEPER_MAX_TERMINALS ? "more terminals than streams" : NULL;
}

static void see_terminal(struct keeper_inspection *l, const struct keeper *k)
{
	const struct keeper_terminal *t = &k->terminal;
	bool has_own = t->far >= 0;
	unsigned wanted = l->joined ? WITHOUT_LATCH : DESCRIPTORS;
	struct stat own = { 0 };
	const char *foreign;
	char fault[128] = "";

	if (has_own && fstat(t->far, &own) < 0)
		own = (struct stat){ 0 };
	foreign = foreign_terminal(l, &own);
	if (foreign)
		snprintf(fault, sizeof(fault), "it holds %s", foreign);
	else if (l->cage.session != (int64_t)l->pid ||
		 (uint64_t)l->cage.terminal_number != (has_own ? own.st_rdev : 0))
		snprintf(fault, sizeof(fault), "it is in the operator's session");
	else if (l->cage.descriptor_count != wanted)
		snprintf(fault, sizeof(fault), "it holds %u descriptors, not %u",
			l->cage.descriptor_count, wanted);
	inspection_see(l, PLAN_TTY, RECORD_OUTSIDE, fault,
		has_own ? "a terminal of its own, and no other" : NULL);
}

/* The size of the cage's own file system, as the kernel prints it. */
static void see_disk(struct keeper_inspection *l, const struct plan_op *op)
{
	char wanted[32], inodes[32], fault[128] = "";
	const struct keeper_mount *pool = NULL;

	/* A pool of the cage's size, rounded up to pages. */
	snprintf(wanted, sizeof(wanted), "size=%" PRIu64 "k", (op->n + 4095) / 4096 * 4);
	for (size_t i = 0; i < l->cage.mount_count; i++)
		if (l->mounts.pool && str_eq(l->cage.mounts[i].device, l->mounts.pool))
			pool = &l->cage.mounts[i];
	snprintf(inodes, sizeof(inodes), "nr_inodes=%" PRIu64, plan_inodes(op->n));
	/* Of a cage that stands, file systems of its own are compared with all their options. */
	if (l->joined)
		snprintf(fault, sizeof(fault), "%s", l->faults.root);
	else if (!pool || !keeper_has_option(pool->super, wanted) ||
		 !keeper_has_option(pool->super, inodes))
		snprintf(fault, sizeof(fault), "the cage's file system has %.60s",
			pool ? pool->super : "no quota");
	inspection_see(l, PLAN_LIMITS_DISK, RECORD_OUTSIDE, fault, wanted);
}

static void see_rlimit(
	struct keeper_inspection *l, enum plan_guarantee g, const struct plan_op *op, uint64_t seen)
{
	char fault[64] = "", good[64];

	snprintf(good, sizeof(good), "%" PRIu64, seen);
	if (seen > op->n)
		snprintf(fault, sizeof(fault), "the limit is %" PRIu64, seen);
	inspection_see(l, g, RECORD_OUTSIDE, fault, good);
}

static void see_cgroup(struct keeper_inspection *l, enum plan_guarantee g, const struct plan_op *op)
{
	char fault[128] = "", good[64];

	cgroup_look(l->start->group, keeper_controller_of(l->start->plan, op), l->pid, op->n, fault,
		sizeof(fault));
	snprintf(good, sizeof(good), "%" PRIu64 " in the cage's own %s", op->n,
		plan_str(l->start->plan, op->b));
	inspection_see(l, g, RECORD_OUTSIDE, fault, good);
}

static void see_limits(struct keeper_inspection *l, const struct keeper *k)
{
	const struct plan *p = l->start->plan;

	(void)k;
	for (uint32_t i = 0; i < p->op_count; i++) {
		const struct plan_op *op = &plan_ops(p)[i];
		enum plan_guarantee g;

		if (op->kind != PLAN_LIMIT)
			continue;
		g = plan_guarantee_find(plan_str(p, op->a));
		if (keeper_controller_of(p, op) != CGROUP_COUNT)
			see_cgroup(l, g, op);
		else if (g == PLAN_LIMITS_DISK)
			see_disk(l, op);
		else if (g == PLAN_LIMITS_FILES)
			see_rlimit(l, g, op, l->cage.max_files);
		else if (g == PLAN_LIMITS_PIDS)
			see_rlimit(l, g, op, l->cage.max_processes);
		else if (g == PLAN_LIMITS_TIME)
			inspection_see(l, g, RECORD_KEEPER, "", "the keeper's own clock");
		else if (g == PLAN_LIMITS_OUTPUT)
			inspection_see(l, g, RECORD_KEEPER, "", "the keeper's own count");
	}
}

/* --- the verdict --- */

static int inspection_judge(const struct keeper_inspection *l, struct err *e)
{
	const struct plan_promise *promises = plan_promises(l->start->plan);

	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
		const struct record_observation *o = &l->record->observations[g];

		if (promises[g].need == PLAN_MUST && !(o->vantage != RECORD_UNSEEN && o->holds))
			return err_set(e, ERR_REFUSED, EPERM,
				"cannot start the command: the cage was inspected from outside, "
				"and '%s' does not hold: %s",
				plan_guarantee_defs[g].name,
				o->seen[0] ? o->seen : "nothing was seen of it");
	}
	return 0;
}

/*
 * Who sees each guarantee, one row for each; a function that sees several has them in a row. A
 * guarantee that no row has does not compile, and one that its function leaves out is not seen:
 * then inspection_judge() ends the run.
 */
static const struct {
	enum plan_guarantee guarantee;
	void (*see)(struct keeper_inspection *l, const struct keeper *k);
} observers[] = {
	{ PLAN_FS_ROOT, see_files },
	{ PLAN_FS_READS, see_files },
	{ PLAN_FS_WRITES, see_files },
	{ PLAN_FS_PROJECT, see_files },
	{ PLAN_FS_PROTECT, see_files },
	{ PLAN_HOME, see_files },
	{ PLAN_DEV, see_files },
	{ PLAN_PROCESSES, see_files },
	{ PLAN_ENVIRONMENT, see_environment },
	{ PLAN_IDS_UNPRIVILEGED, see_ids },
	{ PLAN_GROUPS, see_groups },
	{ PLAN_IPC, see_namespaces },
	{ PLAN_UTS, see_namespaces },
	{ PLAN_CGROUP, see_namespaces },
	{ PLAN_TTY, see_terminal },
	{ PLAN_SYSTEM_CALLS, see_filter },
	{ PLAN_LANDLOCKED, see_landlock },
	{ PLAN_NET_NONE, see_network },
	{ PLAN_NET_ALLOWLIST, see_network },
	{ PLAN_LIMITS_MEMORY, see_limits },
	{ PLAN_LIMITS_CPU, see_limits },
	{ PLAN_LIMITS_PIDS, see_limits },
	{ PLAN_LIMITS_DISK, see_limits },
	{ PLAN_LIMITS_TIME, see_limits },
	{ PLAN_LIMITS_OUTPUT, see_limits },
	{ PLAN_LIMITS_FILES, see_limits },
};

static_assert(COUNT_OF(observers) == PLAN_GUARANTEE_COUNT, "every guarantee has an observer");

static void see_all(struct keeper_inspection *l, const struct keeper *k)
{
	for (size_t i = 0; i < COUNT_OF(observers); i++)
		if (i == 0 || observers[i].see != observers[i - 1].see)
			observers[i].see(l, k);
}

static int keeper_inspection_prepare(
	struct keeper_inspection **ret, const struct keeper *k, struct err *e)
{
	const struct cage_start *start = &k->start;
	struct keeper_inspection *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return err_set(e, ERR_SYS, ENOMEM, "cannot inspect the cage: out of memory");
	l->start = start;
	arena_init(&l->arena, KEEPER_MAX_VIEW);
	r = keeper_snapshot_read_own(&l->host, k->own.filter_count, &l->arena, e);
	/* Of a cage that stands they were seen, and are to be the same. */
	if (r == 0 && !start->join)
		r = keeper_mounts_expect(&l->mounts, start, &k->sources, &l->host, &l->arena, e);
	*ret = l;
	return r;
}

/* And what a session brings, once it has. */
static int keeper_inspection_prepare_late(
	struct keeper_inspection *l, const struct keeper_sources *sources, struct err *e)
{
	int r = keeper_mounts_expect_late(&l->mounts, l->start, sources, &l->host, &l->arena, e);

	if (r < 0)
		err_prefix(e, "cannot inspect the cage: something was mounted since it was made");
	return r;
}

/* Finds out what is to be seen; while the cage is being made there is time for that. */
static void keeper_inspection_free(struct keeper_inspection *l)
{
	if (l)
		arena_done(&l->arena);
	free(l);
}

int keeper_inspection_begin(struct keeper_inspection *l, struct keeper *k, struct err *e)
{
	int r = k->engine->inspect(k, &l->cage, &l->arena, e);

	l->joined = &k->joined;
	return r == 0 ? keeper_snapshot_open(&k->joined.again, k->process.pid, e) : r;
}

static void compare_mounts(struct keeper_inspection *l)
{
	struct keeper_mount_faults *f = &l->faults;
	char now[SHA256_HEX_SIZE];

	if (!l->joined) {
		keeper_mounts_compare(&l->mounts, &l->cage, &l->host, f);
		return;
	}
	keeper_join_digest_mounts(&l->cage, now);
	if (str_eq(now, l->joined->mounts))
		return;
	snprintf(f->root, sizeof(f->root), "the mounts are not those that the cage began with");
	snprintf(f->project, sizeof(f->project), "%s", f->root);
}

int keeper_inspection_compare(
	struct keeper_inspection *l, const struct keeper *k, struct record *record, struct err *e)
{
	l->record = record;
	l->pid = k->process.pid;
	compare_mounts(l);
	see_all(l, k);
	return inspection_judge(l, e);
}

/* Compares the cage with the plan, guarantee by guarantee. */
static int keeper_inspection_judge(
	struct keeper_inspection *l, const struct keeper *k, struct record *record, struct err *e)
{
	int r = l->joined ? keeper_snapshot_read_again(&l->cage, &k->joined.again, &l->arena, e)
			  : k->engine->inspect(k, &l->cage, &l->arena, e);

	if (r < 0)
		return r;
	if (!cage_is_broken("look"))
		return keeper_inspection_compare(l, k, record, e);
	keeper_inspection_compare(l, k, record, NULL);
	return 0;
}

/* --- as a part of the keeper --- */

/* While the cage is being made there is time for that. What a session brings may come later. */
static int inspection_prepare(struct keeper *k, struct err *e)
{
	int r = k->mode == KEEPER_WARM ? 0 : keeper_inspection_prepare(&k->inspection, k, e);

	if (r < 0 || k->mode == KEEPER_WARMING || k->mode == KEEPER_JOINING)
		return r;
	return keeper_inspection_prepare_late(k->inspection, &k->sources, e);
}

static int inspection_inspect(struct keeper *k, struct err *e)
{
	return keeper_inspection_judge(k->inspection, k, k->record, e);
}

static void inspection_done(struct keeper *k)
{
	keeper_inspection_free(k->inspection);
}

const struct keeper_part keeper_inspection_part = {
	.take = { [KEEPER_MEANWHILE] = inspection_prepare, [KEEPER_INSPECT] = inspection_inspect },
	.done = inspection_done,
};
