/* Envelopes: the protocol's vector, there and back, and what is none. */
#include <errno.h>

#include "base/base64.h"
#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "check.h"
#include "proof/sign/sign.h"

#define SIG                                                                                        \
	"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="

static struct sign_key make_key(uint8_t first)
{
	uint8_t seed[SIGN_SEED_SIZE] = { first };
	struct sign_key key;

	sign_derive_key(seed, &key);
	return key;
}

/* Is a signature over `signed_text` one of an envelope of that type and payload? */
static bool is_signed_as(const char *type, const char *payload, const char *signed_text)
{
	own(sign_key) struct sign_key key = make_key(1);
	struct sign_envelope x = { .type = type,
		.payload = (const uint8_t *)payload,
		.size = strlen(payload),
		.count = 1 };

	sign_bytes(&key, signed_text, strlen(signed_text), x.signatures[0].bytes);
	return sign_is_by(&x, &key.public);
}

/* What DSSE signs: payload and type, with their sizes before them. */
static void test_pae(void)
{
	static const char type[] = "http://example.com/HelloWorld";

	CHECK(is_signed_as(
		type, "hello world", "DSSEv1 29 http://example.com/HelloWorld 11 hello world"));
	CHECK(!is_signed_as(type, "hello world", "hello world"));
	CHECK(!is_signed_as(
		type, "hello world", "DSSEv1 29 http://example.com/HelloWorld 12 hello world"));
	CHECK(is_signed_as("", "", "DSSEv1 0  0 "));
}

/* The protocol's example: a signature of another kind, as long as ours, and by none of our keys. */
static void test_example(void)
{
	static const char text[] =
		"{\"payload\": \"aGVsbG8gd29ybGQ=\",\n"
		" \"payloadType\": \"http://example.com/HelloWorld\",\n"
		" \"signatures\": [{\"sig\": \"A3JqsQGtVsJ2O2xqrI5IcnXip5GToJ3F+FnZ+O88SjtR6rDAajabZK"
		"ciJTfUiHqJPcIAriEGAHTVeCUjW2JIZA==\"}]}\n";
	own(sign_key) struct sign_key key = make_key(1);
	own(arena) struct arena arena;
	struct sign_envelope x;

	arena_init(&arena, 10000);
	CHECK(sign_read_envelope(text, strlen(text), &arena, &x, NULL) == 0);
	CHECK_STR(x.type, "http://example.com/HelloWorld");
	CHECK(x.size == 11 && memcmp(x.payload, "hello world", 11) == 0);
	CHECK(x.count == 1 && x.signatures[0].bytes[0] == 3 && str_eq(x.signatures[0].key_id, ""));
	CHECK(!sign_is_by(&x, &key.public));
}

static void test_round_trip(void)
{
	static const char payload[] = "{\"a\":\"\xc3\xa9\\n\"}";
	own(sign_key) struct sign_key key = make_key(1), other = make_key(2);
	own(buf) struct buf out = { .max = 10000 };
	own(arena) struct arena arena;
	struct sign_envelope x;

	arena_init(&arena, 10000);
	sign_print_envelope(&key, payload, strlen(payload), &out);
	CHECK(!out.failed && strchr(out.data, '\n') == out.data + out.len - 1);
	CHECK(sign_read_envelope(out.data, out.len, &arena, &x, NULL) == 0);
	CHECK_STR(x.type, SIGN_PAYLOAD_TYPE);
	CHECK(x.size == strlen(payload) && memcmp(x.payload, payload, x.size) == 0);
	CHECK(x.count == 1 && str_eq(x.signatures[0].key_id, key.public.id));
	CHECK(sign_is_by(&x, &key.public) && !sign_is_by(&x, &other.public));
	/* The type is signed too, and the name of the key is a hint only. */
	x.signatures[0].key_id = other.public.id;
	CHECK(sign_is_by(&x, &key.public) && !sign_is_by(&x, &other.public));
	x.type = "application/vnd.in-toto+jsoN";
	CHECK(!sign_is_by(&x, &key.public));
}

