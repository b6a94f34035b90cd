#pragma once

/*
 * Bytes to the reader of requests: each text is fed whole, byte by byte and in two pieces. The same
 * bytes come out, and the same answer follows.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "check.h"
#include "gate/http/gate_http.h"

#define NAME "good.example"
#define PORT 8080

struct answer {
	enum gate_http_verdict last;
	size_t passed;
	enum wire_reason reason;
	char other[WIRE_NAME_SIZE];
	char out[2 * GATE_HTTP_MAX_HEAD]; /* what goes on to the server */
};

/* The first n bytes have come. Asks as a dialer does, about copies that end where the bytes end. */
static inline void ask(struct gate_http *h, const char *text, size_t n, struct answer *a)
{
	while (a->last != GATE_HTTP_DENY && a->passed < n) {
		size_t rest = n - a->passed, pass = 0;
		uint8_t *copy = malloc(rest);

		if (!copy)
			abort();
		memcpy(copy, text + a->passed, rest);
		a->last = gate_http_read(h, copy, rest, &pass, &a->reason, a->other);
		if (a->last != GATE_HTTP_PASS)
			pass = 0;
		else if (pass == 0 || pass > rest)
			abort();
		memcpy(a->out + a->passed, copy, pass);
		check_that(memcmp(copy + pass, text + a->passed + pass, rest - pass) == 0,
			"what does not pass stays as it was", __FILE__, __LINE__);
		free(copy);
		a->passed += pass;
		if (!pass)
			break;
	}
}

static inline struct answer feed(
	const char *name, const char *text, size_t n, size_t cut, size_t step)
{
	struct answer a = { .last = GATE_HTTP_MORE };
	struct gate_http h;

	gate_http_init(&h, name, PORT);
	ask(&h, text, cut, &a);
	for (size_t i = cut + step; i < n; i += step)
		ask(&h, text, i, &a);
	ask(&h, text, n, &a);
	return a;
}

static inline bool is_same(const struct answer *a, const struct answer *b)
{
	return a->last == b->last && a->passed == b->passed && a->reason == b->reason &&
	       strcmp(a->other, b->other) == 0 && memcmp(a->out, b->out, a->passed) == 0;
}

static inline struct answer feed_all_ways(const char *name, const char *text, size_t n, int line)
{
	struct answer whole = feed(name, text, n, n, n), other = feed(name, text, n, 0, 1);
	bool is_good = is_same(&whole, &other);

	for (size_t cut = 0; cut <= n && is_good; cut++) {
		other = feed(name, text, n, cut, n);
		is_good = is_same(&whole, &other);
	}
	check_that(is_good, "cut makes no difference", __FILE__, line);
	return whole;
}

/* What comes out is `out`, of the same size. */
static inline void passes(const char *name, const char *text, const char *out, size_t n, int line)
{
	struct answer a = feed_all_ways(name, text, n, line);

	check_that(a.last == GATE_HTTP_PASS && a.passed == n, text, __FILE__, line);
	check_that(memcmp(a.out, out, a.passed) == 0, "what comes out", __FILE__, line);
	if (a.last == GATE_HTTP_DENY)
		printf("%zu of %zu, %s\n", a.passed, n, a.other);
}

/* The first `passed` bytes may pass, and then comes what is denied. */
static inline void denies(const char *name, const char *text, size_t n, size_t passed,
	enum wire_reason reason, const char *other, int line)
{
	struct answer a = feed_all_ways(name, text, n, line);

	check_that(a.last == GATE_HTTP_DENY && a.passed == passed && a.reason == reason, text,
		__FILE__, line);
	check_equal(a.other, other, __FILE__, line);
}

#define PASSES(text)          passes(NAME, text, text, sizeof(text) - 1, __LINE__)
#define PASSES_AT(name, text) passes(name, text, text, sizeof(text) - 1, __LINE__)
#define PASSES_AS(text, out)                                                                       \
	do {                                                                                       \
		_Static_assert(sizeof(text) == sizeof(out), "nothing moves");                      \
		passes(NAME, text, out, sizeof(text) - 1, __LINE__);                               \
	} while (0)
#define DENIES(text, because, other)                                                               \
	denies(NAME, text, sizeof(text) - 1, 0, WIRE_BECAUSE_##because, other, __LINE__)
#define DENIES_AT(name, text, because, other)                                                      \
	denies(name, text, sizeof(text) - 1, 0, WIRE_BECAUSE_##because, other, __LINE__)
#define DENIES_AFTER(good, text, because, other)                                                   \
	denies(NAME, good text, sizeof(good text) - 1, sizeof(good) - 1, WIRE_BECAUSE_##because,   \
		other, __LINE__)

#define HOST        "Host: good.example\r\n"
#define GET         "GET / HTTP/1.1\r\n" HOST
#define POST        "POST / HTTP/1.1\r\n" HOST
#define END         "\r\n"
#define NAMES(host) "GET / HTTP/1.1\r\nHost:" host "\r\n" END
