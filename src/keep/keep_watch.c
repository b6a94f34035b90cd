/*
 * keep_watch - while the cage is made and the command runs: what it says, what it is sent, when it
 * is ended.
 *
 * Runs as:  the keeper.
 * Must not: believe the cage out of turn; wait for anything but everything at once; sleep while the
 *           cage goes on, unless the operator stopped both.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "keep/keep_inside.h"
#include "wire/wire.h"

#define START_MS      20 /* from a start until it is written down what was seen before it */
#define FOREGROUND_NS ((uint64_t)KEEP_FOREGROUND_MS * 1000000)

/* --- signals and time --- */

/* The time limit in ms, or 0. */
static uint64_t time_limit(const struct plan *p)
{
	const struct plan_op *op = plan_find(p, PLAN_LIMIT, "limits.time");

	return op ? op->n : 0;
}

static void begin_to_end(struct keeper *k, enum plan_guarantee limit)
{
	if (k->ended_for != PLAN_GUARANTEE_COUNT)
		return;
	k->ended_for = limit;
	keep_begin_to_stop(k);
}

/* At once: whoever fills the disk would go on while it is asked. */
static void end_for_disk(struct keeper *k)
{
	if (k->ended_for == PLAN_GUARANTEE_COUNT)
		k->ended_for = PLAN_LIMITS_DISK;
	keep_kill(k);
}

static int hear_clock(struct keeper *k, struct err *e)
{
	uint64_t unused;

	if (read(k->timer, &unused, sizeof(unused)) < 0)
		return 0;
	if (!k->is_ready)
		return err_set(e, ERR_REFUSED, ETIMEDOUT,
			"cannot make the cage: something that it opens did not answer within %u s",
			k->ready_ms / 1000);
	k->is_hanging = k->has_exited;
	/* How the command ended is known: that is the run's end, and this is said beside it. */
	if (k->is_hanging)
		err_set(e, ERR_SYS, ETIMEDOUT,
			"cannot end processes that the command left: they were killed and hang in "
			"the kernel until a system call returns");
	else if (k->ended_for != PLAN_GUARANTEE_COUNT || k->is_unwanted)
		keep_kill(k);
	else
		begin_to_end(k, PLAN_LIMITS_TIME);
	return 0;
}

/* --- stopping and going on --- */

static void take_size(struct keeper *k)
{
	unsigned rows = keep_terminal_resize(&k->terminal);

	if (rows)
		k->stdio.streams[1].filter.state.rows = (uint16_t)rows;
	if (k->stdio.cast && k->terminal.near >= 0)
		keep_cast_resize(k->stdio.cast, k->terminal.near);
}

static void wake(struct keeper *k)
{
	if (k->is_stopped)
		keep_send_signal(k, SIGCONT);
	k->is_stopped = false;
}

