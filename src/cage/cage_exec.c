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
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "cage/cage_inside.h"
#include "wire/wire.h"

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

noreturn void cage_run(struct cage *c)
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
