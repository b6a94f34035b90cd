#include "check/check_git.h"

#include <stdbool.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"

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
