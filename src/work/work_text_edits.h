#pragma once

#include "work/work_text_lines.h"

/* Lines a … of the first text became lines b … of the second; one of the counts may be 0. */
struct work_text_edit {
	uint32_t a, a_count, b, b_count;
};

/* What makes one text of another, in their order, with at least one equal line between two. */
struct work_text_edits {
	struct arena arena;
	struct work_text_lines a, b;
	struct work_text_edit *items;
	size_t count;
	uint64_t steps; /* taken to find them; at most WORK_TEXT_MAX_STEPS and one per byte */
};

/* Initialises `ret`, which borrows the texts. 0, -EFBIG or -ENOMEM; `ret` has to be done anyway. */
int work_text_edits_find(
	const struct work_text *a, const struct work_text *b, struct work_text_edits *ret);
void work_text_edits_done(struct work_text_edits *x);
