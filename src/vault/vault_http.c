#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "vault/vault_http.h"

/* --- keys --- */

/*
 * Looking for the key by a sum over as many bytes as it has (Karp and Rabin), which costs the same
 * for every byte: how long it takes says nothing about how much of the key was met. Bytes are
 * compared only where the sums are equal, and that is where the key is.
 */

/* Any odd number that does not repeat itself would do. */
#define BASE 0x9e3779b97f4a7c15ULL

/* True if a key may have this byte. */
static bool vault_is_of_key(char c)
{
	return c > 0x20 && c < 0x7f;
}

void vault_prepare_key(struct vault_secret *s)
{
	s->sum = 0;
	s->leaving = 1;
	for (size_t i = 0; i < s->key.n; i++) {
		s->sum = s->sum * BASE + (unsigned char)s->key.at[i];
		s->leaving *= BASE;
	}
}

static bool vault_is_sought(const struct vault_secret *s)
{
	return s->key.n >= VAULT_MIN_SOUGHT;
}

/* The byte at `i` of both, one behind the other. */
static char byte_at(struct gate_span before, struct gate_span bytes, size_t i)
{
	return i < before.n ? before.at[i] : bytes.at[i - before.n];
}

/* Do they have the key, up to `end`? */
static bool seek_is_key(
	const struct vault_secret *s, struct gate_span before, struct gate_span bytes, size_t end)
{
	for (size_t i = 0; i < s->key.n; i++)
		if (byte_at(before, bytes, end - s->key.n + i) != s->key.at[i])
			return false;
	return true;
}

/*
 * Where in `bytes` the first key ends, or 0. It may have begun in `before`: at least the last `run`
 * of the bytes that have come. The time it takes does not depend on the key.
 */
static size_t vault_seek(struct vault_seek *k, const struct vault_secret *s,
	struct gate_span before, struct gate_span bytes)
{
	const size_t n = s->key.n;

	if (!vault_is_sought(s))
		return 0;
	for (size_t i = 0; i < bytes.n; i++) {
		if (!vault_is_of_key(bytes.at[i])) {
			*k = (struct vault_seek){ 0 };
			continue;
		}
		k->sum = k->sum * BASE + (unsigned char)bytes.at[i];
		if (k->run == n)
			k->sum -= s->leaving *
				  (unsigned char)byte_at(before, bytes, before.n + i - n);
		else
			k->run++;
		if (k->run == n && k->sum == s->sum &&
			seek_is_key(s, before, bytes, before.n + i + 1))
			return i + 1;
	}
	return 0;
}

/* --- requests --- */

#define MAX_FIELDS 256

/* --- what is shared by requests and answers --- */

static void vault_put(struct vault_text *t, const char *bytes, size_t n)
{
	if (n > t->max - t->n)
		t->failed = true;
	if (t->failed)
		return;
	memcpy(t->at + t->n, bytes, n);
	t->n += n;
}

static void vault_puts(struct vault_text *t, const char *text)
{
	vault_put(t, text, strlen(text));
}

/* --- refusing --- */

static enum vault_verdict request_refuse(
	struct vault_refusal *no, unsigned status, enum wire_reason reason, struct gate_span what)
{
	size_t n = what.n < sizeof(no->other) ? what.n : sizeof(no->other) - 1;

	no->status = status;
	no->reason = reason;
	for (size_t i = 0; i < n; i++)
		no->other[i] = what.at[i] >= 0x20 && what.at[i] <= 0x7e ? what.at[i] : '?';
	no->other[n] = '\0';
	return VAULT_BAD;
}

static enum vault_verdict refuse_as(struct vault_refusal *no, const char *what)
{
	return request_refuse(
		no, 400, WIRE_BECAUSE_BAD_HTTP, (struct gate_span){ what, strlen(what) });
}

/* --- where it goes --- */

struct line {
	struct gate_span method, target;
};

/* It was read before, and is METHOD SP TARGET SP HTTP/1.x. */
static bool split_line(struct gate_span line, struct line *ret)
{
	const char *first = memchr(line.at, ' ', line.n), *last = memrchr(line.at, ' ', line.n);

	ret->method = (struct gate_span){ line.at, (size_t)(first - line.at) };
	ret->target = (struct gate_span){ first + 1, (size_t)(last - first) - 1 };
	return memcmp(last + 1, "HTTP/1.1", strlen("HTTP/1.1")) == 0;
}

