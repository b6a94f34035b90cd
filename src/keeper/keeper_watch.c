/*
 * keeper_watch - the loop while the cage is made and the command runs: what the cage says, signals
 * of the operator, the clock, and the descriptors of all parts.
 *
 * Runs as:  the keeper. The signals that it blocks are unblocked in the cage.
 * Must not: wait for one thing alone; sleep while the cage goes on, unless the operator stopped
 *           both; believe the cage out of turn. A message that the table does not allow ends the
 *           run.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/own.h"
#include "cage/init/preflight.h"
#include "keeper/engine/keeper_engine.h"
#include "keeper/keeper_inside.h"
#include "wire/wire.h"

/* --- signals --- */

/* They come by a descriptor, beside that of the clock. Keeper and command are one job of a shell.
 */

#define GRACE_MS 5000 /* between the request to end and the end */

/* One file says it of all signals, and how many filters we have, which is needed too. */
static void read_ignored(struct keeper *k)
{
	struct keeper_snapshot v = { 0 };
	char text[16 * 1024] __attribute__((uninitialized));

	if (keeper_snapshot_read_status(&v, text, sizeof(text)) == 0) {
		k->own.ignored = v.ignored;
		k->own.filter_count = v.filter_count;
	}
}

static bool is_ignored(const struct keeper *k, int number)
{
	struct sigaction old;

	if (k->own.filter_count >= 0)
		return k->own.ignored >> (number - 1) & 1;
	return sigaction(number, NULL, &old) == 0 && old.sa_handler == SIG_IGN;
}

static int signals_open(struct keeper *k, struct err *e)
{
	static const int watched[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGTSTP,
		SIGCONT, SIGWINCH };
	sigset_t set;

	read_ignored(k);
	sigemptyset(&set);
	for (size_t i = 0; i < COUNT_OF(watched); i++)
		/* Who was told to ignore one, as by nohup, does. */
		if (!is_ignored(k, watched[i]))
			sigaddset(&set, watched[i]);
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

const struct keeper_part keeper_signals_part = {
	.take = { [KEEPER_PREPARE] = signals_open },
};

void keeper_set_timer(struct keeper_clock *c, uint64_t ms)
{
	c->deadline_ns = ms ? clock_ns() + ms * 1000000 : 0;
}

/* Milliseconds until the deadline, or -1. */
static int clock_wait(const struct keeper_clock *c)
{
	uint64_t now = clock_ns(), left;

	if (!c->deadline_ns)
		return -1;
	left = c->deadline_ns > now ? (c->deadline_ns - now + 999999) / 1000000 : 0;
	return left > INT_MAX ? INT_MAX : (int)left;
}

/* --- to the command --- */

int keeper_begin_to_stop(struct keeper *k)
{
	k->engine->signal(k, SIGTERM);
	/* What is stopped would not hear it. */
	k->engine->signal(k, SIGCONT);
	keeper_set_timer(&k->clock, GRACE_MS);
	return 0;
}

/* --- stopping and going on --- */

#define LATE_STOP_NS ((uint64_t)1000000000) /* a busy machine tells that late of a stop */

/* The operator's window has another size: so has the cage's terminal. */
static void keeper_take_size(struct keeper *k)
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
		k->engine->signal(k, SIGCONT);
	k->job.is_stopped = false;
}

/* The keeper may be in the foreground again: takes the keys and the window's size from there. */
static int keeper_come_back(struct keeper *k, struct err *e)
{
	int r = keeper_has_started(k) ? keeper_terminal_pass_keys(&k->terminal, e) : 0;

	keeper_take_size(k);
	/* Brought to the foreground with a command that stopped behind our back. */
	if (k->terminal.is_raw)
		wake(k);
	return r;
}

/*
 * The caller is the job of the operator's shell: it stops itself, and we wait until it goes on.
 * What it is sent meanwhile the command hears then.
 */
static void caller_stop(struct keeper *k)
{
	struct wire_message m = { 0 };

	if (wire_send(k->q->caller, WIRE_STOPPED, SIGTSTP, NULL) == 0)
		while (wire_receive(k->q->caller, &m, NULL) == 0 && m.n != SIGCONT)
			k->engine->signal(k, m.n);
	k->job.is_told_to_stop = false;
	k->engine->signal(k, SIGCONT);
}

