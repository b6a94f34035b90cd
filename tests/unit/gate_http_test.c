/* Requests by their heads: which pass, and which are refused for what they name or ask. */
#include "base/count.h"
#include "gate/http/gate_host.h"
#include "gate_feed.h"

static void test_plain(void)
{
	PASSES(GET END);
	PASSES("GET / HTTP/1.0\r\n" HOST END);
	PASSES(GET END GET END GET END);
	PASSES("PROPFIND //a?b=c#d HTTP/1.1\r\n" HOST "X:\r\nY: a\tb \xc3\xbc\r\n" END);
	PASSES("OPTIONS * HTTP/1.1\r\n" HOST END);
	PASSES(POST "Content-Length: 5\r\n" END "hello" GET END);
	PASSES(POST "content-length:0\r\n" END GET END);
	PASSES(POST "Expect: 100-continue\r\nContent-Length: 2\r\n" END "\n\n");
	PASSES(GET "Connection: keep-alive, TE\r\nTE: trailers\r\n" END);
	PASSES(GET "Connection:\r\nConnection: , close\r\n" END);
}

static void test_lines(void)
{
	static const char odd[] = "its first line is not METHOD TARGET HTTP/1.1";
	static const char version[] = "its version is neither HTTP/1.1 nor HTTP/1.0";
	static const char ends[] = "a line does not end with CR LF";
	static const char control[] = "a control byte is in a line";
	static const char encode[] = "its target has a byte that has to be written as %XX";

	DENIES("GET /\r\n", BAD_HTTP, odd);
	DENIES("GET / HTTP/1.2\r\n", BAD_HTTP, version);
	DENIES("GET / HTTP/2\r\n", BAD_HTTP, version);
	DENIES("GET / http/1.1\r\n", BAD_HTTP, version);
	DENIES("GET / HTTP/1.1 \r\n", BAD_HTTP, version);
	DENIES("GET /  HTTP/1.1\r\n", BAD_HTTP, encode);
	DENIES("GET /\tHTTP/1.1 HTTP/1.1\r\n", BAD_HTTP, encode);
	DENIES("GET /a b HTTP/1.1\r\n", BAD_HTTP, encode);
	DENIES("GET /\xa0 HTTP/1.1\r\n", BAD_HTTP, encode);
	DENIES("GET / HTTP/1.1\nHost: good.example\n\n", BAD_HTTP, ends);
	DENIES(GET "\n", BAD_HTTP, ends);
	DENIES(GET "X: a\nY: b\r\n", BAD_HTTP, ends);
	DENIES(GET "X: a\rY: b\r\n", BAD_HTTP, control);
	DENIES(GET "X: a\r\r\n", BAD_HTTP, control);
	DENIES(GET "X: a\0b\r\n", BAD_HTTP, control);
	DENIES(GET "X: a\vb\r\n", BAD_HTTP, control);
	DENIES(GET "X: a\x7f\r\n", BAD_HTTP, control);
	DENIES("GET /\0 HTTP/1.1\r\n", BAD_HTTP, control);
}

static void test_fields(void)
{
	static const char fold[] = "a field goes on in a second line";
	static const char form[] = "a line of its head is not NAME: VALUE";

	DENIES(GET " X: a\r\n", BAD_HTTP, fold);
	DENIES(GET "X: a\r\n\tb\r\n", BAD_HTTP, fold);
	DENIES("GET / HTTP/1.1\r\n Host: good.example\r\n", BAD_HTTP, fold);
	DENIES(GET "X : a\r\n", BAD_HTTP, form);
	DENIES(GET "X\t: a\r\n", BAD_HTTP, form);
	DENIES(GET ": a\r\n", BAD_HTTP, form);
	DENIES(GET "X\r\n", BAD_HTTP, form);
	DENIES(GET "X(: a\r\n", BAD_HTTP, form);
	DENIES(GET "X\xc3\xbc: a\r\n", BAD_HTTP, form);
	DENIES("GET / HTTP/1.1\r\nHost : good.example\r\n", BAD_HTTP, form);
}