/* The path behind "http://HOST", once HOST is known to be ours. */
static struct gate_span skip_host(struct gate_span target)
{
	static const char scheme[] = "http://";
	size_t at = sizeof(scheme) - 1;

	if (target.at[0] == '/' || target.n <= at)
		return target;
	while (at < target.n && !strchr("/?#", target.at[at]))
		at++;
	return (struct gate_span){ target.at + at, target.n - at };
}

/* Takes "/NAME" off the front of the target, and finds out whose name that is. */
static bool request_take_name(struct gate_span *target, const struct vault_secret *secrets,
	uint32_t count, struct gate_span *ret_name, uint32_t *ret)
{
	size_t n = 1;

	*ret_name = (struct gate_span){ target->at, 0 };
	if (target->n == 0 || target->at[0] != '/')
		return false;
	while (n < target->n && !strchr("/?#", target->at[n]))
		n++;
	*ret_name = (struct gate_span){ target->at + 1, n - 1 };
	*target = (struct gate_span){ target->at + n, target->n - n };
	for (*ret = 0; *ret < count; (*ret)++)
		if (strlen(secrets[*ret].name) == ret_name->n &&
			memcmp(secrets[*ret].name, ret_name->at, ret_name->n) == 0)
			return true;
	return false;
}

/* --- fields --- */

/* Case does not matter, and neither does '_' for '-': some servers take them for the same. */
static bool request_is_named(struct gate_span name, const char *lower)
{
	if (strlen(lower) != name.n)
		return false;
	for (size_t i = 0; i < name.n; i++) {
		char c = name.at[i] == '_' ? '-' : str_lower(name.at[i]);

		if (c != (lower[i] == '_' ? '-' : lower[i]))
			return false;
	}
	return true;
}

/*
 * Does not go on: keys, which only the vault adds; what is between two neighbours; what is written
 * anew; and the wish for an answer that cannot be looked into.
 */
static bool is_dropped(struct gate_span name, const struct vault_secret *secret)
{
	static const char *const dropped[] = { "authorization", "x-api-key", "x-goog-api-key",
		"api-key", "host", "connection", "keep-alive", "te", "trailer", "upgrade",
		"http2-settings", "accept-encoding" };
	static const char proxy[] = "proxy-";

	for (size_t i = 0; i < COUNT_OF(dropped); i++)
		if (request_is_named(name, dropped[i]))
			return true;
	if (name.n >= sizeof(proxy) - 1 &&
		request_is_named((struct gate_span){ name.at, sizeof(proxy) - 1 }, proxy))
		return true;
	return request_is_named(name, secret->header);
}

/* The first line was read; what is left of a head. */
struct fields {
	struct gate_span rest;
	struct gate_field field;
};

/* False: that was the last one. They were all read before, and are good. */
static bool next_field(struct fields *f)
{
	struct gate_why why;
	struct gate_span line;

	if (gate_http_read_line(f->rest, f->rest.n, "", &line, &why) != GATE_HTTP_PASS || !line.n ||
		!gate_http_read_field(line, &f->field, &why))
		return false;
	f->rest.at += GATE_HTTP_LINE_SIZE(line);
	f->rest.n -= GATE_HTTP_LINE_SIZE(line);
	return true;
}

/* True if the word is in a comma-separated list. */
static bool request_has_word(struct gate_span list, struct gate_span word)
{
	while (list.n > 0) {
		const char *comma = memchr(list.at, ',', list.n);
		size_t n = comma ? (size_t)(comma - list.at) : list.n;
		struct gate_span one = gate_span_trim((struct gate_span){ list.at, n });

		if (one.n == word.n && strncasecmp(one.at, word.at, one.n) == 0)
			return true;
		list.at += comma ? n + 1 : n;
		list.n -= comma ? n + 1 : n;
	}
	return false;
}

/* True if a Connection field of this head names the field. */
static bool is_connected(struct fields all, struct gate_span word)
{
	while (next_field(&all))
		if (request_is_named(all.field.name, "connection") &&
			request_has_word(all.field.value, word))
			return true;
	return false;
}

static bool has_many(struct fields all)
{
	size_t n = 0;

	while (next_field(&all))
		if (++n > MAX_FIELDS)
			return true;
	return false;
}

/* Would a server that takes '_' for '-' find a second word in it on where the body ends? */
static bool has_odd_framing(struct fields all)
{
	static const char *const names[] = { "content-length", "transfer-encoding" };

	while (next_field(&all))
		for (size_t i = 0; i < COUNT_OF(names); i++)
			if (request_is_named(all.field.name, names[i]) &&
				!gate_span_is(all.field.name, names[i]))
				return true;
	return false;
}

