/*
 * keep - one run, from the clone to the end of the cage.
 *
 * Runs as:     the operator.
 * Enters with: a plan, and nothing started.
 * Leaves:      nothing of the cage: no process, no mount, no descriptor; a filled record.
 * Must not:    let the command start before the look from outside is done and good.
 *
 * Keeper and cage speak over one channel; its end is the end of the other side. Whatever goes
 * wrong here, the cage is killed, and with its first process all others end.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "keep/keep_inside.h"
#include "wire/wire.h"

#define GRACE_MS 5000  /* between the request to end in time and the end */
#define READY_MS 30000 /* a cage that is not ready by then never will be */
#define REAP_MS  10000 /* what is killed and not gone by then hangs in the kernel */

struct keeper {
	const struct keep_request *q;
	struct record *record;
	struct cage_start start;
	struct keep_words words;
	struct keep_sources sources;
	struct keep_stdio stdio;
	struct keep_look *look;
	int channel, pidfd, signals, timer;
	pid_t pid;
	uint64_t began_ns, started_ns;
	int wait_status;
	bool is_ready, is_let_go, has_failed, is_started, has_ended, is_timed_out, is_gone;
};

/* --- starting --- */

static int open_signals(struct keeper *k, struct err *e)
{
	static const int passed[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2 };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++) {
		struct sigaction old;

		/* Who was told to ignore one, as by nohup, does. */
		if (sigaction(passed[i], NULL, &old) < 0 || old.sa_handler != SIG_IGN)
			sigaddset(&set, passed[i]);
	}
	/* Blocked to the end of the process: a signal at the end must not cost the record. */
	sigprocmask(SIG_BLOCK, &set, NULL);
	k->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (k->signals < 0)
		return err_set(e, ERR_SYS, errno, "cannot receive signals: %s", strerror(errno));
	return 0;
}

static int open_timer(struct keeper *k, struct err *e)
{
	k->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (k->timer < 0)
		return err_set(e, ERR_SYS, errno, "cannot make a clock: %s", strerror(errno));
	return 0;
}

static void set_timer(const struct keeper *k, uint64_t ms)
{
	struct itimerspec when = { .it_value = { .tv_sec = (time_t)(ms / 1000),
					   .tv_nsec = (long)(ms % 1000) * 1000000L } };

	timerfd_settime(k->timer, 0, &when, NULL);
}

/* The time limit in ms, or 0. */
static uint64_t time_limit(const struct plan *p)
{
	const struct plan_op *op = plan_find(p, PLAN_LIMIT, "limits.time");

	return op ? op->n : 0;
}

static void kill_cage(const struct keeper *k)
{
	if (k->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, k->pidfd, SIGKILL, NULL, 0);
	else if (k->pid > 0)
		kill(k->pid, SIGKILL);
}

static int spawn(struct keeper *k, struct err *e)
{
	int ends[2], r = wire_pair(ends);

	if (r < 0)
		return err_set(
			e, ERR_SYS, -r, "cannot make a channel to the cage: %s", strerror(-r));
	k->channel = ends[0];
	k->start.channel = ends[1];
	k->start.keepers_end = ends[0];
	for (int i = 0; i < 3; i++)
		k->start.stdio[i] = k->stdio.streams[i].inside;
	r = cage_spawn(&k->start, &k->pid, &k->pidfd, e);
	/* From here on the channel ends with the cage. */
	close(ends[1]);
	keep_stdio_close_inside(&k->stdio);
	set_timer(k, READY_MS);
	if (r == 0 && k->start.ids.is_given) {
		const struct plan_op *ids = plan_find(k->start.plan, PLAN_IDS, NULL);

		r = cage_write_maps(k->pid, &k->start.ids, (unsigned)ids->n, e);
		if (r == 0 && wire_send(k->channel, WIRE_MAPPED, 0, NULL) < 0)
			r = err_set(e, ERR_SYS, EPIPE, "the cage ended before it was made");
	}
	return r;
}

