/*
 * keeper_terminal - the operator's terminal, and the near end of the cage's.
 *
 * Runs as:  the keeper.
 * Leaves:   the operator's terminal with the modes it had, also when the keeper is killed: a second
 *           process stands by for that.
 * Must not: let the operator's terminal into the cage, or be stopped for touching it from the
 *           background.
 *
 * While the command runs, the operator's terminal passes every key as it is, and the cage's own
 * terminal gives the keys their meaning: ^C, ^Z and line editing are the command's.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/own.h"
#include "keeper/keeper_inside.h"

/* Will the command have a terminal? */
static void terminal_choose(struct keeper_terminal *t, enum keeper_tty wish)
{
	*t = (struct keeper_terminal){
		.operators = -1, .shown = -1, .near = -1, .far = -1, .alarm = -1
	};
	t->is_wanted = wish == KEEPER_TTY_ALWAYS ||
		       (wish == KEEPER_TTY_AUTO && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO));
	for (int i = 2; i >= 0 && t->is_wanted; i--)
		if (isatty(i) && tcgetattr(i, &t->before) == 0)
			t->shown = i;
	if (t->shown == STDIN_FILENO)
		t->operators = STDIN_FILENO;
}

/* The operator's TERM, where what the command prints is shown there; or NULL. */
static const char *terminal_type(const struct keeper_terminal *t)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-._";
	const char *term = t->shown >= 0 ? getenv("TERM") : NULL;
	size_t n = term ? strlen(term) : 0;

	return n && n < 64 && strspn(term, letters) == n ? term : NULL;
}

bool keeper_is_in_foreground(int terminal)
{
	pid_t group = tcgetpgrp(terminal);

	return group < 0 || group == getpgrp();
}

/* --- the near end --- */

/* The near end of a terminal is a device with one well-known number. */
static bool is_near_end(int fd)
{
	struct stat st;
	int number;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) &&
	       ioctl(fd, TIOCGPTN, &number) == 0;
}

int keeper_terminal_take(struct keeper_terminal *t, int fd, struct err *e)
{
	if (t->near >= 0 || !t->is_wanted || !is_near_end(fd)) {
		if (fd >= 0)
			close(fd);
		return err_set(e, ERR_SYS, EPROTO,
			"cannot use the cage's terminal: the cage passed something else");
	}
	t->near = fd;
	/* As long as we hold it open ourselves, it does not end when the command closes it. */
	t->far = ioctl(fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (t->far < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ||
		(t->shown >= 0 && tcsetattr(t->far, TCSANOW, &t->before) < 0))
		return err_sys(e, errno, "cannot use the cage's terminal");
	return 0;
}

unsigned keeper_terminal_resize(const struct keeper_terminal *t)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };

	if (t->shown >= 0)
		ioctl(t->shown, TIOCGWINSZ, &size);
	return t->near >= 0 && ioctl(t->near, TIOCSWINSZ, &size) == 0 ? size.ws_row : 0;
}

/* --- the operator's --- */

/*
 * Says that it is there, waits for the keeper's end, and gives the terminal its modes back. Holds
 * nothing else of the keeper's: a channel that stays open would be a cage that goes on.
 */
static noreturn void stand_by(const struct keeper_terminal *t, int alarm)
{
	int terminal = fcntl(t->operators, F_DUPFD, 3);
	int ends = fcntl(alarm, F_DUPFD, 3);
	char byte;

	/* Who kills the keeper's whole group does not mean this one. */
	setsid();
	if (terminal < 0 || ends < 0 || dup2(terminal, 0) < 0 || dup2(ends, 1) < 0 ||
		syscall(SYS_close_range, 2, ~0U, 0) < 0 || write(1, "", 1) != 1)
		_exit(1);
	while (read(1, &byte, 1) < 0 && errno == EINTR)
		;
	tcsetattr(0, TCSANOW, &t->before);
	_exit(0);
}

