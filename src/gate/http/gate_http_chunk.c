#include "base/str.h"
#include "gate/http/gate_http_parts.h"

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

/* Behind the closing quote; where there is none, or anything escaped, at the opening one. */
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
