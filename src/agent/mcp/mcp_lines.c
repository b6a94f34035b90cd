#include <string.h>

#include "agent/mcp/mcp.h"

void mcp_lines_init(struct mcp_lines *l)
{
	*l = (struct mcp_lines){ 0 };
	/* A whole line, and what a read of the next one brings along. */
	buf_init(&l->held, 2 * MCP_MAX_LINE);
}

void mcp_lines_done(struct mcp_lines *l)
{
	buf_done(&l->held);
}

/* Moves what is left to the front. */
static void forget_read(struct mcp_lines *l)
{
	if (!l->at)
		return;
	memmove(l->held.data, l->held.data + l->at, l->held.len - l->at);
	l->held.len -= l->at;
	l->at = 0;
}

void mcp_lines_add(struct mcp_lines *l, const char *bytes, size_t n)
{
	forget_read(l);
	buf_add(&l->held, bytes, n);
}

enum mcp_line mcp_lines_next(struct mcp_lines *l, const char **ret, size_t *ret_size)
{
	const char *start = buf_text(&l->held) + l->at;
	size_t left = l->held.len - l->at;
	const char *end = memchr(start, '\n', left);
	size_t n = end ? (size_t)(end - start) : left;
	bool is_too_long = n > MCP_MAX_LINE || l->held.failed;

	if (!end) {
		/* The rest of it is not kept either. */
		l->is_cut |= is_too_long;
		if (l->is_cut) {
			l->held.len = l->at = 0;
			l->held.failed = false;
		}
		return MCP_LINE_NONE;
	}
	l->at += n + 1;
	if (is_too_long || l->is_cut) {
		l->is_cut = false;
		return MCP_LINE_TOO_LONG;
	}
	*ret = start;
	*ret_size = n;
	return MCP_LINE_WHOLE;
}
