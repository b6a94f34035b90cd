/*
 * init - the first process of a cage, once the wall stands.
 *
 * Runs as:     the cage's user, under everything the command is under.
 * Enters with: an empty environment, a constant command line, and three descriptors: 3 speaks to
 *              the keeper, 4 holds the command's pid, 5 is the latch the command waits at.
 * Leaves:      nothing. When the command ends, or the keeper does, all of the cage ends. Where 4
 *              holds 1, there is no command: it is the cage of a session, which ends when the
 *              keeper says so.
 * Must not:    know anything. It is a program of its own, without a library, so that no byte of
 *              the operator's memory, arguments or environment is in it.
 *
 * It leads the session that the command's group is in, so that the command can be stopped and
 * continued as a shell's job can. It reaps what is left to it, passes signals on to the command,
 * tells the keeper when the command stops and how it ends, and ends itself; as it is the first
 * process, the kernel then ends all others.
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
#include "wire/wire.h"

#define NAP_NS 20000000 /* between two looks whether all have ended */

#define NOBODY 1 /* this process itself is never the command */
#define KEEPER 3
#define PID    4
#define GATE   5

static __attribute__((noreturn)) void init_end(int status)
{
	for (;;)
		call(__NR_exit_group, status, 0, 0, 0, 0, 0);
}

/* Messages are too large for the stack's taste of a program without a library to clear them. */
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
		/* Nothing else is known to happen; it must not go on for ever. */
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
 * What a terminal sends goes to all of the command's group, as from a terminal; a halt and its end
 * are for the whole cage.
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
	/* Before it leads a group, to itself. */
	if (command != NOBODY &&
		(!is_terminals || call(__NR_kill, -command, number, 0, 0, 0, 0) < 0))
		call(__NR_kill, command, number, 0, 0, 0, 0);
}

/* True when the cage is to end with the last process in it. */
static int pass_signal(int command)
{
	long n = call(__NR_read, KEEPER, (long)&message, sizeof(message), 0, 0, 0);

	if (n == 0)
		init_end(137);
	if (n == sizeof(message) && message.kind == WIRE_SIGNAL && message.n > 0 && message.n < 65)
		send(command, message.n);
	return n == sizeof(message) && command == NOBODY && message.n == SIGTERM;
}

/* Commands of a session are not children of this process: they are looked for. */
static int is_alone(void)
{
	return call(__NR_kill, -1, 0, 0, 0, 0, 0) == -ESRCH;
}

/*
 * The command is over: so is everything it left behind. The keeper hears of both, so that it need
 * not wait for ever for a process that hangs in the kernel.
 */
static __attribute__((noreturn)) void init_finish(int status)
{
	int others = 0;

	init_tell(WIRE_EXITED, status);
	/* As any other process it would mean the host's, or a container's. */
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

/* Called by the few instructions below, which the kernel starts. */
__attribute__((noreturn)) void init_main(void);

void init_main(void)
{
	unsigned long child_ends = 1UL << (SIGCHLD - 1), command = 0;
	long children, blocked;

	call(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0, 0);
	call(__NR_read, PID, (long)&command, sizeof(command), 0, 0, 0);
	call(__NR_close, PID, 0, 0, 0, 0, 0);
	blocked = call(
		__NR_rt_sigprocmask, SIG_BLOCK, (long)&child_ends, 0, sizeof(child_ends), 0, 0);
	children =
		call(__NR_signalfd4, -1, (long)&child_ends, sizeof(child_ends), SFD_CLOEXEC, 0, 0);
	if (blocked < 0 || children < 0 || command == 0)
		init_end(125);
	/* From here on the command may run: this process stands, and cannot be looked into. */
	if (call(__NR_write, GATE, (long)"", 1, 0, 0, 0) != 1)
		init_end(125);
	call(__NR_close, GATE, 0, 0, 0, 0, 0);
	init_watch((int)children, (int)command);
	init_end(125);
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tand $-16, %rsp\n\tcall init_main\n");
#else
__asm__(".globl _start\n_start:\n\tmov x29, #0\n\tb init_main\n");
#endif
