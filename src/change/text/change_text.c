#include "change/text/change_text.h"

#include <string.h>

#include "base/own.h"
#include "change/text/change_text_edits.h"

#define LOOKED_AT 8000 /* bytes, as git does */
#define AROUND    3    /* equal lines shown before and after */

bool change_is_text(const struct change_text *t)
{
	return t->size == 0 || !memchr(t->bytes, '\0', t->size < LOOKED_AT ? t->size : LOOKED_AT);
}

int change_text_count(const struct change_text *a, const struct change_text *b, uint32_t *ret_added,
	uint32_t *ret_removed)
{
	own(change_text_edits) struct change_text_edits x = { 0 };
	uint32_t added = 0, removed = 0;
	int r = change_text_edits_find(a, b, &x);

	if (r < 0)
		return r;
	for (size_t i = 0; i < x.count; i++) {
		added += x.items[i].b_count;
		removed += x.items[i].a_count;
	}
	*ret_added = added;
	*ret_removed = removed;
	return 0;
}

static void print_lines(
	struct buf *out, char sign, const struct change_text_lines *l, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		const char *line = l->bytes + l->starts[i];
		uint32_t size = change_text_line_size(l, i);

		buf_putc(out, sign);
		buf_add(out, line, size);
		if (line[size - 1] != '\n')
			buf_puts(out, "\n\\ No newline at end of file\n");
	}
}

/* Lines count from 1; of no lines, the one before is named. One line needs no count. */
static void print_range(struct buf *out, char sign, uint32_t from, uint32_t count)
{
	buf_printf(out, "%c%u", sign, count ? from + 1 : from);
	if (count != 1)
		buf_printf(out, ",%u", count);
}

/* Prints edits `first` to `last` as one hunk. */
static void print_hunk(
	const struct change_text_edits *x, size_t first, size_t last, struct buf *out)
{
	const struct change_text_edit *e = &x->items[first], *end = &x->items[last];
	uint32_t before = e->a < AROUND ? e->a : AROUND;
	uint32_t a_end = end->a + end->a_count, b_end = end->b + end->b_count;
	uint32_t after = x->a.count - a_end < AROUND ? x->a.count - a_end : AROUND;
	uint32_t at = e->a - before;

	buf_puts(out, "@@ ");
	print_range(out, '-', at, a_end + after - at);
	buf_putc(out, ' ');
	print_range(out, '+', e->b - before, b_end + after - (e->b - before));
	buf_puts(out, " @@\n");
	for (; e <= end; e++) {
		print_lines(out, ' ', &x->a, at, e->a);
		print_lines(out, '-', &x->a, e->a, e->a + e->a_count);
		print_lines(out, '+', &x->b, e->b, e->b + e->b_count);
		at = e->a + e->a_count;
	}
	print_lines(out, ' ', &x->a, at, at + after);
}

/* Between an edit and the next one. */
static uint32_t equal_lines_after(const struct change_text_edits *x, size_t i)
{
	return x->items[i + 1].a - (x->items[i].a + x->items[i].a_count);
}

int change_text_diff(const struct change_text *a, const struct change_text *b, struct buf *out)
{
	own(change_text_edits) struct change_text_edits x = { 0 };
	int r = change_text_edits_find(a, b, &x);

	if (r < 0)
		return r;
	for (size_t first = 0, last; first < x.count; first = last + 1) {
		last = first;
		while (last + 1 < x.count && equal_lines_after(&x, last) <= 2 * AROUND)
			last++;
		print_hunk(&x, first, last, out);
	}
	return 0;
}
