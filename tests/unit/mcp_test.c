/* Lines of clients of both eras, and what becomes of each. */
#include "agent/mcp/mcp.h"

#include <stdlib.h>

#include "base/count.h"
#include "base/own.h"
#include "check.h"

#define KEY "io.modelcontextprotocol/"
#define META                                                                                       \
	"\"_meta\":{\"" KEY "protocolVersion\":\"2026-07-28\",\"" KEY "clientCapabilities\":{}}"

static const struct mcp_about about = { "1.2.3", "be good", "5e55", "hardened", "d1" };

enum before {
	FRESH,
	LEGACY
};

struct row {
	enum before before;
	const char *line;
	enum mcp_deed deed;
	const char *answer; /* all of it but its newline, or with … at its end its beginning */
};

#define ERROR(id, code) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"error\":{\"code\":" code ",…"
#define ASK(method)     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\"}"
#define ASK_WITH(method, params)                                                                   \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":{" params "}}"

static const struct row rows[] = {
	/* no message at all */
	{ FRESH, "", MCP_DO_NOTHING, "" },
	{ FRESH, " \r", MCP_DO_NOTHING, "" },
	{ FRESH, "{", MCP_DO_NOTHING, ERROR("null", "-32700") },
	{ FRESH, "{}x", MCP_DO_NOTHING, ERROR("null", "-32700") },
	{ FRESH, "{\"id\":1,\"method\":\"a\xff\"}", MCP_DO_NOTHING, ERROR("null", "-32700") },
	{ FRESH, "[]", MCP_DO_NOTHING, ERROR("null", "-32600") },
	{ FRESH, "[" ASK("ping") "]", MCP_DO_NOTHING, ERROR("null", "-32600") },
	{ FRESH, "3", MCP_DO_NOTHING, ERROR("null", "-32600") },
	{ FRESH, "{}", MCP_DO_NOTHING, ERROR("null", "-32600") },
	{ FRESH, "{\"jsonrpc\":\"2.0\",\"id\":7}", MCP_DO_NOTHING, ERROR("7", "-32600") },
	{ FRESH, "{\"jsonrpc\":\"1.0\",\"id\":7,\"method\":\"ping\"}", MCP_DO_NOTHING,
		ERROR("7", "-32600") },
	{ FRESH, "{\"id\":7,\"method\":\"ping\"}", MCP_DO_NOTHING, ERROR("7", "-32600") },
	{ FRESH, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":3}", MCP_DO_NOTHING,
		ERROR("7", "-32600") },
	{ FRESH, "{\"jsonrpc\":\"2.0\",\"id\":7,\"id\":8,\"method\":\"ping\"}", MCP_DO_NOTHING,
		ERROR("null", "-32600") },

	/* ids: as they were written, or none */
	{ FRESH, "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", MCP_DO_NOTHING,
		ERROR("null", "-32600") },
	{ FRESH, "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", MCP_DO_NOTHING,
		ERROR("null", "-32600") },
	{ FRESH, "{\"jsonrpc\":\"2.0\",\"id\":1e5,\"method\":\"ping\"}", MCP_DO_NOTHING,
		ERROR("null", "-32600") },
	{ FRESH, "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", MCP_DO_NOTHING,
		ERROR("null", "-32600") },
	{ FRESH, "{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"ping\"}", MCP_DO_NOTHING,
		ERROR("null", "-32600") },
	{ FRESH, "{\"jsonrpc\":\"2.0\",\"id\":-9223372036854775809,\"method\":\"ping\"}",
		MCP_DO_NOTHING, "{\"jsonrpc\":\"2.0\",\"id\":-9223372036854775809,\"result\":{}}" },
	{ FRESH, "{\"jsonrpc\":\"2.0\",\"id\" : \"\\u00e9\\n\\\"\" ,\"method\":\"ping\"}",
		MCP_DO_NOTHING, "{\"jsonrpc\":\"2.0\",\"id\":\"\\u00e9\\n\\\"\",\"result\":{}}" },
	{ FRESH, "{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"ping\"}", MCP_DO_NOTHING,
		"{\"jsonrpc\":\"2.0\",\"id\":\"\",\"result\":{}}" },

	/* what nobody waits for */
	{ FRESH, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}", MCP_DO_NOTHING, "" },
	{ FRESH, "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{}}", MCP_DO_NOTHING, "" },
	{ FRESH, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", MCP_DO_NOTHING,
		"" },
	{ FRESH, "{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{\"name\":\"bash\"}}",
		MCP_DO_NOTHING, "" },
	{ FRESH, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}", MCP_DO_NOTHING,
		"" },
	{ FRESH,
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
		"\"requestId\":[]}}",
		MCP_DO_NOTHING, "" },

	/* legacy */
	{ FRESH, ASK_WITH("initialize", "\"protocolVersion\":\"2025-11-25\""), MCP_DO_NOTHING,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\","
		"\"capabilities\":{\"tools\":{},\"experimental\":{\"bawn/isolation\":{"
		"\"session\":\"5e55\",\"level\":\"hardened\",\"specSha256\":\"d1\"}}},"
		"\"serverInfo\":{\"name\":\"bawn\",\"title\":\"bawn: tools in a cage\","
		"\"version\":\"1.2.3\"},\"instructions\":\"be good\"}}" },
	{ FRESH, ASK_WITH("initialize", "\"protocolVersion\":\"2025-06-18\""), MCP_DO_NOTHING,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-06-18\",…" },
	/* It has batches, which are not answered here. */
	{ FRESH, ASK_WITH("initialize", "\"protocolVersion\":\"2025-03-26\""), MCP_DO_NOTHING,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\",…" },
	{ FRESH, ASK_WITH("initialize", "\"protocolVersion\":\"2024-11-05\""), MCP_DO_NOTHING,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\",…" },
	{ FRESH, ASK_WITH("initialize", "\"protocolVersion\":\"2026-07-28\""), MCP_DO_NOTHING,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\",…" },
	{ FRESH, ASK_WITH("initialize", "\"protocolVersion\":3"), MCP_DO_NOTHING,
		ERROR("1", "-32602") },
	{ FRESH, ASK("initialize"), MCP_DO_NOTHING, ERROR("1", "-32602") },
	{ LEGACY, ASK("ping"), MCP_DO_NOTHING, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}" },
	{ LEGACY, ASK("tools/list"), MCP_DO_NOTHING,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[{\"name\":\"bash\",…" },
	{ LEGACY, ASK_WITH("tools/list", "\"_meta\":{\"progressToken\":0}"), MCP_DO_NOTHING,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[{\"name\":\"bash\",…" },
	{ LEGACY, ASK_WITH("tools/list", "\"cursor\":null"), MCP_DO_NOTHING,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[{\"name\":\"bash\",…" },
	{ LEGACY, ASK_WITH("tools/list", "\"cursor\":\"x\""), MCP_DO_NOTHING,
		ERROR("1", "-32602") },
	{ LEGACY, ASK("server/discover"), MCP_DO_NOTHING, ERROR("1", "-32602") },
	{ LEGACY, ASK("resources/list"), MCP_DO_NOTHING, ERROR("1", "-32601") },
	{ FRESH, ASK("tools/list"), MCP_DO_NOTHING, ERROR("1", "-32602") },
	{ FRESH, ASK_WITH("tools/call", "\"name\":\"bash\""), MCP_DO_NOTHING,
		ERROR("1", "-32602") },

	/* modern */
	{ FRESH, ASK_WITH("server/discover", META), MCP_DO_NOTHING,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"complete\","
		"\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{\"tools\":{},"
		"\"extensions\":{\"bawn/isolation\":{\"session\":\"5e55\",\"level\":\"hardened\","
		"\"specSha256\":\"d1\"}}},\"instructions\":\"be good\",\"ttlMs\":3600000,"
		"\"cacheScope\":\"private\",\"_meta\":{\"" KEY "serverInfo\":{\"name\":\"bawn\","
		"\"title\":\"bawn: tools in a cage\",\"version\":\"1.2.3\"}}}}" },
	{ FRESH, ASK_WITH("tools/list", META), MCP_DO_NOTHING,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"complete\",\"tools\":"
		"[{\"name\":\"bash\",…" },
	{ LEGACY, ASK_WITH("tools/list", META), MCP_DO_NOTHING,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"complete\",\"tools\":"
		"[{\"name\":\"bash\",…" },
	{ FRESH, ASK_WITH("ping", META), MCP_DO_NOTHING, ERROR("1", "-32601") },
	{ FRESH, ASK_WITH("initialize", "\"protocolVersion\":\"2025-11-25\"," META), MCP_DO_NOTHING,
		ERROR("1", "-32601") },
	{ FRESH, ASK_WITH("resources/list", META), MCP_DO_NOTHING, ERROR("1", "-32601") },
	{ FRESH, ASK("server/discover"), MCP_DO_NOTHING, ERROR("1", "-32602") },
	{ FRESH, ASK_WITH("server/discover", "\"_meta\":{\"" KEY "clientCapabilities\":{}}"),
		MCP_DO_NOTHING, ERROR("1", "-32602") },
	{ FRESH, ASK_WITH("server/discover", "\"_meta\":{\"" KEY "protocolVersion\":7}"),
		MCP_DO_NOTHING, ERROR("1", "-32602") },
	{ FRESH,
		ASK_WITH(
			"server/discover", "\"_meta\":{\"" KEY "protocolVersion\":\"2026-07-28\"}"),
		MCP_DO_NOTHING, ERROR("1", "-32602") },
	{ FRESH,
		ASK_WITH("server/discover",
			"\"_meta\":{\"" KEY "protocolVersion\":\"2026-07-28\",\"" KEY
			"clientCapabilities\":[]}"),
		MCP_DO_NOTHING, ERROR("1", "-32602") },
	{ FRESH, ASK_WITH("server/discover", "\"_meta\":[]"), MCP_DO_NOTHING,
		ERROR("1", "-32602") },
	{ FRESH, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",\"params\":[]}",
		MCP_DO_NOTHING, ERROR("1", "-32602") },
	{ FRESH,
		ASK_WITH("tools/list", "\"_meta\":{\"" KEY "protocolVersion\":\"1999-01-01\",\"" KEY
				       "clientCapabilities\":{}}"),
		MCP_DO_NOTHING,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32022,\"message\":\"this "
		"version of the protocol is not spoken here\",\"data\":{\"supported\":"
		"[\"2026-07-28\"],\"requested\":\"1999-01-01\"}}}" },

	/* calls that are none */
	{ LEGACY, ASK("tools/call"), MCP_DO_NOTHING, ERROR("1", "-32602") },
	{ LEGACY, ASK_WITH("tools/call", "\"name\":3"), MCP_DO_NOTHING, ERROR("1", "-32602") },
	{ LEGACY, ASK_WITH("tools/call", "\"name\":\"Bash\""), MCP_DO_NOTHING,
		ERROR("1", "-32602") },
	{ LEGACY, ASK_WITH("tools/call", "\"name\":\"bash\",\"arguments\":[]"), MCP_DO_NOTHING,
		ERROR("1", "-32602") },
	{ LEGACY, ASK_WITH("tools/call", "\"name\":\"bash\",\"arguments\":null"), MCP_DO_NOTHING,
		ERROR("1", "-32602") },
};

static void check_answer(const char *got, const char *wanted)
{
	const char *end = strstr(wanted, "…");
	size_t n = end ? (size_t)(end - wanted) : strlen(wanted);

	if (end && strlen(got) > n && strncmp(got, wanted, n) == 0)
		check_passed++;
	else
		CHECK_STR(got, wanted);
}

static void test_rows(void)
{
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		own(buf) struct buf out = { .max = MCP_MAX_ANSWER };
		struct mcp m = { &about, rows[i].before == LEGACY };
		struct mcp_request q;

		CHECK(mcp_read(&m, rows[i].line, strlen(rows[i].line), &q, &out) == rows[i].deed);
		/* One line, or none. */
		CHECK(!out.len || strchr(buf_text(&out), '\n') == buf_text(&out) + out.len - 1);
		if (out.len)
			out.data[out.len - 1] = '\0';
		check_answer(buf_text(&out), rows[i].answer);
	}
}

static bool is(const struct mcp_slice *s, const char *text)
{
	return s->size == strlen(text) && memcmp(s->bytes, text, s->size) == 0;
}

static void test_calls(void)
{
	for (enum mcp_tool tool = 0; tool < MCP_TOOL_COUNT; tool++) {
		own(buf) struct buf line = { .max = 4096 }, out = { .max = 4096 };
		struct mcp m = { &about, false };
		struct mcp_request q = { 0 };

		buf_printf(&line,
			"{\"method\":\"tools/call\",\"params\":{\"arguments\": {\"a\": [1, 2]} ,"
			"\"name\":\"%s\"," META "},\"id\":\"x\",\"jsonrpc\":\"2.0\"}",
			mcp_tool_names[tool]);
		CHECK(mcp_read(&m, line.data, line.len, &q, &out) == MCP_DO_CALL);
		CHECK(q.tool == tool && q.is_modern && is(&q.id, "\"x\"") &&
			is(&q.arguments, "{\"a\": [1, 2]}"));
		CHECK(!out.len && !m.is_initialized);
	}
}

static void test_legacy_call_and_cancel(void)
{
	static const char call[] = ASK_WITH("tools/call", "\"name\":\"glob\"");
	static const char cancel[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
				     "\"params\":{\"requestId\":\"a b\",\"reason\":\"x\"}}";
	own(buf) struct buf out = { .max = 4096 };
	struct mcp m = { &about, true };
	struct mcp_request q = { 0 };

	CHECK(mcp_read(&m, call, strlen(call), &q, &out) == MCP_DO_CALL);
	CHECK(q.tool == MCP_GLOB && !q.is_modern && is(&q.id, "1") && is(&q.arguments, "{}"));
	CHECK(mcp_read(&m, cancel, strlen(cancel), &q, &out) == MCP_DO_CANCEL);
	CHECK(is(&q.id, "\"a b\"") && !out.len);
}

static void test_initialize_is_remembered(void)
{
	static const char begin[] = ASK_WITH("initialize", "\"protocolVersion\":\"2025-06-18\"");
	static const char list[] = ASK("tools/list");
	own(buf) struct buf out = { .max = (size_t)1 << 20 };
	struct mcp m = { &about, false };
	struct mcp_request q;

	mcp_read(&m, list, strlen(list), &q, &out);
	CHECK(strstr(buf_text(&out), "\"code\":-32602"));
	mcp_read(&m, begin, strlen(begin), &q, &out);
	CHECK(m.is_initialized);
	mcp_read(&m, list, strlen(list), &q, &out);
	CHECK(strstr(buf_text(&out), "\"tools\":[{"));
}

static void test_depth_and_long_ids(void)
{
	own(buf) struct buf deep = { .max = 4096 }, id = { .max = 4096 }, out = { .max = 8192 };
	struct mcp m = { &about, true };
	struct mcp_request q;

	buf_puts(&deep, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"a\":");
	buf_repeat(&deep, '[', 100);
	buf_repeat(&deep, ']', 100);
	buf_puts(&deep, "}}");
	mcp_read(&m, deep.data, deep.len, &q, &out);
	CHECK(strstr(buf_text(&out), "-32700"));
	buf_puts(&id, "{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":\"");
	buf_repeat(&id, 'i', MCP_MAX_ID - 2);
	buf_puts(&id, "\"}");
	out.len = 0;
	mcp_read(&m, id.data, id.len, &q, &out);
	CHECK(strstr(buf_text(&out), "\"result\":{}") && out.len > MCP_MAX_ID);
	id.len -= 2;
	buf_puts(&id, "i\"}");
	out.len = 0;
	mcp_read(&m, id.data, id.len, &q, &out);
	CHECK(strstr(buf_text(&out), "-32600") && strstr(buf_text(&out), "\"id\":null"));
	CHECK(strstr(buf_text(&out), "of 1024 bytes at most"));
}

/* --- lines --- */

static void test_lines_in_pieces(void)
{
	static const char bytes[] = "one\n\ntwo two\nthr";

	for (size_t step = 1; step < sizeof(bytes); step++) {
		own(buf) struct buf got = { .max = 256 };
		struct mcp_lines l;
		const char *line;
		size_t n;

		mcp_lines_init(&l);
		for (size_t at = 0; at < sizeof(bytes) - 1; at += step) {
			size_t left = sizeof(bytes) - 1 - at;

			mcp_lines_add(&l, bytes + at, left < step ? left : step);
			while (mcp_lines_next(&l, &line, &n) == MCP_LINE_WHOLE) {
				buf_add(&got, line, n);
				buf_putc(&got, '|');
			}
		}
		CHECK_STR(buf_text(&got), "one||two two|");
		mcp_lines_done(&l);
	}
}

static void add_many(struct mcp_lines *l, char c, size_t n)
{
	char bytes[4096];
	const char *line;
	size_t size;

	memset(bytes, c, sizeof(bytes));
	for (; n; n -= n < sizeof(bytes) ? n : sizeof(bytes)) {
		mcp_lines_add(l, bytes, n < sizeof(bytes) ? n : sizeof(bytes));
		/* Asked now and then, as a server does. */
		if (n % (64 * sizeof(bytes)) == 0)
			CHECK(mcp_lines_next(l, &line, &size) == MCP_LINE_NONE);
	}
}

static void test_long_lines(void)
{
	struct mcp_lines l;
	const char *line;
	size_t n;

	mcp_lines_init(&l);
	add_many(&l, 'a', MCP_MAX_LINE);
	mcp_lines_add(&l, "\n", 1);
	CHECK(mcp_lines_next(&l, &line, &n) == MCP_LINE_WHOLE && n == MCP_MAX_LINE);
	add_many(&l, 'b', MCP_MAX_LINE + 1);
	mcp_lines_add(&l, "\nnext\n", 6);
	CHECK(mcp_lines_next(&l, &line, &n) == MCP_LINE_TOO_LONG);
	CHECK(mcp_lines_next(&l, &line, &n) == MCP_LINE_WHOLE && n == 4 &&
		memcmp(line, "next", 4) == 0);
	add_many(&l, 'c', 5 * MCP_MAX_LINE);
	CHECK(l.held.len <= 2 * MCP_MAX_LINE);
	mcp_lines_add(&l, "\nlast\n", 6);
	CHECK(mcp_lines_next(&l, &line, &n) == MCP_LINE_TOO_LONG);
	CHECK(mcp_lines_next(&l, &line, &n) == MCP_LINE_WHOLE && n == 4);
	CHECK(mcp_lines_next(&l, &line, &n) == MCP_LINE_NONE);
	mcp_lines_done(&l);
}

static void test_ids(void)
{
	static const struct {
		const char *a, *b;
		bool is_same;
	} ids[] = {
		{ "1", "1", true },
		{ "1", "12", false },
		{ "1", "\"1\"", false },
		{ "", "1", false },
		{ "\"a/b\"", "\"a\\/b\"", true },
		{ "\"\\u00e9\"", "\"é\"", true },
		{ "\"a\"", "\"b\"", false },
		{ "\"\"", "\"\"", true },
		{ "\"\"", "\"a\"", false },
	};

	for (size_t i = 0; i < COUNT_OF(ids); i++) {
		const struct mcp_slice a = { ids[i].a, strlen(ids[i].a) };
		const struct mcp_slice b = { ids[i].b, strlen(ids[i].b) };

		CHECK(mcp_is_same_id(&a, &b) == ids[i].is_same);
		CHECK(mcp_is_same_id(&b, &a) == ids[i].is_same);
	}
}

/* --- calls --- */

static void test_shell(void)
{
	static const struct {
		const char *arguments, *command; /* NULL: refused */
		uint64_t timeout;
	} shells[] = {
		{ "{\"command\":\"ls\"}", "ls", MCP_USUAL_TIMEOUT },
		{ "{\"command\":\"a\\nb \\u00e9\",\"timeout\":1,\"description\":[]}", "a\nb é", 1 },
		{ "{\"command\":\"a\",\"x\":[]}", NULL, 0 },
		{ "{\"\":null,\"command\":\"a\"}", NULL, 0 },
		{ "{\"timeout\":86400000,\"command\":\"\"}", "", 86400000 },
		{ "{\"timeout\":null,\"command\":\"x\"}", "x", MCP_USUAL_TIMEOUT },
		{ "{\"timeout\":0,\"command\":\"x\"}", NULL, 0 },
		{ "{\"timeout\":-1,\"command\":\"x\"}", NULL, 0 },
		{ "{\"timeout\":86400001,\"command\":\"x\"}", NULL, 0 },
		{ "{\"timeout\":1.5,\"command\":\"x\"}", NULL, 0 },
		{ "{\"timeout\":\"1\",\"command\":\"x\"}", NULL, 0 },
		{ "{\"command\":[\"ls\"]}", NULL, 0 },
		{ "{\"command\":null}", NULL, 0 },
		{ "{\"command\":\"a\",\"command\":\"b\"}", NULL, 0 },
		{ "{}", NULL, 0 },
	};

	for (size_t i = 0; i < COUNT_OF(shells); i++) {
		const struct mcp_slice s = { shells[i].arguments, strlen(shells[i].arguments) };
		struct mcp_shell got;
		struct err e = { 0 };
		int r = mcp_read_shell(&s, &got, &e);

		CHECK((r == 0) == (shells[i].command != NULL));
		CHECK((r == 0) == (e.text[0] == '\0'));
		if (r == 0) {
			CHECK_STR(got.command, shells[i].command);
			CHECK(got.timeout_ms == shells[i].timeout);
		}
		mcp_shell_done(&got);
	}
}

static void test_long_command(void)
{
	own(buf) struct buf text = { .max = 2 * MCP_MAX_COMMAND };
	struct mcp_shell got;
	struct err e = { 0 };

	buf_puts(&text, "{\"command\":\"");
	buf_repeat(&text, 'c', MCP_MAX_COMMAND);
	buf_puts(&text, "\"}");
	CHECK(mcp_read_shell(&(struct mcp_slice){ text.data, text.len }, &got, &e) == 0);
	mcp_shell_done(&got);
	text.len -= 2;
	buf_puts(&text, "c\"}");
	CHECK(mcp_read_shell(&(struct mcp_slice){ text.data, text.len }, &got, &e) < 0);
	CHECK(strstr(e.text, "write a script"));
	mcp_shell_done(&got);
}

static void test_results(void)
{
	own(buf) struct buf out = { .max = 4096 };
	struct mcp_request q = { .id = { "\"i\"", 3 }, .is_modern = true };
	const struct mcp_result good = { "said\n", false, "5e55", "run", 0 },
				bad = { "no", true, "5e55", "", 0 };

	mcp_print_result(&q, &good, &out);
	CHECK_STR(buf_text(&out),
		"{\"jsonrpc\":\"2.0\",\"id\":\"i\",\"result\":{\"resultType\":\"complete\","
		"\"content\":[{\"type\":\"text\",\"text\":\"said\\n\"}],\"isError\":false,"
		"\"_meta\":{\"bawn/session\":\"5e55\",\"bawn/run\":\"run\",\"bawn/status\":0}}}\n");
	out.len = 0;
	q.is_modern = false;
	mcp_print_result(&q, &bad, &out);
	CHECK_STR(buf_text(&out),
		"{\"jsonrpc\":\"2.0\",\"id\":\"i\",\"result\":{\"content\":[{\"type\":\"text\","
		"\"text\":\"no\"}],\"isError\":true,\"_meta\":{\"bawn/session\":\"5e55\"}}}\n");
	out.len = 0;
	mcp_print_failure(&q.id, "gone", &out);
	CHECK_STR(buf_text(&out), "{\"jsonrpc\":\"2.0\",\"id\":\"i\",\"error\":{\"code\":-32603,"
				  "\"message\":\"gone\"}}\n");
	out.len = 0;
	mcp_answer_too_long(&out);
	CHECK(strstr(buf_text(&out), "\"id\":null,\"error\":{\"code\":-32600"));
}

static void test_text_of_anybody(void)
{
	own(buf) struct buf out = { .max = 256 };

	mcp_add_text(&out, "a\0b\xff\xc3\xa9\xed\xa0\x80\xe2\x82", 11);
	CHECK_STR(buf_text(&out), "a\xef\xbf\xbd"
				  "b\xef\xbf\xbdé\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
				  "\xef\xbf\xbd\xef\xbf\xbd");
}

int main(void)
{
	test_rows();
	test_calls();
	test_legacy_call_and_cancel();
	test_initialize_is_remembered();
	test_depth_and_long_ids();
	test_lines_in_pieces();
	test_long_lines();
	test_ids();
	test_shell();
	test_long_command();
	test_results();
	test_text_of_anybody();
	return check_report();
}