/*
 * The command has stopped, and we do the same, as a job of the operator's shell. All of the cage
 * is stopped first. A process that armed a timer for SIGCONT goes on nevertheless: the wall holds
 * it, and the clock, which is looked at when we come back.
 */
static int signals_stop(struct keeper *k, struct err *e)
{
	sigset_t only;

	k->engine->signal(k, SIGSTOP);
	keeper_relay_catch_up(&k->stdio);
	if (k->q->caller >= 0) {
		caller_stop(k);
		return 0;
	}
	keeper_terminal_restore(&k->terminal, false);
	sigemptyset(&only);
	sigaddset(&only, SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &only, NULL);
	/* From a terminal it goes to everyone in the foreground, as if ^Z had been for us. Where
	 * no shell is there to continue us, the kernel does not stop us, and on it goes. */
	kill(k->terminal.near >= 0 ? 0 : getpid(), SIGTSTP);
	sigprocmask(SIG_BLOCK, &only, NULL);
	k->job.is_told_to_stop = false;
	k->engine->signal(k, SIGCONT);
	return keeper_come_back(k, e);
}

/*
 * Was a signal passed on just now? The command may have stopped before that, which the init had not
 * told yet: the signal waits for it to go on, and nobody else would let it.
 */
static bool has_just_passed(const struct keeper *k)
{
	return k->job.passed_ns && clock_ns() - k->job.passed_ns < LATE_STOP_NS;
}

/* The command was stopped by a signal: if the operator did that, the keeper stops too. */
static int keeper_take_stop(struct keeper *k, int number, struct err *e)
{
	/* Otherwise nobody would continue us, and a command could put its keeper to sleep. */
	if ((k->job.is_told_to_stop && number == SIGTSTP) || k->terminal.is_raw)
		return signals_stop(k, e);
	k->job.is_stopped = true;
	if (has_just_passed(k))
		wake(k);
	return 0;
}

/* Before the command runs, a signal is for the keeper; afterwards for the command. */
static int signals_take(struct keeper *k, int number, struct err *e)
{
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
		k->engine->signal(k, number == k->q->kill_signal ? SIGKILL : number);
	/* What is stopped would not hear it. */
	if (number != SIGTSTP) {
		k->job.passed_ns = clock_ns();
		wake(k);
	}
	if (keeper_has_started(k) || number == SIGTSTP)
		return 0;
	return err_set(
		e, ERR_SIGNAL, number, "cannot start the command: signal %d stopped it", number);
}

int keeper_hear_signal(struct keeper *k, struct err *e)
{
	struct signalfd_siginfo got;

	if (read(k->signals, &got, sizeof(got)) != (ssize_t)sizeof(got))
		return 0;
	return signals_take(k, (int)got.ssi_signo, e);
}

/* --- a caller that is another process --- */

static void caller_want(const struct keeper *k, struct pollfd *ret)
{
	ret->fd = k->job.is_caller_gone ? -1 : k->q->caller;
}

/* It passes its signals on. Its end is that of the command, as that of a keeper would be. */
static int caller_hear(struct keeper *k, const struct pollfd *seen, struct err *e)
{
	struct wire_message m = { 0 };

	(void)seen;
	if (wire_receive(k->q->caller, &m, NULL) == 0 && m.kind == WIRE_SIGNAL)
		return signals_take(k, m.n, e);
	k->job.is_caller_gone = true;
	if (!keeper_has_started(k))
		return err_set(e, ERR_SIGNAL, SIGKILL,
			"cannot start the command: the process that asked for it has ended");
	k->engine->signal(k, SIGKILL);
	return 0;
}

const struct keeper_part keeper_caller_part = {
	.want = caller_want,
	.hear = caller_hear,
};

/* --- what the cage says --- */

/*
 * Until the command is let go, everything that speaks is bawn's own code; from then on a command
 * might have got hold of the channel. So the state of the run decides which messages there can be,
 * and what the cage hands over is taken once.
 */

/* --- while the cage is being made --- */

/* Nothing is to be done: it waits for what a session brings, which is sent in any case. */
static int take_awaits(struct keeper *k, struct keeper_message *m, struct err *e)
{
	(void)k, (void)m, (void)e;
	return 0;
}

static int take_skipped(struct keeper *k, struct keeper_message *m, struct err *e)
{
	(void)e;
	if (m->said.n >= 0 && (uint32_t)m->said.n < k->start.plan->op_count)
		record_note(k->record, (uint32_t)m->said.n, m->said.err.text);
	return 0;
}

