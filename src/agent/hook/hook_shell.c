#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "agent/hook/hook_inside.h"
#include "base/count.h"
#include "base/str.h"

/* --- words --- */

/*
 * A shell command as its words: quotes taken off, what is between commands and where files are
 * opened by it told apart. No shell: what only one that runs could know is marked as not known.
 */

enum hook_token {
	HOOK_END,
	HOOK_WORD,
	HOOK_BREAK, /* another command begins */
	HOOK_TO,    /* the next word is a file that is written */
	HOOK_FROM,  /* … or one that is read */
};

#define HOOK_MAX_NESTED   8 /* commands in one word, as "$(ls)" */
#define HOOK_MAX_HEREDOCS 8

struct hook_words {
	const char *at;
	const char *home; /* what $HOME stands for */
	char word[HOOK_PATH_SIZE];
	size_t size;
	bool is_known; /* nothing in it has to be filled in by a shell, and it fits */
	size_t wild;   /* where it begins to stand for several names; its size: nowhere */
	struct {
		const char *at;
		size_t size;
	} nested[HOOK_MAX_NESTED];
	size_t nested_count;
	struct {
		char end[64]; /* the line after which it is over */
		bool has_tabs;
	} heredocs[HOOK_MAX_HEREDOCS];
	size_t heredoc_count;
	char bracket; /* by which the last break was made, or NUL */
};

static void hook_words_init(struct hook_words *w, const char *script, const char *home)
{
	memset(w, 0, sizeof(*w));
	w->at = script;
	w->home = home;
}

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

/* Returns the matching `close`, counting nested ones; the end of the script without one. */
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

/* Reads an expansion. Of all variables only $HOME is known. */
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

static enum hook_token hook_words_next(struct hook_words *w)
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

/* --- what programs do with the words of their commands --- */

enum hook_habit {
	HOOK_READS,       /* those that look like paths */
	HOOK_SAYS,        /* nothing: it prints them, or they are of another place */
	HOOK_SEARCHES,    /* reads, but for the first, which is a pattern or a program */
	HOOK_WRITES,      /* all of them */
	HOOK_MARKS,       /* writes all but the first, which says how */
	HOOK_WRITES_LAST, /* and reads the others */
	HOOK_LINKS,       /* writes the last */
	HOOK_COPIES_RAW,  /* dd: if= and of= */
	HOOK_GOES,        /* cd */
	HOOK_RUNS,        /* a shell: what is behind -c is another script */
	HOOK_EVALUATES,   /* its words are a script */
	HOOK_STARTS,      /* another program, which follows */
	HOOK_TESTS,       /* looks at what follows an option; other words are compared */
	HOOK_FINDS,       /* reads those before the first option; then come expressions */
};

struct hook_program {
	const char *name;
	enum hook_habit habit;
	/* Options of one letter: those with a value as the next word that is not written; of one
	 * that searches those whose value is the pattern, those with a value in the same word only.
	 */
	const char *values, *patterns, *attached;
};

struct hook_option {
	size_t values;   /* how many of the next words are its own */
	bool is_pattern; /* it says what is searched for */
	bool writes;     /* sed and perl: the files are changed in place */
};

/*
 * Programs that agents use, by what their words are. Those that are not here read what looks like a
 * path. Of those that say nothing some do read files; but their words are texts, names and patterns
 * more often than paths of this cage.
 */