/* An empty payload, and no room for the text. */
static void test_edges(void)
{
	own(sign_key) struct sign_key key = make_key(1);
	own(buf) struct buf out = { .max = 10000 }, small = { .max = 100 };
	own(arena) struct arena arena, tiny;
	struct sign_envelope x;
	struct err e;

	arena_init(&arena, 10000);
	arena_init(&tiny, 8);
	sign_print_envelope(&key, "", 0, &out);
	CHECK(sign_read_envelope(out.data, out.len, &arena, &x, NULL) == 0);
	CHECK(x.size == 0 && sign_is_by(&x, &key.public));
	CHECK(sign_read_envelope(out.data, out.len, &tiny, &x, &e) == -ENOMEM && e.text[0]);
	CHECK(!x.type && !x.count);
	sign_print_envelope(&key, "", 0, &small);
	CHECK(small.failed);
}

/* No change of a byte leaves an envelope that says something else and is signed. */
static void test_flips(void)
{
	static const char payload[] = "{\"run\":\"20261115-224501-1f2e3d4c\"}";
	own(sign_key) struct sign_key key = make_key(1);
	own(buf) struct buf out = { .max = 10000 };

	sign_print_envelope(&key, payload, strlen(payload), &out);
	for (size_t i = 0; i < out.len * 8; i++) {
		own(arena) struct arena arena;
		struct sign_envelope x;
		char bit = (char)(1 << i % 8);

		arena_init(&arena, 10000);
		out.data[i / 8] ^= bit;
		if (sign_read_envelope(out.data, out.len, &arena, &x, NULL) == 0 &&
			sign_is_by(&x, &key.public)) {
			CHECK(x.size == strlen(payload) && memcmp(x.payload, payload, x.size) == 0);
			CHECK_STR(x.type, SIGN_PAYLOAD_TYPE);
			/* What is left: the key's name, and white space behind the line. */
			CHECK(!str_eq(x.signatures[0].key_id, key.public.id) ||
				i / 8 == out.len - 1);
		}
		out.data[i / 8] ^= bit;
	}
	for (size_t n = 0; n < out.len - 1; n++) {
		own(arena) struct arena arena;
		struct sign_envelope x;

		arena_init(&arena, 10000);
		CHECK(sign_read_envelope(out.data, n, &arena, &x, NULL) == -EBADMSG);
	}
}

static int read_text(const char *text, size_t *ret_count)
{
	own(arena) struct arena arena;
	struct err e = { 0 };
	struct sign_envelope x;
	int r;

	arena_init(&arena, (size_t)1 << 20);
	r = sign_read_envelope(text, strlen(text), &arena, &x, &e);
	CHECK((r < 0) == (e.text[0] != '\0'));
	if (r == -EBADMSG)
		CHECK(str_starts(e.text, "this is no DSSE envelope: expected "));
	*ret_count = x.count;
	return r;
}

#define ENVELOPE(signatures)                                                                       \
	"{\"payloadType\":\"t\",\"payload\":\"YQ==\",\"signatures\":" signatures "}"

static void test_good(void)
{
	static const struct {
		const char *text;
		size_t count;
	} rows[] = {
		{ ENVELOPE("[{\"sig\":\"" SIG "\"}]"), 1 },
		{ ENVELOPE("[{\"sig\":\"" SIG "\"}]") "\n", 1 },
		{ ENVELOPE("[{\"keyid\":\"../../x\",\"sig\":\"" SIG "\"},{\"sig\":\"" SIG "\"}]"),
			2 },
		/* of another length: of another kind of key, which is not ours to judge */
		{ ENVELOPE("[{\"sig\":\"\"}]"), 0 },
		{ ENVELOPE("[{\"sig\":\"AAAA\"},{\"sig\":\"" SIG "\"}]"), 1 },
		{ ENVELOPE("[{\"sig\":\"AAAA" SIG "\"}]"), 0 },
		/* members that nobody knows yet */
		{ "{\"x\":[{}],\"payloadType\":\"t\",\"payload\":\"YQ\",\"signatures\":"
		  "[{\"cert\":\"x\",\"sig\":\"\"}],\"y\":null}",
			0 },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		size_t count = 99;

		if (read_text(rows[i].text, &count) < 0 || count != rows[i].count)
			printf("row %zu: %zu signatures\n", i, count);
		CHECK(read_text(rows[i].text, &count) == 0 && count == rows[i].count);
	}
}