static void test_hosts(void)
{
	PASSES(NAMES("\t GOOD.example. \t"));
	PASSES(NAMES("good.example:8080"));
	PASSES(NAMES("good.example.:08080"));
	DENIES(NAMES("bad.example"), OTHER_HOST, "bad.example");
	DENIES(NAMES("good.example.bad.example"), OTHER_HOST, "good.example.bad.example");
	DENIES(NAMES("x.good.example"), OTHER_HOST, "x.good.example");
	DENIES(NAMES("evil-good.example"), OTHER_HOST, "evil-good.example");
	DENIES(NAMES("ood.example"), OTHER_HOST, "ood.example");
	DENIES(NAMES("good.exampl"), OTHER_HOST, "good.exampl");
	DENIES(NAMES("good.examples"), OTHER_HOST, "good.examples");
	DENIES(NAMES("good-example"), OTHER_HOST, "good-example");
	DENIES(NAMES("good.example:80"), OTHER_HOST, "good.example:80");
	DENIES(NAMES("good.example:808"), OTHER_HOST, "good.example:808");
	DENIES(NAMES("good.example:"), OTHER_HOST, "good.example:");
	DENIES(NAMES("good.example:8080:8080"), OTHER_HOST, "good.example:8080:8080");
	DENIES(NAMES("good.example:73616"), OTHER_HOST, "good.example:73616");
	DENIES(NAMES("good.example:008080"), OTHER_HOST, "good.example:008080");
	DENIES(NAMES("good.example:0"), OTHER_HOST, "good.example:0");
	DENIES(NAMES("good.example:+8080"), OTHER_HOST, "good.example:+8080");
	DENIES(NAMES("good.example.."), OTHER_HOST, "good.example..");
	DENIES(NAMES("good.example, bad.example"), OTHER_HOST, "good.example, bad.example");
	DENIES(NAMES("bad.example@good.example"), OTHER_HOST, "bad.example@good.example");
	DENIES(NAMES("good.example/x"), OTHER_HOST, "good.example/x");
	DENIES(NAMES("b\xc3\xbc"
		     "cher\t.example"),
		OTHER_HOST, "b??cher?.example");
	DENIES(NAMES(" "), NO_HOST, "");
	DENIES("GET / HTTP/1.1\r\n" END, NO_HOST, "");
	DENIES("GET / HTTP/1.0\r\n" END, NO_HOST, "");
	DENIES("GET http://good.example/ HTTP/1.1\r\n" END, NO_HOST, "");
	DENIES(GET HOST, BAD_HTTP, "it has two Host fields");
	DENIES(GET "HOST: bad.example\r\n", BAD_HTTP, "it has two Host fields");
	DENIES_AFTER(GET END, NAMES("bad.example"), OTHER_HOST, "bad.example");
	DENIES_AFTER(POST "Content-Length: 3\r\n" END "abc", NAMES("bad.example"), OTHER_HOST,
		"bad.example");
}

/* The lines of a head have no NUL; whoever else asks is answered the same. */
static void test_authority(void)
{
	struct gate_authority a;

	CHECK(gate_host_read_authority("10.0.0.5", 8, &a));
	CHECK_STR(a.host, "10.0.0.5");
	CHECK(!gate_host_read_authority("10.0.0.5\0", 9, &a));
	CHECK(!gate_host_read_authority("[::1\0]", 6, &a));
	CHECK(!gate_host_read_authority("a.example\0", 10, &a));
	CHECK(!gate_host_read_authority("", 0, &a));
	CHECK(!gate_host_read_authority("[", 1, &a) && !gate_host_read_authority("[]", 2, &a));
	CHECK(!gate_host_read_authority(":80", 3, &a));
	CHECK(gate_host_read_authority("A.example:65535", 15, &a) && a.port == 65535);
	CHECK_STR(a.host, "a.example");
}

