#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "gate/http/gate_host.h"
#include "gate/http/gate_http_parts.h"

/* What is gathered from line to line. */
struct head {
	const struct gate_http *h;
	struct gate_why *why;
	const char *begin;
	struct gate_span method;
	bool is_1_1;
	bool has_host, has_length, is_chunked;
	bool has_upgrade, connects_upgrade;
	struct gate_part h2c, settings; /* names of fields, to be crossed out */
	uint64_t length;
	struct gate_authority target; /* "": the target names no host */
	struct gate_authority host;
};

/* --- the host --- */

static bool http_head_is_ours(const struct gate_http *h, const struct gate_authority *a)
{
	return (!h->name[0] || gate_host_is(a->host, h->name)) && (!a->port || a->port == h->port);
}

static bool refuse_unnamed(const struct head *head)
{
	*head->why = (struct gate_why){ .reason = WIRE_BECAUSE_NO_HOST };
	return false;
}

/* One of two places where a request names its host: it must be the one that was connected to. */
static bool check_host(struct head *head, struct gate_span text, struct gate_authority *ret)
{
	if (text.n == 0)
		return refuse_unnamed(head);
	if (gate_host_read_authority(text.at, text.n, ret) && http_head_is_ours(head->h, ret))
		return true;
	*head->why = (struct gate_why){ WIRE_BECAUSE_OTHER_HOST, text };
	return false;
}

static bool http_head_read_host(struct head *head, const struct gate_field *field)
{
	if (head->has_host)
		return gate_http_refuse(head->why, "it has two Host fields");
	head->has_host = true;
	return check_host(head, field->value, &head->host);
}

/* --- where it ends --- */

static bool http_head_read_length(struct head *head, const struct gate_field *field)
{
	struct gate_span value = field->value;

	if (head->has_length)
		return gate_http_refuse(head->why, "it has two Content-Length fields");
	if (value.n == 0 || value.n > 19) /* digits of INT64_MAX, which servers can hold */
		return gate_http_refuse(head->why, "its Content-Length is not a number of bytes");
	for (size_t i = 0; i < value.n; i++) {
		if (!str_is_digit(value.at[i]))
			return gate_http_refuse(
				head->why, "its Content-Length is not a number of bytes");
		head->length = head->length * 10 + (uint64_t)(value.at[i] - '0');
	}
	if (head->length > INT64_MAX)
		return gate_http_refuse(head->why, "its Content-Length is too large");
	head->has_length = true;
	return true;
}

static bool http_head_read_coding(struct head *head, const struct gate_field *field)
{
	if (head->is_chunked)
		return gate_http_refuse(head->why, "it has two Transfer-Encoding fields");
	if (!head->is_1_1)
		return gate_http_refuse(head->why, "HTTP/1.0 has no Transfer-Encoding");
	if (!gate_span_is(field->value, "chunked"))
		return gate_http_refuse(head->why, "its Transfer-Encoding is not just 'chunked'");
	head->is_chunked = true;
	return true;
}

/* --- what it turns into --- */

static struct gate_part http_head_find_part(const struct head *head, struct gate_span name)
{
	return (struct gate_part){ (size_t)(name.at - head->begin), name.n };
}

/* More than one offer is a choice, and not ours. */
static bool read_upgrade(struct head *head, const struct gate_field *field)
{
	bool is_first = !head->has_upgrade && !head->h2c.n;

	if (is_first && gate_span_is(field->value, "websocket"))
		head->has_upgrade = true;
	else if (is_first && gate_span_is(field->value, "h2c"))
		head->h2c = http_head_find_part(head, field->name);
	else
		return gate_http_refuse(
			head->why, "it asks for an upgrade to something other than websocket");
	return true;
}

static bool http_head_read_settings(struct head *head, const struct gate_field *field)
{
	if (head->settings.n)
		return gate_http_refuse(head->why, "it has two HTTP2-Settings fields");
	head->settings = http_head_find_part(head, field->name);
	return true;
}

/* A list of fields that the next server takes away, which leaves another request. */
static bool http_head_read_connection(struct head *head, const struct gate_field *field)
{
	struct gate_span value = field->value;

	while (value.n > 0) {
		const char *comma = memchr(value.at, ',', value.n);
		size_t n = comma ? (size_t)(comma - value.at) : value.n;
		struct gate_span word = gate_span_trim((struct gate_span){ value.at, n });

		if (gate_span_is(word, "upgrade"))
			head->connects_upgrade = true;
		/* The excepted one is crossed out before anybody could take it away. */
		else if (!gate_span_is(word, "http2-settings") && gate_http_is_special(word))
			return gate_http_refuse(
				head->why, "its Connection field takes a needed field away");
		value.at += comma ? n + 1 : n;
		value.n -= comma ? n + 1 : n;
	}
	return true;
}

/* --- lines --- */

static const struct {
	const char *name;
	bool (*read)(struct head *head, const struct gate_field *field);
} special[] = {
	{ "connection", http_head_read_connection },
	{ "content-length", http_head_read_length },
	{ "host", http_head_read_host },
	{ "http2-settings", http_head_read_settings },
	{ "transfer-encoding", http_head_read_coding },
	{ "upgrade", read_upgrade },
};

#define SPECIAL_COUNT COUNT_OF(special)

