/* What the vault makes of requests and answers, however they are cut. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "vault/vault_http.h"

#define KEY      "abcabcabd-0123"
#define STARS    "**************"
#define ROOM     (1 << 17)
#define SPAN(s)  ((struct gate_span){ (s), strlen(s) })
#define TO       " HTTP/1.1\r\nHost: bawn-host\r\n"
#define ANSWERED "HTTP/1.1 200 OK\r\n"

static struct vault_secret secrets[] = {
	{ .name = "one",
		.host = "one.example",
		.port = 443,
		.header = "x-key",
		.scheme = "",
		.key = { KEY, sizeof(KEY) - 1 } },
	{ .name = "two",
		.host = "two.example",
		.port = 8443,
		.header = "authorization",
		.scheme = "Bearer",
		.key = { KEY, sizeof(KEY) - 1 } },
};

static char room[ROOM + 1];

/* How much had gone on after each step of the answer that was last passed on. */
static struct {
	size_t count, sizes[4096];
} trace;

/* --- requests --- */

static enum vault_verdict read_request(
	const char *text, struct vault_request *ret, struct vault_refusal *no)
{
	struct vault_text out = { room, 0, ROOM, false };
	struct gate_http h;
	enum vault_verdict r;

	gate_http_init(&h, WIRE_HOST_NAME, WIRE_VAULT_PORT);
	r = vault_read_request(&h, SPAN(text), secrets, 2, ret, &out, no);
	room[out.n] = '\0';
	return r;
}

#define ONE "host: one.example\r\naccept-encoding: identity\r\nx-key: " KEY "\r\n"
#define TWO                                                                                        \
	"host: two.example:8443\r\naccept-encoding: identity\r\nauthorization: Bearer " KEY "\r\n"

