/*
 * cmd_apply - puts what a run did to the project on the host.
 *
 * Runs as:  the operator, who has locked the run.
 * Leaves:   the project with the effects that were asked for; the run's layer, unless all of it
 *           has been applied.
 * Must not: take anything that was not asked for, or lose anything that was not applied.
 */
#include <signal.h>
#include <string.h>

#include "base/count.h"
#include "change/apply/change_apply.h"
#include "cli/cli_applied.h"
#include "cli/commands.h"

/* The first is for runs: what follows it goes for sessions too. */
const struct cli_option cmd_apply_options[] = {
	{ "run", 0, "RUN", SPEC_KEY_COUNT, NULL, "choose a run [the newest with changes]" },
	{ "merge", 0, NULL, SPEC_KEY_COUNT, NULL,
		"merge with what changed on the host (three-way)" },
	{ "force", 0, NULL, SPEC_KEY_COUNT, NULL, "overwrite what changed on the host" },
	{ "all", 0, NULL, SPEC_KEY_COUNT, NULL, "apply files too that execute by themselves" },
	{ "dry-run", 'n', NULL, SPEC_KEY_COUNT, NULL, "print what would be done, and do nothing" },
	{ 0 },
};

struct apply {
	struct cli_kept kept;
	struct cli_applied told;
};

/* --- what is done --- */

/* The first ^C ends it between two files; the second one at once, which the next call mends. */
static volatile sig_atomic_t has_signal;

static void note_signal(int number)
{
	(void)number;
	has_signal = 1;
}

static bool is_stopped(void *of)
{
	(void)of;
	return has_signal != 0;
}

static void catch_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = note_signal, .sa_flags = (int)SA_RESETHAND };

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < COUNT_OF(numbers); i++)
		sigaction(numbers[i], &action, NULL);
}

static int do_apply(struct apply *a, struct change_apply *q)
{
	int r;

	catch_signals();
	a->told.has_tried = true;
	a->told.progress = cli_progress_begin(a->kept.cli);
	q->progress = cli_progress_of(&a->told.progress);
	r = change_apply(q, &a->kept.effects, &a->told.result, &a->told.error);
	cli_progress_done(&a->told.progress);
	return r == 0 ? CLI_OK : CLI_FAILED;
}

/*
 * Is everything of the run on the host, after only some of it was asked for? *ret_rest: how many
 * are not.
 */
static bool is_all_there(const struct change_apply *q, const struct cli_kept *k, size_t *ret_rest)
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
	for (size_t v = 0; v < CHANGE_VERDICT_COUNT; v++)
		if (v != CHANGE_THERE && v != CHANGE_NOT_TAKEN)
			*ret_rest += result.counts[v] - result.implied[v];
	return result.counts[CHANGE_THERE] + result.counts[CHANGE_NOT_TAKEN] == k->effects.count;
}

/* Nothing that a run wrote is removed unless every single effect is accounted for. */
static int apply_finish(struct apply *a, const struct change_apply *q)
{
	size_t left = cli_applied_left(&a->told.result), all = 0;

	for (size_t v = 0; v < CHANGE_VERDICT_COUNT; v++)
		all += a->told.result.counts[v];
	a->told.is_finished =
		!a->told.is_dry && !left && !a->told.result.was_stopped &&
		(all == a->kept.effects.count || is_all_there(q, &a->kept, &a->told.rest));
	if (a->told.is_finished && cli_kept_remove(&a->kept) != CLI_OK)
		return CLI_FAILED;
	return left || a->told.result.was_stopped ? CLI_NO : CLI_OK;
}

static int carry_out(struct apply *a)
{
	struct cli_kept *k = &a->kept;
	struct change_apply q = {
		.run = k->id,
		.folder = k->folder,
		.layer = k->layer,
		.below = k->below,
		.git = cli_kept_git(k),
		.is_dry = a->told.is_dry,
		.is_forced = cli_value(k->cli, CLI_OPT_FORCE) != NULL,
		.merges = cli_value(k->cli, CLI_OPT_MERGE) != NULL,
		.takes_held = cli_value(k->cli, CLI_OPT_ALL) != NULL,
		.paths = k->paths,
		.path_count = k->path_count,
		.held = k->held,
		.held_count = k->held_count,
		.tell = cli_applied_tell,
		.is_stopped = is_stopped,
		.of = &a->told,
	};
	int status = do_apply(a, &q);

	if (!q.is_dry)
		cli_kept_log_applied(k, &a->told.result, &a->told.error);
	if (status == CLI_OK)
		return apply_finish(a, &q);
	cli_complain_about(
		&a->told.error, "cannot apply %s %s: %s", k->what, k->id, a->told.error.text);
	return status;
}

/* --- the command --- */

static int apply_check_options(const struct cli *cli)
{
	if (!cli_value(cli, CLI_OPT_FORCE) || !cli_value(cli, CLI_OPT_MERGE))
		return CLI_OK;
	cli_complain("cannot use --merge and --force together: choose one");
	return CLI_MISUSE;
}

/* Nothing to do is done; what is not kept any more cannot be. */
static int say_nothing_left(const struct cli_kept *k)
{
	if (k->effects.count) {
		cli_complain(
			"cannot apply %s %s: it was applied or discarded already", k->what, k->id);
		return CLI_NO;
	}
	if (k->folder >= 0 && !k->cli->is_quiet)
		cli_complain("%s %s changed nothing in the project", k->what, k->id);
	return CLI_OK;
}

static int apply_prepare(struct apply *a)
{
	struct cli_kept *k = &a->kept;
	int status = cli_kept_lock(k);

	if (status == CLI_OK)
		status = cli_kept_load(k);
	if (status == CLI_OK && k->was_interrupted && !k->cli->is_quiet)
		cli_complain("%s %s: %s", k->what, k->id, cli_kept_state(k));
	if (status == CLI_OK)
		status = cli_kept_check_paths(k);
	if (status == CLI_OK && cli_kept_has_layer(k))
		status = cli_kept_check_below(k);
	return status;
}

int cmd_apply(struct cli *cli)
{
	struct apply a = { .told.is_dry = cli_value(cli, CLI_OPT_DRY_RUN) != NULL };
	int status = apply_check_options(cli);

	cli_kept_init(&a.kept, cli);
	a.told.kept = &a.kept;
	if (status == CLI_OK)
		status = cli_kept_choose(&a.kept);
	if (status == CLI_OK && a.kept.folder >= 0)
		status = apply_prepare(&a);
	if (status == CLI_OK) {
		cli_applied_begin(&a.told);
		status = cli_kept_has_layer(&a.kept) ? carry_out(&a) : say_nothing_left(&a.kept);
		status = cli_applied_report(&a.told, status);
	}
	cli_kept_done(&a.kept);
	return status;
}