bool gate_http_is_special(struct gate_span name)
{
	for (size_t i = 0; i < SPECIAL_COUNT; i++)
		if (gate_span_is(name, special[i].name))
			return true;
	return false;
}

static bool read_head_field(struct head *head, struct gate_span line)
{
	struct gate_field field;

	if (!gate_http_read_field(line, &field, head->why))
		return false;
	for (size_t i = 0; i < SPECIAL_COUNT; i++)
		if (gate_span_is(field.name, special[i].name))
			return special[i].read(head, &field);
	return true;
}

static bool read_target(struct head *head, struct gate_span target)
{
	static const char scheme[] = "http://";
	const size_t n = sizeof(scheme) - 1;

	for (size_t i = 0; i < target.n; i++)
		if (target.at[i] <= 0x20 || target.at[i] > 0x7e)
			return gate_http_refuse(
				head->why, "its target has a byte that has to be written as %XX");
	if (target.n > 0 && target.at[0] == '/')
		return true;
	if (gate_span_is(target, "*") && head->method.n == 7 &&
		memcmp(head->method.at, "OPTIONS", 7) == 0)
		return true;
	if (target.n <= n || !gate_span_is((struct gate_span){ target.at, n }, scheme))
		return gate_http_refuse(
			head->why, "its target is neither a path nor an http:// URL");
	target = (struct gate_span){ target.at + n, target.n - n };
	for (size_t i = 0; i < target.n; i++)
		if (strchr("/?#", target.at[i]))
			target.n = i;
	return check_host(head, target, &head->target);
}

/* METHOD SP TARGET SP HTTP/1.x */
static bool read_request_line(struct head *head, struct gate_span line)
{
	const char *first = line.n > 0 ? memchr(line.at, ' ', line.n) : NULL;
	const char *last = line.n > 0 ? memrchr(line.at, ' ', line.n) : NULL;
	struct gate_span version;

	if (!first || first == last)
		return gate_http_refuse(head->why, "its first line is not METHOD TARGET HTTP/1.1");
	version = (struct gate_span){ last + 1, (size_t)(line.at + line.n - last) - 1 };
	head->is_1_1 = version.n == 8 && memcmp(version.at, "HTTP/1.1", 8) == 0;
	if (!head->is_1_1 && (version.n != 8 || memcmp(version.at, "HTTP/1.0", 8) != 0))
		return gate_http_refuse(head->why, "its version is neither HTTP/1.1 nor HTTP/1.0");
	head->method = (struct gate_span){ line.at, (size_t)(first - line.at) };
	if (!gate_span_is_token(head->method))
		return gate_http_refuse(head->why, "its method is not a word");
	if (gate_span_is(head->method, "connect"))
		return gate_http_refuse(head->why, "CONNECT makes the server a way to others");
	return read_target(head, (struct gate_span){ first + 1, (size_t)(last - first) - 1 });
}

/*
 * The server's answer decides whether a websocket begins. Which answer is the one to this request
 * is plain only for the first, and where the client's own bytes begin only without a body.
 */
static bool check_upgrade(const struct head *head)
{
	if (!head->connects_upgrade)
		return gate_http_refuse(head->why, "its Connection field has no 'upgrade'");
	if (head->h->is_later)
		return gate_http_refuse(
			head->why, "it asks for a websocket on a connection that was used before");
	if (!head->is_1_1 || head->length || head->is_chunked || head->method.n != 3 ||
		memcmp(head->method.at, "GET", 3) != 0)
		return gate_http_refuse(head->why,
			"it asks for a websocket, and is no GET of HTTP/1.1 without body");
	return true;
}

/* All lines are good; are they together? */
static bool check_whole(const struct head *head)
{
	if (!head->has_host)
		return refuse_unnamed(head);
	/* With a name, both are that one; their ports, where given, are the one connected to. */
	if (head->target.host[0] && !str_eq(head->target.host, head->host.host))
		return gate_http_refuse(head->why, "its target and its Host field differ");
	if (head->has_length && head->is_chunked)
		return gate_http_refuse(
			head->why, "it has both Content-Length and Transfer-Encoding");
	return !head->has_upgrade || check_upgrade(head);
}

enum gate_http_verdict gate_http_read_head(
	const struct gate_http *h, struct gate_span in, struct gate_body *ret, struct gate_why *why)
{
	struct head head = { .h = h, .why = why, .begin = in.at };
	struct gate_span line;
	size_t at = 0;

	do {
		enum gate_http_verdict r =
			gate_http_read_line((struct gate_span){ in.at + at, in.n - at },
				GATE_HTTP_MAX_HEAD - at, "its head is too long", &line, why);

		if (r != GATE_HTTP_PASS)
			return r;
		if (at == 0 ? !read_request_line(&head, line)
			    : line.n > 0 && !read_head_field(&head, line))
			return GATE_HTTP_DENY;
		at += GATE_HTTP_LINE_SIZE(line);
	} while (line.n > 0);
	if (!check_whole(&head))
		return GATE_HTTP_DENY;
	*ret = (struct gate_body){ .length = head.length, .pass = { at, head.h2c, head.settings } };
	if (head.has_upgrade)
		ret->next = GATE_HTTP_UPGRADE;
	else if (head.is_chunked)
		ret->next = GATE_HTTP_CHUNK_SIZE;
	else
		ret->next = head.length ? GATE_HTTP_LENGTH : GATE_HTTP_HEAD;
	return GATE_HTTP_PASS;
}
