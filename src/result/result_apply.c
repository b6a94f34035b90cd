/*
 * result_apply - puts what a run did to the project on the host, or drops it.
 *
 * Runs as:  the operator, who has locked the run.
 * Leaves:   the project with the effects that were asked for; the run's layer, unless all of it has
 *           been applied; events in the run's log, and in that of all runs.
 * Must not: lose anything that was not applied; undo or hinder what was done because it cannot be
 *           logged; when it discards, touch the project, but for drafts that an interrupted apply
 *           left there.
 */
#include <errno.h>
#include <unistd.h>

#include "base/count.h"
#include "base/own.h"
#include "proof/log/log.h"
#include "result/result.h"
#include "run/run_spec.h"

/* --- the log --- */

/* Opens both chains; one that cannot be opened leaves the other. */
static void open_logs(const struct result *k, struct log *ret, struct err *ret_unlogged)
{
	int state = record_open_state(run_home(), false, ret_unlogged);

	log_init(ret, state, k->is_session ? NULL : k->id, k->is_session ? k->id : NULL);
	/* The chain of a run is in its folder; a session has none of its own. */
	if (!k->is_session)
		(void)log_open_chain(ret, k->folder, ret_unlogged);
}

static void write_logs(const struct result *k, struct log *l, struct err *ret_unlogged)
{
	int state = l->state;

	log_end(l);
	if (log_write(l) < 0)
		*ret_unlogged = l->failure;
	if (ret_unlogged->kind != ERR_NONE)
		err_prefix(ret_unlogged, "what became of %s %s is not in its log", k->what, k->id);
	log_done(l);
	if (state >= 0)
		close(state);
}

static void log_discarded(const struct result *k, struct err *ret_unlogged)
{
	struct log l;

	open_logs(k, &l, ret_unlogged);
	log_begin(&l, "discard");
	write_logs(k, &l, ret_unlogged);
}

/* Counts for people, without folders that are implied by their content. */
static size_t count_told(const struct change_applied *done, enum change_verdict v)
{
	return done->counts[v] - done->implied[v];
}

static void log_applied(const struct result *k, const struct change_applied *done,
	const struct err *e, struct err *ret_unlogged)
{
	const struct {
		const char *key;
		size_t count;
	} counts[] = {
		{ "done", count_told(done, CHANGE_APPLIED) + count_told(done, CHANGE_MERGED) },
		{ "conflicts", count_told(done, CHANGE_CONFLICT) },
		{ "held", count_told(done, CHANGE_HELD_BACK) },
		{ "failed", count_told(done, CHANGE_FAILED) },
	};
	struct log l;
	struct json *j;

	open_logs(k, &l, ret_unlogged);
	j = log_begin(&l, "apply");
	for (size_t i = 0; i < COUNT_OF(counts); i++)
		json_int(j, counts[i].key, (int64_t)counts[i].count);
	if (e->kind != ERR_NONE)
		json_text(j, "error", e->text);
	else if (done->was_stopped)
		json_text(j, "error", "it was stopped between two files");
	write_logs(k, &l, ret_unlogged);
}

/* --- applying --- */

bool result_is_left(enum change_verdict v)
{
	return v == CHANGE_CONFLICT || v == CHANGE_HELD_BACK || v == CHANGE_FAILED;
}

/*
 * Is everything of the run on the host, after only some of it was asked for? *ret_rest: how many
 * effects are not.
 */
static bool is_all_there(const struct change_apply *q, const struct result *k, size_t *ret_rest)
{
	struct change_apply all = *q;
	struct change_applied result = { 0 };
	struct err e = { 0 };

	all.is_dry = all.takes_held = true;
	all.is_forced = all.merges = false;
	all.path_count = 0;
	all.tell = NULL;
	all.is_stopped = NULL;
	all.progress = (struct change_progress){ 0 };
	if (change_apply(&all, &k->effects, &result, &e) < 0)
		return false;
	for (enum change_verdict v = 0; v < CHANGE_VERDICT_COUNT; v++)
		if (v != CHANGE_THERE && v != CHANGE_NOT_TAKEN)
			*ret_rest += count_told(&result, v);
	return result.counts[CHANGE_THERE] + result.counts[CHANGE_NOT_TAKEN] == k->effects.count;
}

/* Nothing that a run wrote is removed unless every single effect is accounted for. */
static int finish(
	struct result *k, const struct change_apply *q, struct result_applied *ret, struct err *e)
{
	size_t all = 0;

	for (enum change_verdict v = 0; v < CHANGE_VERDICT_COUNT; v++) {
		all += ret->counts.counts[v];
		ret->left += result_is_left(v) ? ret->counts.counts[v] : 0;
	}
	ret->is_finished = !q->is_dry && !ret->left && !ret->counts.was_stopped &&
			   (all == k->effects.count || is_all_there(q, k, &ret->rest));
	return ret->is_finished ? result_remove(k, e) : 0;
}

int result_apply(
	struct result *k, const struct change_apply *how, struct result_applied *ret, struct err *e)
{
	struct change_apply q = *how;
	int r;

	q.run = k->id;
	q.folder = k->folder;
	q.layer = k->layer;
	q.below = k->below;
	q.git = result_git(k);
	q.paths = k->paths;
	q.path_count = k->path_count;
	q.held = k->protected;
	q.held_count = k->protected_count;
	*ret = (struct result_applied){ 0 };
	r = change_apply(&q, &k->effects, &ret->counts, e);
	if (!q.is_dry)
		log_applied(k, &ret->counts, e, &ret->unlogged);
	return r < 0 ? r : finish(k, &q, ret, e);
}

/* --- discarding --- */

int result_discard(struct result *k, struct err *ret_unlogged, struct err *e)
{
	bool has_layer = result_has_layer(k);
	int r;

	if (k->below >= 0 && change_apply_clean(k->folder, k->below, result_git(k), k->id, e) < 0) {
		err_prefix(e, "cannot clean up after %s %s", k->what, k->id);
		return -EIO;
	}
	r = result_remove(k, e);
	if (r == 0 && has_layer)
		log_discarded(k, ret_unlogged);
	return r;
}