static void test_targets(void)
{
	static const char form[] = "its target is neither a path nor an http:// URL";

	PASSES("GET http://good.example HTTP/1.1\r\n" HOST END);
	PASSES("GET HTTP://Good.example:8080/x HTTP/1.1\r\n" HOST END);
	PASSES("GET http://good.example?x=http://bad.example HTTP/1.1\r\n" HOST END);
	DENIES("GET http://bad.example/ HTTP/1.1\r\n" HOST END, OTHER_HOST, "bad.example");
	DENIES("GET http://x.good.example/ HTTP/1.1\r\n" HOST END, OTHER_HOST, "x.good.example");
	DENIES("GET http://good.example.x/ HTTP/1.1\r\n" HOST END, OTHER_HOST, "good.example.x");
	DENIES("GET http://good.example:81/ HTTP/1.1\r\n" HOST END, OTHER_HOST, "good.example:81");
	DENIES("GET http://bad.example#@good.example/ HTTP/1.1\r\n" HOST END, OTHER_HOST,
		"bad.example");
	DENIES("GET http://good.example@bad.example/ HTTP/1.1\r\n" HOST END, OTHER_HOST,
		"good.example@bad.example");
	DENIES("GET http://bad.example\\@good.example/ HTTP/1.1\r\n" HOST END, OTHER_HOST,
		"bad.example\\@good.example");
	DENIES("GET http:///x HTTP/1.1\r\n" HOST END, NO_HOST, "");
	DENIES("GET http://good.example/ HTTP/1.1\r\nHost: bad.example\r\n" END, OTHER_HOST,
		"bad.example");
	DENIES("GET * HTTP/1.1\r\n", BAD_HTTP, form);
	DENIES("OPTIONS *x HTTP/1.1\r\n", BAD_HTTP, form);
	DENIES("options * HTTP/1.1\r\n", BAD_HTTP, form);
	DENIES("CONNECT good.example:8080 HTTP/1.1\r\n" HOST END, BAD_HTTP,
		"CONNECT makes the server a way to others");
	DENIES("connect /x HTTP/1.1\r\n" HOST END, BAD_HTTP,
		"CONNECT makes the server a way to others");
}

/* Where an address was connected to, it is named; where nothing is known, anything is. */
static void test_addresses(void)
{
	PASSES_AT("10.0.0.5", NAMES("10.0.0.5:8080"));
	PASSES_AT("10.0.0.5", NAMES("10.0.0.5"));
	PASSES_AT("2001:db8::1", NAMES("[2001:db8::1]"));
	PASSES_AT("2001:db8::1", NAMES("[2001:DB8:0::0:1]:8080"));
	PASSES_AT("2001:db8:0::1", NAMES("[2001:db8::1]"));
	DENIES_AT("10.0.0.5", NAMES("10.0.0.6"), OTHER_HOST, "10.0.0.6");
	DENIES_AT("10.0.0.5", NAMES("10.5"), OTHER_HOST, "10.5");
	DENIES_AT("10.0.0.5", NAMES("10.0.0.5."), OTHER_HOST, "10.0.0.5.");
	DENIES_AT("10.0.0.5", NAMES("[::ffff:10.0.0.5]"), OTHER_HOST, "[::ffff:10.0.0.5]");
	DENIES_AT("2001:db8::1", NAMES("2001:db8::1"), OTHER_HOST, "2001:db8::1");
	DENIES_AT("2001:db8::1", NAMES("[2001:db8::1"), OTHER_HOST, "[2001:db8::1");
	DENIES_AT("2001:db8::1", NAMES("[2001:db8::1]x"), OTHER_HOST, "[2001:db8::1]x");
	DENIES_AT("2001:db8::1", NAMES("[2001:db8::1%1]"), OTHER_HOST, "[2001:db8::1%1]");
	DENIES_AT("2001:db8::1", NAMES("[good.example]"), OTHER_HOST, "[good.example]");
	PASSES_AT(NULL, NAMES("any.example"));
	PASSES_AT("", NAMES("[::1]:8080") NAMES("10.0.0.1"));
	DENIES_AT("", NAMES("a b"), OTHER_HOST, "a b");
	DENIES_AT("", NAMES("any.example:1"), OTHER_HOST, "any.example:1");
	DENIES_AT("", "GET / HTTP/1.1\r\n" END, NO_HOST, "");
	PASSES_AT("", "GET http://ANY.example:8080/ HTTP/1.1\r\nHost: any.example\r\n" END);
	DENIES_AT("", "GET http://one.example/ HTTP/1.1\r\nHost: two.example\r\n" END, BAD_HTTP,
		"its target and its Host field differ");
}

/* --- other protocols --- */

static void test_others(void)
{
	DENIES("\x16\x03\x01\x02", NOT_HTTP, "");
	DENIES("SSH-2.0-x\r\n", NOT_HTTP, "");
	DENIES("EHLO me\r\n", NOT_HTTP, "");
	DENIES("\r\n", NOT_HTTP, "");
	DENIES(" GET", NOT_HTTP, "");
	DENIES("GET  /", NOT_HTTP, "");
	DENIES("GET ftp:", NOT_HTTP, "");
	DENIES("GET https:", NOT_HTTP, "");
	DENIES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", BAD_HTTP,
		"its version is neither HTTP/1.1 nor HTTP/1.0");
	DENIES_AFTER(GET END, END, BAD_HTTP, "what follows the first request is none");
	DENIES_AFTER(POST "Content-Length: 1\r\n" END "a", "b\r\n", BAD_HTTP,
		"what follows the first request is none");
}

