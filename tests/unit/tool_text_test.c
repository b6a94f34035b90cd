/* Lines with their numbers, exact edits, and what a search prints. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "agent/tool/tool.h"
#include "agent/tool/tool_edit.h"
#include "agent/tool/tool_lines.h"
#include "agent/tool/tool_search.h"
#include "base/own.h"
#include "check.h"

/* --- lines --- */

/* The text in pieces of `step` bytes. */
static struct tool_lines number(
	struct buf *out, const char *text, size_t n, size_t step, uint64_t first, uint64_t count)
{
	struct tool_lines l = { .first = first, .count = count, .out = out };
	size_t at = 0;

	*out = (struct buf){ .max = TOOL_MAX_OUTPUT + TOOL_MAX_NOTE };
	while (at < n && tool_lines_feed(&l, text + at, n - at < step ? n - at : step))
		at += step;
	tool_lines_end(&l);
	return l;
}

static void check_lines_in_steps(size_t step)
{
	struct tool_lines l;
	struct buf out;

	l = number(&out, "a\n\nc", 4, step, 1, 10);
	CHECK_STR(buf_text(&out), "     1\ta\n     2\t\n     3\tc\n");
	CHECK(!l.has_more && l.line == 3);
	buf_done(&out);
	l = number(&out, "a\nb\nc\n", 6, step, 2, 1);
	CHECK_STR(buf_text(&out), "     2\tb\n");
	CHECK(l.has_more);
	buf_done(&out);
	l = number(&out, "a\nb\nc\n", 6, step, 3, 1);
	CHECK_STR(buf_text(&out), "     3\tc\n");
	CHECK(!l.has_more);
	buf_done(&out);
	l = number(&out, "a\nb", 3, step, 5, 1);
	CHECK(l.printed == 0 && l.line == 2 && out.len == 0);
	buf_done(&out);
	l = number(&out, "a\nb\0c\n", 6, step, 1, 9);
	CHECK(l.has_nul);
	buf_done(&out);
	l = number(&out, "a\n\xe4\n", 4, step, 1, 9);
	CHECK(l.is_foreign);
	buf_done(&out);
	l = number(&out, "\xc3\xa9\n", 3, step, 1, 9);
	CHECK(!l.is_foreign);
	CHECK_STR(buf_text(&out), "     1\t\xc3\xa9\n");
	buf_done(&out);
}

static void check_long_lines(void)
{
	char text[3001];
	struct tool_lines l;
	struct buf out;

	/* Characters of two bytes, so that the cut falls into one. */
	text[0] = 'x';
	for (size_t i = 1; i < 2999; i += 2)
		memcpy(text + i, "\xc3\xa9", 2);
	text[2999] = '\n';
	l = number(&out, text, 3000, 64, 1, 9);
	CHECK(!l.is_foreign && out.len > 1999 + 7);
	CHECK_STR(buf_text(&out) + 7 + 1999, " … (cut: this line has 2999 bytes)\n");
	buf_done(&out);
	out = (struct buf){ .max = 5000 };
	tool_put_line(&out, text, 2999);
	CHECK_STR(buf_text(&out) + 1999, " … (cut: this line has 2999 bytes)");
	buf_done(&out);
	out = (struct buf){ .max = 5000 };
	tool_put_line(&out, "a\xff z", 4);
	CHECK_STR(buf_text(&out), "a\xef\xbf\xbd z");
	buf_done(&out);
}

static void check_much(void)
{
	size_t n = (size_t)4 << 20;
	own_free char *text = malloc(n);
	struct tool_lines l;
	struct buf out;

	for (size_t i = 0; text && i < n; i++)
		text[i] = i % 1024 == 1023 ? '\n' : 'x';
	l = number(&out, text, text ? n : 0, 65536, 1, 100000);
	CHECK(l.has_more && out.len <= TOOL_MAX_OUTPUT && !out.failed);
	CHECK(l.printed > 1000 && l.printed < 1024);
	buf_done(&out);
}

/* --- edits --- */

static struct err e;

