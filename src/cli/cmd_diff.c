/*
 * cmd_diff - shows what a run did to the project.
 *
 * Runs as:  the operator.
 * Reads:    the run's folder and the files it changed.
 * Leaves:   effects.json where the run was interrupted, and nothing else.
 * Must not: let a name or a line that a stranger wrote command the operator's terminal.
 */
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/own.h"
#include "change/apply/change_apply.h"
#include "change/patch/change_patch.h"
#include "cli/cli_result.h"
#include "cli/cli_show.h"
#include "cli/commands.h"

#define MOST_JSON ((size_t)2 << 30)

/* The first is for runs: what follows it goes for sessions too. */
const struct cli_option cmd_diff_options[] = {
	CLI_OWN("run", 0, "RUN", "choose a run [the newest with changes]"),
	CLI_OWN("stat", 0, NULL, "print one line per file"),
	CLI_OWN("name-only", 0, NULL, "print paths only, quoted as git does"),
	CLI_OWN("null", 'z', NULL, "with --name-only: end each path with NUL, unquoted"),
	{ 0 },
};

/* --- lines --- */

static void diff_line(void *of, enum change_line kind, const char *bytes, size_t n)
{
	static const enum cli_ink inks[CHANGE_LINE_KINDS] = {
		[CHANGE_LINE_PLAIN] = CLI_INK_PLAIN,
		[CHANGE_LINE_HEAD] = CLI_INK_HEAD,
		[CHANGE_LINE_HUNK] = CLI_INK_HUNK,
		[CHANGE_LINE_ADDED] = CLI_INK_ADDED,
		[CHANGE_LINE_REMOVED] = CLI_INK_REMOVED,
		[CHANGE_LINE_NOTE] = CLI_INK_NOTE,
		[CHANGE_LINE_WARNING] = CLI_INK_WARNING,
	};

	cli_show_line(of, inks[kind], bytes, n);
}

static void diff_hunks(void *of, const char *bytes, size_t n)
{
	cli_show_hunks(of, bytes, n);
}

static void diff_raw(void *of, const char *bytes, size_t n)
{
	cli_show_raw(of, bytes, n);
}

static struct change_patch make_patch(const struct result *k, struct cli_show *out)
{
	return (struct change_patch){
		.effects = &k->effects,
		.layer = k->layer,
		.below = k->below,
		.base = k->base,
		.git = result_git(k),
		.is_growing = k->is_going_on,
		.paths = k->paths,
		.path_count = k->path_count,
		.to = { diff_line, diff_hunks, diff_raw, out, out->has_color, false },
	};
}

/* --- what is left of it --- */

/* Effects that are shown even if the host may have them already. */
static void tell_unknown(const struct result_there *f, struct change_lines *to)
{
	own(buf) struct buf text = { .max = CHANGE_PATCH_LINE };

	if (f->has_failed) {
		buf_puts(&text,
			"# what is on the host already could not be found out, and is shown: ");
		buf_add_visible(&text, f->e.text, strlen(f->e.text));
		to->line(to->of, CHANGE_LINE_WARNING, buf_text(&text), text.len);
	} else if (f->unknown) {
		buf_printf(&text,
			"whether it is on the host already could not be found out, and "
			"it is shown: %zu, as ",
			f->unknown);
		change_patch_note(
			to, CHANGE_LINE_WARNING, buf_text(&text), f->example->path, f->why);
	}
}

static bool diff_is_shown(const struct result *k, const struct change_effect *x)
{
	return result_is_chosen(k, x) && !(k->is_there && k->is_there[x - k->effects.items]);
}

/* --- as a patch --- */

/* The effects to show first, and their headings. */
static const struct {
	enum change_mark mark;
	const char *heading;
} marked[] = {
	{ CHANGE_HELD,
		"# These run on the host without being called: bawn apply takes them only by "
		"name, or with --all." },
	{ CHANGE_RUNS, "# These run on the host when somebody builds, tests or installs." },
};

static bool show_marked(
	const struct result *k, size_t which, struct change_patch *patch, struct cli_show *out)
{
	const struct change_effects *x = &k->effects;
	bool has_any = false;

	for (size_t i = 0; i < x->count && !cli_show_is_over(out); i++) {
		if (x->items[i].mark != marked[which].mark || x->items[i].is_implied ||
			!diff_is_shown(k, &x->items[i]))
			continue;
		if (!has_any)
			cli_show_text(out, CLI_INK_WARNING, "%s", marked[which].heading);
		has_any = true;
		change_patch_show(patch, &x->items[i]);
	}
	return has_any;
}

static void diff_show_rest(const struct result *k, struct change_patch *patch, struct cli_show *out)
{
	const struct change_effects *x = &k->effects;

	for (size_t i = 0; i < x->count && !cli_show_is_over(out); i++) {
		const struct change_effect *at = &x->items[i];

		if (at->mark == CHANGE_HELD || at->mark == CHANGE_RUNS || !diff_is_shown(k, at))
			continue;
		if (k->path_count == 0 && change_is_bookkeeping(at))
			i += change_patch_bookkeeping(patch, i) - 1;
		else
			change_patch_show(patch, at);
	}
}

