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
#include "cli/cli_result.h"
#include "cli/cli_run.h"
#include "cli/commands.h"

#define MOST_OUTPUT ((size_t)1 << 30)

/* The outcome of an apply, to be printed for people or as JSON. */
struct applied {
	const struct cli *cli;
	const struct result *kept;
	bool is_named; /* by the command line */
	struct cli_progress progress;
	bool is_dry;
	bool has_tried; /* there was something to apply */
	struct result_applied result;
	const struct change_effect *conflict; /* the first that was left alone; or NULL */
	struct err error;                     /* that ended it */
	struct buf output;                    /* with --json, until the end */
	struct json json;
};

static const struct {
	const char *word;   /* in JSON */
	const char *phrase; /* in sentences */
} verdicts[] = {
	[CHANGE_APPLIED] = { "applied", "applied" },
	[CHANGE_MERGED] = { "merged", "merged" },
	[CHANGE_THERE] = { "there", "there already" },
	[CHANGE_CONFLICT] = { "conflict", "in conflict" },
	[CHANGE_HELD_BACK] = { "held_back", "held back" },
	[CHANGE_NOT_TAKEN] = { "not_taken", "never applied" },
	[CHANGE_FAILED] = { "failed", "failed" },
};

static_assert(COUNT_OF(verdicts) == CHANGE_VERDICT_COUNT, "a row for each");

static void applied_tell_json(
	struct applied *a, const struct change_effect *x, enum change_verdict v, const char *why)
{
	json_open_map(&a->json, NULL);
	change_json_name(&a->json, "path", "path_hex", x->path);
	json_text(&a->json, "verdict", verdicts[v].word);
	json_text(&a->json, "why", why);
	json_close_map(&a->json);
}

