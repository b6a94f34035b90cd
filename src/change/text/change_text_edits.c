#include "change/text/change_text_edits.h"

#include <errno.h>
#include <string.h>

#include "change/text/change_text_search.h"

/*
 * Memory for each byte of the texts, as every byte may be a line: where it starts (4), its number
 * (4) and place (4), two marks (2), two slots to look it up (16), half an edit (8).
 */
#define MEMORY_PER_BYTE 40
#define MEMORY_BESIDES  ((size_t)64 * 1024)

/* What is left of the texts without the lines that are equal at both ends. */
struct middle {
	struct change_text_span a, b;
	bool *is_changed_a, *is_changed_b; /* by line, from the span's first on */
};

static void find_middle(const struct change_text_edits *x, struct middle *m)
{
	uint32_t from = 0, a = x->a.count, b = x->b.count;

	while (from < a && from < b && change_text_is_same_line(&x->a, from, &x->b, from))
		from++;
	while (a > from && b > from && change_text_is_same_line(&x->a, a - 1, &x->b, b - 1)) {
		a--;
		b--;
	}
	m->a = (struct change_text_span){ from, a };
	m->b = (struct change_text_span){ from, b };
}

/* Keeps the numbers of those lines that the other text has too, and marks the others. */
static int make_row(struct arena *arena, uint32_t *numbers, uint32_t count, bool *is_changed,
	struct change_text_row *ret)
{
	uint32_t *places = arena_array(arena, count, sizeof(*places)), kept = 0;

	if (!places)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		is_changed[i] = numbers[i] == CHANGE_TEXT_ALONE;
		if (!is_changed[i]) {
			numbers[kept] = numbers[i];
			places[kept++] = i;
		}
	}
	*ret = (struct change_text_row){ numbers, kept, places, is_changed };
	return 0;
}

static int find_changed(struct change_text_edits *x, struct middle *m)
{
	uint32_t count_a = m->a.to - m->a.from, count_b = m->b.to - m->b.from, *a, *b;
	struct change_text_row row_a, row_b;
	int r;

	m->is_changed_a = arena_array(&x->arena, count_a, sizeof(bool));
	m->is_changed_b = arena_array(&x->arena, count_b, sizeof(bool));
	a = arena_array(&x->arena, count_a, sizeof(*a));
	b = arena_array(&x->arena, count_b, sizeof(*b));
	if (!m->is_changed_a || !m->is_changed_b || !a || !b)
		return -ENOMEM;
	if (count_a == 0 || count_b == 0) {
		memset(m->is_changed_a, true, count_a);
		memset(m->is_changed_b, true, count_b);
		return 0;
	}
	r = change_text_number(&x->arena, &x->a, m->a, &x->b, m->b, a, b);
	if (r == 0)
		r = make_row(&x->arena, a, count_a, m->is_changed_a, &row_a);
	if (r == 0)
		r = make_row(&x->arena, b, count_b, m->is_changed_b, &row_b);
	if (r == 0)
		x->steps = change_text_search(&row_a, &row_b);
	return r;
}

/* The next edit from lines `at` on; those before it are passed. False where there is none. */
static bool next_edit(const struct middle *m, struct change_text_edit *at)
{
	uint32_t i = at->a + at->a_count, k = at->b + at->b_count;

	while (i < m->a.to && k < m->b.to && !m->is_changed_a[i - m->a.from] &&
		!m->is_changed_b[k - m->b.from]) {
		i++;
		k++;
	}
	*at = (struct change_text_edit){ .a = i, .b = k };
	while (i < m->a.to && m->is_changed_a[i - m->a.from])
		i++;
	while (k < m->b.to && m->is_changed_b[k - m->b.from])
		k++;
	at->a_count = i - at->a;
	at->b_count = k - at->b;
	return at->a_count || at->b_count;
}

