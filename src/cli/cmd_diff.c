/*
 * cmd_diff - shows what a run did to the project.
 *
 * Runs as:  the operator.
 * Reads:    the run's folder and the files it changed.
 * Leaves:   effects.json where the run was interrupted, and nothing else.
 * Must not: let a name or a line that a stranger wrote command the operator's terminal.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/own.h"
#include "change/apply/change_apply.h"
#include "cli/cli_kept.h"
#include "cli/cli_patch.h"
#include "cli/cli_show.h"
#include "cli/commands.h"

/* --- stat --- */

#define MOST_NAME (16 * CHANGE_MAX_PATH)

struct stat_table {
	const struct cli_kept *kept;
	struct cli_show *out; /* NULL: only widths are taken */
	size_t name_width, number_width, graph_width;
	uint64_t most; /* lines changed in one file */
	size_t files;
	uint64_t added, removed;
	struct buf name, line; /* of the row at hand */
};

static const char *const letters[] = {
	[CHANGE_PLAIN] = " ",
	[CHANGE_RUNS] = "*",
	[CHANGE_HELD] = "!",
	[CHANGE_LOCK] = " ",
};

/* --- one row --- */

/* What a name and a number of lines do not say, as git's --compact-summary has it. */
static const char *remark(const struct change_effect *x)
{
	bool was_exec = x->before.type == CHANGE_FILE && x->before.mode & 0100,
	     is_exec = x->after.type == CHANGE_FILE && x->after.mode & 0100;

	if (x->change == CHANGE_DELETED)
		return " (gone)";
	if (x->change == CHANGE_ADDED && x->after.type == CHANGE_LINK)
		return " (new +l)";
	if (x->change == CHANGE_ADDED)
		return is_exec ? " (new +x)" : " (new)";
	if (x->before.type != x->after.type)
		return x->after.type == CHANGE_LINK ? " (mode +l)" : " (mode -l)";
	return was_exec == is_exec ? "" : is_exec ? " (mode +x)" : " (mode -x)";
}

static void stat_add_name(struct buf *out, const struct change_effect *x)
{
	if (x->from) {
		cli_add_quoted(out, "", x->from);
		buf_puts(out, " => ");
	}
	cli_add_quoted(out, "", x->path);
	buf_puts(out, remark(x));
}

/* What stands for the number of lines where there are none to count. */
static void add_size(struct buf *out, const struct change_effect *x)
{
	const struct change_state *old = &x->before, *new = &x->after;

	if (old->type == CHANGE_FOLDER || new->type == CHANGE_FOLDER)
		buf_puts(out, "folder");
	else if (old->type == CHANGE_SPECIAL || new->type == CHANGE_SPECIAL)
		buf_puts(out, "special file");
	else if (x->change == CHANGE_RENAMED)
		buf_puts(out, "0");
	else if (x->change == CHANGE_DELETED)
		buf_printf(out, "%" PRIu64 " bytes", old->size);
	else if (new->type == CHANGE_LINK)
		buf_puts(out, "link");
	else
		buf_printf(out, "Bin %" PRIu64 " -> %" PRIu64 " bytes", old->size, new->size);
}

/* A share of the graph, at least one column of it where there is anything. */
static size_t scale(const struct stat_table *t, uint64_t n)
{
	if (t->most <= t->graph_width || n == 0)
		return (size_t)n;
	return 1 + (size_t)(n * (t->graph_width - 1) / t->most);
}

static void add_graph(const struct stat_table *t, struct buf *out, const struct change_effect *x)
{
	uint64_t total = (uint64_t)x->lines_added + x->lines_removed;
	size_t width = scale(t, total), plus = scale(t, x->lines_added);
	bool has_color = t->out->has_color;

	if (plus == width && x->lines_removed && plus > 1)
		plus--;
	if (!x->lines_added)
		plus = 0;
	if (has_color)
		buf_puts(out, "\x1b[32m");
	buf_repeat(out, '+', plus);
	if (has_color)
		buf_puts(out, "\x1b[31m");
	buf_repeat(out, '-', x->lines_removed && width > plus ? width - plus : 0);
	if (has_color)
		buf_puts(out, "\x1b[m");
}

