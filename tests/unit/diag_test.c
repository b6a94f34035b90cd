/* Diagnostics: what a person reads, and what a program does. */
#include <stdlib.h>

#include "base/count.h"
#include "base/own.h"
#include "check.h"
#include "is_json.h"
#include "spec/diag.h"

static struct arena arena;
static struct diags d;

static void start(const char *name, const char *bytes, size_t n)
{
	arena_done(&arena);
	arena_init(&arena, 1 << 20);
	diags_init(&d, &arena);
	diags_add_source(&d, name, bytes, n);
}

static void check_printed(const char *wanted, int line)
{
	struct buf out = { .max = 1 << 20 };

	diags_print(&d, &out, false);
	check_equal(buf_text(&out), wanted, __FILE__, line);
	buf_done(&out);
}

#define CHECK_PRINTED(wanted) check_printed((wanted), __LINE__)

static void test_layout(void)
{
	static const char text[] = "one: 1\nlimits: { memroy: 2G }\r\nlast";

	start("bawn.yaml", text, strlen(text));
	diags_error(&d, ((struct diag_pos){ 2, 11, 6, 0 }), "did you mean 'memory'?",
		"unknown key '%s'", "limits.memroy");
	diags_warn(&d, ((struct diag_pos){ 3, 1, 4, 0 }), NULL, "pointless");
	CHECK(d.errors == 1 && d.warnings == 1 && d.count == 2);
	CHECK_PRINTED("bawn.yaml:2:11: error: unknown key 'limits.memroy'\n"
		      "    2 | limits: { memroy: 2G }\n"
		      "      |           ^~~~~~\n"
		      "      = did you mean 'memory'?\n"
		      "bawn.yaml:3:1: warning: pointless\n"
		      "    3 | last\n"
		      "      | ^~~~\n");
	CHECK_STR(diags_where(&d, (struct diag_pos){ 2, 11, 6, 0 }), "bawn.yaml:2:11");
	CHECK_STR(diags_where(&d, (struct diag_pos){ 0 }), "bawn.yaml");
}

static void test_order(void)
{
	static const char text[] = "a\nb\n";
	unsigned option;

	start("f", text, strlen(text));
	option = diags_add_source(&d, "--memory", NULL, 0);
	diags_error(&d, ((struct diag_pos){ .source = option }), NULL, "third");
	diags_error(&d, ((struct diag_pos){ 2, 1, 1, 0 }), NULL, "second");
	diags_error(&d, ((struct diag_pos){ 1, 1, 1, 0 }), NULL, "first");
	diags_error(&d, ((struct diag_pos){ 2, 1, 1, 0 }), NULL, "second, said later");
	CHECK_PRINTED("f:1:1: error: first\n    1 | a\n      | ^\n"
		      "f:2:1: error: second\n    2 | b\n      | ^\n"
		      "f:2:1: error: second, said later\n    2 | b\n      | ^\n"
		      "--memory: error: third\n");
}

/* Nothing of a hostile file reaches the terminal as more than text. */
static void test_hostile(void)
{
	static const char text[] = "k\x1b]0;owned\x07\xe2\x80\xae\xff: \xe6\x97\xa5 x\n";

	start("evil\x1b[2J.yaml", text, strlen(text));
	diags_error(&d, ((struct diag_pos){ 1, 16, 1, 0 }), "hint \x1b", "text \x1b\n");
	CHECK_PRINTED("evil\\x1b[2J.yaml:1:16: error: text \\x1b\\x0a\n"
		      "    1 | k\\x1b]0;owned\\x07\\u{202e}\\xff: \xe6\x97\xa5 x\n"
		      "      |                                ^\n"
		      "      = hint \\x1b\n");
}

static void test_long_line(void)
{
	own(buf) struct buf text = { .max = 10000 }, out = { .max = 100000 };
	const char *shown;

	buf_repeat(&text, 'a', 1000);
	buf_puts(&text, "HERE");
	buf_repeat(&text, 'b', 1000);
	start("f", text.data, text.len);
	diags_error(&d, ((struct diag_pos){ 1, 1001, 4, 0 }), NULL, "x");
	diags_print(&d, &out, false);
	shown = strstr(buf_text(&out), "HERE");
	CHECK(shown && out.len < 300);
	CHECK(strstr(buf_text(&out), "    1 | \xe2\x80\xa6"
				     "aaa"));
	CHECK(strstr(buf_text(&out), "bbb\xe2\x80\xa6\n"));
	/* The caret stands below the H: as far from its bar as that is from its own. */
	CHECK(shown && strstr(buf_text(&out), "^~~~") &&
		shown - strstr(buf_text(&out), " | ") - 2 ==
			strstr(buf_text(&out), "^~~~") - strstr(buf_text(&out), "      | ") - 5);
}

static void test_places_outside(void)
{
	static const char text[] = "ab\n";

	start("f", text, strlen(text));
	diags_error(&d, ((struct diag_pos){ 1, 100, 5, 0 }), NULL, "behind the line");
	diags_error(&d, ((struct diag_pos){ 9, 1, 1, 0 }), NULL, "behind the file");
	diags_error(&d, ((struct diag_pos){ 1, 0, 0, 0 }), NULL, "no column");
	CHECK_PRINTED("f:1:0: error: no column\n    1 | ab\n      | ^\n"
		      "f:1:100: error: behind the line\n    1 | ab\n      |   ^\n"
		      "f:9:1: error: behind the file\n");
	start("empty", "", 0);
	diags_error(&d, ((struct diag_pos){ 1, 1, 1, 0 }), NULL, "nothing there");
	CHECK_PRINTED("empty:1:1: error: nothing there\n    1 | \n      | ^\n");
}

