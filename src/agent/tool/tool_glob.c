#include "agent/tool/tool_glob.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"

/* A piece of text that is not ended by a NUL. */
struct piece {
	const char *at, *end;
};

/* --- one name --- */

/* The character at the front, cut off; a byte that is none counts as one. */
static uint32_t take_character(struct piece *p)
{
	uint32_t c = (unsigned char)*p->at;
	size_t width = utf8_decode(p->at, (size_t)(p->end - p->at), &c);

	p->at += width ? width : 1;
	/* So that it equals no character. */
	return width ? c : c | 0x80000000U;
}

static uint32_t glob_take_escaped(struct piece *p)
{
	p->at += *p->at == '\\' && p->at + 1 < p->end;
	return take_character(p);
}

/*
 * A class behind its bracket: is `c` in it? Cuts it off; where it does not end nothing is cut off,
 * and the bracket stands for itself.
 */
static bool match_class(struct piece *class, uint32_t c, bool *ret_is_class)
{
	struct piece p = *class;
	bool is_negative = p.at < p.end && (*p.at == '!' || *p.at == '^'), is_in = false;

	p.at += is_negative;
	for (bool is_first = true; p.at < p.end && (is_first || *p.at != ']'); is_first = false) {
		uint32_t low = glob_take_escaped(&p), high = low;

		if (p.end - p.at >= 2 && p.at[0] == '-' && p.at[1] != ']') {
			p.at++;
			high = glob_take_escaped(&p);
		}
		is_in = is_in || (c >= low && c <= high);
	}
	*ret_is_class = p.at < p.end;
	if (*ret_is_class)
		class->at = p.at + 1;
	return is_in != is_negative;
}

/* One character of a pattern, which is not '*', against one of a name; cuts both off. */
static bool match_character(struct piece *pattern, struct piece *name)
{
	uint32_t wanted = take_character(pattern), c = take_character(name);
	bool is_class = false, is_in;

	if (wanted == '?')
		return true;
	if (wanted == '[') {
		is_in = match_class(pattern, c, &is_class);
		if (is_class)
			return is_in;
	}
	if (wanted == '\\' && pattern->at < pattern->end)
		wanted = take_character(pattern);
	return wanted == c;
}

/* Going back to the last '*' is enough: what it takes, no earlier one has to. */
static bool match_name(struct piece pattern, struct piece name)
{
	struct piece behind_star = { 0 }, from = { 0 };

	while (name.at < name.end || pattern.at < pattern.end) {
		if (pattern.at < pattern.end && *pattern.at == '*') {
			pattern.at++;
			behind_star = pattern;
			from = name;
			continue;
		}
		if (pattern.at < pattern.end && name.at < name.end &&
			match_character(&pattern, &name))
			continue;
		if (!behind_star.at || from.at == from.end)
			return false;
		pattern = behind_star;
		from.at++;
		name = from;
	}
	return true;
}

/* --- paths --- */

/* Cuts the next name off a path; its `at` is NULL where there is none. */
static struct piece glob_take_name(const char **path)
{
	struct piece name = { *path, NULL };

	if (!*path)
		return (struct piece){ 0 };
	name.end = strchrnul(*path, '/');
	*path = *name.end ? name.end + 1 : NULL;
	return name;
}

static bool is_any_depth(const struct piece *name)
{
	return name->at && name->end - name->at == 2 && memcmp(name->at, "**", 2) == 0;
}

/* Like match_name, for names in a path instead of characters in a name. */
static bool match_path(const char *pattern, const char *path)
{
	const char *behind_star = NULL, *from = NULL;
	bool has_star = false;

	while (path || pattern) {
		const char *pattern_rest = pattern, *path_rest = path;
		struct piece wanted = glob_take_name(&pattern_rest),
			     name = glob_take_name(&path_rest);

		if (is_any_depth(&wanted) && path) {
			if (!pattern_rest)
				return true;
			has_star = true;
			behind_star = pattern = pattern_rest;
			from = path;
			continue;
		}
		if (wanted.at && name.at && match_name(wanted, name)) {
			pattern = pattern_rest;
			path = path_rest;
			continue;
		}
		if (!has_star || !from)
			return false;
		glob_take_name(&from);
		if (!from)
			return false;
		pattern = behind_star;
		path = from;
	}
	return true;
}

static bool match_folder(const char *pattern, const char *folder)
{
	while (folder) {
		struct piece wanted = glob_take_name(&pattern), name = glob_take_name(&folder);

		if (is_any_depth(&wanted))
			return true;
		if (!wanted.at || !match_name(wanted, name))
			return false;
	}
	return pattern != NULL;
}

