#pragma once

#include <stddef.h>

#include "base/json_fields.h"
#include "change/change.h"

/* What reads effects.json value by value: words, hashes, names. Maps are read by tables. */
struct change_reader {
	struct json_reader json;
	struct change_effects *ret;
	struct change_effect *items; /* until their number is known */
	size_t count, room;
};

/* One of the words, as its number. */
#define CHANGE_MAX_WORDS 8

bool change_read_word(
	struct change_reader *r, const char *const words[static CHANGE_MAX_WORDS], unsigned *ret);

/* `count` integers, all there are. */
bool change_read_numbers(struct change_reader *r, int64_t *ret, size_t count);

/* Into an enum change_change; into SHA256_SIZE bytes. */
bool change_read_change(void *reader, void *into);
bool change_read_hash(void *reader, void *into);

/* Into a const char *, which must be NULL; as text, or in hex. The copies are the arena's. */
bool change_read_name(void *reader, void *into);
bool change_read_hex_name(void *reader, void *into);
