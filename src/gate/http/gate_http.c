#include "gate/http/gate_http.h"

#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "gate/http/gate_http_parts.h"

#define MAX_METHOD 32

void gate_http_init(struct gate_http *h, const char *name, uint16_t port)
{
	*h = (struct gate_http){ .state = GATE_HTTP_HEAD, .name = name ? name : "", .port = port };
}

/* --- what it is --- */

/* Do the bytes begin with `lower`, as far as they go? */
static bool http_can_be(struct gate_span s, const char *lower)
{
	for (size_t i = 0; i < s.n && lower[i]; i++)
		if (str_lower(s.at[i]) != lower[i])
			return false;
	return true;
}

bool gate_http_is_request(const uint8_t *bytes, size_t n)
{
	struct gate_span rest = { (const char *)bytes, n }, method = { rest.at, 0 };

	while (method.n < n && rest.at[method.n] != ' ')
		if (++method.n > MAX_METHOD || !gate_span_is_token(method))
			return false;
	if (method.n == n)
		return true;
	if (method.n == 0)
		return false;
	rest = (struct gate_span){ rest.at + method.n + 1, n - method.n - 1 };
	if (rest.n == 0 || rest.at[0] == '/' || rest.at[0] == '*')
		return true;
	if (gate_span_is(method, "connect"))
		return str_is_letter(rest.at[0]) || str_is_digit(rest.at[0]) || rest.at[0] == '[';
	return http_can_be(rest, "http://");
}

/* --- what is read in each state --- */

static enum gate_http_verdict http_read_head(
	struct gate_http *h, struct gate_span in, struct gate_pass *ret, struct gate_why *why)
{
	struct gate_body body;
	enum gate_http_verdict r;

	if (!gate_http_is_request((const uint8_t *)in.at, in.n)) {
		gate_http_refuse(why, "what follows the first request is none");
		if (!h->is_later)
			*why = (struct gate_why){ .reason = WIRE_BECAUSE_NOT_HTTP };
		return GATE_HTTP_DENY;
	}
	/* Who sends byte by byte does not make us read all of it each time. */
	if (in.n < GATE_HTTP_MAX_HEAD && in.n >= h->looked &&
		!memchr(in.at + h->looked, '\n', in.n - h->looked)) {
		h->looked = (uint32_t)in.n;
		return GATE_HTTP_MORE;
	}
	r = gate_http_read_head(h, in, &body, why);
	if (r == GATE_HTTP_MORE)
		h->looked = (uint32_t)in.n;
	if (r != GATE_HTTP_PASS)
		return r;
	h->looked = 0;
	h->is_later = true;
	h->state = body.next;
	h->left = body.length;
	*ret = body.pass;
	return GATE_HTTP_PASS;
}

static enum gate_http_verdict read_counted(
	struct gate_http *h, struct gate_span in, struct gate_pass *ret, struct gate_why *why)
{
	(void)why;
	ret->n = h->left < in.n ? (size_t)h->left : in.n;
	h->left -= ret->n;
	if (h->left == 0)
		h->state = h->state == GATE_HTTP_LENGTH ? GATE_HTTP_HEAD : GATE_HTTP_CHUNK_END;
	return GATE_HTTP_PASS;
}

static enum gate_http_verdict read_nothing(
	struct gate_http *h, struct gate_span in, struct gate_pass *ret, struct gate_why *why)
{
	(void)h, (void)in, (void)ret, (void)why;
	return GATE_HTTP_MORE;
}

static enum gate_http_verdict read_anything(
	struct gate_http *h, struct gate_span in, struct gate_pass *ret, struct gate_why *why)
{
	(void)h, (void)why;
	ret->n = in.n;
	return GATE_HTTP_PASS;
}

static enum gate_http_verdict (*const readers[])(
	struct gate_http *h, struct gate_span in, struct gate_pass *ret, struct gate_why *why) = {
	[GATE_HTTP_HEAD] = http_read_head,
	[GATE_HTTP_LENGTH] = read_counted,
	[GATE_HTTP_CHUNK_SIZE] = gate_http_read_chunk_size,
	[GATE_HTTP_CHUNK_BYTES] = read_counted,
	[GATE_HTTP_CHUNK_END] = gate_http_read_chunk_end,
	[GATE_HTTP_TRAILERS] = gate_http_read_trailer,
	[GATE_HTTP_UPGRADE] = read_nothing,
	[GATE_HTTP_OPAQUE] = read_anything,
};