bool tool_glob_matches(const struct tool_glob *g, const char *path)
{
	for (size_t i = 0; i < g->count; i++)
		if (match_path(g->choices[i], path))
			return true;
	return false;
}

bool tool_glob_enters(const struct tool_glob *g, const char *folder)
{
	for (size_t i = 0; i < g->count; i++)
		if (match_folder(g->choices[i], folder))
			return true;
	return false;
}

static bool has_name(const char *path, const char *wanted)
{
	size_t n = strlen(wanted);

	while (path) {
		struct piece name = glob_take_name(&path);

		if ((size_t)(name.end - name.at) == n && memcmp(name.at, wanted, n) == 0)
			return true;
	}
	return false;
}

bool tool_glob_names(const struct tool_glob *g, const char *name)
{
	for (size_t i = 0; i < g->count; i++)
		if (has_name(g->choices[i], name))
			return true;
	return false;
}

size_t tool_glob_fixed(const char *pattern)
{
	size_t n = strcspn(pattern, "*?[{\\");

	while (n && pattern[n - 1] != '/')
		n--;
	return n;
}

/* --- braces --- */

struct braces {
	size_t open, close;
	size_t commas; /* between them, not within others */
};

/* The first pair with a comma in it. */
static bool find_braces(const char *text, struct braces *ret)
{
	for (size_t open = 0; text[open]; open++) {
		size_t depth = 0, commas = 0;

		if (text[open] == '\\' && text[open + 1]) {
			open++;
			continue;
		}
		if (text[open] != '{')
			continue;
		for (size_t i = open; text[i]; i++) {
			if (text[i] == '\\' && text[i + 1])
				i++;
			else if (text[i] == '{')
				depth++;
			else if (text[i] == ',' && depth == 1)
				commas++;
			else if (text[i] == '}' && --depth == 0 && commas) {
				*ret = (struct braces){ open, i, commas };
				return true;
			} else if (text[i] == '}' && depth == 0)
				break;
		}
	}
	return false;
}

/* Returns the end of the choice that begins at `i`: a comma or the closing brace. */
static size_t glob_end_of_choice(const char *text, size_t i, size_t close)
{
	size_t depth = 0;

	for (; i < close && (depth || text[i] != ','); i++) {
		if (text[i] == '\\')
			i++;
		else if (text[i] == '{')
			depth++;
		else if (text[i] == '}' && depth)
			depth--;
	}
	return i < close ? i : close;
}

/* Each level has one pair less, and each pair doubles the choices: both are bounded. */
static int glob_expand(struct tool_glob *g, const char *text)
{
	struct braces b;

	if (!find_braces(text, &b)) {
		if (g->count == TOOL_GLOB_CHOICES)
			return -E2BIG;
		g->choices[g->count++] = text;
		return 0;
	}
	for (size_t i = b.open + 1; i <= b.close; i++) {
		size_t end = glob_end_of_choice(text, i, b.close);
		const char *chosen = arena_printf(&g->arena, "%.*s%.*s%s", (int)b.open, text,
			(int)(end - i), text + i, text + b.close + 1);
		int r = chosen ? glob_expand(g, chosen) : -E2BIG;

		if (r < 0)
			return r;
		i = end;
	}
	return 0;
}

int tool_glob_parse(const char *pattern, struct tool_glob *ret, struct err *e)
{
	*ret = (struct tool_glob){ 0 };
	while (str_starts(pattern, "./"))
		pattern += 2;
	if (strlen(pattern) > TOOL_MAX_PATTERN)
		return err_set(e, ERR_USE, EINVAL, "the pattern is longer than %d bytes",
			TOOL_MAX_PATTERN);
	arena_init(&ret->arena, (size_t)64 << 20);
	ret->choices = arena_array(&ret->arena, TOOL_GLOB_CHOICES, sizeof(*ret->choices));
	if (!ret->choices)
		return err_set(e, ERR_SYS, ENOMEM, "there is no memory for the pattern");
	if (glob_expand(ret, pattern) < 0)
		return err_set(e, ERR_USE, EINVAL,
			"the braces of the pattern stand for more than %d patterns",
			TOOL_GLOB_CHOICES);
	if (tool_glob_names(ret, ".."))
		return err_set(e, ERR_USE, EINVAL,
			"a pattern cannot have '..' in it; say with path where to begin");
	return 0;
}

void tool_glob_done(struct tool_glob *g)
{
	arena_done(&g->arena);
}
