/*
 * keeper_watch - while the cage is made and the command runs: what it says, what it is sent, when
 * it is ended.
 *
 * Runs as:  the keeper.
 * Must not: wait for anything but everything at once; sleep while the
 *           cage goes on, unless the operator stopped both.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "keeper/keeper_inside.h"
#include "wire/wire.h"

#define START_MS      20 /* from a start until it is written down what was seen before it */
#define START_NS      ((uint64_t)START_MS * 1000000)
#define FOREGROUND_NS ((uint64_t)KEEPER_FOREGROUND_MS * 1000000)

/* --- signals and time --- */

static void begin_to_end(struct keeper *k, enum plan_guarantee limit)
{
	if (k->end.limit != PLAN_GUARANTEE_COUNT)
		return;
	k->end.limit = limit;
	keeper_begin_to_stop(k);
}

/* At once: whoever fills the disk would go on while it is asked. */
static void end_for_disk(struct keeper *k)
{
	if (k->end.limit == PLAN_GUARANTEE_COUNT)
		k->end.limit = PLAN_LIMITS_DISK;
	keeper_kill(k);
}

static int hear_clock(struct keeper *k, struct err *e)
{
	uint64_t unused;

	if (read(k->clock.timer, &unused, sizeof(unused)) < 0)
		return 0;
	if (k->state < KEEPER_LET_GO)
		return err_set(e, ERR_REFUSED, ETIMEDOUT,
			"cannot make the cage: something that it opens did not answer within %u s",
			k->clock.ready_ms / 1000);
	k->end.is_hanging = k->state >= KEEPER_EXITED;
	/* How the command ended is known: that is the run's end, and this is said beside it. */
	if (k->end.is_hanging)
		err_set(e, ERR_SYS, ETIMEDOUT,
			"cannot end processes that the command left: they were killed and hang in "
			"the kernel until a system call returns");
	else if (k->end.limit != PLAN_GUARANTEE_COUNT || k->end.is_unwanted)
		keeper_kill(k);
	else
		begin_to_end(k, PLAN_LIMITS_TIME);
	return 0;
}

/* --- what the cage says --- */

/* The end of the channel. In its session's cage a command is on its own once it was started. */
static void watch_hear_end(struct keeper *k)
{
	if (k->mode == KEEPER_JOINING && keeper_has_started(k))
		close(take_fd(&k->process.channel));
	else
		k->end.is_gone = true;
}

/* One message of the cage, which comes in its turn or is none; an error ends the run. */
static int hear_cage(struct keeper *k, struct err *e)
{
	struct keeper_message m = { .fd = -1 };
	int r = wire_receive(k->process.channel, &m.said, &m.fd);

	if (r == -EPIPE) {
		watch_hear_end(k);
		r = 0;
	} else {
		r = r < 0 ? err_sys(e, -r, "cannot read from the cage")
			  : keeper_take_message(k, &m, e);
	}
	if (m.fd >= 0)
		close(m.fd);
	return r;
}

/* --- the loop --- */

/* Nothing more is typed, or nothing more can be shown. */
static bool is_terminal_over(const struct keeper_stdio *s)
{
	return s->is_hung_up || s->is_cut || s->streams[1].failure;
}

/*
 * As when a window is closed, or nothing more may be printed: the terminal is gone, and the
 * foreground is told. The kernel would tell the session's leader, which is the init, and leave the
 * rest to it.
 */
static void hang_up(struct keeper *k)
{
	keeper_stream_close(&k->stdio.streams[0]);
	keeper_stream_close(&k->stdio.streams[1]);
	keeper_terminal_hang_up(&k->terminal);
	keeper_send_signal(k, SIGHUP);
	keeper_send_signal(k, SIGCONT);
}

/* The shorter of two times to wait, of which -1 is for ever. */
static int watch_sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* Those that no kernel holds for us. */
static void watch_limits(struct keeper *k)
{
	if (keeper_ends_for_output(k))
		begin_to_end(k, PLAN_LIMITS_OUTPUT);
	if (keeper_disk_wait(k) >= 0 && keeper_disk_is_over(k))
		end_for_disk(k);
}

/* What is waited for; the last are the standard streams. */
enum {
	CHANNEL,
	SIGNALS,
	TIMER,
	GATE,
	NOTIFY,
	NAMES,
	SHARE,
	RESIDENT,
	JOINED,
	TOLD,
	STDIO,
	ALL = STDIO + 3
};

/* The cage has ended, or never will. */
static bool watch_is_over(const struct keeper *k)
{
	return k->end.is_gone || k->state == KEEPER_ENDED || k->end.is_hanging;
}

