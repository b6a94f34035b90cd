#include <stdio.h>
#include <string.h>

#include "vault/vault_http.h"

/* Around the bytes of a chunk: its size in hex, and two ends of lines. */
#define AROUND 24

/* --- looking for the key --- */

void vault_prepare_key(struct gate_span key, uint16_t *ret)
{
	size_t seen = 0;

	for (size_t i = 0; i < key.n; i++) {
		if (i == 0) {
			ret[i] = 0;
			continue;
		}
		while (seen && key.at[i] != key.at[seen])
			seen = ret[seen - 1];
		seen += key.at[i] == key.at[seen];
		ret[i] = (uint16_t)seen;
	}
}

/* False: here it is, whole. */
static bool look(struct vault_body *b, struct gate_span bytes)
{
	const struct vault_secret *s = b->secret;

	if (s->key.n < VAULT_MIN_SOUGHT)
		return true;
	for (size_t i = 0; i < bytes.n; i++) {
		while (b->seen && bytes.at[i] != s->key.at[b->seen])
			b->seen = s->falls_to[b->seen - 1];
		b->seen += bytes.at[i] == s->key.at[b->seen];
		if (b->seen == s->key.n)
			return false;
	}
	return true;
}

/* --- writing --- */

/*
 * `held` bytes of the key's beginning, which came before, and then these; but for those at the end
 * that are held back from now on. What is held is never stored: it is the key's beginning.
 */
static void put_bytes(
	struct vault_body *b, size_t held, struct gate_span bytes, struct vault_text *out)
{
	size_t all = held + bytes.n, n = all - b->seen;
	size_t of_key = n < held ? n : held;
	char size[AROUND];

	if (n == 0)
		return;
	snprintf(size, sizeof(size), "%zx\r\n", n);
	if (b->framing == VAULT_CHUNKED)
		vault_puts(out, size);
	vault_put(out, b->secret->key.at, of_key);
	vault_put(out, bytes.at, n - of_key);
	if (b->framing == VAULT_CHUNKED)
		vault_puts(out, "\r\n");
}

static enum vault_verdict refuse(
	struct vault_refusal *no, enum wire_reason reason, const char *what)
{
	no->reason = reason;
	no->status = 502;
	snprintf(no->other, sizeof(no->other), "%s", what);
	return VAULT_BAD;
}

/* --- taking --- */

void vault_body_init(
	struct vault_body *b, const struct vault_answer *answer, const struct vault_secret *secret)
{
	*b = (struct vault_body){ .framing = answer->framing,
		.secret = secret,
		.left = answer->length,
		.is_whole = answer->framing == VAULT_NO_BODY };
	gate_http_init(&b->http, NULL, 0);
	b->http.state = GATE_HTTP_CHUNK_SIZE;
}

/* So many of these bytes are the body's own. */
static size_t count_own(const struct vault_body *b, size_t n)
{
	uint64_t left = b->framing == VAULT_LENGTH ? b->left : b->http.left;

	return b->framing != VAULT_UNTIL_CLOSE && left < n ? (size_t)left : n;
}

/* Room for what is held, what comes, and what is written around it. */
static size_t fit(const struct vault_body *b, size_t n, const struct vault_text *out)
{
	size_t room = out->max - out->n, taken = AROUND + b->seen;

	if (room <= taken)
		return 0;
	return n < room - taken ? n : room - taken;
}

static enum vault_verdict take_bytes(struct vault_body *b, struct gate_span in, size_t *ret_used,
	struct vault_text *out, struct vault_refusal *no)
{
	size_t n = fit(b, count_own(b, in.n), out), held = b->seen;
	struct gate_span bytes = { in.at, n };

	*ret_used = n;
	if (!look(b, bytes))
		return refuse(no, WIRE_BECAUSE_ECHO, "a body");
	put_bytes(b, held, bytes, out);
	if (b->framing == VAULT_LENGTH)
		b->left -= n;
	else if (b->framing == VAULT_CHUNKED)
		b->http.left -= n;
	return VAULT_GOOD;
}

/* What was held back was not the key after all. */
static enum vault_verdict finish(struct vault_body *b, struct vault_text *out)
{
	size_t held = b->seen;

	if (out->max - out->n < held + (size_t)2 * AROUND)
		return VAULT_MORE;
	b->seen = 0;
	put_bytes(b, held, (struct gate_span){ "", 0 }, out);
	if (b->framing == VAULT_CHUNKED)
		vault_puts(out, "0\r\n\r\n");
	b->is_whole = true;
	return VAULT_GOOD;
}

/* A line between chunks, or after the last: none of them goes on. */
static enum vault_verdict take_line(
	struct vault_body *b, struct gate_span in, size_t *ret_used, struct vault_refusal *no)
{
	struct gate_pass pass = { 0 };
	struct gate_why why = { 0 };
	enum gate_http_verdict r;

	if (b->http.state == GATE_HTTP_CHUNK_SIZE)
		r = gate_http_read_chunk_size(&b->http, in, &pass, &why);
	else if (b->http.state == GATE_HTTP_CHUNK_END)
		r = gate_http_read_chunk_end(&b->http, in, &pass, &why);
	else
		r = gate_http_read_trailer(&b->http, in, &pass, &why);
	*ret_used = pass.n;
	if (r == GATE_HTTP_DENY)
		return refuse(no, WIRE_BECAUSE_BAD_ANSWER, why.what.at);
	return r == GATE_HTTP_PASS ? VAULT_GOOD : VAULT_MORE;
}

static bool is_over(const struct vault_body *b)
{
	return (b->framing == VAULT_LENGTH && b->left == 0) ||
	       (b->framing == VAULT_CHUNKED && b->http.state == GATE_HTTP_HEAD);
}

enum vault_verdict vault_body_take(struct vault_body *b, struct gate_span in, size_t *ret_used,
	struct vault_text *out, struct vault_refusal *no)
{
	enum vault_verdict r = VAULT_GOOD;

	*ret_used = 0;
	while (r == VAULT_GOOD && *ret_used < in.n && !is_over(b) && !b->is_whole) {
		struct gate_span rest = { in.at + *ret_used, in.n - *ret_used };
		size_t used = 0;

		if (b->framing == VAULT_CHUNKED && b->http.state != GATE_HTTP_CHUNK_BYTES) {
			r = take_line(b, rest, &used, no);
		} else {
			r = take_bytes(b, rest, &used, out, no);
			if (b->framing == VAULT_CHUNKED && b->http.left == 0)
				b->http.state = GATE_HTTP_CHUNK_END;
			if (r == VAULT_GOOD && used == 0)
				break;
		}
		*ret_used += used;
	}
	if (r == VAULT_BAD)
		return VAULT_BAD;
	if (is_over(b) && !b->is_whole)
		return finish(b, out);
	return b->is_whole ? VAULT_GOOD : VAULT_MORE;
}

enum vault_verdict vault_body_end(
	struct vault_body *b, struct vault_text *out, struct vault_refusal *no)
{
	if (b->is_whole)
		return VAULT_GOOD;
	if (b->framing != VAULT_UNTIL_CLOSE)
		return refuse(no, WIRE_BECAUSE_BAD_ANSWER, "it ends in the middle");
	return finish(b, out);
}
