/*
 * init - the first process of a cage, once the wall stands.
 *
 * Runs as:     the cage's user, under everything the command is under.
 * Enters with: the command's pid and HOME as its only variables, a constant command line, and two
 *              descriptors: 3 is the channel to the keeper, 4 is the latch at which the command
 *              waits.
 * Leaves:      nothing. The whole cage ends with the command or the keeper. If the pid is 1, there
 *              is no command: it is the cage of a session, which ends when the keeper says so.
 * Must not:    hold a byte of the operator's memory, arguments or environment: it is a program of
 *              its own, without a library.
 *
 * It runs the preflight before it releases the command. It leads the terminal session that the
 * command's group is in, so that the command can be stopped and continued as a shell's job can. It
 * reaps orphans, passes signals to the command, tells the keeper when the command stops and how it
 * ends, and ends itself; the kernel then ends all other processes of the pid namespace.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/call.h"
#include "cage/init/preflight.h"
#include "wire/wire.h"

#define NAP_NS 20000000 /* between two looks whether all have ended */

#define NOBODY 1 /* this process itself is never the command */
#define KEEPER 3
#define GATE   4

static __attribute__((noreturn)) void init_end(int status)
{
	for (;;)
		call(__NR_exit_group, status, 0, 0, 0, 0, 0);
}

/* Not on the stack: compilers clear large locals by memset, which is a library's. */
static struct wire_message message;

static void init_tell(enum wire_kind kind, int n)
{
	message.kind = kind;
	message.n = n;
	call(__NR_write, KEEPER, (long)&message, sizeof(message), 0, 0, 0);
}

/* Reaps everything that is dead; true when the command is among them. */
static int init_reap(int command, int *status)
{
	int is_over = 0, errors = 0;

	for (;;) {
		int one = 0;
		long pid = call(__NR_wait4, -1, (long)&one, WNOHANG | WUNTRACED, 0, 0, 0);

		if (pid == 0 || pid == -ECHILD)
			return is_over;
		/* No other error is known; a new one must not loop for ever. */
		if (pid < 0 && ++errors > 100)
			init_end(125);
		if (pid == command && WIFSTOPPED(one)) {
			init_tell(WIRE_STOPPED, WSTOPSIG(one));
		} else if (pid == command) {
			*status = one;
			is_over = 1;
		}
	}
}

/*
 * A terminal's signals go to the command's whole group, as from a terminal; SIGSTOP and SIGCONT go
 * to the whole cage.
 */
static void send(int command, int number)
{
	int is_terminals = number == SIGINT || number == SIGQUIT || number == SIGHUP ||
			   number == SIGTSTP || number == SIGWINCH;
	int is_for_all = number == SIGSTOP || number == SIGCONT || command == NOBODY;

	if (is_for_all && call(__NR_getpid, 0, 0, 0, 0, 0, 0) == 1) {
		call(__NR_kill, -1, number, 0, 0, 0, 0);
		return;
	}
	/* To the process, as long as it has no group of its own. */
	if (command != NOBODY &&
		(!is_terminals || call(__NR_kill, -command, number, 0, 0, 0, 0) < 0))
		call(__NR_kill, command, number, 0, 0, 0, 0);
}

/* Returns true if the cage shall end with its last process. */
static int pass_signal(int command)
{
	long n = call(__NR_read, KEEPER, (long)&message, sizeof(message), 0, 0, 0);

	if (n == 0)
		init_end(137);
	if (n == sizeof(message) && message.kind == WIRE_SIGNAL && message.n > 0 && message.n < 65)
		send(command, message.n);
	return n == sizeof(message) && command == NOBODY && message.n == SIGTERM;
}

/* A session's commands are not children of this process, so wait4 does not find them. */
static int is_alone(void)
{
	return call(__NR_kill, -1, 0, 0, 0, 0, 0) == -ESRCH;
}

/*
 * Ends with the command everything that it left behind. Two messages, so that the keeper does not
 * wait for ever for a process that hangs in the kernel.
 */
static __attribute__((noreturn)) void init_finish(int status)
{
	int others = 0;

	init_tell(WIRE_EXITED, status);
	/* Without a pid namespace this would kill the host's processes. */
	if (call(__NR_getpid, 0, 0, 0, 0, 0, 0) == 1)
		call(__NR_kill, -1, 9, 0, 0, 0, 0);
	while (call(__NR_wait4, -1, 0, 0, 0, 0, 0) > 0)
		others++;
	init_tell(WIRE_EMPTY, others);
	init_end(0);
}

static void init_watch(int children, int command)
{
	struct pollfd fds[2] = { { .fd = KEEPER, .events = POLLIN },
		{ .fd = children, .events = POLLIN } };
	static char signals[4096];
	int status = 0, is_ending = 0;

	for (;;) {
		struct timespec nap = { .tv_nsec = NAP_NS };

		if (init_reap(command, &status) || (is_ending && is_alone()))
			init_finish(status);
		call(__NR_ppoll, (long)fds, 2, is_ending ? (long)&nap : 0, 0, 0, 0);
		if (fds[0].revents)
			is_ending |= pass_signal(command);
		if (fds[1].revents)
			call(__NR_read, children, (long)signals, sizeof(signals), 0, 0, 0);
	}
}

/* The value of a variable of a new program; they follow its arguments. "" if it is not there. */
static const char *value_of(char **stack, const char *name)
{
	for (char **variable = stack + *(long *)stack + 2; *variable; variable++) {
		const char *at = *variable, *rest = name;

		while (*rest && *at == *rest) {
			at++;
			rest++;
		}
		if (!*rest)
			return at;
	}
	return "";
}

static int number_of(const char *text)
{
	int n = 0;

	for (; *text >= '0' && *text <= '9'; text++)
		n = n * 10 + (*text - '0');
	return n;
}

/* Called by the few instructions below, which the kernel starts. `stack`: as it is at a start. */
__attribute__((noreturn)) void init_main(char **stack);

void init_main(char **stack)
{
	unsigned long child_ends = 1UL << (SIGCHLD - 1);
	int command = number_of(value_of(stack, "COMMAND="));
	enum preflight code;
	long children, blocked;

	call(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0, 0);
	blocked = call(
		__NR_rt_sigprocmask, SIG_BLOCK, (long)&child_ends, 0, sizeof(child_ends), 0, 0);
	children =
		call(__NR_signalfd4, -1, (long)&child_ends, sizeof(child_ends), SFD_CLOEXEC, 0, 0);
	if (blocked < 0 || children < 0 || command == 0)
		init_end(125);
	code = preflight_run(value_of(stack, "HOME="));
	init_tell(WIRE_CHECKED, (int)code);
	if (code != PREFLIGHT_PASSED)
		init_end((int)code);
	/* From here on the command may run: this process stands, and nobody can read it. */
	if (call(__NR_write, GATE, (long)"", 1, 0, 0, 0) != 1)
		init_end(125);
	call(__NR_close, GATE, 0, 0, 0, 0, 0);
	init_watch((int)children, command);
	init_end(125);
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall init_main\n");
#else
__asm__(".globl _start\n_start:\n\tmov x29, #0\n\tmov x0, sp\n\tb init_main\n");
#endif
