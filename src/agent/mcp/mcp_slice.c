/* Parts of a line, by the strict reader: a line is looked through once for each level of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/mcp/mcp_inside.h"
#include "base/json_fields.h"
#include "base/str.h"

bool mcp_is_json(const char *bytes, size_t n)
{
	struct json_reader r;
	bool is_good;

	json_read_init(&r, bytes, n, MCP_MAX_LINE);
	is_good = json_skip(&r) && json_read_end(&r);
	json_reader_done(&r);
	return is_good;
}

/* The number of \uXXXX, which begins here; else -1. */
static long slice_read_escape(const char *at, size_t left)
{
	char digits[5] = { 0 };

	if (left < 6 || at[0] != '\\' || at[1] != 'u')
		return -1;
	memcpy(digits, at + 2, 4);
	return strspn(digits, "0123456789abcdefABCDEF") == 4 ? strtol(digits, NULL, 16) : -1;
}

static bool is_between(long c, long first, long last)
{
	return c >= first && c <= last;
}

char *mcp_mend(const char *bytes, size_t n)
{
	char *copy = malloc(n + 1);

	if (!copy)
		return NULL;
	memcpy(copy, bytes, n);
	copy[n] = '\0';
	for (size_t i = 0; i + 1 < n; i++) {
		long c = slice_read_escape(copy + i, n - i);

		if (copy[i] != '\\')
			continue;
		if (is_between(c, 0xd800, 0xdbff) &&
			is_between(slice_read_escape(copy + i + 6, n - i - 6), 0xdc00, 0xdfff))
			i += 11;
		else if (c == 0 || is_between(c, 0xd800, 0xdfff))
			memcpy(copy + i + 2, "fffd", 4);
		else
			i++; /* what is escaped, which may be a backslash */
	}
	return copy;
}

static struct mcp_slice slice_take_value(struct json_reader *r)
{
	struct mcp_slice s = { 0 };

	(void)json_peek(r);
	s.bytes = r->at;
	if (!json_skip(r))
		return (struct mcp_slice){ 0 };
	s.size = (size_t)(r->at - s.bytes);
	return s;
}

static const struct mcp_member *slice_find_member(
	const struct mcp_member *members, size_t count, const char *key)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(members[i].key, key))
			return &members[i];
	return NULL;
}

bool mcp_find_members(const struct mcp_slice *map, const struct mcp_member *members, size_t count)
{
	struct json_reader r;
	const char *key;
	bool is_good = true;

	if (!map->bytes)
		return false;
	json_read_init(&r, map->bytes, map->size, MCP_MAX_LINE);
	json_enter_map(&r);
	while (is_good && json_next_key(&r, &key)) {
		const struct mcp_member *m = slice_find_member(members, count, key);

		if (!m) {
			json_skip(&r);
			continue;
		}
		is_good = !m->into->bytes;
		*m->into = slice_take_value(&r);
	}
	is_good = is_good && !r.wrong;
	json_reader_done(&r);
	return is_good;
}

bool mcp_find_stranger(const struct mcp_slice *map, const struct mcp_member *members, size_t count,
	char *ret, size_t size)
{
	struct json_reader r;
	const char *key;
	bool is_found = false;

	json_read_init(&r, map->bytes, map->size, MCP_MAX_LINE);
	json_enter_map(&r);
	while (!is_found && json_next_key(&r, &key)) {
		is_found = !slice_find_member(members, count, key);
		if (is_found)
			snprintf(ret, size, "%s", key);
		else
			json_skip(&r);
	}
	json_reader_done(&r);
	return is_found;
}

bool mcp_is_map(const struct mcp_slice *s)
{
	return s->size > 0 && s->bytes[0] == '{';
}

void mcp_copy_text(const struct mcp_slice *s, char *ret, size_t size)
{
	struct json_reader r;
	const char *text;

	ret[0] = '\0';
	if (!s->size || s->bytes[0] != '"')
		return;
	json_read_init(&r, s->bytes, s->size, size - 1);
	if (json_read_text(&r, &text))
		memcpy(ret, text, strlen(text) + 1);
	json_reader_done(&r);
}

bool mcp_is_text(const struct mcp_slice *s, const char *text)
{
	char copy[128];

	mcp_copy_text(s, copy, sizeof(copy));
	return s->size > 0 && s->bytes[0] == '"' && str_eq(copy, text);
}
