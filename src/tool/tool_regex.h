#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * Regular expressions as agents write them, by libc's extended ones. Bytes, not characters: a dot
 * is one byte, and case is that of ASCII. Lines are matched one by one.
 */
#define TOOL_MAX_LITERALS 16

/* Of these every match has at least one in it, in lower case where case does not matter. */
struct tool_literals {
	struct buf texts[TOOL_MAX_LITERALS];
	size_t count; /* 0: nothing is known */
	bool is_all;  /* whatever has one in it is a match */
};

struct tool_regex {
	regex_t compiled;
	bool has_compiled, ignores_case;
	struct tool_literals literals;
	struct buf expression; /* as it was compiled */
};

/*
 * Writes an extended regular expression for one with \d, \w in brackets, (?:…), *? and the like.
 * Pure. 0, or -EINVAL and a sentence that begins in the middle: "look-around is not known". Sets
 * *ret_ignores_case where the expression begins with (?i).
 */
int tool_regex_translate(
	const char *pattern, struct buf *out, bool *ret_ignores_case, struct err *e);

/* Finds the longest for each of the choices of an extended regular expression. Pure. */
void tool_regex_find_literals(const char *expression, struct tool_literals *ret);
void tool_literals_done(struct tool_literals *literals);

int tool_regex_init(struct tool_regex *ret, const char *pattern, bool ignores_case, struct err *e);
void tool_regex_done(struct tool_regex *r);

/* Gives back the memory that libc's automaton has taken while it was used, and never does. */
void tool_regex_renew(struct tool_regex *r);

/* Does a line without its newline have a match in it? 1 or 0; -ENOMEM: it takes too much memory. */
int tool_regex_matches(struct tool_regex *r, const char *line, size_t n);
