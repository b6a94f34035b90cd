/*
 * What a client says first against where it went: names that begin or end like the right one, and
 * are others. What becomes of the connection is noted here instead of done.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/count.h"
#include "base/own.h"
#include "check.h"
#include "gate/gate_inside.h"

#define NAME "www.example.org"

static struct gate gate; /* too large for a stack */

/* --- what gate_conn.c would do --- */

static struct {
	char verdict; /* '-': none yet */
	enum wire_reason reason;
	char other[WIRE_NAME_SIZE];
} heard;

void gate_conn_call(struct gate *g, struct gate_conn *c)
{
	(void)g;
	(void)c;
	heard.verdict = 'c';
}

void gate_conn_end(struct gate *g, struct gate_conn *c, bool is_orderly)
{
	(void)g;
	(void)c;
	heard.verdict = is_orderly ? 'e' : 'b';
}

void gate_conn_deny(struct gate *g, struct gate_conn *c, enum wire_decision_kind kind,
	enum wire_reason reason, const char *other)
{
	(void)g;
	(void)c;
	heard.verdict = kind == WIRE_NET_DENIED ? 'd' : '?';
	heard.reason = reason;
	snprintf(heard.other, sizeof(heard.other), "%s", other);
}

void gate_conn_leave(struct gate *g, struct gate_conn *c, int row, enum wire_decision_kind kind,
	enum wire_reason reason)
{
	(void)row;
	gate_conn_deny(g, c, kind, reason, "left");
}

/* --- a client --- */

/* One connection to `to` that says these bytes; `heard` is what came of it. */
static void say(
	enum wire_protocol protocol, const char *to, bool is_address, const void *bytes, size_t n)
{
	struct gate_conn *c = &gate.conns[0];
	int pair[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
	*c = (struct gate_conn){ .protocol = protocol,
		.is_address = is_address,
		.port = 8080,
		.inside = pair[0],
		.denied = WIRE_BECAUSE_ALLOWED };
	snprintf(c->name, sizeof(c->name), "%s", to);
	gate_http_init(&c->http, c->name, c->port);
	memset(&heard, 0, sizeof(heard));
	heard.verdict = '-';
	CHECK(send(pair[1], bytes, n, 0) == (ssize_t)n);
	gate_hear_head(&gate, c);
	/* What was not judged does not go on. */
	CHECK((c->head_good > 0) == (heard.verdict == 'c'));
	close(pair[0]);
	close(pair[1]);
}

static void put(uint8_t **at, size_t value, unsigned width)
{
	while (width--)
		*(*at)++ = (uint8_t)(value >> (8 * width));
}

/* The smallest hello that names `name`. */
static size_t make_hello(const char *name, uint8_t *ret)
{
	size_t n = strlen(name);
	uint8_t *at = ret;

	put(&at, 0x160301, 3);
	put(&at, 56 + n, 2);
	put(&at, 1, 1);
	put(&at, 52 + n, 3);
	put(&at, 0x0303, 2);
	memset(at, 'r', 32);
	at += 32;
	put(&at, 0, 1);
	put(&at, 0x00021301, 4);
	put(&at, 0x0100, 2);
	put(&at, n + 9, 2); /* extensions: the name of the server, and no other */
	put(&at, 0, 2);
	put(&at, n + 5, 2);
	put(&at, n + 3, 2);
	put(&at, 0, 1);
	put(&at, n, 2);
	memcpy(at, name, n);
	return (size_t)(at - ret) + n;
}

static void say_hello(const char *to, bool is_address, const char *name)
{
	uint8_t hello[512];

	say(WIRE_TLS, to, is_address, hello, make_hello(name, hello));
}

static void say_request(const char *host)
{
	char text[512];
	int n = snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host);

	say(WIRE_HTTP, NAME, false, text, (size_t)n);
}

/* --- names --- */

static void test_near_misses(void)
{
	static const char *const others[] = { "evil-" NAME, "evil" NAME, "x." NAME, NAME ".evil",
		NAME "x", "ww.example.org", "w" NAME, "www.example.or", "example.org", "org",
		"www.example.com", "wwwxexample.org", "www-example.org", "www.example" };

	for (size_t i = 0; i < COUNT_OF(others); i++) {
		say_hello(NAME, false, others[i]);
		check_that(heard.verdict == 'd' && heard.reason == WIRE_BECAUSE_OTHER_SNI &&
				   strcmp(heard.other, others[i]) == 0,
			others[i], __FILE__, __LINE__);
		say_request(others[i]);
		check_that(heard.verdict == 'd' && heard.reason == WIRE_BECAUSE_OTHER_HOST &&
				   strcmp(heard.other, others[i]) == 0,
			others[i], __FILE__, __LINE__);
		/* The same name is good where it is the right one. */
		say_hello(others[i], false, others[i]);
		check_that(heard.verdict == 'c', others[i], __FILE__, __LINE__);
	}
	say_hello(NAME, false, NAME);
	CHECK(heard.verdict == 'c');
	say_hello(NAME, false, "WWW.Example.ORG");
	CHECK(heard.verdict == 'c');
	say_request(NAME);
	CHECK(heard.verdict == 'c');
}

/* A declared address has no name that could be another. */
static void test_address(void)
{
	say_hello("192.0.2.1", true, "any." NAME);
	CHECK(heard.verdict == 'c');
	say_hello("192.0.2.1", false, "any." NAME);
	CHECK(heard.verdict == 'd');
}

/* Nothing goes on before there is a whole head, and nothing that is none. */
static void test_unfinished(void)
{
	uint8_t hello[512];
	size_t n = make_hello(NAME, hello);

	say(WIRE_TLS, NAME, false, hello, n - 1);
	CHECK(heard.verdict == '-');
	say(WIRE_TLS, NAME, false, "GET / HTTP/1.1\r\n", 16);
	CHECK(heard.verdict == 'd' && heard.reason == WIRE_BECAUSE_NOT_TLS);
	say(WIRE_HTTP, NAME, false, "GET / HTTP/1.1\r\nHost: " NAME "\r\n", 39);
	CHECK(heard.verdict == '-');
	say(WIRE_HTTP, NAME, false, hello, n);
	CHECK(heard.verdict == 'd' && heard.reason == WIRE_BECAUSE_NOT_HTTP);
}

int main(void)
{
	test_near_misses();
	test_address();
	test_unfinished();
	return check_report();
}
