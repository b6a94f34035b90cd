/*
 * worker_slot - the sessions that this worker has, the runs that it takes of them, and the runners
 * that do those, one at a time, step by step.
 *
 * Runs as:  the coordinator.
 * Must not: wait for a runner, which may end at any moment; tell a runner that it may go on without
 *           having asked the store; forget a run that was taken: it is reported, or its session is
 *           another's; let a run begin in a workspace that another worker's run may still write to;
 *           believe its own memory: whether a lease is ours is for the store to say, and until when
 *           it surely is, for the clock that goes on while the machine sleeps.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "cage/cage_break.h"
#include "session/worker/worker_inside.h"

#define NS_PER_MS ((uint64_t)1000000)

static void worker_answer_runner(struct worker *w, struct worker_slot *slot);
static void worker_report(struct worker *w, struct worker_slot *slot);
static void worker_begin_run(struct worker *w, struct worker_slot *slot);
static int worker_save(struct worker *w, struct worker_slot *slot);

/* --- leases --- */

/* --- what is held --- */

struct worker_held *worker_find_held(struct worker *w, const char *session)
{
	for (size_t i = 0; i < w->held_count; i++)
		if (str_eq(w->held[i].session.id, session))
			return &w->held[i];
	return NULL;
}

static struct worker_held *lease_add_held(struct worker *w, struct err *e)
{
	size_t room = w->held_room ? 2 * w->held_room : 64;
	struct worker_held *grown = w->held;

	if (w->held_count == WORKER_MAX_HELD) {
		err_set(e, ERR_REFUSED, ENOSPC, "cannot take another session: this worker has %d",
			WORKER_MAX_HELD);
		return NULL;
	}
	if (w->held_count == w->held_room) {
		grown = reallocarray(w->held, room, sizeof(*grown));
		w->held_room = grown ? room : w->held_room;
	}
	if (!grown) {
		err_set(e, ERR_SYS, ENOMEM, "cannot take another session: out of memory");
		return NULL;
	}
	w->held = grown;
	grown[w->held_count] = (struct worker_held){ .mount = -1 };
	return &grown[w->held_count++];
}

static int worker_hold(struct worker *w, const struct store_taken *t, struct err *e)
{
	struct worker_held *held = worker_find_held(w, t->session.id);

	if (!held)
		held = lease_add_held(w, e);
	if (!held)
		return -e->num;
	/* What was mounted under another lease is not this one's workspace. */
	if (t->is_new)
		worker_drop_mount(w, held);
	held->must_move |= t->is_new && t->is_left_open;
	held->session = t->session;
	held->session.spec = held->session.project = NULL;
	held->used_ns = clock_ns();
	held->is_running = true;
	return 0;
}

static void lease_forget(struct worker *w, struct worker_held *held)
{
	worker_drop_mount(w, held);
	*held = w->held[--w->held_count];
}

/* Another has it, or nobody: what runs in it is ended, and nothing of it is reported. */
static void worker_lose(struct worker *w, const char *session)
{
	struct worker_held *held = worker_find_held(w, session);
	struct worker_slot *slot = NULL;

	if (!held)
		return;
	for (unsigned i = 0; i < w->settings->slots; i++)
		if (w->slots[i].step != WORKER_IDLE &&
			str_eq(w->slots[i].taken.session.id, session))
			slot = &w->slots[i];
	if (slot) {
		w->metrics.leases_lost++;
		worker_note_count(w);
		worker_log(w, "lease_lost", slot, &held->session,
			"the session was taken by another worker: the command is ended");
		worker_warn(w, "run %s is ended: another worker took session %s",
			slot->taken.run.id, session);
	}
	/* Nothing is lost with one in which nothing runs: who had room took it. */
	lease_forget(w, held);
	if (slot)
		worker_end_slot(w, slot, WORKER_LEASE_LOST);
}

/* --- giving back --- */

/* Gives one back in which nothing runs; tried again later where the store does not answer. */
static void worker_give_back(struct worker *w, struct worker_held *held)
{
	const struct store_session *x = &held->session;
	struct err e = { 0 };
	int r = held->must_move ? store_give_up(w->store, x->id, x->token, &e)
				: store_release(w->store, x->id, x->token, &e);

	if (r == 0 || r == -ESTALE)
		lease_forget(w, held);
	else
		worker_note_failure(w, "give a session back", r, &e);
}

/* Those that nobody used for a while. */
static void worker_release_idle(struct worker *w)
{
	uint64_t now = clock_ns(), idle = w->settings->idle_ms * NS_PER_MS;

	for (size_t i = w->held_count; i-- > 0 && !w->is_cut;) {
		struct worker_held *held = &w->held[i];

		if (held->is_running || (!held->must_move && now - held->used_ns < idle))
			continue;
		/* Who mounts it needs a moment to end: until the next renewal. */
		if (held->mount >= 0)
			worker_drop_mount(w, held);
		else
			worker_give_back(w, held);
	}
}

