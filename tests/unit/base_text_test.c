/* utf8, str and json. */
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/count.h"
#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"
#include "check.h"
#include "is_json.h"

/* --- utf8 --- */

/* Encodes without looking, so that what must not be encoded can be too. */
static size_t encode(uint32_t c, size_t width, char ret[static 4])
{
	static const unsigned leads[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	if (width == 1) {
		ret[0] = (char)c;
		return 1;
	}
	for (size_t i = width - 1; i > 0; i--, c >>= 6)
		ret[i] = (char)(0x80 | (c & 0x3f));
	ret[0] = (char)(leads[width] | c);
	return width;
}

static void test_utf8_boundaries(void)
{
	static const struct {
		uint32_t c;
		size_t width;
	} good[] = { { 0, 1 }, { 0x7f, 1 }, { 0x80, 2 }, { 0x7ff, 2 }, { 0x800, 3 }, { 0xd7ff, 3 },
		{ 0xe000, 3 }, { 0xfffd, 3 }, { 0xfffe, 3 }, { 0xffff, 3 }, { 0x10000, 4 },
		{ 0x10ffff, 4 } };
	static const struct {
		uint32_t c;
		size_t width;
	} bad[] = { { 0, 2 }, { 0x2f, 2 }, { 0x7f, 2 }, { 0, 3 }, { 0x7f, 3 }, { 0x80, 3 },
		{ 0x7ff, 3 }, { 0, 4 }, { 0x7ff, 4 }, { 0xffff, 4 }, { 0xd800, 3 }, { 0xdbff, 3 },
		{ 0xdc00, 3 }, { 0xdfff, 3 }, { 0x110000, 4 }, { 0x13ffff, 4 }, { 0x1fffff, 4 } };
	char bytes[4];

	for (size_t i = 0; i < COUNT_OF(good); i++) {
		uint32_t c = 12345;
		size_t n = encode(good[i].c, good[i].width, bytes);

		CHECK(utf8_decode(bytes, n, &c) == n && c == good[i].c);
		for (size_t cut = 0; cut < n; cut++) {
			c = 12345;
			CHECK(utf8_decode(bytes, cut, &c) == 0 && c == 12345);
		}
	}
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		uint32_t c = 12345;
		size_t n = encode(bad[i].c, bad[i].width, bytes);

		CHECK(utf8_decode(bytes, n, &c) == 0 && c == 12345);
	}
}

/* Every code point there is, and nothing else, survives. */
static void test_utf8_all(void)
{
	uint32_t wrong = 0;

	for (uint32_t c = 0; c <= 0x10ffff; c++) {
		size_t width = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
		bool is_surrogate = c >= 0xd800 && c <= 0xdfff;
		char bytes[4];
		uint32_t got = ~c;
		size_t n = utf8_decode(bytes, encode(c, width, bytes), &got);

		wrong += is_surrogate ? n != 0 : n != width || got != c;
	}
	CHECK(wrong == 0);
}

static void test_utf8_bytes(void)
{
	uint32_t c = 0;

	for (unsigned lead = 0x80; lead <= 0xff; lead++) {
		const char alone[] = { (char)lead, 'a', 'a', 'a' };

		CHECK(utf8_decode(alone, 4, &c) == 0);
	}
	CHECK(utf8_decode("\xe2\x82\xac tail", 8, &c) == 3 && c == 0x20ac);
	CHECK(utf8_decode("\xf8\x88\x80\x80\x80", 5, &c) == 0); /* five bytes were once allowed */
	CHECK(utf8_decode("\xe2\xac", 2, &c) == 0);
	CHECK(utf8_decode("\xf0\x90\x80\x41", 4, &c) == 0);
}

