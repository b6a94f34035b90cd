#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"

/* Reads the cage's description of itself, and explains refusals by it. */

#define TOOL_CAGE_FILE "/etc/bawn/cage.json"
#define TOOL_CAGE_MAX  ((size_t)1 << 20)

/* Paths in the cage; each covers what is below it. */
struct tool_paths {
	const char **at;
	size_t count;
};

struct tool_cage {
	struct arena arena;
	const char *project, *home; /* or NULL */
	struct tool_paths read, write, protect;
};

/* Reads a description; skips unknown members. False: it is not one, and `ret` is empty. */
bool tool_cage_read(const char *bytes, size_t n, struct tool_cage *ret);
void tool_cage_done(struct tool_cage *cage);

/* An attempt that was refused. */
struct tool_attempt {
	const char *verb; /* read, write, edit, search */
	const char *path; /* as the agent gave it */
	const char *full; /* absolute, without "." and ".." */
	const char *link; /* the target if it is a symlink, in the same form; or NULL */
	bool writes;
};

/*
 * Fills `e` with "cannot read 'P': it is not in this cage, which has …". Pure. `cage` may be NULL.
 * Returns -num.
 */
int tool_cage_explain(
	const struct tool_cage *cage, const struct tool_attempt *attempt, int num, struct err *e);

/*
 * Makes `path` absolute, starting at `from`, and removes "." and "..". Ignores symlinks, so the
 * result is only for messages. False: it does not fit.
 */
bool tool_full_path(const char *from, const char *path, char *ret, size_t size);

/* Explains a failure by the description of this cage and what is at the path. Returns -num. */
int tool_fail(const char *verb, bool writes, const char *path, int num, struct err *e);

/* Returns a path for a message: of a long one only the end, behind "…". */
const char *tool_shown(const char *path, char ret[static 256]);