static const struct hook_program programs[] = {
	{ "[", HOOK_TESTS, "", "", "" },
	{ "[[", HOOK_TESTS, "", "", "" },
	{ "ag", HOOK_SEARCHES, "ABCGgmp", "", "" },
	{ "alias", HOOK_SAYS, "", "", "" },
	{ "awk", HOOK_SEARCHES, "Fv", "Eef", "" },
	{ "bash", HOOK_RUNS, "", "", "" },
	{ "case", HOOK_SAYS, "", "", "" },
	{ "cd", HOOK_GOES, "", "", "" },
	{ "chgrp", HOOK_MARKS, "", "", "" },
	{ "chmod", HOOK_MARKS, "", "", "" },
	{ "chown", HOOK_MARKS, "", "", "" },
	{ "command", HOOK_STARTS, "", "", "" },
	{ "cp", HOOK_WRITES_LAST, "", "", "" },
	{ "dash", HOOK_RUNS, "", "", "" },
	{ "dd", HOOK_COPIES_RAW, "", "", "" },
	{ "declare", HOOK_SAYS, "", "", "" },
	{ "docker", HOOK_SAYS, "", "", "" },
	{ "echo", HOOK_SAYS, "", "", "" },
	{ "egrep", HOOK_SEARCHES, "ABCDdm", "ef", "" },
	{ "env", HOOK_STARTS, "", "", "" },
	{ "eval", HOOK_EVALUATES, "", "", "" },
	{ "exec", HOOK_STARTS, "", "", "" },
	{ "export", HOOK_SAYS, "", "", "" },
	{ "expr", HOOK_SAYS, "", "", "" },
	{ "fgrep", HOOK_SEARCHES, "ABCDdm", "ef", "" },
	{ "find", HOOK_FINDS, "", "", "" },
	{ "gawk", HOOK_SEARCHES, "Fv", "Eef", "" },
	{ "gh", HOOK_SAYS, "", "", "" },
	{ "git", HOOK_SAYS, "", "", "" },
	{ "grep", HOOK_SEARCHES, "ABCDdm", "ef", "" },
	{ "install", HOOK_WRITES_LAST, "", "", "" },
	{ "jq", HOOK_SEARCHES, "L", "f", "" },
	{ "kubectl", HOOK_SAYS, "", "", "" },
	{ "ln", HOOK_LINKS, "", "", "" },
	{ "local", HOOK_SAYS, "", "", "" },
	{ "mawk", HOOK_SEARCHES, "Fv", "Eef", "" },
	{ "mkdir", HOOK_WRITES, "", "", "" },
	{ "mkfifo", HOOK_WRITES, "", "", "" },
	{ "mv", HOOK_WRITES, "", "", "" },
	{ "nice", HOOK_STARTS, "", "", "" },
	{ "nohup", HOOK_STARTS, "", "", "" },
	{ "perl", HOOK_SEARCHES, "I", "Ee", "0Mil" },
	{ "podman", HOOK_SAYS, "", "", "" },
	{ "printf", HOOK_SAYS, "", "", "" },
	{ "pushd", HOOK_GOES, "", "", "" },
	{ "readonly", HOOK_SAYS, "", "", "" },
	{ "rg", HOOK_SEARCHES, "ABCEMTdgjmrt", "ef", "" },
	{ "rm", HOOK_WRITES, "", "", "" },
	{ "rmdir", HOOK_WRITES, "", "", "" },
	{ "sed", HOOK_SEARCHES, "l", "ef", "i" },
	{ "set", HOOK_SAYS, "", "", "" },
	{ "sh", HOOK_RUNS, "", "", "" },
	{ "shred", HOOK_WRITES, "", "", "" },
	{ "ssh", HOOK_SAYS, "", "", "" },
	{ "sudo", HOOK_STARTS, "", "", "" },
	{ "tee", HOOK_WRITES, "", "", "" },
	{ "test", HOOK_TESTS, "", "", "" },
	{ "time", HOOK_STARTS, "", "", "" },
	{ "timeout", HOOK_STARTS, "", "", "" },
	{ "touch", HOOK_WRITES, "drt", "", "" },
	{ "tr", HOOK_SAYS, "", "", "" },
	{ "trap", HOOK_SAYS, "", "", "" },
	{ "truncate", HOOK_WRITES, "rs", "", "" },
	{ "typeset", HOOK_SAYS, "", "", "" },
	{ "unlink", HOOK_WRITES, "", "", "" },
	{ "unset", HOOK_SAYS, "", "", "" },
	{ "xargs", HOOK_STARTS, "", "", "" },
	{ "zsh", HOOK_RUNS, "", "", "" },
};

static const struct hook_program other = { "", HOOK_READS, "", "", "" };

/* The program of a name; of one that is not known, a habit that is as good as any. */
static const struct hook_program *hook_find_program(const char *name)
{
	for (size_t i = 0; i < COUNT_OF(programs); i++)
		if (str_eq(programs[i].name, name))
			return &programs[i];
	return &other;
}

/* --- options of those that search, and of others with values --- */

