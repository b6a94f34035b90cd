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
 * The first operation that fails is told to the keeper in one sentence, and that is the end of the
 * cage; an operation that may fail is told too, and the walk goes on.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/file.h"
#include "base/str.h"
#include "cage/cage_inside.h"
#include "wire/wire.h"

/*
 * cage_exec - from a finished wall to a running command.
 *
 * Runs as:     the first process, under everything the command will be under.
 * Enters with: the wall standing, and a channel to the keeper.
 * Leaves:      a child that becomes the command; itself replaced by the init, which holds nothing:
 *              no memory of the operator's, no environment, a constant command line.
 * Must not:    let anything of the user's run before the keeper has looked, or while a process
 *              with the operator's memory could be read.
 *
 * The child starts at once, with the preflight, while the keeper looks: that is bawn's own script
 * in the host's own shell. At the latch it waits for the init, which comes after the look; an
 * image's shell is foreign, and waits there too.
 */

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

extern const unsigned char cage_init_program[];
extern const unsigned cage_init_program_size;

struct init_parts {
	int program, counter, latch;
};

/*
 * A program nobody can write to: it has no name, and is sealed. Nor can anybody read it, which
 * makes its process one that cannot be looked into, from its first instruction.
 */
static int init_program(void)
{
	int fd = (int)syscall(SYS_memfd_create, "init", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

	/* Before kernel 6.3 every memfd could be executed. */
	if (fd < 0 && errno == EINVAL)
		fd = (int)syscall(SYS_memfd_create, "init", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -1;
	if (file_write_all(fd, cage_init_program, cage_init_program_size) < 0 ||
		fchmod(fd, 0111) < 0 ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) <
			0) {
		int num = errno;

		close(fd);
		errno = num;
		return -1;
	}
	return fd;
}

#ifdef BAWN_BREAKABLE
/* The test build can stay what it is: an init with the operator's memory in it. */
static noreturn void stay(const struct cage *c, pid_t command)
{
	int status;

	/* As the init does. */
	(void)!write(CAGE_CHANNEL + 2, "", 1);
	status = cage_wait_for(command);

	/* Without a pid namespace that would be the host's. */
	if (getpid() == 1)
		kill(-1, SIGKILL);
	wire_send(c->channel, WIRE_EXITED, status, NULL);
	wire_send(c->channel, WIRE_EMPTY, 0, NULL);
	_exit(0);
}
#else
static noreturn void stay(const struct cage *c, pid_t command)
{
	(void)c;
	(void)command;
	_exit(125);
}
#endif

/*
 * The init finds the keeper at CAGE_CHANNEL and behind it a counter with the command's pid and the
 * latch, which it opens once it stands.
 */
static noreturn void be_init(const struct cage *c, const struct init_parts *parts, pid_t command)
{
	char name[] = "init";
	char *const words[] = { name, NULL }, *const nothing[] = { NULL };
	const int passed[] = { c->channel, parts->counter, parts->latch };
	/* It is never the command itself, and so its own pid says that there is none. */
	uint64_t pid = c->start->stays ? 1 : (uint64_t)command;
	bool is_good = write(parts->counter, &pid, sizeof(pid)) == (ssize_t)sizeof(pid);
	struct err e;

	for (int i = 0; i < 3; i++)
		is_good = is_good && dup2(passed[i], CAGE_CHANNEL + i) >= 0 &&
			  fcntl(CAGE_CHANNEL + i, F_SETFD, 0) == 0;
	if (cage_is_broken("init"))
		stay(c, command);
	if (is_good)
		syscall(SYS_execveat, parts->program, "", words, nothing, AT_EMPTY_PATH);
	err_hint(&e, err_sys(&e, errno, "cannot start the cage's init"), "%s",
		errno == EPERM || errno == ENOSYS
			? "a profile of system calls must allow execveat, signalfd4 and ppoll"
			: "");
	cage_fail(c, &e);
}

/*
 * This process and its child have the operator's memory until they execute, and beside them runs
 * what is not ours: it must not be read.
 */
static void hide_memory(const struct cage *c)
{
	struct err e;

	if (cage_is_broken("init"))
		return;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) {
		err_sys(&e, errno, "cannot hide the cage's first process");
		cage_fail(c, &e);
	}
	/* The command line can be read in any case. */
	memset(c->start->command_line, 0, c->start->command_line_size);
}