/* Begins a row with its name. */
static void stat_print_name(struct stat_table *t, const char *letter)
{
	struct buf *line = &t->line;
	const struct buf *name = &t->name;
	size_t n = name->len;

	line->len = 0;
	buf_puts(line, letter);

	if (n > t->name_width) {
		buf_puts(line, "...");
		buf_add(line, name->data + n - (t->name_width - 3), t->name_width - 3);
	} else {
		buf_add(line, name->data, n);
		buf_repeat(line, ' ', t->name_width - n);
	}
	buf_puts(line, " | ");
}

static void count_row(struct stat_table *t, const struct change_effect *x)
{
	uint64_t lines = (uint64_t)x->lines_added + x->lines_removed;

	t->files++;
	t->added += x->lines_added;
	t->removed += x->lines_removed;
	if (x->is_text && lines > t->most)
		t->most = lines;
	if (t->name.len > t->name_width)
		t->name_width = t->name.len;
}

static void take_row(struct stat_table *t, const struct change_effect *x)
{
	struct buf *line = &t->line;

	t->name.len = 0;
	stat_add_name(&t->name, x);
	if (!t->out) {
		count_row(t, x);
		return;
	}
	stat_print_name(t, letters[x->mark]);
	if (x->is_text && x->change != CHANGE_DELETED) {
		buf_printf(line, "%*" PRIu64 " ", (int)t->number_width,
			(uint64_t)x->lines_added + x->lines_removed);
		add_graph(t, line, x);
	} else {
		add_size(line, x);
	}
	buf_putc(line, '\n');
	cli_show_raw(t->out, buf_text(line), line->len);
}

/* --- all of them --- */

/* The bookkeeping of a repository is one row. */
static void take_git(struct stat_table *t, size_t from, size_t count)
{
	own(buf) struct buf folder = { .max = CHANGE_MAX_PATH };
	size_t files = 0;

	for (size_t i = from; i < from + count; i++)
		files += cli_git_owns(&t->kept->effects.items[i]) &&
			 !t->kept->effects.items[i].is_implied;
	buf_add(&folder, t->kept->effects.items[from].path,
		cli_git_folder(&t->kept->effects.items[from]));
	t->name.len = 0;
	cli_add_quoted(&t->name, "", buf_text(&folder));
	if (!t->out) {
		t->files += files;
		if (t->name.len > t->name_width)
			t->name_width = t->name.len;
		return;
	}
	if (!files)
		return;
	stat_print_name(t, " ");
	buf_printf(&t->line, "%zu of git's own\n", files);
	cli_show_raw(t->out, buf_text(&t->line), t->line.len);
}

static void take_marked(struct stat_table *t, enum change_mark mark)
{
	const struct change_effects *x = &t->kept->effects;

	for (size_t i = 0; i < x->count; i++)
		if (x->items[i].mark == mark && !x->items[i].is_implied &&
			cli_kept_is_chosen(t->kept, &x->items[i]))
			take_row(t, &x->items[i]);
}

static void take_rest(struct stat_table *t)
{
	const struct change_effects *x = &t->kept->effects;

	for (size_t i = 0; i < x->count; i++) {
		const struct change_effect *at = &x->items[i];

		if (t->kept->path_count == 0 && cli_git_owns(at)) {
			size_t n = cli_git_count(x, i);

			take_git(t, i, n);
			i += n - 1;
		} else if (at->mark != CHANGE_HELD && at->mark != CHANGE_RUNS && !at->is_implied &&
			   cli_kept_is_chosen(t->kept, at)) {
			take_row(t, at);
		}
	}
}

static void take_all(struct stat_table *t)
{
	take_marked(t, CHANGE_HELD);
	take_marked(t, CHANGE_RUNS);
	take_rest(t);
}

/* Names get what they need up to five eighths of the width, as git has it; the graph the rest. */
static void lay_out(struct stat_table *t, unsigned width)
{
	size_t most_name = (size_t)width * 5 / 8, used;
	char digits[24];

	t->number_width = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, t->most);
	if (t->name_width > most_name)
		t->name_width = most_name;
	used = t->name_width + t->number_width + 6;
	t->graph_width = width > used + 10 ? width - used : 10;
}

