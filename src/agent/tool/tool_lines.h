#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * Numbers the lines of a text that comes in pieces of any size. Pure. Prints lines `first` to
 * `first + count - 1`, each of at most TOOL_LINE_SIZE bytes.
 */
#define TOOL_LINE_SIZE 2000
#define TOOL_LINES     2000

struct tool_lines {
	uint64_t first, count; /* from 1 */
	struct buf *out;       /* at most TOOL_MAX_OUTPUT bytes are added to it */
	uint64_t line;         /* lines that ended */
	uint64_t printed;
	bool has_nul, is_foreign; /* the text is not UTF-8 */
	bool has_more;            /* there is something behind the last printed line */
	size_t size, kept;        /* of the line that has not ended, and how much is in `text` */
	char text[TOOL_LINE_SIZE + 4];
};

/* False: what else there is does not matter. */
bool tool_lines_feed(struct tool_lines *l, const char *bytes, size_t n);

/* There is nothing else: prints a last line that has no newline. */
void tool_lines_end(struct tool_lines *l);

/* A line of at most TOOL_LINE_SIZE bytes, cut between characters; says where it was longer. */
void tool_put_line(struct buf *out, const char *bytes, size_t n);
