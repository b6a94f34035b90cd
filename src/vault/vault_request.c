#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "vault/vault_http.h"

#define MAX_FIELDS 256

/* --- what is shared by requests and answers --- */

void vault_put(struct vault_text *t, const char *bytes, size_t n)
{
	if (n > t->max - t->n)
		t->failed = true;
	if (t->failed)
		return;
	memcpy(t->at + t->n, bytes, n);
	t->n += n;
}

void vault_puts(struct vault_text *t, const char *text)
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

/* What follows "http://HOST"; that HOST is ours was seen to. */
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

/* Is the word in a list, with commas between its words? */
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

/* Does a Connection field of this head name it? */
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