static int text_edits_collect(struct change_text_edits *x, const struct middle *m)
{
	struct change_text_edit at = { .a = m->a.from, .b = m->b.from }, start = at;
	size_t count = 0;

	while (next_edit(m, &at))
		count++;
	x->items = arena_array(&x->arena, count, sizeof(*x->items));
	if (!x->items)
		return -ENOMEM;
	for (at = start; next_edit(m, &at);)
		x->items[x->count++] = at;
	return 0;
}

/* --- the same edits at better places --- */

/*
 * Lines that only came, or only went, may stand between lines like them: then the same change can
 * be told some lines further up or down. It goes down as far as it can. But where it can come to
 * touch another edit, below or above, the two become one.
 */

static bool is_pure(const struct change_text_edit *e)
{
	return e->a_count == 0 || e->b_count == 0;
}

/* In the text where the edit has lines: is line i, from its first on, like the one `count` on? */
static bool repeats(struct change_text_edits *x, const struct change_text_edit *e, int64_t i)
{
	const struct change_text_lines *lines = e->a_count ? &x->a : &x->b;
	uint32_t count = e->a_count + e->b_count, line = (uint32_t)((e->a_count ? e->a : e->b) + i);

	if (x->steps > CHANGE_TEXT_MAX_STEPS)
		return false;
	x->steps += 1 + change_text_line_size(lines, line) / 32; /* a long line counts as several */
	return change_text_is_same_line(lines, line, lines, line + count);
}

static bool slide_down(struct change_text_edits *x, struct change_text_edit *e,
	const struct change_text_edit *below)
{
	uint32_t room = (below ? below->a : x->a.count) - e->a - e->a_count, n = 0;

	while (n < room && repeats(x, e, n))
		n++;
	e->a += n;
	e->b += n;
	if (!below || n < room)
		return false;
	e->a_count += below->a_count;
	e->b_count += below->b_count;
	return true;
}

/* Only if it gets as far as to the edit above. */
static bool slide_up(struct change_text_edits *x, struct change_text_edit *e,
	const struct change_text_edit *above)
{
	uint32_t room = e->a - above->a - above->a_count, n = 0;

	while (n < room && repeats(x, e, -(int64_t)n - 1))
		n++;
	if (n < room)
		return false;
	*e = (struct change_text_edit){ above->a, above->a_count + e->a_count, above->b,
		above->b_count + e->b_count };
	return true;
}

static void slide(struct change_text_edits *x)
{
	struct change_text_edit *items = x->items;
	size_t done = 0;

	for (size_t next = 0; next < x->count;) {
		struct change_text_edit e = items[next++];

		while (is_pure(&e)) {
			if (slide_down(x, &e, next < x->count ? &items[next] : NULL))
				next++;
			else if (done > 0 && slide_up(x, &e, &items[done - 1]))
				done--;
			else
				break;
		}
		items[done++] = e;
	}
	x->count = done;
}

int change_text_edits_find(
	const struct change_text *a, const struct change_text *b, struct change_text_edits *ret)
{
	struct middle m = { 0 };
	int r;

	*ret = (struct change_text_edits){ 0 };
	if (a->size > CHANGE_TEXT_MAX_SIZE || b->size > CHANGE_TEXT_MAX_SIZE)
		return -EFBIG;
	arena_init(&ret->arena, MEMORY_PER_BYTE * (a->size + b->size) + MEMORY_BESIDES);
	r = change_text_cut(&ret->arena, a, &ret->a);
	if (r == 0)
		r = change_text_cut(&ret->arena, b, &ret->b);
	if (r < 0)
		return r;
	find_middle(ret, &m);
	r = find_changed(ret, &m);
	if (r == 0)
		r = text_edits_collect(ret, &m);
	if (r == 0)
		slide(ret);
	return r;
}

void change_text_edits_done(struct change_text_edits *x)
{
	arena_done(&x->arena);
	*x = (struct change_text_edits){ 0 };
}
