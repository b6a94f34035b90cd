#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/tool/tool_args.h"
#include "agent/tool/tool_regex.h"
#include "base/buf.h"

/* Searches texts one after the other, and prints what is asked for. Pure but for libc's locale. */
struct tool_search {
	struct tool_regex *regex;
	enum tool_mode mode;
	bool has_numbers;
	uint64_t before, after; /* lines around each match */
	uint64_t limit;         /* lines that are printed; 0: no limit */
	struct buf *out;        /* at most TOOL_MAX_OUTPUT bytes are added to it */

	struct buf lowered; /* a text without its capitals; its maximum is that of a text */
	uint64_t printed;   /* lines */
	bool is_cut;        /* by the limit of lines */
	bool is_full;       /* by that of bytes */
	bool has_failed;    /* there was no memory to search the last text to its end */
};

void tool_search_done(struct tool_search *s);

/* `path` is printed before each line, visibly. False: no more text is needed. */
bool tool_search_text(struct tool_search *s, const char *path, const char *text, size_t n);
