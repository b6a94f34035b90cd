/*
 * cage_command - from a finished wall to a running command.
 *
 * Runs as:     the first process, and its child that becomes the command; both under everything the
 *              command will be under.
 * Enters with: the wall standing, a channel to the keeper, and still the operator's memory. No
 *              process can read that: both are undumpable until they execute, and their command
 *              line is wiped.
 * Leaves:      the startup commands run, the child replaced by the command; the first process
 * replaced by the init, which holds nothing: no memory of the operator's, no variable but HOME, a
 * constant command line. Must not:    let anything of the user's run before the keeper has
 * inspected the cage, or while another process could read the operator's memory.
 *
 * The child starts at once and waits at the latch, a pipe, until the init stands and has run the
 * preflight.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/file.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "cage/cage_inside.h"
#include "cage/init/preflight.h"
#include "wire/wire.h"

noreturn void cage_fail(const struct cage *c, const struct err *e)
{
	wire_send(c->channel, WIRE_FAILED, c->at, e);
	_exit(125);
}

static pid_t fork_child(const struct cage *c, const char *what)
{
	/* libc's fork would run handlers, and take locks of threads that this process lacks. */
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	struct err e;

	if (pid < 0) {
		err_hint(&e, err_sys(&e, errno, "cannot start %s", what), "%s",
			errno == EAGAIN ? "is limits.pids too small?" : "");
		cage_fail(c, &e);
	}
	return pid;
}

/* Returns the wait status of `pid`, and reaps others that end meanwhile. */
static int wait_for_child(pid_t pid)
{
	int status = 0;
	pid_t got;

	do
		got = waitpid(-1, &status, 0);
	while (got != pid && (got > 0 || errno == EINTR));
	return got == pid ? status : -1;
}

static char *const *find_variable(char *const *environment, const char *name)
{
	size_t n = strlen(name);

	for (; *environment; environment++)
		if (strncmp(*environment, name, n) == 0 && (*environment)[n] == '=')
			return environment;
	return NULL;
}

/* The value of a variable; "" if there is none of this name. */
static const char *value_of(char *const *environment, const char *name)
{
	char *const *pair = find_variable(environment, name);

	return pair ? *pair + strlen(name) + 1 : "";
}

/*
 * For a process that the init does not release: the command of a session, in its standing cage. The
 * keeper ends the cage of a preflight that did not pass.
 */
static void run_preflight(const struct cage *c)
{
	enum preflight code = PREFLIGHT_PASSED;

	if (!cage_is_broken("preflight"))
		code = preflight_run(value_of(c->start->environment, "HOME"));
	if (wire_send(c->channel, WIRE_CHECKED, (int)code, NULL) < 0 || code != PREFLIGHT_PASSED)
		_exit(125);
}

/* --- the command --- */

/* Reports the error of execve as a shell would. */
static noreturn void say_not_started(const struct cage *c, const char *name, int num)
{
	struct err e;

	if (num == ENOENT)
		err_set(&e, ERR_NOT_FOUND, num,
			"cannot run '%s': there is no such command in the cage", name);
	else if (num == ESRCH)
		err_set(&e, ERR_NOT_EXEC, num,
			"cannot execute '%s' in the cage: the interpreter it names is not there",
			name);
	else
		err_set(&e, ERR_NOT_EXEC, num, "cannot execute '%s' in the cage: %s", name,
			strerror(num));
	cage_fail(c, &e);
}

/* Executes one candidate. Returns the errno; ESRCH if only its interpreter is missing. */
static int try_exec(const struct cage *c, const char *path)
{
	execve(path, c->start->arguments, c->start->environment);
	if (errno == ENOENT && access(path, F_OK) == 0)
		return ESRCH;
	errno = errno == ENOTDIR ? ENOENT : errno;
	return errno;
}

/* Looks the command up in the cage's own PATH, as a shell does. */
static noreturn void exec_command(const struct cage *c)
{
	const char *name = c->start->arguments[0];
	const char *at = value_of(c->start->environment, "PATH");
	char path[CAGE_PATH_SIZE];
	int worst = ENOENT;

	if (strchr(name, '/') || !*name)
		say_not_started(c, name, *name ? try_exec(c, name) : ENOENT);
	for (;;) {
		size_t n = strcspn(at, ":");
		int num = ENOENT;

		if (snprintf(path, sizeof(path), "%.*s%s%s", (int)n, at, n ? "/" : "", name) <
			(int)sizeof(path))
			num = try_exec(c, path);
		if (num != ENOENT)
			worst = num;
		if (num != ENOENT && num != EACCES)
			break;
		if (!at[n])
			break;
		at += n + 1;
	}
	say_not_started(c, name, worst);
}

