#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * Writes JSON in order, without building a tree: the same calls give the same bytes, which is
 * what digests are made of. Compact by default; `indent` > 0 is for people.
 */
struct json {
	struct buf *out;
	int indent, depth;
	bool has_members[32];
};

void json_init(struct json *j, struct buf *out, int indent);

/* The key is NULL inside a list and at the top. */
void json_open_map(struct json *j, const char *key);
void json_close_map(struct json *j);
void json_open_list(struct json *j, const char *key);
void json_close_list(struct json *j);

/*
 * A byte that is not UTF-8 is written as the lone surrogate \udcXX, so that different texts stay
 * different; a NULL text is null.
 */
void json_text(struct json *j, const char *key, const char *text);
void json_bool(struct json *j, const char *key, bool value);
void json_int(struct json *j, const char *key, int64_t value);

/* A number that is already text, such as 1.5; the caller vouches for its form. */
void json_raw(struct json *j, const char *key, const char *number);

/* One character of a string, of which `bytes` are the UTF-8, as JSON wants it between quotes. */
void json_put_character(struct buf *out, uint32_t c, const char *bytes, size_t width);
