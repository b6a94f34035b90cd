/* change_stat - effects as a table, one line each, as git diff --stat has it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "change/patch/change_patch_inside.h"

#define MOST_NAME (16 * CHANGE_MAX_PATH)

struct stat_table {
	const struct change_patch *patch;
	struct change_lines *out; /* NULL: only widths are taken */
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

static bool is_counted(const struct stat_table *t, const struct change_effect *x)
{
	return change_is_chosen(x, t->patch->paths, t->patch->path_count);
}

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
		change_add_quoted(out, "", x->from);
		buf_puts(out, " => ");
	}
	change_add_quoted(out, "", x->path);
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
	t->out->raw(t->out->of, buf_text(line), line->len);
}

/* --- all of them --- */

/* The bookkeeping of a repository is one row. */
static void take_git(struct stat_table *t, size_t from, size_t count)
{
	own(buf) struct buf folder = { .max = CHANGE_MAX_PATH };
	size_t files = 0;

	for (size_t i = from; i < from + count; i++)
		files += change_is_bookkeeping(&t->patch->effects->items[i]) &&
			 !t->patch->effects->items[i].is_implied;
	buf_add(&folder, t->patch->effects->items[from].path,
		change_bookkeeping_folder(&t->patch->effects->items[from]));
	t->name.len = 0;
	change_add_quoted(&t->name, "", buf_text(&folder));
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
	t->out->raw(t->out->of, buf_text(&t->line), t->line.len);
}

static void take_marked(struct stat_table *t, enum change_mark mark)
{
	const struct change_effects *x = t->patch->effects;

	for (size_t i = 0; i < x->count; i++)
		if (x->items[i].mark == mark && !x->items[i].is_implied &&
			is_counted(t, &x->items[i]))
			take_row(t, &x->items[i]);
}

static void take_rest(struct stat_table *t)
{
	const struct change_effects *x = t->patch->effects;

	for (size_t i = 0; i < x->count; i++) {
		const struct change_effect *at = &x->items[i];

		if (t->patch->path_count == 0 && change_is_bookkeeping(at)) {
			size_t n = change_bookkeeping_count(x, i);

			take_git(t, i, n);
			i += n - 1;
		} else if (at->mark != CHANGE_HELD && at->mark != CHANGE_RUNS && !at->is_implied &&
			   is_counted(t, at)) {
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
	change_line_add(t->out, CHANGE_LINE_PLAIN, buf_text(&line), line.len);
	change_sum_up(t->patch->effects, &sum);
	if (sum.held)
		change_line_print(t->out, CHANGE_LINE_WARNING,
			" ! runs on the host without being called: bawn apply takes it by name, or "
			"with --all");
	if (sum.runs)
		change_line_print(t->out, CHANGE_LINE_NOTE,
			" * runs on the host when somebody builds, tests or installs");
}

void change_stat_show(struct change_patch *p, unsigned width)
{
	struct stat_table t = { .patch = p, .name.max = MOST_NAME, .line.max = MOST_NAME };

	take_all(&t);
	lay_out(&t, width);
	t.out = &p->to;
	if (t.files)
		take_all(&t);
	show_sum(&t);
	buf_done(&t.name);
	buf_done(&t.line);
}
