#include "change/text/change_text_edits.h"

#include <endian.h>
#include <errno.h>
#include <sodium.h>
#include <string.h>

/* The number of a line that the other text does not have. */
#define CHANGE_TEXT_ALONE UINT32_MAX

/*
 * What has to go and to come so that one row of numbers becomes another: as little as possible,
 * found with the algorithm of Eugene W. Myers, "An O(ND) Difference Algorithm and Its Variations"
 * (1986), in its variation that needs little memory. Rows that differ much would take long: there
 * it settles for more than the least, and in the end for everything that is left.
 */

struct change_text_row {
	const uint32_t *numbers; /* below 2^31 of them, those of both rows together */
	uint32_t count;
	const uint32_t *places; /* each one's index in `is_changed` */
	bool *is_changed;       /* set to true for those that go or come */
};

/* --- lines --- */

static const char *text_lines_end_of_line(const char *at, const char *end)
{
	const char *newline = memchr(at, '\n', (size_t)(end - at));

	return newline ? newline + 1 : end;
}

static int change_text_cut(
	struct arena *arena, const struct change_text *t, struct change_text_lines *ret)
{
	const char *bytes = t->size ? t->bytes : "", *end = bytes + t->size;
	uint32_t count = 0;

	if (t->size > CHANGE_TEXT_MAX_SIZE)
		return -EFBIG;
	for (const char *at = bytes; at < end; at = text_lines_end_of_line(at, end))
		count++;
	*ret = (struct change_text_lines){ .bytes = bytes, .count = count };
	ret->starts = arena_array(arena, (size_t)count + 1, sizeof(*ret->starts));
	if (!ret->starts)
		return -ENOMEM;
	count = 0;
	for (const char *at = bytes; at < end; at = text_lines_end_of_line(at, end))
		ret->starts[count++] = (uint32_t)(at - bytes);
	ret->starts[count] = (uint32_t)t->size;
	return 0;
}

bool change_text_is_same_line(const struct change_text_lines *a, uint32_t i,
	const struct change_text_lines *b, uint32_t k)
{
	uint32_t size = change_text_line_size(a, i);

	return size == change_text_line_size(b, k) &&
	       memcmp(a->bytes + a->starts[i], b->bytes + b->starts[k], size) == 0;
}

/* --- numbers for lines --- */

/*
 * Lines are found by a polynomial: their bytes, seven at a time, are its coefficients, and the key
 * is where it is evaluated, modulo a prime. Whatever two lines somebody chose, no more keys give
 * both the same value than they have words; and the key, one of 2^60, is chosen after the texts.
 * So no text can be made whose lines crowd. What comes out does not depend on the key: where
 * values are the same, the lines are compared.
 */
#define PRIME    (((uint64_t)1 << 61) - 1)
#define KEYS     ((uint64_t)1 << 60)
#define WORD     7
#define ONE_WORD (((uint64_t)1 << 56) - 1)

__extension__ typedef unsigned __int128 product;

struct slot {
	uint32_t tag;  /* half of the value: hardly ever is another line looked at */
	uint32_t line; /* its first in `a`, from 1; 0 is a free slot */
};

struct numbering {
	const struct change_text_lines *a;
	struct slot *slots;
	uint64_t slot_count;
	uint64_t keys[2]; /* the second spreads values over the slots */
};

/* h * key + word modulo PRIME, but for a multiple of it: below 2^62 if h is, as a key is small. */
static uint64_t mix(uint64_t h, uint64_t key, uint64_t word)
{
	product p = (product)h * key + word;

	return (uint64_t)(p & PRIME) + (uint64_t)(p >> 61);
}

static uint64_t hash_line(const uint64_t *keys, const char *line, size_t size)
{
	uint64_t h = size, word;

	for (; size > WORD; line += WORD, size -= WORD) {
		memcpy(&word, line, sizeof(word));
		h = mix(h, keys[0], le64toh(word) & ONE_WORD);
	}
	for (word = 0; size > 0; size--)
		word = word << 8 | (unsigned char)*line++;
	h = mix(mix(h, keys[0], word) % PRIME, keys[1], 0);
	return h % PRIME;
}

/* The number in `a`, from 1, of a line equal to line i of `of`; 0 where there is none. */
static uint32_t text_lines_find_line(
	struct numbering *q, const struct change_text_lines *of, uint32_t i, bool adds_it)
{
	uint64_t h = hash_line(q->keys, of->bytes + of->starts[i], change_text_line_size(of, i));
	uint32_t tag = (uint32_t)h;
	uint64_t at = (h >> 29) * q->slot_count >> 32;
	struct slot *slot;

