#include <string.h>

#include "agent/hook/hook_inside.h"
#include "agent/hook/hook_programs.h"
#include "agent/hook/hook_words.h"
#include "base/count.h"
#include "base/str.h"

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

/* As far as a word is one path: the folder of what stands for several. */
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

/* Who goes elsewhere in brackets comes back at their end. */
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