static void test_bad(void)
{
	static const char *const bad[] = { "", "{", "{}", "[]", "null", "\"\"",
		"{\"payloadType\":\"t\",\"payload\":\"YQ==\"}",
		"{\"payloadType\":\"t\",\"signatures\":[{\"sig\":\"\"}]}",
		"{\"payload\":\"YQ==\",\"signatures\":[{\"sig\":\"\"}]}",
		/* twice: readers would differ about which one holds */
		"{\"payload\":\"Yg==\",\"payloadType\":\"t\",\"payload\":\"YQ==\",\"signatures\":"
		"[{\"sig\":\"\"}]}",
		"{\"payloadType\":\"t\",\"payloadType\":\"u\",\"payload\":\"YQ==\",\"signatures\":"
		"[{\"sig\":\"\"}]}",
		"{\"payloadType\":\"t\",\"payload\":\"YQ==\",\"signatures\":[{\"sig\":\"\"}],"
		"\"signatures\":[{\"sig\":\"\"}]}",
		"{\"payloadType\":\"t\",\"payload\":\"YQ==\",\"p\\u0061yload\":\"YQ==\","
		"\"signatures\":[{\"sig\":\"\"}]}",
		ENVELOPE("[{\"sig\":\"\",\"sig\":\"\"}]"),
		ENVELOPE("[{\"keyid\":\"\",\"sig\":\"\",\"keyid\":\"\"}]"),
		/* no base64 */
		"{\"payloadType\":\"t\",\"payload\":\"Y\",\"signatures\":[{\"sig\":\"\"}]}",
		"{\"payloadType\":\"t\",\"payload\":\"YR==\",\"signatures\":[{\"sig\":\"\"}]}",
		"{\"payloadType\":\"t\",\"payload\":\"YQ= =\",\"signatures\":[{\"sig\":\"\"}]}",
		"{\"payloadType\":\"t\",\"payload\":\"YQ==\\n\",\"signatures\":[{\"sig\":\"\"}]}",
		ENVELOPE("[{\"sig\":\"A\"}]"), ENVELOPE("[{\"sig\":\"+/-_\"}]"),
		/* other types, other shapes */
		"{\"payloadType\":1,\"payload\":\"YQ==\",\"signatures\":[{\"sig\":\"\"}]}",
		"{\"payloadType\":\"t\",\"payload\":null,\"signatures\":[{\"sig\":\"\"}]}",
		ENVELOPE("[]"), ENVELOPE("{}"), ENVELOPE("null"), ENVELOPE("[\"" SIG "\"]"),
		ENVELOPE("[{}]"), ENVELOPE("[{\"keyid\":\"\"}]"), ENVELOPE("[{\"sig\":null}]"),
		ENVELOPE("[{\"keyid\":1,\"sig\":\"\"}]"), ENVELOPE("[{\"sig\":\"\"}]") "x",
		ENVELOPE("[{\"sig\":\"\"}]") "{}" };
	size_t count;

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		if (read_text(bad[i], &count) != -EBADMSG)
			printf("read: %s\n", bad[i]);
		CHECK(read_text(bad[i], &count) == -EBADMSG && count == 0);
	}
}

/* `count` times the same in the place that takes lists. */
static int read_many(const char *before, const char *each, const char *after, size_t count)
{
	own(buf) struct buf text = { .max = (size_t)1 << 20 };
	size_t signatures;

	buf_puts(&text, before);
	for (size_t i = 0; i < count; i++)
		buf_puts(&text, each);
	buf_puts(&text, after);
	return read_text(buf_text(&text), &signatures);
}

static void test_many(void)
{
	static const char head[] =
		"{\"payloadType\":\"t\",\"payload\":\"YQ==\",\"signatures\":[{\"sig\":\"\"}";

	CHECK(read_many(head, ",{\"sig\":\"" SIG "\"}", "]}", SIGN_MOST_SIGNATURES - 1) == 0);
	CHECK(read_many(head, ",{\"sig\":\"" SIG "\"}", "]}", SIGN_MOST_SIGNATURES) == -EBADMSG);
	CHECK(read_many("{\"x\":", "[", "", 100000) == -EBADMSG);
	CHECK(read_many("{\"x\":", "{\"a\":", "", 50000) == -EBADMSG);
}

int main(void)
{
	test_pae();
	test_example();
	test_round_trip();
	test_edges();
	test_flips();
	test_good();
	test_bad();
	test_many();
	return check_report();
}