static void show_sum(const struct stat_table *t)
{
	own(buf) struct buf line = { .max = 1024 };
	struct change_sum sum;

	buf_printf(&line, " %zu file%s changed", t->files, t->files == 1 ? "" : "s");
	if (t->added)
		buf_printf(
			&line, ", %" PRIu64 " insertion%s(+)", t->added, t->added == 1 ? "" : "s");
	if (t->removed)
		buf_printf(&line, ", %" PRIu64 " deletion%s(-)", t->removed,
			t->removed == 1 ? "" : "s");
	cli_show_line(t->out, CLI_INK_PLAIN, buf_text(&line), line.len);
	change_sum_up(&t->kept->effects, &sum);
	if (sum.held)
		cli_show_text(t->out, CLI_INK_WARNING,
			" ! runs on the host without being called: bawn apply takes it by name, or "
			"with --all");
	if (sum.runs)
		cli_show_text(t->out, CLI_INK_NOTE,
			" * runs on the host when somebody builds, tests or installs");
}

/* Each effect in a line, with how much it is: by what the effects say, without a look at files. */
static void cli_stat_show(const struct cli_kept *k, struct cli_show *out)
{
	struct stat_table t = { .kept = k, .name.max = MOST_NAME, .line.max = MOST_NAME };

	take_all(&t);
	lay_out(&t, out->width);
	t.out = out;
	if (t.files)
		take_all(&t);
	show_sum(&t);
	buf_done(&t.name);
	buf_done(&t.line);
}

#define MOST_JSON ((size_t)2 << 30)

/* The first is for runs: what follows it goes for sessions too. */
const struct cli_option cmd_diff_options[] = {
	{ "run", 0, "RUN", SPEC_KEY_COUNT, NULL, "choose a run [the newest with changes]" },
	{ "stat", 0, NULL, SPEC_KEY_COUNT, NULL, "print one line per file" },
	{ "name-only", 0, NULL, SPEC_KEY_COUNT, NULL, "print paths only, quoted as git does" },
	{ "null", 'z', NULL, SPEC_KEY_COUNT, NULL,
		"with --name-only: end each path with NUL, unquoted" },
	{ 0 },
};

/* --- what is left of it --- */

/* What is shown though it may be there. */
static void tell_unknown(const struct cli_there *f, struct cli_show *out)
{
	own(buf) struct buf text = { .max = CLI_PATCH_LINE };

	if (f->has_failed) {
		buf_puts(&text, out->is_aside ? "" : "# ");
		buf_puts(&text,
			"what is on the host already could not be found out, and is shown: ");
		buf_add_visible(&text, f->e.text, strlen(f->e.text));
		cli_show_line(out, CLI_INK_WARNING, buf_text(&text), text.len);
	} else if (f->unknown) {
		buf_printf(&text,
			"whether it is on the host already could not be found out, and "
			"it is shown: %zu, as ",
			f->unknown);
		cli_patch_note(out, CLI_INK_WARNING, buf_text(&text), f->example->path, f->why);
	}
}

static bool diff_is_shown(const struct cli_kept *k, const struct change_effect *x)
{
	return cli_kept_is_chosen(k, x) && !(k->is_there && k->is_there[x - k->effects.items]);
}

/* --- as a patch --- */

/* What is in front, and under which heading. */
static const struct {
	enum change_mark mark;
	const char *heading;
} marked[] = {
	{ CHANGE_HELD,
		"# These run on the host without being called: bawn apply takes them only by "
		"name, or with --all." },
	{ CHANGE_RUNS, "# These run on the host when somebody builds, tests or installs." },
};

static bool show_marked(const struct cli_kept *k, size_t which, struct cli_show *out)
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
		cli_patch_show(k, &x->items[i], out);
	}
	return has_any;
}

static void diff_show_rest(const struct cli_kept *k, struct cli_show *out)
{
	const struct change_effects *x = &k->effects;

	for (size_t i = 0; i < x->count && !cli_show_is_over(out); i++) {
		const struct change_effect *at = &x->items[i];

		if (at->mark == CHANGE_HELD || at->mark == CHANGE_RUNS || !diff_is_shown(k, at))
			continue;
		if (k->path_count == 0 && cli_git_owns(at))
			i += cli_git_show(k, i, out) - 1;
		else
			cli_patch_show(k, at, out);
	}
}