/* Long ones, with a value as the next word if it is not in the same. */
static const struct {
	const char *name;
	unsigned char values;
	bool is_pattern;
} options[] = {
	{ "after-context", 1, false },
	{ "arg", 2, false },
	{ "argjson", 2, false },
	{ "assign", 1, false },
	{ "before-context", 1, false },
	{ "context", 1, false },
	{ "exclude", 1, false },
	{ "exclude-dir", 1, false },
	{ "expression", 1, true },
	{ "field-separator", 1, false },
	{ "file", 1, true },
	{ "files", 0, true }, /* of rg: nothing is searched for */
	{ "from-file", 1, true },
	{ "glob", 1, false },
	{ "iglob", 1, false },
	{ "include", 1, false },
	{ "indent", 1, false },
	{ "max-count", 1, false },
	{ "max-depth", 1, false },
	{ "rawfile", 2, false },
	{ "regexp", 1, true },
	{ "replace", 1, false },
	{ "slurpfile", 2, false },
	{ "type", 1, false },
	{ "type-not", 1, false },
};

static struct hook_option read_long(const char *word)
{
	struct hook_option ret = { .writes = str_starts(word, "in-place") };
	size_t n = strcspn(word, "=");

	for (size_t i = 0; i < COUNT_OF(options); i++)
		if (strlen(options[i].name) == n && memcmp(options[i].name, word, n) == 0) {
			ret.values = word[n] ? 0 : options[i].values;
			ret.is_pattern = options[i].is_pattern;
		}
	return ret;
}

/* A word that begins with a dash, of a program whose options are known; of others nothing is. */
static struct hook_option hook_read_option(const struct hook_program *p, const char *word)
{
	struct hook_option ret = { 0 };

	if ((p->habit != HOOK_SEARCHES && !*p->values) || word[0] != '-')
		return ret;
	if (word[1] == '-')
		return read_long(word + 2);
	/* Several may be in one word, of which the last may have a value. */
	for (word++; *word; word++) {
		ret.writes |= *word == 'i' && strchr(p->attached, 'i');
		if (strchr(p->attached, *word))
			break;
		ret.is_pattern = strchr(p->patterns, *word);
		if (!ret.is_pattern && !strchr(p->values, *word))
			continue;
		ret.values = word[1] ? 0 : 1;
		break;
	}
	return ret;
}

/*
 * What the words of a shell command say about files. Only a shell knows what a command does, and it
 * may hide it at will; this is for those that do not: so that an agent which means no harm is told
 * at once why a path is not there. A word that may be something else is let go.
 */

#define MOST_DEPTH  4 /* sh -c in sh -c … */
#define MOST_NESTED 8 /* brackets */

static const char *const keywords[] = { "!", "do", "done", "elif", "else", "esac", "fi", "function",
	"if", "then", "until", "while", "{", "}" };

/* A command so far. */
struct command {
	bool has_name, is_started; /* by a word of the kind HOOK_STARTS */
	const struct hook_program *program;
	enum hook_habit habit;
	bool writes;      /* sed -i */
	bool has_pattern; /* in an option: no word is one */
	bool has_target;  /* -t: the last word is none */
	bool is_over;     /* what follows are no paths */
	bool is_next_written, is_next_script, is_next_file;
	size_t values; /* words to come that belong to an option */
	size_t words;  /* that are no options */
	const char *last;
};

struct scan {
	struct hook_call *call;
	const char *folder;             /* NULL: nobody knows */
	const char *outer[MOST_NESTED]; /* folders, outside of brackets */
	size_t brackets;
	struct command command;
	unsigned depth;
};

static void scan_script(
	struct hook_call *c, const char *script, const char *folder, unsigned depth);

static void shell_add(struct scan *s, const char *path, size_t n, bool writes)
{
	hook_add_use(s->call, path, n, s->folder ? s->folder : path[0] == '/' ? "/" : NULL, writes);
}

/* --- what looks like a path --- */

/*
 * A pattern may begin with a slash as well: so a path is what begins with a folder that systems
 * have, with a home, or leads up.
 */
