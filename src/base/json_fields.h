#pragma once

#include "base/count.h"
#include "base/json_read.h"

/* Reads a JSON map by a table: one row for each key. */
struct json_field {
	const char *key;
	/*
	 * Reads the value. `reader` begins with a struct json_reader. False if the value is wrong.
	 */
	bool (*read)(void *reader, void *into);
	size_t at;      /* offset of the member that `read` fills */
	bool is_needed; /* the key must be there and not be null */
};

#define JSON_MAX_FIELDS 64

/*
 * Reads a map into the struct at `into`. A key that is not in the table may come from a later
 * version of bawn and is skipped. Returns false if a value is wrong, a key of the table comes twice
 * or a needed one is missing.
 */
bool json_read_fields(void *reader, const struct json_field *fields, size_t count, void *into);

#define JSON_READ_FIELDS(reader, fields, into)                                                     \
	json_read_fields(reader, fields, COUNT_OF(fields), into)
