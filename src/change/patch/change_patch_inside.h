#pragma once

#include "change/patch/change_patch.h"

/* --- lines: change_patch.c --- */

void change_line_add(struct change_lines *to, enum change_line kind, const char *bytes, size_t n);
void change_line_print(struct change_lines *to, enum change_line kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* --- one side of a change, as text to compare: change_side.c --- */

enum change_side_found {
	CHANGE_SIDE_HERE,
	CHANGE_SIDE_LARGE,   /* more than is compared */
	CHANGE_SIDE_CHANGED, /* the host's file has changed since, and nobody kept what it was */
	CHANGE_SIDE_FAILED,  /* with an errno */
};

struct change_side {
	enum change_side_found found;
	char *bytes; /* owned; of a link its target */
	size_t size;
	int failure;
	bool is_kept; /* the host's file has changed since, but what it was is in base/ */
};

void change_side_done(struct change_side *s);

/* What a path was before the run, and what the run made of it. */
void change_side_before(
	const struct change_patch *k, const struct change_effect *x, struct change_side *ret);
void change_side_after(
	const struct change_patch *k, const struct change_effect *x, struct change_side *ret);