static int messages_take_terminal(struct keeper *k, struct keeper_message *m, struct err *e)
{
	int r = keeper_terminal_take(&k->terminal, take_fd(&m->fd), e);

	if (r == 0)
		keeper_take_size(k);
	return r == 0 ? keeper_stdio_attach(&k->stdio, &k->terminal, false, e) : r;
}

static int take_disk(struct keeper *k, struct keeper_message *m, struct err *e)
{
	(void)e;
	k->disk = take_fd(&m->fd);
	return 0;
}

static int take_kept(struct keeper *k, struct keeper_message *m, struct err *e)
{
	(void)e;
	k->overlay.loaded = take_fd(&m->fd);
	return 0;
}

static int take_view(struct keeper *k, struct keeper_message *m, struct err *e)
{
	(void)e;
	keeper_protect_take_view(k, take_fd(&m->fd));
	return 0;
}

static int take_listener(struct keeper *k, struct keeper_message *m, struct err *e)
{
	(void)e;
	k->notify.listener = take_fd(&m->fd);
	return 0;
}

static int take_names(struct keeper *k, struct keeper_message *m, struct err *e)
{
	(void)e;
	k->names.socket = take_fd(&m->fd);
	return 0;
}

static int take_look(struct keeper *k, struct keeper_message *m, struct err *e)
{
	(void)m;
	return keeper_join_look(k, e);
}

static int take_ready(struct keeper *k, struct keeper_message *m, struct err *e)
{
	k->state = KEEPER_BUILT;
	k->is_landlocked = m->said.n != 0;
	if (k->start.terminal_streams && k->terminal.near < 0)
		return err_set(e, ERR_SYS, EPROTO,
			"cannot use the cage's terminal: the cage did not pass it");
	return 0;
}

/* What the cage says went wrong; it always is something. */
static int take_failed(struct keeper *k, struct keeper_message *m, struct err *e)
{
	bool is_known = m->said.err.kind == ERR_SYS || m->said.err.kind == ERR_REFUSED ||
			m->said.err.kind == ERR_NOT_FOUND || m->said.err.kind == ERR_NOT_EXEC;

	k->end.has_failed = true;
	if (!is_known || !m->said.err.text[0] || m->said.err.num < 0)
		return err_set(e, ERR_SYS, EPROTO, "cannot make the cage: it gave no reason");
	*e = m->said.err;
	k->record->failed_op = m->said.n < (int32_t)k->start.plan->op_count ? m->said.n : -1;
	return -EPROTO;
}

/* --- when it stands --- */

static int take_checked(struct keeper *k, struct keeper_message *m, struct err *e)
{
	bool is_root = m->said.n == PREFLIGHT_ROOT;

	/* A session's cage has its init already, so the command's own process does it. */
	k->record->preflight_by = k->mode == KEEPER_JOINING ? "bawn" : "init";
	k->record->is_preflight_passed = m->said.n == PREFLIGHT_PASSED;
	keeper_log_preflight(k);
	if (k->record->is_preflight_passed)
		return 0;
	k->end.has_failed = true;
	if (!is_root && m->said.n != PREFLIGHT_HOME)
		return err_set(e, ERR_SYS, EPROTO,
			"cannot start the command: unexpected code %d of the preflight", m->said.n);
	return err_set(e, ERR_REFUSED, EPERM,
		"cannot start the command: the preflight in the cage failed: %s (status %d)",
		is_root ? "root in the cage would be root outside"
			: "the home is not the cage's own",
		m->said.n);
}

static void note_start(struct keeper *k)
{
	k->clock.started_ns = clock_ns();
	keeper_say_started(k->q, k->record, k->process.pid);
}

static int take_started(struct keeper *k, struct keeper_message *m, struct err *e)
{
	int r;

	(void)m;
	k->state = KEEPER_RUNNING;
	note_start(k);
	r = k->terminal.near >= 0 ? keeper_stdio_attach(&k->stdio, &k->terminal, true, e) : 0;
	return r == 0 ? keeper_terminal_pass_keys(&k->terminal, e) : r;
}

/* --- from the init --- */

static int take_stopped(struct keeper *k, struct keeper_message *m, struct err *e)
{
	return keeper_take_stop(k, m->said.n, e);
}