/* --- as it goes on --- */

static void request_put_line(struct vault_text *out, const struct line *line, struct gate_span path,
	const struct vault_secret *s)
{
	char port[8] = "";

	if (s->port != 443)
		snprintf(port, sizeof(port), ":%u", s->port);
	vault_put(out, line->method.at, line->method.n);
	vault_puts(out, path.n && path.at[0] == '/' ? " " : " /");
	vault_put(out, path.at, path.n);
	vault_puts(out, " HTTP/1.1\r\nhost: ");
	vault_puts(out, s->host);
	vault_puts(out, port);
	vault_puts(out, "\r\naccept-encoding: identity\r\n");
	vault_puts(out, s->header);
	vault_puts(out, s->scheme[0] ? ": " : ":");
	vault_puts(out, s->scheme);
	vault_puts(out, " ");
	vault_put(out, s->key.at, s->key.n);
	vault_puts(out, "\r\n");
}

static void put_fields(struct vault_text *out, struct fields all, const struct vault_secret *s)
{
	struct fields f = all;

	while (next_field(&f)) {
		if (is_dropped(f.field.name, s) || is_connected(all, f.field.name))
			continue;
		vault_put(out, f.field.name.at, f.field.name.n);
		vault_puts(out, ": ");
		vault_put(out, f.field.value.at, f.field.value.n);
		vault_puts(out, "\r\n");
	}
	vault_puts(out, "\r\n");
}

static bool is_method(const struct line *line, const char *method)
{
	return line->method.n == strlen(method) &&
	       memcmp(line->method.at, method, line->method.n) == 0;
}

/* The head is whole and good; is it for a secret? */
static enum vault_verdict rewrite(struct gate_span head, const struct vault_secret *secrets,
	uint32_t count, struct vault_request *ret, struct vault_text *out, struct vault_refusal *no)
{
	static const struct gate_span close = { "close", 5 };
	struct gate_span first = { head.at,
		(size_t)((const char *)memchr(head.at, '\r', head.n) - head.at) };
	struct fields all = { .rest = { head.at + GATE_HTTP_LINE_SIZE(first),
				      head.n - GATE_HTTP_LINE_SIZE(first) } };
	struct gate_span path, name;
	struct line line;

	if (!split_line(first, &line))
		return refuse_as(no, "secrets are used by HTTP/1.1");
	if (is_method(&line, "TRACE"))
		return refuse_as(no, "TRACE has everything sent back");
	if (has_many(all))
		return refuse_as(no, "its head has too many fields");
	if (has_odd_framing(all))
		return refuse_as(no, "it says in a field with '_' for '-' where its body ends");
	path = skip_host(line.target);
	if (!request_take_name(&path, secrets, count, &name, &ret->secret))
		return request_refuse(no, 404, WIRE_BECAUSE_NO_SECRET, name);
	ret->is_head = is_method(&line, "HEAD");
	ret->closes = is_connected(all, close);
	request_put_line(out, &line, path, &secrets[ret->secret]);
	put_fields(out, all, &secrets[ret->secret]);
	return out->failed ? refuse_as(no, "its head is too long") : VAULT_GOOD;
}

enum vault_verdict vault_read_request(struct gate_http *h, struct gate_span in,
	const struct vault_secret *secrets, uint32_t count, struct vault_request *ret,
	struct vault_text *out, struct vault_refusal *no)
{
	struct gate_body body;
	struct gate_why why = { 0 };
	enum gate_http_verdict r;

	*ret = (struct vault_request){ 0 };
	if (!gate_http_is_request((const uint8_t *)in.at, in.n))
		return request_refuse(no, 400, WIRE_BECAUSE_NOT_HTTP, (struct gate_span){ "", 0 });
	r = gate_http_read_head(h, in, &body, &why);
	if (r == GATE_HTTP_MORE)
		return VAULT_MORE;
	if (r == GATE_HTTP_DENY)
		return request_refuse(no, 400, why.reason, why.what);
	if (body.next == GATE_HTTP_UPGRADE)
		return refuse_as(no, "it asks for a websocket, which no key is added to");
	ret->size = body.pass.n;
	if (rewrite((struct gate_span){ in.at, body.pass.n }, secrets, count, ret, out, no) ==
		VAULT_BAD)
		return VAULT_BAD;
	h->state = body.next;
	h->left = body.length;
	h->trailers = 0;
	return VAULT_GOOD;
}

