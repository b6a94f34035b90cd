/*
 * keeper_end - the end of a run: of its cage, and what the record says of it.
 *
 * Runs as: the keeper.
 * Leaves:  nothing of the cage: no process, no mount, no descriptor; a filled record.
 *
 * Whatever went wrong before, the cage is killed here, and with its first process all others end.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/count.h"
#include "keeper/engine/keeper_engine.h"
#include "keeper/keeper_inside.h"

/* --- the cage --- */

/* Ends what is left of the cage; false: something of it does not end. */
static bool end_cage(struct keeper *k, struct err *e)
{
	if (k->mode == KEEPER_JOINING)
		return keeper_join_end(k) || k->engine->wait(k, NULL, e) == 0;
	(void)cgroup_count(&k->group, &k->end.counts);
	/* Later it is reaped, and the record written before that. */
	if (k->state == KEEPER_ENDED)
		k->process.cpu_us = k->engine->cpu_us(k);
	k->engine->kill(k);
	if (k->state == KEEPER_ENDED || k->end.is_hanging)
		return !k->end.is_hanging;
	cgroup_kill(&k->group);
	return k->engine->wait(k, NULL, e) == 0;
}

/* --- what is said of it --- */

/* A limit may be the reason why something else failed. */
static void end_explain_limits(const struct keeper *k, struct err *e)
{
	if (k->end.counts.oom_kills) {
		err_prefix(e, "cannot fit into limits.memory");
		err_hint(e, 0, "is limits.memory too small?");
	}
}

/* Notes in the record what was used of the limits. */
static void end_measure(struct keeper *k)
{
	struct record_used *used = &k->record->used;

	used->cpu_us = k->process.cpu_us;
	used->printed = (int64_t)k->stdio.printed;
	keeper_output_end(&k->stdio, &k->record->output);
	/* No cgroup of the cage's has had nothing in it. */
	used->memory_peak = k->end.counts.memory_peak ? (int64_t)k->end.counts.memory_peak : -1;
	used->processes_peak = k->end.counts.pids_peak ? (int64_t)k->end.counts.pids_peak : -1;
}

static void judge_end(struct keeper *k, struct err *e)
{
	struct record *r = k->record;

	r->escapes_dropped = 0;
	for (int i = 1; i < 3; i++)
		r->escapes_dropped += k->stdio.streams[i].filter.dropped;
	r->outcome = RECORD_EXITED;
	r->status = WEXITSTATUS(k->end.wait_status);
	if (WIFSIGNALED(k->end.wait_status)) {
		r->outcome = RECORD_SIGNALED;
		r->status = WTERMSIG(k->end.wait_status);
	}
	if (k->end.limit == PLAN_LIMITS_TIME)
		r->outcome = RECORD_TIMED_OUT;
	else if (k->end.limit != PLAN_GUARANTEE_COUNT)
		r->outcome = RECORD_CUT_OFF;
	keeper_relay_judge(&k->stdio, e);
	if (k->state >= KEEPER_EXITED || k->end.limit != PLAN_GUARANTEE_COUNT)
		return;
	r->outcome = RECORD_BROKEN;
	err_set(e, ERR_SYS, ECHILD, "cannot finish the command: %s",
		k->end.is_unwanted ? "its session was stopped" : "the cage was ended from outside");
}

/*
 * Why the run failed, in the best words there are, and whether the command may have run: if it was
 * started and the cage itself does not say that it could not be, or if nobody can tell.
 */
static void end_explain(struct keeper *k, bool is_gone, struct err *e)
{
	bool is_known = k->process.channel < 0 || k->state < KEEPER_LET_GO;

	if (k->process.channel >= 0 && is_gone)
		is_known |= keeper_hear_last(k, e);
	if (k->end.has_failed || (is_known && !keeper_has_started(k)))
		return;
	k->record->outcome = RECORD_BROKEN;
	if (e->kind == ERR_SIGNAL)
		err_set(e, ERR_SIGNAL, e->num, "cannot start the command: signal %d stopped it",
			e->num);
	else
		err_prefix(e, "cannot finish the command");
}

/* --- all of it --- */

void keeper_release(struct keeper *k)
{
	int *const fds[] = { &k->process.channel, &k->process.pidfd, &k->signals, &k->disk };

	for (size_t i = 0; i < COUNT_OF(fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
	for (size_t i = 0; i < KEEPER_PARTS; i++)
		if (keeper_parts[i]->done)
			keeper_parts[i]->done(k);
	cgroup_done(&k->group);
	keeper_words_done(&k->words);
}

/*
 * When the init has told the end, no other process is left, and the record can be written while
 * the kernel takes the cage down. Otherwise that has to be awaited first.
 */
void keeper_finish(struct keeper *k, int r, struct err *e)
{
	bool is_gone = end_cage(k, r == 0 ? e : NULL);

	for (size_t i = 0; i < KEEPER_PARTS; i++)
		if (keeper_parts[i]->end)
			keeper_parts[i]->end(k);
	if (r < 0) {
		end_explain(k, is_gone, e);
		end_explain_limits(k, e);
	}
	/* Or the end of what the cage wrote would never come. */
	keeper_stdio_close_inside(&k->stdio);
	keeper_relay_drain(&k->stdio, k->signals);
	keeper_join_leave(k);
	/* An answer that comes later would be typed into the operator's shell. */
	keeper_terminal_restore(
		&k->terminal, keeper_relay_await_answer(&k->stdio, k->terminal.is_raw));
	if (keeper_has_started(k)) {
		k->record->start_ns = k->clock.started_ns - k->clock.began_ns;
		k->record->run_ns = clock_ns() - k->clock.started_ns;
	}
	if (keeper_has_started(k))
		end_measure(k);
	if (r == 0) {
		keeper_limits_judge(k);
		judge_end(k, e);
	}
	k->end.has_run = r == 0 || k->record->outcome == RECORD_BROKEN;
	k->end.is_left = !is_gone;
	for (size_t i = 0; i < KEEPER_PARTS; i++)
		if (keeper_parts[i]->save)
			keeper_parts[i]->save(k);
	keeper_log_end(k, e);
	k->end.is_finished = true;
}

/* A cage that no run has used, or that could not be made for one. */
static bool end_unused(struct keeper *k)
{
	k->engine->kill(k);
	cgroup_kill(&k->group);
	keeper_gate_part.end(k);
	return k->engine->wait(k, NULL, NULL) == 0;
}

void keeper_free(struct keeper *k)
{
	if (!k)
		return;
	if (!k->end.is_finished)
		k->end.is_left = !end_unused(k);
	else if (k->state == KEEPER_ENDED && k->process.pid > 0)
		k->engine->wait(k, NULL, NULL);
	/* What hangs is in there still; the lock goes with us, and a later run removes it. */
	if (k->end.is_left || cgroup_remove(&k->group, &k->record->late) == 0)
		k->record->late.kind = ERR_NONE;
	keeper_release(k);
	free(k);
}