static int prepare(struct keeper *k, struct err *e)
{
	const struct keep_request *q = k->q;
	int r;

	k->start = (struct cage_start){
		.plan = q->plan,
		.project = q->project,
		.home = q->home,
		.run = k->record->run,
		.filter = q->filter.code,
		.filter_count = q->filter.count,
		.preflight = plan_preflight_script,
		.command_line = q->command_line,
		.command_line_size = q->command_line_size,
		.times = q->times,
	};
	r = keep_choose_ids(q->plan, &k->start.ids, e);
	if (r == 0)
		r = keep_words_make(&k->words, &k->start, e);
	if (r == 0)
		r = keep_sources_make(&k->sources, &k->start, q, e);
	if (r == 0)
		r = keep_stdio_open(&k->stdio, &k->start.ids, e);
	if (r == 0)
		r = open_signals(k, e);
	if (r == 0)
		r = open_timer(k, e);
	k->start.sources = k->sources.items;
	k->start.arguments = k->words.arguments;
	k->start.environment = k->words.environment;
	k->start.own_variables = k->words.own_variables;
	return r;
}

/* The cage takes a while to be made: what is needed later is done now. */
static int work_meanwhile(struct keeper *k, struct err *e)
{
	int r = keep_look_prepare(&k->look, &k->start, &k->sources, e);

	keep_sources_close(&k->sources);
	return r == 0 ? k->q->meanwhile(k->q->of, e) : r;
}

/* --- while it runs --- */

static int look_and_go(struct keeper *k, bool is_landlocked, struct err *e)
{
	int r = keep_look(k->look, k->pid, is_landlocked, k->record, e);

	/* From here on what runs is the user's: startup commands are part of the time. */
	set_timer(k, time_limit(k->start.plan));
	if (r == 0 && wire_send(k->channel, WIRE_GO, 0, NULL) < 0)
		r = err_set(e, ERR_SYS, EPIPE, "the cage ended before the command was started");
	k->is_let_go = r == 0;
	return r;
}

static void note_started(struct keeper *k)
{
	k->is_started = true;
	k->started_ns = clock_ns();
	keep_say_started(k->q, k->record, k->pid);
}

/* What the cage says went wrong; it always is something. */
static int take_failure(struct keeper *k, const struct wire_message *m, struct err *e)
{
	bool is_known = m->err.kind == ERR_SYS || m->err.kind == ERR_REFUSED ||
			m->err.kind == ERR_NOT_FOUND || m->err.kind == ERR_NOT_EXEC;

	k->has_failed = true;
	if (!is_known || !m->err.text[0] || m->err.num < 0)
		return err_set(e, ERR_SYS, EPROTO, "the cage failed and did not say why");
	*e = m->err;
	return -EPROTO;
}

/*
 * The cage is dead, and what it said last may not have been heard: its reason is the better one,
 * and what it started was started. True when all of it was heard.
 */
static bool hear_last(struct keeper *k, struct err *e)
{
	struct wire_message m = { 0 };
	struct err other;
	int r;

	/* What the keeper itself saw or was told stands. */
	while ((r = wire_receive(k->channel, &m, NULL)) == 0) {
		if (m.kind == WIRE_FAILED)
			take_failure(k, &m, e->kind == ERR_SYS ? e : &other);
		k->record->is_preflight_passed |= m.kind == WIRE_CHECKED;
		if (m.kind == WIRE_STARTED && !k->is_started)
			note_started(k);
	}
	return r == -EPIPE;
}

