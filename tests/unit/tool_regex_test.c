/* Expressions as agents write them: matched, refused, limited, and what of them is known
 * beforehand. */
#include <errno.h>
#include <stdbool.h>

#include "agent/tool/tool_regex.h"
#include "base/count.h"
#include "base/own.h"
#include "check.h"

static struct err e;

static bool matches_with(const char *pattern, bool ignores_case, const char *line)
{
	own(tool_regex) struct tool_regex r = { 0 };

	e = (struct err){ 0 };
	if (tool_regex_init(&r, pattern, ignores_case, &e) < 0) {
		printf("%s\n", e.text);
		check_failed++;
		return false;
	}
	return tool_regex_matches(&r, line, strlen(line)) == 1;
}

static bool matches(const char *pattern, const char *line)
{
	return matches_with(pattern, false, line);
}

static void check_matches(void)
{
	CHECK(matches("foo.*bar", "a foo b bar"));
	CHECK(!matches("^foo$", "foo "));
	CHECK(matches("\\d+", "a1"));
	CHECK(!matches("\\d", "a"));
	CHECK(!matches("^\\D+$", "a1"));
	CHECK(matches("^\\D$", "\xff"));
	CHECK(matches("^\\w+\\s\\S$", "a_1 x"));
	CHECK(matches("\\bint\\b", "an int x"));
	CHECK(!matches("\\bint\\b", "print"));
	CHECK(matches("[\\w.-]+@", "a-b.c@"));
	CHECK(matches("^[\\d\\s]+$", "1 2\t3"));
	CHECK(matches("^[^\\]]$", "a"));
	CHECK(!matches("^[^\\]]$", "]"));
	CHECK(matches("[\\[\\]]", "x]"));
	CHECK(matches("^[^\\s]$", "-"));
	CHECK(matches("^[]a-c^-]+$", "]b^-"));
	CHECK(matches("^[\\^]$", "^"));
	CHECK(matches("^[\\^-]+$", "-^"));
	CHECK(!matches("^[\\^-]$", "x"));
	CHECK(matches("^[\\\\]$", "\\"));
	CHECK(matches("^[[:alpha:]_]+$", "a_"));
	CHECK(matches("^[[.]$", "["));
	CHECK(matches("^(?:a|b)+?c$", "abc"));
	CHECK(matches("main() {", "main {") && matches("main\\(\\) {", "int main() {"));
	CHECK(matches("^a++b??c*+$", "aabcc"));
	CHECK(matches("a{2,3}$", "aaa") && !matches("^a{2}$", "aaa"));
	CHECK(matches("x{", "x{") && matches("{}", "{}"));
	CHECK(matches("\\}", "}") && matches("x}", "x}"));
	CHECK(matches("\\/\\-\\\"\\'\\#", "/-\"'#"));
	CHECK(matches("a\\tb", "a\tb") && matches("[\\t]", "\t"));
	CHECK(matches("\\x41", "A"));
	CHECK(matches("(a)\\1", "aa") && !matches("(a)\\1", "ab"));
	CHECK(matches("\\Aa\\z", "a"));
	CHECK(matches("\xc3\xa9+", "\xc3\xa9"));
	CHECK(matches("", "anything"));
	CHECK(matches("foo(?!bar)", "foobaz") && !matches("foo(?!bar)", "foobar"));
	CHECK(matches("(?<=\\$)\\d+", "$5") && matches("(?<n>a)\\k<n>", "aa"));
	CHECK(matches("a\\\\n", "a\\n") && matches("\\Qa.b\\E", "a.b") &&
		!matches("\\Qa.b\\E", "axb"));
	CHECK(matches("a|", "b"));
}

static void check_case(void)
{
	CHECK(!matches("Foo", "fOO"));
	CHECK(matches_with("Foo", true, "fOO"));
	CHECK(matches("(?i)Foo", "fOO"));
	CHECK(!matches_with("^[^a]$", true, "a"));
	CHECK(!matches_with("^[^a]$", true, "A"));
	CHECK(matches_with("^[^a]$", true, "B"));
}

