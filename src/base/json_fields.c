#include "base/json_fields.h"

#include "base/str.h"

static size_t json_fields_find_field(
	const struct json_field *fields, size_t count, const char *key, size_t first)
{
	for (size_t i = 0; i < count; i++) {
		size_t at = (first + i) % count;

		if (str_eq(fields[at].key, key))
			return at;
	}
	return count;
}

static bool has_needed(
	struct json_reader *r, const struct json_field *fields, size_t count, uint64_t seen)
{
	for (size_t i = 0; i < count; i++)
		if (fields[i].is_needed && !(seen & UINT64_C(1) << i))
			return json_wrong(r, fields[i].key);
	return true;
}

bool json_read_fields(void *reader, const struct json_field *fields, size_t count, void *into)
{
	struct json_reader *r = reader;
	uint64_t seen = 0;
	size_t at = 0;
	const char *key;

	if (count > JSON_MAX_FIELDS || !json_enter_map(r))
		return false;
	while (json_next_key(r, &key)) {
		size_t found = json_fields_find_field(fields, count, key, at);

		if (found == count) {
			json_skip(r);
			continue;
		}
		if (seen & UINT64_C(1) << found)
			return json_wrong(r, "each key once");
		seen |= UINT64_C(1) << found;
		at = found + 1; /* mostly they come in this order */
		if (fields[found].is_needed && json_take_null(r))
			return json_wrong(r, fields[found].key);
		if (!fields[found].read(reader, (char *)into + fields[found].at))
			return json_wrong(r, fields[found].key);
	}
	return !r->wrong && has_needed(r, fields, count, seen);
}