/* One message of the cage, which comes in its turn or is none; an error ends the run. */
static int hear(struct keeper *k, struct err *e)
{
	struct wire_message m = { 0 };
	int r = wire_receive(k->channel, &m, NULL);

	if (r == -EPIPE) {
		k->is_gone = true;
		return 0;
	}
	if (r < 0)
		return err_set(e, ERR_SYS, -r, "cannot hear the cage: %s", strerror(-r));
	if (m.kind == WIRE_SKIPPED && !k->is_ready) {
		if (m.n >= 0 && (uint32_t)m.n < k->start.plan->op_count)
			record_note(k->record, (uint32_t)m.n, m.err.text);
	} else if (m.kind == WIRE_READY && !k->is_ready) {
		k->is_ready = true;
		return look_and_go(k, m.n != 0, e);
	} else if (m.kind == WIRE_CHECKED && k->is_ready && !k->record->is_preflight_passed) {
		k->record->is_preflight_passed = true;
		k->record->is_preflight_ours = m.n != 0;
	} else if (m.kind == WIRE_STARTED && k->record->is_preflight_passed && !k->is_started) {
		note_started(k);
	} else if (m.kind == WIRE_EXITED && k->is_ready) {
		k->has_ended = true;
		k->wait_status = m.n;
	} else if (m.kind == WIRE_FAILED) {
		return take_failure(k, &m, e);
	} else {
		return err_set(e, ERR_SYS, EBADMSG, "the cage said what no cage says (%u)", m.kind);
	}
	return 0;
}

/* Before the command runs, a signal is for the keeper; afterwards for the command. */
static int pass_signal(struct keeper *k, struct err *e)
{
	struct signalfd_siginfo got;

	if (read(k->signals, &got, sizeof(got)) != (ssize_t)sizeof(got))
		return 0;
	if (k->is_started) {
		wire_send(k->channel, WIRE_SIGNAL, (int)got.ssi_signo, NULL);
		return 0;
	}
	return err_set(e, ERR_SIGNAL, (int)got.ssi_signo,
		"stopped by signal %u before the command was started", got.ssi_signo);
}

/* Time is up: the command is asked to end, and a while later it is ended. */
static int end_in_time(struct keeper *k, struct err *e)
{
	uint64_t unused;

	if (read(k->timer, &unused, sizeof(unused)) < 0)
		return 0;
	if (k->is_timed_out) {
		kill_cage(k);
		return 0;
	}
	if (!k->is_ready)
		return err_set(e, ERR_REFUSED, ETIMEDOUT,
			"the cage was not ready within %d s; something it opens does not answer",
			READY_MS / 1000);
	k->is_timed_out = true;
	wire_send(k->channel, WIRE_SIGNAL, SIGTERM, NULL);
	set_timer(k, GRACE_MS);
	return 0;
}

static int watch(struct keeper *k, struct err *e)
{
	enum {
		CHANNEL,
		SIGNALS,
		TIMER,
		STDIO
	};
	struct pollfd fds[STDIO + 3] = {
		[CHANNEL] = { .fd = k->channel, .events = POLLIN },
		[SIGNALS] = { .fd = k->signals, .events = POLLIN },
		[TIMER] = { .fd = k->timer, .events = POLLIN },
	};
	int r = 0;

	while (r == 0 && !k->is_gone && !k->has_ended) {
		int timeout = keep_stdio_want(&k->stdio, fds + STDIO);

		if (poll(fds, STDIO + 3, timeout) < 0) {
			if (errno == EINTR)
				continue;
			return err_set(
				e, ERR_SYS, errno, "cannot wait for the cage: %s", strerror(errno));
		}
		if (fds[CHANNEL].revents)
			r = hear(k, e);
		if (r == 0 && fds[SIGNALS].revents)
			r = pass_signal(k, e);
		if (r == 0 && fds[TIMER].revents)
			r = end_in_time(k, e);
		keep_stdio_move(&k->stdio, fds + STDIO);
	}
	return r;
}

/* --- ending --- */

/* Waits until the first process is gone, and with it every other. */
static int reap(struct keeper *k, struct err *e)
{
	struct pollfd end = { .fd = k->pidfd, .events = POLLIN };
	int status = 0;

	if (k->pidfd >= 0 && poll(&end, 1, REAP_MS) == 0)
		return err_set(e, ERR_SYS, ETIMEDOUT,
			"process %d of the cage was killed and hangs in the kernel; it ends when "
			"what it waits for answers",
			k->pid);
	while (k->pid > 0 && waitpid(k->pid, &status, 0) < 0 && errno == EINTR)
		;
	k->pid = -1;
	return 0;
}

