#pragma once

#include <stddef.h>

#include "base/json_read.h"
#include "work/work.h"

/* What reads effects.json value by value: maps by tables, words, hashes, names. */
struct work_reader {
	struct json_reader json;
	struct work_effects *ret;
	struct work_effect *items; /* until their number is known */
	size_t count, room;
};

/* One key of a map. */
struct work_field {
	const char *key;
	bool (*read)(struct work_reader *r, void *into);
	size_t at; /* of what is read, in what the map is read into */
};

/* A key that is not in the table may come from a later version; one that comes twice may not. */
bool work_read_map(
	struct work_reader *r, const struct work_field *fields, size_t count, void *into);

#define WORK_READ_MAP(r, fields, into)                                                             \
	work_read_map(r, fields, sizeof(fields) / sizeof((fields)[0]), into)

/* One of the words, as its number. */
#define WORK_MAX_WORDS 8

bool work_read_word(
	struct work_reader *r, const char *const words[static WORK_MAX_WORDS], unsigned *ret);

/* `count` integers, all there are. */
bool work_read_numbers(struct work_reader *r, int64_t *ret, size_t count);

/* Into an enum work_change; into SHA256_SIZE bytes. */
bool work_read_change(struct work_reader *r, void *into);
bool work_read_hash(struct work_reader *r, void *into);

/* Into a const char *, which must be NULL; as text, or in hex. The copies are the arena's. */
bool work_read_name(struct work_reader *r, void *into);
bool work_read_hex_name(struct work_reader *r, void *into);
