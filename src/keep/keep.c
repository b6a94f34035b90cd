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
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/own.h"
#include "keep/keep_inside.h"
#include "keep/keep_team.h"
#include "wire/wire.h"

/* --- starting --- */

void keep_kill(const struct keeper *k)
{
	if (k->mode == KEEP_JOINING)
		keep_join_signal(k, SIGKILL);
	else if (k->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, k->pidfd, SIGKILL, NULL, 0);
	else if (k->pid > 0)
		kill(k->pid, SIGKILL);
}

int keep_spawn(struct keeper *k, struct err *e)
{
	int ends[2], r = wire_pair(ends);

	if (r < 0)
		return err_sys(e, -r, "cannot make a channel to the cage");
	k->channel = ends[0];
	k->start.channel = ends[1];
	k->start.keepers_end = ends[0];
	for (int i = 0; i < 3; i++)
		k->start.stdio[i] = k->stdio.streams[i].inside;
	r = k->start.join ? cage_spawn_join(&k->start, &k->pid, &k->pidfd, e)
			  : cage_spawn(&k->start, &k->pid, &k->pidfd, e);
	/* From here on the channel ends with the cage. */
	close(ends[1]);
	keep_stdio_close_inside(&k->stdio);
	if (k->mode != KEEP_WARM)
		keep_set_timer(k, k->ready_ms);
	if (k->start.join)
		return r;
	if (r == 0 && (k->start.ids.is_given || k->start.ids.is_team)) {
		const struct plan_op *ids = plan_find(k->start.plan, PLAN_IDS, NULL);

		r = cage_write_maps(k->pid, &k->start.ids, ids ? (unsigned)ids->n : 0, e);
		if (r == 0 && k->start.ids.is_team)
			r = keep_team_map(k, ids, e);
		if (r == 0 && wire_send(k->channel, WIRE_MAPPED, 0, NULL) < 0)
			r = err_set(e, ERR_SYS, EPIPE,
				"cannot make the cage: it ended before it was complete");
	}
	if (r == 0 && k->mode != KEEP_WARM)
		r = keep_share_send(k, e);
	return r == 0 ? keep_gate_start(k, e) : r;
}

/* What a cage is made of. */
static int prepare_cage(struct keeper *k, struct err *e)
{
	int r = keep_told_make(k, e);

	if (r == 0)
		r = keep_sources_make(&k->sources, &k->start, k->q, e);
	k->record->failed_op = k->sources.unmapped;
	if (r == 0)
		r = keep_overlay_take(k, e);
	if (r == 0)
		r = keep_layer_make(k, e);
	if (r == 0)
		r = keep_hold_make(k, e);
	if (r == 0)
		r = keep_limits_make(k, e);
	if (r == 0)
		r = keep_gate_make(k, e);
	return r == 0 ? keep_notify_make(k, e) : r;
}

int keep_begin_start(struct keeper *k, struct err *e)
{
	const struct keep_request *q = k->q;

	k->start = (struct cage_start){
		.plan = q->plan,
		.project = q->project,
		.git = q->git,
		.home = q->home,
		.git_identity = q->git_identity,
		.is_warm = k->mode == KEEP_WARM,
		.run = k->record->session ? k->record->session : k->record->run,
		.filter = q->filter.code,
		.filter_count = q->filter.count,
		.preflight = plan_preflight_script,
		.command_line = q->command_line,
		.command_line_size = q->command_line_size,
		.times = q->times,
		.stays = k->mode == KEEP_RESIDENT,
	};
	keep_terminal_choose(&k->terminal, q->tty);
	k->start.term = keep_terminal_type(&k->terminal);
	k->record->has_terminal = k->terminal.is_wanted;
	return keep_choose_ids(q, &k->start.ids, e);
}

static int prepare(struct keeper *k, struct err *e)
{
	const struct keep_request *q = k->q;
	int r = keep_begin_start(k, e);

	if (r == 0)
		r = keep_words_make(&k->words, &k->start, e);
	if (r == 0)
		r = k->mode == KEEP_JOINING ? keep_join_prepare(k, e) : prepare_cage(k, e);
	if (r == 0)
		r = keep_stdio_open(&k->stdio, q, &k->terminal, &k->start.ids, e);
	if (r == 0)
		r = keep_watch_open(k, e);
	if (r == 0 && k->mode != KEEP_JOINING)
		r = keep_copy_make(k, e);
	if (r == 0 && k->mode != KEEP_JOINING)
		keep_disk_open(k);
	k->start.terminal_streams = keep_stdio_on_terminal(&k->stdio);
	k->start.sources = k->sources.items;
	k->start.arguments = k->words.arguments;
	k->start.environment = k->words.environment;
	k->start.own_variables = k->words.own_variables;
	return r;
}

