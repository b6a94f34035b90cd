#pragma once

#include <stdbool.h>
#include <stddef.h>

static inline bool str_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool str_is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Ignores the locale: only ASCII letters change. */
static inline char str_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* Returns the value of a lower-case hex digit, or -1. */
static inline int str_hex_digit(char c)
{
	if (str_is_digit(c))
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool str_eq(const char *a, const char *b);
bool str_starts(const char *text, const char *prefix);
bool str_ends(const char *text, const char *suffix);

/*
 * True if `inner` is `outer` or below it. Both must be normalised; all absolute paths are in "/".
 */
bool str_path_within(const char *inner, const char *outer);

/*
 * Replaces in the message `said`, a buffer of `size` bytes, what follows the '=' in `given`, as it
 * may be a key. Also finds it where the message was cut off in the middle of it.
 */
void str_hide_value(char *said, size_t size, const char *given);

/* Decodes \040 and the like in place, as the kernel escapes paths in /proc. */
void str_unescape_octal(char *text);

/*
 * Returns the edit distance of two words: letters added, dropped, changed or swapped with a
 * neighbour. Ignores case. Words longer than 63 bytes are infinitely far from any other.
 */
unsigned str_distance(const char *a, const char *b);

/* Returns the candidate that `word` is probably a typo of, or NULL. */
const char *str_nearest(const char *word, const char *const *candidates, size_t count);
