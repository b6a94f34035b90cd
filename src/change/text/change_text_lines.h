#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "change/text/change_text.h"

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

/* 0, -EFBIG, or -ENOMEM. */
int change_text_cut(
	struct arena *arena, const struct change_text *t, struct change_text_lines *ret);

static inline uint32_t change_text_line_size(const struct change_text_lines *l, uint32_t i)
{
	return l->starts[i + 1] - l->starts[i];
}

bool change_text_is_same_line(const struct change_text_lines *a, uint32_t i,
	const struct change_text_lines *b, uint32_t k);

/* The number of a line that the other text does not have. */
#define CHANGE_TEXT_ALONE UINT32_MAX

/*
 * Gives lines numbers, so that they are equal where the lines are: ret_a[0] is that of line
 * span_a.from. 0 or -ENOMEM.
 */
int change_text_number(struct arena *arena, const struct change_text_lines *a,
	struct change_text_span span_a, const struct change_text_lines *b,
	struct change_text_span span_b, uint32_t *ret_a, uint32_t *ret_b);