static void enter_workdir(const struct cage *c)
{
	const struct plan_op *op = plan_find(c->start->plan, PLAN_WORKDIR, NULL);
	char path[CAGE_PATH_SIZE] = "/";
	bool fits = true;
	struct err e;

	if (op)
		fits = cage_fill_in_place(c->start, op, path, sizeof(path));
	if (!fits || chdir(path) < 0) {
		int num = fits ? errno : ENAMETOOLONG;

		err_set(&e, ERR_REFUSED, num,
			"cannot start in '%s', the working directory in the cage: %s", path,
			strerror(num));
		cage_fail(c, &e);
	}
}

/* execve does not write to its words, and its type does not say so. */
static char *as_word(const char *text)
{
	char *word;

	memcpy(&word, &text, sizeof(word));
	return word;
}

static noreturn void be_startup(const struct cage *c, const char *text)
{
	char shell[] = "/bin/sh", dash_c[] = "-c";
	char *const words[] = { shell, dash_c, as_word(text), NULL };
	int null = file_open("/dev/null", O_RDONLY);

	/* Standard input is for the command only. */
	if (dup2(null, STDIN_FILENO) < 0)
		_exit(126);
	setsid();
	execve(shell, words, c->start->environment);
	_exit(errno == ENOENT ? 127 : 126);
}

