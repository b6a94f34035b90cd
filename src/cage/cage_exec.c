/*
 * cage_exec - from a finished wall to a running command.
 *
 * Runs as:     the first process, under everything the command will be under.
 * Enters with: the wall standing, and a channel to the keeper.
 * Leaves:      the command as its child; itself replaced by the init, which holds nothing: no
 *              memory of the operator's, no environment, a constant command line.
 * Must not:    start anything of the user's before the keeper has looked and said so.
 *
 * The preflight is bawn's own and runs while the keeper looks.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "cage/cage_inside.h"
#include "wire/wire.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

extern const unsigned char cage_init_program[];
extern const unsigned cage_init_program_size;

static noreturn void fail(const struct cage *c, const struct err *e)
{
	wire_send(c->channel, WIRE_FAILED, 0, e);
	_exit(125);
}

static pid_t fork_or_fail(const struct cage *c, const char *what)
{
	/* Not libc's fork: it would run handlers and lock what this process does not have. */
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	struct err e;

	if (pid < 0) {
		err_set(&e, ERR_SYS, errno, "cannot start %s: %s", what, strerror(errno));
		fail(c, &e);
	}
	return pid;
}

/* As first process it is handed everything that is left over; only `pid` is awaited. */
static int wait_for(pid_t pid)
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

static noreturn void be_preflight(const struct cage *c)
{
	char shell[] = "/bin/sh", dash_c[] = "-c", name[] = "preflight";
	char *const words[] = { shell, dash_c, as_word(c->start->preflight), name, NULL };
	int null = file_open("/dev/null", O_RDWR);

	for (int fd = 0; fd < 3; fd++)
		if (dup2(null, fd) < 0)
			_exit(1);
	execve(shell, words, c->start->own_variables);
	_exit(errno == ENOENT ? preflight_ourselves(c) : 1);
}

static pid_t start_preflight(const struct cage *c)
{
	pid_t pid = fork_or_fail(c, "the preflight");

	if (pid == 0)
		be_preflight(c);
	return pid;
}

static void judge_preflight(const struct cage *c, pid_t pid)
{
	int status = wait_for(pid);
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	const char *why = "its shell did not end well";
	struct err e;

	if (code == 0)
		return;
	for (size_t i = 0; i < sizeof(preflight_answers) / sizeof(preflight_answers[0]); i++)
		if (preflight_answers[i].status == code)
			why = preflight_answers[i].meaning;
	err_set(&e, ERR_REFUSED, EPERM, "the preflight in the cage failed: %s (status %d)", why,
		code);
	fail(c, &e);
}

/* --- the command --- */

/* What execve said, as a shell would. */
static noreturn void say_not_started(const struct cage *c, const char *name, int num)
{
	struct err e;

	if (num == ENOENT)
		err_set(&e, ERR_NOT_FOUND, num, "there is no command '%s' in the cage", name);
	else if (num == ESRCH)
		err_set(&e, ERR_NOT_EXEC, num,
			"cannot execute '%s' in the cage: the interpreter it names is not there",
			name);
	else
		err_set(&e, ERR_NOT_EXEC, num, "cannot execute '%s' in the cage: %s", name,
			strerror(num));
	fail(c, &e);
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
	const struct plan *p = c->start->plan;
	char path[CAGE_PATH_SIZE] = "/";
	struct err e;

	for (uint32_t i = 0; i < p->op_count; i++)
		if (plan_ops(p)[i].kind == PLAN_WORKDIR)
			cage_fill_in(c->start, plan_str(p, plan_ops(p)[i].b), path, sizeof(path));
	if (chdir(path) < 0) {
		err_set(&e, ERR_REFUSED, errno,
			"cannot start in '%s', the working directory in the cage: %s", path,
			strerror(errno));
		fail(c, &e);
	}
}

static noreturn void be_startup(const struct cage *c, const char *text)
{
	char shell[] = "/bin/sh", dash_c[] = "-c";
	char *const words[] = { shell, dash_c, as_word(text), NULL };

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
		pid = fork_or_fail(c, "a startup command");
		if (pid == 0)
			be_startup(c, plan_str(p, op->a));
		status = wait_for(pid);
		if (status == 0)
			continue;
		err_set(&e, ERR_REFUSED, ECANCELED, "the startup command '%.200s' ended with %s %d",
			plan_str(p, op->a), WIFSIGNALED(status) ? "signal" : "status",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		fail(c, &e);
	}
}

