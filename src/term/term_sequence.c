#include "term/term_sequence.h"

#include <string.h>

#include "base/str.h"

/* Digits, semicolons and colons from *at on; leaves *at behind them. */
static bool read_params(const char *bytes, size_t n, size_t *at, struct term_sequence *ret)
{
	size_t i = *at;
	bool is_part = false;

	if (i == n || !(str_is_digit(bytes[i]) || bytes[i] == ';' || bytes[i] == ':'))
		return true;
	for (ret->count = 1; i < n; i++) {
		uint32_t *param = &ret->params[ret->count - 1];

		if (bytes[i] == ';') {
			if (ret->count == TERM_MAX_PARAMS)
				return false;
			ret->params[ret->count++] = 0;
			is_part = false;
		} else if (bytes[i] == ':') {
			ret->has_colon = is_part = true;
		} else if (!str_is_digit(bytes[i])) {
			break;
		} else if (!is_part) {
			*param = *param * 10 + (uint32_t)(bytes[i] - '0');
			if (*param > TERM_MAX_PARAM)
				return false;
		}
	}
	*at = i;
	return true;
}

static bool is_middle(char c)
{
	return c >= 0x20 && c <= 0x2f;
}

static bool read_csi(const char *bytes, size_t n, struct term_sequence *ret)
{
	size_t at = 2;

	if (at < n && bytes[at] >= '<' && bytes[at] <= '?')
		ret->prefix = bytes[at++];
	if (!read_params(bytes, n, &at, ret))
		return false;
	if (at < n && is_middle(bytes[at]))
		ret->middle = bytes[at++];
	if (at + 1 != n)
		return false;
	ret->final = bytes[at];
	return true;
}

static bool read_osc(const char *bytes, size_t n, struct term_sequence *ret)
{
	size_t at = 2;

	while (at < n && str_is_digit(bytes[at]))
		at++;
	if (at == 2 || at > 2 + 5 || (at < n && bytes[at] != ';'))
		return false;
	for (size_t i = 2; i < at; i++)
		ret->params[0] = ret->params[0] * 10 + (uint32_t)(bytes[i] - '0');
	ret->count = 1;
	at += at < n;
	ret->text = bytes + at;
	ret->n = n - at;
	return true;
}

bool term_sequence_read(const char *bytes, size_t n, struct term_sequence *ret)
{
	/* Not the parameters, most of which nobody will use. */
	memset(ret, 0, offsetof(struct term_sequence, params));
	ret->params[0] = 0;
	if (n < 2)
		return false;
	if (bytes[1] == '[' || bytes[1] == ']')
		ret->kind = bytes[1];
	if (ret->kind == '[')
		return read_csi(bytes, n, ret);
	if (ret->kind == ']')
		return read_osc(bytes, n, ret);
	if (n > 3 || is_middle(bytes[1]) != (n == 3))
		return false;
	ret->middle = n == 3 ? bytes[1] : 0;
	ret->final = bytes[n - 1];
	return true;
}

uint32_t term_sequence_param(const struct term_sequence *s, unsigned i, uint32_t otherwise)
{
	return i < s->count && s->params[i] ? s->params[i] : otherwise;
}