/*
 * Nothing stays open but what the command gets, the channel, and the latch, at which the command
 * will wait: the keeper looks at that too.
 */
static void exec_close_the_rest(struct cage *c, int latch[static 2])
{
	struct err e;
	bool is_good = true;

	if (c->channel != CAGE_CHANNEL)
		c->channel = dup3(c->channel, CAGE_CHANNEL, O_CLOEXEC);
	is_good = c->channel == CAGE_CHANNEL;
	if (is_good && !cage_is_broken("descriptors"))
		is_good = syscall(SYS_close_range, CAGE_CHANNEL + 1, ~0U, 0) == 0;
	if (is_good && pipe2(latch, O_CLOEXEC) == 0)
		return;
	err_sys(&e, errno, "cannot close descriptors");
	cage_fail(c, &e);
}

/* Above what the init is given, so that none is in the way of another. */
static int exec_move_up(int fd)
{
	int moved = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, CAGE_CHANNEL + 3);

	if (fd >= 0)
		close(fd);
	return moved;
}

static noreturn void become_init(const struct cage *c, int latch, pid_t command)
{
	struct init_parts parts = { .latch = exec_move_up(latch) };
	struct err e;

	parts.counter = exec_move_up(eventfd(0, EFD_CLOEXEC));
	parts.program = exec_move_up(init_program());
	if (parts.latch < 0 || parts.counter < 0 || parts.program < 0) {
		err_sys(&e, errno, "cannot make the cage's init");
		cage_fail(c, &e);
	}
	/* The command has what it needs, and the init needs nothing. */
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	be_init(c, &parts, command);
}

/* The wall stands: tells the keeper, waits for its word, starts the command, becomes the init. */
static noreturn void cage_run(struct cage *c)
{
	struct wire_message m = { 0 };
	int latch[2];
	pid_t command;
	struct err e;

	/* The keeper will ask it how full it is. */
	if (c->pool >= 0 && wire_send_fd(c->channel, WIRE_DISK, c->pool) < 0)
		_exit(125);
	/* And save this one. */
	if (c->kept >= 0 && wire_send_fd(c->channel, WIRE_KEPT, c->kept) < 0)
		_exit(125);
	exec_close_the_rest(c, latch);
	if (cage_limit_files(c, &e) < 0)
		cage_fail(c, &e);
	/* Without an answer to come there is nothing to wait for. */
	if (wire_send(c->channel, WIRE_READY, c->is_confined, NULL) < 0)
		_exit(125);
	command = cage_fork(c, "the command");
	if (command == 0) {
		close(latch[1]);
		hide_memory(c);
		cage_be_command(c, latch[0]);
	}
	/* The end of the channel is the end of the keeper. */
	if (wire_receive(c->channel, &m, NULL) < 0 || m.kind != WIRE_GO)
		_exit(125);
	if (c->start->times)
		c->start->times->told = clock_ns();
	/* Not earlier: the keeper too would not see through it. */
	hide_memory(c);
	close(latch[0]);
	become_init(c, latch[1], command);
}

