/*
 * worker_slot - one run at a time, step by step, in a runner that may end at any moment.
 *
 * Runs as:  the coordinator.
 * Must not: wait for a runner; tell a runner that it may go on without having asked the store;
 *           forget a run that was taken: it is reported, or its session is another's.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "session/worker/worker_inside.h"

#define GRACE_NS ((uint64_t)5000000000) /* between the request to end and the end */

static const struct {
	const char *text; /* why the run did not come to its own end */
	enum store_run_state state;
	int signal; /* by which its runner is told */
} causes[WORKER_CAUSE_COUNT] = {
	[WORKER_NO_CAUSE] = { "the process that did the run was ended", STORE_FAILED, SIGKILL },
	[WORKER_LEASE_LOST] = { "the lease of the session was lost", STORE_LOST, SIGKILL },
	[WORKER_FENCED] = { "the worker could not renew its lease in time, and ended the command",
		STORE_LOST, SIGKILL },
	[WORKER_STOPPED] = { "the session was stopped while the command ran", STORE_FAILED,
		SIGTERM },
	[WORKER_GOING] = { "the worker was stopped while the command ran", STORE_FAILED, SIGTERM },
};

bool worker_is_busy(const struct worker_slot *slot)
{
	return slot->step == WORKER_MOVING || slot->step == WORKER_RUNNING ||
	       slot->step == WORKER_PACKING;
}

static void set_step(struct worker *w, struct worker_slot *slot, enum worker_step step)
{
	slot->step = step;
	atomic_store(&w->shared->slots[slot->number].is_busy, worker_is_busy(slot));
}

static void clear(struct worker *w, struct worker_slot *slot)
{
	struct worker_held *held = worker_find_held(w, slot->taken.session.id);

	if (held && held->session.token == slot->taken.session.token) {
		held->is_running = false;
		held->used_ns = clock_ns();
		/* Its workspace could not be had here: somebody else may try. */
		if (held->must_move && !w->is_cut)
			worker_give_back(w, held);
	}
	store_taken_done(&slot->taken);
	slot->taken = (struct store_taken){ 0 };
	worker_letter_done(&slot->letter);
	worker_letter_done(&slot->packed);
	slot->cause = WORKER_NO_CAUSE;
	slot->kill_ns = 0;
	slot->is_asking = false;
	set_step(w, slot, WORKER_IDLE);
	w->may_have_work = true;
}

/* --- runners --- */

void worker_start_runner(struct worker *w, struct worker_slot *slot)
{
	if (worker_send_note(w->warden, WORKER_START, slot->number, 0, -1) < 0)
		w->is_ended = true; /* that the warden is gone is seen by its pidfd */
}

void worker_hear_warden(struct worker *w)
{
	own(worker_letter) struct worker_letter l = { .fd = -1 };
	struct worker_slot *slot;

	if (worker_receive(w->warden, &l) < 0 || l.slot >= w->settings->slots)
		return;
	slot = &w->slots[l.slot];
	if (l.kind == WORKER_STARTED)
		slot->channel = take_fd(&l.fd);
	else if (l.kind == WORKER_PROCESS)
		slot->pidfd = take_fd(&l.fd);
	else if (l.kind == WORKER_FAILED) {
		err_sys(&w->failure, l.number, "cannot start a process for runs");
		w->is_ended = true;
	}
}

static void signal_runner(struct worker_slot *slot, int number)
{
	slot->is_doomed |= number == SIGKILL;
	if (slot->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, slot->pidfd, number, NULL, 0);
}

void worker_end_slot(struct worker *w, struct worker_slot *slot, enum worker_cause cause)
{
	bool is_worse = cause == WORKER_LEASE_LOST || cause == WORKER_FENCED;

	if (slot->step == WORKER_REPORTING && cause == WORKER_LEASE_LOST)
		clear(w, slot);
	if (!worker_is_busy(slot) || (slot->cause != WORKER_NO_CAUSE && !is_worse) ||
		slot->cause == WORKER_LEASE_LOST)
		return;
	slot->cause = cause;
	signal_runner(slot, causes[cause].signal);
	if (causes[cause].signal != SIGKILL)
		slot->kill_ns = clock_ns() + GRACE_NS;
}

void worker_bury_runner(struct worker *w, struct worker_slot *slot)
{
	struct err e;

	if (slot->channel >= 0)
		close(slot->channel);
	close(slot->pidfd);
	slot->channel = slot->pidfd = -1;
	slot->is_doomed = false;
	if (worker_is_busy(slot)) {
		if (atomic_load(&w->shared->slots[slot->number].is_fenced) &&
			slot->cause != WORKER_LEASE_LOST)
			slot->cause = WORKER_FENCED;
		if (slot->step == WORKER_PACKING && slot->cause == WORKER_NO_CAUSE) {
			/* How it ended is known, and stays so. */
			err_set(&slot->answer.error, ERR_SYS, ECHILD,
				"cannot save the result: the process that did so was ended");
			worker_report(w, slot);
		} else {
			err_set(&e, ERR_SYS, ECHILD, "cannot finish the run: %s",
				causes[slot->cause].text);
			worker_fail(w, slot, &e);
		}
	}
	if (!w->is_ended)
		worker_start_runner(w, slot);
}

