#include "tool/tool_regex.h"

#include <errno.h>
#include <string.h>
#include <sys/types.h>

#include "base/own.h"
#include "base/str.h"
#include "tool/tool_glob.h"

/* --- what every match has in it --- */

/* The end of the bracket or the group at `at`. */
static const char *skip_bracket(const char *at)
{
	at += at[1] == '^' ? 2 : 1;
	at += *at == ']';
	while (*at && *at != ']')
		at++;
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

static void end_run(struct runs *r)
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
	if (is_escape ? strchr("bB<>123456789wWsS", c) != NULL : strchr(".^$|", c) != NULL) {
		*at += 1 + is_escape;
		return false;
	}
	if (!is_escape && (c == '[' || c == '(')) {
		*at = c == '[' ? skip_bracket(*at) : skip_group(*at);
		return false;
	}
	*at += 1 + is_escape;
	/* What may be missing does not count, and what may come again ends a run. */
	if (**at && strchr("*?{", **at))
		return false;
	buf_putc(&r->run, c);
	return **at != '+';
}

/* The end of a choice: a bar that is in no group, or that of the expression. */
static const char *end_of_choice(const char *at)
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
		at += *at == '{' ? strcspn(at, "}") + 1 : 1;
	return at;
}

/* The longest text in one choice; true where there is nothing else in it. */
static bool find_literal(const char *choice, struct buf *ret)
{
	struct runs r = { .run = { .max = TOOL_MAX_PATTERN * 2 }, .best = ret };
	bool is_all = true;

	while (*choice) {
		if (take_literal(&r, &choice))
			continue;
		is_all = false;
		end_run(&r);
		choice = skip_repeat(choice);
	}
	end_run(&r);
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

	*ret = (struct tool_literals){ .is_all = true };
	do {
		own(buf) struct buf choice = { .max = TOOL_MAX_PATTERN * 16 };
		struct buf *text = &ret->texts[ret->count];

		end = end_of_choice(expression);
		buf_add(&choice, expression, (size_t)(end - expression));
		expression = end + 1;
		text->max = TOOL_MAX_PATTERN * 2;
		if (!find_literal(buf_text(&choice), text))
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

static int compile(struct tool_regex *r, const char *expression, struct err *e)
{
	int flags = REG_EXTENDED | REG_NOSUB | (r->ignores_case ? REG_ICASE : 0);
	int failure = regcomp(&r->compiled, expression, flags);
	char text[128];

	if (failure == 0) {
		r->has_compiled = true;
		return 0;
	}
	regerror(failure, &r->compiled, text, sizeof(text));
	return err_set(e, ERR_USE, EINVAL, "%s",
		failure == REG_ESPACE ? "it takes too much memory" : text);
}

int tool_regex_init(struct tool_regex *ret, const char *pattern, bool ignores_case, struct err *e)
{
	struct buf *expression = &ret->expression;
	int r;

	*ret = (struct tool_regex){ .ignores_case = ignores_case,
		.expression.max = TOOL_MAX_PATTERN * 16 };
	r = tool_regex_translate(pattern, expression, &ret->ignores_case, e);
	if (r == 0)
		r = compile(ret, buf_text(expression), e);
	if (r < 0) {
		err_prefix(e, "the pattern '%.100s' cannot be used", pattern);
		buf_done(expression);
		return r;
	}
	tool_regex_find_literals(buf_text(expression), &ret->literals);
	if (ret->ignores_case)
		lower_literals(&ret->literals);
	return 0;
}

void tool_regex_done(struct tool_regex *r)
{
	if (r->has_compiled)
		regfree(&r->compiled);
	tool_literals_done(&r->literals);
	buf_done(&r->expression);
}

void tool_regex_renew(struct tool_regex *r)
{
	struct err unused;

	if (r->has_compiled)
		regfree(&r->compiled);
	r->has_compiled = false;
	(void)compile(r, buf_text(&r->expression), &unused);
}

/* By libc's older name for it: to regexec there, what it has no memory for is no match. */
int tool_regex_matches(struct tool_regex *r, const char *line, size_t n)
{
	regoff_t size = (regoff_t)n;
	regoff_t at = r->has_compiled ? re_search(&r->compiled, line, size, 0, size, NULL) : -2;

	return at >= 0 ? 1 : at == -1 ? 0 : -ENOMEM;
}
