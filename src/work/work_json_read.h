#pragma once

#include <stddef.h>

#include "base/json_fields.h"
#include "work/work.h"

/* What reads effects.json value by value: words, hashes, names. Maps are read by tables. */
struct work_reader {
	struct json_reader json;
	struct work_effects *ret;
	struct work_effect *items; /* until their number is known */
	size_t count, room;
};

/* One of the words, as its number. */
#define WORK_MAX_WORDS 8

bool work_read_word(
	struct work_reader *r, const char *const words[static WORK_MAX_WORDS], unsigned *ret);

/* `count` integers, all there are. */
bool work_read_numbers(struct work_reader *r, int64_t *ret, size_t count);

/* Into an enum work_change; into SHA256_SIZE bytes. */
bool work_read_change(void *reader, void *into);
bool work_read_hash(void *reader, void *into);

/* Into a const char *, which must be NULL; as text, or in hex. The copies are the arena's. */
bool work_read_name(void *reader, void *into);
bool work_read_hex_name(void *reader, void *into);
