#include <stdbool.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "check/check_git.h"

static const struct check_git_setting settings[] = {
	{ "core", "fsmonitor", "core.fsmonitor", "is a program that git runs" },
	{ "core", "hookspath", "core.hooksPath", "makes git run programs from another place" },
	{ "core", "sshcommand", "core.sshCommand", "is a program that git runs" },
	{ "include", "path", "include.path", "brings in settings from another file" },
	{ "includeif", "path", "includeIf.path", "brings in settings from another file" },
	{ "remote", "pushurl", "remote.pushurl", "has a password or a token in it" },
	{ "remote", "url", "remote.url", "has a password or a token in it" },
	{ "url", "insteadof", "url.insteadOf",
		"makes git reach another remote than the one that is written" },
	{ "url", "pushinsteadof", "url.pushInsteadOf",
		"makes git push to another remote than the one that is written" },
};

/* A part of a line. */
struct span {
	const char *at, *end;
};

static void skip_spaces(struct span *text)
{
	while (text->at < text->end && (*text->at == ' ' || *text->at == '\t'))
		text->at++;
}

/* Takes letters, digits and "-" off the front, in small letters; cut where there is no room. */
static void git_take_word(struct span *text, char *ret, size_t size)
{
	size_t n = 0;

	for (; text->at < text->end; text->at++) {
		char c = *text->at;

		if (!str_is_letter(c) && !str_is_digit(c) && c != '-')
			break;
		if (n < size - 1)
			ret[n++] = str_lower(c);
	}
	ret[n] = '\0';
}

/* [section], [section "sub"] or [section.sub]; what follows may be a setting already. */
static void git_take_section(struct check_git *g, struct span *line)
{
	bool is_quoted = false;

	line->at++;
	skip_spaces(line);
	git_take_word(line, g->section, sizeof(g->section));
	for (; line->at < line->end; line->at++) {
		if (*line->at == '\\' && is_quoted && line->at + 1 < line->end)
			line->at++;
		else if (*line->at == '"')
			is_quoted = !is_quoted;
		else if (*line->at == ']' && !is_quoted)
			break;
	}
	if (line->at < line->end)
		line->at++;
	skip_spaces(line);
}

/* core.fsmonitor can also switch git's own monitor on or off, which runs nothing of the tree. */
static bool is_switch(struct span value)
{
	static const char *const words[] = { "", "true", "false", "yes", "no", "on", "off", "0",
		"1" };
	char word[8];

	git_take_word(&value, word, sizeof(word));
	skip_spaces(&value);
	if (value.at < value.end && *value.at != '#' && *value.at != ';')
		return false;
	for (size_t i = 0; i < COUNT_OF(words); i++)
		if (str_eq(word, words[i]))
			return true;
	return false;
}

/* scheme://user:password@host, or a user's name so long that it is a token. */
static bool has_password(struct span url)
{
	const char *user = memmem(url.at, (size_t)(url.end - url.at), "://", 3), *at = NULL;

	if (!user)
		return false;
	user += 3;
	for (const char *p = user; p < url.end && *p != '/'; p++)
		if (*p == '@')
			at = p;
	if (!at)
		return false;
	return memchr(user, ':', (size_t)(at - user)) || at - user >= 20;
}

static const struct check_git_setting *git_find(const struct check_git *g, const char *key)
{
	for (size_t i = 0; i < COUNT_OF(settings); i++)
		if (str_eq(settings[i].section, g->section) && str_eq(settings[i].key, key))
			return &settings[i];
	return NULL;
}

static const struct check_git_setting *judge_line(struct check_git *g, struct span line)
{
	const struct check_git_setting *found;
	char key[16];

	skip_spaces(&line);
	if (line.at < line.end && *line.at == '[')
		git_take_section(g, &line);
	git_take_word(&line, key, sizeof(key));
	found = git_find(g, key);
	skip_spaces(&line);
	if (line.at < line.end && *line.at == '=')
		line.at++;
	skip_spaces(&line);
	if (found && str_eq(found->key, "fsmonitor") && is_switch(line))
		return NULL;
	if (found && str_eq(found->section, "remote") && !has_password(line))
		return NULL;
	return found;
}

void check_git_init(struct check_git *g, const char *bytes, size_t n)
{
	*g = (struct check_git){ .at = bytes, .end = bytes + n };
	if (n >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
		g->at += 3;
}

const struct check_git_setting *check_git_next(struct check_git *g)
{
	const struct check_git_setting *found = NULL;

	while (!found && g->at < g->end) {
		const char *stop = memchr(g->at, '\n', (size_t)(g->end - g->at));
		struct span line = { g->at, stop ? stop : g->end };

		g->at = stop ? stop + 1 : g->end;
		g->line++;
		if (line.end > line.at && line.end[-1] == '\r')
			line.end--;
		found = judge_line(g, line);
	}
	return found;
}

/* --- values by name --- */

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

/* The character that a backslash sequence stands for; 0: the line goes on. */
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