/* --- answers --- */

#define MAX_DIGITS 19 /* of INT64_MAX */

/* An answer's head as far as it is read. */
struct head {
	struct vault_answer *answer;
	struct vault_refusal *no;
	bool is_1_1, has_length, is_chunked, has_close, has_keep_alive;
};

static enum vault_verdict answer_refuse(struct vault_refusal *no, const char *what)
{
	no->reason = WIRE_BECAUSE_BAD_ANSWER;
	no->status = 502;
	snprintf(no->other, sizeof(no->other), "%s", what);
	return VAULT_BAD;
}

static bool answer_fail(const struct head *head, const char *what)
{
	answer_refuse(head->no, what);
	return false;
}

/* HTTP/1.x SP NNN [SP …] */
static bool answer_read_status(struct head *head, struct gate_span line)
{
	static const char version[] = "HTTP/1.";
	const size_t n = sizeof(version) - 1;

	if (line.n < n + 5 || memcmp(line.at, version, n) != 0 ||
		(line.at[n] != '0' && line.at[n] != '1') || line.at[n + 1] != ' ' ||
		(line.n > n + 5 && line.at[n + 5] != ' '))
		return answer_fail(head, "it does not begin as HTTP/1.1 does");
	head->is_1_1 = line.at[n] == '1';
	for (size_t i = n + 2; i < n + 5; i++) {
		if (!str_is_digit(line.at[i]))
			return answer_fail(head, "its status is not a number");
		head->answer->status = head->answer->status * 10 + (unsigned)(line.at[i] - '0');
	}
	if (head->answer->status < 100 || head->answer->status == 101)
		return answer_fail(head, "its status is one that nobody asked for");
	return true;
}

static bool answer_read_length(struct head *head, struct gate_span value)
{
	uint64_t length = 0;

	if (value.n == 0 || value.n > MAX_DIGITS)
		return answer_fail(head, "its length is not a number");
	for (size_t i = 0; i < value.n; i++) {
		if (!str_is_digit(value.at[i]))
			return answer_fail(head, "its length is not a number");
		length = length * 10 + (uint64_t)(value.at[i] - '0');
	}
	if (length > INT64_MAX || (head->has_length && length != head->answer->length))
		return answer_fail(head, "it has two lengths");
	head->has_length = true;
	head->answer->length = length;
	return true;
}

static bool answer_read_coding(struct head *head, struct gate_span value)
{
	if (head->is_chunked || !gate_span_is(value, "chunked"))
		return answer_fail(head, "its Transfer-Encoding is not just 'chunked'");
	head->is_chunked = true;
	return true;
}

static bool answer_read_connection(struct head *head, struct gate_span value)
{
	while (value.n > 0) {
		const char *comma = memchr(value.at, ',', value.n);
		size_t n = comma ? (size_t)(comma - value.at) : value.n;
		struct gate_span word = gate_span_trim((struct gate_span){ value.at, n });

		head->has_close |= gate_span_is(word, "close");
		head->has_keep_alive |= gate_span_is(word, "keep-alive");
		value.at += comma ? n + 1 : n;
		value.n -= comma ? n + 1 : n;
	}
	return true;
}

/* Between two neighbours: read here, and written anew for the client. */
static const struct {
	const char *name;
	bool (*read)(struct head *head, struct gate_span value);
} own[] = {
	{ "content-length", answer_read_length }, { "transfer-encoding", answer_read_coding },
	{ "connection", answer_read_connection }, { "keep-alive", NULL },
	{ "proxy-authenticate", NULL }, { "proxy-connection", NULL }, { "te", NULL },
	{ "trailer", NULL }, { "upgrade", NULL },
	{ "alt-svc", NULL }, /* another way to the same server, which the cage does not have */
};

static bool read_field(struct head *head, struct gate_span line, struct vault_text *out)
{
	struct gate_field field;
	struct gate_why why;

	if (!gate_http_read_field(line, &field, &why))
		return answer_fail(head, "a line of its head is not NAME: VALUE");
	for (size_t i = 0; i < COUNT_OF(own); i++)
		if (gate_span_is(field.name, own[i].name))
			return !own[i].read || own[i].read(head, field.value);
	vault_put(out, line.at, line.n);
	vault_puts(out, "\r\n");
	return true;
}

