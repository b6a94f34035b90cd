#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"

/*
 * Patterns of paths. Pure.
 *
 *   *  ?  [a-z]  [!a]   in one name: any text, one character, one of, none of
 *   **                  as a whole name: any number of folders; at the end: all that is below
 *   {a,b}               either, also nested
 *   \                   the next character as it is
 *
 * A leading dot is a character like any other. Matching takes at most time proportional to the
 * product of the lengths of pattern and path.
 */
#define TOOL_MAX_PATTERN  4096
#define TOOL_GLOB_CHOICES 1024 /* patterns that braces may expand to */

struct tool_glob {
	struct arena arena;
	const char **choices; /* the patterns after expanding braces */
	size_t count;
};

int tool_glob_parse(const char *pattern, struct tool_glob *ret, struct err *e);
void tool_glob_done(struct tool_glob *g);

/* True if the pattern matches a relative path, which must have no "." or "..". */
bool tool_glob_matches(const struct tool_glob *g, const char *path);

/* True if a path below this folder may match. */
bool tool_glob_enters(const struct tool_glob *g, const char *folder);

/* True if the pattern has this name, without wildcards, as one of its parts. */
bool tool_glob_names(const struct tool_glob *g, const char *name);

/* Returns the length of the leading folders of a pattern that have no wildcard. */
size_t tool_glob_fixed(const char *pattern);