static void show_patch(
	const struct cli_kept *k, const struct cli_there *found, struct cli_show *out)
{
	const char *state = cli_kept_state(k);
	size_t there = cli_kept_count_there(k);
	bool has_marked = false;

	cli_show_text(out, CLI_INK_NOTE, "# %s %s%s%s", k->what, k->id, *state ? ": " : "", state);
	if (there)
		cli_show_text(
			out, CLI_INK_NOTE, "# on the host already, and not shown: %zu", there);
	tell_unknown(found, out);
	for (size_t i = 0; i < COUNT_OF(marked); i++)
		has_marked |= show_marked(k, i, out);
	if (has_marked)
		cli_show_text(out, CLI_INK_NOTE, "# Everything else.");
	diff_show_rest(k, out);
}

/* --- in other forms --- */

static void show_names(const struct cli_kept *k, struct cli_show *out)
{
	bool ends_with_nul = cli_value(k->cli, CLI_OPT_NULL) && !out->for_person;

	for (size_t i = 0; i < k->effects.count && !cli_show_is_over(out); i++) {
		const struct change_effect *x = &k->effects.items[i];
		own(buf) struct buf line = { .max = 8 * CHANGE_MAX_PATH };

		if (x->is_implied || !cli_kept_is_chosen(k, x))
			continue;
		if (ends_with_nul) {
			cli_show_raw(out, x->path, strlen(x->path) + 1);
			continue;
		}
		cli_add_quoted(&line, "", x->path);
		buf_putc(&line, '\n');
		cli_show_raw(out, buf_text(&line), line.len);
	}
}

static bool is_chosen(void *of, const struct change_effect *x)
{
	return cli_kept_is_chosen(of, x);
}

static int diff_print_json(struct cli_kept *k)
{
	own(buf) struct buf out = { .max = MOST_JSON };

	change_effects_print(&k->effects, is_chosen, k, &out);
	return cli_write(&out, CLI_OK);
}

static bool wants_content(const struct cli *cli)
{
	return !cli->is_json && !cli_value(cli, CLI_OPT_STAT) && !cli_value(cli, CLI_OPT_NAME_ONLY);
}

static int diff_show(struct cli_kept *k)
{
	struct cli_there found = { .k = k };
	struct cli_show out;

	if (k->cli->is_json)
		return diff_print_json(k);
	if (wants_content(k->cli))
		cli_kept_find_there(&found);
	cli_show_open(&out, k->cli, cli_value(k->cli, CLI_OPT_NULL) == NULL);
	if (cli_value(k->cli, CLI_OPT_NAME_ONLY))
		show_names(k, &out);
	else if (cli_value(k->cli, CLI_OPT_STAT))
		cli_stat_show(k, &out);
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

static int show_effects(struct cli_kept *k)
{
	int status = cli_kept_check_paths(k);

	if (status != CLI_OK)
		return status;
	if (k->effects.count == 0 && !k->cli->is_json) {
		if (!k->cli->is_quiet)
			cli_complain("%s %s changed nothing in the project", k->what, k->id);
		return CLI_OK;
	}
	if (!cli_kept_has_layer(k) && wants_content(k->cli)) {
		cli_complain("cannot show the changes of %s %s: they were applied or discarded",
			k->what, k->id);
		cli_hint("--stat still lists them");
		return CLI_NO;
	}
	if (!wants_content(k->cli) && *cli_kept_state(k))
		cli_complain("%s %s: %s", k->what, k->id, cli_kept_state(k));
	return diff_show(k);
}

int cmd_diff(struct cli *cli)
{
	own(cli_kept) struct cli_kept k;
	int status = diff_check_options(cli);

	cli_kept_init(&k, cli);
	if (status == CLI_OK)
		status = cli_kept_choose(&k);
	if (status == CLI_OK && k.folder >= 0)
		status = cli_kept_load(&k);
	if (status != CLI_OK)
		return status;
	/* Nobody's effects are none: whoever wants an object gets one. */
	if (k.folder < 0)
		return cli->is_json ? diff_print_json(&k) : CLI_OK;
	return show_effects(&k);
}
