/*
 * cmd_apply - puts what a run did to the project on the host.
 *
 * Runs as:  the operator, who has locked the run.
 * Leaves:   the project with the effects that were asked for; the run's layer, unless all of it
 *           has been applied.
 * Must not: take anything that was not asked for, or lose anything that was not applied.
 */
#include <assert.h>
#include <signal.h>
#include <string.h>

#include "base/count.h"
#include "base/own.h"
#include "change/apply/change_apply.h"
#include "change/effects/change_json.h"
#include "change/patch/change_patch.h"
#include "cli/cli_applied.h"
#include "cli/commands.h"

/* --- applied --- */

#define MOST_OUTPUT ((size_t)1 << 30)

static const struct {
	const char *word;   /* in JSON */
	const char *phrase; /* in sentences */
	bool is_left;       /* the run's layer has to stay for it */
} verdicts[] = {
	[CHANGE_APPLIED] = { "applied", "applied", false },
	[CHANGE_MERGED] = { "merged", "merged", false },
	[CHANGE_THERE] = { "there", "there already", false },
	[CHANGE_CONFLICT] = { "conflict", "in conflict", true },
	[CHANGE_HELD_BACK] = { "held_back", "held back", true },
	[CHANGE_NOT_TAKEN] = { "not_taken", "never applied", false },
	[CHANGE_FAILED] = { "failed", "failed", true },
};

static_assert(COUNT_OF(verdicts) == CHANGE_VERDICT_COUNT, "a row for each");

static void applied_tell_json(struct cli_applied *a, const struct change_effect *x,
	enum change_verdict v, const char *why)
{
	json_open_map(&a->json, NULL);
	change_json_name(&a->json, "path", "path_hex", x->path);
	json_text(&a->json, "verdict", verdicts[v].word);
	json_text(&a->json, "why", why);
	json_close_map(&a->json);
}

/* Each effect that is not simply applied, in a line. */
static void cli_applied_tell(
	void *of, const struct change_effect *x, enum change_verdict v, const char *why)
{
	struct cli_applied *a = of;
	own(buf) struct buf line = { .max = 8 * CHANGE_MAX_PATH };

	if (v == CHANGE_CONFLICT && !a->conflict)
		a->conflict = x;
	if (a->kept->cli->is_json) {
		applied_tell_json(a, x, v, why);
		return;
	}
	if (v == CHANGE_THERE || (a->kept->cli->is_quiet && !verdicts[v].is_left))
		return;
	cli_progress_clear(&a->progress);
	change_add_quoted(&line, "", x->path);
	buf_printf(&line, ": %s", verdicts[v].phrase);
	if (why && *why) {
		buf_puts(&line, ": ");
		buf_add_visible(&line, why, strlen(why));
	}
	buf_putc(&line, '\n');
	cli_write(&line, CLI_OK);
}

/* How many effects the run's layer has to stay for. */
static size_t cli_applied_left(const struct change_applied *r)
{
	size_t n = 0;

	for (size_t v = 0; v < CHANGE_VERDICT_COUNT; v++)
		n += verdicts[v].is_left ? r->counts[v] : 0;
	return n;
}

/* What was tried already is not advised again. */
static void say_conflict(const struct cli_applied *a)
{
	const struct cli_kept *k = a->kept;
	size_t others = a->result.counts[CHANGE_CONFLICT] - 1;
	own(buf) struct buf files = { .max = 8 * CHANGE_MAX_PATH };

	cli_complain("left alone: files that changed on the host since the %s wrote them", k->what);
	change_add_quoted(&files, "", a->conflict->path);
	if (others)
		buf_printf(&files, " and %zu more", others);
	if (cli_value(k->cli, CLI_OPT_FORCE))
		cli_hint("edit %s by hand, or drop the rest with bawn discard %s", buf_text(&files),
			k->id);
	else if (cli_value(k->cli, CLI_OPT_MERGE))
		cli_hint("edit %s by hand, take the %s's version with bawn apply --force %s, or "
			 "drop it with bawn discard %s",
			buf_text(&files), k->what, k->id, k->id);
	else
		cli_hint("bawn apply --merge %s merges, bawn apply --force %s overwrites them",
			k->id, k->id);
}

