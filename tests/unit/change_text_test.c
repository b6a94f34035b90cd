/* Texts against each other: what is printed, that it is the least, and that it takes no time. */
#include <errno.h>
#include <stdlib.h>

#include "base/count.h"
#include "base/own.h"
#include "change/text/change_text_edits.h"
#include "check.h"

static struct change_text text_of(const char *text)
{
	return (struct change_text){ text, strlen(text) };
}

/* Always the same numbers. */
static uint32_t draw(uint32_t below)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005U + 1442695040888963407U;
	return (uint32_t)(state >> 33) % below;
}

static void test_is_text(void)
{
	static char bytes[8001];

	memset(bytes, 'x', sizeof(bytes));
	bytes[8000] = '\0';
	CHECK(change_is_text(&(struct change_text){ bytes, sizeof(bytes) }));
	bytes[7999] = '\0';
	CHECK(!change_is_text(&(struct change_text){ bytes, sizeof(bytes) }));
	CHECK(change_is_text(&(struct change_text){ bytes, 7999 }));
	CHECK(change_is_text(&(struct change_text){ "\xff\xfe\r\n", 4 }));
	CHECK(change_is_text(&(struct change_text){ NULL, 0 }));
}

/* --- differences --- */

#define NONE_AT_END "\\ No newline at end of file\n"