static bool looks_like_path(const char *word, size_t n)
{
	static const char *const tops[] = { "boot", "dev", "etc", "home", "media", "mnt", "opt",
		"proc", "root", "run", "srv", "sys", "tmp", "usr", "var" };
	size_t top;

	/* Some of them would have to be quoted: then it is an expression, or a text. */
	if (n == 0 || strcspn(word, "\n\t|;<>&()\"'`=*{}^$\\") < n)
		return false;
	if (word[0] == '~')
		return strcspn(word, "/ ") == strcspn(word, "/");
	if (word[0] == '.' && word[1] == '.')
		return n == 2 || word[2] == '/';
	if (word[0] != '/')
		return false;
	top = strcspn(word + 1, "/");
	for (size_t i = 0; i < COUNT_OF(tops); i++)
		if (strlen(tops[i]) == top && memcmp(word + 1, tops[i], top) == 0)
			return true;
	return false;
}

/* Returns how much of a word is one path: with wildcards, its leading folder. */
static size_t shell_measure(const struct hook_words *w)
{
	size_t n = w->wild;

	if (n == w->size)
		return n;
	while (n && w->word[n - 1] != '/')
		n--;
	return n;
}

static void add_if_path(struct scan *s, const char *text, size_t n, bool writes)
{
	if (looks_like_path(text, n))
		shell_add(s, text, n, writes);
}

/* --- words of a command --- */

static bool is_keyword(const char *word)
{
	for (size_t i = 0; i < COUNT_OF(keywords); i++)
		if (str_eq(keywords[i], word))
			return true;
	return false;
}

/* NAME=value, before the command. */
static bool is_assignment(const char *word)
{
	size_t n = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");

	return n && !str_is_digit(word[0]) && word[n] == '=';
}

static void shell_take_name(struct scan *s, const struct hook_words *w)
{
	struct command *c = &s->command;
	const char *slash = strrchr(w->word, '/'), *name = slash ? slash + 1 : w->word;

	if (is_keyword(w->word) || is_assignment(w->word) ||
		(c->is_started && (w->word[0] == '-' || str_is_digit(w->word[0]))))
		return;
	add_if_path(s, w->word, shell_measure(w), false);
	c->program = hook_find_program(name);
	c->habit = c->program->habit;
	c->is_started = c->habit == HOOK_STARTS;
	c->has_name = !c->is_started;
	if (str_eq(name, "popd"))
		s->folder = NULL;
}

static void take_option(struct scan *s, const struct hook_words *w)
{
	struct command *c = &s->command;
	struct hook_option option = hook_read_option(c->program, w->word);
	const char *value = strchr(w->word, '=');
	bool is_target = (c->habit == HOOK_WRITES_LAST || c->habit == HOOK_WRITES ||
				 c->habit == HOOK_LINKS) &&
			 (str_eq(w->word, "-t") || str_starts(w->word, "--target-directory"));

	c->has_target |= is_target;
	c->is_next_written = is_target && !value;
	c->is_next_script = c->habit == HOOK_RUNS && w->word[1] != '-' && strchr(w->word, 'c');
	c->is_next_file = c->habit == HOOK_TESTS && !w->word[2] && !strchr("zn", w->word[1]);
	c->is_over |= c->habit == HOOK_FINDS && w->word[2];
	c->values = option.values;
	c->has_pattern |= option.is_pattern;
	c->writes |= option.writes;
	if (value && w->is_known && c->habit != HOOK_SAYS && !c->is_over)
		add_if_path(s, value + 1, strlen(value + 1), is_target);
}

static void go(struct scan *s, const struct hook_words *w)
{
	bool is_home = w->word[0] == '~' && (!w->word[1] || w->word[1] == '/');

	if (!w->is_known || w->wild < w->size || str_eq(w->word, "-") ||
		(w->word[0] == '~' && !is_home))
		s->folder = NULL;
	else if (w->word[0] == '/')
		s->folder = arena_copy(&s->call->arena, w->word, w->size);
	else if (is_home)
		s->folder = arena_printf(&s->call->arena, "%s%s", s->call->home, w->word + 1);
	else if (s->folder)
		s->folder = arena_printf(&s->call->arena, "%s/%s", s->folder, w->word);
}

/* One before the last: what is copied, or moved. */
static void take_source(struct scan *s)
{
	const struct command *c = &s->command;

	if (c->last && c->habit == HOOK_WRITES_LAST)
		add_if_path(s, c->last, strlen(c->last), false);
}

static void take_raw(struct scan *s, const char *word)
{
	bool writes = str_starts(word, "of=");

	if (writes || str_starts(word, "if="))
		shell_add(s, word + 3, strlen(word + 3), writes);
}