/* Each must succeed before the next one starts; their background processes stay. */
static void run_startup_commands(const struct cage *c)
{
	const struct plan *p = c->start->plan;
	struct err e;

	for (uint32_t i = 0; i < p->op_count; i++) {
		const struct plan_op *op = &plan_ops(p)[i];
		pid_t pid;
		int status;

		if (op->kind != PLAN_STARTUP)
			continue;
		pid = fork_child(c, "a startup command");
		if (pid == 0)
			be_startup(c, plan_str(p, op->a));
		status = wait_for_child(pid);
		if (status == 0)
			continue;
		err_set(&e, ERR_REFUSED, ECANCELED,
			"cannot start the command: the startup command '%.200s' ended with %s %d",
			plan_str(p, op->a), WIFSIGNALED(status) ? "signal" : "status",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		cage_fail(c, &e);
	}
}

/*
 * As a shell does for a job: a process group of its own in the init's session, and the terminal's
 * foreground. ^Z can stop it because its parent is in the same session.
 */
static void take_foreground(const struct cage *c)
{
	bool has_terminal = c->start->terminal_streams && !cage_is_broken("session");
	struct err e;
	int r = setpgid(0, 0);

	if (r == 0 && has_terminal) {
		pid_t group = getpid();
		sigset_t stop;

		/* SIGTTOU would stop a background process that takes the terminal. */
		sigemptyset(&stop);
		sigaddset(&stop, SIGTTOU);
		sigprocmask(SIG_BLOCK, &stop, NULL);
		r = ioctl(STDIN_FILENO, TIOCSPGRP, &group);
		sigprocmask(SIG_UNBLOCK, &stop, NULL);
	}
	if (r == 0)
		return;
	err_sys(&e, errno, "cannot give the command its terminal");
	cage_fail(c, &e);
}

static noreturn void be_command(struct cage *c, int latch)
{
	char word;

	/* The init writes one byte after the preflight; EOF without it: the cage has ended. */
	if (read(latch, &word, 1) != 1)
		_exit(125);
	if (c->start->times)
		c->start->times->checked = clock_ns();
	enter_workdir(c);
	run_startup_commands(c);
	if (c->start->times)
		c->start->times->started = clock_ns();
	if (!c->start->stays)
		take_foreground(c);
	if (wire_send(c->channel, WIRE_STARTED, 0, NULL) < 0)
		_exit(125);
	if (c->start->stays)
		_exit(0);
	exec_command(c);
}

noreturn void cage_be_joined(struct cage *c)
{
	run_preflight(c);
	if (c->start->times)
		c->start->times->checked = clock_ns();
	enter_workdir(c);
	if (c->start->times)
		c->start->times->started = clock_ns();
	if (wire_send(c->channel, WIRE_STARTED, 0, NULL) < 0)
		_exit(125);
	exec_command(c);
}

/* --- the init --- */

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

extern const unsigned char cage_init_program[];
extern const unsigned cage_init_program_size;

/*
 * The init as a sealed memfd, so that nobody can write to it. Nobody may read it either: that makes
 * its process undumpable from its first instruction.
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
/* For the test build: an init that still has the operator's memory. */
static noreturn void stay(const struct cage *c, pid_t command)
{
	int status;

	/* As the init does. */
	run_preflight(c);
	(void)!write(CAGE_CHANNEL + 1, "", 1);
	status = wait_for_child(command);

	/* Without a pid namespace this would kill the host's processes. */
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
 * The init has two descriptors from CAGE_CHANNEL on, the channel and the latch, to which it writes
 * once it stands, and two variables: the command's pid and its HOME.
 */
static noreturn void be_init(const struct cage *c, int program, int latch, pid_t command)
{
	char name[] = "init", pid[24];
	char *const words[] = { name, NULL };
	char *const *home = find_variable(c->start->environment, "HOME");
	char *const variables[] = { pid, home ? *home : NULL, NULL };
	struct err e;
	bool is_good;

	/* Its own pid means: no command, because the init never is one. */
	snprintf(pid, sizeof(pid), "COMMAND=%d", c->start->stays ? 1 : command);
	/* In place of the latch's other end. dup2 clears the close-on-exec flag. */
	is_good = dup2(latch, CAGE_CHANNEL + 1) >= 0 && fcntl(CAGE_CHANNEL, F_SETFD, 0) == 0;
	/* The command has the standard streams, and the init needs none. */
	is_good = is_good && syscall(SYS_close_range, 0, 2, 0) == 0;
	if (cage_is_broken("init"))
		stay(c, command);
	if (is_good)
		syscall(SYS_execveat, program, "", words, variables, AT_EMPTY_PATH);
	err_hint(&e, err_sys(&e, errno, "cannot start the cage's init"), "%s",
		errno == EPERM || errno == ENOSYS
			? "a profile of system calls must allow execveat, signalfd4 and ppoll"
			: "");
	cage_fail(c, &e);
}

/*
 * This process and its child have the operator's memory until they execute, and foreign processes
 * may run beside them.
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
	/* Of an undumpable process, too, others can read the command line. */
	memset(c->start->command_line, 0, c->start->command_line_size);
}

/*
 * Closes everything but the command's streams and the channel, and makes the latch. The keeper
 * inspects the open descriptors.
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

static noreturn void become_init(const struct cage *c, int latch, pid_t command)
{
	int program = init_program();
	struct err e;

	if (program < 0) {
		err_sys(&e, errno, "cannot make the cage's init");
		cage_fail(c, &e);
	}
	be_init(c, program, latch, command);
}

noreturn void cage_run(struct cage *c)
{
	struct wire_message m = { 0 };
	int latch[2];
	pid_t command;
	struct err e;

	/* The keeper reads from it how full it is. */
	if (c->pool >= 0 && wire_send_fd(c->channel, WIRE_DISK, c->pool) < 0)
		_exit(125);
	/* The keeper saves this one. */
	if (c->kept >= 0 && wire_send_fd(c->channel, WIRE_KEPT, c->kept) < 0)
		_exit(125);
	exec_close_the_rest(c, latch);
	umask(022);
	if (cage_limit_files(c, &e) < 0)
		cage_fail(c, &e);
	if (wire_send(c->channel, WIRE_READY, c->is_confined, NULL) < 0)
		_exit(125);
	command = fork_child(c, "the command");
	if (command == 0) {
		close(latch[1]);
		hide_memory(c);
		be_command(c, latch[0]);
	}
	/* EOF on the channel: the keeper has ended. */
	if (wire_receive(c->channel, &m, NULL) < 0 || m.kind != WIRE_GO)
		_exit(125);
	if (c->start->times)
		c->start->times->told = clock_ns();
	/* Not earlier: it shuts the keeper's inspection out too. */
	hide_memory(c);
	become_init(c, latch[1], command);
}