static void test_utf8_hidden(void)
{
	static const uint32_t hidden[] = { 0, 0x09, 0x0a, 0x0d, 0x1b, 0x1f, 0x7f, 0x80, 0x85, 0x9b,
		0x9f, 0xad, 0x034f, 0x061c, 0x115f, 0x180e, 0x200b, 0x200c, 0x200d, 0x200e, 0x200f,
		0x2028, 0x2029, 0x202a, 0x202e, 0x2060, 0x2066, 0x2069, 0x3164, 0xfeff, 0xffa0,
		0xfff9, 0xfffb, 0xe0001, 0xe007f, 0xe0100,
		/* the rest of Unicode's Default_Ignorable_Code_Point */
		0x1bca0, 0x1bca3, 0x1d173, 0x1d17a };
	static const uint32_t shown[] = { ' ', '!', '~', 0xa0, 0xac, 0xae, 0xe4, 0x0300, 0x05d0,
		0x200a, 0x2010, 0x2027, 0x202f, 0x20ac, 0x4e2d, 0xfdff, 0xfe10, 0xfffd, 0x1f98a,
		0x10ffff };

	for (size_t i = 0; i < COUNT_OF(hidden); i++) {
		char what[32];

		snprintf(what, sizeof(what), "U+%04" PRIX32 " is hidden", hidden[i]);
		check_that(utf8_is_hidden(hidden[i]), what, __FILE__, __LINE__);
	}
	for (size_t i = 0; i < COUNT_OF(shown); i++) {
		char what[32];

		snprintf(what, sizeof(what), "U+%04" PRIX32 " is shown", shown[i]);
		check_that(!utf8_is_hidden(shown[i]), what, __FILE__, __LINE__);
	}
}

/* --- str --- */

static void test_str_simple(void)
{
	CHECK(str_eq("", "") && str_eq("a", "a") && !str_eq("a", "A") && !str_eq("a", "ab"));
	CHECK(str_starts("abc", "") && str_starts("abc", "abc") && !str_starts("ab", "abc"));
	CHECK(str_ends("abc", "") && str_ends("abc", "bc") && !str_ends("bc", "abc"));
	CHECK(!str_ends("abc", "b") && str_ends("", ""));
	CHECK(str_is_digit('0') && str_is_digit('9') && !str_is_digit('/') && !str_is_digit(':'));
	CHECK(str_is_letter('a') && str_is_letter('Z') && !str_is_letter('[') &&
		!str_is_letter('\xe4'));
	CHECK(str_lower('A') == 'a' && str_lower('Z') == 'z' && str_lower('[') == '[' &&
		str_lower('\xc4') == '\xc4');
}

