#include "base/base64.h"

#include <errno.h>
#include <string.h>

#define NONE 0xff

static const char standard[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url_safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* --- writing --- */

/* Three bytes, or what is left of them, as four characters of which the last may be padding. */
static void print_group(const uint8_t *bytes, size_t n, const char *alphabet, char ret[static 4])
{
	uint32_t bits = (uint32_t)bytes[0] << 16;

	if (n > 1)
		bits |= (uint32_t)bytes[1] << 8;
	if (n > 2)
		bits |= bytes[2];
	ret[0] = alphabet[bits >> 18];
	ret[1] = alphabet[bits >> 12 & 63];
	ret[2] = n > 1 ? alphabet[bits >> 6 & 63] : '=';
	ret[3] = n > 2 ? alphabet[bits & 63] : '=';
}

void base64_add(struct buf *out, const void *bytes, size_t n, bool is_url)
{
	const char *alphabet = is_url ? url_safe : standard;
	const uint8_t *p = bytes;
	char text[4096];
	size_t len = 0;

	for (; n >= 3; p += 3, n -= 3) {
		print_group(p, 3, alphabet, text + len);
		len += 4;
		if (len == sizeof(text)) {
			buf_add(out, text, len);
			len = 0;
		}
	}
	if (n) {
		print_group(p, n, alphabet, text + len);
		len += is_url ? n + 1 : 4;
	}
	buf_add(out, text, len);
}

/* --- reading --- */

/* What each character stands for, in both alphabets. */
static void list_values(uint8_t ret[static 256])
{
	memset(ret, NONE, 256);
	for (uint8_t i = 0; i < 64; i++) {
		ret[(unsigned char)standard[i]] = i;
		ret[(unsigned char)url_safe[i]] = i;
	}
}

static bool has_either(const char *text, size_t n, char a, char b)
{
	return memchr(text, a, n) || memchr(text, b, n);
}

/* How many characters are in front of the padding; -EINVAL where that is not as it has to be. */
static ssize_t find_end(const char *text, size_t n)
{
	bool is_standard = has_either(text, n, '+', '/');
	size_t end = n;

	if (is_standard && has_either(text, n, '-', '_'))
		return -EINVAL;
	if (n % 4 == 0 && n > 0)
		end -= text[n - 1] != '=' ? 0 : text[n - 2] != '=' ? 1 : 2;
	if (end % 4 == 1 || (is_standard && n % 4 != 0))
		return -EINVAL;
	return (ssize_t)end;
}

/* The last two or three characters: one byte or two, and bits that have to be 0. */
static ssize_t read_rest(const uint8_t *values, const char *text, size_t n, uint8_t *ret)
{
	uint32_t bits = 0;
	bool is_good = true;

	for (size_t i = 0; i < n; i++) {
		uint8_t value = values[(unsigned char)text[i]];

		is_good = is_good && value != NONE;
		bits |= (uint32_t)(value & 63) << (18 - 6 * i);
	}
	if (!is_good || bits & (n == 2 ? 0xffff : 0xff))
		return -EINVAL;
	ret[0] = (uint8_t)(bits >> 16);
	if (n == 3)
		ret[1] = (uint8_t)(bits >> 8);
	return (ssize_t)n - 1;
}

ssize_t base64_read(const char *text, size_t n, uint8_t *ret)
{
	ssize_t end = n ? find_end(text, n) : 0, rest;
	uint8_t values[256], all = 0;
	size_t len = 0, whole;

	if (end < 0)
		return end;
	list_values(values);
	whole = (size_t)end / 4 * 4;
	for (size_t i = 0; i < whole; i += 4) {
		uint8_t a = values[(unsigned char)text[i]], b = values[(unsigned char)text[i + 1]],
			c = values[(unsigned char)text[i + 2]],
			d = values[(unsigned char)text[i + 3]];

		all |= a | b | c | d;
		ret[len++] = (uint8_t)(a << 2 | b >> 4);
		ret[len++] = (uint8_t)(b << 4 | c >> 2);
		ret[len++] = (uint8_t)(c << 6 | d);
	}
	/* Only what stands for nothing has a bit above the six. */
	if (all > 63)
		return -EINVAL;
	if (whole == (size_t)end)
		return (ssize_t)len;
	rest = read_rest(values, text + whole, (size_t)end - whole, ret + len);
	return rest < 0 ? rest : (ssize_t)len + rest;
}
