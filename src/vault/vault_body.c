#include <stdio.h>
#include <string.h>

#include "vault/vault_http.h"

/* Around the bytes of a chunk: its size in hex, and two ends of lines. */
#define AROUND 24

/* The most that is held is a multiple of it: that can be seen, and the key's length should not. */
#define HELD_STEP 256

_Static_assert(WIRE_MAX_KEY % HELD_STEP == 0, "what is held has a place");

/* --- holding back --- */

static size_t max_held(const struct vault_secret *s)
{
	return vault_is_sought(s) ? (s->key.n + HELD_STEP - 1) / HELD_STEP * HELD_STEP : 0;
}

/* So many at the end of what is held, and of these, could go on to be a key. */
static size_t count_held(const struct vault_body *b, struct gate_span bytes)
{
	size_t max = max_held(b->secret), n = 0;

	while (n < max && n < bytes.n && vault_is_of_key(bytes.at[bytes.n - 1 - n]))
		n++;
	if (n < bytes.n)
		return n;
	return b->held_count < max - n ? n + b->held_count : max;
}

/* Of what is held the first `n` are gone, and these come behind the others. */
static void body_hold(struct vault_body *b, size_t n, struct gate_span bytes)
{
	b->held_count -= n;
	memmove(b->held, b->held + n, b->held_count);
	memcpy(b->held + b->held_count, bytes.at, bytes.n);
	b->held_count += bytes.n;
}

/* --- writing --- */

/* What was held, and then these; but for the last `keep`, which are held from now on. */
static void put_bytes(
	struct vault_body *b, struct gate_span bytes, size_t keep, struct vault_text *out)
{
	size_t n = b->held_count + bytes.n - keep;
	size_t of_held = n < b->held_count ? n : b->held_count, of_bytes = n - of_held;
	char size[AROUND];

	snprintf(size, sizeof(size), "%zx\r\n", n);
	if (n && b->framing == VAULT_CHUNKED)
		vault_puts(out, size);
	vault_put(out, b->held, of_held);
	vault_put(out, bytes.at, of_bytes);
	if (n && b->framing == VAULT_CHUNKED)
		vault_puts(out, "\r\n");
	body_hold(b, of_held, (struct gate_span){ bytes.at + of_bytes, bytes.n - of_bytes });
}

static enum vault_verdict body_refuse(
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
static size_t body_fit(const struct vault_body *b, size_t n, const struct vault_text *out)
{
	size_t room = out->max - out->n, taken = AROUND + b->held_count;

	if (room <= taken)
		return 0;
	return n < room - taken ? n : room - taken;
}

static enum vault_verdict take_bytes(struct vault_body *b, struct gate_span in, size_t *ret_used,
	struct vault_text *out, struct vault_refusal *no)
{
	size_t n = body_fit(b, count_own(b, in.n), out);
	struct gate_span bytes = { in.at, n }, before = { b->held, b->held_count };

	*ret_used = n;
	if (vault_seek(&b->seek, b->secret, before, bytes))
		return body_refuse(no, WIRE_BECAUSE_ECHO, "a body");
	put_bytes(b, bytes, count_held(b, bytes), out);
	if (b->framing == VAULT_LENGTH)
		b->left -= n;
	else if (b->framing == VAULT_CHUNKED)
		b->http.left -= n;
	return VAULT_GOOD;
}

/* What was held back was not the key after all. */
static enum vault_verdict body_finish(struct vault_body *b, struct vault_text *out)
{
	if (out->max - out->n < b->held_count + (size_t)2 * AROUND)
		return VAULT_MORE;
	put_bytes(b, (struct gate_span){ "", 0 }, 0, out);
	if (b->framing == VAULT_CHUNKED)
		vault_puts(out, "0\r\n\r\n");
	b->is_whole = true;
	return VAULT_GOOD;
}

/* A line between chunks, or after the last: none of them goes on. */
static enum vault_verdict body_take_line(
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
		return body_refuse(no, WIRE_BECAUSE_BAD_ANSWER, why.what.at);
	return r == GATE_HTTP_PASS ? VAULT_GOOD : VAULT_MORE;
}

static bool body_is_over(const struct vault_body *b)
{
	return (b->framing == VAULT_LENGTH && b->left == 0) ||
	       (b->framing == VAULT_CHUNKED && b->http.state == GATE_HTTP_HEAD);
}

enum vault_verdict vault_body_take(struct vault_body *b, struct gate_span in, size_t *ret_used,
	struct vault_text *out, struct vault_refusal *no)
{
	enum vault_verdict r = VAULT_GOOD;

	*ret_used = 0;
	while (r == VAULT_GOOD && *ret_used < in.n && !body_is_over(b) && !b->is_whole) {
		struct gate_span rest = { in.at + *ret_used, in.n - *ret_used };
		size_t used = 0;

		if (b->framing == VAULT_CHUNKED && b->http.state != GATE_HTTP_CHUNK_BYTES) {
			r = body_take_line(b, rest, &used, no);
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
	if (body_is_over(b) && !b->is_whole)
		return body_finish(b, out);
	return b->is_whole ? VAULT_GOOD : VAULT_MORE;
}

enum vault_verdict vault_body_end(
	struct vault_body *b, struct vault_text *out, struct vault_refusal *no)
{
	if (b->is_whole)
		return VAULT_GOOD;
	/* All of it has come, and only its end found no room until now. */
	if (body_is_over(b))
		return body_finish(b, out);
	if (b->framing != VAULT_UNTIL_CLOSE)
		return body_refuse(no, WIRE_BECAUSE_BAD_ANSWER, "it ends in the middle");
	return body_finish(b, out);
}
