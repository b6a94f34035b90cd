/* One event: what is read of a line, said of it, and passed on to other programs. */
#include "proof/log/log_event.h"

#include "base/own.h"
#include "base/sha256.h"
#include "base/str.h"
#include "check.h"
#include "is_json.h"

#define PREV "\"prev\":\"0000000000000000000000000000000000000000000000000000000000000000\""

static struct log_event event;
static struct buf text = { .max = 1 << 20 };
static const struct log_origin from = { "my host", "1.2.3", "20260102-030405-0a0b0c0d" };

static const char *wrong(const char *line)
{
	static struct err e;

	e = (struct err){ 0 };
	return log_event_read(&event, line, strlen(line), &e) < 0 ? e.text : "";
}

static const char *said(const char *line)
{
	CHECK_STR(wrong(line), "");
	text.len = 0;
	buf_add(&text, "", 0);
	log_print_sentence(&event, &text);
	return buf_text(&text);
}

static void test_members(void)
{
	const struct log_member *m;

	CHECK_STR(
		wrong("{\"type\":\"x\",\"n\":null,\"t\":true,\"i\":-5,\"big\":99999999999999999999,"
		      "\"f\":1.5, \"s\" : \"a\\u0062\\udcff\", \"l\":[1,{\"a\":\"b\"}],\"run\":\"r\"}"),
		"");
	CHECK(event.count == 9);
	CHECK_STR(event.type, "x");
	CHECK_STR(event.run, "r");
	CHECK_STR(event.session, "");
	CHECK(!log_find(&event, "n"));
	CHECK(log_find(&event, "t")->kind == LOG_BOOL && log_find(&event, "t")->number == 1);
	CHECK(log_find_number(&event, "i") == -5);
	CHECK(log_find(&event, "big")->kind == LOG_OTHER &&
		log_find(&event, "f")->kind == LOG_OTHER);
	CHECK_STR(log_find_text(&event, "s"), "ab\xff");
	m = log_find(&event, "l");
	CHECK(m->kind == LOG_OTHER && m->size == strlen("[1,{\"a\":\"b\"}]"));
	CHECK(!m->is_taken && log_take(&event, "l") == m && m->is_taken);
	CHECK(!log_take(&event, "none") && log_find_number(&event, "none") == 0);
}

static void test_wrong(void)
{
	own(buf) struct buf many = { .max = 1 << 20 };

	CHECK_STR(wrong(""), "it is not an event: expected a map");
	CHECK_STR(wrong("[]"), "it is not an event: expected a map");
	CHECK_STR(wrong("{}"), "it is not an event: expected a type");
	CHECK_STR(wrong("{\"type\":1}"), "it is not an event: expected a type");
	CHECK_STR(wrong("{\"type\":\"\"}"), "it is not an event: expected a type");
	CHECK_STR(wrong("{\"type\":\"x\"} x"), "it is not an event: expected the end");
	CHECK_STR(wrong("{\"type\":\"x\xff\"}"), "it is not an event: expected UTF-8");
	CHECK_STR(wrong("{\"type\":\"x\",\"a\":tru}"), "it is not an event: expected a value");
	buf_puts(&many, "{\"type\":\"x\"");
	for (int i = 0; i < LOG_MOST_MEMBERS; i++)
		buf_printf(&many, ",\"%d\":0", i);
	buf_putc(&many, '}');
	CHECK_STR(wrong(buf_text(&many)), "it is not an event: expected fewer members");
}

