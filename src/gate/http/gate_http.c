
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "gate/http/gate_host.h"
#include "gate/http/gate_http.h"
#include "gate/http/gate_http_parts.h"

/* --- parts --- */

/* Always false, for `return gate_http_refuse(…)`: the request can be read in two ways. */
static bool gate_http_refuse(struct gate_why *why, const char *what)
{
	*why = (struct gate_why){ WIRE_BECAUSE_BAD_HTTP, { what, strlen(what) } };
	return false;
}

bool gate_span_is(struct gate_span s, const char *lower)
{
	if (strlen(lower) != s.n)
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (str_lower(s.at[i]) != lower[i])
			return false;
	return true;
}

static bool gate_span_is_token(struct gate_span s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!str_is_digit(s.at[i]) && !str_is_letter(s.at[i]) &&
			(!s.at[i] || !strchr("!#$%&'*+-.^_`|~", s.at[i])))
			return false;
	return s.n > 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

struct gate_span gate_span_trim(struct gate_span s)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): there are bytes */
	for (; s.n > 0 && is_blank(s.at[0]); s.n--)
		s.at++;
	while (s.n > 0 && is_blank(s.at[s.n - 1]))
		s.n--;
	return s;
}

enum gate_http_verdict gate_http_read_line(struct gate_span in, size_t max, const char *too_long,
	struct gate_span *ret, struct gate_why *why)
{
	size_t n = in.n < max ? in.n : max;
	const char *end = n > 0 ? memchr(in.at, '\n', n) : NULL;

	if (!end && n < max)
		return GATE_HTTP_MORE;
	if (!end) {
		gate_http_refuse(why, too_long);
		return GATE_HTTP_DENY;
	}
	if (end == in.at || end[-1] != '\r') {
		gate_http_refuse(why, "a line does not end with CR LF");
		return GATE_HTTP_DENY;
	}
	*ret = (struct gate_span){ in.at, (size_t)(end - in.at) - 1 };
	for (size_t i = 0; i < ret->n; i++) {
		unsigned char c = (unsigned char)ret->at[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f) {
			gate_http_refuse(why, "a control byte is in a line");
			return GATE_HTTP_DENY;
		}
	}
	return GATE_HTTP_PASS;
}

bool gate_http_read_field(struct gate_span line, struct gate_field *ret, struct gate_why *why)
{
	const char *colon = line.n > 0 ? memchr(line.at, ':', line.n) : NULL;
	size_t name = colon ? (size_t)(colon - line.at) : 0;

	if (line.n > 0 && is_blank(line.at[0]))
		return gate_http_refuse(why, "a field goes on in a second line");
	ret->name = (struct gate_span){ line.at, name };
	if (!gate_span_is_token(ret->name))
		return gate_http_refuse(why, "a line of its head is not NAME: VALUE");
	ret->value = gate_span_trim((struct gate_span){ colon + 1, line.n - name - 1 });
	return true;
}

/* --- heads --- */

/* A head as far as it is read. */
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

/* True for a field that decides where a request goes, where it ends, or what it becomes. */
static bool gate_http_is_special(struct gate_span name);

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

static bool gate_http_is_special(struct gate_span name)
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

/* --- chunks --- */

/*
 *   SIZE [;NAME[=VALUE]]… CR LF  bytes  CR LF   … and again
 *   0 [;…] CR LF  [FIELD CR LF]…  CR LF         the last one, and trailers
 *
 * Lines pass when they are whole, the bytes between them as they come.
 */

#define MAX_LINE     256
#define MAX_TRAILERS 4096
#define MAX_DIGITS   16

/* --- extensions: nobody needs them, and parsers stumble over them --- */

static size_t skip_token(struct gate_span s, size_t at)
{
	while (at < s.n && gate_span_is_token((struct gate_span){ s.at + at, 1 }))
		at++;
	return at;
}