/* What to type for what was left out. */
static void say_ways(const struct cli_applied *a)
{
	const size_t *n = a->result.counts;
	const char *id = a->kept->id;

	if (n[CHANGE_CONFLICT] && a->conflict)
		say_conflict(a);
	if (n[CHANGE_HELD_BACK]) {
		cli_complain("held back: files that execute on the host by themselves");
		cli_hint(
			"read them: bawn diff %s; then name them: bawn apply %s PATH, or: bawn apply --all %s",
			id, id, id);
	}
	if (n[CHANGE_FAILED])
		cli_hint("try again what failed: bawn apply %s", id);
	if (a->result.was_stopped) {
		cli_complain("stopped before the end");
		cli_hint("apply the rest: bawn apply %s", id);
	}
}

/* What was not asked for is still to come; the newest run is meant without its id. */
static void add_rest(const struct cli_applied *a, struct buf *line)
{
	const struct cli_kept *k = a->kept;
	bool has_name = k->has_named_run || cli_value(k->cli, CLI_OPT_RUN);
	const char *id = has_name ? k->id : "", *blank = has_name ? " " : "";

	buf_printf(line, "; %zu left: bawn diff%s%s, bawn apply%s%s or bawn discard%s%s", a->rest,
		blank, id, blank, id, blank, id);
}

static void print_sum(struct cli_applied *a)
{
	own(buf) struct buf line = { .max = 4096 };
	bool is_first = true;

	if (a->result.was_interrupted)
		buf_puts(&line, "an earlier apply was interrupted, and is finished now\n");
	buf_puts(&line, a->is_dry ? "would be: " : "");
	for (size_t v = 0; v < CHANGE_VERDICT_COUNT; v++) {
		size_t n = a->result.counts[v] - a->result.implied[v];

		if (!n)
			continue;
		buf_printf(&line, "%s%zu %s", is_first ? "" : ", ", n, verdicts[v].phrase);
		is_first = false;
	}
	buf_puts(&line, is_first ? "nothing to apply" : "");
	if (a->rest)
		add_rest(a, &line);
	buf_putc(&line, '\n');
	if (a->is_finished)
		buf_printf(
			&line, "%s %s has no changes left to apply\n", a->kept->what, a->kept->id);
	cli_write(&line, CLI_OK);
}

static int applied_print_json(struct cli_applied *a, int status)
{
	struct json *j = &a->json;

	json_close_list(j);
	json_open_map(j, "counts");
	for (size_t v = 0; v < CHANGE_VERDICT_COUNT; v++)
		json_int(j, verdicts[v].word, (int64_t)a->result.counts[v]);
	json_close_map(j);
	json_bool(j, "was_interrupted", a->result.was_interrupted);
	json_bool(j, "was_stopped", a->result.was_stopped);
	json_text(j, "error", a->error.kind == ERR_NONE ? NULL : a->error.text);
	json_bool(j, "finished", a->is_finished);
	json_close_map(j);
	buf_putc(&a->output, '\n');
	return cli_write(&a->output, status);
}

static void cli_applied_begin(struct cli_applied *a)
{
	struct json *j = &a->json;

	if (!a->kept->cli->is_json)
		return;
	buf_init(&a->output, MOST_OUTPUT);
	json_init(j, &a->output, 0);
	json_open_map(j, NULL);
	json_int(j, "version", 1);
	json_text(j, a->kept->what, a->kept->folder < 0 ? NULL : a->kept->id);
	json_text(j, "project", a->kept->project[0] ? a->kept->project : NULL);
	json_bool(j, "dry_run", a->is_dry);
	json_open_list(j, "effects");
}

/* Also after a failure: what was applied stays applied. Gives back the status. */
static int cli_applied_report(struct cli_applied *a, int status)
{
	const struct cli *cli = a->kept->cli;

	if (cli->is_json)
		status = applied_print_json(a, status);
	else if (a->has_tried && !cli->is_quiet)
		print_sum(a);
	if (status == CLI_NO && a->has_tried && !a->is_dry && !cli->is_json)
		say_ways(a);
	buf_done(&a->output);
	return status;
}

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