static void test_sentences(void)
{
	CHECK_STR(said("{\"type\":\"run_start\",\"command\":\"npm\",\"project\":\"/p\",\"level\":"
		       "\"hardened\",\"engine\":\"native\",\"again\":null}"),
		"npm in /p: hardened, engine native");
	CHECK_STR(said("{\"type\":\"run_start\"}"), "");
	CHECK_STR(said("{\"type\":\"preflight\",\"passed\":false,\"by\":\"shell\"}"),
		"the preflight failed, done by shell");
	CHECK_STR(said("{\"type\":\"guarantee\",\"name\":\"fs.root\",\"holds\":true,\"seen\":\"/\","
		       "\"vantage\":\"outside\"}"),
		"fs.root holds: / (outside)");
	CHECK_STR(
		said("{\"type\":\"run_end\",\"outcome\":\"signaled\",\"signal\":9,\"error\":null}"),
		"signaled by signal 9 (SIGKILL)");
	CHECK_STR(said("{\"type\":\"net_allowed\",\"address\":\"192.0.2.7\",\"bytes_out\":1,"
		       "\"bytes_in\":2,\"times\":3,\"text\":\"is allowed\"}"),
		"is allowed (192.0.2.7, 1 bytes out, 2 in, 3 times)");
	CHECK_STR(said("{\"type\":\"name_denied\",\"times\":1,\"text\":\"x is denied\"}"),
		"x is denied");
	CHECK_STR(said("{\"seq\":1,\"type\":\"of_tomorrow\",\"a\":[1],\"b\":\"c\"}"), "a [1], b c");
	CHECK_STR(said("{\"type\":\"net_denied\",\"cut\":true}"), "cut true");
	CHECK(log_is_denial(&event));
	CHECK_STR(said("{\"type\":\"net_failed\",\"text\":\"t\"}"), "t");
	CHECK(!log_is_denial(&event));
	for (size_t i = 0; log_type_name(i); i++) {
		char line[128];

		snprintf(line, sizeof(line), "{\"type\":\"%s\"}", log_type_name(i));
		CHECK(strlen(said(line)) < 64);
	}
}

static bool is_same_row(const char *a, const char *b)
{
	uint8_t one[SHA256_SIZE], other[SHA256_SIZE];

	CHECK_STR(wrong(a), "");
	CHECK(log_event_row(&event, one));
	CHECK_STR(wrong(b), "");
	return log_event_row(&event, other) && memcmp(one, other, SHA256_SIZE) == 0;
}

static void test_rows(void)
{
	uint8_t row[SHA256_SIZE];

	CHECK(is_same_row(
		"{\"seq\":1,\"time\":\"a\",\"type\":\"x\",\"name\":\"n\",\"times\":1," PREV "}",
		"{\"seq\":9,\"time\":\"b\",\"type\":\"x\",\"name\":\"n\",\"times\":7,\"prev\":\"1\"}"));
	CHECK(!is_same_row("{\"type\":\"x\",\"name\":\"n\",\"times\":1}",
		"{\"type\":\"x\",\"name\":\"m\",\"times\":2}"));
	CHECK(!is_same_row("{\"type\":\"x\",\"run\":\"1\",\"times\":1}",
		"{\"type\":\"x\",\"run\":\"2\",\"times\":2}"));
	CHECK(!is_same_row("{\"type\":\"x\",\"a\":\"b\",\"c\":\"d\",\"times\":1}",
		"{\"type\":\"x\",\"a\":\"d\",\"c\":\"b\",\"times\":1}"));
	CHECK_STR(wrong("{\"type\":\"x\"}"), "");
	CHECK(!log_event_row(&event, row));
}

static const char *harmless(const char *bytes, bool is_strict)
{
	text.len = 0;
	buf_add(&text, "", 0);
	log_add_harmless(&text, bytes, strlen(bytes), is_strict);
	return buf_text(&text);
}

static void test_harmless(void)
{
	CHECK_STR(harmless("{\"a\":\n\t\"b\"}\r\n", false), "{\"a\":\"b\"}");
	CHECK_STR(harmless("\"\x7f\xe2\x80\xae\xf3\xa0\x81\x81\xc3\xa9\"", false),
		"\"\\u007f\\u202e\\udb40\\udc41\xc3\xa9\"");
	CHECK_STR(harmless("\"\\udcff \\ud83d\\ude00 \\\\udcff \\n\"", false),
		"\"\\udcff \\ud83d\\ude00 \\\\udcff \\n\"");
	CHECK_STR(harmless("\"\\udcff \\ud83d\\ude00 \\\\udcff \\n\"", true),
		"\"\\ufffd \\ud83d\\ude00 \\\\udcff \\n\"");
	CHECK_STR(harmless("\"\\", true), "\"\\");
	CHECK_STR(harmless("\"\\u00", true), "\"\\u00");
}