static void test_many(void)
{
	own(buf) struct buf out = { .max = 1 << 20 };

	start("f", "x\n", 2);
	for (int i = 0; i < DIAG_MAX + 5; i++) {
		CHECK(diags_are_full(&d) == (i >= DIAG_MAX));
		diags_error(&d, ((struct diag_pos){ 1, 1, 1, 0 }), NULL, "number %d", i);
	}
	CHECK(d.errors == DIAG_MAX + 5 && d.count == DIAG_MAX);
	diags_print(&d, &out, false);
	CHECK(strstr(buf_text(&out), "number 99\n") && !strstr(buf_text(&out), "number 100\n"));
	CHECK(strstr(buf_text(&out), "\xe2\x80\xa6 and perhaps more; mend these first\n"));
}

static void test_long_text(void)
{
	char word[2000];

	memset(word, 'w', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	start("f", "x\n", 2);
	diags_error(&d, ((struct diag_pos){ 1, 1, 1, 0 }), word, "%s", word);
	CHECK(strlen(d.items[0].text) == 511 && strlen(d.items[0].hint) == 1999);
}

/* Every source keeps its name, also the ones that come late: messages are told apart by it. */
static void test_many_sources(void)
{
	static const char *const names[] = { "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8",
		"s9", "s10", "s11", "s12", "s13", "s14", "s15", "s16", "s17", "s18", "s19" };

	start("built-in", NULL, 0);
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		struct diag_pos at = { .source = diags_add_source(&d, names[i], NULL, 0) };

		diags_error(&d, at, NULL, "%s", names[i]);
	}
	for (size_t i = 0; i < d.count; i++)
		CHECK_STR(diags_where(&d, d.items[i].at), d.items[i].text);
}

static void test_full_arena(void)
{
	static struct diags small;
	own(buf) struct buf out = { .max = 1000 };
	struct arena tiny;

	arena_init(&tiny, 16);
	diags_init(&small, &tiny);
	diags_add_source(&small, "f", "x\n", 2);
	diags_error(&small, ((struct diag_pos){ 1, 1, 1, 0 }), "a hint that finds no room", "%s",
		"a sentence that finds no room");
	CHECK(small.errors == 1);
	diags_print(&small, &out, false);
	CHECK(strstr(buf_text(&out), "error: out of memory while describing an error\n"));
	arena_done(&tiny);
}

static void test_json(void)
{
	own(buf) struct buf out = { .max = 10000 };
	struct json j;

	start("f\"", "x\n", 2);
	diags_error(&d, ((struct diag_pos){ 1, 2, 3, 0 }), "h", "bad \xff");
	diags_warn(&d, ((struct diag_pos){ 0 }), NULL, "whole");
	json_init(&j, &out, 0);
	json_open_map(&j, NULL);
	diags_print_json(&d, &j);
	json_close_map(&j);
	CHECK_STR(buf_text(&out),
		"{\"diagnostics\":[{\"level\":\"warning\",\"source\":\"f\\\"\",\"line\":0,"
		"\"column\":0,\"message\":\"whole\"},{\"level\":\"error\",\"source\":\"f\\\"\","
		"\"line\":1,\"column\":2,\"message\":\"bad \\udcff\",\"hint\":\"h\"}]}");
	CHECK(is_json(buf_text(&out)));
}

/* Several of one list are one message with one hint, where the first stands; one is like others. */
static void test_list(void)
{
	static const struct diag_list wishes = { "too much", "take less" };
	own(buf) struct buf one = { .max = 10000 }, out = one;
	struct diag *said;

	start("f", "a\nb\nc\n", 6);
	said = diags_error(&d, ((struct diag_pos){ 1, 1, 1, 0 }), "less", "a is too much");
	said->list = &wishes;
	said->brief = "a";
	diags_print(&d, &one, false);
	CHECK_STR(buf_text(&one), "f:1:1: error: a is too much\n    1 | a\n      | ^\n"
				  "      = less\n");
	diags_error(&d, ((struct diag_pos){ 2, 1, 1, 0 }), NULL, "bad");
	said = diags_error(&d, ((struct diag_pos){ 3, 1, 1, 0 }), "less", "c is too much");
	said->list = &wishes;
	said->brief = "c\x1b";
	diags_print(&d, &out, false);
	CHECK_STR(buf_text(&out), "f:1:1: error: too much\n      | f:1:1: a\n"
				  "      | f:3:1: c\\x1b\n      = take less\n"
				  "f:2:1: error: bad\n    2 | b\n      | ^\n");
	CHECK(d.errors == 3);
}

static void test_color(void)
{
	own(buf) struct buf out = { .max = 10000 };

	start("f", "x\n", 2);
	diags_error(&d, ((struct diag_pos){ 1, 1, 1, 0 }), NULL, "bad");
	diags_print(&d, &out, true);
	CHECK_STR(buf_text(&out),
		"\x1b[1mf:1:1: \x1b[1;31merror:\x1b[0m bad\n    1 | x\n      | ^\n");
}

int main(void)
{
	test_layout();
	test_order();
	test_hostile();
	test_long_line();
	test_places_outside();
	test_many();
	test_long_text();
	test_many_sources();
	test_full_arena();
	test_json();
	test_list();
	test_color();
	arena_done(&arena);
	return check_report();
}
