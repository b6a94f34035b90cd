#include "gate/http/gate_http_parts.h"

#include <string.h>

#include "base/str.h"

bool gate_http_refuse(struct gate_why *why, const char *what)
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

bool gate_span_is_token(struct gate_span s)
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