/* --- becoming the init --- */

/* A program nobody can write to: it has no name, and is sealed. */
static int init_program(void)
{
	int fd = (int)syscall(SYS_memfd_create, "init", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

	/* Before kernel 6.3 every memfd could be executed. */
	if (fd < 0 && errno == EINVAL)
		fd = (int)syscall(SYS_memfd_create, "init", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (file_write_all(fd, cage_init_program, cage_init_program_size) < 0 ||
		fchmod(fd, 0555) < 0 ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) <
			0) {
		int num = errno;

		close(fd);
		return -num;
	}
	return fd;
}

#ifdef BAWN_BREAKABLE
/* The test build can stay what it is: an init with the operator's memory in it. */
static noreturn void stay(const struct cage *c, pid_t command)
{
	int status = wait_for(command);

	kill(-1, SIGKILL);
	wire_send(c->channel, WIRE_EXITED, status, NULL);
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

/* The init finds the keeper at CAGE_CHANNEL, and the command's pid, in a counter, behind it. */
static noreturn void be_init(const struct cage *c, int program, int counter, pid_t command)
{
	char name[] = "init";
	char *const words[] = { name, NULL }, *const nothing[] = { NULL };
	uint64_t pid = (uint64_t)command;
	struct err e;

	if (cage_is_broken("init"))
		stay(c, command);
	if (write(counter, &pid, sizeof(pid)) == (ssize_t)sizeof(pid) &&
		dup2(counter, CAGE_CHANNEL + 1) >= 0 && fcntl(CAGE_CHANNEL, F_SETFD, 0) == 0 &&
		fcntl(CAGE_CHANNEL + 1, F_SETFD, 0) == 0)
		syscall(SYS_execveat, program, "", words, nothing, AT_EMPTY_PATH);
	err_set(&e, ERR_SYS, errno, "cannot start the cage's init: %s", strerror(errno));
	fail(c, &e);
}

static noreturn void start_command(const struct cage *c)
{
	int counter = eventfd(0, EFD_CLOEXEC);
	int program = init_program();
	struct err e;
	pid_t pid;

	if (counter < 0 || program < 0) {
		int num = counter < 0 ? errno : -program;

		err_set(&e, ERR_SYS, num, "cannot make the cage's init: %s", strerror(num));
		fail(c, &e);
	}
	if (c->start->times)
		c->start->times->started = clock_ns();
	wire_send(c->channel, WIRE_STARTED, 0, NULL);
	pid = fork_or_fail(c, "the command");
	if (pid == 0) {
		setsid();
		exec_command(c);
	}
	/* The command has what it needs, and the init needs nothing. */
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	be_init(c, program, counter, pid);
}

/* Nothing stays open but what the command gets, and the channel: the keeper looks at that too. */
static void close_the_rest(struct cage *c)
{
	struct err e;

	if (c->channel != CAGE_CHANNEL)
		c->channel = dup3(c->channel, CAGE_CHANNEL, O_CLOEXEC);
	if (cage_is_broken("descriptors"))
		return;
	if (c->channel < 0 || syscall(SYS_close_range, CAGE_CHANNEL + 1, ~0U, 0) < 0) {
		err_set(&e, ERR_SYS, errno, "cannot close descriptors: %s", strerror(errno));
		fail(c, &e);
	}
}

noreturn void cage_run(struct cage *c)
{
	struct wire_message m = { 0 };
	pid_t preflight = -1;

	close_the_rest(c);
	wire_send(c->channel, WIRE_READY, c->rules >= 0, NULL);
	/* The host's own shell does no harm while the keeper looks; an image's is not known. */
	if (!c->has_image)
		preflight = start_preflight(c);
	/* The end of the channel is the end of the keeper. */
	if (wire_receive(c->channel, &m, NULL) < 0 || m.kind != WIRE_GO)
		_exit(125);
	if (c->start->times)
		c->start->times->told = clock_ns();
	judge_preflight(c, c->has_image ? start_preflight(c) : preflight);
	if (c->start->times)
		c->start->times->checked = clock_ns();
	enter_workdir(c);
	run_startup_commands(c);
	start_command(c);
}
