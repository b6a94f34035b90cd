#define PCRE2_CODE_UNIT_WIDTH 8
#include "agent/tool/tool_regex.h"

#include <errno.h>
#include <pcre2.h>
#include <string.h>

#include "agent/tool/tool_glob.h"
#include "base/count.h"
#include "base/own.h"
#include "base/str.h"

#define MAX_STEPS  1000000     /* that one line may take: some hundredths of a second */
#define MAX_MEMORY (64 * 1024) /* KiB of them that may be in question at a time */

/* --- what every match has in it --- */

static bool is_letter_or_digit(char c)
{
	return str_is_digit(c) || (str_lower(c) >= 'a' && str_lower(c) <= 'z');
}

/*
 * Is it of the plain kind that is read below? Options in the middle, names, verbs, quoting and
 * numbers of characters are not: of these nothing is known beforehand.
 */
static bool regex_is_plain(const char *at)
{
	static const char *const groups[] = { "?:", "?=", "?!", "?<=", "?<!" };

	for (; *at; at++) {
		if (*at == '\\') {
			at++;
			if (!*at || (is_letter_or_digit(*at) && !strchr("bBdDwWsS", *at)))
				return false;
		} else if (*at == '(' && (at[1] == '?' || at[1] == '*')) {
			bool is_known = false;

			for (size_t i = 0; i < COUNT_OF(groups); i++)
				is_known |= str_starts(at + 1, groups[i]);
			if (!is_known)
				return false;
		}
	}
	return true;
}

/* The end of a class like [:alpha:] in a bracket; NULL where `at` begins none, so that its '[' is a
 * character. */
static const char *end_of_class(const char *at)
{
	if (!str_starts(at, "[:"))
		return NULL;
	at += at[2] == '^' ? 3 : 2;
	at += strspn(at, "abcdefghijklmnopqrstuvwxyz");
	return str_starts(at, ":]") ? at + 2 : NULL;
}

/* The end of the bracket or the group at `at`. */
static const char *skip_bracket(const char *at)
{
	at += at[1] == '^' ? 2 : 1;
	at += *at == ']';
	while (*at && *at != ']') {
		const char *class_end = end_of_class(at);

		at = class_end ? class_end : at + (*at == '\\' && at[1] ? 2 : 1);
	}
	return at + (*at != '\0');
}

static const char *skip_group(const char *at)
{
	size_t depth = 0;

	do {
		if (*at == '[') {
			at = skip_bracket(at);
			continue;
		}
		depth += *at == '(';
		depth -= *at == ')';
		at += *at == '\\' && at[1] ? 2 : 1;
	} while (*at && depth);
	return at;
}

/* A run of literal text, and the longest so far. */
struct runs {
	struct buf run, *best;
};

static void regex_end_run(struct runs *r)
{
	if (r->run.len > r->best->len) {
		r->best->len = 0;
		buf_add(r->best, r->run.data, r->run.len);
	}
	r->run.len = 0;
}

/* The next thing of an expression; false: it is not literal text. */
static bool take_literal(struct runs *r, const char **at)
{
	char c = **at;
	bool is_escape = c == '\\' && (*at)[1];

	if (is_escape)
		c = (*at)[1];
	if (is_escape ? is_letter_or_digit(c) : strchr(".^$|", c) != NULL) {
		*at += 1 + is_escape;
		return false;
	}
	if (!is_escape && (c == '[' || c == '(')) {
		*at = c == '[' ? skip_bracket(*at) : skip_group(*at);
		return false;
	}
	*at += 1 + is_escape;
	/* An optional part does not count, and a repeated one ends a literal. */
	if (**at && strchr("*?{", **at))
		return false;
	buf_putc(&r->run, c);
	return **at != '+';
}

/* The end of a choice: a bar that is in no group, or that of the expression. */
static const char *regex_end_of_choice(const char *at)
{
	while (*at && *at != '|') {
		if (*at == '[')
			at = skip_bracket(at);
		else if (*at == '(')
			at = skip_group(at);
		else
			at += *at == '\\' && at[1] ? 2 : 1;
	}
	return at;
}

static const char *skip_repeat(const char *at)
{
	while (*at && strchr("*+?{", *at))
		at += *at == '{' && strchr(at, '}') ? strcspn(at, "}") + 1 : 1;
	return at;
}

/* The longest text in one choice; true where there is nothing else in it. */
static bool regex_find_literal(const char *choice, struct buf *ret)
{
	struct runs r = { .run = { .max = TOOL_MAX_PATTERN * 2 }, .best = ret };
	bool is_all = true;

	while (*choice) {
		if (take_literal(&r, &choice))
			continue;
		is_all = false;
		regex_end_run(&r);
		choice = skip_repeat(choice);
	}
	regex_end_run(&r);
	buf_done(&r.run);
	return is_all;
}

