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

/* ASCII only, whatever the locale. */
static inline char str_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* The value of a lower-case hex digit; -1: it is none. */
static inline int str_hex_digit(char c)
{
	if (str_is_digit(c))
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool str_eq(const char *a, const char *b);
bool str_starts(const char *text, const char *prefix);
bool str_ends(const char *text, const char *suffix);

/* Is path `inner` the path `outer` or below it? Both normalised; "/" holds every absolute path. */
bool str_path_within(const char *inner, const char *outer);

/*
 * Hides in `said`, a text of `size` bytes at most, what stands behind a '=' of `given`: a key may
 * be there. It is hidden as well where the text has only the beginning of it.
 */
void str_hide_value(char *said, size_t size, const char *given);

/* \040 and the like back to bytes, in place: how the kernel writes paths in tables. */
void str_unescape_octal(char *text);

/*
 * How far apart two words are in slips of the hand: letters added, dropped, changed or swapped
 * with a neighbour, case not counted. Words longer than 63 are infinitely far.
 */
unsigned str_distance(const char *a, const char *b);

/* The candidate nearest to `word`, if near enough to have been meant; NULL otherwise. */
const char *str_nearest(const char *word, const char *const *candidates, size_t count);