/* What a client said, for a terminal and a record. */
static void print_span(struct gate_span s, char ret[static WIRE_NAME_SIZE])
{
	size_t n = s.n < WIRE_NAME_SIZE ? s.n : WIRE_NAME_SIZE - 1;

	for (size_t i = 0; i < n; i++)
		ret[i] = s.at[i] >= 0x20 && s.at[i] <= 0x7e ? s.at[i] : '?';
	ret[n] = '\0';
}

/* A field of this name is known to nobody. */
static void http_cross_out(uint8_t *bytes, struct gate_part name)
{
	memset(bytes + name.at, 'x', name.n);
}

/* Up to the end of what is there, or with `is_body` of the body. */
static enum gate_http_verdict http_read_on(struct gate_http *h, struct gate_span in, bool is_body,
	size_t *ret_pass, struct gate_why *why, uint8_t *bytes)
{
	enum gate_http_verdict r = GATE_HTTP_MORE;
	size_t passed = 0;

	while (passed < in.n && !(is_body && h->state == GATE_HTTP_HEAD)) {
		struct gate_span rest = { in.at + passed, in.n - passed };
		struct gate_pass pass = { 0 };

		r = readers[h->state](h, rest, &pass, why);
		if (r != GATE_HTTP_PASS)
			break;
		http_cross_out(bytes + passed, pass.upgrade);
		http_cross_out(bytes + passed, pass.settings);
		passed += pass.n;
	}
	*ret_pass = passed;
	return passed > 0 || (is_body && h->state == GATE_HTTP_HEAD) ? GATE_HTTP_PASS : r;
}

static enum gate_http_verdict read_either(struct gate_http *h, uint8_t *bytes, size_t n,
	bool is_body, size_t *ret_pass, enum wire_reason *ret_reason,
	char other[static WIRE_NAME_SIZE])
{
	struct gate_why why = { 0 };
	struct gate_span in = { (const char *)bytes, n };
	enum gate_http_verdict r = http_read_on(h, in, is_body, ret_pass, &why, bytes);

	if (r == GATE_HTTP_DENY) {
		*ret_reason = why.reason;
		print_span(why.what, other);
	}
	return r;
}

enum gate_http_verdict gate_http_read(struct gate_http *h, uint8_t *bytes, size_t n,
	size_t *ret_pass, enum wire_reason *ret_reason, char other[static WIRE_NAME_SIZE])
{
	return read_either(h, bytes, n, false, ret_pass, ret_reason, other);
}

enum gate_http_verdict gate_http_read_body(struct gate_http *h, uint8_t *bytes, size_t n,
	size_t *ret_pass, enum wire_reason *ret_reason, char other[static WIRE_NAME_SIZE])
{
	return read_either(h, bytes, n, true, ret_pass, ret_reason, other);
}

/* --- answers --- */

bool gate_http_hear_server(struct gate_http *h, const uint8_t *bytes, size_t n)
{
	static const char agreed[] = "HTTP/1.1 101";
	const size_t size = sizeof(agreed) - 1;

	if (h->state != GATE_HTTP_UPGRADE)
		return true;
	if (n > 0 && memcmp(bytes, agreed, n < size ? n : size) != 0)
		h->state = GATE_HTTP_HEAD;
	else if (n > size)
		h->state = bytes[size] == ' ' || bytes[size] == '\r' ? GATE_HTTP_OPAQUE
								     : GATE_HTTP_HEAD;
	return h->state != GATE_HTTP_UPGRADE;
}

static const char *phrase(unsigned status)
{
	static const struct {
		unsigned status;
		const char *phrase;
	} phrases[] = {
		{ 400, "Bad Request" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 408, "Request Timeout" },
		{ 502, "Bad Gateway" },
		{ 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
	};

	for (size_t i = 0; i < COUNT_OF(phrases); i++)
		if (phrases[i].status == status)
			return phrases[i].phrase;
	return "Not Passed On";
}

size_t gate_http_write(unsigned status, const char *sentence, char *ret, size_t size)
{
	static const char frame[] = "bawn: \n";
	int n = snprintf(ret, size,
		"HTTP/1.1 %u %s\r\n"
		"Content-Type: text/plain; charset=utf-8\r\n"
		"Content-Length: %zu\r\n"
		"Connection: close\r\n"
		"X-Content-Type-Options: nosniff\r\n"
		"\r\n"
		"bawn: %s\n",
		status, phrase(status), sizeof(frame) - 1 + strlen(sentence), sentence);

	return n > 0 && (size_t)n < size ? (size_t)n : 0;
}
