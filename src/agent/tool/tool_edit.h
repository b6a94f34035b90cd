#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* Replaces exact text in a text. Pure. */

#define TOOL_EDIT_SHOWN 5   /* places whose lines are listed */
#define TOOL_EDIT_MOST  100 /* places that are counted when there should be one */

struct tool_edit {
	const char *text, *old_text, *new_text; /* borrowed; old_text is not empty */
	size_t size;                            /* of `text`, which may have any bytes */
	bool replaces_all;

	size_t count;                    /* places that were replaced */
	uint64_t lines[TOOL_EDIT_SHOWN]; /* line numbers of the first of them, from 1 */
};

/*
 * Writes the edited text to `out`. If the text has CR LF and old_text has bare newlines, reads
 * old_text and new_text with CR LF too. Returns 0; -ENOENT, -EEXIST (it occurs more than once) or
 * -EFBIG, with what to do in `e`.
 */
int tool_edit_apply(struct tool_edit *edit, struct buf *out, struct err *e);
