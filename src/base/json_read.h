#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * Reads JSON in order, without building a tree. Strict: RFC 8259 and nothing else, in UTF-8,
 *without NUL in strings and without lone surrogates. A failure sticks: what is asked for later is
 *not there, and one look at `wrong` at the end is enough. The bytes may be anybody's.
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
	const char *wrong; /* what was expected and is not there; NULL: nothing is wrong */
	struct buf text;   /* the last string */
	bool takes_bytes;  /* \udcXX, as json_text writes a byte that is not UTF-8, is that byte */
	unsigned depth;
	bool has_items[JSON_READ_DEPTH + 1]; /* the map or list at that depth has had one */
};

/* Strings, when decoded, are at most `max` bytes. */
void json_read_init(struct json_reader *r, const char *bytes, size_t n, size_t max);
void json_reader_done(struct json_reader *r);

/* Into a map or a list; then its keys or items until there are no more, which leaves it. */
bool json_enter_map(struct json_reader *r);
bool json_enter_list(struct json_reader *r);
bool json_next_key(struct json_reader *r, const char **ret);
bool json_next_item(struct json_reader *r);

/* The first character of what comes next, which tells its kind; NUL where nothing does. */
char json_peek(struct json_reader *r);

/* One value. Texts and keys are borrowed from `r` until the next one is read. */
bool json_read_text(struct json_reader *r, const char **ret);
bool json_read_bool(struct json_reader *r, bool *ret);
bool json_read_int(struct json_reader *r, int64_t *ret); /* no fraction, no exponent */
bool json_skip(struct json_reader *r);

/* Takes a null if there is one; otherwise nothing is read, and nothing is wrong. */
bool json_take_null(struct json_reader *r);

/* Is that all? */
bool json_read_end(struct json_reader *r);

/* Says that something is wrong, unless something was; always false. */
bool json_wrong(struct json_reader *r, const char *what);