static int take_exited(struct keeper *k, struct keeper_message *m, struct err *e)
{
	struct statfs disk;

	(void)e;
	k->state = KEEPER_EXITED;
	k->end.wait_status = m->said.n;
	if (k->disk >= 0 && fstatfs(k->disk, &disk) == 0)
		k->end.is_disk_full = disk.f_bavail == 0 || (disk.f_files && disk.f_ffree == 0);
	keeper_set_timer(&k->clock, KEEPER_REAP_MS);
	return 0;
}

static int take_empty(struct keeper *k, struct keeper_message *m, struct err *e)
{
	(void)e;
	k->state = KEEPER_ENDED;
	k->end.others = m->said.n;
	return 0;
}

/* --- the table --- */

#define BIT(n) (1U << (n))

enum {
	MAKING = BIT(KEEPER_MAKING),
	BUILT = BIT(KEEPER_BUILT),
	LET_GO = BIT(KEEPER_LET_GO),
	RUNNING = BIT(KEEPER_RUNNING),
	EXITED = BIT(KEEPER_EXITED),
	ENDED = BIT(KEEPER_ENDED),
	ALWAYS = MAKING | BUILT | LET_GO | RUNNING | EXITED | ENDED,
};

enum {
	ANY_MODE = BIT(KEEPER_MODE_COUNT) - 1,
	JOINING = BIT(KEEPER_JOINING),
};

enum how_often {
	OFTEN,
	ONCE,
};

/* A message that no row allows is refused; no two rows allow the same. */
static const struct keeper_message_rule rules[] = {
	{ WIRE_AWAITS, MAKING, ANY_MODE, OFTEN, 0, take_awaits },
	{ WIRE_SKIPPED, MAKING, ANY_MODE, OFTEN, 0, take_skipped },
	{ WIRE_TERMINAL, MAKING, ANY_MODE, OFTEN, 0, messages_take_terminal },
	{ WIRE_DISK, MAKING, ANY_MODE, ONCE, 0, take_disk },
	{ WIRE_KEPT, MAKING, ANY_MODE, ONCE, 0, take_kept },
	{ WIRE_VIEW, MAKING, ANY_MODE, OFTEN, 0, take_view },
	{ WIRE_LISTENER, MAKING, ANY_MODE, ONCE, 0, take_listener },
	{ WIRE_NAMES, MAKING, ANY_MODE, ONCE, 0, take_names },
	{ WIRE_LOOK, MAKING, JOINING, OFTEN, 0, take_look },
	{ WIRE_READY, MAKING, ANY_MODE, ONCE, 0, take_ready },
	{ WIRE_CHECKED, LET_GO, ANY_MODE, ONCE, 0, take_checked },
	{ WIRE_STARTED, LET_GO, ANY_MODE, ONCE, BIT(WIRE_CHECKED), take_started },
	{ WIRE_STOPPED, RUNNING, ANY_MODE, OFTEN, 0, take_stopped },
	{ WIRE_EXITED, LET_GO | RUNNING, ANY_MODE, ONCE, 0, take_exited },
	{ WIRE_EMPTY, EXITED, ANY_MODE, ONCE, 0, take_empty },
	{ WIRE_FAILED, ALWAYS, ANY_MODE, OFTEN, 0, take_failed },
};

const struct keeper_message_rule *keeper_find_rule(
	uint32_t kind, enum keeper_state state, enum keeper_mode mode, uint32_t heard)
{
	for (size_t i = 0; i < COUNT_OF(rules); i++) {
		const struct keeper_message_rule *rule = &rules[i];

		if (rule->kind == kind && rule->states & BIT(state) && rule->modes & BIT(mode) &&
			!(rule->is_once && heard & BIT(kind)) &&
			(heard & rule->needs) == rule->needs)
			return rule;
	}
	return NULL;
}

int keeper_take_message(struct keeper *k, struct keeper_message *m, struct err *e)
{
	const struct keeper_message_rule *rule =
		keeper_find_rule(m->said.kind, k->state, k->mode, k->heard);

	if (!rule)
		return err_set(e, ERR_SYS, EBADMSG,
			"cannot make the cage: unexpected message %u from it", m->said.kind);
	k->heard |= BIT(m->said.kind);
	return rule->take(k, m, e);
}

