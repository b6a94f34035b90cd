/* JSON as RFC 8259 has it, and nothing else. */
#include <inttypes.h>

#include "base/count.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/own.h"
#include "base/str.h"
#include "check.h"

static bool is_json(const char *text, size_t n)
{
	own(json_reader) struct json_reader r;

	json_read_init(&r, text, n, 1000);
	json_skip(&r);
	return json_read_end(&r);
}

/* What json_text writes of bytes that are not UTF-8 comes back to who asks for it. */
static void test_bytes(void)
{
	static const char *const bad[] = { "\"\\udc7f\"", "\"\\udd00\"", "\"\\ud880\"",
		"\"\\udc00\"" };
	own(buf) struct buf out = { .max = 1000 };
	own(json_reader) struct json_reader r;
	const char *text = NULL;
	struct json j;

	json_init(&j, &out, 0);
	json_text(&j, NULL, "a\xff\xc3z\x80");
	json_read_init(&r, buf_text(&out), out.len, 1000);
	CHECK(!json_read_text(&r, &text));
	json_reader_done(&r);
	json_read_init(&r, buf_text(&out), out.len, 1000);
	r.takes_bytes = true;
	CHECK(json_read_text(&r, &text) && json_read_end(&r));
	CHECK_STR(text, "a\xff\xc3z\x80");
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		json_reader_done(&r);
		json_read_init(&r, bad[i], strlen(bad[i]), 1000);
		r.takes_bytes = true;
		CHECK(!json_read_text(&r, &text));
	}
}

static void test_whole(void)
{
	static const char *const good[] = { "0", "-0", "1", "-12", "1.5", "1e5", "1E+5", "-1.25e-3",
		"true", "false", "null", "\"\"", "\"a\"", "[]", "{}", "[1]", "[1,2]", " [ 1 , 2 ] ",
		"{\"a\":1}", "{\"a\":[{}],\"b\":null}", "\t{\"a\" : \"b\"}\r\n",
		"\"\\u00e9\\n\\/\\\"\"", "\"\\ud83d\\ude00\"", "\"\xc3\xa9\"", "\"\x7f\"",
		"123456789012345678901234567890" };
	static const char *const bad[] = { "", " ", "01", "-", "+1", "1.", ".5", "1e", "1e+", "tru",
		"True", "nul", "\"", "\"a", "'a'", "[", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "]",
		"{", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,}", "{a:1}", "{\"a\" 1}", "{1:1}",
		"1 2", "[]]", "{}x", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"\\u0000\"",
		"\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\u0041\"", "\"\\ud800\\\"", "\"\n\"",
		"\"\x01\"", "\"\xff\"", "\"\xc3\"", "\"\xed\xa0\x80\"", "\"\\", "/**/1", "NaN",
		"Infinity", "\xef\xbb\xbf{}" };

	for (size_t i = 0; i < COUNT_OF(good); i++)
		check_that(is_json(good[i], strlen(good[i])), good[i], __FILE__, __LINE__);
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		check_that(!is_json(bad[i], strlen(bad[i])), bad[i], __FILE__, __LINE__);
	CHECK(!is_json("{}\0", 3) && !is_json("\0", 1) && !is_json("\"a\0b\"", 5));
	for (size_t n = 0; n < 7; n++) /* every beginning of a word that is not one yet */
		CHECK(!is_json("[false]", n));
}

static void test_depth(void)
{
	char text[200];

	for (size_t depth = 1; depth < 100; depth++) {
		memset(text, '[', depth);
		memset(text + depth, ']', depth);
		CHECK(is_json(text, 2 * depth) == (depth <= JSON_READ_DEPTH));
	}
}

static void test_integers(void)
{
	static const struct {
		const char *text;
		bool is_good;
		int64_t value;
	} rows[] = { { "0", true, 0 }, { " 12", true, 12 }, { "-7", true, -7 },
		{ "9223372036854775807", true, INT64_MAX },
		{ "-9223372036854775808", true, INT64_MIN }, { "9223372036854775808", false, 0 },
		{ "-9223372036854775809", false, 0 }, { "99999999999999999999", false, 0 },
		{ "1.0", false, 0 }, { "1e3", false, 0 }, { "\"1\"", false, 0 }, { "", false, 0 },
		{ "007", false, 0 } };

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		own(json_reader) struct json_reader r;
		int64_t value = 42;

		json_read_init(&r, rows[i].text, strlen(rows[i].text), 10);
		CHECK((json_read_int(&r, &value) && json_read_end(&r)) == rows[i].is_good);
		CHECK(!rows[i].is_good || value == rows[i].value);
	}
}

static void test_texts(void)
{
	static const char *const texts[] = { "", "plain", "quote\" back\\ slash/", "\n\t\r\b\f\x01",
		"\u00e9\u20ac\U0001f600", "\x7f" };

	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		own(json_reader) struct json_reader r;
		own(buf) struct buf out = { .max = 1000 };
		struct json j;
		const char *back = NULL;

		json_init(&j, &out, 0);
		json_text(&j, NULL, texts[i]);
		json_read_init(&r, out.data, out.len, 30);
		CHECK(json_read_text(&r, &back) && json_read_end(&r));
		CHECK_STR(back, texts[i]);
	}
	{
		own(json_reader) struct json_reader r;
		const char *back = NULL;

		json_read_init(&r, "\"12345\"", 7, 4);
		CHECK(!json_read_text(&r, &back) && str_eq(r.wrong, "a shorter text"));
	}
}

/* Values one by one; what is asked for after a failure is not there. */
static void test_walk(void)
{
	static const char text[] = "{\"n\":5,\"list\":[true,false],\"skip\":{\"x\":[1,{}]},"
				   "\"t\":\"x\"}";
	own(json_reader) struct json_reader r;
	const char *key = NULL, *word = NULL;
	bool is_so = false;
	int64_t n = 0;

	json_read_init(&r, text, strlen(text), 100);
	CHECK(json_enter_map(&r) && json_next_key(&r, &key));
	CHECK_STR(key, "n");
	CHECK(json_read_int(&r, &n) && n == 5 && json_next_key(&r, &key));
	CHECK(json_enter_list(&r) && json_next_item(&r) && json_read_bool(&r, &is_so) && is_so);
	CHECK(json_next_item(&r) && json_read_bool(&r, &is_so) && !is_so && !json_next_item(&r));
	CHECK(json_next_key(&r, &key) && json_skip(&r) && json_next_key(&r, &key));
	CHECK_STR(key, "t");
	CHECK(!json_read_int(&r, &n) && r.wrong);
	CHECK_STR(r.wrong, "an integer");
	CHECK(!json_read_text(&r, &word) && !json_next_key(&r, &key) && !json_skip(&r));
	CHECK(!json_enter_map(&r) && !json_next_item(&r) && !json_read_end(&r));
	CHECK_STR(r.wrong, "an integer"); /* the first failure is the one that is told */
}

int main(void)
{
	test_whole();
	test_bytes();
	test_depth();
	test_integers();
	test_texts();
	test_walk();
	return check_report();
}