static bool is_request(const char *text)
{
	return gate_http_is_request((const uint8_t *)text, strlen(text));
}

static void test_is_request(void)
{
	CHECK(is_request("") && is_request("G") && is_request("GET ") && is_request("GET /"));
	CHECK(is_request("M-SEARCH * HTTP/1.1") && is_request("GET http://x"));
	CHECK(is_request("CONNECT example.org:443 HTTP/1.1") && is_request("CONNECT [::1]:1"));
	CHECK(is_request("PRI * HTTP/2.0\r\n"));
	CHECK(!is_request("\x16") && !is_request("GET\r") && !is_request("GET x"));
	CHECK(!is_request("GET\t/") && !is_request(" "));
	CHECK(!is_request("ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGH"));
}

/* --- upgrades --- */

#define ASKS GET "Upgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n"

static bool hear(struct gate_http *h, const char *text)
{
	return gate_http_hear_server(h, (const uint8_t *)text, strlen(text));
}

static struct answer tell(struct gate_http *h, const char *text)
{
	struct answer a = { .last = GATE_HTTP_MORE };

	ask(h, text, strlen(text), &a);
	return a;
}

static void test_agreed(void)
{
	struct gate_http h;

	gate_http_init(&h, NAME, PORT);
	CHECK(tell(&h, ASKS END "\x81\x01").passed == strlen(ASKS END));
	CHECK(h.state == GATE_HTTP_UPGRADE);
	CHECK(tell(&h, "\x81\x01").last == GATE_HTTP_MORE);
	CHECK(!hear(&h, "") && !hear(&h, "HTTP/1.1 10") && !hear(&h, "HTTP/1.1 101"));
	CHECK(hear(&h, "HTTP/1.1 101 Switching") && h.state == GATE_HTTP_OPAQUE);
	CHECK(tell(&h, "\x81\x01").passed == 2);
}

/* The twin: without the server's word, what follows is a request and nothing else. */
static void test_not_agreed(void)
{
	static const char *const answers[] = { "HTTP/1.1 2", "HTTP/1.0 101 ", "HTTP/1.1 100 ",
		"HTTP/1.1 1010", "http/1.1 101 ", "\x16\x03" };

	for (size_t i = 0; i < COUNT_OF(answers); i++) {
		struct gate_http h;
		struct answer a;

		gate_http_init(&h, NAME, PORT);
		tell(&h, ASKS END);
		CHECK(hear(&h, answers[i]) && h.state == GATE_HTTP_HEAD);
		a = tell(&h, "\x81\x01");
		CHECK(a.last == GATE_HTTP_DENY && a.reason == WIRE_BECAUSE_BAD_HTTP);
		a = tell(&h, NAMES("bad.example"));
		CHECK(a.last == GATE_HTTP_DENY && a.reason == WIRE_BECAUSE_OTHER_HOST);
		a = tell(&h, ASKS END);
		CHECK(a.last == GATE_HTTP_DENY && a.reason == WIRE_BECAUSE_BAD_HTTP);
		a = tell(&h, GET END);
		CHECK(a.last == GATE_HTTP_PASS && h.state == GATE_HTTP_HEAD);
	}
}

static void test_upgrades(void)
{
	static const char form[] =
		"it asks for a websocket, and is no GET of HTTP/1.1 without body";
	static const char kind[] = "it asks for an upgrade to something other than websocket";

	PASSES(ASKS END);
	PASSES(ASKS "Content-Length: 0\r\n" END);
	PASSES(GET "Connection: upgrade\r\n" END GET END);
	DENIES(GET "Upgrade: TLS/1.0\r\n", BAD_HTTP, kind);
	DENIES(GET "Upgrade:\r\n", BAD_HTTP, kind);
	DENIES(ASKS "Upgrade: websocket\r\n", BAD_HTTP, kind);
	DENIES(GET "Upgrade: websocket\r\n" END, BAD_HTTP, "its Connection field has no 'upgrade'");
	DENIES(ASKS "Content-Length: 1\r\n" END, BAD_HTTP, form);
	DENIES(ASKS "Transfer-Encoding: chunked\r\n" END, BAD_HTTP, form);
	DENIES(POST "Upgrade: websocket\r\nConnection: upgrade\r\n" END, BAD_HTTP, form);
	DENIES("GET / HTTP/1.0\r\n" HOST "Upgrade: websocket\r\nConnection: upgrade\r\n" END,
		BAD_HTTP, form);
	DENIES_AFTER(GET END, ASKS END, BAD_HTTP,
		"it asks for a websocket on a connection that was used before");
}

