/*
 * cli_kept_log - says in a run's log, and in that of all runs, what became of its work.
 *
 * Runs as:  the operator, who has locked the run.
 * Must not: undo or hinder what was done: what cannot be logged is told, and that is all.
 */
#include <unistd.h>

#include "base/count.h"
#include "base/own.h"
#include "cli/cli_kept.h"
#include "proof/log/log.h"

/* Opens both; one that cannot be opened leaves the other. */
static void open_log(const struct cli_kept *k, struct log *ret)
{
	struct err e = { 0 };
	int state = record_open_state(run_home(), false, &e);

	log_init(ret, state, k->is_session ? NULL : k->id, k->is_session ? k->id : NULL);
	/* The chain of a run is in its folder; a session has none of its own. */
	if (state < 0 || (!k->is_session && log_open_chain(ret, k->folder, &e) < 0))
		cli_complain_about(
			&e, "what became of %s %s is not in its log: %s", k->what, k->id, e.text);
}

static void write_log(const struct cli_kept *k, struct log *l)
{
	int state = l->state;

	log_end(l);
	if (log_write(l) < 0)
		cli_complain_about(&l->failure, "what became of %s %s is not in its log: %s",
			k->what, k->id, l->failure.text);
	log_done(l);
	if (state >= 0)
		close(state);
}

void cli_kept_log_discarded(const struct cli_kept *k)
{
	struct log l;

	open_log(k, &l);
	log_begin(&l, "discard");
	write_log(k, &l);
}

/* As people are told: without folders that come and go with what is in them. */
static size_t kept_log_count(const struct change_applied *done, enum change_verdict v)
{
	return done->counts[v] - done->implied[v];
}

void cli_kept_log_applied(
	const struct cli_kept *k, const struct change_applied *done, const struct err *e)
{
	const struct {
		const char *key;
		size_t count;
	} counts[] = {
		{ "done", kept_log_count(done, CHANGE_APPLIED) +
				  kept_log_count(done, CHANGE_MERGED) },
		{ "conflicts", kept_log_count(done, CHANGE_CONFLICT) },
		{ "held", kept_log_count(done, CHANGE_HELD_BACK) },
		{ "failed", kept_log_count(done, CHANGE_FAILED) },
	};
	struct log l;
	struct json *j;

	open_log(k, &l);
	j = log_begin(&l, "apply");
	for (size_t i = 0; i < COUNT_OF(counts); i++)
		json_int(j, counts[i].key, (int64_t)counts[i].count);
	if (e->kind != ERR_NONE)
		json_text(j, "error", e->text);
	else if (done->was_stopped)
		json_text(j, "error", "it was stopped between two files");
	write_log(k, &l);
}