/* Each effect that is not simply applied, in a line. */
static void applied_tell(
	void *of, const struct change_effect *x, enum change_verdict v, const char *why)
{
	struct applied *a = of;
	own(buf) struct buf line = { .max = 8 * CHANGE_MAX_PATH };

	if (v == CHANGE_CONFLICT && !a->conflict)
		a->conflict = x;
	if (a->cli->is_json) {
		applied_tell_json(a, x, v, why);
		return;
	}
	if (v == CHANGE_THERE || (a->cli->is_quiet && !result_is_left(v)))
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

/* Does not suggest what was just tried. */
static void say_conflict(const struct applied *a)
{
	const struct result *k = a->kept;
	size_t others = a->result.counts.counts[CHANGE_CONFLICT] - 1;
	own(buf) struct buf files = { .max = 8 * CHANGE_MAX_PATH };

	cli_complain("left alone: files that changed on the host since the %s wrote them", k->what);
	change_add_quoted(&files, "", a->conflict->path);
	if (others)
		buf_printf(&files, " and %zu more", others);
	if (cli_value(a->cli, CLI_OPT_FORCE))
		cli_hint("edit %s by hand, or drop the rest with bawn discard %s", buf_text(&files),
			k->id);
	else if (cli_value(a->cli, CLI_OPT_MERGE))
		cli_hint("edit %s by hand, take the %s's version with bawn apply --force %s, or "
			 "drop it with bawn discard %s",
			buf_text(&files), k->what, k->id, k->id);
	else
		cli_hint("bawn apply --merge %s merges, bawn apply --force %s overwrites them",
			k->id, k->id);
}

/* Suggests a command for the effects that were not applied. */
static void say_ways(const struct applied *a)
{
	const size_t *n = a->result.counts.counts;
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
	if (a->result.counts.was_stopped) {
		cli_complain("stopped before the end");
		cli_hint("apply the rest: bawn apply %s", id);
	}
}

/* Other effects are pending. Without an id a command means the newest run. */
static void add_rest(const struct applied *a, struct buf *line)
{
	const char *id = a->is_named ? a->kept->id : "", *blank = a->is_named ? " " : "";

	buf_printf(line, "; %zu left: bawn diff%s%s, bawn apply%s%s or bawn discard%s%s",
		a->result.rest, blank, id, blank, id, blank, id);
}

static void print_sum(struct applied *a)
{
	own(buf) struct buf line = { .max = 4096 };
	bool is_first = true;

	if (a->result.counts.was_interrupted)
		buf_puts(&line, "an earlier apply was interrupted, and is finished now\n");
	buf_puts(&line, a->is_dry ? "would be: " : "");
	for (size_t v = 0; v < CHANGE_VERDICT_COUNT; v++) {
		size_t n = a->result.counts.counts[v] - a->result.counts.implied[v];

		if (!n)
			continue;
		buf_printf(&line, "%s%zu %s", is_first ? "" : ", ", n, verdicts[v].phrase);
		is_first = false;
	}
	buf_puts(&line, is_first ? "nothing to apply" : "");
	if (a->result.rest)
		add_rest(a, &line);
	buf_putc(&line, '\n');
	if (a->result.is_finished)
		buf_printf(
			&line, "%s %s has no changes left to apply\n", a->kept->what, a->kept->id);
	cli_write(&line, CLI_OK);
}

static int applied_print_json(struct applied *a, int status)
{
	struct json *j = &a->json;

	json_close_list(j);
	json_open_map(j, "counts");
	for (size_t v = 0; v < CHANGE_VERDICT_COUNT; v++)
		json_int(j, verdicts[v].word, (int64_t)a->result.counts.counts[v]);
	json_close_map(j);
	json_bool(j, "was_interrupted", a->result.counts.was_interrupted);
	json_bool(j, "was_stopped", a->result.counts.was_stopped);
	json_text(j, "error", a->error.kind == ERR_NONE ? NULL : a->error.text);
	json_bool(j, "finished", a->result.is_finished);
	cli_json_end(j);
	return cli_write(&a->output, status);
}

static void applied_begin(struct applied *a)
{
	struct json *j = &a->json;

	if (!a->cli->is_json)
		return;
	buf_init(&a->output, MOST_OUTPUT);
	cli_json_begin(j, &a->output);
	json_text(j, a->kept->what, a->kept->folder < 0 ? NULL : a->kept->id);
	json_text(j, "project", a->kept->project[0] ? a->kept->project : NULL);
	json_bool(j, "dry_run", a->is_dry);
	json_open_list(j, "effects");
}

/* Also after a failure: what was applied stays applied. Gives back the status. */
static int applied_report(struct applied *a, int status)
{
	const struct cli *cli = a->cli;

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
	CLI_OWN("run", 0, "RUN", "choose a run [the newest with changes]"),
	CLI_OWN("merge", 0, NULL, "merge with what changed on the host (three-way)"),
	CLI_OWN("force", 0, NULL, "overwrite what changed on the host"),
	CLI_OWN("all", 0, NULL, "apply files too that execute by themselves"),
	CLI_OWN("dry-run", 'n', NULL, "print what would be done, and do nothing"),
	{ 0 },
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

static int carry_out(struct applied *a, struct result *k)
{
	const struct change_apply how = {
		.is_dry = a->is_dry,
		.is_forced = cli_value(a->cli, CLI_OPT_FORCE) != NULL,
		.merges = cli_value(a->cli, CLI_OPT_MERGE) != NULL,
		.takes_held = cli_value(a->cli, CLI_OPT_ALL) != NULL,
		.progress = cli_progress_of(&a->progress),
		.tell = applied_tell,
		.is_stopped = is_stopped,
		.of = a,
	};
	int r;

	catch_signals();
	a->has_tried = true;
	a->progress = cli_progress_begin(a->cli);
	r = result_apply(k, &how, &a->result, &a->error);
	cli_progress_done(&a->progress);
	if (a->result.unlogged.kind != ERR_NONE)
		cli_complain_err(&a->result.unlogged);
	if (r == 0)
		return a->result.left || a->result.counts.was_stopped ? CLI_NO : CLI_OK;
	if (a->result.is_finished)
		cli_complain_err(&a->error);
	else
		cli_complain_about(
			&a->error, "cannot apply %s %s: %s", k->what, k->id, a->error.text);
	return CLI_FAILED;
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
static int say_nothing_left(const struct cli *cli, const struct result *k)
{
	if (k->effects.count) {
		cli_complain(
			"cannot apply %s %s: it was applied or discarded already", k->what, k->id);
		return CLI_NO;
	}
	if (k->folder >= 0 && !cli->is_quiet)
		cli_complain("%s %s changed nothing in the project", k->what, k->id);
	return CLI_OK;
}

static int apply_prepare(const struct cli *cli, struct result *k)
{
	struct err e = { 0 };
	int status = CLI_OK;

	if (result_lock(k, cli_command_word(cli->command), &e) < 0)
		return cli_fail(&e);
	status = cli_load_result(cli, k);
	if (status == CLI_OK && k->was_interrupted && !cli->is_quiet)
		cli_complain("%s %s: %s", k->what, k->id, result_state(k));
	if (status == CLI_OK)
		status = cli_check_paths(k);
	if (status == CLI_OK && result_has_layer(k) && result_check_below(k, &e) < 0)
		status = cli_fail(&e);
	return status;
}

int cmd_apply(struct cli *cli)
{
	own(result) struct result k;
	struct applied a = {
		.cli = cli, .kept = &k, .is_dry = cli_value(cli, CLI_OPT_DRY_RUN) != NULL
	};
	struct result_words words = { 0 };
	int status = apply_check_options(cli);

	result_init(&k);
	if (status == CLI_OK)
		status = cli_choose_result(cli, &k, &words);
	if (status == CLI_OK && k.folder >= 0)
		status = apply_prepare(cli, &k);
	if (status != CLI_OK)
		return status;
	a.is_named = words.is_named || words.run;
	applied_begin(&a);
	status = result_has_layer(&k) ? carry_out(&a, &k) : say_nothing_left(cli, &k);
	return applied_report(&a, status);
}