void tool_literals_done(struct tool_literals *literals)
{
	for (size_t i = 0; i < TOOL_MAX_LITERALS; i++)
		buf_done(&literals->texts[i]);
	*literals = (struct tool_literals){ 0 };
}

void tool_regex_find_literals(const char *expression, struct tool_literals *ret)
{
	const char *end;

	*ret = (struct tool_literals){ .is_all = regex_is_plain(expression) };
	if (!ret->is_all)
		return;
	do {
		own(buf) struct buf choice = { .max = TOOL_MAX_PATTERN * 16 };
		struct buf *text = &ret->texts[ret->count];

		end = regex_end_of_choice(expression);
		buf_add(&choice, expression, (size_t)(end - expression));
		expression = end + 1;
		text->max = TOOL_MAX_PATTERN * 2;
		if (!regex_find_literal(buf_text(&choice), text))
			ret->is_all = false;
		/* A choice of which nothing is known may be anything. */
		if (text->len == 0 || text->failed || ++ret->count == TOOL_MAX_LITERALS) {
			tool_literals_done(ret);
			return;
		}
	} while (*end);
}

/* --- the expression --- */

static void lower_literals(struct tool_literals *literals)
{
	for (size_t i = 0; i < literals->count; i++)
		for (size_t k = 0; k < literals->texts[i].len; k++)
			literals->texts[i].data[k] = str_lower(literals->texts[i].data[k]);
}

/* Lines are matched one by one: what asks for two would never be found, and nobody told. */
static bool wants_newline(const char *pattern)
{
	for (; *pattern; pattern++) {
		if (*pattern == '\n' || (*pattern == '\\' && pattern[1] == 'n'))
			return true;
		pattern += *pattern == '\\' && pattern[1];
	}
	return false;
}

static int compile(struct tool_regex *r, const char *pattern, struct err *e)
{
	uint32_t options = PCRE2_NEVER_UTF | PCRE2_NEVER_UCP | PCRE2_NEVER_BACKSLASH_C |
			   (r->ignores_case ? PCRE2_CASELESS : 0);
	PCRE2_UCHAR text[128];
	PCRE2_SIZE at;
	int failure;

	if (strlen(pattern) > TOOL_MAX_PATTERN)
		return err_set(e, ERR_USE, EINVAL, "it is longer than %d bytes", TOOL_MAX_PATTERN);
	if (wants_newline(pattern))
		return err_set(e, ERR_USE, EINVAL, "lines are matched one by one");
	r->code = pcre2_compile(
		(PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, options, &failure, &at, NULL);
	if (!r->code) {
		pcre2_get_error_message(failure, text, sizeof(text));
		return err_set(e, ERR_USE, EINVAL, "%s, at its character %zu", (char *)text, at);
	}
	r->limits = pcre2_match_context_create(NULL);
	r->found = pcre2_match_data_create(1, NULL);
	if (!r->limits || !r->found)
		return err_set(e, ERR_SYS, ENOMEM, "not enough memory");
	pcre2_set_match_limit(r->limits, MAX_STEPS);
	pcre2_set_heap_limit(r->limits, MAX_MEMORY);
	return 0;
}

int tool_regex_init(struct tool_regex *ret, const char *pattern, bool ignores_case, struct err *e)
{
	const char *rest = pattern;
	int r;

	*ret = (struct tool_regex){ .ignores_case = ignores_case || str_starts(pattern, "(?i)") };
	if (str_starts(pattern, "(?i)"))
		rest += strlen("(?i)");
	r = compile(ret, rest, e);
	if (r < 0) {
		err_prefix(e, "cannot use the pattern '%.100s'", pattern);
		tool_regex_done(ret);
		return r;
	}
	tool_regex_find_literals(rest, &ret->literals);
	if (ret->ignores_case)
		lower_literals(&ret->literals);
	return 0;
}

void tool_regex_done(struct tool_regex *r)
{
	pcre2_match_data_free(r->found);
	pcre2_match_context_free(r->limits);
	pcre2_code_free(r->code);
	tool_literals_done(&r->literals);
	*r = (struct tool_regex){ 0 };
}

int tool_regex_matches(struct tool_regex *r, const char *line, size_t n)
{
	int found = pcre2_match(r->code, (PCRE2_SPTR)line, n, 0, 0, r->found, r->limits);

	return found >= 0 ? 1 : found == PCRE2_ERROR_NOMATCH ? 0 : -E2BIG;
}
