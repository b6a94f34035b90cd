#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * The file tools that agents know, for use inside a cage: read, write, edit, glob, grep. They have
 * no policy of their own: what they may touch is what the kernel lets them. A refusal is explained
 * by what the cage says of itself.
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

/* Beyond the output: room for the line that says that it was cut. */
#define TOOL_MAX_NOTE 4096

/* "read" … ; TOOL_COUNT: it is none. */
enum tool tool_find(const char *name);

/*
 * Does what one JSON object of arguments says and adds the result, text in UTF-8, to `out`, whose
 * maximum is at least TOOL_MAX_OUTPUT + TOOL_MAX_NOTE. 0 or -errno; e->kind is ERR_USE where the
 * arguments are wrong.
 */
int tool_run(enum tool tool, const char *arguments, size_t n, struct buf *out, struct err *e);
