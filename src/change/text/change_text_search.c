#include "change/text/change_text_search.h"

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

uint64_t change_text_search(const struct change_text_row *a, const struct change_text_row *b)
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