static void test_diff(void)
{
	static const struct {
		const char *a, *b, *wanted;
	} rows[] = {
		{ "", "", "" },
		{ "a\nb\n", "a\nb\n", "" },
		{ "", "a\n", "@@ -0,0 +1 @@\n+a\n" },
		{ "", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n" },
		{ "a\nb\n", "", "@@ -1,2 +0,0 @@\n-a\n-b\n" },
		{ "a\n", "b\n", "@@ -1 +1 @@\n-a\n+b\n" },
		{ "", "\n", "@@ -0,0 +1 @@\n+\n" },
		{ "a", "a\n", "@@ -1 +1 @@\n-a\n" NONE_AT_END "+a\n" },
		{ "a\n", "a", "@@ -1 +1 @@\n-a\n+a\n" NONE_AT_END },
		{ "a", "b", "@@ -1 +1 @@\n-a\n" NONE_AT_END "+b\n" NONE_AT_END },
		{ "x\nz", "y\nz", "@@ -1,2 +1,2 @@\n-x\n+y\n z\n" NONE_AT_END },
		{ "a\nb", "a\nb\nc",
			"@@ -1,2 +1,3 @@\n a\n-b\n" NONE_AT_END "+b\n+c\n" NONE_AT_END },
		{ "a\r\nb\r\n", "a\r\nb\n", "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+b\n" },
		{ "a\rb\n", "a\rc\n", "@@ -1 +1 @@\n-a\rb\n+a\rc\n" },
		/* Three lines around, and no more. */
		{ "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n",
			"@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n" },
		/* Six equal lines between belong to one hunk, seven part two. */
		{ "a\n1\n2\n3\n4\n5\n6\nb\n", "1\n2\n3\n4\n5\n6\n",
			"@@ -1,8 +1,6 @@\n-a\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n" },
		{ "a\n1\n2\n3\n4\n5\n6\n7\nb\n", "1\n2\n3\n4\n5\n6\n7\n",
			"@@ -1,4 +1,3 @@\n-a\n 1\n 2\n 3\n@@ -6,4 +5,3 @@\n 5\n 6\n 7\n-b\n" },
		/* What can stand at several places stands at the last, or with another edit. */
		{ "{\na\n}\n", "{\na\n}\n{\nb\n}\n", "@@ -1,3 +1,6 @@\n {\n a\n }\n+{\n+b\n+}\n" },
		{ "{\na\n}\n{\nc\n}\n", "{\na\n}\n{\nb\n}\n{\nc\n}\n",
			"@@ -2,5 +2,8 @@\n a\n }\n {\n+b\n+}\n+{\n c\n }\n" },
		{ "x\nx\nx\n", "x\nx\n", "@@ -1,3 +1,2 @@\n x\n x\n-x\n" },
		{ "p\nx\nx\nq\n", "p\nx\nr\n", "@@ -1,4 +1,3 @@\n p\n x\n-x\n-q\n+r\n" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct change_text a = text_of(rows[i].a), b = text_of(rows[i].b);
		own(buf) struct buf out = { .max = 1000 };

		CHECK(change_text_diff(&a, &b, &out) == 0 && !out.failed);
		CHECK_STR(buf_text(&out), rows[i].wanted);
	}
}

static void test_limits(void)
{
	struct change_text a = text_of("a\n"), b = text_of("b\n"), huge = { "", (size_t)1 << 30 };
	own(buf) struct buf out = { .max = 12 };
	uint32_t added, removed;
	size_t conflicts;

	CHECK(change_text_diff(&a, &b, &out) == 0 && out.failed);
	CHECK(change_text_diff(&a, &huge, &out) == -EFBIG);
	CHECK(change_text_count(&huge, &b, &added, &removed) == -EFBIG);
	CHECK(change_text_merge(&a, &b, &huge, "o", "t", &out, &conflicts) == -EFBIG);
}

/* Bytes that are no text are none the worse for it. */
static void test_zero_bytes(void)
{
	struct change_text a = { "a\0b\n\0\n", 6 }, b = { "a\0c\n\0\n", 6 };
	own(buf) struct buf out = { .max = 1000 };
	static const char wanted[] = "@@ -1,2 +1,2 @@\n-a\0b\n+a\0c\n \0\n";

	CHECK(change_text_diff(&a, &b, &out) == 0);
	CHECK(out.len == sizeof(wanted) - 1 && memcmp(out.data, wanted, out.len) == 0);
}

/* --- the least --- */

#define LONGEST 60

/* How many lines of one letter two texts have in common, in order; by the book. */
static uint32_t common(const char *a, size_t n_a, const char *b, size_t n_b)
{
	static uint32_t best[LONGEST + 1][LONGEST + 1];

	for (size_t i = 1; i <= n_a; i++)
		for (size_t k = 1; k <= n_b; k++)
			if (a[2 * i - 2] == b[2 * k - 2])
				best[i][k] = best[i - 1][k - 1] + 1;
			else
				best[i][k] = best[i - 1][k] > best[i][k - 1] ? best[i - 1][k]
									     : best[i][k - 1];
	return best[n_a][n_b];
}

static size_t draw_lines(char *ret, uint32_t letters)
{
	size_t n = draw(LONGEST + 1);

	for (size_t i = 0; i < n; i++) {
		ret[2 * i] = (char)('a' + draw(letters));
		ret[2 * i + 1] = '\n';
	}
	return n;
}

static void test_least(void)
{
	char a[2 * LONGEST], b[2 * LONGEST];
	bool is_least = true;

	for (int i = 0; i < 3000; i++) {
		uint32_t letters = 1 + draw(i % 2 ? 4 : 20), added = 0, removed = 0;
		size_t n_a = draw_lines(a, letters), n_b = draw_lines(b, letters);
		uint32_t kept = common(a, n_a, b, n_b);

		change_text_count(&(struct change_text){ a, 2 * n_a },
			&(struct change_text){ b, 2 * n_b }, &added, &removed);
		is_least = is_least && added == n_b - kept && removed == n_a - kept;
	}
	CHECK(is_least);
}

/* --- hostile texts --- */

/* Do the edits make b of a, and touch only what they say? */
static bool is_right(const struct change_text_edits *x)
{
	uint32_t a = 0, b = 0;

	for (size_t i = 0; i <= x->count; i++) {
		struct change_text_edit end = { .a = x->a.count, .b = x->b.count };
		const struct change_text_edit *e = i < x->count ? &x->items[i] : &end;

		if (e->a < a || e->b < b || e->a - a != e->b - b || (i && a == e->a && e != &end))
			return false;
		for (; a < e->a; a++, b++)
			if (!change_text_is_same_line(&x->a, a, &x->b, b))
				return false;
		a += e->a_count;
		b += e->b_count;
	}
	return a == x->a.count && b == x->b.count;
}

#define LARGE ((size_t)8 << 20)

/* Every second byte ends a line; the others are drawn from so many letters, beginning at `from`. */
static void fill(char *bytes, char from, uint32_t letters)
{
	for (size_t i = 0; i < LARGE; i += 2) {
		bytes[i] = (char)(from + (letters > 1 ? (char)draw(letters) : 0));
		bytes[i + 1] = '\n';
	}
}

/* Returns the number of steps. */
static uint64_t check_bounds(const char *a, const char *b, int line)
{
	own(change_text_edits) struct change_text_edits x = { 0 };
	int r = change_text_edits_find(
		&(struct change_text){ a, LARGE }, &(struct change_text){ b, LARGE }, &x);

	check_that(r == 0 && is_right(&x), "hostile texts are told right", __FILE__, line);
	check_that(
		x.steps <= CHANGE_TEXT_MAX_STEPS + 2 * LARGE, "steps are bounded", __FILE__, line);
	return x.steps;
}

static void test_hostile(void)
{
	own_free char *a = malloc(LARGE), *b = malloc(LARGE);

	if (!a || !b)
		abort();
	/* Nothing in common is seen at once. */
	fill(a, 'a', 1);
	fill(b, 'b', 1);
	CHECK(check_bounds(a, b, __LINE__) == 0);
	/* Much in common everywhere: without a bound, these would take days. */
	fill(a, 'a', 2);
	fill(b, 'a', 2);
	CHECK(check_bounds(a, b, __LINE__) > CHANGE_TEXT_MAX_STEPS);
	/* Long runs on every diagonal. */
	fill(a, 'a', 1);
	fill(b, 'a', 1);
	for (size_t i = 0; i < 4000; i += 2) {
		a[i] = (char)('a' + draw(2));
		b[i] = (char)('a' + draw(3));
		a[LARGE - 2 - i] = (char)('a' + draw(3));
		b[LARGE - 2 - i] = (char)('a' + draw(2));
	}
	CHECK(check_bounds(a, b, __LINE__) > CHANGE_TEXT_MAX_STEPS);
	/* One line apart, slid along the whole text: every byte is a line. */
	memset(a, '\n', LARGE);
	memset(b, '\n', LARGE);
	a[0] = b[LARGE - 2] = 'x';
	check_bounds(a, b, __LINE__);
}

/* --- three ways --- */

#define CONFLICT(ours, theirs) "<<<<<<< o\n" ours "=======\n" theirs ">>>>>>> t\n"

static void test_merge(void)
{
	static const struct {
		const char *base, *ours, *theirs, *wanted;
		size_t conflicts;
	} rows[] = {
		{ "", "", "", "", 0 },
		{ "a\n", "a\n", "a\n", "a\n", 0 },
		{ "a\nb\nc\n", "x\nb\nc\n", "a\nb\ny\n", "x\nb\ny\n", 0 },
		{ "a\nb\nc\n", "a\nb\nc\nx\n", "y\na\nb\nc\n", "y\na\nb\nc\nx\n", 0 },
		{ "a\nb\nc\n", "b\nc\n", "a\nb\n", "b\n", 0 },
		{ "a\nb", "x\na\nb", "a\nb\nc", "x\na\nb\nc", 0 },
		{ "a\n", "", "a\n", "", 0 },
		{ "a\n", "a\n", "", "", 0 },
		/* The same on both sides. */
		{ "a\n", "b\n", "b\n", "b\n", 0 },
		{ "", "b", "b", "b", 0 },
		{ "a\nb\n", "a\n", "a\n", "a\n", 0 },
		{ "a\nb\nc\n", "x\nb\nc\n", "x\nb\ny\n", "x\nb\ny\n", 0 },
		/* The same lines changed differently; what touches belongs together. */
		{ "a\n", "b\n", "c\n", CONFLICT("b\n", "c\n"), 1 },
		{ "a\n", "", "c\n", CONFLICT("", "c\n"), 1 },
		{ "", "b\n", "c\n", CONFLICT("b\n", "c\n"), 1 },
		{ "a\nb\n", "x\nb\n", "a\ny\n", CONFLICT("x\nb\n", "a\ny\n"), 1 },
		{ "a\n", "a\nx\n", "", CONFLICT("a\nx\n", ""), 1 },
		{ "a\nb\nc\n", "x\nb\nz\n", "y\nb\nw\n",
			CONFLICT("x\n", "y\n") "b\n" CONFLICT("z\n", "w\n"), 2 },
		/* What both begin or end with stands outside. */
		{ "a\n", "1\nb\n2\n", "1\nc\n2\n", "1\n" CONFLICT("b\n", "c\n") "2\n", 1 },
		/* A chain: each touches the next one of the other side. */
		{ "a\nb\nc\nd\n", "1\nb\n3\nd\n", "a\n2\nc\nd\n",
			CONFLICT("1\nb\n3\n", "a\n2\nc\n") "d\n", 1 },
		/* Lines without an end get one before a marker. */
		{ "a", "b", "c", CONFLICT("b\n", "c\n"), 1 },
		{ "a", "a\n", "c", CONFLICT("a\n", "c\n"), 1 },
		{ "a\n", "a", "a\nb\n", CONFLICT("a\n", "a\nb\n"), 1 },
		{ "a\r\n", "b\r\n", "c\r\n", "<<<<<<< o\r\nb\r\n=======\r\nc\r\n>>>>>>> t\r\n", 1 },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct change_text base = text_of(rows[i].base), ours = text_of(rows[i].ours);
		struct change_text theirs = text_of(rows[i].theirs);
		own(buf) struct buf out = { .max = 1000 };
		size_t conflicts = 99;

		CHECK(change_text_merge(&base, &ours, &theirs, "o", "t", &out, &conflicts) == 0);
		CHECK_STR(buf_text(&out), rows[i].wanted);
		CHECK(conflicts == rows[i].conflicts && !out.failed);
	}
}

int main(void)
{
	test_is_text();
	test_diff();
	test_limits();
	test_zero_bytes();
	test_least();
	test_hostile();
	test_merge();
	return check_report();
}
