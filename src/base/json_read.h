#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * Reads JSON in order, without building a tree. The bytes may come from a stranger. Strict: only
 * RFC 8259, in UTF-8, without NUL in strings and without lone surrogates. A failure sticks: later
 * calls return false, and callers check `wrong` once at the end.
 *
 *	json_read_init(&r, bytes, n, max);
 *	json_enter_map(&r);
 *	while (json_next_key(&r, &key))
 *		…one value, or json_skip…
 *	json_read_end(&r);
 */
#define JSON_READ_DEPTH 32

struct json_reader {
	const char *bytes, *at, *end;
	const char *wrong; /* what was expected and is missing; NULL: no failure yet */
	struct buf text;   /* the last string */
	bool takes_bytes;  /* decode \udcXX to the byte that json_text wrote it for */
	unsigned depth;
	bool has_items[JSON_READ_DEPTH + 1]; /* at this depth an item was read */
};

/* A decoded string has at most `max` bytes. `bytes` is borrowed. */
void json_read_init(struct json_reader *r, const char *bytes, size_t n, size_t max);
void json_reader_done(struct json_reader *r);

/*
 * Enters a map or a list. json_next_key and json_next_item then return true for each key or item;
 * when they return false, the map or list was left, or the reader has failed.
 */
bool json_enter_map(struct json_reader *r);
bool json_enter_list(struct json_reader *r);
bool json_next_key(struct json_reader *r, const char **ret);
bool json_next_item(struct json_reader *r);

/* Returns the first character of the next value, which tells its kind; NUL at the end. */
char json_peek(struct json_reader *r);

/* Read or skip one value. Texts and keys are borrowed from `r` until the next one is read. */
bool json_read_text(struct json_reader *r, const char **ret);
bool json_read_bool(struct json_reader *r, bool *ret);
bool json_read_int(struct json_reader *r, int64_t *ret); /* no fraction, no exponent */
bool json_skip(struct json_reader *r);

/* True if the next value was null, which is read then. Otherwise nothing is read. */
bool json_take_null(struct json_reader *r);

/* True if nothing has failed and only white space is left. */
bool json_read_end(struct json_reader *r);

/* Says that something is wrong, unless something was; always false. */
bool json_wrong(struct json_reader *r, const char *what);
