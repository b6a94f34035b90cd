#pragma once

#include "change/text/change_text_lines.h"

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
