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
 * A leading dot is a character like any other. Time grows with the product of the lengths at most.
 */
#define TOOL_MAX_PATTERN  4096
#define TOOL_GLOB_CHOICES 1024 /* that {a,b} may stand for */

struct tool_glob {
	struct arena arena;
	const char **choices; /* without braces */
	size_t count;
};

int tool_glob_parse(const char *pattern, struct tool_glob *ret, struct err *e);
void tool_glob_done(struct tool_glob *g);

/* A relative path, without "." and "..". */
bool tool_glob_matches(const struct tool_glob *g, const char *path);

/* May there be a match below a folder with this path? */
bool tool_glob_enters(const struct tool_glob *g, const char *folder);

/* Does it have this name in it, as it is, between slashes? */
bool tool_glob_names(const struct tool_glob *g, const char *name);

/* The number of bytes of a pattern, up to a slash, that are folders without any wildcard. */
size_t tool_glob_fixed(const char *pattern);