static int edit(struct tool_edit *x, const char *text, const char *from, const char *to, bool all,
	struct buf *out)
{
	*x = (struct tool_edit){ text, from, to, strlen(text), all, 0, { 0 } };
	*out = (struct buf){ .max = 1000 };
	e = (struct err){ 0 };
	return tool_edit_apply(x, out, &e);
}

static void check_edits(void)
{
	struct tool_edit x;
	struct buf out;

	CHECK(edit(&x, "a\nb\nc\n", "b", "BB", false, &out) == 0);
	CHECK_STR(buf_text(&out), "a\nBB\nc\n");
	CHECK(x.count == 1 && x.lines[0] == 2);
	buf_done(&out);
	CHECK(edit(&x, "x x\nx", "x", "", true, &out) == 0);
	CHECK_STR(buf_text(&out), " \n");
	CHECK(x.count == 3 && x.lines[0] == 1 && x.lines[1] == 1 && x.lines[2] == 2);
	buf_done(&out);
	CHECK(edit(&x, "aaaa", "aa", "b", true, &out) == 0 && x.count == 2);
	CHECK_STR(buf_text(&out), "bb");
	buf_done(&out);
	CHECK(edit(&x, "a\r\nb\r\nc\r\n", "a\nb", "x\ny\r\nz", false, &out) == 0);
	CHECK_STR(buf_text(&out), "x\r\ny\r\nz\r\nc\r\n");
	buf_done(&out);
}

static void check_no_edits(void)
{
	struct tool_edit x;
	struct buf out;

	CHECK(edit(&x, "x\nx\n", "x", "y", false, &out) == -EEXIST);
	CHECK(strstr(e.text, "in it 2 times, at lines 1, 2;") != NULL);
	CHECK(edit(&x, "aaa", "aa", "b", false, &out) == -EEXIST);
	CHECK(edit(&x, "", "aa", "b", false, &out) == -ENOENT);
	CHECK(strstr(e.text, "it is empty") != NULL);
	CHECK(edit(&x, "abc", "   12\tabc", "b", false, &out) == -ENOENT);
	CHECK(strstr(e.text, "line numbers") != NULL);
	CHECK(edit(&x, "abc", "abd", "b", true, &out) == -ENOENT);
	CHECK(strstr(e.text, "exactly") != NULL);
	*e.text = '\0';
	x = (struct tool_edit){ "aaaaaaaaaa", "a", "0123456789012345678901234567890123456789", 10,
		true, 0, { 0 } };
	out = (struct buf){ .max = 100 };
	CHECK(tool_edit_apply(&x, &out, &e) == -EFBIG);
	buf_done(&out);
}

/* The length of what is looked for must not be multiplied by that of the text. */
static void check_edit_of_same(void)
{
	size_t n = (size_t)2 << 20;
	own_free char *text = malloc(n + 1), *from = malloc(n / 2 + 1);
	own(buf) struct buf out = { .max = 100 };
	struct tool_edit x = { text, from, "b", n, false, 0, { 0 } };

	if (!text || !from)
		return;
	memset(text, 'a', n);
	memset(from, 'a', n / 2);
	text[n] = from[n / 2] = '\0';
	CHECK(tool_edit_apply(&x, &out, &e) == -EEXIST);
	CHECK(strstr(e.text, "at least 100 times, at lines 1, 1, 1, 1, 1 …") != NULL);
}

/* --- searches --- */

static struct tool_search s;
static struct buf found;

static const char *search(const char *pattern, bool ignores_case, const char *text)
{
	static char result[1000];
	own(tool_regex) struct tool_regex r = { 0 };

	found = (struct buf){ .max = TOOL_MAX_OUTPUT + TOOL_MAX_NOTE };
	s.regex = &r;
	s.out = &found;
	s.printed = 0;
	s.is_cut = s.is_full = false;
	s.lowered = (struct buf){ .max = 1000 };
	CHECK(tool_regex_init(&r, pattern, ignores_case, &e) == 0);
	tool_search_text(&s, "f", text, strlen(text));
	snprintf(result, sizeof(result), "%s", buf_text(&found));
	buf_done(&found);
	tool_search_done(&s);
	return result;
}