	for (slot = &q->slots[at]; slot->line; slot = &q->slots[at]) {
		if (slot->tag == tag && change_text_is_same_line(q->a, slot->line - 1, of, i))
			return slot->line;
		at = at + 1 < q->slot_count ? at + 1 : 0;
	}
	if (adds_it)
		*slot = (struct slot){ .tag = tag, .line = i + 1 };
	return slot->line;
}

static int change_text_number(struct arena *arena, const struct change_text_lines *a,
	struct change_text_span span_a, const struct change_text_lines *b,
	struct change_text_span span_b, uint32_t *ret_a, uint32_t *ret_b)
{
	uint32_t count_a = span_a.to - span_a.from, count_b = span_b.to - span_b.from, next = 0;
	struct numbering q = { .a = a, .slot_count = 2 * (uint64_t)count_a + 1 };
	bool *is_in_b = arena_array(arena, (size_t)count_a + 1, sizeof(*is_in_b));

	q.slots = arena_array(arena, q.slot_count, sizeof(*q.slots));
	if (!q.slots || !is_in_b)
		return -ENOMEM;
	randombytes_buf(q.keys, sizeof(q.keys));
	q.keys[0] %= KEYS;
	q.keys[1] %= KEYS;
	for (uint32_t i = 0; i < count_a; i++)
		ret_a[i] = text_lines_find_line(&q, a, span_a.from + i, true) - 1 - span_a.from;
	for (uint32_t i = 0; i < count_b; i++) {
		uint32_t line = span_b.from + i, found;

		/* Mostly it is the one after the last that was found, and need not be looked up. */
		if (next < count_a && change_text_is_same_line(a, span_a.from + next, b, line)) {
			ret_b[i] = ret_a[next++];
		} else if ((found = text_lines_find_line(&q, b, line, false)) != 0) {
			ret_b[i] = found - 1 - span_a.from;
			next = ret_b[i] + 1;
		} else {
			ret_b[i] = CHANGE_TEXT_ALONE;
			next++;
			continue;
		}
		is_in_b[ret_b[i]] = true;
	}
	for (uint32_t i = 0; i < count_a; i++)
		if (!is_in_b[ret_a[i]])
			ret_a[i] = CHANGE_TEXT_ALONE;
	return 0;
}

/* --- text search --- */

/*
 * Think of a box with row `a` along x and row `b` along y. A way from its upper left to its lower
 * right corner goes right (a number of `a` goes), down (one of `b` comes), or along a diagonal
 * k = x - y where both have the same. Two fronts, one from each corner, are moved by one edit at a
 * time: they know how far each diagonal is reached. Where they meet, a shortest way passes, and
 * the box falls into two smaller ones.
 */

/* Edits after which a front stands still, and the box is cut where it got farthest. */
#define REACH 256
#define BOXES 32 /* waiting at most: after a first cut, edits are halved with each further one */

struct box {
	int32_t x, y, x_end, y_end;
};

/* Seen from its own corner: both fronts move to the right and down. */
struct front {
	const uint32_t *a, *b; /* what is next to the corner */
	int32_t step;          /* 1, or -1 to read backwards */
	int32_t edits;         /* so far */
	int32_t x[2 * REACH + 3];
};

struct search {
	const struct change_text_row *a, *b;
	struct front ahead, back;
	int32_t width, height; /* of the box looked at */
	uint64_t steps;
};

struct point {
	int32_t x, y;
};

static int32_t text_search_least(int32_t a, int32_t b)
{
	return a < b ? a : b;
}

static int32_t most(int32_t a, int32_t b)
{
	return a > b ? a : b;
}

/* How far diagonal k is reached. */
static int32_t *reached(struct front *f, int32_t k)
{
	return &f->x[k + REACH + 1];
}

/* Follows what is the same, from `x` on diagonal k. */
static int32_t text_search_follow(struct search *s, const struct front *f, int32_t x, int32_t k)
{
	int32_t from = x, end = text_search_least(s->width, s->height + k);

	while (x < end && f->a[x * f->step] == f->b[(x - k) * f->step])
		x++;
	s->steps += (uint64_t)(x - from) + 1;
	return x;
}