/* Operations that are not here are the keeper's, or are gathered by it beforehand. */
static cage_step *const steps[PLAN_OP_KIND_COUNT] = {
	[PLAN_IDS] = cage_take_ids,
	[PLAN_SHARE] = cage_take_share,
	[PLAN_HOSTNAME] = cage_set_hostname,
	[PLAN_OVERLAY] = cage_load_overlay,
	[PLAN_IMAGE] = cage_mount_image,
	[PLAN_TMPFS] = cage_mount_tmpfs,
	[PLAN_DIR] = cage_make_dir,
	[PLAN_BIND] = cage_mount_bind,
	[PLAN_SYMLINK] = cage_make_symlink,
	[PLAN_FILE] = cage_make_file,
	[PLAN_DESCRIBE] = cage_make_description,
	[PLAN_PROC] = cage_mount_proc,
	[PLAN_DEVICE] = cage_mount_device,
	[PLAN_DEVPTS] = cage_mount_devpts,
	[PLAN_GIT] = cage_mount_git,
	[PLAN_PROJECT] = cage_mount_project,
	[PLAN_PART] = cage_mount_part,
	[PLAN_PROTECT] = cage_protect_path,
	[PLAN_ENTER] = cage_enter,
	[PLAN_AWAIT] = cage_await,
	[PLAN_NETWORK] = cage_set_network,
	[PLAN_LIMIT] = cage_set_limit,
	[PLAN_DROP] = cage_drop,
	[PLAN_LANDLOCK] = cage_make_ruleset,
	[PLAN_RULE] = cage_add_rule,
	[PLAN_CONFINE] = cage_confine,
	[PLAN_SYSCALLS] = cage_set_filter,
};

/* In the test build: is the operation one to leave out? */
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

void cage_carry_out(struct cage *c, const struct plan_op *op)
{
	struct cage_times *times = c->start->times;
	uint64_t before = times ? clock_ns() : 0;
	struct err e = { 0 };
	int r;

	if (!steps[op->kind] || is_left_out(c, op))
		return;
	r = steps[op->kind](c, op, &e);
	if (r < 0 && op->need == PLAN_MUST)
		cage_fail(c, &e);
	/* What is left out must be on record, or nothing runs. */
	if (r < 0 && wire_send(c->channel, WIRE_SKIPPED, (int)cage_op_index(c, op), &e) < 0)
		_exit(125);
	if (times)
		times->spent[op->kind] += clock_ns() - before;
}

/*
 * The keeper may be dead already, and then no signal will come: its end of the channel is closed
 * with it, which shows here.
 */
void cage_die_with_keeper(const struct cage *c)
{
	struct pollfd channel = { .fd = c->channel, .events = POLLIN };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		_exit(125);
	if (poll(&channel, 1, 0) < 0 || channel.revents & (POLLHUP | POLLERR))
		_exit(125);
}

/* At once, so that the operator's own are gone before anybody looks. */
void cage_take_standard_descriptors(const struct cage *c)
{
	struct err e;

	for (int fd = 0; fd < 3; fd++) {
		if ((c->start->stdio[fd] == fd || dup2(c->start->stdio[fd], fd) == fd) &&
			fcntl(fd, F_SETFD, 0) == 0)
			continue;
		err_sys(&e, errno, "cannot pass standard input and output");
		cage_fail(c, &e);
	}
}

/* Or whoever opens /dev/tty in the cage would have the operator's terminal. */
void cage_leave_session(const struct cage *c)
{
	struct err e;

	if (cage_is_broken("session") || setsid() >= 0)
		return;
	err_sys(&e, errno, "cannot leave the operator's session");
	cage_fail(c, &e);
}

/*
 * Into the cage's own cgroups, and then a view of them that begins there: a namespace shows what is
 * below the place where it was made.
 */
static void enter_cgroups(const struct cage *c, bool was_born_there)
{
	const struct plan_op *op = plan_find(c->start->plan, PLAN_NAMESPACE, "cgroup");
	struct err e = { 0 };

	if (c->start->group && !cage_is_broken("limits") &&
		cgroup_enter(c->start->group, was_born_there, &e) < 0)
		cage_fail(c, &e);
	if (!op || cage_is_broken("namespace:cgroup") || unshare(CLONE_NEWCGROUP) == 0)
		return;
	err_sys(&e, errno, "cannot make the cage's cgroup namespace");
	cage_fail(c, &e);
}