static void test_requests(void)
{
	static const struct {
		const char *text, *wanted;
	} rows[] = {
		{ "GET /one/a?b" TO "\r\n", "GET /a?b HTTP/1.1\r\n" ONE "\r\n" },
		{ "GET /one" TO "\r\n", "GET / HTTP/1.1\r\n" ONE "\r\n" },
		{ "GET /one?q" TO "\r\n", "GET /?q HTTP/1.1\r\n" ONE "\r\n" },
		{ "GET http://bawn-host/two//x/../y" TO "\r\n",
			"GET //x/../y HTTP/1.1\r\n" TWO "\r\n" },
		{ "POST /two/" TO "Content-Length: 3\r\nA:  b \r\n\r\nabc",
			"POST / HTTP/1.1\r\n" TWO "Content-Length: 3\r\nA: b\r\n\r\n" },
		/* The agent's own, under every name it may have. */
		{ "GET /one/" TO "X-KEY: a\r\nx_key: b\r\nAuthorization: c\r\nX-Api-Key: d\r\n"
		  "x-goog-api-key: e\r\nProxy-Authorization: f\r\nproxy_x: g\r\n\r\n",
			"GET / HTTP/1.1\r\n" ONE "\r\n" },
		/* What is between neighbours. */
		{ "GET /one/" TO
		  "Connection: X-A, close\r\nX-A: 1\r\nx-b: 2\r\nTE: 3\r\nKeep-Alive: 4\r\n"
		  "Accept-Encoding: br\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n",
			"GET / HTTP/1.1\r\n" ONE "x-b: 2\r\n\r\n" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct vault_request request;
		struct vault_refusal no = { 0 };

		check_that(read_request(rows[i].text, &request, &no) == VAULT_GOOD, rows[i].text,
			__FILE__, __LINE__);
		CHECK_STR(room, rows[i].wanted);
	}
}

static void test_refusals(void)
{
	static const struct {
		const char *text;
		enum wire_reason reason;
		const char *other;
	} rows[] = {
		{ "GET /three/" TO "\r\n", WIRE_BECAUSE_NO_SECRET, "three" },
		{ "GET /ONE/" TO "\r\n", WIRE_BECAUSE_NO_SECRET, "ONE" },
		{ "GET /one%2f" TO "\r\n", WIRE_BECAUSE_NO_SECRET, "one%2f" },
		{ "GET /" TO "\r\n", WIRE_BECAUSE_NO_SECRET, "" },
		{ "OPTIONS *" TO "\r\n", WIRE_BECAUSE_NO_SECRET, "" },
		{ "GET /one/ HTTP/1.0\r\nHost: bawn-host\r\n\r\n", WIRE_BECAUSE_BAD_HTTP,
			"secrets are used by HTTP/1.1" },
		{ "TRACE /one/" TO "\r\n", WIRE_BECAUSE_BAD_HTTP,
			"TRACE has everything sent back" },
		{ "GET /one/ HTTP/1.1\r\nHost: one.example\r\n\r\n", WIRE_BECAUSE_OTHER_HOST,
			"one.example" },
		{ "GET /one/ HTTP/1.1\r\n\r\n", WIRE_BECAUSE_NO_HOST, "" },
		{ "GET /one/" TO "Upgrade: websocket\r\nConnection: upgrade\r\n\r\n",
			WIRE_BECAUSE_BAD_HTTP,
			"it asks for a websocket, which no key is added to" },
		{ "POST /one/" TO "Content-Length: 3\r\nContent_Length: 5\r\n\r\nabc",
			WIRE_BECAUSE_BAD_HTTP,
			"it says in a field with '_' for '-' where its body ends" },
		{ "POST /one/" TO "transfer_Encoding: chunked\r\n\r\n", WIRE_BECAUSE_BAD_HTTP,
			"it says in a field with '_' for '-' where its body ends" },
		{ "\x16\x03\x01", WIRE_BECAUSE_NOT_HTTP, "" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct vault_request request;
		struct vault_refusal no = { 0 };

		check_that(read_request(rows[i].text, &request, &no) == VAULT_BAD, rows[i].text,
			__FILE__, __LINE__);
		check_that(no.reason == rows[i].reason, rows[i].text, __FILE__, __LINE__);
		CHECK_STR(no.other, rows[i].other);
	}
}

/* A head that is not whole is none, wherever it is cut. */
static void test_cut_requests(void)
{
	static const char text[] = "GET /one/a" TO "A: b\r\n\r\n";
	struct vault_request request;
	struct vault_refusal no;

	for (size_t i = 1; i < sizeof(text) - 1; i++) {
		char *copy = strndup(text, i);

		CHECK(read_request(copy, &request, &no) == VAULT_MORE);
		free(copy);
	}
}

/* --- answers --- */

/* All that becomes of an answer that comes in pieces of `step` bytes, in `room`. */
static enum vault_verdict pass_on(const char *text, size_t step, bool ends,
	struct vault_answer *ret, struct vault_refusal *no)
{
	struct vault_text out = { room, 0, ROOM, false };
	size_t n = strlen(text), come = 0, used = 0;
	enum vault_verdict r = VAULT_MORE;
	struct vault_body body;

	trace.count = 0;
	while (r == VAULT_MORE && come < n) {
		come = come + step < n ? come + step : n;
		r = vault_read_answer(
			(struct gate_span){ text, come }, &secrets[0], false, false, ret, &out, no);
	}
	if (r == VAULT_GOOD) {
		size_t at = ret->size;

		vault_body_init(&body, ret, &secrets[0]);
		do {
			r = vault_body_take(
				&body, (struct gate_span){ text + at, come - at }, &used, &out, no);
			at += used;
			come = come + step < n ? come + step : n;
			trace.sizes[trace.count++ % 4096] = out.n;
		} while (r == VAULT_MORE && (at < n || used));
		if (r == VAULT_MORE && ends)
			r = vault_body_end(&body, &out, no);
	}
	room[out.n] = '\0';
	return r;
}

/* The bytes of chunks, without what is around them. */
static const char *join_chunks(const char *text)
{
	static char joined[ROOM];
	size_t n = 0, size;

	for (const char *at = strstr(text, "\r\n\r\n") + 4; (size = strtoul(at, NULL, 16)) > 0;) {
		at = strstr(at, "\r\n") + 2;
		memcpy(joined + n, at, size);
		n += size;
		at += size + 2;
	}
	joined[n] = '\0';
	return joined;
}

static void test_bodies(void)
{
	static const struct {
		const char *body;
		bool has_key;
	} rows[] = {
		{ "plain", false },
		{ "abcabcabd-012", false },
		{ "abcabcabcabd-012x", false },
		{ "aaababcabcabcab", false },
		{ "x" KEY "y", true },
		{ "abcabc" KEY, true },
		{ "abcabcabcabd-0123", true },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char plain[256], chunked[512], ended[256];
		struct vault_answer answer;
		struct vault_refusal no = { 0 };
		enum vault_verdict wanted = rows[i].has_key ? VAULT_BAD : VAULT_GOOD;

		snprintf(plain, sizeof(plain), ANSWERED "Content-Length: %zu\r\n\r\n%s",
			strlen(rows[i].body), rows[i].body);
		snprintf(ended, sizeof(ended), ANSWERED "\r\n%s", rows[i].body);
		snprintf(chunked, sizeof(chunked), ANSWERED "Transfer-Encoding: chunked\r\n\r\n");
		for (const char *c = rows[i].body; *c; c++)
			snprintf(chunked + strlen(chunked), sizeof(chunked) - strlen(chunked),
				"1\r\n%c\r\n", *c);
		strcat(chunked, "0\r\nX-Sum: 1\r\n\r\n");
		for (size_t step = 1; step < 40; step++) {
			CHECK(pass_on(plain, step, false, &answer, &no) == wanted);
			check_that(rows[i].has_key == !!strstr(plain, KEY) && !strstr(room, KEY),
				plain, __FILE__, __LINE__);
			if (!rows[i].has_key)
				CHECK_STR(strstr(room, "\r\n\r\n") + 4, rows[i].body);
			CHECK(pass_on(ended, step, true, &answer, &no) == wanted);
			if (!rows[i].has_key)
				CHECK_STR(strstr(room, "\r\n\r\n") + 4, rows[i].body);
			CHECK(pass_on(chunked, step, false, &answer, &no) == wanted);
			if (!rows[i].has_key)
				CHECK_STR(join_chunks(room), rows[i].body);
			else
				CHECK(no.reason == WIRE_BECAUSE_ECHO);
		}
	}
}

/* One body in three framings, which begins with `n` bytes of `guess` and then has a line. */
static void write_guess(const char *guess, size_t n, int framing, char *ret, size_t size)
{
	int length = (int)n;

	if (framing == 0)
		snprintf(ret, size, ANSWERED "Content-Length: %d\r\n\r\n%.*s\nmore\n", length + 6,
			length, guess);
	else if (framing == 1)
		snprintf(ret, size, ANSWERED "\r\n%.*s\nmore\n", length, guess);
	else
		snprintf(ret, size,
			ANSWERED "Transfer-Encoding: chunked\r\n\r\n1\r\n\n\r\n%x\r\n%.*s\r\n"
				 "6\r\n\nmore\n\r\n0\r\n\r\n",
			length, length, guess);
}

/*
 * Who chooses what the server sends learns nothing from how it arrives: of a guess that is right up
 * to its last byte, and of one that is wrong there, the same bytes go on at the same time.
 */
static void test_guesses(void)
{
	char right[256], wrong[256], guess[] = KEY, *one = malloc(ROOM);
	struct vault_answer answer;
	struct vault_refusal no;

	for (size_t n = 1; n < strlen(KEY); n++) {
		memcpy(guess, KEY, n);
		guess[n - 1] = '~';
		for (size_t i = 0; i < 3 * (size_t)40; i++) {
			size_t step = i / 3 + 1, count, sizes[256];
			char *differs;

			write_guess(KEY, n, (int)(i % 3), right, sizeof(right));
			write_guess(guess, n, (int)(i % 3), wrong, sizeof(wrong));
			CHECK(pass_on(right, step, true, &answer, &no) == VAULT_GOOD);
			count = trace.count;
			memcpy(sizes, trace.sizes, count * sizeof(sizes[0]));
			memcpy(one, room, ROOM);
			CHECK(pass_on(wrong, step, true, &answer, &no) == VAULT_GOOD);
			CHECK(count == trace.count &&
				memcmp(sizes, trace.sizes, count * sizeof(sizes[0])) == 0);
			differs = strchr(room, '~');
			CHECK(differs != NULL);
			*differs = KEY[n - 1];
			CHECK_STR(room, one);
		}
	}
	free(one);
}

/* What ends with a line is not held, and of what does not no more than keys may need. */
static void test_held(void)
{
	struct vault_answer answer = { .framing = VAULT_UNTIL_CLOSE };
	struct vault_text out = { room, 0, ROOM, false };
	struct vault_refusal no;
	struct vault_body body;
	char line[1000];
	size_t used;

	vault_body_init(&body, &answer, &secrets[0]);
	CHECK(vault_body_take(&body, SPAN("data: {\"a\":1}\n\n"), &used, &out, &no) == VAULT_MORE);
	CHECK(out.n == strlen("data: {\"a\":1}\n\n"));
	out.n = 0;
	memset(line, 'x', sizeof(line));
	CHECK(vault_body_take(&body, (struct gate_span){ line, sizeof(line) }, &used, &out, &no) ==
		VAULT_MORE);
	CHECK(out.n == sizeof(line) - 256);
	CHECK(vault_body_take(&body, SPAN(" "), &used, &out, &no) == VAULT_MORE);
	CHECK(out.n == sizeof(line) + 1);
	/* Not even its beginning arrives, whatever went before. */
	out.n = 0;
	CHECK(vault_body_take(&body, SPAN("xx"), &used, &out, &no) == VAULT_MORE);
	for (size_t i = 0; i + 1 < strlen(KEY); i++)
		CHECK(vault_body_take(&body, (struct gate_span){ &KEY[i], 1 }, &used, &out, &no) ==
			VAULT_MORE);
	CHECK(out.n == 0);
	CHECK(vault_body_take(&body, SPAN("3"), &used, &out, &no) == VAULT_BAD && out.n == 0);
}

/* A key as long as the most that is held, behind more than that. */
static void test_long_key(void)
{
	static char key[512], text[4 * sizeof(key)];
	struct vault_secret secret = { .key = { key, sizeof(key) } };
	struct vault_answer answer = { .framing = VAULT_UNTIL_CLOSE };

	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (char)(0x21 + i * i % 90);
	memcpy(text, key, sizeof(key) - 1);
	memcpy(text + 2 * sizeof(key), key, sizeof(key));
	for (size_t i = sizeof(key) - 1; i < 2 * sizeof(key); i++)
		text[i] = '!';
	vault_prepare_key(&secret);
	for (size_t step = 1; step < sizeof(text); step += 7) {
		struct vault_text out = { room, 0, ROOM, false };
		enum vault_verdict r = VAULT_MORE;
		struct vault_refusal no;
		struct vault_body body;
		size_t used;

		vault_body_init(&body, &answer, &secret);
		for (size_t at = 0; r == VAULT_MORE && at < 3 * sizeof(key); at += step) {
			size_t left = 3 * sizeof(key) - at;

			r = vault_body_take(&body,
				(struct gate_span){ text + at, left < step ? left : step }, &used,
				&out, &no);
		}
		CHECK(r == VAULT_BAD && no.reason == WIRE_BECAUSE_ECHO);
		CHECK(out.n <= 2 * sizeof(key) && memcmp(room, text, out.n) == 0);
	}
}

static void test_answer_heads(void)
{
	static const struct {
		const char *text, *wanted;
	} rows[] = {
		{ ANSWERED "Content-Length: 0\r\n\r\n", ANSWERED "content-length: 0\r\n\r\n" },
		{ "HTTP/1.0 200 OK\r\nA: b\r\n\r\n", ANSWERED "A: b\r\nconnection: close\r\n\r\n" },
		{ "HTTP/1.1 204\r\nContent-Length: 7\r\nKeep-Alive: 5\r\nAlt-Svc: h3\r\n\r\n",
			"HTTP/1.1 204\r\n\r\n" },
		{ "HTTP/1.1 103 Early\r\nLink: x\r\n\r\n",
			"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" },
		{ "HTTP/1.1 500 " KEY "\r\nX: a" KEY KEY "b\r\nContent-Length: 0\r\n\r\n",
			"HTTP/1.1 500 " STARS "\r\nX: a" STARS STARS
			"b\r\ncontent-length: 0\r\n\r\n" },
	};
	static const char *const bad[] = { "SSH-2.0\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n",
		"HTTP/1.1 101 Yes\r\n\r\n", "HTTP/2 200 OK\r\n\r\n",
		ANSWERED "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
		ANSWERED "Content-Length: -1\r\n\r\n",
		ANSWERED "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		ANSWERED "Transfer-Encoding: gzip\r\n\r\n", ANSWERED "A: b\r\n c\r\n\r\n",
		ANSWERED "no field\r\n\r\n", "HTTP/1.1 200 OK\n\n" };
	struct vault_answer answer;
	struct vault_refusal no;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		pass_on(rows[i].text, 4096, true, &answer, &no);
		CHECK_STR(room, rows[i].wanted);
	}
	CHECK(answer.has_echo);
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		check_that(pass_on(bad[i], 4096, false, &answer, &no) == VAULT_BAD &&
				   no.reason == WIRE_BECAUSE_BAD_ANSWER,
			bad[i], __FILE__, __LINE__);
}

/* One that ends in the middle is none. */
static void test_cut_answers(void)
{
	struct vault_answer answer;
	struct vault_refusal no;

	CHECK(pass_on(ANSWERED "Content-Length: 5\r\n\r\nabc", 9, true, &answer, &no) == VAULT_BAD);
	CHECK(pass_on(ANSWERED "Transfer-Encoding: chunked\r\n\r\n5\r\nabc", 9, true, &answer,
		      &no) == VAULT_BAD);
	CHECK(pass_on(ANSWERED "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 9, false, &answer,
		      &no) == VAULT_BAD);
}

/* One that is whole is no less so if its client reads slowly, and the server has gone. */
static void test_slow_end(void)
{
	struct vault_answer answer = { .framing = VAULT_LENGTH, .length = 6 };
	struct vault_text out = { room, 0, 50, false };
	struct vault_refusal no;
	struct vault_body body;
	size_t used;

	vault_body_init(&body, &answer, &secrets[0]);
	CHECK(vault_body_take(&body, SPAN("abcdef"), &used, &out, &no) == VAULT_MORE);
	CHECK(used == 6 && vault_body_end(&body, &out, &no) == VAULT_MORE);
	out.max = ROOM;
	CHECK(vault_body_end(&body, &out, &no) == VAULT_GOOD);
	CHECK(out.n == 6 && memcmp(room, "abcdef", 6) == 0);
}

int main(void)
{
	for (size_t i = 0; i < 2; i++)
		vault_prepare_key(&secrets[i]);
	test_requests();
	test_refusals();
	test_cut_requests();
	test_bodies();
	test_guesses();
	test_held();
	test_long_key();
	test_answer_heads();
	test_cut_answers();
	test_slow_end();
	return check_report();
}