static int come_back(struct keeper *k, struct err *e)
{
	int r = k->is_started ? keep_terminal_pass_keys(&k->terminal, e) : 0;

	take_size(k);
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
static int stop(struct keeper *k, struct err *e)
{
	sigset_t only;

	keep_send_signal(k, SIGSTOP);
	keep_relay_catch_up(&k->stdio);
	keep_terminal_restore(&k->terminal, false);
	sigemptyset(&only);
	sigaddset(&only, SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &only, NULL);
	/* From a terminal it goes to everyone in the foreground, as if ^Z had been for us. Where
	 * no shell is there to continue us, the kernel does not stop us, and on it goes. */
	kill(k->terminal.near >= 0 ? 0 : getpid(), SIGTSTP);
	sigprocmask(SIG_BLOCK, &only, NULL);
	k->is_told_to_stop = false;
	keep_send_signal(k, SIGCONT);
	return come_back(k, e);
}

/* Before the command runs, a signal is for the keeper; afterwards for the command. */
int keep_hear_signal(struct keeper *k, struct err *e)
{
	struct signalfd_siginfo got;
	int number;

	if (read(k->signals, &got, sizeof(got)) != (ssize_t)sizeof(got))
		return 0;
	number = (int)got.ssi_signo;
	if (number == SIGCONT)
		return come_back(k, e);
	if (number == SIGWINCH) {
		take_size(k);
		return 0;
	}
	/* Whose parent is in another session is stopped by nothing less. */
	if (number == SIGTSTP && k->q->is_joining && k->is_started)
		return stop(k, e);
	if (number == SIGTSTP)
		k->is_told_to_stop = k->is_started;
	if (k->is_started)
		keep_send_signal(k, number == k->q->kill_signal ? SIGKILL : number);
	/* What is stopped would not hear it. */
	if (number != SIGTSTP)
		wake(k);
	if (k->is_started || number == SIGTSTP)
		return 0;
	return err_set(
		e, ERR_SIGNAL, number, "cannot start the command: signal %d stopped it", number);
}

/* --- what the cage says --- */

static int look_and_go(struct keeper *k, struct err *e)
{
	int r;

	keep_hold_end(k);
	r = keep_look(k->look, k, k->record, e);

	if (r == 0)
		r = keep_overlay_look(k, e);
	k->has_fault = r < 0;
	if (r == 0)
		r = keep_points_find(k, e);
	if (r == 0 && k->q->is_resident)
		r = keep_resident_open(k, e);
	/* What the host changes from here on has a later time than what the command finds. */
	clock_pass_mark(&k->layer.began);
	/* From here on what runs is the user's: startup commands are part of the time. */
	keep_set_timer(k, k->q->is_resident ? 0 : time_limit(k->start.plan));
	if (r == 0 && wire_send(k->channel, WIRE_GO, 0, NULL) < 0)
		r = err_set(e, ERR_SYS, EPIPE, "cannot start the command: the cage ended before");
	k->is_let_go = r == 0;
	keep_log_look(k);
	keep_names_open(k);
	return r;
}

static void note_start(struct keeper *k)
{
	k->is_started = true;
	k->started_ns = clock_ns();
	keep_say_started(k->q, k->record, k->pid);
	k->is_start_told = !k->q->is_start_late;
	if (k->is_start_told)
		k->q->started(k->q->of);
	if (k->q->is_resident)
		keep_resident_begin(k);
}

/* For how long to wait until the start is worth being told: most commands are over by then. */
static int start_wait(const struct keeper *k)
{
	return k->is_started && !k->is_start_told ? START_MS : -1;
}

static void tell_start(struct keeper *k)
{
	if (start_wait(k) < 0 || clock_ns() - k->started_ns < (uint64_t)START_MS * 1000000)
		return;
	k->is_start_told = true;
	k->q->started(k->q->of);
}

static int take_start(struct keeper *k, struct err *e)
{
	int r;

	note_start(k);
	r = k->terminal.near >= 0 ? keep_stdio_attach(&k->stdio, &k->terminal, true, e) : 0;
	return r == 0 ? keep_terminal_pass_keys(&k->terminal, e) : r;
}

static int take_terminal(struct keeper *k, int fd, struct err *e)
{
	int r = keep_terminal_take(&k->terminal, fd, e);

	if (r == 0)
		take_size(k);
	return r == 0 ? keep_stdio_attach(&k->stdio, &k->terminal, false, e) : r;
}

/* What the cage says went wrong; it always is something. */
static int take_failure(struct keeper *k, const struct wire_message *m, struct err *e)
{
	bool is_known = m->err.kind == ERR_SYS || m->err.kind == ERR_REFUSED ||
			m->err.kind == ERR_NOT_FOUND || m->err.kind == ERR_NOT_EXEC;

	k->has_failed = true;
	if (!is_known || !m->err.text[0] || m->err.num < 0)
		return err_set(e, ERR_SYS, EPROTO, "cannot make the cage: it gave no reason");
	*e = m->err;
	k->record->failed_op = m->n < (int32_t)k->start.plan->op_count ? m->n : -1;
	return -EPROTO;
}

static void take_check(struct keeper *k, const struct wire_message *m)
{
	k->record->is_preflight_passed = true;
	k->record->is_preflight_ours = m->n != 0;
	keep_log_preflight(k);
}

static void take_exit(struct keeper *k, int status)
{
	struct statfs disk;

	k->has_exited = true;
	k->wait_status = status;
	if (k->disk >= 0 && fstatfs(k->disk, &disk) == 0)
		k->is_disk_full = disk.f_bavail == 0 || (disk.f_files && disk.f_ffree == 0);
	keep_set_timer(k, KEEP_REAP_MS);
}

bool keep_hear_last(struct keeper *k, struct err *e)
{
	struct wire_message m = { 0 };
	struct err other;
	int r;

	/* What the keeper was told stands; what it saw may be a cage on its way out. */
	while ((r = wire_receive(k->channel, &m, NULL)) == 0) {
		if (m.kind == WIRE_FAILED)
			take_failure(k, &m, e->kind == ERR_SYS || k->has_fault ? e : &other);
		if (m.kind == WIRE_CHECKED && !k->record->is_preflight_passed)
			take_check(k, &m);
		if (m.kind == WIRE_STARTED && !k->is_started)
			note_start(k);
	}
	return r == -EPIPE;
}

static int take_message(struct keeper *k, const struct wire_message *m, int *fd, struct err *e)
{
	if (m->kind == WIRE_AWAITS && !k->is_built)
		return 0;
	if (m->kind == WIRE_SKIPPED && !k->is_built) {
		if (m->n >= 0 && (uint32_t)m->n < k->start.plan->op_count)
			record_note(k->record, (uint32_t)m->n, m->err.text);
	} else if (m->kind == WIRE_TERMINAL && !k->is_built) {
		return take_terminal(k, take_fd(fd), e);
	} else if (m->kind == WIRE_DISK && !k->is_built && k->disk < 0) {
		k->disk = take_fd(fd);
	} else if (m->kind == WIRE_KEPT && !k->is_built && k->overlay.loaded < 0) {
		k->overlay.loaded = take_fd(fd);
	} else if (m->kind == WIRE_VIEW && !k->is_built) {
		keep_hold_take_view(k, take_fd(fd));
	} else if (m->kind == WIRE_LISTENER && !k->is_built && k->notify.listener < 0) {
		keep_notify_take(k, take_fd(fd));
	} else if (m->kind == WIRE_NAMES && !k->is_built && k->names.socket < 0) {
		k->names.socket = take_fd(fd);
	} else if (m->kind == WIRE_LOOK && k->start.join && !k->is_built) {
		return keep_join_look(k, e);
	} else if (m->kind == WIRE_READY && !k->is_built) {
		k->is_built = true;
		k->is_landlocked = m->n != 0;
		if (k->start.terminal_streams && k->terminal.near < 0)
			return err_set(e, ERR_SYS, EPROTO,
				"cannot use the cage's terminal: the cage did not pass it");
		return 0;
	} else if (m->kind == WIRE_CHECKED && (k->is_built || k->start.is_warm) &&
		   !k->record->is_preflight_passed) {
		take_check(k, m);
	} else if (m->kind == WIRE_STARTED && k->record->is_preflight_passed && !k->is_started) {
		return take_start(k, e);
	} else if (m->kind == WIRE_STOPPED && k->is_started) {
		/* Otherwise nobody would continue us, and a command could put its keeper to sleep.
		 */
		if ((k->is_told_to_stop && m->n == SIGTSTP) || k->terminal.is_raw)
			return stop(k, e);
		k->is_stopped = true;
	} else if (m->kind == WIRE_EXITED && k->is_ready && !k->has_exited) {
		take_exit(k, m->n);
	} else if (m->kind == WIRE_EMPTY && k->has_exited) {
		k->has_ended = true;
		k->others = m->n;
	} else if (m->kind == WIRE_FAILED) {
		return take_failure(k, m, e);
	} else {
		return err_set(e, ERR_SYS, EBADMSG,
			"cannot make the cage: unexpected message %u from it", m->kind);
	}
	return 0;
}

/* One message of the cage, which comes in its turn or is none; an error ends the run. */
static int hear_cage(struct keeper *k, struct err *e)
{
	struct wire_message m = { 0 };
	own_fd int fd = -1;
	int r = wire_receive(k->channel, &m, &fd);

	/* In its session's cage the command is on its own from here on. */
	if (r == -EPIPE && k->q->is_joining && k->is_started) {
		close(k->channel);
		k->channel = -1;
		return 0;
	}
	if (r == -EPIPE) {
		k->is_gone = true;
		return 0;
	}
	if (r < 0)
		return err_sys(e, -r, "cannot read from the cage");
	return take_message(k, &m, &fd, e);
}

/* --- the loop --- */

/* Nothing more is typed, or nothing more can be shown. */
static bool is_terminal_over(const struct keep_stdio *s)
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
	keep_stream_close(&k->stdio.streams[0]);
	keep_stream_close(&k->stdio.streams[1]);
	keep_terminal_hang_up(&k->terminal);
	keep_send_signal(k, SIGHUP);
	keep_send_signal(k, SIGCONT);
}

