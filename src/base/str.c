#include "base/str.h"

#include <limits.h>
#include <string.h>

bool str_eq(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

bool str_starts(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *text, const char *suffix)
{
	size_t n = strlen(text), m = strlen(suffix);

	return n >= m && memcmp(text + n - m, suffix, m) == 0;
}

bool str_path_within(const char *inner, const char *outer)
{
	size_t n = strlen(outer);

	if (str_eq(outer, "/"))
		return inner[0] == '/';
	return strncmp(inner, outer, n) == 0 && (inner[n] == '\0' || inner[n] == '/');
}

#define WORD_MAX 63

static unsigned str_least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

unsigned str_distance(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	unsigned rows[3][WORD_MAX + 1];
	unsigned *before = rows[0], *last = rows[1], *row = rows[2];

	if (n > WORD_MAX || m > WORD_MAX)
		return UINT_MAX;
	memset(rows, 0, sizeof(rows));
	for (size_t j = 0; j <= m; j++)
		last[j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		unsigned *spare = before;

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			char x = str_lower(a[i - 1]), y = str_lower(b[j - 1]);

			row[j] = str_least(
				str_least(last[j], row[j - 1]) + 1, last[j - 1] + (x != y));
			if (i > 1 && j > 1 && x == str_lower(b[j - 2]) && str_lower(a[i - 2]) == y)
				row[j] = str_least(row[j], before[j - 2] + 1);
		}
		before = last;
		last = row;
		row = spare;
	}
	return last[m];
}

const char *str_nearest(const char *word, const char *const *candidates, size_t count)
{
	/* About a third of the letters may be slips; more is another word. */
	unsigned best = ((unsigned)strlen(word) + 1) / 3 + 1;
	const char *found = NULL;

	for (size_t i = 0; i < count; i++) {
		unsigned d = str_distance(word, candidates[i]);

		if (d < best) {
			best = d;
			found = candidates[i];
		}
	}
	return found;
}

void str_unescape_octal(char *text)
{
	char *to = text;

	for (; *text; text++) {
		if (text[0] == '\\' && str_is_digit(text[1]) && str_is_digit(text[2]) &&
			str_is_digit(text[3])) {
			*to++ = (char)((text[1] - '0') * 64 + (text[2] - '0') * 8 + text[3] - '0');
			text += 3;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
}

static size_t common_prefix(const char *a, const char *b)
{
	size_t n = 0;

	while (a[n] && a[n] == b[n])
		n++;
	return n;
}

void str_hide_value(char *said, size_t size, const char *given)
{
	static const char shown[] = "…";

	for (const char *g = strchr(given, '='); g; g = strchr(g + 1, '=')) {
		for (char *at = said; (at = strchr(at, '=')) != NULL; at++) {
			bool is_same_name = g == given || (at > said && at[-1] == g[-1]);
			size_t n = is_same_name ? common_prefix(at + 1, g + 1) : 0;
			size_t rest = strlen(at + 1 + n) + 1;

			if (n == 0)
				continue;
			/*
			 * At the end of a full text there may be no room for more than was there.
			 */
			if ((size_t)(at + 1 - said) + sizeof(shown) - 1 + rest > size) {
				memmove(at + 1, at + 1 + n, rest);
				continue;
			}
			memmove(at + sizeof(shown), at + 1 + n, rest);
			memcpy(at + 1, shown, sizeof(shown) - 1);
		}
	}
}
