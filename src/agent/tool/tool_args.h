#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/tool/tool.h"
#include "base/arena.h"
#include "base/err.h"

/* What a tool is asked for. Pure. */

enum tool_mode {
	TOOL_MODE_FILES, /* grep: the files that match */
	TOOL_MODE_CONTENT,
	TOOL_MODE_COUNT,
};

struct tool_args {
	struct arena arena; /* has the texts; none has a NUL in it */
	const char *path;   /* NULL: the current folder */
	const char *pattern, *glob, *content, *old_text, *new_text;
	int64_t offset, limit;                     /* lines, from 1; limit 0: as many as usual */
	int64_t before, after, around, head_limit; /* head_limit 0: none */
	bool replaces_all, ignores_case, has_no_numbers;
	enum tool_mode mode;
};

/* Reads one JSON object. A member that is unknown, wrong or missing is told with what to do. */
int tool_args_read(
	enum tool tool, const char *bytes, size_t n, struct tool_args *ret, struct err *e);
void tool_args_done(struct tool_args *args);
