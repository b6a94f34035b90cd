/*
 * cage - the first process of a cage: one walk over the plan.
 *
 * Runs as:     a child of the keeper, born into the plan's namespaces; all capabilities in its own
 *              user namespace until the plan drops them, none outside.
 * Enters with: the keeper's memory and descriptors, of which none is left once the command or the
 *              init is executed.
 * Leaves:      the command, and the init as first process.
 * Must not:    parse, choose, fall back, log, allocate; outlive the keeper.
 *
 * A failing MUST operation ends the cage with one sentence to the keeper; a failing MAY operation
 * is reported to the keeper, and the walk goes on.
 *
 * Two other processes start here as well: the command of a session, which enters a cage that stands
 * already, and the workspace holder of a session.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "cage/cage_inside.h"
#include "wire/wire.h"

/* A kind without a step is the keeper's, or the keeper gathers it before the start. */
static cage_step *step_of(uint32_t kind)
{
	static cage_step *const *const tables[] = { cage_ids_steps, cage_place_steps,
		cage_mount_steps, cage_kernel_steps, cage_project_steps, cage_confine_steps };

	for (size_t i = 0; i < COUNT_OF(tables); i++)
		if (tables[i][kind])
			return tables[i][kind];
	return NULL;
}

/* True if the test build is told to leave the operation out. */
static bool is_left_out(const struct cage *c, const struct plan_op *op)
{
	char name[64];

	if (op->kind == PLAN_LANDLOCK || op->kind == PLAN_RULE || op->kind == PLAN_CONFINE)
		return cage_is_broken("landlock");
	if (op->kind == PLAN_SYSCALLS)
		return cage_is_broken("syscalls");
	snprintf(name, sizeof(name), "drop:%s", op->kind == PLAN_DROP ? cage_a(c, op) : "");
	return op->kind == PLAN_DROP && cage_is_broken(name);
}

static void carry_operation_out(struct cage *c, const struct plan_op *op)
{
	struct cage_times *times = c->start->times;
	uint64_t before = times ? clock_ns() : 0;
	struct err e = { 0 };
	cage_step *step = step_of(op->kind);
	int r;

	if (!step || is_left_out(c, op))
		return;
	r = step(c, op, &e);
	if (r < 0 && op->need == PLAN_MUST)
		cage_fail(c, &e);
	/* Without a skipped operation on record nothing may run. */
	if (r < 0 && wire_send(c->channel, WIRE_SKIPPED, (int)cage_op_index(c, op), &e) < 0)
		_exit(125);
	if (times)
		times->spent[op->kind] += clock_ns() - before;
}

/*
 * Ends now if the keeper has ended, and with the keeper from here on. If the keeper is dead
 * already, no signal comes, but its end of the channel is closed.
 */
static void die_with_keeper(const struct cage *c)
{
	struct pollfd channel = { .fd = c->channel, .events = POLLIN };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		_exit(125);
	if (poll(&channel, 1, 0) < 0 || channel.revents & (POLLHUP | POLLERR))
		_exit(125);
}

/* Early: the inspection must not find the operator's own streams. */
static void take_standard_descriptors(const struct cage *c)
{
	struct err e;

	for (int fd = 0; fd < 3; fd++) {
		/* dup2 clears the close-on-exec flag of what it makes. */
		if ((c->start->stdio[fd] == fd ? fcntl(fd, F_SETFD, 0)
					       : dup2(c->start->stdio[fd], fd)) >= 0)
			continue;
		err_sys(&e, errno, "cannot pass standard input and output");
		cage_fail(c, &e);
	}
}

/* Otherwise /dev/tty in the cage would be the operator's terminal. */
static void leave_session(const struct cage *c)
{
	struct err e;

	if (cage_is_broken("session") || setsid() >= 0)
		return;
	err_sys(&e, errno, "cannot leave the operator's session");
	cage_fail(c, &e);
}

