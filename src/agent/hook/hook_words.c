#include "agent/hook/hook_words.h"

#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"

void hook_words_init(struct hook_words *w, const char *script, const char *home)
{
	memset(w, 0, sizeof(*w));
	w->at = script;
	w->home = home;
}

/* --- words --- */

static void words_put(struct hook_words *w, char c)
{
	if (w->size + 1 < sizeof(w->word))
		w->word[w->size++] = c;
	else
		w->is_known = false;
}

static bool words_is_name(char c)
{
	return str_is_letter(c) || str_is_digit(c) || c == '_';
}

/* Behind what ends with `close`, which may be in itself. At the end, if it does not. */
static const char *find_close(const char *at, char open, char close)
{
	for (size_t depth = 1; *at; at++) {
		if (*at == '\\' && at[1])
			at++;
		else if (*at == close && --depth == 0)
			return at;
		else if (*at == open && open != close)
			depth++;
	}
	return at;
}

static void nest(struct hook_words *w, const char *at, const char *end)
{
	w->is_known = false;
	if (w->nested_count == HOOK_MAX_NESTED)
		return;
	w->nested[w->nested_count].at = at;
	w->nested[w->nested_count++].size = (size_t)(end - at);
}

/* A command whose output becomes part of the word. */
static void take_nested(struct hook_words *w, const char *from, char open, char close)
{
	const char *end = find_close(from, open, close);

	nest(w, from, end);
	w->at = *end ? end + 1 : end;
}

/* What begins with a dollar. Of all variables only the home is known. */
static void take_dollar(struct hook_words *w)
{
	const char *name = w->at + 1, *end;

	if (*name == '(') {
		take_nested(w, name + 1, '(', ')');
		return;
	}
	if (*name == '{') {
		end = find_close(name + 1, '{', '}');
		w->at = *end ? end + 1 : end;
		name++;
	} else {
		for (end = name; words_is_name(*end); end++)
			continue;
		w->at = end;
	}
	if (end - name == 4 && memcmp(name, "HOME", 4) == 0) {
		for (const char *c = w->home; *c; c++)
			words_put(w, *c);
	} else if (end == name && *end != '\'' && *end != '"') {
		words_put(w, '$'); /* it is one */
		w->is_known = false;
	} else if (end != name) {
		w->is_known = false;
	}
}

static void take_single_quotes(struct hook_words *w)
{
	for (w->at++; *w->at && *w->at != '\''; w->at++)
		words_put(w, *w->at);
	w->at += *w->at != '\0';
}

static void take_double_quotes(struct hook_words *w)
{
	w->at++;
	while (*w->at && *w->at != '"') {
		if (*w->at == '$') {
			take_dollar(w);
		} else if (*w->at == '`') {
			take_nested(w, w->at + 1, '`', '`');
		} else {
			if (*w->at == '\\' && w->at[1] && strchr("\"\\$`", w->at[1]))
				w->at++;
			words_put(w, *w->at++);
		}
	}
	w->at += *w->at != '\0';
}

/* The word that begins here. Each turn takes something. */
static void words_take_word(struct hook_words *w)
{
	w->size = w->nested_count = 0;
	w->wild = (size_t)-1;
	w->is_known = true;
	while (*w->at && !strchr(" \t\n;&|<>()", *w->at)) {
		char c = *w->at;

		if (c == '\'') {
			take_single_quotes(w);
		} else if (c == '"') {
			take_double_quotes(w);
		} else if (c == '$') {
			take_dollar(w);
		} else if (c == '`') {
			take_nested(w, w->at + 1, '`', '`');
		} else if (c == '\\') {
			if (w->at[1] && w->at[1] != '\n')
				words_put(w, w->at[1]);
			w->at += w->at[1] ? 2 : 1;
		} else {
			if (strchr("*?[{", c) && w->wild == (size_t)-1)
				w->wild = w->size;
			words_put(w, c);
			w->at++;
		}
	}
	w->word[w->size] = '\0';
	if (w->wild > w->size)
		w->wild = w->size;
}

/* --- between words --- */

/* The lines of a document that stands in the script itself are no commands. */
static void skip_heredocs(struct hook_words *w)
{
	for (size_t i = 0; i < w->heredoc_count; i++)
		while (*w->at) {
			size_t n = strcspn(w->at, "\n");
			const char *line = w->at;
			size_t tabs = w->heredocs[i].has_tabs ? strspn(line, "\t") : 0;
			bool is_end = n >= tabs && strlen(w->heredocs[i].end) == n - tabs &&
				      memcmp(line + tabs, w->heredocs[i].end, n - tabs) == 0;

			w->at += n + (line[n] == '\n');
			if (is_end)
				break;
		}
	w->heredoc_count = 0;
}

static void begin_heredoc(struct hook_words *w)
{
	bool has_tabs = *w->at == '-';

	w->at += has_tabs;
	w->at += strspn(w->at, " \t");
	words_take_word(w);
	if (w->heredoc_count == HOOK_MAX_HEREDOCS || w->size >= sizeof(w->heredocs[0].end))
		return;
	w->heredocs[w->heredoc_count].has_tabs = has_tabs;
	memcpy(w->heredocs[w->heredoc_count++].end, w->word, w->size + 1);
}

static bool words_take(struct hook_words *w, const char *text)
{
	if (!str_starts(w->at, text))
		return false;
	w->at += strlen(text);
	return true;
}

/* Descriptors, documents and their like: true where one was taken that opens no file. */
static bool skip_odd_redirection(struct hook_words *w)
{
	if (words_take(w, "<<<")) {
		w->at += strspn(w->at, " \t");
		words_take_word(w);
		return true;
	}
	if (words_take(w, "<<")) {
		begin_heredoc(w);
		return true;
	}
	if ((str_starts(w->at, ">&") || str_starts(w->at, "<&")) &&
		(str_is_digit(w->at[2]) || w->at[2] == '-')) {
		w->at += 2;
		w->at += strspn(w->at, "0123456789-");
		return true;
	}
	return false;
}

static void skip_blanks(struct hook_words *w)
{
	for (;;) {
		w->at += strspn(w->at, " \t\r");
		if (*w->at == '#')
			w->at += strcspn(w->at, "\n");
		if (!words_take(w, "\\\n"))
			return;
	}
}

/* The number of a descriptor before the sign that opens a file for it. */
static void skip_descriptor(struct hook_words *w)
{
	size_t n = strspn(w->at, "0123456789");

	if (n && (w->at[n] == '<' || w->at[n] == '>'))
		w->at += n;
}

enum hook_token hook_words_next(struct hook_words *w)
{
	static const char *const writes[] = { "&>>", "&>", ">>", ">|", ">&", "<>" };

	do {
		skip_blanks(w);
		skip_descriptor(w);
	} while (skip_odd_redirection(w));
	if (!*w->at)
		return HOOK_END;
	w->bracket = '\0';
	if (words_take(w, ">(") || words_take(w, "<(")) {
		w->bracket = '(';
		return HOOK_BREAK;
	}
	for (size_t i = 0; i < COUNT_OF(writes); i++)
		if (words_take(w, writes[i]))
			return HOOK_TO;
	if (words_take(w, ">"))
		return HOOK_TO;
	if (words_take(w, "<"))
		return HOOK_FROM;
	if (words_take(w, "\n")) {
		skip_heredocs(w);
		return HOOK_BREAK;
	}
	if (strchr("()", *w->at))
		w->bracket = *w->at;
	if (strchr(";&|()", *w->at)) {
		w->at++;
		return HOOK_BREAK;
	}
	words_take_word(w);
	return HOOK_WORD;
}