static void show_patch(
	const struct result *k, const struct result_there *found, struct cli_show *out)
{
	struct change_patch patch = make_patch(k, out);
	const char *state = result_state(k);
	size_t there = result_count_there(k);
	bool has_marked = false;

	cli_show_text(out, CLI_INK_NOTE, "# %s %s%s%s", k->what, k->id, *state ? ": " : "", state);
	if (there)
		cli_show_text(
			out, CLI_INK_NOTE, "# on the host already, and not shown: %zu", there);
	tell_unknown(found, &patch.to);
	for (size_t i = 0; i < COUNT_OF(marked); i++)
		has_marked |= show_marked(k, i, &patch, out);
	if (has_marked)
		cli_show_text(out, CLI_INK_NOTE, "# Everything else.");
	diff_show_rest(k, &patch, out);
}

/* --- in other forms --- */

static void show_names(const struct cli *cli, const struct result *k, struct cli_show *out)
{
	bool ends_with_nul = cli_value(cli, CLI_OPT_NULL) && !out->for_person;

	for (size_t i = 0; i < k->effects.count && !cli_show_is_over(out); i++) {
		const struct change_effect *x = &k->effects.items[i];
		own(buf) struct buf line = { .max = 8 * CHANGE_MAX_PATH };

		if (x->is_implied || !result_is_chosen(k, x))
			continue;
		if (ends_with_nul) {
			cli_show_raw(out, x->path, strlen(x->path) + 1);
			continue;
		}
		change_add_quoted(&line, "", x->path);
		buf_putc(&line, '\n');
		cli_show_raw(out, buf_text(&line), line.len);
	}
}

static bool is_chosen(void *of, const struct change_effect *x)
{
	return result_is_chosen(of, x);
}

static int diff_print_json(struct result *k)
{
	own(buf) struct buf out = { .max = MOST_JSON };

	change_effects_print(&k->effects, is_chosen, k, &out);
	return cli_write(&out, CLI_OK);
}

static bool wants_content(const struct cli *cli)
{
	return !cli->is_json && !cli_value(cli, CLI_OPT_STAT) && !cli_value(cli, CLI_OPT_NAME_ONLY);
}

static int diff_show(const struct cli *cli, struct result *k)
{
	struct result_there found = { 0 };
	struct change_patch patch;
	struct cli_show out;

	if (cli->is_json)
		return diff_print_json(k);
	if (wants_content(cli))
		result_find_there(k, &found);
	cli_show_open(&out, cli, cli_value(cli, CLI_OPT_NULL) == NULL);
	patch = make_patch(k, &out);
	if (cli_value(cli, CLI_OPT_NAME_ONLY))
		show_names(cli, k, &out);
	else if (cli_value(cli, CLI_OPT_STAT))
		change_stat_show(&patch, out.width);
	else
		show_patch(k, &found, &out);
	return cli_show_close(&out, CLI_OK);
}

/* --- the command --- */

static int diff_check_options(const struct cli *cli)
{
	int forms = cli->is_json + (cli_value(cli, CLI_OPT_STAT) != NULL) +
		    (cli_value(cli, CLI_OPT_NAME_ONLY) != NULL);

	if (forms > 1) {
		cli_complain(
			"cannot print two forms: choose one of --stat, --name-only and --json");
		return CLI_MISUSE;
	}
	if (cli_value(cli, CLI_OPT_NULL) && !cli_value(cli, CLI_OPT_NAME_ONLY)) {
		cli_complain("cannot use -z without --name-only");
		return CLI_MISUSE;
	}
	return CLI_OK;
}

static int show_effects(const struct cli *cli, struct result *k)
{
	int status = cli_check_paths(k);

	if (status != CLI_OK)
		return status;
	if (k->effects.count == 0 && !cli->is_json) {
		if (!cli->is_quiet)
			cli_complain("%s %s changed nothing in the project", k->what, k->id);
		return CLI_OK;
	}
	if (!result_has_layer(k) && wants_content(cli)) {
		cli_complain("cannot show the changes of %s %s: they were applied or discarded",
			k->what, k->id);
		cli_hint("--stat still lists them");
		return CLI_NO;
	}
	if (!wants_content(cli) && *result_state(k))
		cli_complain("%s %s: %s", k->what, k->id, result_state(k));
	return diff_show(cli, k);
}

int cmd_diff(struct cli *cli)
{
	own(result) struct result k;
	struct result_words words;
	int status = diff_check_options(cli);

	result_init(&k);
	if (status == CLI_OK)
		status = cli_choose_result(cli, &k, &words);
	if (status == CLI_OK && k.folder >= 0)
		status = cli_load_result(cli, &k);
	if (status != CLI_OK)
		return status;
	/* --json prints an object even if there is no run. */
	if (k.folder < 0)
		return cli->is_json ? diff_print_json(&k) : CLI_OK;
	return show_effects(cli, &k);
}
