#pragma once

#include "base/count.h"
#include "base/json_read.h"

/* Maps by tables: one row for each key. */
struct json_field {
	const char *key;
	/* `reader` has the struct json_reader as its first member; false: something is wrong. */
	bool (*read)(void *reader, void *into);
	size_t at;      /* of what is read, in what the map is read into */
	bool is_needed; /* it must be there, and not be null */
};

#define JSON_MAX_FIELDS 64

/*
 * Reads a map. A key that is not in the table may come from a later version and is skipped; one of
 * the table that comes twice may not.
 */
bool json_read_fields(void *reader, const struct json_field *fields, size_t count, void *into);

#define JSON_READ_FIELDS(reader, fields, into)                                                     \
	json_read_fields(reader, fields, COUNT_OF(fields), into)
