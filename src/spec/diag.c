#include "spec/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

void diags_init(struct diags *d, struct arena *arena)
{
	*d = (struct diags){ .arena = arena };
}

unsigned diags_add_source(struct diags *d, const char *name, const char *bytes, size_t size)
{
	unsigned n = d->source_count;

	if ((n & (n - 1)) == 0) {
		struct diag_source *grown = arena_array(d->arena, n ? n * 2 : 1, sizeof(*grown));

		if (!grown)
			return 0;
		if (n)
			memcpy(grown, d->sources, n * sizeof(*grown));
		d->sources = grown;
	}
	d->sources[n] = (struct diag_source){ .name = name, .bytes = bytes, .size = size };
	return d->source_count++;
}

bool diags_are_full(const struct diags *d)
{
	return d->count == DIAG_MAX;
}

struct diag *diags_say(struct diags *d, enum diag_level level, struct diag_pos at, const char *hint,
	const char *fmt, ...)
{
	struct diag *item = diags_are_full(d) ? NULL : &d->items[d->count];
	char text[512];
	va_list args;

	if (level == DIAG_ERROR)
		d->errors++;
	else
		d->warnings++;
	if (!item)
		return NULL;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	*item = (struct diag){ .level = level, .at = at };
	item->text = arena_copy(d->arena, text, strlen(text));
	if (hint)
		item->hint = arena_copy(d->arena, hint, strlen(hint));
	if (!item->text)
		item->text = "out of memory while describing an error";
	d->count++;
	return item;
}

void diags_hide(struct diags *d, struct diag_pos at)
{
	if (d->hidden_count < DIAG_MAX_HIDDEN)
		d->hidden[d->hidden_count] = at;
	d->hidden_count++;
}

/* Returns the source of a place; a stand-in if there was no memory for any. */
static const struct diag_source *source_of(const struct diags *d, struct diag_pos at)
{
	static const struct diag_source unknown = { .name = "?" };

	return at.source < d->source_count ? &d->sources[at.source] : &unknown;
}

const char *diags_where(const struct diags *d, struct diag_pos at)
{
	const char *name = source_of(d, at)->name;
	const char *where = name;

	if (at.line)
		where = arena_printf(d->arena, "%s:%u:%u", name, at.line, at.column);
	return where ? where : name;
}

/* The bytes of a line, without its end. */
static const char *source_line(const struct diag_source *s, uint32_t line, size_t *ret_size)
{
	const char *p = s->bytes, *end = s->bytes + s->size, *stop;

	for (uint32_t i = 1; i < line && p; i++) {
		p = memchr(p, '\n', (size_t)(end - p));
		if (p)
			p++;
	}
	if (!p)
		return NULL;
	stop = memchr(p, '\n', (size_t)(end - p));
	if (!stop)
		stop = end;
	if (stop > p && stop[-1] == '\r')
		stop--;
	*ret_size = (size_t)(stop - p);
	return p;
}

/* Bytes that the first n characters take; a byte that is not UTF-8 counts as one. */
static size_t bytes_of(const char *line, size_t size, size_t n)
{
	size_t at = 0;

	for (; n && at < size; n--) {
		uint32_t c;
		size_t width = utf8_decode(line + at, size - at, &c);

		at += width ? width : 1;
	}
	return at;
}

/* Characters, as a caret line counts them. */
static size_t shown_width(const char *text, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < size; i++)
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
	return n;
}

/* The bytes of a line that may be shown. */
static size_t count_shown(const struct diags *d, struct diag_pos at, const char *line, size_t size)
{
	size_t shown = d->hidden_count > DIAG_MAX_HIDDEN ? 0 : size;

	for (size_t i = 0; i < d->hidden_count && i < DIAG_MAX_HIDDEN; i++) {
		const struct diag_pos *h = &d->hidden[i];

		if (h->source == at.source && h->line == at.line)
			shown = bytes_of(line, shown, h->column ? h->column - 1 : 0);
	}
	return shown;
}

static size_t at_most(size_t n, size_t max)
{
	return n < max ? n : max;
}

#define WINDOW 96 /* characters of a source line that are shown */

/* The source line and the carets below it; a long line is shown around the place meant. */
static void print_source(const struct diags *d, const struct diag *item, struct buf *out)
{
	const struct diag_source *s = source_of(d, item->at);
	size_t column = item->at.column ? item->at.column - 1 : 0;
	size_t size = 0, first, begin, middle, end, shown;
	const char *line = s->bytes && item->at.line ? source_line(s, item->at.line, &size) : NULL;
	struct buf before = { .max = 4 * WINDOW * 12 }, meant = before;

	if (!line)
		return;
	first = column > WINDOW / 2 && bytes_of(line, size, WINDOW) < size ? column - WINDOW / 2
									   : 0;
	shown = count_shown(d, item->at, line, size);
	begin = at_most(bytes_of(line, size, first), shown);
	middle = at_most(bytes_of(line, size, column), shown);
	end = at_most(bytes_of(line, size, first + WINDOW), shown);
	buf_add_visible(&before, line + begin, middle - begin);
	buf_add_visible(&meant, line + middle,
		bytes_of(line + middle, end - middle, item->at.width ? item->at.width : 1));
	buf_printf(out, "%5u | %s", item->at.line, first ? "…" : "");
	buf_add_visible(out, line + begin, end - begin);
	buf_puts(out, end < size && end == shown ? "***\n" : end < size ? "…\n" : "\n");
	buf_puts(out, "      | ");
	buf_repeat(out, ' ',
		shown_width(before.data ? before.data : "", before.len) + (first ? 1 : 0));
	buf_putc(out, '^');
	if (meant.len > 1)
		buf_repeat(out, '~', shown_width(meant.data, meant.len) - 1);
	buf_putc(out, '\n');
	buf_done(&before);
	buf_done(&meant);
}

