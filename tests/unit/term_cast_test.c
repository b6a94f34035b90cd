/* Recordings are JSON and UTF-8, whatever was printed and wherever it was cut. */
#include "base/count.h"
#include "check.h"
#include "is_json.h"
#include "term/term_cast.h"

#define BAD "\357\277\275"

/* One value on each line, and no half of a pair in any. */
static bool is_cast(const char *text)
{
	char line[4096];

	while (*text) {
		const char *end = strchr(text, '\n');
		size_t n = end ? (size_t)(end - text) : 0;

		if (!end || n >= sizeof(line))
			return false;
		memcpy(line, text, n);
		line[n] = '\0';
		if (!is_json(line) || strstr(line, "\\ud"))
			return false;
		text = end + 1;
	}
	return true;
}

static void test_header(void)
{
	struct buf out;

	buf_init(&out, 4096);
	term_cast_header(&(struct term_cast_header){ 80, 24, 1504467315, NULL, NULL, NULL }, &out);
	CHECK_STR(buf_text(&out),
		"{\"version\": 2, \"width\": 80, \"height\": 24, \"timestamp\": 1504467315}\n");
	out.len = 0;
	term_cast_header(&(struct term_cast_header){ 132, 50, 1, "say \"hi\"\n\377\342\202",
				 "xterm", "/bin/sh" },
		&out);
	CHECK_STR(buf_text(&out),
		"{\"version\": 2, \"width\": 132, \"height\": 50, \"timestamp\": 1, "
		"\"title\": \"say \\\"hi\\\"\\n" BAD BAD BAD "\", "
		"\"env\": {\"TERM\": \"xterm\", \"SHELL\": \"/bin/sh\"}}\n");
	CHECK(is_cast(buf_text(&out)));
	out.len = 0;
	term_cast_header(&(struct term_cast_header){ .shell = "sh" }, &out);
	CHECK(strstr(buf_text(&out), "\"env\": {\"SHELL\": \"sh\"}}\n"));
	buf_done(&out);
}

/* Texts in one piece; cut anywhere, their events have the same text. */
static void test_output(void)
{
	static const struct {
		const char *in;
		size_t n;
		const char *wanted;
		bool is_plain;
	} rows[] = {
		{ "hello", 5, "hello", false },
		{ "\033[1m\"\\\t\r\n\a\177", 11, "\\u001b[1m\\\"\\\\\\t\\u000d\\n\\u0007\\u007f",
			false },
		{ "a\0b", 3, "a\\u0000b", false },
		{ "Gr\303\266\303\237e \342\202\254 \360\237\231\202", 16,
			"Gr\303\266\303\237e \342\202\254 \360\237\231\202", false },
		{ "\377a\200", 3, BAD "a" BAD, false },
		{ "\342\202x", 3, BAD BAD "x", false },
		{ "\342\342\202\254", 4, BAD "\342\202\254", false },
		{ "\340\200\200", 3, BAD BAD BAD, false },
		{ "\355\240\200", 3, BAD BAD BAD, false }, /* half of a pair */
		{ "\360\237\231\303\251", 5, BAD BAD BAD "\303\251", false },
		{ "\364\220\200\200", 4, BAD BAD BAD BAD, false },
		{ "\302\233", 2, "\302\233", false },
		{ "a\nb\n", 4, "a\\nb\\n", false },
		{ "a\nb\n", 4, "a\\u000d\\nb\\u000d\\n", true },
		{ "\n\n", 2, "\\u000d\\n\\u000d\\n", true },
		{ "a\r\nb\r\r\n\n", 8, "a\\u000d\\nb\\u000d\\u000d\\n\\u000d\\n", true },
		{ "\342\202\n\303\251\n", 6, BAD BAD "\\u000d\\n\303\251\\u000d\\n", true },
		{ "\r\303\251\n", 4, "\\u000d\303\251\\u000d\\n", true },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		for (size_t cut = 0; cut <= rows[i].n; cut++) {
			struct term_cast c = { .is_plain = rows[i].is_plain };
			char got[256] = "";
			struct buf out;

			buf_init(&out, 4096);
			term_cast_output(&c, 1500000000, rows[i].in, cut, &out);
			term_cast_output(&c, 1500000000, rows[i].in + cut, rows[i].n - cut, &out);
			term_cast_end(&c, 1500000000, &out);
			CHECK(is_cast(buf_text(&out)));
			for (const char *at = buf_text(&out); *at; at = strchr(at, '\n') + 1) {
				const char *text = at + strlen("[1.500000, \"o\", \"");
				const char *end = strchr(at, '\n') - 2;

				CHECK(strncmp(at, "[1.500000, \"o\", \"", 17) == 0 && end > text);
				strncat(got, text, (size_t)(end - text));
			}
			CHECK_STR(got, rows[i].wanted);
			buf_done(&out);
		}
}

static void test_times(void)
{
	struct term_cast c = { 0 };
	struct buf out;

	buf_init(&out, 4096);
	term_cast_output(&c, 999, "a", 1, &out);
	term_cast_output(&c, 1234567890123, "b", 1, &out);
	term_cast_resize(&c, 0, 100, 30, &out); /* time does not go back */
	term_cast_output(&c, UINT64_MAX, "", 0, &out);
	term_cast_output(&c, UINT64_MAX, "c", 1, &out);
	term_cast_end(&c, 0, &out);
	CHECK_STR(buf_text(&out),
		"[0.000000, \"o\", \"a\"]\n[1234.567890, \"o\", \"b\"]\n"
		"[1234.567890, \"r\", \"100x30\"]\n[18446744073.709551, \"o\", \"c\"]\n");
	CHECK(is_cast(buf_text(&out)));
	buf_done(&out);
}

/* What does not fit is said by the buffer, as always. */
static void test_full(void)
{
	struct term_cast c = { 0 };
	struct buf out;

	buf_init(&out, 20);
	term_cast_output(&c, 0, "a long line of output", 21, &out);
	CHECK(out.failed);
	term_cast_output(&c, 0, "", 0, &out);
	term_cast_end(&c, 0, &out);
	CHECK(out.failed && out.len <= 20);
	buf_done(&out);
}

int main(void)
{
	test_header();
	test_output();
	test_times();
	test_full();
	return check_report();
}