/* Sets how the body ends. */
static bool frame(struct head *head, bool is_head)
{
	struct vault_answer *a = head->answer;

	if (head->is_chunked && head->has_length)
		return answer_fail(head, "it has both Content-Length and Transfer-Encoding");
	a->is_interim = a->status < 200;
	a->closes = head->has_close || (!head->is_1_1 && !head->has_keep_alive);
	if (is_head || a->is_interim || a->status == 204 || a->status == 304)
		a->framing = VAULT_NO_BODY;
	else if (head->is_chunked)
		a->framing = VAULT_CHUNKED;
	else if (head->has_length)
		a->framing = a->length ? VAULT_LENGTH : VAULT_NO_BODY;
	else
		a->framing = VAULT_UNTIL_CLOSE;
	return true;
}

static void put_framing(const struct head *head, bool closes, struct vault_text *out)
{
	const struct vault_answer *a = head->answer;
	char length[64];

	snprintf(length, sizeof(length), "content-length: %" PRIu64 "\r\n", a->length);
	if (head->has_length && !a->is_interim && a->status != 204)
		vault_puts(out, length);
	if (a->framing == VAULT_CHUNKED)
		vault_puts(out, "transfer-encoding: chunked\r\n");
	if ((closes || a->framing == VAULT_UNTIL_CLOSE) && !a->is_interim)
		vault_puts(out, "connection: close\r\n");
	vault_puts(out, "\r\n");
}

/* Makes the key in it unreadable; true if it was there. */
static bool answer_cross_out(char *at, size_t n, const struct vault_secret *secret)
{
	static const struct gate_span nothing = { "", 0 };
	bool is_found = false;
	size_t end;

	do {
		struct vault_seek seek = { 0 };

		end = vault_seek(&seek, secret, nothing, (struct gate_span){ at, n });
		if (end)
			memset(at + end - secret->key.n, '*', secret->key.n);
		is_found |= end > 0;
		at += end;
		n -= end;
	} while (end);
	return is_found;
}

enum vault_verdict vault_read_answer(struct gate_span in, const struct vault_secret *secret,
	bool is_head, bool closes, struct vault_answer *ret, struct vault_text *out,
	struct vault_refusal *no)
{
	struct head head = { .answer = ret, .no = no };
	size_t begin = out->n;
	struct gate_span line;
	struct gate_why why;

	*ret = (struct vault_answer){ 0 };
	do {
		struct gate_span rest = { in.at + ret->size, in.n - ret->size };
		enum gate_http_verdict r = gate_http_read_line(
			rest, VAULT_MAX_ANSWER - ret->size, "its head is too long", &line, &why);

		if (r == GATE_HTTP_MORE) {
			out->n = begin;
			return VAULT_MORE;
		}
		if (r == GATE_HTTP_DENY)
			return answer_refuse(no, why.what.at);
		if (ret->size == 0) {
			if (!answer_read_status(&head, line))
				return VAULT_BAD;
			vault_puts(out, "HTTP/1.1");
			vault_put(out, line.at + 8, line.n - 8);
			vault_puts(out, "\r\n");
		} else if (line.n > 0 && !read_field(&head, line, out)) {
			return VAULT_BAD;
		}
		ret->size += GATE_HTTP_LINE_SIZE(line);
	} while (line.n > 0);
	if (!frame(&head, is_head))
		return VAULT_BAD;
	put_framing(&head, closes, out);
	if (out->failed)
		return answer_refuse(no, "its head is too long");
	ret->has_echo = answer_cross_out(out->at + begin, out->n - begin, secret);
	return VAULT_GOOD;
}

/* --- bodies --- */

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

/* Returns how many of the last bytes, buffered and new, can be the beginning of a key. */
static size_t count_held(const struct vault_body *b, struct gate_span bytes)
{
	size_t max = max_held(b->secret), n = 0;

	while (n < max && n < bytes.n && vault_is_of_key(bytes.at[bytes.n - 1 - n]))
		n++;
	if (n < bytes.n)
		return n;
	return b->held_count < max - n ? n + b->held_count : max;
}

/* Drops the first `n` buffered bytes and appends these. */
static void body_hold(struct vault_body *b, size_t n, struct gate_span bytes)
{
	b->held_count -= n;
	memmove(b->held, b->held + n, b->held_count);
	memcpy(b->held + b->held_count, bytes.at, bytes.n);
	b->held_count += bytes.n;
}

/* --- writing --- */

/* Passes the held bytes and then these, but for the last `keep`, which are held from now on. */
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

/* Returns how many of these bytes belong to the body. */
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

/* The held bytes were not the key. */
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