/* --- steps --- */

static const enum worker_kind kind_of[] = {
	[WORKER_MOVING] = WORKER_MOVE,
	[WORKER_RUNNING] = WORKER_RUN,
	[WORKER_PACKING] = WORKER_PACK,
};

void worker_send_step(struct worker *w, struct worker_slot *slot, enum worker_step step,
	const struct worker_part *more)
{
	const struct store_session *x = &slot->taken.session;
	const struct store_run *run = &slot->taken.run;
	struct worker_head head = { .session = *x, .from = slot->from };
	struct worker_part parts[WORKER_MAX_PARTS] = { { &head, sizeof(head) } };
	enum worker_kind kind = kind_of[step];
	size_t count = 1;
	int r;

	head.session.spec = head.session.project = NULL;
	memcpy(head.run, run->id, sizeof(head.run));
	memcpy(head.worker, w->self.name, sizeof(head.worker));
	if (step == WORKER_RUNNING) {
		head.wants_mount = worker_wants_mount(w, x);
		parts[count++] = (struct worker_part){ x->spec, strlen(x->spec) + 1 };
		parts[count++] = (struct worker_part){ x->project, strlen(x->project) + 1 };
		parts[count++] = (struct worker_part){ run->request, strlen(run->request) + 1 };
	} else if (more) {
		kind = WORKER_UNPACK;
		parts[count++] = *more;
	}
	set_step(w, slot, step);
	r = worker_send(slot->channel, kind, parts, count);
	/* A runner that has just ended is buried in a moment, and says why. */
	if (r < 0 && r != -EPIPE && r != -ECONNRESET) {
		struct err e;

		err_sys(&e, -r, "cannot hand the run to a process");
		worker_fail(w, slot, &e);
	}
}

void worker_answer_runner(struct worker *w, struct worker_slot *slot)
{
	const struct store_session *x = &slot->taken.session;
	struct err e = { 0 };
	int r = 0;

	if (!slot->is_asking || w->is_cut)
		return;
	if (slot->cause != WORKER_LEASE_LOST && worker_is_fenced(w)) {
		/*
		 * It may be nobody else's: then the store waits for a report. Killed without an
		 * answer, the run is reported as lost.
		 */
		slot->is_asking = false;
		worker_end_slot(w, slot, WORKER_FENCED);
		return;
	}
	if (slot->cause == WORKER_LEASE_LOST)
		r = -ESTALE;
	else
		r = store_check_token(w->store, x->id, x->token, &e);
	if (r < 0 && r != -ESTALE) {
		/* Asked again when the store answers; until then the lease may hold. */
		worker_note_failure(w, "check a lease", r, &e);
		return;
	}
	slot->is_asking = false;
	(void)worker_send(slot->channel, r == 0 ? WORKER_YES : WORKER_NO, NULL, 0);
	if (r == -ESTALE)
		worker_lose(w, x->id);
}

static void slot_hear_end(struct worker *w, struct worker_slot *slot, struct worker_letter *l,
	const struct worker_answer *a)
{
	if (l->count != 4 || !worker_text(l, 1)) {
		signal_runner(slot, SIGKILL);
		return;
	}
	slot->answer = *a;
	slot->letter = *l;
	*l = (struct worker_letter){ .fd = -1 };
	/* It came to an end before anybody could end it. */
	if (slot->cause == WORKER_FENCED)
		slot->cause = WORKER_NO_CAUSE;
	if (slot->cause == WORKER_STOPPED || slot->cause == WORKER_GOING) {
		slot->answer.state = causes[slot->cause].state;
		err_set(&slot->answer.error, ERR_SYS, EINTR, "cannot finish the run: %s",
			causes[slot->cause].text);
	}
	if (w->has_other_place && slot->cause == WORKER_NO_CAUSE)
		worker_send_step(w, slot, WORKER_PACKING, NULL);
	else
		worker_report(w, slot);
}