static void check_searches(void)
{
	s = (struct tool_search){ .mode = TOOL_MODE_CONTENT, .has_numbers = true };
	CHECK_STR(search("b", false, "a\nb\nab"), "f:2:b\nf:3:ab\n");
	CHECK_STR(search("B", true, "a\nb\nab\r\n"), "f:2:b\nf:3:ab\n");
	CHECK_STR(search("b$", false, "ab\r\nb \n"), "f:1:ab\n");
	CHECK_STR(search("^$", false, "a\n\nb"), "f:2:\n");
	CHECK_STR(search("x", false, "a\n"), "");
	CHECK_STR(search("x|b", false, "ab\nx"), "f:1:ab\nf:2:x\n");
	CHECK_STR(search("abc", false, "ab\nc"), "");
	CHECK_STR(search("yy|xx|zz", false, "xx\nzz\nxx yy\nno\nyy"),
		"f:1:xx\nf:2:zz\nf:3:xx yy\nf:5:yy\n");
	CHECK_STR(search("AZ@\\[`\\{az\xc3\xa9", true, "az@[`{AZ\xc3\xa9\nAZ@[`{az\xc3\x89\n"),
		"f:1:az@[`{AZ\xc3\xa9\n");
	s.has_numbers = false;
	CHECK_STR(search("b", false, "b"), "f:b\n");
	s.mode = TOOL_MODE_COUNT;
	CHECK_STR(search("b", false, "b b\nb\n\nc"), "f:2\n");
	CHECK_STR(search("x", false, "b b\nb\n\nc"), "");
	s.mode = TOOL_MODE_FILES;
	CHECK_STR(search("b", false, "b\nb"), "f\n");
}

/* What is too large to be searched is told, and what comes after it is searched. */
static void check_failures(void)
{
	own(tool_regex) struct tool_regex r = { 0 };
	own(buf) struct buf out = { .max = TOOL_MAX_OUTPUT + TOOL_MAX_NOTE };

	s = (struct tool_search){ .regex = &r, .mode = TOOL_MODE_FILES, .out = &out };
	s.lowered.max = 8;
	CHECK(tool_regex_init(&r, "B", true, &e) == 0);
	CHECK(tool_search_text(&s, "f", "longer than that b", 18) && s.has_failed);
	CHECK(tool_search_text(&s, "g", "b", 1) && !s.has_failed);
	CHECK_STR(buf_text(&out), "g\n");
	tool_search_done(&s);
}

static void check_context(void)
{
	const char *text = "1\n2\n3\n4x\n5\n6\n7\n8\n9x\n10x\n11\n12\n";

	s = (struct tool_search){
		.mode = TOOL_MODE_CONTENT, .has_numbers = true, .before = 1, .after = 1
	};
	CHECK_STR(search("x", false, text),
		"f-3-3\nf:4:4x\nf-5-5\n--\nf-8-8\nf:9:9x\nf:10:10x\nf-11-11\n");
	s.before = 3;
	s.after = 2;
	CHECK_STR(search("4x|9x", false, text),
		"f-1-1\nf-2-2\nf-3-3\nf:4:4x\nf-5-5\nf-6-6\nf-7-7\nf-8-8\nf:9:9x\nf-10-10x\nf-11-11\n");
	s.before = 0;
	CHECK_STR(search("12", false, text), "f:12:12\n");
	s.limit = 2;
	CHECK_STR(search("x", false, text), "f:4:4x\nf-5-5\n");
	CHECK(s.is_cut);
	s.before = s.after = 0;
	CHECK_STR(search("4x|9x", false, text), "f:4:4x\nf:9:9x\n");
	CHECK(!s.is_cut);
}

int main(void)
{
	check_lines_in_steps(1);
	check_lines_in_steps(3);
	check_lines_in_steps(100);
	check_long_lines();
	check_much();
	check_edits();
	check_no_edits();
	check_edit_of_same();
	check_searches();
	check_failures();
	check_context();
	return check_report();
}