static noreturn void be_first_process(const struct cage_start *start, bool was_born_there)
{
	struct cage c = cage_begin(start);
	const struct plan_op *ops = plan_ops(start->plan);
	sigset_t none;
	struct err e;

	if (start->times)
		start->times->born = clock_ns();
	/* Or the channel would not end with the keeper. */
	close(start->keepers_end);
	cage_die_with_keeper(&c);
	enter_cgroups(&c, was_born_there);
	/* What the operator's shell left open is not the command's, and not the init's. */
	if (!cage_is_broken("descriptors") &&
		syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC) < 0) {
		err_sys(&e, errno, "cannot mark the operator's descriptors");
		cage_fail(&c, &e);
	}
	cage_take_standard_descriptors(&c);
	cage_leave_session(&c);
	for (int n = 1; n < NSIG; n++)
		signal(n, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	umask(022);
	for (uint32_t i = 0; i < start->plan->op_count; i++) {
		c.at = (int)i;
		cage_carry_out(&c, &ops[i]);
		if (ops[i].kind == PLAN_IDS) {
			cage_die_with_keeper(&c); /* new ids forget the signal */
			if (start->times)
				start->times->mapped = clock_ns();
		}
	}
	c.at = -1;
	cage_die_with_keeper(&c);
	if (start->times)
		start->times->ready = clock_ns();
	cage_run(&c);
}

/* --- a session's trees --- */

static noreturn void be_share(const struct cage_start *start)
{
	struct cage c = cage_begin(start);
	const struct plan_op *ids = plan_find(start->plan, PLAN_IDS, NULL);
	struct err e;

	close(start->keepers_end);
	cage_leave_session(&c);
	umask(022);
	if (ids && cage_take_ids(&c, ids, &e) < 0)
		cage_fail(&c, &e);
	cage_member(&c);
}

/* Between keeper and sharer, so that it is nobody's child; ends at once. */
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

static uint64_t namespace_flag(const char *name)
{
	static const struct {
		const char *name;
		uint64_t flag;
	} namespaces[] = {
		{ "user", CLONE_NEWUSER }, { "mount", CLONE_NEWNS }, { "pid", CLONE_NEWPID },
		{ "net", CLONE_NEWNET }, { "ipc", CLONE_NEWIPC }, { "uts", CLONE_NEWUTS },
		{ "cgroup", 0 }, /* made once the cage is in its place */
	};

	for (size_t i = 0; i < COUNT_OF(namespaces); i++)
		if (str_eq(namespaces[i].name, name))
			return namespaces[i].flag;
	return 0;
}

static uint64_t namespaces_of(const struct plan *p)
{
	const struct plan_op *ops = plan_ops(p);
	uint64_t flags = 0;
	char broken[32];

	for (uint32_t i = 0; i < p->op_count; i++) {
		if (ops[i].kind != PLAN_NAMESPACE)
			continue;
		snprintf(broken, sizeof(broken), "namespace:%s", plan_str(p, ops[i].a));
		if (!cage_is_broken(broken))
			flags |= namespace_flag(plan_str(p, ops[i].a));
	}
	return flags;
}

int cage_spawn(const struct cage_start *start, pid_t *ret_pid, int *ret_pidfd, struct err *e)
{
	int pidfd = -1, group = start->group ? cgroup_clone_fd(start->group) : -1;
	bool was_born_there = group >= 0 && !cage_is_broken("limits");
	struct clone_args args = {
		.flags = namespaces_of(start->plan) | CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	long pid;

	if (was_born_there) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (unsigned)group;
	}
	pid = syscall(SYS_clone3, &args, sizeof(args));
	/* A kernel or a filter without clone3 has clone, which can do the same but for the cgroup.
	 */
	if (pid < 0 && errno == ENOSYS) {
		was_born_there = false;
		pid = syscall(SYS_clone,
			(unsigned long)namespaces_of(start->plan) | CLONE_PIDFD | SIGCHLD, NULL,
			&pidfd, NULL, NULL);
	}
	if (pid < 0)
		return err_sys(e, errno, "cannot make the cage's namespaces");
	if (pid == 0)
		be_first_process(start, was_born_there);
	*ret_pid = (pid_t)pid;
	*ret_pidfd = pidfd;
	return 0;
}
