#include "cli/cli_applied.h"

#include <assert.h>
#include <string.h>

#include "base/count.h"
#include "base/own.h"
#include "change/effects/change_json.h"
#include "cli/cli_show.h"

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
void cli_applied_tell(
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
	cli_add_quoted(&line, "", x->path);
	buf_printf(&line, ": %s", verdicts[v].phrase);
	if (why && *why) {
		buf_puts(&line, ": ");
		buf_add_visible(&line, why, strlen(why));
	}
	buf_putc(&line, '\n');
	cli_write(&line, CLI_OK);
}

size_t cli_applied_left(const struct change_applied *r)
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
	cli_add_quoted(&files, "", a->conflict->path);
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

void cli_applied_begin(struct cli_applied *a)
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

int cli_applied_report(struct cli_applied *a, int status)
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
