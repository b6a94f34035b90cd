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
struct tool_regex {
	regex_t compiled;
	bool has_compiled, ignores_case;
	struct buf literal; /* every match has this in it; empty: nothing is known */
	bool is_literal;    /* and there is nothing more to a match */
};

/*
 * Writes an extended regular expression for one with \d, \w in brackets, (?:…), *? and the like.
 * Pure. 0, or -EINVAL and a sentence that begins in the middle: "look-around is not known". Sets
 * *ret_ignores_case where the expression begins with (?i).
 */
int tool_regex_translate(
	const char *pattern, struct buf *out, bool *ret_ignores_case, struct err *e);

/*
 * Finds the longest text that every match of an extended regular expression has in it; true where
 * the expression is no more than that text. Pure.
 */
bool tool_regex_literal(const char *expression, struct buf *ret);

int tool_regex_init(struct tool_regex *ret, const char *pattern, bool ignores_case, struct err *e);
void tool_regex_done(struct tool_regex *r);

/* Does a line without its newline have a match in it? */
bool tool_regex_matches(const struct tool_regex *r, const char *line, size_t n);