/* The shorter of two times to wait, of which -1 is for ever. */
static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* Those that no kernel holds for us. */
static void watch_limits(struct keeper *k)
{
	if (keep_ends_for_output(k))
		begin_to_end(k, PLAN_LIMITS_OUTPUT);
	if (keep_disk_wait(k) >= 0 && keep_disk_is_over(k))
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

/* Waits for any of it; as poll does. *ret_timeout: for how long the streams want that at most. */
static int wait_for_all(struct keeper *k, struct pollfd fds[static ALL], int *ret_timeout)
{
	const int others[STDIO] = {
		[CHANNEL] = k->channel,
		[SIGNALS] = k->signals,
		[TIMER] = k->timer,
		[GATE] = k->gate.channel,
		[SHARE] = k->share.connection,
		[RESIDENT] = k->resident.clients,
		[JOINED] = k->q->is_joining ? k->pidfd : -1,
	};
	int wait;

	*ret_timeout = keep_relay_want(&k->stdio, &k->terminal, fds + STDIO);
	for (int i = 0; i < STDIO; i++)
		fds[i] = (struct pollfd){ .fd = others[i], .events = POLLIN };
	keep_notify_want(k, &fds[NOTIFY]);
	keep_names_want(k, &fds[NAMES]);
	keep_told_want(k, &fds[TOLD]);
	wait = sooner(sooner(*ret_timeout, start_wait(k)), keep_names_wait(k));
	wait = sooner(wait, sooner(keep_notify_wait(k), keep_told_wait(k)));
	return poll(fds, ALL, sooner(wait, sooner(keep_disk_wait(k), keep_hold_wait(k))));
}

/* All but the streams, and what the command was denied. */
static int hear(struct keeper *k, const struct pollfd fds[static ALL], struct err *e)
{
	static int (*const hearers[STDIO])(struct keeper *, struct err *) = {
		[CHANNEL] = hear_cage,
		[SIGNALS] = keep_hear_signal,
		[TIMER] = hear_clock,
		[GATE] = keep_gate_hear,
		[SHARE] = keep_share_hear,
	};
	int r = 0;

	for (int i = 0; r == 0 && i < STDIO; i++)
		if (hearers[i] && fds[i].revents)
			r = hearers[i](k, e);
	if (r == 0 && fds[RESIDENT].revents)
		keep_resident_hear(k);
	/* What it said last comes before its end. */
	if (r == 0 && fds[JOINED].revents && !fds[CHANNEL].revents)
		keep_join_reap(k);
	if (r == 0 && k->is_built && !k->is_ready && !k->gate.is_awaited) {
		k->is_ready = true;
		r = look_and_go(k, e);
	}
	return r;
}

int keep_watch(struct keeper *k, struct err *e)
{
	struct pollfd fds[ALL];
	uint64_t asked_ns = 0; /* whether we are in the foreground */
	int r = 0;

	while (r == 0 && !k->is_gone && !k->has_ended && !k->is_hanging) {
		int timeout, n;

		/* Nothing of it is worth the command's waiting. */
		if (k->is_let_go)
			keep_log_write(k);
		n = wait_for_all(k, fds, &timeout);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, errno, "cannot wait for the cage");
		tell_start(k);
		if (timeout >= 0 && k->is_started && clock_ns() - asked_ns > FOREGROUND_NS) {
			asked_ns = clock_ns();
			r = come_back(k, e);
		}
		if (r == 0)
			r = hear(k, fds, e);
		/* What the cage says comes first, before what the command prints. */
		if (fds[CHANNEL].revents)
			continue;
		r = r == 0 ? keep_notify_hear(k, &fds[NOTIFY], e) : r;
		keep_names_hear(k, &fds[NAMES]);
		if (fds[TOLD].revents)
			keep_told_hear(k);
		keep_relay_move(&k->stdio, fds + STDIO);
		if (k->terminal.near >= 0 && is_terminal_over(&k->stdio))
			hang_up(k);
		watch_limits(k);
		keep_hold_refresh(k);
	}
	return r;
}