void worker_look_at_sessions(struct worker *w)
{
	w->look_ns = 0;
	for (unsigned i = 0; i < w->settings->slots && !w->is_cut; i++) {
		struct worker_slot *slot = &w->slots[i];
		own(store_session) struct store_session x = { 0 };
		struct err e = { 0 };
		int r;

		if (slot->step != WORKER_RUNNING || slot->cause != WORKER_NO_CAUSE)
			continue;
		r = store_find_session(w->store, slot->taken.session.id, &x, &e);
		if (r == -ENOENT || (r == 0 && x.state != STORE_OPEN))
			worker_end_slot(w, slot, WORKER_STOPPED);
		else if (r < 0)
			worker_note_failure(w, "look at a session", r, &e);
	}
}

/* --- time --- */

/* May anything be done in sessions of ours, by our clock? */
static bool worker_is_fenced(const struct worker *w)
{
	return worker_boot_ns() >= atomic_load(&w->shared->until_ns);
}

void worker_fence(struct worker *w)
{
	if (!worker_is_fenced(w))
		return;
	for (unsigned i = 0; i < w->settings->slots; i++) {
		if (!worker_is_busy(&w->slots[i]) || w->slots[i].cause == WORKER_FENCED ||
			w->slots[i].cause == WORKER_LEASE_LOST)
			continue;
		worker_warn(w, "run %s is ended: the lease could not be renewed in time",
			w->slots[i].taken.run.id);
		worker_end_slot(w, &w->slots[i], WORKER_FENCED);
	}
}

/* Those that are another's by now. */
static int check_leases(struct worker *w, struct err *e)
{
	size_t count = w->held_count, n = 0;
	own(arena) struct arena a = { .max = SIZE_MAX / 2 };
	const struct store_session **held = arena_array(&a, count, sizeof(*held));
	bool *is_lost = arena_array(&a, count, sizeof(*is_lost));
	char(*lost)[STORE_ID_SIZE] = arena_array(&a, count, sizeof(*lost));
	int r;

	if (!held || !is_lost || !lost)
		return err_set(e, ERR_SYS, ENOMEM, "cannot check the leases: out of memory");
	for (size_t i = 0; i < count; i++)
		held[i] = &w->held[i].session;
	r = count ? store_check_leases(w->store, w->self.name, held, count, is_lost, e) : 0;
	for (size_t i = 0; r == 0 && i < count; i++)
		if (is_lost[i])
			memcpy(lost[n++], w->held[i].session.id, STORE_ID_SIZE);
	for (size_t i = 0; i < n; i++)
		worker_lose(w, lost[i]);
	return r;
}

/* What can be done now that the store answers, and could not before. */
static void catch_up(struct worker *w)
{
	struct err e = { 0 };
	int r = w->is_deaf ? store_listen(w->store, &e) : 0;

	if (r < 0)
		worker_note_failure(w, "listen", r, &e);
	w->is_deaf = r < 0;
	for (unsigned i = 0; i < w->settings->slots && !w->is_cut; i++) {
		if (w->slots[i].step == WORKER_REPORTING)
			worker_report(w, &w->slots[i]);
		worker_answer_runner(w, &w->slots[i]);
	}
}

void worker_renew(struct worker *w)
{
	uint64_t began = worker_boot_ns(), lease = w->settings->lease_ms * NS_PER_MS, lost;
	struct err e = { 0 };
	int r = store_renew_worker(w->store, &w->self, &e);

	/* As soon as it may be there again; a third of a lease is for all that can be late. */
	w->renew_ns = clock_ns() + lease / 3;
	if (r < 0) {
		worker_note_failure(w, "renew the leases", r, &e);
		return;
	}
	if (w->is_cut)
		worker_warn(w, "the store answers again");
	w->is_cut = false;
	/* Before anything is believed that was so until now. */
	r = check_leases(w, &e);
	if (r == 0)
		atomic_store(&w->shared->until_ns, began + lease - lease / 6);
	if (r == 0)
		catch_up(w);
	if (r == 0)
		r = store_has_other_place(w->store, w->self.place, &w->has_other_place, &e);
	if (r == 0)
		r = store_report_lost(w->store, &lost, &e);
	if (r == 0)
		r = worker_count_all(w, &e);
	if (r < 0)
		worker_note_failure(w, "look at the leases", r, &e);
	/* Leases of others may be over, and sessions stopped, and nobody may have said so. */
	w->may_have_work = true;
	worker_look_at_sessions(w);
	worker_release_idle(w);
}

/* --- runs in slots --- */

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