static void print_visible(struct buf *out, const char *text)
{
	buf_add_visible(out, text, strlen(text));
}

static void print_hint(struct buf *out, const char *hint)
{
	if (!hint)
		return;
	buf_puts(out, "      = ");
	print_visible(out, hint);
	buf_putc(out, '\n');
}

/* "file:line:column: error: " */
static void diag_print_head(
	const struct diags *d, const struct diag *item, struct buf *out, bool color)
{
	static const char *const words[] = { "error", "warning" };
	static const char *const colors[] = { "\x1b[1;31m", "\x1b[1;35m" };

	buf_puts(out, color ? "\x1b[1m" : "");
	print_visible(out, diags_where(d, item->at));
	buf_printf(out, ": %s%s:%s ", color ? colors[item->level] : "", words[item->level],
		color ? "\x1b[0m" : "");
}

static void print_item(const struct diags *d, const struct diag *item, struct buf *out, bool color)
{
	diag_print_head(d, item, out, color);
	print_visible(out, item->text);
	buf_putc(out, '\n');
	print_source(d, item, out);
	print_hint(out, item->hint);
}

/* Returns how many items belong to the list. */
static size_t count_listed(
	const struct diag *const *items, size_t count, const struct diag_list *list)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += items[i]->list == list;
	return n;
}

/* All items of a list: where the first of them stands, then a line for each, then the hint. */
static void diag_print_list(const struct diags *d, const struct diag *const *items,
	const struct diag_list *list, struct buf *out, bool color)
{
	for (size_t i = 0; i < d->count; i++) {
		if (items[i]->list != list)
			continue;
		if (!count_listed(items, i, list)) {
			diag_print_head(d, items[i], out, color);
			buf_printf(out, "%s\n", list->heading);
		}
		buf_puts(out, "      | ");
		print_visible(out, diags_where(d, items[i]->at));
		buf_puts(out, ": ");
		print_visible(out, items[i]->brief);
		buf_putc(out, '\n');
	}
	print_hint(out, list->hint);
}

static int diag_compare_items(const void *a, const void *b)
{
	const struct diag *x = *(const struct diag *const *)a, *y = *(const struct diag *const *)b;
	const uint32_t left[] = { x->at.source, x->at.line, x->at.column };
	const uint32_t right[] = { y->at.source, y->at.line, y->at.column };

	for (size_t i = 0; i < 3; i++)
		if (left[i] != right[i])
			return left[i] < right[i] ? -1 : 1;
	/* At the same place, the order of adding counts. */
	return x < y ? -1 : x > y;
}

/* Sorts the diagnostics in the order of the source. */
static void diag_sort_items(const struct diags *d, const struct diag *ret[static DIAG_MAX])
{
	for (size_t i = 0; i < d->count; i++)
		ret[i] = &d->items[i];
	qsort(ret, d->count, sizeof(ret[0]), diag_compare_items);
}

void diags_print(const struct diags *d, struct buf *out, bool color)
{
	const struct diag *items[DIAG_MAX] = { NULL };

	diag_sort_items(d, items);
	for (size_t i = 0; i < d->count; i++) {
		const struct diag_list *list = items[i]->list;

		if (!list || count_listed(items, d->count, list) == 1)
			print_item(d, items[i], out, color);
		else if (!count_listed(items, i, list))
			diag_print_list(d, items, list, out, color);
	}
	if (diags_are_full(d))
		buf_puts(out, "… and perhaps more; mend these first\n");
}

void diags_print_json(const struct diags *d, struct json *j)
{
	const struct diag *items[DIAG_MAX] = { NULL };

	diag_sort_items(d, items);
	json_open_list(j, "diagnostics");
	for (size_t i = 0; i < d->count; i++) {
		const struct diag *item = items[i];

		json_open_map(j, NULL);
		json_text(j, "level", item->level == DIAG_ERROR ? "error" : "warning");
		json_text(j, "source", source_of(d, item->at)->name);
		json_int(j, "line", item->at.line);
		json_int(j, "column", item->at.column);
		json_text(j, "message", item->text);
		if (item->hint)
			json_text(j, "hint", item->hint);
		json_close_map(j);
	}
	json_close_list(j);
}
