/*
 * keeper_signals - signals: those that the keeper hears, by a descriptor beside that of its clock,
 * those that it sends, and how keeper and command stop and go on as one job of a shell.
 *
 * Runs as: the keeper. What it blocks is taken back in the cage.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/count.h"
#include "keeper/keeper_inside.h"
#include "wire/wire.h"

#define GRACE_MS 5000 /* between the request to end and the end */

static int signals_open_signals(struct keeper *k, struct err *e)
{
	static const int watched[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGTSTP,
		SIGCONT, SIGWINCH };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < COUNT_OF(watched); i++) {
		struct sigaction old;

		/* Who was told to ignore one, as by nohup, does. */
		if (sigaction(watched[i], NULL, &old) < 0 || old.sa_handler != SIG_IGN)
			sigaddset(&set, watched[i]);
	}
	k->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	/* Nor be stopped for touching a terminal from the background, while the cage goes on. */
	sigaddset(&set, SIGTTIN);
	sigaddset(&set, SIGTTOU);
	/* Blocked to the end of the process: a signal at the end must not cost the record. */
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (k->signals < 0)
		return err_sys(e, errno, "cannot receive signals");
	return 0;
}

int keeper_watch_open(struct keeper *k, struct err *e)
{
	k->clock.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (k->clock.timer < 0)
		return err_sys(e, errno, "cannot make a clock");
	return signals_open_signals(k, e);
}

void keeper_set_timer(const struct keeper_clock *c, uint64_t ms)
{
	struct itimerspec when = { .it_value = { .tv_sec = (time_t)(ms / 1000),
					   .tv_nsec = (long)(ms % 1000) * 1000000L } };

	timerfd_settime(c->timer, 0, &when, NULL);
}

/* --- to the command --- */

void keeper_send_signal(const struct keeper *k, int number)
{
	if (k->mode == KEEPER_JOINING) {
		keeper_join_signal(&k->process, number);
		return;
	}
	wire_send(k->process.channel, WIRE_SIGNAL, number, NULL);
}

int keeper_begin_to_stop(struct keeper *k)
{
	keeper_send_signal(k, SIGTERM);
	/* What is stopped would not hear it. */
	keeper_send_signal(k, SIGCONT);
	keeper_set_timer(&k->clock, GRACE_MS);
	return 0;
}

/* --- stopping and going on --- */

void keeper_take_size(struct keeper *k)
{
	unsigned rows = keeper_terminal_resize(&k->terminal);

	if (rows)
		k->stdio.streams[1].filter.state.rows = (uint16_t)rows;
	if (k->stdio.cast && k->terminal.near >= 0)
		keeper_cast_resize(k->stdio.cast, k->terminal.near);
}

static void wake(struct keeper *k)
{
	if (k->job.is_stopped)
		keeper_send_signal(k, SIGCONT);
	k->job.is_stopped = false;
}

int keeper_come_back(struct keeper *k, struct err *e)
{
	int r = keeper_has_started(k) ? keeper_terminal_pass_keys(&k->terminal, e) : 0;

	keeper_take_size(k);
	/* Brought to the foreground with a command that stopped behind our back. */
	if (k->terminal.is_raw)
		wake(k);
	return r;
}

/*
 * The command has stopped, and we do the same, as a job of the operator's shell. All of the cage
 * is stopped first. A process that armed a timer for SIGCONT goes on nevertheless: the wall holds
 * it, and the clock, which is looked at when we come back.
 */
static int signals_stop(struct keeper *k, struct err *e)
{
	sigset_t only;

	keeper_send_signal(k, SIGSTOP);
	keeper_relay_catch_up(&k->stdio);
	keeper_terminal_restore(&k->terminal, false);
	sigemptyset(&only);
	sigaddset(&only, SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &only, NULL);
	/* From a terminal it goes to everyone in the foreground, as if ^Z had been for us. Where
	 * no shell is there to continue us, the kernel does not stop us, and on it goes. */
	kill(k->terminal.near >= 0 ? 0 : getpid(), SIGTSTP);
	sigprocmask(SIG_BLOCK, &only, NULL);
	k->job.is_told_to_stop = false;
	keeper_send_signal(k, SIGCONT);
	return keeper_come_back(k, e);
}

int keeper_take_stop(struct keeper *k, int number, struct err *e)
{
	/* Otherwise nobody would continue us, and a command could put its keeper to sleep. */
	if ((k->job.is_told_to_stop && number == SIGTSTP) || k->terminal.is_raw)
		return signals_stop(k, e);
	k->job.is_stopped = true;
	return 0;
}

/* Before the command runs, a signal is for the keeper; afterwards for the command. */
int keeper_hear_signal(struct keeper *k, struct err *e)
{
	struct signalfd_siginfo got;
	int number;

	if (read(k->signals, &got, sizeof(got)) != (ssize_t)sizeof(got))
		return 0;
	number = (int)got.ssi_signo;
	if (number == SIGCONT)
		return keeper_come_back(k, e);
	if (number == SIGWINCH) {
		keeper_take_size(k);
		return 0;
	}
	/* Whose parent is in another session is stopped by nothing less. */
	if (number == SIGTSTP && k->mode == KEEPER_JOINING && keeper_has_started(k))
		return signals_stop(k, e);
	if (number == SIGTSTP)
		k->job.is_told_to_stop = keeper_has_started(k);
	if (keeper_has_started(k))
		keeper_send_signal(k, number == k->q->kill_signal ? SIGKILL : number);
	/* What is stopped would not hear it. */
	if (number != SIGTSTP)
		wake(k);
	if (keeper_has_started(k) || number == SIGTSTP)
		return 0;
	return err_set(
		e, ERR_SIGNAL, number, "cannot start the command: signal %d stopped it", number);
}
