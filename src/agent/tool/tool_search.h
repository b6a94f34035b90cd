#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/tool/tool_args.h"
#include "agent/tool/tool_regex.h"
#include "base/buf.h"

/* Searches texts one after the other and prints what `mode` asks for. Pure. */
struct tool_search {
	struct tool_regex *regex;
	enum tool_mode mode;
	bool has_numbers;
	uint64_t before, after; /* lines around each match */
	uint64_t limit;         /* lines that are printed; 0: no limit */
	struct buf *out;        /* at most TOOL_MAX_OUTPUT bytes are added to it */

	struct buf lowered; /* a text in lower case; its maximum limits the size of a text */
	uint64_t printed;   /* lines */
	bool is_cut;        /* the limit of lines was reached */
	bool is_full;       /* the limit of bytes was reached */
	bool has_failed;    /* no memory: the last text was not searched to its end */
};

void tool_search_done(struct tool_search *s);

/* Searches one text. Prints `path`, escaped, before each line. False: a limit was reached. */
bool tool_search_text(struct tool_search *s, const char *path, const char *text, size_t n);