#define OFFER "Connection: Upgrade, HTTP2-Settings\r\n"

/* An offer that a server is free to overlook is made one that it does not see. */
static void test_offers(void)
{
	static const char kind[] = "it asks for an upgrade to something other than websocket";
	static const char late[] = "a field after its body belongs into its head";

	PASSES_AS(GET OFFER
		"HTTP2-Settings: AAMAAABkAAQAAP__\r\nUpgrade: h2c\r\nX: upgrade\r\n" END,
		GET OFFER "xxxxxxxxxxxxxx: AAMAAABkAAQAAP__\r\nxxxxxxx: h2c\r\nX: upgrade\r\n" END);
	PASSES_AS(GET "upGRADE:\tH2C \r\n" END GET END, GET "xxxxxxx:\tH2C \r\n" END GET END);
	PASSES_AS(GET END POST "Upgrade: h2c\r\nContent-Length: 12\r\n" END "Upgrade: h2c" GET
			       "http2-settings:\r\n" END,
		GET END POST "xxxxxxx: h2c\r\nContent-Length: 12\r\n" END "Upgrade: h2c" GET
			     "xxxxxxxxxxxxxx:\r\n" END);
	PASSES_AS("GET / HTTP/1.0\r\n" HOST "Upgrade: h2c\r\n" END,
		"GET / HTTP/1.0\r\n" HOST "xxxxxxx: h2c\r\n" END);
	PASSES_AS(ASKS "HTTP2-Settings: x\r\n" END, ASKS "xxxxxxxxxxxxxx: x\r\n" END);
	PASSES(GET OFFER END);
	DENIES(GET "Upgrade: h2c, h2c\r\n", BAD_HTTP, kind);
	DENIES(GET "Upgrade: h2c\r\nUpgrade: h2c\r\n", BAD_HTTP, kind);
	DENIES(GET "Upgrade: websocket, h2c\r\n", BAD_HTTP, kind);
	DENIES(GET "Upgrade: h2c\r\nUpgrade: websocket\r\n", BAD_HTTP, kind);
	DENIES(ASKS "Upgrade: h2c\r\n", BAD_HTTP, kind);
	DENIES(GET "Upgrade: h2\r\n", BAD_HTTP, kind);
	DENIES(GET "HTTP2-Settings: a\r\nHTTP2-Settings: b\r\n", BAD_HTTP,
		"it has two HTTP2-Settings fields");
	DENIES_AFTER(POST "Transfer-Encoding: chunked\r\n" END "0\r\n", "Upgrade: h2c\r\n",
		BAD_HTTP, late);
	DENIES_AFTER(GET END, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", BAD_HTTP,
		"its version is neither HTTP/1.1 nor HTTP/1.0");
}

static void test_write(void)
{
	static const char wanted[] = "HTTP/1.1 403 Forbidden\r\n"
				     "Content-Type: text/plain; charset=utf-8\r\n"
				     "Content-Length: 10\r\n"
				     "Connection: close\r\n"
				     "X-Content-Type-Options: nosniff\r\n"
				     "\r\n"
				     "bawn: no.\n";
	char text[sizeof(wanted)];

	CHECK(gate_http_write(403, "no.", text, sizeof(text)) == sizeof(wanted) - 1);
	CHECK_STR(text, wanted);
	CHECK(gate_http_write(403, "no.", text, sizeof(text) - 1) == 0);
	CHECK(gate_http_write(403, "no.", text, 0) == 0);
}

int main(void)
{
	test_plain();
	test_lines();
	test_fields();
	test_hosts();
	test_authority();
	test_targets();
	test_addresses();
	test_others();
	test_is_request();
	test_agreed();
	test_not_agreed();
	test_upgrades();
	test_offers();
	test_write();
	return check_report();
}
