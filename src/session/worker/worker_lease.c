/*
 * worker_lease - the sessions that this worker has, and for how long.
 *
 * Runs as:  the coordinator.
 * Must not: believe its own memory: whether a lease is ours is for the store to say, and until when
 *           it surely is, for the clock that goes on while the machine sleeps.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "session/worker/worker_inside.h"

#define NS_PER_MS ((uint64_t)1000000)
#define COUNT_MS  15000 /* between two times that all sessions are counted */

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

int worker_hold(struct worker *w, const struct store_taken *t, struct err *e)
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

void worker_lose(struct worker *w, const char *session)
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

/* --- time --- */

bool worker_is_fenced(const struct worker *w)
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

uint64_t worker_retry_ns(const struct worker *w)
{
	uint64_t ms = w->settings->lease_ms / 15;

	return (ms < 1000 ? ms : 1000) * NS_PER_MS;
}

/* What there is, for who draws graphs of it. */
static int count_session(void *of, const struct store_session *x)
{
	(void)x;
	++*(uint64_t *)of;
	return 0;
}

static int lease_count_worker(void *of, const struct store_worker *x)
{
	*(uint64_t *)of += x->is_alive;
	return 0;
}

static int count_all(struct worker *w, struct err *e)
{
	struct metrics *m = &w->metrics, before = *m;
	uint64_t now = clock_ns();
	struct store_queue queue;
	int r;

	if (!w->settings->metrics || (w->counted_ns && now - w->counted_ns < COUNT_MS * NS_PER_MS))
		return 0;
	w->counted_ns = now;
	m->sessions = m->workers = 0;
	r = store_each_session(w->store, count_session, &m->sessions, e);
	if (r == 0)
		r = store_each_worker(w->store, lease_count_worker, &m->workers, e);
	if (r == 0)
		r = store_measure_queue(w->store, &queue, e);
	if (r == 0) {
		m->queued = queue.runs;
		m->oldest_s = queue.oldest_ms / 1000;
	}
	if (r < 0)
		*m = before;
	else if (memcmp(m, &before, sizeof(before)) != 0)
		worker_note_count(w);
	return r;
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
		r = count_all(w, &e);
	if (r < 0)
		worker_note_failure(w, "look at the leases", r, &e);
	/* Leases of others may be over, and sessions stopped, and nobody may have said so. */
	w->may_have_work = true;
	worker_look_at_sessions(w);
	worker_release_idle(w);
}

/* --- giving back --- */

void worker_give_back(struct worker *w, struct worker_held *held)
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

void worker_release_idle(struct worker *w)
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
