#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* Replaces exact text in a text. Pure. */

#define TOOL_EDIT_SHOWN 5   /* places that are named */
#define TOOL_EDIT_MOST  100 /* places that are counted where there should be one */

struct tool_edit {
	const char *text, *old_text, *new_text; /* borrowed; old_text is not empty */
	size_t size;                            /* of `text`, which may have anything in it */
	bool replaces_all;

	size_t count;                    /* places that were replaced */
	uint64_t lines[TOOL_EDIT_SHOWN]; /* where the first of them begin, from 1 */
};

/*
 * Writes what the text becomes. Where old_text has bare newlines and the text's lines end in CR LF,
 * so do those of both. 0, or -errno and what to do about it: -ENOENT, -EEXIST (there are several),
 * -EFBIG.
 */
int tool_edit_apply(struct tool_edit *edit, struct buf *out, struct err *e);
