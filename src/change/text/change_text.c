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

/* --- three ways --- */

/*
 * The edits of both sides are walked side by side. Where those of one side stand alone, they are
 * taken. Those that overlap or touch belong together: there stands what each side made of the same
 * lines of the base. Touching counts, because nobody knows which of two changes with nothing
 * between them comes first, and because a last line without a newline must stay the last.
 */
struct side {
	struct change_text_edits edits;
	size_t next;
	const char *name;
};

struct merge {
	const struct change_text_lines *base;
	struct side ours, theirs;
	const char *newline; /* for markers, as the texts have it */
	struct buf *out;
	size_t conflicts;
};

static void add_lines(struct merge *m, const struct change_text_lines *l, struct change_text_span s)
{
	buf_add(m->out, l->bytes + l->starts[s.from], l->starts[s.to] - l->starts[s.from]);
}

static void add_marker(struct merge *m, char sign, const char *name)
{
	if (m->out->len && m->out->data[m->out->len - 1] != '\n')
		buf_puts(m->out, m->newline);
	buf_repeat(m->out, sign, 7);
	if (name) {
		buf_putc(m->out, ' ');
		buf_puts(m->out, name);
	}
	buf_puts(m->out, m->newline);
}

/* Adds what both sides begin and end with once, and what is between as a conflict. */
static void add_both(struct merge *m, struct change_text_span o, struct change_text_span t)
{
	const struct change_text_lines *ours = &m->ours.edits.b, *theirs = &m->theirs.edits.b;
	struct change_text_span start = { o.from, o.from }, end = { o.to, o.to };

	for (; o.from < o.to && t.from < t.to &&
		change_text_is_same_line(ours, o.from, theirs, t.from);
		o.from++, t.from++)
		start.to++;
	for (; o.from < o.to && t.from < t.to &&
		change_text_is_same_line(ours, o.to - 1, theirs, t.to - 1);
		o.to--, t.to--)
		end.from--;
	add_lines(m, ours, start);
	if (o.from < o.to || t.from < t.to) {
		m->conflicts++;
		add_marker(m, '<', m->ours.name);
		add_lines(m, ours, o);
		add_marker(m, '=', NULL);
		add_lines(m, theirs, t);
		add_marker(m, '>', m->theirs.name);
	}
	add_lines(m, ours, end);
}

/* The next edit of a side, if it begins at line `at` of the base or before. */
static const struct change_text_edit *take_edit(struct side *s, uint32_t at)
{
	const struct change_text_edits *x = &s->edits;

	return s->next < x->count && x->items[s->next].a <= at ? &x->items[s->next++] : NULL;
}

/* What a side made of lines `base`, by its edits from `first` to the one before the next. */
static struct change_text_span made_of(
	const struct side *s, size_t first, struct change_text_span base)
{
	const struct change_text_edit *f = &s->edits.items[first],
				      *l = &s->edits.items[s->next - 1];

	return (struct change_text_span){ f->b - (f->a - base.from),
		l->b + l->b_count + (base.to - l->a - l->a_count) };
}

/* Adds the next edits that belong together; `at` is as far as the base is written. */
static uint32_t add_next(struct merge *m, uint32_t at, uint32_t start)
{
	struct change_text_span base = { start, start };
	size_t ours = m->ours.next, theirs = m->theirs.next;
	const struct change_text_edit *e;

	while ((e = take_edit(&m->ours, base.to)) || (e = take_edit(&m->theirs, base.to)))
		if (e->a + e->a_count > base.to)
			base.to = e->a + e->a_count;
	add_lines(m, m->base, (struct change_text_span){ at, start });
	if (m->theirs.next == theirs)
		add_lines(m, &m->ours.edits.b, made_of(&m->ours, ours, base));
	else if (m->ours.next == ours)
		add_lines(m, &m->theirs.edits.b, made_of(&m->theirs, theirs, base));
	else
		add_both(m, made_of(&m->ours, ours, base), made_of(&m->theirs, theirs, base));
	return base.to;
}

/* Where a side's next edit begins; the base's end where there is none. */
static uint32_t next_start(const struct side *s)
{
	return s->next < s->edits.count ? s->edits.items[s->next].a : s->edits.a.count;
}

static void merge_all(struct merge *m)
{
	uint32_t at = 0;

	while (m->ours.next < m->ours.edits.count || m->theirs.next < m->theirs.edits.count) {
		uint32_t ours = next_start(&m->ours), theirs = next_start(&m->theirs);

		at = add_next(m, at, ours < theirs ? ours : theirs);
	}
	add_lines(m, m->base, (struct change_text_span){ at, m->base->count });
}

static bool has_dos_lines(const struct change_text_lines *l)
{
	uint32_t size = l->count ? change_text_line_size(l, 0) : 0;

	return size >= 2 && memcmp(l->bytes + size - 2, "\r\n", 2) == 0;
}

static void merge_done(struct merge *m)
{
	change_text_edits_done(&m->ours.edits);
	change_text_edits_done(&m->theirs.edits);
}

int change_text_merge(const struct change_text *base, const struct change_text *ours,
	const struct change_text *theirs, const char *our_name, const char *their_name,
	struct buf *out, size_t *ret_conflicts)
{
	own(merge) struct merge m = {
		.ours.name = our_name, .theirs.name = their_name, .out = out
	};
	int r = change_text_edits_find(base, ours, &m.ours.edits);

	if (r == 0)
		r = change_text_edits_find(base, theirs, &m.theirs.edits);
	if (r < 0)
		return r;
	m.base = &m.ours.edits.a;
	m.newline = has_dos_lines(&m.ours.edits.b) ? "\r\n" : "\n";
	merge_all(&m);
	*ret_conflicts = m.conflicts;
	return 0;
}
