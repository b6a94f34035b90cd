#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * Regular expressions as agents write them, by PCRE2 with limits of time and memory for a match.
 * They match bytes: a dot is one byte, and only ASCII letters have case. Lines are matched one by
 * one.
 */
#define TOOL_MAX_LITERALS 16

/* Texts of which every match contains at least one; in lower case if case is ignored. */
struct tool_literals {
	struct buf texts[TOOL_MAX_LITERALS];
	size_t count; /* 0: unknown */
	bool is_all;  /* a line with one of them is always a match */
};

struct tool_regex {
	struct pcre2_real_code_8 *code;
	struct pcre2_real_match_context_8 *limits;
	struct pcre2_real_match_data_8 *found;
	bool ignores_case;
	struct tool_literals literals;
};

/* Finds the longest literal of each alternative of an expression. Pure. */
void tool_regex_find_literals(const char *expression, struct tool_literals *ret);
void tool_literals_done(struct tool_literals *literals);

/* Compiles a pattern. Returns 0, or -EINVAL with `e`. */
int tool_regex_init(struct tool_regex *ret, const char *pattern, bool ignores_case, struct err *e);
void tool_regex_done(struct tool_regex *r);

/* Returns 1 if a line, without its newline, has a match in it, 0 if not, -E2BIG at the limits. */
int tool_regex_matches(struct tool_regex *r, const char *line, size_t n);
