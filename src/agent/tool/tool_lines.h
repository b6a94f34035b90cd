#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * Prints lines `first` to `first + count - 1` of a text that comes in pieces, with their numbers,
 * each cut to TOOL_LINE_SIZE bytes. Pure.
 */
#define TOOL_LINE_SIZE 2000
#define TOOL_LINES     2000

struct tool_lines {
	uint64_t first, count; /* from 1 */
	struct buf *out;       /* at most TOOL_MAX_OUTPUT bytes are added to it */
	uint64_t line;         /* complete lines so far */
	uint64_t printed;
	bool has_nul, is_foreign; /* is_foreign: the text is not UTF-8 */
	bool has_more;            /* the text goes on behind the last printed line */
	size_t size, kept;        /* size of the incomplete line, and bytes of it in `text` */
	char text[TOOL_LINE_SIZE + 4];
};

/* Takes the next piece. False: the rest of the text is not needed. */
bool tool_lines_feed(struct tool_lines *l, const char *bytes, size_t n);

/* Ends the text: prints a last line without newline. */
void tool_lines_end(struct tool_lines *l);

/* Prints a line, cut between characters at TOOL_LINE_SIZE bytes, with a note if it was longer. */
void tool_put_line(struct buf *out, const char *bytes, size_t n);
