/*
 * keeper_end - the end of a run: of its cage, and what the record says of it.
 *
 * Runs as: the keeper.
 * Leaves:  nothing of the cage: no process, no mount, no descriptor; a filled record.
 *
 * Whatever went wrong before, the cage is killed here, and with its first process all others end.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/count.h"
#include "keeper/keeper_inside.h"

/* --- the cage --- */

void keeper_kill(const struct keeper *k)
{
	if (k->mode == KEEPER_JOINING)
		keeper_join_signal(&k->process, SIGKILL);
	else if (k->process.pidfd >= 0)
		syscall(SYS_pidfd_send_signal, k->process.pidfd, SIGKILL, NULL, 0);
	else if (k->process.pid > 0)
		kill(k->process.pid, SIGKILL);
}

int keeper_reap(struct keeper_process *p, struct err *e)
{
	struct pollfd end = { .fd = p->pidfd, .events = POLLIN };
	struct rusage used = { 0 };
	int status = 0;

	if (p->pidfd >= 0 && poll(&end, 1, KEEPER_REAP_MS) == 0)
		return err_set(e, ERR_SYS, ETIMEDOUT,
			"cannot end process %d of the cage: it was killed and hangs in the kernel "
			"until a system call returns",
			p->pid);
	while (p->pid > 0 && wait4(p->pid, &status, 0, &used) < 0 && errno == EINTR)
		;
	p->cpu_us = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * (int64_t)1000000 +
		    used.ru_utime.tv_usec + used.ru_stime.tv_usec;
	p->pid = -1;
	return 0;
}

/* Ends what is left of the cage; false: something of it does not end. */
static bool end_cage(struct keeper *k, struct err *e)
{
	if (k->mode == KEEPER_JOINING)
		return keeper_join_end(k) || keeper_reap(&k->process, e) == 0;
	(void)cgroup_count(&k->group, &k->end.counts);
	/* Later it is reaped, and the record written before that. */
	if (k->state == KEEPER_ENDED)
		k->process.cpu_us = keeper_ask_cpu_us(k->process.pid);
	keeper_kill(k);
	if (k->state == KEEPER_ENDED || k->end.is_hanging)
		return !k->end.is_hanging;
	cgroup_kill(&k->group);
	return keeper_reap(&k->process, e) == 0;
}

/* --- what is said of it --- */

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
	int *const fds[] = { &k->process.channel, &k->process.pidfd, &k->signals, &k->clock.timer,
		&k->disk };

	for (size_t i = 0; i < COUNT_OF(fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
	keeper_inspection_free(k->inspection);
	keeper_stdio_done(&k->stdio);
	keeper_terminal_done(&k->terminal);
	cgroup_done(&k->group);
	keeper_sources_done(&k->sources);
	keeper_layer_done(&k->layer);
	keeper_overlay_done(&k->overlay);
	for (size_t i = 0; i < CAGE_LAYER_COUNT; i++)
		keeper_protect_done(&k->protects[i]);
	keeper_gate_done(&k->gate);
	keeper_resident_done(k);
	keeper_joined_done(&k->joined);
	keeper_member_done(&k->member);
	keeper_notify_done(&k->notify);
	keeper_names_done(&k->names);
	keeper_words_done(&k->words);
}

/*
 * When the init has told the end, no other process is left, and the record can be written while
 * the kernel takes the cage down. Otherwise that has to be awaited first.
 */
void keeper_finish(struct keeper *k, int r, struct err *e)
{
	bool is_gone = end_cage(k, r == 0 ? e : NULL);

	keeper_gate_end(k);
	keeper_notify_end(k);
	keeper_names_end(k);
	keeper_report_end(k);
	if (r < 0) {
		end_explain(k, is_gone, e);
		keeper_limits_explain(k, e);
	}
	/* Or the end of what the cage wrote would never come. */
	keeper_stdio_close_inside(&k->stdio);
	keeper_relay_drain(&k->stdio, k->signals);
	keeper_join_leave(k);
	/* An answer that comes later would be typed into the operator's shell. */
	if (k->terminal.is_raw)
		keeper_relay_await_answer(&k->stdio);
	keeper_terminal_restore(&k->terminal, keeper_relay_awaits_answer(&k->stdio));
	if (keeper_has_started(k)) {
		k->record->start_ns = k->clock.started_ns - k->clock.began_ns;
		k->record->run_ns = clock_ns() - k->clock.started_ns;
	}
	if (keeper_has_started(k))
		keeper_limits_measure(k);
	if (r == 0) {
		keeper_limits_judge(k);
		judge_end(k, e);
	}
	keeper_overlay_end(k, r == 0 || k->record->outcome == RECORD_BROKEN, is_gone);
	keeper_protect_end(k);
	keeper_layer_end(k, r == 0 || k->record->outcome == RECORD_BROKEN, is_gone);
	keeper_log_end(k, e);
	k->end.is_finished = true;
	k->end.is_left = !is_gone;
}

/* A cage that no run has used, or that could not be made for one. */
static bool end_unused(struct keeper *k)
{
	keeper_kill(k);
	cgroup_kill(&k->group);
	keeper_gate_end(k);
	return keeper_reap(&k->process, NULL) == 0;
}

void keeper_free(struct keeper *k)
{
	if (!k)
		return;
	if (!k->end.is_finished)
		k->end.is_left = !end_unused(k);
	else if (k->state == KEEPER_ENDED && k->process.pid > 0)
		keeper_reap(&k->process, NULL);
	/* What hangs is in there still; the lock goes with us, and a later run removes it. */
	if (k->end.is_left || cgroup_remove(&k->group, &k->record->late) == 0)
		k->record->late.kind = ERR_NONE;
	keeper_release(k);
	keeper_warm_done(k->warm);
	free(k);
}
