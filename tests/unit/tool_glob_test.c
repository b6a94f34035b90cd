/* Patterns of paths: what matches, what is entered, what is refused, and that none takes long. */
#include <errno.h>
#include <stdbool.h>
#include <time.h>

#include "agent/tool/tool_glob.h"
#include "base/own.h"
#include "check.h"

static bool matches(const char *pattern, const char *path)
{
	struct tool_glob g;
	bool is_match = tool_glob_parse(pattern, &g, NULL) == 0 && tool_glob_matches(&g, path);

	tool_glob_done(&g);
	return is_match;
}

static bool enters(const char *pattern, const char *folder)
{
	struct tool_glob g;
	bool is_entered = tool_glob_parse(pattern, &g, NULL) == 0 && tool_glob_enters(&g, folder);

	tool_glob_done(&g);
	return is_entered;
}

static void check_names(void)
{
	CHECK(matches("*.c", "a.c"));
	CHECK(matches("*.c", ".c"));
	CHECK(!matches("*.c", "a.h"));
	CHECK(!matches("*.c", "d/a.c"));
	CHECK(matches("a*b*c", "aXbYbc"));
	CHECK(!matches("a*b*c", "aXbYb"));
	CHECK(matches("?", "\xc3\xa9"));
	CHECK(matches("?", "\xff"));
	CHECK(!matches("?", "ab"));
	CHECK(!matches("?", ""));
	CHECK(matches("[a-c]x", "bx"));
	CHECK(!matches("[!a-c]x", "bx"));
	CHECK(matches("[^a-c]x", "dx"));
	CHECK(matches("[]x]", "]"));
	CHECK(matches("[a-]", "-"));
	CHECK(matches("[\xc3\xa0-\xc3\xbf]", "\xc3\xa9"));
	CHECK(matches("[x", "[x"));
	CHECK(matches("\\*", "*"));
	CHECK(!matches("\\*", "a"));
	CHECK(matches("[\\]]", "]"));
	CHECK(matches("a\\", "a\\"));
	CHECK(!matches("a", "A"));
	CHECK(matches("a**b", "aXb"));
	CHECK(matches("./a", "a"));
}

static void check_paths(void)
{
	CHECK(matches("**/*.c", "a.c"));
	CHECK(matches("**/*.c", "d/e/a.c"));
	CHECK(matches("d/**/a", "d/a"));
	CHECK(matches("d/**/a", "d/x/y/a"));
	CHECK(!matches("d/**/a", "e/x/a"));
	CHECK(matches("d/**", "d/x/y"));
	CHECK(!matches("d/**", "d"));
	CHECK(matches("**", "a/b"));
	CHECK(matches("**/x/**/y", "x/a/x/y"));
	CHECK(matches("**/x/*/y", "x/x/a/y"));
	CHECK(!matches("**/x/*/y", "x/y"));
	CHECK(!matches("d/*", "d/x/y"));
	CHECK(!matches("d/e", "d"));
	CHECK(!matches("d", "d/e"));
}

static void check_braces(void)
{
	CHECK(matches("*.{c,h}", "a.h"));
	CHECK(!matches("*.{c,h}", "a.cc"));
	CHECK(matches("{a,b{c,d}}/x", "bd/x"));
	CHECK(matches("{src,tests/**}/*.c", "tests/a/b.c"));
	CHECK(matches("a{,b}", "a"));
	CHECK(matches("a{,b}", "ab"));
	CHECK(matches("{a}", "{a}"));
	CHECK(matches("{a,b", "{a,b"));
	CHECK(matches("\\{a,b}", "{a,b}"));
	CHECK(matches("{a\\,b,c}", "a,b"));
	CHECK(matches("{x}{a,b}", "{x}b"));
}

static void check_enters(void)
{
	CHECK(enters("src/*.c", "src"));
	CHECK(!enters("src/*.c", "docs"));
	CHECK(!enters("src/*.c", "src/base"));
	CHECK(!enters("*.c", "src"));
	CHECK(enters("**/*.c", "a/b/c"));
	CHECK(enters("{a,b/c/d}/x", "b/c"));
	CHECK(!enters("{a,b/c/d}/x", "b/x"));
	CHECK(tool_glob_fixed("/usr/include/*.h") == 13);
	CHECK(tool_glob_fixed("/a/b") == 3);
	CHECK(tool_glob_fixed("*.h") == 0);
}

static void check_refused(void)
{
	char many[64] = "", text[TOOL_MAX_PATTERN + 2];
	struct tool_glob g;
	struct err e = { 0 };

	for (int i = 0; i < 11; i++)
		strcat(many, "{a,b}");
	CHECK(tool_glob_parse(many, &g, &e) < 0 && e.kind == ERR_USE);
	CHECK_STR(e.text, "the braces of the pattern stand for more than 1024 patterns");
	tool_glob_done(&g);
	CHECK(tool_glob_parse("../x", &g, &e) < 0);
	CHECK(strstr(e.text, "'..'") != NULL);
	tool_glob_done(&g);
	CHECK(tool_glob_parse("{a,..}/x", &g, &e) < 0);
	tool_glob_done(&g);
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	CHECK(tool_glob_parse(text, &g, &e) < 0);
	CHECK_STR(e.text, "the pattern is longer than 4096 bytes");
	tool_glob_done(&g);
}

/* Patterns that make a matcher that tries everything run for ever. */
static void check_time(void)
{
	char pattern[4000], path[4000];
	clock_t start = clock();

	for (size_t i = 0; i + 2 < sizeof(pattern); i += 2)
		memcpy(pattern + i, "*a", 3);
	memset(path, 'a', sizeof(path));
	path[sizeof(path) - 2] = 'b';
	path[sizeof(path) - 1] = '\0';
	CHECK(!matches(pattern, path));
	for (size_t i = 0; i + 5 < sizeof(pattern); i += 5)
		memcpy(pattern + i, "**/a/", 6);
	for (size_t i = 1; i + 1 < sizeof(path); i += 2)
		path[i] = '/';
	CHECK(!matches(pattern, path));
	CHECK(clock() - start < 2 * CLOCKS_PER_SEC);
}

int main(void)
{
	check_names();
	check_paths();
	check_braces();
	check_enters();
	check_refused();
	check_time();
	return check_report();
}