/* The cage takes a while to be made: what is needed later is done now. */
static int work_meanwhile(struct keeper *k, struct err *e)
{
	int r = k->look ? 0 : keep_look_prepare(&k->look, &k->start, &k->sources, e);

	if (r == 0 && !k->start.join)
		r = keep_look_prepare_late(k->look, &k->sources, e);
	/* What others left was looked for when a cage that waits was made. */
	if (k->mode != KEEP_WARM)
		cgroup_sweep(&k->group);
	if (r == 0 && !k->start.join)
		r = keep_digest(k, e);
	keep_sources_close(&k->sources);
	if (r == 0)
		r = keep_overlay_digest(k, e);
	return r == 0 ? k->q->meanwhile(k->q->of, e) : r;
}

/* --- ending --- */

int keep_reap(struct keeper *k, struct err *e)
{
	struct pollfd end = { .fd = k->pidfd, .events = POLLIN };
	struct rusage used = { 0 };
	int status = 0;

	if (k->pidfd >= 0 && poll(&end, 1, KEEP_REAP_MS) == 0)
		return err_set(e, ERR_SYS, ETIMEDOUT,
			"cannot end process %d of the cage: it was killed and hangs in the kernel "
			"until a system call returns",
			k->pid);
	while (k->pid > 0 && wait4(k->pid, &status, 0, &used) < 0 && errno == EINTR)
		;
	k->cpu_us = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * (int64_t)1000000 +
		    used.ru_utime.tv_usec + used.ru_stime.tv_usec;
	k->pid = -1;
	return 0;
}

static void judge_end(struct keeper *k, struct err *e)
{
	struct record *r = k->record;

	r->escapes_dropped = 0;
	for (int i = 1; i < 3; i++)
		r->escapes_dropped += k->stdio.streams[i].filter.dropped;
	r->outcome = RECORD_EXITED;
	r->status = WEXITSTATUS(k->wait_status);
	if (WIFSIGNALED(k->wait_status)) {
		r->outcome = RECORD_SIGNALED;
		r->status = WTERMSIG(k->wait_status);
	}
	if (k->ended_for == PLAN_LIMITS_TIME)
		r->outcome = RECORD_TIMED_OUT;
	else if (k->ended_for != PLAN_GUARANTEE_COUNT)
		r->outcome = RECORD_CUT_OFF;
	keep_relay_judge(&k->stdio, e);
	if (k->state >= KEEP_EXITED || k->ended_for != PLAN_GUARANTEE_COUNT)
		return;
	r->outcome = RECORD_BROKEN;
	err_set(e, ERR_SYS, ECHILD, "cannot finish the command: %s",
		k->is_unwanted ? "its session was stopped" : "the cage was ended from outside");
}

