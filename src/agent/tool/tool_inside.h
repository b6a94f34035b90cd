#pragma once

#include "agent/tool/tool_args.h"
#include "base/buf.h"
#include "base/err.h"

/* The tools: each adds its result to `out`. Returns 0, or -errno with a sentence. */

int tool_run_read(const struct tool_args *args, struct buf *out, struct err *e);
int tool_run_write(const struct tool_args *args, struct buf *out, struct err *e);
int tool_run_edit(const struct tool_args *args, struct buf *out, struct err *e);
int tool_run_glob(const struct tool_args *args, struct buf *out, struct err *e);
int tool_run_grep(const struct tool_args *args, struct buf *out, struct err *e);

/* Maximum size of a file that a tool holds in memory. */
#define TOOL_MAX_FILE ((size_t)64 << 20)

/*
 * Opens a regular file for reading: never waits for a pipe, never uses a device. Returns a
 * descriptor, or -errno with a sentence in `e` that begins with `verb`.
 */
int tool_open_file(const char *verb, const char *path, struct err *e);