/* Without limits it would take longer than anybody waits. */
static void check_limits(void)
{
	own(tool_regex) struct tool_regex r = { 0 };
	static const char line[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab";

	CHECK(tool_regex_init(&r, "^(a|aa|a?)+(a|aa)+$", false, &e) == 0);
	CHECK(tool_regex_matches(&r, line, strlen(line)) == -E2BIG);
	CHECK(tool_regex_matches(&r, "aa", 2) == 1);
}

static void check_refused(void)
{
	static const struct {
		const char *pattern, *said;
	} rows[] = {
		{ "a\\", "\\ at end of pattern, at its character 2" },
		{ "(a", "missing closing parenthesis, at its character 2" },
		{ "a)", "unmatched closing parenthesis" },
		{ "[a", "missing terminating ]" },
		{ "[z-a]", "range out of order" },
		{ "*a", "quantifier does not follow a repeatable item" },
		{ "a+++", "quantifier does not follow" },
		{ "(+)", "quantifier does not follow" },
		{ "(*UTF)a", "cannot use the pattern '(*UTF)a': " },
		{ "\\Ca", "cannot use the pattern '\\Ca': " },
		{ "a\\nb", "one by one" },
		{ "a\nb", "one by one" },
		{ "(a{1,1000}){1,1000}b{1000}(((a{1000}){1000}){1000})", "too large" },
	};
	struct tool_regex r;
	char deep[1001];

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		e = (struct err){ 0 };
		CHECK(tool_regex_init(&r, rows[i].pattern, false, &e) == -EINVAL);
		CHECK(e.kind == ERR_USE);
		CHECK(strstr(e.text, rows[i].said) != NULL);
		tool_regex_done(&r);
	}
	memset(deep, '(', 1000);
	deep[1000] = '\0';
	CHECK(tool_regex_init(&r, deep, false, &e) < 0);
	CHECK(strstr(e.text, "parentheses are too deeply nested") != NULL);
	tool_regex_done(&r);
}

/* All of them, with bars between. */
static const char *literal(const char *expression, bool *is_all)
{
	static char text[256];
	own(tool_literals) struct tool_literals found = { 0 };

	tool_regex_find_literals(expression, &found);
	text[0] = '\0';
	for (size_t i = 0; i < found.count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? "|" : "",
			buf_text(&found.texts[i]));
	*is_all = found.is_all;
	return text;
}

static void check_literal(void)
{
	bool is_all;

	CHECK_STR(literal("struct err", &is_all), "struct err");
	CHECK(is_all);
	CHECK_STR(literal("a\\.b\\{", &is_all), "a.b{");
	CHECK(is_all);
	CHECK_STR(literal("foo.*barr", &is_all), "barr");
	CHECK(!is_all);
	CHECK_STR(literal("colou?r", &is_all), "colo");
	CHECK_STR(literal("abc{2}d", &is_all), "ab");
	CHECK_STR(literal("ab+cd", &is_all), "ab");
	CHECK(!is_all);
	CHECK_STR(literal("x(abc|d)yz", &is_all), "yz");
	CHECK_STR(literal("[abc]{2,3}de", &is_all), "de");
	CHECK_STR(literal("[])|]x", &is_all), "x");
	CHECK_STR(literal("abc|d", &is_all), "abc|d");
	CHECK(is_all);
	CHECK_STR(literal("abc.|d(e|f)|[|]g", &is_all), "abc|d|g");
	CHECK(!is_all);
	CHECK_STR(literal("abc|d*", &is_all), "");
	CHECK(!is_all);
	CHECK_STR(literal("abc|", &is_all), "");
	CHECK_STR(literal("a|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p|q|r", &is_all), "");
	CHECK(!is_all);
	CHECK_STR(literal("^int\\b", &is_all), "int");
	CHECK(!is_all);
	CHECK_STR(literal("(a)\\1", &is_all), "");
	/* Of what is not plain nothing is said. */
	CHECK_STR(literal("ab\\10", &is_all), "");
	CHECK_STR(literal("ab(?i)cd", &is_all), "");
	CHECK_STR(literal("\\Qa.b\\E", &is_all), "");
	CHECK_STR(literal("abc(?#|)", &is_all), "");
	CHECK_STR(literal("\\x41bc", &is_all), "");
	CHECK(!is_all);
	CHECK_STR(literal("x{", &is_all), "");
	CHECK_STR(literal("abc{x}def", &is_all), "def");
	CHECK_STR(literal("[\\]a]bc", &is_all), "bc");
	CHECK_STR(literal("[[:alpha:]x]bc", &is_all), "bc");
	CHECK_STR(literal("(?!abcd)ef", &is_all), "ef");
	CHECK_STR(literal("", &is_all), "");
}

int main(void)
{
	check_matches();
	check_case();
	check_refused();
	check_limits();
	check_literal();
	return check_report();
}
