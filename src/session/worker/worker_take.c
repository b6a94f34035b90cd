/*
 * worker_take - takes runs, and sees to it that their workspaces are here and nobody else's.
 *
 * Runs as:  the coordinator.
 * Must not: let a run begin in a workspace that another worker's run may still write to.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "cage/cage_break.h"
#include "session/worker/worker_inside.h"

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

	worker_tell(w, "run %s of session %s is taken", slot->taken.run.id, x->id);
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

void worker_begin_run(struct worker *w, struct worker_slot *slot)
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

int worker_save(struct worker *w, struct worker_slot *slot)
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
