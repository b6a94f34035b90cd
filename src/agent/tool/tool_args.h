#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/tool/tool.h"
#include "base/arena.h"
#include "base/err.h"

/* The arguments of a tool. Pure. */

enum tool_mode {
	TOOL_MODE_FILES, /* grep prints the names of files that match */
	TOOL_MODE_CONTENT,
	TOOL_MODE_COUNT,
};

struct tool_args {
	struct arena arena; /* owns the texts, which have no NUL in them */
	const char *path;   /* NULL: the current folder */
	const char *pattern, *glob, *content, *old_text, *new_text;
	int64_t offset, limit;                     /* lines, from 1; limit 0: the default */
	int64_t before, after, around, head_limit; /* head_limit 0: no limit */
	bool replaces_all, ignores_case, has_no_numbers;
	enum tool_mode mode;
};

/* Reads a JSON object. For an unknown, wrong or missing member `e` says what to do. */
int tool_args_read(
	enum tool tool, const char *bytes, size_t n, struct tool_args *ret, struct err *e);
void tool_args_done(struct tool_args *args);
