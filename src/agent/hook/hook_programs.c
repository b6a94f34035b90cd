#include "agent/hook/hook_programs.h"

#include <string.h>

#include "base/count.h"
#include "base/str.h"

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

const struct hook_program *hook_find_program(const char *name)
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

struct hook_option hook_read_option(const struct hook_program *p, const char *word)
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
