#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "change/text/change_text.h"

/* --- lines --- */

/* A text as lines, each with its newline; the last one may have none. Borrows the text's bytes. */
struct change_text_lines {
	const char *bytes;
	uint32_t *starts; /* count + 1 of them: the last is the end */
	uint32_t count;
};

/* Line numbers from `from` up to and without `to`. */
struct change_text_span {
	uint32_t from, to;
};

/* Numbers of lines, and sums of two, fit an int32_t. */
#define CHANGE_TEXT_MAX_SIZE (((size_t)1 << 30) - 1)

static inline uint32_t change_text_line_size(const struct change_text_lines *l, uint32_t i)
{
	return l->starts[i + 1] - l->starts[i];
}

bool change_text_is_same_line(const struct change_text_lines *a, uint32_t i,
	const struct change_text_lines *b, uint32_t k);

/* --- edits --- */

/* The most steps it takes, but for one look along the rows: about a tenth of a second. */
#define CHANGE_TEXT_MAX_STEPS ((uint64_t)1 << 24)

/* Lines a … of the first text became lines b … of the second; one of the counts may be 0. */
struct change_text_edit {
	uint32_t a, a_count, b, b_count;
};

/* What makes one text of another, in their order, with at least one equal line between two. */
struct change_text_edits {
	struct arena arena;
	struct change_text_lines a, b;
	struct change_text_edit *items;
	size_t count;
	uint64_t steps; /* taken to find them; at most CHANGE_TEXT_MAX_STEPS and one per byte */
};

/* Initialises `ret`, which borrows the texts. 0, -EFBIG or -ENOMEM; `ret` has to be done anyway. */
int change_text_edits_find(
	const struct change_text *a, const struct change_text *b, struct change_text_edits *ret);
void change_text_edits_done(struct change_text_edits *x);