bool keeper_hear_last(struct keeper *k, struct err *e)
{
	struct keeper_message m = { .fd = -1 };
	struct err other;
	int r;

	/* What the keeper was told stands; what it saw may be a cage on its way out. */
	while ((r = wire_receive(k->process.channel, &m.said, NULL)) == 0) {
		if (m.said.kind == WIRE_FAILED)
			take_failed(k, &m, e->kind == ERR_SYS || k->end.has_fault ? e : &other);
		if (m.said.kind == WIRE_CHECKED && !k->record->preflight_by)
			take_checked(k, &m, e->kind == ERR_SYS || k->end.has_fault ? e : &other);
		if (m.said.kind == WIRE_STARTED && !keeper_has_started(k))
			note_start(k);
	}
	return r == -EPIPE;
}

#define START_MS      20 /* from a start until it is written down what was seen before it */
#define START_NS      ((uint64_t)START_MS * 1000000)
#define FOREGROUND_NS ((uint64_t)KEEPER_FOREGROUND_MS * 1000000)

/* --- signals and time --- */

void keeper_end_for(struct keeper *k, enum plan_guarantee limit)
{
	if (k->end.limit != PLAN_GUARANTEE_COUNT)
		return;
	k->end.limit = limit;
	keeper_begin_to_stop(k);
}

/* Is the time of what goes on over? */
static int hear_clock(struct keeper *k, struct err *e)
{
	if (!k->clock.deadline_ns || clock_ns() < k->clock.deadline_ns)
		return 0;
	k->clock.deadline_ns = 0;
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
		k->engine->kill(k);
	else
		keeper_end_for(k, PLAN_LIMITS_TIME);
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
	k->engine->signal(k, SIGHUP);
	k->engine->signal(k, SIGCONT);
}

/* The shorter of two times to wait, of which -1 is for ever. */
static int watch_sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* What is waited for: the parts in their order, and last the standard streams. */
enum {
	CHANNEL,
	SIGNALS,
	PARTS,
	STDIO = PARTS + KEEPER_PARTS,
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
	const int own[PARTS] = { k->process.channel, k->signals };
	int wait = watch_sooner(start_wait(k, until), clock_wait(&k->clock));

	*ret_timeout = keeper_relay_want(&k->stdio, &k->terminal, fds + STDIO);
	wait = watch_sooner(*ret_timeout, wait);
	for (int i = 0; i < STDIO; i++)
		fds[i] = (struct pollfd){ .fd = i < PARTS ? own[i] : -1, .events = POLLIN };
	for (int i = 0; i < KEEPER_PARTS; i++) {
		const struct keeper_part *part = keeper_parts[i];

		if (part->want)
			part->want(k, &fds[PARTS + i]);
		if (part->wait)
			wait = watch_sooner(wait, part->wait(k));
	}
	return poll(fds, ALL, wait);
}

/* Those parts at whose descriptors something has come, and those without one. */
static int watch_hear_parts(
	struct keeper *k, const struct pollfd *fds, bool is_after_cage, struct err *e)
{
	int r = 0;

	for (int i = 0; r == 0 && i < KEEPER_PARTS; i++) {
		const struct keeper_part *part = keeper_parts[i];

		if (part->hear && part->is_after_cage == is_after_cage && part->want &&
			fds[PARTS + i].revents)
			r = part->hear(k, &fds[PARTS + i], e);
	}
	return r;
}

/* What no descriptor tells: limits that are counted, and what has to be done now and then. */
static int watch_take_turns(struct keeper *k, struct err *e)
{
	int r = 0;

	for (int i = 0; r == 0 && i < KEEPER_PARTS; i++)
		if (keeper_parts[i]->hear && !keeper_parts[i]->want)
			r = keeper_parts[i]->hear(k, NULL, e);
	return r;
}

/* The cage, the operator and the clock, and parts that come before what the command prints. */
static int watch_hear(struct keeper *k, const struct pollfd fds[static ALL], struct err *e)
{
	static int (*const hearers[PARTS])(struct keeper *,
		struct err *) = { [CHANNEL] = hear_cage, [SIGNALS] = keeper_hear_signal };
	int r = 0;

	for (int i = 0; r == 0 && i < PARTS; i++)
		if (fds[i].revents)
			r = hearers[i](k, e);
	if (r == 0)
		r = hear_clock(k, e);
	return r == 0 ? watch_hear_parts(k, fds, false, e) : r;
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
		if (r == 0)
			r = watch_hear_parts(k, fds, true, e);
		keeper_relay_move(&k->stdio, fds + STDIO);
		if (k->terminal.near >= 0 && is_terminal_over(&k->stdio))
			hang_up(k);
		if (r == 0)
			r = watch_take_turns(k, e);
	}
	return r;
}