#define DENIED                                                                                     \
	"{\"seq\":7,\"time\":\"2026-01-02T03:04:05.678901Z\",\"type\":\"net_denied\",\"run\":"     \
	"\"20260102-030405-0a0b0c0d\",\"session\":null,\"name\":\"a.example\",\"port\":22,"        \
	"\"protocol\":\"tcp\",\"reason\":\"name\",\"times\":2,\"text\":\"a.example:22 is not in "  \
	"network.allow\"," PREV "}"

static void test_cloudevent(void)
{
	CHECK_STR(wrong(DENIED), "");
	text.len = 0;
	log_print_cloudevent(&event, &from, &text);
	CHECK_STR(buf_text(&text),
		"{\"specversion\":\"1.0\",\"id\":\"20260102-030405-0a0b0c0d/7\",\"source\":"
		"\"//my%20host/bawn\",\"type\":\"bawn.net_denied.v1\",\"subject\":"
		"\"20260102-030405-0a0b0c0d\",\"time\":\"2026-01-02T03:04:05.678901000Z\","
		"\"datacontenttype\":\"application/json\",\"data\":" DENIED "}\n");
}

static void test_ocsf(void)
{
	char digest[SHA256_HEX_SIZE];
	own(buf) struct buf wanted = { .max = 1 << 20 };

	sha256_hex(DENIED, strlen(DENIED), digest);
	buf_printf(&wanted,
		"{\"class_uid\":4001,\"category_uid\":4,\"activity_id\":5,\"type_uid\":400105,"
		"\"severity_id\":2,\"time\":1767323045678,\"status_id\":2,\"action_id\":2,"
		"\"disposition_id\":2,\"count\":2,\"message\":\"a.example:22 is not in "
		"network.allow (2 times)\",\"raw_data_hash\":{\"algorithm_id\":3,\"algorithm\":"
		"\"SHA-256\",\"value\":\"%s\"},\"metadata\":{\"version\":\"1.8.0\",\"product\":{"
		"\"name\":\"bawn\",\"vendor_name\":\"bawn\",\"version\":\"1.2.3\"},\"uid\":"
		"\"20260102-030405-0a0b0c0d/7\",\"sequence\":7,\"event_code\":\"net_denied\","
		"\"original_time\":\"2026-01-02T03:04:05.678901Z\",\"correlation_uid\":"
		"\"20260102-030405-0a0b0c0d\",\"profiles\":[\"host\",\"security_control\"]},"
		"\"device\":{\"hostname\":\"my host\",\"type_id\":0,\"os\":{\"name\":\"Linux\","
		"\"type_id\":200}},\"dst_endpoint\":{\"hostname\":\"a.example\",\"port\":22},"
		"\"src_endpoint\":{\"uid\":\"20260102-030405-0a0b0c0d\"},\"connection_info\":{"
		"\"direction_id\":2,\"protocol_name\":\"tcp\",\"protocol_num\":6},\"status_code\":"
		"\"name\",\"unmapped\":{" PREV "}}\n",
		digest);
	CHECK_STR(wrong(DENIED), "");
	text.len = 0;
	log_print_ocsf(&event, &from, &text);
	CHECK_STR(buf_text(&text), buf_text(&wanted));
}

int main(void)
{
	test_members();
	test_wrong();
	test_sentences();
	test_rows();
	test_harmless();
	test_cloudevent();
	test_ocsf();
	buf_done(&text);
	return check_report();
}
