/*
 * The bytes of a client that may speak HTTP. Where they are cut makes no difference to what comes
 * out, nor to why the rest does not; and what comes out is what came in, but for what is crossed
 * out, and would come out again as it is. The first byte says where to cut, and the second what was
 * connected to and what a server says to an upgrade.
 */
#include <stdbool.h>
#include <stdio.h>

#include "fuzz.h"
#include "gate/http/gate_http.h"

#define PORT 8080

static void demand(bool is_so, const char *what)
{
	if (is_so)
		return;
	fprintf(stderr, "not so: %s\n", what);
	abort();
}

struct answer {
	enum gate_http_verdict last;
	enum wire_reason reason;
	size_t passed;
	uint8_t *out; /* what goes on to the server, with room for all */
	char other[WIRE_NAME_SIZE];
};

static uint8_t *take_room(size_t n)
{
	uint8_t *room = malloc(n);

	if (!room)
		abort();
	return room;
}

static void check_denied(const struct answer *a)
{
	const char *end = memchr(a->other, '\0', sizeof(a->other));

	demand(end, "what is wrong ends");
	for (const char *c = a->other; c < end; c++)
		demand(*c >= 0x20 && *c <= 0x7e, "what is wrong is printable");
	demand(a->reason == WIRE_BECAUSE_NOT_HTTP || a->reason == WIRE_BECAUSE_NO_HOST ||
			a->reason == WIRE_BECAUSE_OTHER_HOST || a->reason == WIRE_BECAUSE_BAD_HTTP,
		"there is a reason");
}

/* The first n bytes have come: asks until nothing more passes. */
static void ask(
	struct gate_http *h, const uint8_t *bytes, size_t n, const char *said, struct answer *a)
{
	while (a->passed < n && a->last != GATE_HTTP_DENY) {
		size_t rest = n - a->passed, pass = 0;
		uint8_t *copy = take_room(rest);

		memcpy(copy, bytes + a->passed, rest);
		memset(a->other, 'x', sizeof(a->other));
		a->last = gate_http_read(h, copy, rest, &pass, &a->reason, a->other);
		demand(a->last != GATE_HTTP_PASS || (pass > 0 && pass <= rest),
			"what passes is there");
		pass = a->last == GATE_HTTP_PASS ? pass : 0;
		demand(memcmp(copy + pass, bytes + a->passed + pass, rest - pass) == 0,
			"what does not pass stays");
		memcpy(a->out + a->passed, copy, pass);
		free(copy);
		if (a->last == GATE_HTTP_PASS)
			a->passed += pass;
		else if (a->last == GATE_HTTP_DENY)
			check_denied(a);
		else if (h->state != GATE_HTTP_UPGRADE)
			demand(rest < GATE_HTTP_MAX_HEAD, "there is an end to it");
		if (h->state == GATE_HTTP_UPGRADE && said)
			demand(gate_http_hear_server(h, (const uint8_t *)said, strlen(said)), said);
		else if (a->last == GATE_HTTP_MORE)
			break;
	}
}

static void check_out(
	const struct answer *a, const uint8_t *bytes, const char *name, const char *said)
{
	struct answer again = { .last = GATE_HTTP_MORE, .out = take_room(a->passed + 1) };
	struct gate_http h;

	gate_http_init(&h, name, PORT);
	ask(&h, a->out, a->passed, said, &again);
	demand(again.passed == a->passed && memcmp(again.out, a->out, a->passed) == 0,
		"nothing is left to cross out");
	for (size_t i = 0; i < a->passed; i++)
		demand(a->out[i] == bytes[i] || a->out[i] == 'x', "it says the same");
	free(again.out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "good.example", "", "10.0.0.5", "2001:db8::1" };
	static const char *const answers[] = { NULL, "HTTP/1.1 101 Agreed", "HTTP/1.1 200 OK" };
	const uint8_t *bytes = size > 2 ? data + 2 : NULL;
	size_t n = size > 2 ? size - 2 : 0;
	struct gate_http one, two;
	struct answer whole = { .last = GATE_HTTP_MORE }, cut = { .last = GATE_HTTP_MORE };
	const char *name, *said;
	size_t step;

	if (!n)
		return 0;
	name = names[data[1] % 4];
	said = answers[data[1] / 4 % 3];
	whole.out = take_room(n);
	cut.out = take_room(n);
	gate_http_init(&one, name, PORT);
	gate_http_init(&two, name, PORT);
	ask(&one, bytes, n, said, &whole);
	step = data[0] < 16 ? data[0] + 1U : n * data[0] / 256 + 1;
	for (size_t i = step; i < n; i += step)
		ask(&two, bytes, i, said, &cut);
	ask(&two, bytes, n, said, &cut);
	demand(whole.passed == cut.passed, "a cut does not make more pass");
	demand(memcmp(whole.out, cut.out, whole.passed) == 0, "a cut changes nothing");
	check_out(&whole, bytes, name, said);
	demand((whole.last == GATE_HTTP_DENY) == (cut.last == GATE_HTTP_DENY),
		"a cut does not make good");
	demand(whole.last != GATE_HTTP_DENY ||
			(whole.reason == cut.reason && strcmp(whole.other, cut.other) == 0),
		"a cut gives no other reason");
	demand(one.state == two.state && one.left == two.left && one.is_later == two.is_later,
		"a cut is not remembered");
	gate_http_is_request(bytes, n);
	free(whole.out);
	free(cut.out);
	return 0;
}
