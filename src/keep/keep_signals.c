/*
 * keep_signals - signals: those that the keeper hears, by a descriptor beside that of its clock,
 * and those that it sends.
 *
 * Runs as: the keeper. What it blocks is taken back in the cage.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include "base/count.h"
#include "keep/keep_inside.h"
#include "wire/wire.h"

#define GRACE_MS 5000 /* between the request to end and the end */

static int open_signals(struct keeper *k, struct err *e)
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

int keep_watch_open(struct keeper *k, struct err *e)
{
	k->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (k->timer < 0)
		return err_sys(e, errno, "cannot make a clock");
	return open_signals(k, e);
}

void keep_set_timer(const struct keeper *k, uint64_t ms)
{
	struct itimerspec when = { .it_value = { .tv_sec = (time_t)(ms / 1000),
					   .tv_nsec = (long)(ms % 1000) * 1000000L } };

	timerfd_settime(k->timer, 0, &when, NULL);
}

/* --- to the command --- */

void keep_send_signal(const struct keeper *k, int number)
{
	if (k->q->is_joining) {
		keep_join_signal(k, number);
		return;
	}
	wire_send(k->channel, WIRE_SIGNAL, number, NULL);
}

int keep_begin_to_stop(struct keeper *k)
{
	keep_send_signal(k, SIGTERM);
	/* What is stopped would not hear it. */
	keep_send_signal(k, SIGCONT);
	keep_set_timer(k, GRACE_MS);
	return 0;
}
