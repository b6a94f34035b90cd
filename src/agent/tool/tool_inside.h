#pragma once

#include "agent/tool/tool_args.h"
#include "agent/tool/tool_walk.h"
#include "base/buf.h"
#include "base/err.h"

/*
 * The path of an entry as it can be used from here: below `start`, which may be NULL. Borrowed from
 * `ret` until its next change.
 */
const char *tool_join_path(struct buf *ret, const char *start, const char *path);

/* Says at the end of a result how many folders were not looked into, if any, and why. */
void tool_note_folders(struct buf *out, const struct tool_walk *walk);