static bool is_so_far(const struct keeper *k, enum keeper_until until)
{
	switch (until) {
	case KEEPER_UNTIL_BUILT:
		return k->state >= KEEPER_BUILT && !k->gate.is_awaited;
	case KEEPER_UNTIL_STARTED:
		return keeper_has_started(k) &&
		       (!k->q->is_start_late || clock_ns() - k->clock.started_ns >= START_NS);
	case KEEPER_UNTIL_ENDED:
		break;
	}
	return false;
}

/* For how long to wait until a start is worth being told: most commands are over by then. */
static int start_wait(const struct keeper *k, enum keeper_until until)
{
	return until == KEEPER_UNTIL_STARTED && keeper_has_started(k) ? START_MS : -1;
}

/* Waits for any of it; as poll does. *ret_timeout: for how long the streams want that at most. */
static int watch_wait_for_all(
	struct keeper *k, enum keeper_until until, struct pollfd fds[static ALL], int *ret_timeout)
{
	const int others[STDIO] = {
		[CHANNEL] = k->process.channel,
		[SIGNALS] = k->signals,
		[TIMER] = k->clock.timer,
		[GATE] = k->gate.channel,
		[SHARE] = k->member.connection,
		[RESIDENT] = k->resident.clients,
		[JOINED] = k->mode == KEEPER_JOINING ? k->process.pidfd : -1,
	};
	int wait;

	*ret_timeout = keeper_relay_want(&k->stdio, &k->terminal, fds + STDIO);
	for (int i = 0; i < STDIO; i++)
		fds[i] = (struct pollfd){ .fd = others[i], .events = POLLIN };
	keeper_notify_want(&k->notify, &fds[NOTIFY]);
	keeper_names_want(&k->names, &fds[NAMES]);
	keeper_report_want(&k->reports, &fds[TOLD]);
	wait = watch_sooner(
		watch_sooner(*ret_timeout, start_wait(k, until)), keeper_names_wait(&k->names));
	wait = watch_sooner(wait,
		watch_sooner(keeper_notify_wait(&k->notify), keeper_report_wait(&k->reports)));
	return poll(fds, ALL,
		watch_sooner(wait, watch_sooner(keeper_disk_wait(k), keeper_protect_wait(k))));
}

/* All but the streams, and what the command was denied. */
static int watch_hear(struct keeper *k, const struct pollfd fds[static ALL], struct err *e)
{
	static int (*const hearers[STDIO])(struct keeper *, struct err *) = {
		[CHANNEL] = hear_cage,
		[SIGNALS] = keeper_hear_signal,
		[TIMER] = hear_clock,
		[GATE] = keeper_gate_hear,
		[SHARE] = keeper_member_hear,
	};
	int r = 0;

	for (int i = 0; r == 0 && i < STDIO; i++)
		if (hearers[i] && fds[i].revents)
			r = hearers[i](k, e);
	if (r == 0 && fds[RESIDENT].revents)
		keeper_resident_hear(k);
	/* What it said last comes before its end. */
	if (r == 0 && fds[JOINED].revents && !fds[CHANNEL].revents)
		keeper_join_reap(k);
	return r;
}

int keeper_watch(struct keeper *k, enum keeper_until until, struct err *e)
{
	struct pollfd fds[ALL];
	uint64_t asked_ns = 0; /* whether we are in the foreground */
	int r = 0;

	while (r == 0 && !watch_is_over(k) && !is_so_far(k, until)) {
		int timeout, n;

		/* Nothing of it is worth the command's waiting. */
		if (k->state >= KEEPER_LET_GO)
			keeper_log_write(k);
		n = watch_wait_for_all(k, until, fds, &timeout);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, errno, "cannot wait for the cage");
		if (timeout >= 0 && keeper_has_started(k) &&
			clock_ns() - asked_ns > FOREGROUND_NS) {
			asked_ns = clock_ns();
			r = keeper_come_back(k, e);
		}
		if (r == 0)
			r = watch_hear(k, fds, e);
		/* What the cage says comes first, before what the command prints. */
		if (fds[CHANNEL].revents)
			continue;
		r = r == 0 ? keeper_notify_hear(k, &fds[NOTIFY], e) : r;
		keeper_names_hear(k, &fds[NAMES]);
		if (fds[TOLD].revents)
			keeper_report_hear(k);
		keeper_relay_move(&k->stdio, fds + STDIO);
		if (k->terminal.near >= 0 && is_terminal_over(&k->stdio))
			hang_up(k);
		watch_limits(k);
		keeper_protect_refresh(k);
	}
	return r;
}
