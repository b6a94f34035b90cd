/* Parts of a line, by the strict reader: a line is looked through once for each level of it. */
#include <string.h>

#include "base/json_fields.h"
#include "base/str.h"
#include "mcp/mcp_inside.h"

bool mcp_is_json(const char *bytes, size_t n)
{
	struct json_reader r;
	bool is_good;

	json_read_init(&r, bytes, n, MCP_MAX_LINE);
	is_good = json_skip(&r) && json_read_end(&r);
	json_reader_done(&r);
	return is_good;
}

static struct mcp_slice take_value(struct json_reader *r)
{
	struct mcp_slice s = { 0 };

	(void)json_peek(r);
	s.bytes = r->at;
	if (!json_skip(r))
		return (struct mcp_slice){ 0 };
	s.size = (size_t)(r->at - s.bytes);
	return s;
}

static const struct mcp_member *find_member(
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
		const struct mcp_member *m = find_member(members, count, key);

		if (!m) {
			json_skip(&r);
			continue;
		}
		is_good = !m->into->bytes;
		*m->into = take_value(&r);
	}
	is_good = is_good && !r.wrong;
	json_reader_done(&r);
	return is_good;
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
