#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * Regular expressions as agents write them, by PCRE2 and with limits to what a match may take.
 * Bytes, not characters: a dot is one byte, and case is that of ASCII. Lines are matched one by
 * one.
 */
#define TOOL_MAX_LITERALS 16

/* Of these every match has at least one in it, in lower case where case does not matter. */
struct tool_literals {
	struct buf texts[TOOL_MAX_LITERALS];
	size_t count; /* 0: nothing is known */
	bool is_all;  /* whatever has one in it is a match */
};

struct tool_regex {
	struct pcre2_real_code_8 *code;
	struct pcre2_real_match_context_8 *limits;
	struct pcre2_real_match_data_8 *found;
	bool ignores_case;
	struct tool_literals literals;
};

/* Finds the longest for each of the choices of an expression. Pure. */
void tool_regex_find_literals(const char *expression, struct tool_literals *ret);
void tool_literals_done(struct tool_literals *literals);

/* 0, or -EINVAL and a sentence. */
int tool_regex_init(struct tool_regex *ret, const char *pattern, bool ignores_case, struct err *e);
void tool_regex_done(struct tool_regex *r);

/* Does a line without its newline have a match in it? 1 or 0; -E2BIG: it takes too long. */
int tool_regex_matches(struct tool_regex *r, const char *line, size_t n);
