/*
 * cage_command - the process that becomes the command.
 *
 * Runs as:     a child of the init, under everything the command will be under.
 * Enters with: the operator's memory, still. Nothing can read it: it is not dumpable until the
 *              command is executed, and its command line is wiped.
 * Leaves:      the preflight passed, the startup commands run, itself replaced by the command.
 * Must not:    start anything of the user's before the init stands.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
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
#include "wire/wire.h"

noreturn void cage_fail(const struct cage *c, const struct err *e)
{
	wire_send(c->channel, WIRE_FAILED, c->at, e);
	_exit(125);
}

pid_t cage_fork(const struct cage *c, const char *what)
{
	/* Not libc's fork: it would run handlers and lock what this process does not have. */
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	struct err e;

	if (pid < 0) {
		err_hint(&e, err_sys(&e, errno, "cannot start %s", what), "%s",
			errno == EAGAIN ? "is limits.pids too small?" : "");
		cage_fail(c, &e);
	}
	return pid;
}

/* Others that end meanwhile are reaped too; only `pid` is awaited. */
int cage_wait_for(pid_t pid)
{
	int status = 0;
	pid_t got;

	do
		got = waitpid(-1, &status, 0);
	while (got != pid && (got > 0 || errno == EINTR));
	return got == pid ? status : -1;
}

/* --- preflight --- */

static const struct {
	int status;
	const char *meaning;
} preflight_answers[] = {
	{ 11, "root in the cage would be root outside" },
	{ 12, "the home is not the cage's own" },
};

static const char *value_of(char *const *environment, const char *name)
{
	size_t n = strlen(name);

	for (; *environment; environment++)
		if (strncmp(*environment, name, n) == 0 && (*environment)[n] == '=')
			return *environment + n + 1;
	return "";
}

/* What the script looks at, for an image that has no shell to run it. */
static int preflight_ourselves(const struct cage *c)
{
	char map[128];
	uint64_t ids[2];
	bool is_root = getuid() == 0 || geteuid() == 0;

	if (file_read_small("/proc/self/uid_map", map, sizeof(map)) <= 0 ||
		!num_scan(map, 10, ids, 2) || (is_root && ids[1] == 0))
		return 11;
	return str_eq(value_of(c->start->own_variables, "HOME"), "/home/agent") ? 0 : 12;
}

/* execve does not write to its words, and its type does not say so. */
static char *as_word(const char *text)
{
	char *word;

	memcpy(&word, &text, sizeof(word));
	return word;
}

#define BY_US 64 /* in the status: there was no shell, and the script's questions were ours */

/* Shares the memory of its parent, which waits until it has executed. */
static int be_preflight(void *of)
{
	const struct cage *c = of;
	char shell[] = "/bin/sh", dash_c[] = "-c", name[] = "preflight";
	char *const words[] = { shell, dash_c, as_word(c->start->preflight), name, NULL };
	int null = file_open("/dev/null", O_RDWR);

	for (int fd = 0; fd < 3; fd++)
		if (dup2(null, fd) < 0)
			return 1;
	/* A cage that waits for its session is not confined yet. */
	if (c->start->is_warm && !c->has_session && cage_confine_check(c) < 0)
		return 1;
	execve(shell, words, c->start->own_variables);
	return errno == ENOENT ? BY_US | preflight_ourselves(c) : 1;
}

static pid_t start_preflight(const struct cage *c)
{
	_Alignas(16) char stack[16384];
	const struct cage *of = c;
	pid_t pid;
	struct err e;
	void *argument;

	memcpy(&argument, &of, sizeof(argument));
	pid = clone(
		be_preflight, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, argument);
	if (pid >= 0)
		return pid;
	err_hint(&e, err_sys(&e, errno, "cannot start the preflight"), "%s",
		errno == EAGAIN ? "is limits.pids too small?" : "");
	cage_fail(c, &e);
}

void cage_preflight(struct cage *c)
{
	int status = cage_wait_for(start_preflight(c));
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	const char *why = "its shell did not end well";
	struct err e;

	if (code == 0 || code == BY_US) {
		if (wire_send(c->channel, WIRE_CHECKED, code == BY_US, NULL) < 0)
			_exit(125);
		c->is_checked = true;
		return;
	}
	if (code > 0)
		code &= ~BY_US;
	for (size_t i = 0; i < COUNT_OF(preflight_answers); i++)
		if (preflight_answers[i].status == code)
			why = preflight_answers[i].meaning;
	err_set(&e, ERR_REFUSED, EPERM,
		"cannot start the command: the preflight in the cage failed: %s (status %d)", why,
		code);
	cage_fail(c, &e);
}

/* --- the command --- */

/* What execve said, as a shell would. */
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

/* Executes one candidate; the errno, ESRCH where only its interpreter is missing. */
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

static noreturn void be_startup(const struct cage *c, const char *text)
{
	char shell[] = "/bin/sh", dash_c[] = "-c";
	char *const words[] = { shell, dash_c, as_word(text), NULL };
	int null = file_open("/dev/null", O_RDONLY);

	/* The input is the command's. */
	if (dup2(null, STDIN_FILENO) < 0)
		_exit(126);
	setsid();
	execve(shell, words, c->start->environment);
	_exit(errno == ENOENT ? 127 : 126);
}

/* Each must end well before the next begins; what they leave running stays. */
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
		pid = cage_fork(c, "a startup command");
		if (pid == 0)
			be_startup(c, plan_str(p, op->a));
		status = cage_wait_for(pid);
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
 * A group of its own in the init's session, and the terminal's foreground: what a shell gives its
 * job. Its parent being in the same session, it can be stopped by ^Z.
 */
static void take_foreground(const struct cage *c)
{
	pid_t group = getpid();
	sigset_t stop;
	struct err e;
	int r = setpgid(0, 0);

	/* Who takes the terminal from the background would be stopped. */
	sigemptyset(&stop);
	sigaddset(&stop, SIGTTOU);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	if (r == 0 && c->start->terminal_streams && !cage_is_broken("session"))
		r = ioctl(STDIN_FILENO, TIOCSPGRP, &group);
	sigprocmask(SIG_UNBLOCK, &stop, NULL);
	if (r == 0)
		return;
	err_sys(&e, errno, "cannot give the command its terminal");
	cage_fail(c, &e);
}

noreturn void cage_be_command(struct cage *c, int latch)
{
	char word;

	if (!c->has_image && !c->is_checked)
		cage_preflight(c);
	/* The init says a word once it stands; the end without one is that of the cage. */
	if (read(latch, &word, 1) != 1)
		_exit(125);
	if (!c->is_checked)
		cage_preflight(c);
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
	cage_preflight(c);
	if (c->start->times)
		c->start->times->checked = clock_ns();
	enter_workdir(c);
	if (c->start->times)
		c->start->times->started = clock_ns();
	if (wire_send(c->channel, WIRE_STARTED, 0, NULL) < 0)
		_exit(125);
	exec_command(c);
}