/* Returns the position behind the closing quote; of the opening one, without it or with escapes. */
static size_t skip_quoted(struct gate_span s, size_t at)
{
	for (size_t i = at + 1; i < s.n && s.at[i] >= 0x20 && s.at[i] <= 0x7e; i++) {
		if (s.at[i] == '"')
			return i + 1;
		if (s.at[i] == '\\')
			break;
	}
	return at;
}

static bool has_good_extensions(struct gate_span s)
{
	size_t at = 0;

	while (at < s.n) {
		size_t name = at + 1, end = skip_token(s, name), value = end + 1;

		if (s.at[at] != ';' || end == name)
			return false;
		at = end;
		if (at == s.n || s.at[at] != '=')
			continue;
		at = value < s.n && s.at[value] == '"' ? skip_quoted(s, value)
						       : skip_token(s, value);
		if (at == value)
			return false;
	}
	return true;
}

/* --- the lines --- */

static bool http_chunk_read_size(struct gate_span line, uint64_t *ret, struct gate_why *why)
{
	size_t n = 0;

	for (*ret = 0; n < line.n && str_hex_digit(str_lower(line.at[n])) >= 0; n++) {
		if (n == MAX_DIGITS)
			return gate_http_refuse(why, "a chunk's size has too many digits");
		*ret = *ret << 4 | (uint64_t)str_hex_digit(str_lower(line.at[n]));
	}
	if (n == 0)
		return gate_http_refuse(why, "a chunk's size is not a number");
	if (*ret > INT64_MAX)
		return gate_http_refuse(why, "a chunk's size is too large");
	if (!has_good_extensions((struct gate_span){ line.at + n, line.n - n }))
		return gate_http_refuse(why, "something odd follows a chunk's size");
	return true;
}

enum gate_http_verdict gate_http_read_chunk_size(
	struct gate_http *h, struct gate_span in, struct gate_pass *ret, struct gate_why *why)
{
	struct gate_span line;
	enum gate_http_verdict r = gate_http_read_line(
		in, MAX_LINE, "the line of a chunk's size is too long", &line, why);

	if (r != GATE_HTTP_PASS)
		return r;
	if (!http_chunk_read_size(line, &h->left, why))
		return GATE_HTTP_DENY;
	h->trailers = 0;
	h->state = h->left ? GATE_HTTP_CHUNK_BYTES : GATE_HTTP_TRAILERS;
	ret->n = GATE_HTTP_LINE_SIZE(line);
	return GATE_HTTP_PASS;
}

enum gate_http_verdict gate_http_read_chunk_end(
	struct gate_http *h, struct gate_span in, struct gate_pass *ret, struct gate_why *why)
{
	struct gate_span line;
	enum gate_http_verdict r =
		gate_http_read_line(in, 2, "a chunk is longer than its size", &line, why);

	if (r != GATE_HTTP_PASS)
		return r;
	h->state = GATE_HTTP_CHUNK_SIZE;
	ret->n = GATE_HTTP_LINE_SIZE(line);
	return GATE_HTTP_PASS;
}

static bool check_trailer(struct gate_span line, struct gate_why *why)
{
	struct gate_field field;

	if (!gate_http_read_field(line, &field, why))
		return false;
	if (gate_http_is_special(field.name))
		return gate_http_refuse(why, "a field after its body belongs into its head");
	return true;
}

enum gate_http_verdict gate_http_read_trailer(
	struct gate_http *h, struct gate_span in, struct gate_pass *ret, struct gate_why *why)
{
	struct gate_span line;
	enum gate_http_verdict r = gate_http_read_line(in, MAX_TRAILERS - h->trailers,
		"the fields after its body are too long", &line, why);

	if (r != GATE_HTTP_PASS)
		return r;
	if (line.n > 0 && !check_trailer(line, why))
		return GATE_HTTP_DENY;
	ret->n = GATE_HTTP_LINE_SIZE(line);
	h->trailers += (uint32_t)ret->n;
	if (line.n == 0)
		h->state = GATE_HTTP_HEAD;
	return GATE_HTTP_PASS;
}

/* --- a connection --- */

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
	/* A client that sends byte by byte cannot make us read the whole head each time. */
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

/* Quotes the client for a terminal and a record. */
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