/* One of the masks of /proc/PID/status; all signals, if it is not there. */
static uint64_t status_mask(const char *status, const char *name)
{
	const char *at = strstr(status, name);
	uint64_t mask = 0;

	if (!at)
		return ~UINT64_C(0);
	for (at += strlen(name); *at && *at != '\n'; at++)
		mask = mask << 4 | (uint64_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
	return mask;
}

/*
 * Resets every signal that is ignored or handled: bawn's own, and those that the operator's shell
 * had ignored. One look at /proc tells which they are, where asking for each would take 64 calls.
 */
static void reset_signals(void)
{
	char status[4096] __attribute__((uninitialized));
	cage_fd int fd = file_open("/proc/self/status", O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, status, sizeof(status) - 1);
	uint64_t changed;
	sigset_t none;

	status[n < 0 ? 0 : n] = '\0';
	changed = status_mask(status, "\nSigIgn:\t") | status_mask(status, "\nSigCgt:\t");
	for (int number = 1; number < NSIG; number++)
		if (changed >> (number - 1) & 1)
			signal(number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * Enters the cage's cgroups before it makes the cgroup namespace, because the namespace's root is
 * the cgroup in which it is made. Without cgroups of its own it was born into the namespace.
 */
static void enter_cgroups(const struct cage *c, bool was_born_there)
{
	const struct plan_op *op = plan_find(c->start->plan, PLAN_NAMESPACE, "cgroup");
	struct err e = { 0 };

	if (c->start->group && !cage_is_broken("limits") &&
		cgroup_enter(c->start->group, was_born_there, &e) < 0)
		cage_fail(c, &e);
	if (!op || !c->start->group || cage_is_broken("namespace:cgroup") ||
		unshare(CLONE_NEWCGROUP) == 0)
		return;
	err_sys(&e, errno, "cannot make the cage's cgroup namespace");
	cage_fail(c, &e);
}

static noreturn void be_first_process(const struct cage_start *start, bool was_born_there)
{
	struct cage c = cage_begin(start);
	const struct plan_op *ops = plan_ops(start->plan);
	struct err e;

	if (start->times)
		start->times->born = clock_ns();
	/* While a copy is open, the keeper's end brings no EOF. */
	close(start->keepers_end);
	die_with_keeper(&c);
	enter_cgroups(&c, was_born_there);
	/* Descriptors that the operator's shell left open go to neither command nor init. */
	if (!cage_is_broken("descriptors") &&
		syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC) < 0) {
		err_sys(&e, errno, "cannot mark the operator's descriptors");
		cage_fail(&c, &e);
	}
	take_standard_descriptors(&c);
	leave_session(&c);
	reset_signals();
	umask(0); /* what the cage makes has the mode that is planned */
	for (uint32_t i = 0; i < start->plan->op_count; i++) {
		c.at = (int)i;
		carry_operation_out(&c, &ops[i]);
		if (ops[i].kind != PLAN_IDS)
			continue;
		/* A change of ids clears the signal; a map written by this process is none. */
		if (start->ids.is_given || start->ids.is_team)
			die_with_keeper(&c);
		if (start->times)
			start->times->mapped = clock_ns();
	}
	c.at = -1;
	if (start->times)
		start->times->ready = clock_ns();
	cage_run(&c);
}

/* --- a command of a session --- */

/*
 * Enters the cage of its session, which stands already.
 *
 * Runs as:     the stem, a child of the keeper that enters the cage's namespaces; then the process
 *              that becomes the command, with all capabilities in the cage's user namespace until
 *              it drops them, and none outside.
 * Enters with: the namespaces as descriptors, and the operator's memory.
 * Leaves:      the command, in the cage, as the keeper's child. The stem is gone.
 * Must not:    let the processes of the cage, which are hostile, read its memory.
 *
 * setns() into a pid namespace moves only later children. So the cage does not see the stem, and
 * CLONE_PARENT makes the stem's child the keeper's. The cage sees that child from its birth, but
 * ptrace is denied for a process with capabilities that the tracer lacks, and no process of the
 * cage has any. Before the child drops its capabilities it becomes undumpable, which would shut an
 * ordinary user's keeper out too. So the keeper inspects before, and reads what changes once more
 * through files that it has open already.
 */
static noreturn void join_fail(const struct cage *c, int num, const char *what)
{
	struct err e;

	err_sys(&e, num, "cannot enter the session's cage: %s", what);
	cage_fail(c, &e);
}

/* From the cage's own devpts: its place is a mount, which no process of the cage can move. */
static void join_take_terminal(struct cage *c)
{
	const struct plan_op *op = plan_find(c->start->plan, PLAN_DEVPTS, NULL);
	own_fd int devpts = -1;
	struct statfs fs;
	struct err e;

	if (!c->start->terminal_streams)
		return;
	devpts = op ? file_open_real(cage_b(c, op), O_RDONLY | O_DIRECTORY) : -ENOENT;
	if (devpts < 0 || fstatfs(devpts, &fs) < 0 || fs.f_type != DEVPTS_SUPER_MAGIC)
		join_fail(c, devpts < 0 ? -devpts : EINVAL, "its terminals");
	if (cage_take_terminal(c, devpts, &e) < 0)
		cage_fail(c, &e);
}

static void become_ordinary(const struct cage *c)
{
	if (!cage_is_broken("descriptors") &&
		syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		join_fail(c, errno, "closing descriptors");
	take_standard_descriptors(c);
	leave_session(c);
	umask(022);
}

static void join_close_the_rest(struct cage *c)
{
	if (c->channel != CAGE_CHANNEL)
		c->channel = dup3(c->channel, CAGE_CHANNEL, O_CLOEXEC);
	if (c->channel != CAGE_CHANNEL ||
		(!cage_is_broken("descriptors") &&
			syscall(SYS_close_range, CAGE_CHANNEL + 1, ~0U, 0) < 0))
		join_fail(c, errno, "closing descriptors");
}

/* EOF on the channel: the keeper has ended. */
static void await_word(const struct cage *c)
{
	struct wire_message m = { 0 };

	if (wire_receive(c->channel, &m, NULL) < 0 || m.kind != WIRE_GO)
		_exit(125);
}

/* Repeats the operations that a process carries with it; the others stand already. */
static void join_confine(struct cage *c)
{
	const struct plan *p = c->start->plan;

	for (uint32_t i = 0; i < p->op_count; i++) {
		const struct plan_op *op = &plan_ops(p)[i];

		c->at = (int)i;
		if (op->kind == PLAN_LIMIT || op->kind == PLAN_DROP || op->kind == PLAN_LANDLOCK ||
			op->kind == PLAN_RULE || op->kind == PLAN_CONFINE ||
			op->kind == PLAN_SYSCALLS)
			carry_operation_out(c, op);
	}
	c->at = -1;
}

static noreturn void be_joined(const struct cage_start *start)
{
	struct cage c = cage_begin(start);
	struct err e;

	if (start->times)
		start->times->born = start->times->mapped = clock_ns();
	die_with_keeper(&c);
	become_ordinary(&c);
	join_take_terminal(&c);
	join_close_the_rest(&c);
	if (wire_send(c.channel, WIRE_LOOK, 0, NULL) < 0)
		_exit(125);
	await_word(&c);
	if (prctl(PR_SET_DUMPABLE, cage_is_broken("join:hide"), 0, 0, 0) < 0)
		join_fail(&c, errno, "hiding its memory");
	join_confine(&c);
	join_close_the_rest(&c);
	if (cage_limit_files(&c, &e) < 0)
		cage_fail(&c, &e);
	if (start->times)
		start->times->ready = clock_ns();
	if (wire_send(c.channel, WIRE_READY, c.is_confined, NULL) < 0)
		_exit(125);
	await_word(&c);
	if (start->times)
		start->times->told = clock_ns();
	cage_be_joined(&c);
}

/* --- the stem --- */

static const struct {
	int flag;
	const char *name;
} join_namespaces[CAGE_NAMESPACES] = {
	{ CLONE_NEWUSER, "user" },
	{ CLONE_NEWPID, "pid" },
	{ CLONE_NEWNET, "net" },
	{ CLONE_NEWIPC, "ipc" },
	{ CLONE_NEWUTS, "uts" },
	{ CLONE_NEWCGROUP, "cgroup" },
	{ CLONE_NEWNS, "mount" },
};

static void enter_namespaces(const struct cage *c)
{
	for (int i = 0; i < CAGE_NAMESPACES; i++) {
		char broken[32];

		snprintf(broken, sizeof(broken), "join:%s", join_namespaces[i].name);
		if (c->start->join->namespaces[i] < 0 || cage_is_broken(broken))
			continue;
		if (setns(c->start->join->namespaces[i], join_namespaces[i].flag) < 0)
			join_fail(c, errno, join_namespaces[i].name);
	}
}

static noreturn void be_stem(const struct cage_start *start, int told)
{
	const struct plan_op *ids = plan_find(start->plan, PLAN_IDS, NULL);
	struct cage c = cage_begin(start);
	struct err e;
	pid_t pid;
	int r;

	close(start->keepers_end);
	die_with_keeper(&c);
	if (start->group && !cage_is_broken("limits") && cgroup_enter(start->group, false, &e) < 0)
		cage_fail(&c, &e);
	/* Here, where /proc is the host's; its child inherits it. */
	reset_signals();
	/* Every process of the cage can read its child's command line. */
	memset(start->command_line, 0, start->command_line_size);
	enter_namespaces(&c);
	r = start->ids.is_given && ids ? cage_become((unsigned)ids->n) : 0;
	if (r < 0)
		join_fail(&c, -r, "its user");
	pid = (pid_t)syscall(SYS_clone, CLONE_PARENT, NULL, NULL, NULL, NULL);
	if (pid == 0)
		be_joined(start);
	if (pid < 0)
		join_fail(&c, errno, "its processes");
	_exit(write(told, &pid, sizeof(pid)) == (ssize_t)sizeof(pid) ? 0 : 125);
}

/* --- a session's trees --- */

static noreturn void be_share(const struct cage_start *start)
{
	struct cage c = cage_begin(start);
	const struct plan_op *ids = plan_find(start->plan, PLAN_IDS, NULL);

	close(start->keepers_end);
	leave_session(&c);
	umask(022);
	if (ids)
		carry_operation_out(&c, ids);
	cage_member(&c);
}

/* A parent that ends at once, so that the workspace holder is not the keeper's child. */
static noreturn void be_parent(const struct cage_start *start)
{
	const struct plan_op *ids = plan_find(start->plan, PLAN_IDS, NULL);
	pid_t pid = (pid_t)syscall(
		SYS_clone, CLONE_NEWUSER | CLONE_NEWNS | SIGCHLD, NULL, NULL, NULL, NULL);
	struct err e = { 0 };

	if (pid == 0)
		be_share(start);
	if (pid < 0)
		err_sys(&e, errno, "cannot make namespaces for the session");
	else if (start->ids.is_given &&
		 cage_write_maps(pid, &start->ids, ids ? (unsigned)ids->n : 0, &e) == 0)
		wire_send(start->keepers_end, WIRE_MAPPED, 0, NULL);
	if (e.kind != ERR_NONE)
		wire_send(start->channel, WIRE_FAILED, -1, &e);
	if (e.kind != ERR_NONE && pid > 0)
		kill(pid, SIGKILL);
	_exit(0);
}

int cage_spawn_share(const struct cage_start *start, struct err *e)
{
	pid_t parent = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

	if (parent == 0)
		be_parent(start);
	if (parent < 0)
		return err_sys(e, errno, "cannot start a process for the session");
	while (waitpid(parent, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

/* --- as the keeper --- */

static uint64_t namespace_flag(const struct cage_start *start, const char *name)
{
	const struct {
		const char *name;
		uint64_t flag;
	} namespaces[] = {
		{ "user", CLONE_NEWUSER },
		{ "mount", CLONE_NEWNS },
		{ "pid", CLONE_NEWPID },
		{ "net", CLONE_NEWNET },
		{ "ipc", CLONE_NEWIPC },
		{ "uts", CLONE_NEWUTS },
		/* Otherwise enter_cgroups makes it. */
		{ "cgroup", start->group ? 0 : CLONE_NEWCGROUP },
	};

	for (size_t i = 0; i < COUNT_OF(namespaces); i++)
		if (str_eq(namespaces[i].name, name))
			return namespaces[i].flag;
	return 0;
}

static uint64_t namespaces_of(const struct cage_start *start)
{
	const struct plan *p = start->plan;
	const struct plan_op *ops = plan_ops(p);
	uint64_t flags = 0;
	char broken[32];

	for (uint32_t i = 0; i < p->op_count; i++) {
		if (ops[i].kind != PLAN_NAMESPACE)
			continue;
		snprintf(broken, sizeof(broken), "namespace:%s", plan_str(p, ops[i].a));
		if (!cage_is_broken(broken))
			flags |= namespace_flag(start, plan_str(p, ops[i].a));
	}
	return flags;
}

int cage_spawn(const struct cage_start *start, pid_t *ret_pid, int *ret_pidfd, struct err *e)
{
	int pidfd = -1, group = start->group ? cgroup_clone_fd(start->group) : -1;
	bool was_born_there = group >= 0 && !cage_is_broken("limits");
	struct clone_args args = {
		.flags = namespaces_of(start) | CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	long pid;

	if (was_born_there) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (unsigned)group;
	}
	pid = syscall(SYS_clone3, &args, sizeof(args));
	/* Without clone3 (kernel or filter): clone, which cannot place the child in a cgroup. */
	if (pid < 0 && errno == ENOSYS) {
		was_born_there = false;
		pid = syscall(SYS_clone,
			(unsigned long)namespaces_of(start) | CLONE_PIDFD | SIGCHLD, NULL, &pidfd,
			NULL, NULL);
	}
	if (pid < 0)
		return err_sys(e, errno, "cannot make the cage's namespaces");
	if (pid == 0)
		be_first_process(start, was_born_there);
	*ret_pid = (pid_t)pid;
	*ret_pidfd = pidfd;
	return 0;
}

int cage_spawn_join(const struct cage_start *start, pid_t *ret_pid, int *ret_pidfd, struct err *e)
{
	pid_t stem, pid = -1;
	int told[2];
	ssize_t n;

	if (pipe2(told, O_CLOEXEC) < 0)
		return err_sys(e, errno, "cannot make a pipe");
	stem = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (stem == 0)
		be_stem(start, told[1]);
	close(told[1]);
	do
		n = stem < 0 ? 0 : read(told[0], &pid, sizeof(pid));
	while (n < 0 && errno == EINTR);
	close(told[0]);
	while (stem > 0 && waitpid(stem, NULL, 0) < 0 && errno == EINTR)
		;
	/* The stem has sent the reason on the channel. */
	if (n != (ssize_t)sizeof(pid))
		return err_set(e, ERR_SYS, ECHILD, "cannot enter the session's cage");
	*ret_pid = pid;
	*ret_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	return *ret_pidfd < 0 ? err_sys(e, errno, "cannot watch the command") : 0;
}