static void test_str_path_within(void)
{
	static const struct {
		const char *inner, *outer;
		bool is_within;
	} rows[] = {
		{ "/a/b", "/a", true },
		{ "/a", "/a", true },
		{ "/ab", "/a", false },
		{ "/a", "/a/b", false },
		{ "/a", "/", true },
		{ "/", "/", true },
		{ "/", "/a", false },
		{ "a", "/", false },
		{ "~/x", "~", true },
		{ "~", "/", false },
		{ "~x", "~", false },
		{ "$PROJECT/x", "$PROJECT", true },
		{ "$PROJECTX", "$PROJECT", false },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		check_that(str_path_within(rows[i].inner, rows[i].outer) == rows[i].is_within,
			rows[i].inner, __FILE__, __LINE__);
}

static void test_str_distance(void)
{
	static const char *const words[] = { "", "a", "b", "ab", "ba", "memory", "memroy", "mmory",
		"memoryy", "Memory", "network", "netowrk", "limits", "x", "kitten", "sitting",
		"read_only", "readonly" };
	char sixty_three[64], sixty_four[65];

	for (size_t i = 0; i < COUNT_OF(words); i++) {
		CHECK(str_distance(words[i], words[i]) == 0);
		for (size_t j = 0; j < COUNT_OF(words); j++)
			CHECK(str_distance(words[i], words[j]) == str_distance(words[j], words[i]));
	}
	CHECK(str_distance("", "abc") == 3);
	CHECK(str_distance("memory", "memroy") == 1); /* swapped */
	CHECK(str_distance("ab", "ba") == 1);
	CHECK(str_distance("memory", "mmory") == 1);   /* dropped */
	CHECK(str_distance("memory", "memoryy") == 1); /* added */
	CHECK(str_distance("memory", "memoxy") == 1);  /* changed */
	CHECK(str_distance("memory", "MEMORY") == 0);
	CHECK(str_distance("kitten", "sitting") == 3);
	memset(sixty_three, 'x', 63);
	memset(sixty_four, 'x', 64);
	sixty_three[63] = sixty_four[64] = '\0';
	CHECK(str_distance(sixty_three, "x") == 62);
	CHECK(str_distance("x", sixty_three) == 62);
	CHECK(str_distance(sixty_four, "x") == UINT_MAX);
	CHECK(str_distance("x", sixty_four) == UINT_MAX);
	CHECK(str_distance(sixty_four, sixty_four) == UINT_MAX);
}

static void hides(const char *said, const char *given, size_t size, const char *wanted)
{
	char text[128];

	snprintf(text, sizeof(text), "%s", said);
	str_hide_value(text, size ? size : sizeof(text), given);
	CHECK_STR(text, wanted);
}

static void test_str_hide_value(void)
{
	hides("no option '--a=key'", "--a=key", 0, "no option '--a=…'");
	hides("'N=key' is bad: write N=key:443", "N=key", 0, "'N=…' is bad: write N=…:443");
	hides("'N=ke…' is longer", "N=key", 0, "'N=……' is longer");
	hides("'N=key' is bad", "--env=N=key", 0, "'N=…' is bad");
	hides("'N=key' is bad", "-eN=key", 0, "'N=…' is bad");
	hides("'N=a=b' is bad", "N=a=b", 0, "'N=…' is bad");
	hides("=key", "=key", 0, "=…");
	hides("N=k", "N=k", 4, "N=");
	hides("'N=key' is bad", "N=", 0, "'N=key' is bad");
	hides("write NAME=VALUE", "N=key", 0, "write NAME=VALUE");
	hides("key", "key", 0, "key");
	hides("", "N=key", 0, "");
}

static void test_str_nearest(void)
{
	static const char *const keys[] = { "memory", "cpu", "pids", "disk", "time", "output",
		"files" };
	static const char *const parts[] = { "from", "to", "mode" };
	size_t n = COUNT_OF(keys);

	CHECK_STR(str_nearest("memroy", keys, n), "memory");
	CHECK_STR(str_nearest("Memory", keys, n), "memory");
	CHECK_STR(str_nearest("pid", keys, n), "pids");
	CHECK_STR(str_nearest("cpus", keys, n), "cpu");
	CHECK_STR(str_nearest("file", keys, n), "files");
	CHECK_STR(str_nearest("form", parts, 3), "from");
	/* A third of a word may be slips; more is another word. */
	CHECK(!str_nearest("banana", keys, n));
	CHECK(!str_nearest("xyz", keys, n));
	CHECK(!str_nearest("", keys, n));
	CHECK(!str_nearest("x", (const char *const[]){ "a" }, 1));
	CHECK(!str_nearest("foo", parts, 3));
	CHECK(!str_nearest("us", keys, n));
	CHECK(!str_nearest("memory", keys, 0));
}

/* --- json --- */

static void test_json_strings(void)
{
	static const struct {
		const char *text, *wanted;
	} rows[] = {
		{ "", "\"\"" },
		{ "plain", "\"plain\"" },
		{ "say \"hi\" \\o/", "\"say \\\"hi\\\" \\\\o/\"" },
		{ "a\nb\tc", "\"a\\nb\\tc\"" },
		{ "\x01\x1b\x1f\r", "\"\\u0001\\u001b\\u001f\\u000d\"" },
		{ "\x7f", "\"\\u007f\"" },
		{ "Gr\xc3\xbc\xc3\x9f", "\"Gr\xc3\xbc\xc3\x9f\"" },
		{ "\xf0\x9f\xa6\x8a", "\"\xf0\x9f\xa6\x8a\"" },
		{ "\xff", "\"\\udcff\"" },
		{ "\xc0\xaf", "\"\\udcc0\\udcaf\"" },
		{ "\xed\xa0\x80", "\"\\udced\\udca0\\udc80\"" },
		{ "cut\xe2\x82", "\"cut\\udce2\\udc82\"" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct buf b = { .max = 1000 };
		struct json j;

		json_init(&j, &b, 0);
		json_text(&j, NULL, rows[i].text);
		CHECK_STR(buf_text(&b), rows[i].wanted);
		CHECK(is_json(buf_text(&b)));
		buf_done(&b);
	}
}

static void print_sample(struct buf *out, int indent)
{
	struct json j;

	json_init(&j, out, indent);
	json_open_map(&j, NULL);
	json_text(&j, "text \"key\"", "x");
	json_text(&j, "null", NULL);
	json_bool(&j, "yes", true);
	json_bool(&j, "no", false);
	json_int(&j, "least", INT64_MIN);
	json_int(&j, "most", INT64_MAX);
	json_raw(&j, "raw", "1.5");
	json_open_map(&j, "empty map");
	json_close_map(&j);
	json_open_list(&j, "empty list");
	json_close_list(&j);
	json_open_list(&j, "list");
	json_int(&j, NULL, 1);
	json_open_list(&j, NULL);
	json_text(&j, NULL, "in");
	json_close_list(&j);
	json_open_map(&j, NULL);
	json_int(&j, "after", 0);
	json_close_map(&j);
	json_close_list(&j);
	json_close_map(&j);
}

static void test_json_shape(void)
{
	struct buf compact = { .max = 1000 }, indented = { .max = 1000 };

	print_sample(&compact, 0);
	CHECK_STR(buf_text(&compact),
		"{\"text \\\"key\\\"\":\"x\",\"null\":null,\"yes\":true,\"no\":false,"
		"\"least\":-9223372036854775808,\"most\":9223372036854775807,\"raw\":1.5,"
		"\"empty map\":{},\"empty list\":[],\"list\":[1,[\"in\"],{\"after\":0}]}");
	CHECK(is_json(buf_text(&compact)));
	print_sample(&indented, 2);
	CHECK(is_json(buf_text(&indented)));
	CHECK(strstr(buf_text(&indented), "{\n  \"text \\\"key\\\"\": \"x\",\n  \"null\": null,"));
	CHECK(strstr(buf_text(&indented), "\"empty map\": {},\n  \"empty list\": [],\n"));
	CHECK(strstr(buf_text(&indented), "    [\n      \"in\"\n    ],\n"));
	buf_done(&compact);
	buf_done(&indented);
}

static void test_json_depth(void)
{
	struct buf b = { .max = 1000 };
	struct json j;

	json_init(&j, &b, 0);
	for (int i = 0; i < 31; i++)
		json_open_list(&j, NULL);
	json_int(&j, NULL, 7);
	for (int i = 0; i < 31; i++)
		json_close_list(&j);
	CHECK(j.depth == 0 && is_json(buf_text(&b)) && b.len == 63);
	buf_done(&b);
	buf_init(&b, 4);
	json_init(&j, &b, 2);
	json_open_map(&j, NULL);
	json_text(&j, "key", "value");
	json_close_map(&j);
	CHECK(b.failed);
	buf_done(&b);
}

/* The judge itself: it must say no, too. */
static void test_is_json(void)
{
	CHECK(is_json("{}") && is_json("[1, -2.5, \"a\\u001f\"]\n") && is_json("true"));
	CHECK(!is_json("") && !is_json("{") && !is_json("[1,]") && !is_json("{\"a\"}"));
	CHECK(!is_json("01") && !is_json("\"a") && !is_json("\"\n\"") && !is_json("{} {}"));
	CHECK(!is_json("\"\xff\"") && !is_json("[1 2]") && !is_json("{\"a\":1 \"b\":2}"));
}

/* --- times --- */

static void test_times(void)
{
	static const char *const bad[] = { "", "2026", "2026-02-29T00:00:00Z",
		"2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z",
		"2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:60Z",
		"2026-01-01 00:00:00Z", "2026-01-01T00:00:00", "2026-01-01T00:00:00.Z",
		"2026-01-01T00:00:00ZZ", "2026-01-01T00:00:00+00:00", "1969-12-31T23:59:59Z",
		"2026-1-1T00:00:00Z", "2026-01-01T00:00:00.1", "+026-01-01T00:00:00Z" };
	char text[CLOCK_TEXT_SIZE];
	struct timespec t;

	/* Days of all years, each at another second. */
	for (time_t day = 0; day < 2932897; day += 11) {
		struct timespec then = { .tv_sec = day * 86400 + day % 86400,
			.tv_nsec = (day % 1000000) * 1000 };

		clock_print(&then, text);
		if (clock_parse(text, &t) < 0 || t.tv_sec != then.tv_sec ||
			t.tv_nsec != then.tv_nsec) {
			CHECK_STR(text, "the same again");
			break;
		}
	}
	CHECK(clock_parse("2026-11-16T11:22:33Z", &t) == 0 && t.tv_sec == 1794828153);
	CHECK(clock_parse("2024-02-29T23:59:59.5Z", &t) == 0 && t.tv_nsec == 500000000);
	CHECK(clock_parse("2024-02-29T23:59:59.0000000019Z", &t) == 0 && t.tv_nsec == 1);
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		CHECK(clock_parse(bad[i], &t) < 0);
}

int main(void)
{
	test_utf8_boundaries();
	test_utf8_all();
	test_utf8_bytes();
	test_utf8_hidden();
	test_str_simple();
	test_str_path_within();
	test_str_distance();
	test_str_hide_value();
	test_str_nearest();
	test_json_strings();
	test_json_shape();
	test_json_depth();
	test_is_json();
	test_times();
	return check_report();
}