static int start_standing_by(struct keeper_terminal *t)
{
	sigset_t all, old;
	int ends[2];
	pid_t pid;
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	/* Not for it: ^C of whoever shares the group, or the stop for touching a terminal. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	pid = fork();
	if (pid == 0) {
		close(ends[1]);
		stand_by(t, ends[0]);
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	close(ends[0]);
	if (pid < 0) {
		int r = -errno;

		close(ends[1]);
		return r;
	}
	t->guard = pid;
	t->alarm = ends[1];
	return read(t->alarm, &byte, 1) == 1 ? 0 : -ECHILD;
}

static void end_standing_by(struct keeper_terminal *t)
{
	if (t->guard <= 0)
		return;
	kill(t->guard, SIGKILL);
	while (waitpid(t->guard, NULL, 0) < 0 && errno == EINTR)
		;
	close(t->alarm);
	t->guard = 0;
	t->alarm = -1;
}

/*
 * Taken when they are to be changed: started from the background, we saw those in which a shell
 * reads its lines. The cage's follow unless the command has set its own.
 */
static void take_modes(struct keeper_terminal *t)
{
	struct termios now, far;

	if (tcgetattr(t->operators, &now) < 0)
		return;
	if (tcgetattr(t->far, &far) == 0 && far.c_lflag == t->before.c_lflag &&
		far.c_iflag == t->before.c_iflag && far.c_oflag == t->before.c_oflag)
		tcsetattr(t->far, TCSANOW, &now);
	t->before = now;
}

int keeper_terminal_pass_keys(struct keeper_terminal *t, struct err *e)
{
	struct termios raw;
	int r = 0;

	if (t->near < 0 || t->operators < 0)
		return 0;
	if (!keeper_is_in_foreground(t->operators)) {
		/* Stopped without being asked, and continued behind a shell that has its own. */
		end_standing_by(t);
		t->is_raw = false;
		return 0;
	}
	if (!t->is_raw) {
		take_modes(t);
		r = start_standing_by(t);
	}
	raw = t->before;
	cfmakeraw(&raw);
	/* Also when it should be raw: somebody may have changed it while we were stopped. */
	if (r == 0 && tcsetattr(t->operators, TCSANOW, &raw) < 0)
		r = -errno;
	t->is_raw = r == 0;
	if (r < 0)
		end_standing_by(t);
	/* It is gone, which shows when it is read. */
	if (r == -EIO) {
		t->operators = -1;
		return 0;
	}
	if (r < 0)
		return err_sys(e, -r, "cannot pass the terminal's keys");
	return 0;
}

void keeper_terminal_restore(struct keeper_terminal *t, bool drops_input)
{
	/* From the background it would stop us; and then somebody else has set the modes. */
	if (t->is_raw && keeper_is_in_foreground(t->operators)) {
		if (drops_input)
			tcflush(t->operators, TCIFLUSH);
		/* At once: a terminal that is not read would never have shown all of it. */
		tcsetattr(t->operators, TCSANOW, &t->before);
	}
	end_standing_by(t);
	t->is_raw = false;
}

bool keeper_terminal_is_ready(const struct keeper_terminal *t)
{
	return t->operators < 0 || t->is_raw;
}

void keeper_terminal_hang_up(struct keeper_terminal *t)
{
	if (t->near >= 0)
		close(t->near);
	if (t->far >= 0)
		close(t->far);
	t->near = t->far = -1;
}

static void keeper_terminal_init(struct keeper *k)
{
	terminal_choose(&k->terminal, KEEPER_TTY_NEVER);
}

static int keeper_terminal_open(struct keeper *k, struct err *e)
{
	(void)e;
	terminal_choose(&k->terminal, k->q->tty);
	k->start.term = terminal_type(&k->terminal);
	k->record->has_terminal = k->terminal.is_wanted;
	return 0;
}

static void keeper_terminal_done(struct keeper *k)
{
	keeper_terminal_restore(&k->terminal, false);
	keeper_terminal_hang_up(&k->terminal);
}

const struct keeper_part keeper_terminal_part = {
	.init = keeper_terminal_init,
	.take = { [KEEPER_OPEN] = keeper_terminal_open },
	.done = keeper_terminal_done,
};