/*
 * Moves a front by an edit; true where it meets the other, at `ret`. Diagonals that leave the box
 * are left out. On the others a step over the border is drawn back along the diagonal, which is
 * right: a point has at most one edit more than its neighbour.
 */
static bool advance(struct search *s, struct front *f, struct front *other, struct point *ret)
{
	int32_t d = f->edits++, shift = s->width - s->height;
	int32_t low = -text_search_least(d, s->height), high = text_search_least(d, s->width);
	/* The other front was last on every second diagonal within its edits. */
	int32_t room = ((shift - d) ^ other->edits) & 1 ? other->edits - 1 : -1;

	*reached(f, -d - 1) = *reached(f, d + 1) = -1;
	for (int32_t k = low + ((d + low) & 1); k <= high; k += 2) {
		int32_t x = most(*reached(f, k - 1) + 1, *reached(f, k + 1));
		int32_t opposite = shift - k;

		x = text_search_follow(
			s, f, text_search_least(x, text_search_least(s->width, s->height + k)), k);
		*reached(f, k) = x;
		if (opposite >= -room && opposite <= room &&
			x + *reached(other, opposite) >= s->width) {
			*ret = (struct point){ x, x - k };
			return true;
		}
		if (s->steps > CHANGE_TEXT_MAX_STEPS)
			break;
	}
	return false;
}

static struct point farthest(struct front *f, const struct search *s)
{
	struct point best = { 0, 0 };
	int32_t d = f->edits - 1;

	for (int32_t k = most(-d, -s->height); k <= text_search_least(d, s->width); k++) {
		int32_t x = *reached(f, k);

		if (((k ^ d) & 1) == 0 && 2 * (int64_t)x - k > (int64_t)best.x + best.y)
			best = (struct point){ x, x - k };
	}
	return best;
}

/* A point on a shortest way through the box, or on a good one; false where steps ran out. */
static bool find_cut(struct search *s, const struct box *box, struct point *ret)
{
	s->width = box->x_end - box->x;
	s->height = box->y_end - box->y;
	s->ahead.a = s->a->numbers + box->x;
	s->ahead.b = s->b->numbers + box->y;
	s->back.a = s->a->numbers + box->x_end - 1;
	s->back.b = s->b->numbers + box->y_end - 1;
	s->ahead.edits = s->back.edits = 0;
	while (s->ahead.edits <= REACH && s->steps <= CHANGE_TEXT_MAX_STEPS) {
		if (advance(s, &s->ahead, &s->back, ret))
			return true;
		if (advance(s, &s->back, &s->ahead, ret)) {
			*ret = (struct point){ s->width - ret->x, s->height - ret->y };
			return true;
		}
	}
	if (s->steps > CHANGE_TEXT_MAX_STEPS)
		return false;
	*ret = farthest(&s->ahead, s);
	return true;
}

/* Takes what is the same off both ends. */
static void text_search_trim(struct search *s, struct box *box)
{
	const uint32_t *a = s->a->numbers, *b = s->b->numbers;

	for (; box->x < box->x_end && box->y < box->y_end && a[box->x] == b[box->y]; s->steps++) {
		box->x++;
		box->y++;
	}
	for (; box->x < box->x_end && box->y < box->y_end && a[box->x_end - 1] == b[box->y_end - 1];
		s->steps++) {
		box->x_end--;
		box->y_end--;
	}
}

static void mark(const struct change_text_row *row, int32_t from, int32_t to)
{
	for (int32_t i = from; i < to; i++)
		row->is_changed[row->places[i]] = true;
}

/* Returns the number of steps. */
static uint64_t change_text_search(const struct change_text_row *a, const struct change_text_row *b)
{
	struct search s = { .a = a, .b = b, .ahead.step = 1, .back.step = -1 };
	struct box boxes[BOXES] = { { 0, 0, (int32_t)a->count, (int32_t)b->count } };

	for (unsigned waiting = 1; waiting > 0;) {
		struct box box = boxes[--waiting];
		struct point cut;

		text_search_trim(&s, &box);
		if (box.x == box.x_end || box.y == box.y_end || waiting + 2 > BOXES ||
			!find_cut(&s, &box, &cut)) {
			mark(a, box.x, box.x_end);
			mark(b, box.y, box.y_end);
			continue;
		}
		boxes[waiting++] =
			(struct box){ box.x + cut.x, box.y + cut.y, box.x_end, box.y_end };
		boxes[waiting++] = (struct box){ box.x, box.y, box.x + cut.x, box.y + cut.y };
	}
	return s.steps;
}

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
