#include "check/check_git_value.h"

#include <string.h>

#include "base/str.h"

#define END (-1)
#define BAD (-2) /* what git refuses to read */

/* One character; the two that end lines elsewhere are one. */
static int git_value_take(struct check_git_values *v)
{
	if (v->at == v->end)
		return END;
	if (*v->at == '\r' && v->at + 1 < v->end && v->at[1] == '\n')
		v->at++;
	return (unsigned char)*v->at++;
}

static bool git_value_is_space(int c)
{
	return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r';
}

static bool is_of_name(int c)
{
	return c > 0 && (str_is_letter((char)c) || str_is_digit((char)c) || c == '-');
}

static void skip_line(struct check_git_values *v)
{
	int c;

	do
		c = git_value_take(v);
	while (c != '\n' && c != END);
}

/* A word in small letters; "" where it does not fit. The character after it. */
static int git_value_take_name(struct check_git_values *v, int first, char *ret, size_t size)
{
	size_t n = 0;
	int c = first;

	for (; is_of_name(c); c = git_value_take(v), n++)
		if (n < size)
			ret[n] = str_lower((char)c);
	ret[n < size ? n : 0] = '\0';
	return c;
}

/* After "[": NAME], NAME.SUB] or NAME "SUB"]. */
static bool git_value_take_section(struct check_git_values *v)
{
	bool is_quoted = false;
	int c = git_value_take_name(v, git_value_take(v), v->section, sizeof(v->section));

	v->has_subsection = c != ']';
	while (c != END && c != '\n' && (c != ']' || is_quoted)) {
		if (c == '"')
			is_quoted = !is_quoted;
		c = git_value_take(v);
		if (c == '\\' && is_quoted) {
			git_value_take(v);
			c = git_value_take(v);
		}
	}
	return c == ']';
}

/* What stands behind a backslash; 0: nothing, the line goes on. */
static int git_value_take_escaped(struct check_git_values *v)
{
	static const char escapes[] = "t\tb\bn\n\\\\\"\"";
	int c = git_value_take(v);

	if (c == '\n' || c == END)
		return 0;
	for (const char *e = escapes; *e; e += 2)
		if (*e == c)
			return e[1];
	return BAD;
}

/* The value behind "=", in `ret` if it fits: its length, or BAD. */
static int git_value_take_value(struct check_git_values *v, char *ret, size_t size)
{
	bool is_quoted = false;
	size_t n = 0, kept = 0; /* spaces at the end are not kept */

	for (int c = git_value_take(v);; c = git_value_take(v)) {
		bool is_escaped = c == '\\';

		if (is_escaped)
			c = git_value_take_escaped(v);
		if (c == BAD || (is_quoted && !is_escaped && (c == '\n' || c == END)))
			return BAD;
		if (is_escaped && c == 0)
			continue;
		if (!is_escaped && (c == '\n' || c == END))
			break;
		if (!is_escaped && c == '"') {
			is_quoted = !is_quoted;
			kept = n;
			continue;
		}
		if (!is_escaped && !is_quoted && (c == '#' || c == ';')) {
			skip_line(v);
			break;
		}
		if (n == 0 && !is_quoted && !is_escaped && git_value_is_space(c))
			continue;
		if (n < size)
			ret[n] = (char)c;
		n++;
		if (is_escaped || is_quoted || !git_value_is_space(c))
			kept = n;
	}
	if (kept < size)
		ret[kept] = '\0';
	return kept < size ? (int)kept : (int)size;
}

void check_git_values_init(struct check_git_values *v, const char *bytes, size_t n)
{
	*v = (struct check_git_values){ .at = bytes, .end = bytes + n };
	if (n >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
		v->at += 3;
}

/* A setting whose name begins with `first`: has it a value that fits? BAD: it is none. */
static int git_value_take_setting(struct check_git_values *v, int first, char *ret, size_t size)
{
	int c, n;

	if (first <= 0 || !str_is_letter((char)first))
		return BAD;
	c = git_value_take_name(v, first, v->key, sizeof(v->key));
	while (c == ' ' || c == '\t')
		c = git_value_take(v);
	if (c != '=' && c != '\n' && c != END)
		return BAD;
	ret[0] = '\0';
	n = c == '=' ? git_value_take_value(v, ret, size) : 0;
	return n == BAD ? BAD : (size_t)n < size;
}

bool check_git_values_any(struct check_git_values *v, char *ret, size_t size)
{
	int c, found = 0;

	while (found != BAD && (c = git_value_take(v)) != END) {
		if (git_value_is_space(c) || c == '\n')
			continue;
		if (c == '#' || c == ';')
			skip_line(v);
		else if (c == '[')
			found = git_value_take_section(v) ? 0 : BAD;
		else
			found = git_value_take_setting(v, c, ret, size);
		if (found > 0)
			return true;
	}
	v->at = v->end;
	return false;
}

bool check_git_values_next(
	struct check_git_values *v, const char *section, const char *key, char *ret, size_t size)
{
	while (check_git_values_any(v, ret, size))
		if (!v->has_subsection && str_eq(v->section, section) && str_eq(v->key, key))
			return true;
	return false;
}
