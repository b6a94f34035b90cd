#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"

/* What a cage says of itself, and refusals in its words. */

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

/* False: it is not such a file, and nothing is known. Members that it has besides are skipped. */
bool tool_cage_read(const char *bytes, size_t n, struct tool_cage *ret);
void tool_cage_done(struct tool_cage *cage);

/* What was attempted on a path, for its sentence. */
struct tool_attempt {
	const char *verb; /* read, write, edit, search */
	const char *path; /* as it was given */
	const char *full; /* the same from the root, without "." and ".." */
	const char *link; /* what it is a link to, in the same form; or NULL */
	bool writes;
};

/*
 * "cannot read 'P': it is not in this cage, which has …". Pure. `cage` may be NULL. Returns -num.
 */
int tool_cage_explain(
	const struct tool_cage *cage, const struct tool_attempt *attempt, int num, struct err *e);

/*
 * `path` as seen from `from`, which is absolute, without "." and "..": for sentences only, since no
 * link is looked at. False: it does not fit.
 */
bool tool_full_path(const char *from, const char *path, char *ret, size_t size);

/* The same with what this cage says of itself, where it does, and what lies at the path. */
int tool_fail(const char *verb, bool writes, const char *path, int num, struct err *e);

/* The end of a long path behind "…", for sentences that have to say more than it. */
const char *tool_shown(const char *path, char ret[static 256]);