static void judge_end(struct keeper *k, struct err *e)
{
	struct record *r = k->record;

	r->outcome = RECORD_EXITED;
	r->status = WEXITSTATUS(k->wait_status);
	if (WIFSIGNALED(k->wait_status)) {
		r->outcome = RECORD_SIGNALED;
		r->status = WTERMSIG(k->wait_status);
	}
	if (k->is_timed_out)
		r->outcome = RECORD_TIMED_OUT;
	keep_stdio_judge(&k->stdio, e);
	if (k->has_ended || k->is_timed_out)
		return;
	r->outcome = RECORD_BROKEN;
	err_set(e, ERR_SYS, ECHILD, "the cage was ended from outside while the command ran");
}

static void release(struct keeper *k)
{
	int *const fds[] = { &k->channel, &k->pidfd, &k->signals, &k->timer };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
	keep_look_free(k->look);
	keep_stdio_done(&k->stdio);
	keep_sources_done(&k->sources);
	keep_words_done(&k->words);
}

/*
 * Why the run failed, in the best words there are, and whether the command may have run: if it was
 * started and the cage itself does not say that it could not be, or if nobody can tell.
 */
static void explain(struct keeper *k, bool is_gone, struct err *e)
{
	bool is_known = k->channel < 0 || !k->is_let_go;

	if (k->channel >= 0 && is_gone)
		is_known |= hear_last(k, e);
	if (k->has_failed || (is_known && !k->is_started))
		return;
	k->record->outcome = RECORD_BROKEN;
	if (e->kind == ERR_SIGNAL)
		err_set(e, ERR_SIGNAL, e->num, "stopped by signal %d while the command started",
			e->num);
	else
		err_prefix(e, "the command was stopped");
}

/*
 * When the init has told the end, no other process is left, and the record can be written while
 * the kernel takes the cage down. Otherwise that has to be awaited first.
 */
static void finish(struct keeper *k, int r, struct err *e)
{
	bool is_gone = true;

	kill_cage(k);
	if (!k->has_ended)
		is_gone = reap(k, r == 0 ? e : NULL) == 0;
	if (r < 0)
		explain(k, is_gone, e);
	/* Or the end of what the cage wrote would never come. */
	keep_stdio_close_inside(&k->stdio);
	if (is_gone)
		keep_stdio_drain(&k->stdio, k->signals);
	if (k->is_started) {
		k->record->start_ns = k->started_ns - k->began_ns;
		k->record->run_ns = clock_ns() - k->started_ns;
	}
	if (r == 0) {
		judge_end(k, e);
		k->q->afterwards(k->q->of, e);
	}
	if (k->has_ended)
		reap(k, NULL);
	release(k);
}

int keep_run(const struct keep_request *q, struct record *record, struct err *e)
{
	struct keeper k = { .q = q,
		.record = record,
		.channel = -1,
		.pidfd = -1,
		.signals = -1,
		.timer = -1,
		.pid = -1 };
	int r;

	for (int i = 0; i < 3; i++)
		k.stdio.streams[i].inside = k.stdio.streams[i].near = -1;
	cage_idmap_init(&k.sources.map);
	k.began_ns = clock_ns();
	record->outcome = RECORD_REFUSED;
	record->is_preflight_passed = record->is_preflight_ours = false;
	r = prepare(&k, e);
	if (r == 0)
		r = spawn(&k, e);
	if (r == 0)
		r = work_meanwhile(&k, e);
	if (r == 0)
		r = watch(&k, e);
	if (r == 0 && !k.is_started && !k.is_timed_out)
		r = err_set(e, ERR_SYS, ECHILD, "the cage ended before the command was started");
	finish(&k, r, e);
	return r;
}
