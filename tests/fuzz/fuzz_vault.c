/*
 * What a cage says to the vault, and what a host answers. The first byte says which of the two, and
 * the second where to cut. Of a request the key goes on exactly once, and nothing that the agent
 * called so; of an answer the key never does; where they are cut makes no difference, and neither
 * does the key.
 */
#include <stdbool.h>
#include <stdio.h>

#include "fuzz.h"
#include "vault/vault_http.h"

#define KEY   "aabaabaac-key"
#define OTHER "0123456789abc" /* as long */
#define ROOM  ((size_t)1 << 20)

static struct vault_secret secret = { .name = "s",
	.host = "host.example",
	.port = 443,
	.header = "x-key",
	.scheme = "",
	.key = { KEY, sizeof(KEY) - 1 } };
static struct vault_secret other = { .name = "o",
	.host = "host.example",
	.port = 443,
	.header = "x-key",
	.scheme = "",
	.key = { OTHER, sizeof(OTHER) - 1 } };

static void demand(bool is_so, const char *what)
{
	if (is_so)
		return;
	fprintf(stderr, "not so: %s\n", what);
	abort();
}

static size_t count_of(struct gate_span in, const char *text)
{
	size_t n = 0;
	const char *at = in.at, *end = in.at + in.n;

	while ((at = memmem(at, (size_t)(end - at), text, strlen(text))) != NULL) {
		at += strlen(text);
		n++;
	}
	return n;
}

static void try_request(struct gate_span in)
{
	char *room = malloc(VAULT_MAX_REQUEST);
	struct vault_text out = { room, 0, VAULT_MAX_REQUEST, false };
	struct vault_request request;
	struct vault_refusal no = { 0 };
	struct gate_http h;
	size_t keys = count_of(in, KEY);

	gate_http_init(&h, WIRE_HOST_NAME, WIRE_VAULT_PORT);
	switch (vault_read_request(&h, in, &secret, 1, &request, &out, &no)) {
	case VAULT_MORE:
		demand(in.n < GATE_HTTP_MAX_HEAD, "there is an end to it");
		break;
	case VAULT_BAD:
		demand(no.status == 400 || no.status == 404, "it is told so");
		demand(memchr(no.other, '\0', sizeof(no.other)), "what is wrong ends");
		break;
	case VAULT_GOOD:
		demand(request.size <= in.n && !out.failed, "it is there");
		demand(count_of((struct gate_span){ room, out.n }, "\r\nx-key: " KEY "\r\n") == 1,
			"the key is there");
		demand(count_of((struct gate_span){ room, out.n }, KEY) <= keys + 1, "once");
		demand(count_of((struct gate_span){ room, out.n }, "\r\n\r\n") == 1 &&
				memcmp(room + out.n - 4, "\r\n\r\n", 4) == 0,
			"it is one head");
		break;
	}
	free(room);
}

/* What went on, and after how many steps how much of it. */
struct passed {
	enum vault_verdict verdict;
	bool has_echo;
	size_t size, times; /* a sum of sizes, each by its step */
};

/* The whole of an answer in steps. */
static struct passed pass_on(
	struct gate_span in, const struct vault_secret *s, size_t step, char *room)
{
	struct passed ret = { .verdict = VAULT_MORE };
	struct vault_text out = { room, 0, ROOM, false };
	size_t come = 0, at = 0, used = 0;
	struct vault_answer answer;
	struct vault_refusal no = { 0 };
	struct vault_body body;

	while (ret.verdict == VAULT_MORE && come < in.n) {
		come = in.n - come > step ? come + step : in.n;
		ret.verdict = vault_read_answer(
			(struct gate_span){ in.at, come }, s, false, false, &answer, &out, &no);
	}
	if (ret.verdict != VAULT_GOOD)
		return ret;
	vault_body_init(&body, &answer, s);
	at = answer.size;
	do {
		ret.verdict = vault_body_take(
			&body, (struct gate_span){ in.at + at, come - at }, &used, &out, &no);
		ret.times = ret.times * 31 + out.n;
		at += used;
		demand(at <= come, "what is taken has come");
		if (come == in.n && !used)
			break;
		come = in.n - come > step ? come + step : in.n;
	} while (ret.verdict == VAULT_MORE);
	if (ret.verdict == VAULT_MORE)
		ret.verdict = vault_body_end(&body, &out, &no);
	ret.has_echo = answer.has_echo || no.reason == WIRE_BECAUSE_ECHO;
	ret.size = out.n;
	return ret;
}

/*
 * Bytes of a chunked body depend on where it is cut; whether it is good does not. And where no key
 * came, none makes a difference.
 */
static void try_answer(struct gate_span in, size_t step)
{
	char *one = malloc(ROOM), *two = malloc(ROOM);
	struct passed whole = pass_on(in, &secret, in.n, one);
	struct passed cut = pass_on(in, &secret, step, two), another;

	demand(whole.verdict == cut.verdict, "a cut makes no difference");
	demand(!memmem(one, whole.size, KEY, strlen(KEY)) &&
			!memmem(two, cut.size, KEY, strlen(KEY)),
		"the key stays outside");
	another = pass_on(in, &other, step, one);
	if (!cut.has_echo && !another.has_echo)
		demand(cut.verdict == another.verdict && cut.times == another.times &&
				cut.size == another.size && memcmp(one, two, cut.size) == 0,
			"which key it is makes no difference");
	free(one);
	free(two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gate_span in = { (const char *)data + 2, size - 2 };

	if (size < 3 || size > ROOM / 8)
		return 0;
	vault_prepare_key(&secret);
	vault_prepare_key(&other);
	if (data[0] % 2)
		try_answer(in, data[1] + 1U);
	else
		try_request(in);
	return 0;
}
