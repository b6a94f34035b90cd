/*
 * What a client may send. However it is cut into pieces, the answers are the same; each of them is
 * one line of JSON; and what is asked for is JSON too.
 */
#include <stdbool.h>
#include <stdio.h>

#include "agent/mcp/mcp.h"
#include "base/json_read.h"
#include "base/own.h"
#include "fuzz.h"

static void demand(bool is_so, const char *what)
{
	if (is_so)
		return;
	fprintf(stderr, "not so: %s\n", what);
	abort();
}

static bool is_json(const char *bytes, size_t n)
{
	struct json_reader r;
	bool is_good;

	json_read_init(&r, bytes, n, MCP_MAX_ANSWER);
	is_good = json_skip(&r) && json_read_end(&r);
	json_reader_done(&r);
	return is_good;
}

static void check_request(const struct mcp_request *q, enum mcp_deed deed)
{
	struct mcp_shell shell;
	struct err e = { 0 };

	demand(q->id.size && q->id.size <= MCP_MAX_ID && is_json(q->id.bytes, q->id.size),
		"it has an id");
	if (deed != MCP_DO_CALL)
		return;
	demand(q->tool < MCP_TOOL_COUNT, "it has a tool");
	demand(is_json(q->arguments.bytes, q->arguments.size) && q->arguments.bytes[0] == '{',
		"its arguments are an object");
	if (mcp_read_shell(&q->arguments, &shell, &e) == 0)
		demand(shell.command && shell.timeout_ms && shell.timeout_ms <= MCP_MAX_TIMEOUT,
			"a shell has something to do");
	mcp_shell_done(&shell);
}

static void hear(struct mcp *m, const char *line, size_t n, struct buf *out)
{
	struct mcp_request q = { 0 };
	size_t before = out->len;
	char *copy = fuzz_text((const uint8_t *)line, n);
	enum mcp_deed deed = mcp_read(m, copy, n, &q, out);

	if (deed != MCP_DO_NOTHING) {
		demand(out->len == before, "what is done later is not answered now");
		check_request(&q, deed);
		buf_printf(out, "%d\n", deed);
	} else if (out->len > before) {
		demand(is_json(out->data + before, out->len - before), "an answer is JSON");
		demand(memchr(out->data + before, '\n', out->len - before) ==
				out->data + out->len - 1,
			"an answer is a line");
	}
	free(copy);
}

static void serve(const char *bytes, size_t n, size_t step, struct buf *out)
{
	static const struct mcp_about about = { "1", "x", "s", "hardened", "d" };
	struct mcp m = { &about, false };
	struct mcp_lines l;
	const char *line;
	size_t size;

	mcp_lines_init(&l);
	for (size_t at = 0; at < n; at += step) {
		mcp_lines_add(&l, bytes + at, n - at < step ? n - at : step);
		while (mcp_lines_next(&l, &line, &size) == MCP_LINE_WHOLE)
			hear(&m, line, size, out);
	}
	mcp_lines_done(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	own(buf) struct buf whole = { .max = (size_t)1 << 28 }, cut = { .max = (size_t)1 << 28 };
	own(buf) struct buf text = { .max = (size_t)1 << 28 };
	const char *bytes = (const char *)data + 1;

	if (size < 2)
		return 0;
	serve(bytes, size - 1, size, &whole);
	serve(bytes, size - 1, data[0] + 1U, &cut);
	demand(whole.len == cut.len && memcmp(buf_text(&whole), buf_text(&cut), whole.len) == 0,
		"where it is cut makes no difference");
	mcp_add_text(&text, bytes, size - 1);
	demand(!memchr(buf_text(&text), '\0', text.len), "a text has no NUL");
	return 0;
}
