#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * The file tools that agents know, for use inside a cage: read, write, edit, glob, grep. They have
 * no policy of their own: only the kernel refuses. The tools explain a refusal by the cage's
 * description of itself, TOOL_CAGE_FILE.
 */
enum tool {
	TOOL_READ,
	TOOL_WRITE,
	TOOL_EDIT,
	TOOL_GLOB,
	TOOL_GREP,
	TOOL_COUNT,
};

#define TOOL_MAX_INPUT  ((size_t)16 << 20)
#define TOOL_MAX_OUTPUT ((size_t)1 << 20)

/* Room behind the output for the line that says that it was cut. */
#define TOOL_MAX_NOTE 4096

/* Returns the tool of a name such as "read"; TOOL_COUNT: there is none. */
enum tool tool_find(const char *name);

/*
 * Runs a tool with a JSON object of arguments and adds its result, UTF-8 text, to `out`, whose
 * maximum must be at least TOOL_MAX_OUTPUT + TOOL_MAX_NOTE. Returns 0 or -errno; e->kind is ERR_USE
 * if the arguments are wrong.
 */
int tool_run(enum tool tool, const char *arguments, size_t n, struct buf *out, struct err *e);