void keep_release(struct keeper *k)
{
	int *const fds[] = { &k->channel, &k->pidfd, &k->signals, &k->timer, &k->disk };

	for (size_t i = 0; i < COUNT_OF(fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
	keep_look_free(k->look);
	keep_stdio_done(&k->stdio);
	keep_terminal_done(&k->terminal);
	cgroup_done(&k->group);
	keep_sources_done(&k->sources);
	keep_layer_done(&k->layer);
	keep_overlay_done(&k->overlay);
	for (size_t i = 0; i < CAGE_LAYER_COUNT; i++)
		keep_hold_done(&k->holds[i]);
	keep_gate_done(&k->gate);
	keep_resident_done(k);
	keep_joined_done(&k->joined);
	keep_share_done(&k->share);
	keep_notify_done(&k->notify);
	keep_names_done(&k->names);
	keep_words_done(&k->words);
}

/*
 * Why the run failed, in the best words there are, and whether the command may have run: if it was
 * started and the cage itself does not say that it could not be, or if nobody can tell.
 */
static void explain(struct keeper *k, bool is_gone, struct err *e)
{
	bool is_known = k->channel < 0 || k->state < KEEP_LET_GO;

	if (k->channel >= 0 && is_gone)
		is_known |= keep_hear_last(k, e);
	if (k->has_failed || (is_known && !keep_has_started(k)))
		return;
	k->record->outcome = RECORD_BROKEN;
	if (e->kind == ERR_SIGNAL)
		err_set(e, ERR_SIGNAL, e->num, "cannot start the command: signal %d stopped it",
			e->num);
	else
		err_prefix(e, "cannot finish the command");
}

/* Ends what is left of the cage; false: something of it does not end. */
static bool end_cage(struct keeper *k, struct err *e)
{
	if (k->mode == KEEP_JOINING)
		return keep_join_end(k) || keep_reap(k, e) == 0;
	(void)cgroup_count(&k->group, &k->counts);
	/* Later it is reaped, and the record written before that. */
	if (k->state == KEEP_ENDED)
		k->cpu_us = keep_ask_cpu_us(k->pid);
	keep_kill(k);
	if (k->state == KEEP_ENDED || k->is_hanging)
		return !k->is_hanging;
	cgroup_kill(&k->group);
	return keep_reap(k, e) == 0;
}

/*
 * When the init has told the end, no other process is left, and the record can be written while
 * the kernel takes the cage down. Otherwise that has to be awaited first.
 */
static void finish(struct keeper *k, int r, struct err *e)
{
	bool is_gone = end_cage(k, r == 0 ? e : NULL);

	keep_gate_end(k);
	keep_notify_end(k);
	keep_names_end(k);
	keep_told_end(k);
	if (r < 0) {
		explain(k, is_gone, e);
		keep_limits_explain(k, e);
	}
	/* Or the end of what the cage wrote would never come. */
	keep_stdio_close_inside(&k->stdio);
	keep_relay_drain(&k->stdio, k->signals);
	keep_join_leave(k);
	/* An answer that comes later would be typed into the operator's shell. */
	if (k->terminal.is_raw)
		keep_relay_await_answer(&k->stdio);
	keep_terminal_restore(&k->terminal, keep_relay_awaits_answer(&k->stdio));
	if (keep_has_started(k)) {
		k->record->start_ns = k->started_ns - k->began_ns;
		k->record->run_ns = clock_ns() - k->started_ns;
	}
	if (keep_has_started(k))
		keep_limits_measure(k);
	if (r == 0) {
		keep_limits_judge(k);
		judge_end(k, e);
	}
	keep_overlay_end(k, r == 0 || k->record->outcome == RECORD_BROKEN, is_gone);
	keep_hold_end(k);
	keep_layer_end(k, r == 0 || k->record->outcome == RECORD_BROKEN, is_gone);
	keep_log_end(k, e);
	if (r == 0)
		k->q->afterwards(k->q->of, e);
	if (k->state == KEEP_ENDED && k->pid > 0)
		keep_reap(k, NULL);
	/* What hangs is in there still; the lock goes with us, and a later run removes it. */
	if (!is_gone || cgroup_remove(&k->group, &k->record->late) == 0)
		k->record->late.kind = ERR_NONE;
	keep_release(k);
}

void keep_init(struct keeper *k, const struct keep_request *q, struct record *record)
{
	*k = (struct keeper){ .q = q,
		.mode = q->mode,
		.record = record,
		.channel = -1,
		.pidfd = -1,
		.signals = -1,
		.timer = -1,
		.disk = -1,
		.pid = -1,
		.cpu_us = -1,
		.ready_ms = KEEP_READY_MS,
		.ended_for = PLAN_GUARANTEE_COUNT };
	cgroup_init(&k->group);
	keep_stdio_init(&k->stdio);
	keep_terminal_choose(&k->terminal, KEEP_TTY_NEVER);
	keep_sources_init(&k->sources);
	keep_layer_init(&k->layer);
	keep_overlay_init(&k->overlay);
	for (size_t i = 0; i < CAGE_LAYER_COUNT; i++)
		keep_hold_init(&k->holds[i]);
	keep_gate_init(&k->gate);
	keep_share_init(&k->share);
	keep_joined_init(&k->joined);
	keep_resident_init(&k->resident);
	keep_notify_init(&k->notify);
	keep_names_init(&k->names);
	keep_told_init(&k->told);
}

/* What an attempt before this one left in the record. */
static void begin_record(struct record *record)
{
	record->outcome = RECORD_REFUSED;
	record->failed_op = -1;
	record->ended_for = PLAN_GUARANTEE_COUNT;
	record->is_preflight_passed = record->is_preflight_ours = false;
	record_forget_decisions(record);
	record->denial_count = 0;
	record->denials_untold = 0;
	record->told = (struct record_told){ 0 };
}

/* From a keeper that has begun, with `r`, to the end of its cage. */
static int run(struct keeper *k, int r, struct err *e)
{
	if (r == 0)
		r = work_meanwhile(k, e);
	if (r == 0)
		r = keep_watch(k, e);
	if (r == 0 && !keep_has_started(k) && k->ended_for == PLAN_GUARANTEE_COUNT)
		r = err_set(e, ERR_SYS, ECHILD, "cannot start the command: the cage ended before");
	finish(k, r, e);
	return r;
}

int keep_run(const struct keep_request *q, struct record *record, struct err *e)
{
	uint64_t began = clock_ns();
	struct keeper *warm = q->warm ? keep_warm_use(q->warm, q, record) : NULL;
	struct keeper k;
	int r;

	if (q->warm && !warm)
		keep_warm_free(q->warm);
	begin_record(record);
	record->is_warm = warm != NULL;
	if (warm) {
		warm->began_ns = began;
		r = run(warm, keep_warm_join(q->warm, e), e);
		keep_warm_free(q->warm);
		return r;
	}
	keep_init(&k, q, record);
	k.began_ns = began;
	r = prepare(&k, e);
	if (r == 0)
		r = keep_spawn(&k, e);
	return run(&k, r, e);
}
