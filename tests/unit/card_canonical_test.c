/* RFC 8785: the forms of its examples that have integers only, and what has no form. */
#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "check.h"
#include "proof/card/card.h"

static void check_form(const char *from, const char *wanted)
{
	own(buf) struct buf out = { .max = 4096 }, again = { .max = 4096 };
	struct err e = { 0 };

	CHECK(card_canonicalize(from, strlen(from), NULL, &out, &e) == 0);
	CHECK_STR(e.text, "");
	CHECK_STR(buf_text(&out), wanted);
	CHECK(card_canonicalize(buf_text(&out), out.len, NULL, &again, &e) == 0);
	CHECK_STR(buf_text(&again), wanted);
}

static void test_forms(void)
{
	static const char *const rows[][2] = {
		{ "{}", "{}" },
		{ " [ ] ", "[]" },
		{ "\"x\"", "\"x\"" },
		{ "{\"b\" : [ 1 , -0, -17 ],\n\"a\":{\"d\":null,\"c\":true}}",
			"{\"a\":{\"c\":true,\"d\":null},\"b\":[1,0,-17]}" },
		{ "[56,{\"d\":true,\"10\":null,\"1\":[]}]",
			"[56,{\"1\":[],\"10\":null,\"d\":true}]" },
		{ "[9007199254740991,-9007199254740991]", "[9007199254740991,-9007199254740991]" },
		/* Section 3.2.2 */
		{ "{\"string\":\"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\\"\\/\","
		  "\"literals\":[null,true,false]}",
			"{\"literals\":[null,true,false],"
			"\"string\":\"\xe2\x82\xac$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}" },
		/* Section 3.2.3: by UTF-16 code units, where the smiley is before the Hebrew letter
		 */
		{ "{\"\\u20ac\":\"Euro Sign\",\"\\r\":\"Carriage Return\",\"\\ufb33\":\"Hebrew\","
		  "\"1\":\"One\",\"\\ud83d\\ude00\":\"Emoji\",\"\\u0080\":\"Control\","
		  "\"\\u00f6\":\"Latin\"}",
			"{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\xc2\x80\":\"Control\","
			"\"\xc3\xb6\":\"Latin\",\"\xe2\x82\xac\":\"Euro Sign\","
			"\"\xf0\x9f\x98\x80\":\"Emoji\",\"\xef\xac\xb3\":\"Hebrew\"}" },
		{ "\"\\b\\t\\n\\f\\r\\u000b\\u001f\\u007f\"",
			"\"\\b\\t\\n\\f\\r\\u000b\\u001f\x7f\"" },
		{ "{\"ab\":1,\"a\":2,\"\":3}", "{\"\":3,\"a\":2,\"ab\":1}" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		check_form(rows[i][0], rows[i][1]);
}

static void test_refused(void)
{
	static const char *const rows[] = {
		"", "{", "[1,]", "{} {}", "1.5", "1e3", "0.0", "01", "9007199254740992",
		"-9007199254740992", "99999999999999999999", "nul", "\"\\ud800\"", "\"\xff\"",
		"{\"a\":1,\"a\":1}", "{\"a\":1,\"\\u0061\":2}", "{\"a\":{\"b\":1,\"b\":2}}",
		"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[0]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		own(buf) struct buf out = { .max = 4096 };
		struct err e = { 0 };

		check_that(card_canonicalize(rows[i], strlen(rows[i]), NULL, &out, &e) < 0, rows[i],
			__FILE__, __LINE__);
		CHECK(e.kind == ERR_SPEC && e.text[0]);
	}
}

/* Nothing grows beyond what it may. */
static void test_room(void)
{
	own(buf) struct buf out = { .max = 8 };
	struct err e = { 0 };

	CHECK(card_canonicalize("{\"a\":\"bcdef\"}", 13, NULL, &out, &e) < 0);
	CHECK(e.kind == ERR_SYS);
}

static void test_signed(void)
{
	static const char from[] =
		"{\"x-b\":{\"signatures\":1},\"signatures\":[],\"a\":{\"x-c\":1,\"signatures\":2},\"X-d\":3}";
	own(buf) struct buf out = { .max = 4096 };

	CHECK(card_canonicalize_signed(from, strlen(from), &out, NULL) == 0);
	CHECK_STR(buf_text(&out), "{\"X-d\":3,\"a\":{\"signatures\":2,\"x-c\":1}}");
}

int main(void)
{
	test_forms();
	test_refused();
	test_room();
	test_signed();
	return check_report();
}
