/*
 * cage_join - a command in the cage of its session, which stands already.
 *
 * Runs as:     the stem, a child of the keeper that enters the cage's namespaces; then the process
 *              that becomes the command, with all capabilities in the cage's user namespace until
 *              it drops them, and none outside.
 * Enters with: the namespaces as descriptors, and the operator's memory.
 * Leaves:      the command, in the cage, as the keeper's child. The stem is gone.
 * Must not:    be looked into by what runs in the cage already, which is hostile.
 *
 * Who enters a namespace of processes is not in it, only his children are. So nobody in the cage
 * sees the stem, and its child is the keeper's by CLONE_PARENT. That one they see from its birth.
 * Yet nobody may look into a process that has capabilities he does not have, and nobody there has
 * any. Before it drops them it becomes undumpable, and then an ordinary user's keeper could not
 * look either: it looks before, and at what changes it looks again, in files that it has open.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/magic.h>
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
#include "base/file.h"
#include "base/own.h"
#include "cage/cage_inside.h"
#include "wire/wire.h"

static struct cage join_begin(const struct cage_start *start)
{
	struct cage c = cage_begin(start);

	c.has_image = plan_find(start->plan, PLAN_IMAGE, NULL) != NULL;
	return c;
}

static noreturn void fail(const struct cage *c, int num, const char *what)
{
	struct err e;

	err_sys(&e, num, "cannot enter the session's cage: %s", what);
	cage_fail(c, &e);
}

/* --- what becomes the command --- */

/* From the cage's own devpts: the place is a mount, which nobody in the cage can move. */
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
		fail(c, devpts < 0 ? -devpts : EINVAL, "its terminals");
	if (cage_take_terminal(c, devpts, &e) < 0)
		cage_fail(c, &e);
}

static void become_ordinary(const struct cage *c)
{
	sigset_t none;

	if (!cage_is_broken("descriptors") &&
		syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		fail(c, errno, "closing descriptors");
	cage_take_standard_descriptors(c);
	cage_leave_session(c);
	for (int n = 1; n < NSIG; n++)
		signal(n, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	umask(022);
}

static void join_close_the_rest(struct cage *c)
{
	if (c->channel != CAGE_CHANNEL)
		c->channel = dup3(c->channel, CAGE_CHANNEL, O_CLOEXEC);
	if (c->channel != CAGE_CHANNEL ||
		(!cage_is_broken("descriptors") &&
			syscall(SYS_close_range, CAGE_CHANNEL + 1, ~0U, 0) < 0))
		fail(c, errno, "closing descriptors");
}

/* The end of the channel is the end of the keeper. */
static void await_word(const struct cage *c)
{
	struct wire_message m = { 0 };

	if (wire_receive(c->channel, &m, NULL) < 0 || m.kind != WIRE_GO)
		_exit(125);
}

/* What a process carries with it; the rest of the plan stands. */
static void join_confine(struct cage *c)
{
	const struct plan *p = c->start->plan;

	for (uint32_t i = 0; i < p->op_count; i++) {
		const struct plan_op *op = &plan_ops(p)[i];

		c->at = (int)i;
		if (op->kind == PLAN_LIMIT || op->kind == PLAN_DROP || op->kind == PLAN_LANDLOCK ||
			op->kind == PLAN_RULE || op->kind == PLAN_CONFINE ||
			op->kind == PLAN_SYSCALLS)
			cage_carry_out(c, op);
	}
	c->at = -1;
}

static noreturn void be_joined(const struct cage_start *start)
{
	struct cage c = join_begin(start);
	struct err e;

	if (start->times)
		start->times->born = start->times->mapped = clock_ns();
	cage_die_with_keeper(&c);
	become_ordinary(&c);
	join_take_terminal(&c);
	join_close_the_rest(&c);
	if (wire_send(c.channel, WIRE_LOOK, 0, NULL) < 0)
		_exit(125);
	await_word(&c);
	if (prctl(PR_SET_DUMPABLE, cage_is_broken("join:hide"), 0, 0, 0) < 0)
		fail(&c, errno, "hiding its memory");
	join_confine(&c);
	join_close_the_rest(&c);
	if (cage_limit_files(&c, &e) < 0)
		cage_fail(&c, &e);
	cage_die_with_keeper(&c);
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
} namespaces[CAGE_NAMESPACES] = {
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

		snprintf(broken, sizeof(broken), "join:%s", namespaces[i].name);
		if (c->start->join->namespaces[i] < 0 || cage_is_broken(broken))
			continue;
		if (setns(c->start->join->namespaces[i], namespaces[i].flag) < 0)
			fail(c, errno, namespaces[i].name);
	}
}

static noreturn void be_stem(const struct cage_start *start, int told)
{
	const struct plan_op *ids = plan_find(start->plan, PLAN_IDS, NULL);
	struct cage c = join_begin(start);
	struct err e;
	pid_t pid;
	int r;

	close(start->keepers_end);
	cage_die_with_keeper(&c);
	if (start->group && !cage_is_broken("limits") && cgroup_enter(start->group, false, &e) < 0)
		cage_fail(&c, &e);
	/* In the cage the command line of its child can be read by anybody. */
	memset(start->command_line, 0, start->command_line_size);
	enter_namespaces(&c);
	r = start->ids.is_given && ids ? cage_become((unsigned)ids->n) : 0;
	if (r < 0)
		fail(&c, -r, "its user");
	pid = (pid_t)syscall(SYS_clone, CLONE_PARENT, NULL, NULL, NULL, NULL);
	if (pid == 0)
		be_joined(start);
	if (pid < 0)
		fail(&c, errno, "its processes");
	_exit(write(told, &pid, sizeof(pid)) == (ssize_t)sizeof(pid) ? 0 : 125);
}

/* --- as the keeper --- */

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
	/* Why not, it has told on the channel. */
	if (n != (ssize_t)sizeof(pid))
		return err_set(e, ERR_SYS, ECHILD, "cannot enter the session's cage");
	*ret_pid = pid;
	*ret_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	return *ret_pidfd < 0 ? err_sys(e, errno, "cannot watch the command") : 0;
}
