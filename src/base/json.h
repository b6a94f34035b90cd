#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * Writes JSON in order, without building a tree. The same calls give the same bytes, so that a
 * digest can be made of them. With `indent` > 0 the output is laid out for people.
 */
struct json {
	struct buf *out;
	int indent, depth;
	bool has_members[32];
};

void json_init(struct json *j, struct buf *out, int indent);

/* `key` must be NULL inside a list and at the top. */
void json_open_map(struct json *j, const char *key);
void json_close_map(struct json *j);
void json_open_list(struct json *j, const char *key);
void json_close_list(struct json *j);

/*
 * Writes a text; NULL becomes null. A byte that is not UTF-8 becomes the lone surrogate \udcXX, so
 * that different texts stay different.
 */
void json_text(struct json *j, const char *key, const char *text);
void json_bool(struct json *j, const char *key, bool value);
void json_int(struct json *j, const char *key, int64_t value);

/* Writes a number that is text already, such as 1.5. The caller must have checked its form. */
void json_raw(struct json *j, const char *key, const char *number);

/* Adds one character of a string, escaped as JSON wants it. `bytes` is its UTF-8. */
void json_put_character(struct buf *out, uint32_t c, const char *bytes, size_t width);