static void hear_done(struct worker *w, struct worker_slot *slot, struct worker_letter *l)
{
	const struct worker_answer *a = worker_struct(l, 0, sizeof(*a));

	if (!a || !worker_is_busy(slot)) {
		signal_runner(slot, SIGKILL);
		return;
	}
	if (slot->step == WORKER_RUNNING) {
		slot_hear_end(w, slot, l, a);
	} else if (slot->step == WORKER_PACKING) {
		if (a->error.kind == ERR_NONE && l->count == 2) {
			slot->packed = *l;
			*l = (struct worker_letter){ .fd = -1 };
		} else {
			slot->answer.error = a->error;
			err_prefix(&slot->answer.error, "cannot save the result");
		}
		worker_report(w, slot);
	} else if (a->error.kind != ERR_NONE) {
		worker_fail(w, slot, &a->error);
	} else if (slot->cause == WORKER_STOPPED || slot->cause == WORKER_GOING) {
		struct err e;

		err_set(&e, ERR_SYS, EINTR, "cannot finish the run: %s", causes[slot->cause].text);
		worker_fail(w, slot, &e);
	} else {
		worker_begin_run(w, slot);
	}
}

void worker_hear_runner(struct worker *w, struct worker_slot *slot)
{
	own(worker_letter) struct worker_letter l = { .fd = -1 };
	int r = worker_receive(slot->channel, &l);

	if (r == -EPIPE) {
		/* Nothing more will come; its pidfd tells the rest. */
		close(slot->channel);
		slot->channel = -1;
	} else if (r == 0 && l.kind == WORKER_DONE) {
		hear_done(w, slot, &l);
	} else if (r == 0 && l.kind == WORKER_HOLD && slot->step == WORKER_RUNNING) {
		worker_keep_mount(w, &slot->taken.session, &l.fd);
	} else if (r == 0 && l.kind == WORKER_ASK && slot->step == WORKER_RUNNING) {
		slot->is_asking = true;
		worker_answer_runner(w, slot);
	} else {
		signal_runner(slot, SIGKILL);
	}
}

/* --- the end of a run --- */

void worker_fail(struct worker *w, struct worker_slot *slot, const struct err *e)
{
	slot->answer = (struct worker_answer){
		.state = causes[slot->cause].state, .status = 125, .error = *e
	};
	metrics_count_run(&slot->answer.counted,
		slot->answer.state == STORE_LOST ? METRICS_LOST : METRICS_FAILED, 0);
	worker_letter_done(&slot->letter);
	worker_report(w, slot);
}

/* Borrows all of it from the slot. */
static void slot_describe(const struct worker_slot *slot, struct store_run *ret)
{
	static char nothing[] = "";
	const struct worker_letter *l = &slot->letter;

	*ret = slot->taken.run;
	ret->state = slot->answer.state;
	ret->status = slot->answer.status;
	ret->token = slot->taken.session.token;
	ret->error = ret->record = ret->out = ret->err = nothing;
	ret->out_size = ret->err_size = 0;
	if (slot->answer.error.kind != ERR_NONE)
		memcpy(&ret->error, &(const char *){ slot->answer.error.text }, sizeof(ret->error));
	if (l->count != 4)
		return;
	/* What is stored is not written to, and the type does not say so. */
	memcpy(&ret->record, &l->parts[1].bytes, sizeof(ret->record));
	memcpy(&ret->out, &l->parts[2].bytes, sizeof(ret->out));
	memcpy(&ret->err, &l->parts[3].bytes, sizeof(ret->err));
	ret->out_size = l->parts[2].size;
	ret->err_size = l->parts[3].size;
}

static void count_end(struct worker *w, const struct worker_slot *slot)
{
	metrics_add(&w->metrics, &slot->answer.counted);
	worker_note_count(w);
	worker_tell(w, "run %s of session %s: %s, %d%s%s", slot->taken.run.id,
		slot->taken.session.id, store_run_words[slot->answer.state], slot->answer.status,
		slot->answer.error.kind != ERR_NONE ? ": " : "",
		slot->answer.error.kind != ERR_NONE ? slot->answer.error.text : "");
}

static void slot_refuse(struct worker *w, struct worker_slot *slot)
{
	worker_log(w, "result_refused", slot, &slot->taken.session,
		"the session was taken by another worker: the result of the run is not kept");
	worker_warn(w, "run %s: its session was taken by another worker, the result is not kept",
		slot->taken.run.id);
}

void worker_report(struct worker *w, struct worker_slot *slot)
{
	struct store_run x;
	struct err e = { 0 };
	int r = -ESTALE;

	set_step(w, slot, WORKER_REPORTING);
	slot->kill_ns = 0;
	if (w->is_cut || (slot->cause != WORKER_LEASE_LOST && worker_save(w, slot) < 0))
		return;
	slot_describe(slot, &x);
	r = slot->cause == WORKER_LEASE_LOST ? -ESTALE : store_end_run(w->store, &x, &e);
	if (r < 0 && r != -ESTALE) {
		worker_note_failure(w, "write down how a run ended", r, &e);
		return;
	}
	if (r == 0)
		count_end(w, slot);
	else if (slot->cause != WORKER_LEASE_LOST || slot->letter.count)
		slot_refuse(w, slot);
	clear(w, slot);
}
