#pragma once

/*
 * Is a text one JSON value and nothing else? Written for this question alone, so that what bawn
 * prints is not judged by what printed it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/utf8.h"

static inline void is_json_space(const char **p)
{
	*p += strspn(*p, " \n");
}

static inline bool is_json_string(const char **p)
{
	if (*(*p)++ != '"')
		return false;
	while (**p != '"') {
		uint32_t c;
		size_t width = utf8_decode(*p, strnlen(*p, 4), &c);

		if (width == 0 || c < 0x20)
			return false;
		*p += width;
		if (c != '\\')
			continue;
		if (**p == 'u' ? strspn(*p + 1, "0123456789abcdef") < 4
			       : !**p || !strchr("\"\\nt", **p))
			return false;
		*p += **p == 'u' ? 5 : 1;
	}
	(*p)++;
	return true;
}

static inline bool is_json_number(const char **p)
{
	size_t n;

	*p += **p == '-';
	n = strspn(*p, "0123456789");
	if (n == 0 || (n > 1 && **p == '0'))
		return false;
	*p += n;
	if (**p != '.')
		return true;
	n = strspn(++*p, "0123456789");
	*p += n;
	return n > 0;
}

static inline bool is_json_value(const char **p, int depth)
{
	static const char *const words[] = { "true", "false", "null" };
	char close = **p == '{' ? '}' : ']';
	bool is_map = **p == '{';

	for (size_t i = 0; i < 3; i++) {
		if (strncmp(*p, words[i], strlen(words[i])) == 0) {
			*p += strlen(words[i]);
			return true;
		}
	}
	if (**p == '"')
		return is_json_string(p);
	if (**p != '{' && **p != '[')
		return is_json_number(p);
	(*p)++;
	is_json_space(p);
	if (**p == close) {
		(*p)++;
		return true;
	}
	for (;; (*p)++) {
		is_json_space(p);
		if (is_map && (!is_json_string(p) || *(*p)++ != ':'))
			return false;
		is_json_space(p);
		if (depth == 0 || !is_json_value(p, depth - 1))
			return false;
		is_json_space(p);
		if (**p != ',')
			return *(*p)++ == close;
	}
}

static inline bool is_json(const char *text)
{
	is_json_space(&text);
	if (!is_json_value(&text, 32))
		return false;
	is_json_space(&text);
	return !*text;
}