/* Has its runner do the next step, `more` being what it needs beside the run itself. */
static void worker_send_step(struct worker *w, struct worker_slot *slot, enum worker_step step,
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

/* What its runner asked, if it did. */
static void worker_answer_runner(struct worker *w, struct worker_slot *slot)
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

/* Writes down how the run ended; tried again later where the store does not answer. */
static void worker_report(struct worker *w, struct worker_slot *slot)
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

/* --- taking runs --- */

/* From what was saved by a worker of another place. */
static void fetch(struct worker *w, struct worker_slot *slot)
{
	struct store_session *x = &slot->taken.session;
	own_free char *bytes = NULL;
	struct worker_part part = { 0 };
	struct err e = { 0 };
	int r = store_load(w->store, x->id, &bytes, &part.size, &e);

	if (r == -ENOENT)
		err_set(&e, ERR_REFUSED, ENOENT,
			"cannot run in session %s: its files are in a folder that this worker does "
			"not have, and none of them was saved",
			x->id);
	else if (r < 0)
		worker_note_failure(w, "load a workspace", r, &e);
	if (r < 0) {
		worker_fail(w, slot, &e);
		return;
	}
	part.bytes = bytes;
	worker_send_step(w, slot, WORKER_MOVING, &part);
}

static void worker_take_begin(struct worker *w, struct worker_slot *slot)
{
	struct store_session *x = &slot->taken.session;
	struct worker_held *held = worker_find_held(w, x->id);
	bool is_here = str_eq(x->place, w->self.place);
	struct err e = { 0 };

	worker_tell(w, "run %s of session %s is taken", slot->taken.run.id, x->id);
	/* Taking it has added it. */
	if (!held) {
		err_set(&e, ERR_SYS, ENOENT, "cannot find session %s among those that are held",
			x->id);
		worker_fail(w, slot, &e);
		return;
	}
	if (is_here && (!held->must_move || cage_is_broken("move"))) {
		worker_send_step(w, slot, WORKER_RUNNING, NULL);
		return;
	}
	held->must_move = true;
	slot->from = x->workspace;
	x->workspace = x->token;
	if (is_here)
		worker_send_step(w, slot, WORKER_MOVING, NULL);
	else
		fetch(w, slot);
}

/* The workspace is where it has to be: the store is told, and then the run begins. */
static void worker_begin_run(struct worker *w, struct worker_slot *slot)
{
	struct store_session *x = &slot->taken.session;
	struct worker_held *held = worker_find_held(w, x->id);
	struct err e = { 0 };
	int r = slot->cause == WORKER_LEASE_LOST || !held
			? -ESTALE
			: store_set_workspace(
				  w->store, x->id, x->token, w->self.place, x->workspace, &e);

	if (r == -ESTALE) {
		worker_lose(w, x->id);
		slot->cause = WORKER_LEASE_LOST;
		worker_report(w, slot);
		return;
	}
	if (r < 0) {
		worker_note_failure(w, "write down where a workspace is", r, &e);
		worker_fail(w, slot, &e);
		return;
	}
	held->must_move = false;
	memcpy(x->place, w->self.place, sizeof(x->place));
	worker_send_step(w, slot, WORKER_RUNNING, NULL);
}

/*
 * Saves what was packed, if anything was: 0. What the store will never take is said with the run's
 * end; -errno: it does not answer.
 */
static int worker_save(struct worker *w, struct worker_slot *slot)
{
	const struct store_session *x = &slot->taken.session;
	const struct worker_part *bytes = &slot->packed.parts[1];
	struct err e = { 0 };
	int r;

	if (slot->packed.count != 2)
		return 0;
	r = store_save(w->store, x->id, x->token, bytes->bytes, bytes->size, &e);
	if (r == -EPIPE) {
		worker_note_failure(w, "save a workspace", r, &e);
		return r;
	}
	worker_letter_done(&slot->packed);
	/* That it is another's by now is found when the end is written down. */
	if (r < 0 && r != -ESTALE) {
		slot->answer.error = e;
		err_prefix(&slot->answer.error, "cannot save the result");
	}
	return 0;
}

/* One that has just told how its run ended may have been killed: what it gets is never begun. */
static bool is_free(const struct worker *w, const struct worker_slot *slot)
{
	return slot->step == WORKER_IDLE && slot->channel >= 0 && slot->pidfd >= 0 &&
	       !slot->is_doomed && !atomic_load(&w->shared->slots[slot->number].is_fenced);
}

static struct worker_slot *take_find_free(struct worker *w)
{
	for (unsigned i = 0; i < w->settings->slots; i++)
		if (is_free(w, &w->slots[i]))
			return &w->slots[i];
	return NULL;
}

void worker_take(struct worker *w)
{
	struct worker_slot *slot;

	while (w->may_have_work && !w->is_going && !w->is_cut && !worker_is_fenced(w) &&
		(slot = take_find_free(w))) {
		struct err e = { 0 };
		int r = store_take_run(w->store, &w->self, &slot->taken, &e);

		if (r == -ENODATA) {
			worker_warn(w, "%s", e.text);
			continue;
		}
		if (r < 0)
			worker_note_failure(w, "take a run", r, &e);
		w->may_have_work = r > 0;
		if (r <= 0)
			return;
		if (worker_hold(w, &slot->taken, &e) < 0)
			worker_fail(w, slot, &e);
		else
			worker_take_begin(w, slot);
	}
}