static void shell_take_value(struct scan *s, const struct hook_words *w, size_t n)
{
	const char *value = strchr(w->word, '=');

	add_if_path(s, w->word, n, false);
	if (value && w->wild == w->size)
		add_if_path(s, value + 1, strlen(value + 1), false);
}

/* Not the pattern, which comes first where no option has it. */
static bool is_searched(const struct command *c)
{
	return c->words > 1 || c->has_pattern;
}

static void take_argument(struct scan *s, const struct hook_words *w)
{
	struct command *c = &s->command;
	size_t n = shell_measure(w);
	bool is_script = c->is_next_script || c->habit == HOOK_EVALUATES;

	c->words++;
	c->is_next_script = false;
	if (is_script) {
		scan_script(s->call, w->word, s->folder, s->depth + 1);
		return;
	}
	if (c->habit == HOOK_GOES) {
		if (w->is_known)
			add_if_path(s, w->word, n, false);
		go(s, w);
	}
	if (!w->is_known || n == 0)
		return;
	if (c->is_next_written || c->habit == HOOK_WRITES ||
		(c->habit == HOOK_MARKS && c->words > 1) || (c->writes && is_searched(c))) {
		shell_add(s, w->word, n, true);
	} else if (c->habit == HOOK_WRITES_LAST || c->habit == HOOK_LINKS) {
		take_source(s);
		c->last = arena_copy(&s->call->arena, w->word, n);
	} else if (c->habit == HOOK_COPIES_RAW) {
		take_raw(s, w->word);
	} else if (c->habit == HOOK_READS || c->habit == HOOK_RUNS || c->is_next_file ||
		   (c->habit == HOOK_FINDS && !c->is_over) ||
		   (c->habit == HOOK_SEARCHES && is_searched(c))) {
		shell_take_value(s, w, n);
	}
	c->is_next_written = c->is_next_file = false;
}

static void end_command(struct scan *s)
{
	const struct command *c = &s->command;

	if (c->last && c->has_target)
		take_source(s);
	else if (c->last && c->words > 1)
		shell_add(s, c->last, strlen(c->last), true);
	if (c->habit == HOOK_GOES && c->words == 0)
		s->folder = s->call->home;
	s->command = (struct command){ 0 };
}

static void shell_take_word(struct scan *s, const struct hook_words *w)
{
	for (size_t i = 0; i < w->nested_count; i++) {
		const char *script =
			arena_copy(&s->call->arena, w->nested[i].at, w->nested[i].size);

		if (script)
			scan_script(s->call, script, s->folder, s->depth + 1);
	}
	if (!s->command.has_name)
		shell_take_name(s, w);
	else if (s->command.values)
		s->command.values--;
	else if (w->word[0] == '-' && w->word[1])
		take_option(s, w);
	else
		take_argument(s, w);
}

/* --- scripts --- */

/* A `cd` in parentheses ends with them. */
static void take_bracket(struct scan *s, char bracket)
{
	if (bracket == '(' && s->brackets++ < MOST_NESTED)
		s->outer[s->brackets - 1] = s->folder;
	if (bracket == ')' && s->brackets && --s->brackets < MOST_NESTED)
		s->folder = s->outer[s->brackets];
}

static void scan_script(struct hook_call *c, const char *script, const char *folder, unsigned depth)
{
	struct scan s = { .call = c, .folder = folder, .depth = depth };
	enum hook_token token, before = HOOK_BREAK;
	struct hook_words w;

	if (depth > MOST_DEPTH)
		return;
	hook_words_init(&w, script, c->home);
	while ((token = hook_words_next(&w)) != HOOK_END && c->count < HOOK_MAX_USES) {
		if (token == HOOK_BREAK) {
			end_command(&s);
			take_bracket(&s, w.bracket);
		} else if (token == HOOK_WORD && (before == HOOK_TO || before == HOOK_FROM)) {
			if (w.is_known)
				shell_add(&s, w.word, shell_measure(&w), before == HOOK_TO);
		} else if (token == HOOK_WORD) {
			shell_take_word(&s, &w);
		}
		before = token;
	}
	end_command(&s);
}

void hook_shell_scan(struct hook_call *c, const char *script)
{
	scan_script(c, script, c->folder, 0);
	if (strstr(script, "*** Begin Patch"))
		hook_patch_scan(c, script);
}
