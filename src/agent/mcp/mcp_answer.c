#include <stdio.h>
#include <string.h>

#include "agent/mcp/mcp_inside.h"

#define TTL_MS 3600000 /* the tools of one server never change */

/* Their id as they wrote it; null where it could not be read. */
static void answer_print_head(struct json *j, struct buf *out, const struct mcp_slice *id)
{
	char text[MCP_MAX_ID + 1] = "null";

	if (id && id->size && id->size <= MCP_MAX_ID)
		snprintf(text, sizeof(text), "%.*s", (int)id->size, id->bytes);
	json_init(j, out, 0);
	json_open_map(j, NULL);
	json_text(j, "jsonrpc", "2.0");
	json_raw(j, "id", text);
}

void mcp_open_error(struct json *j, struct buf *out, const struct mcp_slice *id, enum mcp_code code,
	const char *sentence)
{
	answer_print_head(j, out, id);
	json_open_map(j, "error");
	json_int(j, "code", code);
	json_text(j, "message", sentence);
}

void mcp_close_error(struct json *j, struct buf *out)
{
	json_close_map(j);
	json_close_map(j);
	buf_putc(out, '\n');
}

void mcp_print_error(
	struct buf *out, const struct mcp_slice *id, enum mcp_code code, const char *sentence)
{
	struct json j;

	mcp_open_error(&j, out, id, code, sentence);
	mcp_close_error(&j, out);
}

void mcp_open_result(struct json *j, struct buf *out, const struct mcp_slice *id, bool is_modern)
{
	answer_print_head(j, out, id);
	json_open_map(j, "result");
	if (is_modern)
		json_text(j, "resultType", "complete");
}

void mcp_close_result(struct json *j, struct buf *out)
{
	json_close_map(j);
	json_close_map(j);
	buf_putc(out, '\n');
}

void mcp_print_caching(struct json *j)
{
	json_int(j, "ttlMs", TTL_MS);
	json_text(j, "cacheScope", "private");
}

void mcp_add_compact(struct buf *out, const char *json)
{
	bool is_quoted = false;

	for (; *json; json++) {
		if (!is_quoted && strchr(" \t\n", *json))
			continue;
		if (*json == '"')
			is_quoted = !is_quoted;
		buf_putc(out, *json);
		/* What is escaped ends nothing. */
		if (*json == '\\' && json[1])
			buf_putc(out, *++json);
	}
}

void mcp_answer_too_long(struct buf *out)
{
	mcp_print_error(out, NULL, MCP_NOT_A_REQUEST, "the line is longer than 16 MiB");
}

void mcp_print_failure(const struct mcp_slice *id, const char *sentence, struct buf *out)
{
	mcp_print_error(out, id, MCP_INTERNAL, sentence);
}
