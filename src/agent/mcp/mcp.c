/* The Model Context Protocol: takes a line of a client apart, and prints the answers. Pure. */
#include "agent/mcp/mcp.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/json.h"
#include "base/json_fields.h"
#include "base/json_read.h"
#include "base/own.h"
#include "base/str.h"
#include "base/utf8.h"

/* --- parts of a line --- */

/* The strict reader goes over a line once for each level that is taken apart. */

/* One member of a map that is looked for; what is not in the table is skipped. */
struct mcp_member {
	const char *key;
	struct mcp_slice *into;
};

#define MCP_FIND_MEMBERS(map, members) mcp_find_members(map, members, COUNT_OF(members))

/* Is the whole of it one value of JSON? */
static bool mcp_is_json(const char *bytes, size_t n)
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

/*
 * A copy of as many bytes in which \u0000 and halves of characters, which JSON has and no text here
 * can, are replaced. The caller frees it; NULL without memory.
 */
static char *mcp_mend(const char *bytes, size_t n)
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

/* Looks members of a map up. False: it is no map, or has one of them twice. */
static bool mcp_find_members(
	const struct mcp_slice *map, const struct mcp_member *members, size_t count)
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

/* Is there a key in the map that is not in the table? Copies the first, cut to what has room. */
static bool mcp_find_stranger(const struct mcp_slice *map, const struct mcp_member *members,
	size_t count, char *ret, size_t size)
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

/* Is it a map? */
static bool mcp_is_map(const struct mcp_slice *s)
{
	return s->size > 0 && s->bytes[0] == '{';
}

static void mcp_copy_text(const struct mcp_slice *s, char *ret, size_t size)
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

/* Copies a text; "" if it is none or does not fit. */
static bool mcp_is_text(const struct mcp_slice *s, const char *text)
{
	char copy[128];

	mcp_copy_text(s, copy, sizeof(copy));
	return s->size > 0 && s->bytes[0] == '"' && str_eq(copy, text);
}

/* --- answers --- */

/* Errors of JSON-RPC, and of the protocol. */
enum mcp_code {
	MCP_NOT_JSON = -32700,
	MCP_NOT_A_REQUEST = -32600,
	MCP_NO_METHOD = -32601,
	MCP_BAD_PARAMS = -32602,
	MCP_INTERNAL = -32603,
	MCP_UNSUPPORTED_VERSION = -32022,
};

#define TTL_MS 3600000 /* the tools of one server never change */

/* The id as the client wrote it; null if it could not be read. */
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

static void mcp_close_answer(struct json *j, struct buf *out)
{
	json_close_map(j);
	json_close_map(j);
	buf_putc(out, '\n');
}

/* An error that is open at `data`, to which members may be added before it is closed. */
static void mcp_open_error(struct json *j, struct buf *out, const struct mcp_slice *id,
	enum mcp_code code, const char *sentence)
{
	answer_print_head(j, out, id);
	json_open_map(j, "error");
	json_int(j, "code", code);
	json_text(j, "message", sentence);
}

/* An error without `data`. */
static void mcp_print_error(
	struct buf *out, const struct mcp_slice *id, enum mcp_code code, const char *sentence)
{
	struct json j;

	mcp_open_error(&j, out, id, code, sentence);
	mcp_close_answer(&j, out);
}

/* A result; its members are added in between. */
static void mcp_open_result(
	struct json *j, struct buf *out, const struct mcp_slice *id, bool is_modern)
{
	answer_print_head(j, out, id);
	json_open_map(j, "result");
	if (is_modern)
		json_text(j, "resultType", "complete");
}

/* How long a client may cache a modern result. */
static void mcp_print_caching(struct json *j)
{
	json_int(j, "ttlMs", TTL_MS);
	json_text(j, "cacheScope", "private");
}

/* A piece of JSON without the white space between its parts. */
static void mcp_add_compact(struct buf *out, const char *json)
{
	bool is_quoted = false;

	for (; *json; json++) {
		if (!is_quoted && strchr(" \t\n", *json))
			continue;
		if (*json == '"')
			is_quoted = !is_quoted;
		buf_putc(out, *json);
		/* An escaped quote does not end the string. */
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

/* --- what a line asks --- */

static const char mcp_modern_version[] = "2026-07-28";
static const char *const mcp_legacy_versions[] = { "2025-11-25", "2025-06-18", NULL };

/* The session and the spec that isolate the tools. */
static void print_isolation(const struct mcp_about *about, struct json *j)
{
	json_open_map(j, "bawn/isolation");
	json_text(j, "session", about->session);
	json_text(j, "level", about->level);
	json_text(j, "specSha256", about->spec_sha256);
	json_close_map(j);
}

/* Each era has its own member for extensions of the protocol. */
static void print_capabilities(const struct mcp_about *about, struct json *j, const char *others)
{
	json_open_map(j, "capabilities");
	json_open_map(j, "tools");
	json_close_map(j);
	json_open_map(j, others);
	print_isolation(about, j);
	json_close_map(j);
	json_close_map(j);
}

static void print_server(const struct mcp_about *about, struct json *j, const char *key)
{
	json_open_map(j, key);
	json_text(j, "name", "bawn");
	json_text(j, "title", "bawn: tools in a cage");
	json_text(j, "version", about->version);
	json_close_map(j);
}

static void mcp_answer_initialize(
	struct mcp *m, const struct mcp_slice *id, const struct mcp_slice *params, struct buf *out)
{
	struct mcp_slice wanted = { 0 };
	const struct mcp_member members[] = { { "protocolVersion", &wanted } };
	/* A client that wants another version gets the newest of this era. */
	const char *version = mcp_legacy_versions[0];
	struct json j;

	if (!MCP_FIND_MEMBERS(params, members) || !wanted.size || wanted.bytes[0] != '"') {
		mcp_print_error(out, id, MCP_BAD_PARAMS, "initialize needs a protocolVersion");
		return;
	}
	for (size_t i = 0; mcp_legacy_versions[i]; i++)
		if (mcp_is_text(&wanted, mcp_legacy_versions[i]))
			version = mcp_legacy_versions[i];
	m->is_initialized = true;
	mcp_open_result(&j, out, id, false);
	json_text(&j, "protocolVersion", version);
	print_capabilities(m->about, &j, "experimental");
	print_server(m->about, &j, "serverInfo");
	json_text(&j, "instructions", m->about->instructions);
	mcp_close_answer(&j, out);
}

static void mcp_answer_discover(const struct mcp *m, const struct mcp_slice *id, struct buf *out)
{
	struct json j;

	mcp_open_result(&j, out, id, true);
	json_open_list(&j, "supportedVersions");
	json_text(&j, NULL, mcp_modern_version);
	json_close_list(&j);
	print_capabilities(m->about, &j, "extensions");
	json_text(&j, "instructions", m->about->instructions);
	mcp_print_caching(&j);
	json_open_map(&j, "_meta");
	print_server(m->about, &j, "io.modelcontextprotocol/serverInfo");
	json_close_map(&j);
	mcp_close_answer(&j, out);
}

#define META_VERSION      "io.modelcontextprotocol/protocolVersion"
#define META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"

/* One line, taken apart. */
struct message {
	struct mcp_slice jsonrpc, id, method, params, result, error;
	bool is_modern;
};

/* --- the methods --- */

static enum mcp_deed initialize(
	struct mcp *m, const struct message *x, struct mcp_request *ret, struct buf *out)
{
	(void)ret;
	mcp_answer_initialize(m, &x->id, &x->params, out);
	return MCP_DO_NOTHING;
}

static enum mcp_deed ping(
	struct mcp *m, const struct message *x, struct mcp_request *ret, struct buf *out)
{
	struct json j;

	(void)m;
	(void)ret;
	mcp_open_result(&j, out, &x->id, false);
	mcp_close_answer(&j, out);
	return MCP_DO_NOTHING;
}

static enum mcp_deed discover(
	struct mcp *m, const struct message *x, struct mcp_request *ret, struct buf *out)
{
	(void)ret;
	mcp_answer_discover(m, &x->id, out);
	return MCP_DO_NOTHING;
}

static enum mcp_deed list_tools(
	struct mcp *m, const struct message *x, struct mcp_request *ret, struct buf *out)
{
	own(buf) struct buf tools = { .max = (size_t)1 << 20 };
	struct mcp_slice cursor = { 0 };
	const struct mcp_member members[] = { { "cursor", &cursor } };
	struct json j;

	(void)m;
	(void)ret;
	if (x->params.bytes && !MCP_FIND_MEMBERS(&x->params, members))
		cursor = x->params;
	if (cursor.bytes && cursor.bytes[0] != 'n') {
		mcp_print_error(out, &x->id, MCP_BAD_PARAMS,
			"there is no such cursor: all tools are listed at once");
		return MCP_DO_NOTHING;
	}
	mcp_add_compact(&tools, mcp_tools_json);
	mcp_open_result(&j, out, &x->id, x->is_modern);
	json_raw(&j, "tools", buf_text(&tools));
	if (x->is_modern)
		mcp_print_caching(&j);
	mcp_close_answer(&j, out);
	return MCP_DO_NOTHING;
}

static enum mcp_deed call_tool(
	struct mcp *m, const struct message *x, struct mcp_request *ret, struct buf *out)
{
	static const char none[] = "{}";
	struct mcp_slice name = { 0 }, arguments = { 0 };
	const struct mcp_member members[] = { { "name", &name }, { "arguments", &arguments } };
	const char *wrong = NULL;
	enum mcp_tool tool = 0;

	(void)m;
	if (!MCP_FIND_MEMBERS(&x->params, members) || !name.size || name.bytes[0] != '"')
		wrong = "tools/call needs the name of a tool";
	if (!arguments.bytes)
		arguments = (struct mcp_slice){ none, sizeof(none) - 1 };
	if (!wrong && !mcp_is_map(&arguments))
		wrong = "the arguments of a tool are an object";
	while (tool < MCP_TOOL_COUNT && !mcp_is_text(&name, mcp_tool_names[tool]))
		tool++;
	if (!wrong && tool == MCP_TOOL_COUNT)
		wrong = "there is no such tool: there are bash, read, write, edit, glob and grep";
	if (wrong) {
		mcp_print_error(out, &x->id, MCP_BAD_PARAMS, wrong);
		return MCP_DO_NOTHING;
	}
	*ret = (struct mcp_request){ x->id, x->is_modern, tool, arguments };
	return MCP_DO_CALL;
}

static const struct method {
	const char *name;
	bool is_legacy, is_modern;
	enum mcp_deed (*answer)(
		struct mcp *m, const struct message *x, struct mcp_request *ret, struct buf *out);
} methods[] = {
	{ "initialize", true, false, initialize },
	{ "ping", true, false, ping },
	{ "server/discover", false, true, discover },
	{ "tools/list", true, true, list_tools },
	{ "tools/call", true, true, call_tool },
};

static const struct method *find_method(const struct message *x)
{
	for (size_t i = 0; i < COUNT_OF(methods); i++)
		if (mcp_is_text(&x->method, methods[i].name))
			return &methods[i];
	return NULL;
}

/* --- the eras --- */

static void refuse_version(
	const struct message *x, const struct mcp_slice *version, struct buf *out)
{
	char requested[128];
	struct json j;

	mcp_copy_text(version, requested, sizeof(requested));
	mcp_open_error(&j, out, &x->id, MCP_UNSUPPORTED_VERSION,
		"this version of the protocol is not spoken here");
	json_open_map(&j, "data");
	json_open_list(&j, "supported");
	json_text(&j, NULL, mcp_modern_version);
	json_close_list(&j);
	json_text(&j, "requested", requested);
	json_close_map(&j);
	mcp_close_answer(&j, out);
}

/* False: what is wrong has been answered. */
static bool check_modern(const struct message *x, const struct mcp_slice *version,
	const struct mcp_slice *capabilities, struct buf *out)
{
	if (version->bytes[0] != '"') {
		mcp_print_error(
			out, &x->id, MCP_BAD_PARAMS, "_meta must have " META_VERSION " as a text");
		return false;
	}
	if (!mcp_is_text(version, mcp_modern_version)) {
		refuse_version(x, version, out);
		return false;
	}
	if (!mcp_is_map(capabilities)) {
		mcp_print_error(out, &x->id, MCP_BAD_PARAMS,
			"_meta must have " META_CAPABILITIES " as an object");
		return false;
	}
	return true;
}

/* Which era a request is of, which is as it should be. False: what is wrong has been answered. */
static bool settle_era(const struct mcp *m, struct message *x, struct buf *out)
{
	struct mcp_slice meta = { 0 }, version = { 0 }, capabilities = { 0 };
	const struct mcp_member in_params[] = { { "_meta", &meta } };
	const struct mcp_member in_meta[] = { { META_VERSION, &version },
		{ META_CAPABILITIES, &capabilities } };
	const struct method *method = find_method(x);

	if ((x->params.bytes && !MCP_FIND_MEMBERS(&x->params, in_params)) ||
		(meta.bytes && !MCP_FIND_MEMBERS(&meta, in_meta))) {
		mcp_print_error(out, &x->id, MCP_BAD_PARAMS,
			"params and params._meta are objects, with each key once");
		return false;
	}
	x->is_modern = version.bytes != NULL;
	if (x->is_modern)
		return check_modern(x, &version, &capabilities, out);
	if (!method || (method->is_legacy && (m->is_initialized || !method->is_modern)))
		return true;
	mcp_print_error(out, &x->id, MCP_BAD_PARAMS,
		"params._meta must have " META_VERSION "; or begin with initialize");
	return false;
}

/* --- the line --- */

static enum mcp_deed answer(
	struct mcp *m, struct message *x, struct mcp_request *ret, struct buf *out)
{
	const struct method *method = find_method(x);

	if (!settle_era(m, x, out))
		return MCP_DO_NOTHING;
	if (!method || !(x->is_modern ? method->is_modern : method->is_legacy)) {
		mcp_print_error(out, &x->id, MCP_NO_METHOD, "there is no such method here");
		return MCP_DO_NOTHING;
	}
	return method->answer(m, x, ret, out);
}

static_assert(MCP_MAX_ID == 1024, "as is said where one is refused");

/* A text, or a number without a fraction. */
static bool mcp_is_id(const struct mcp_slice *s)
{
	if (!s->size || s->size > MCP_MAX_ID)
		return false;
	for (size_t i = 0; s->bytes[0] != '"' && i < s->size; i++)
		if (!str_is_digit(s->bytes[i]) && (i > 0 || s->bytes[i] != '-'))
			return false;
	return true;
}

bool mcp_is_same_id(const struct mcp_slice *a, const struct mcp_slice *b)
{
	char x[MCP_MAX_ID + 1], y[MCP_MAX_ID + 1];

	if (!a->size || !b->size || (a->bytes[0] == '"') != (b->bytes[0] == '"'))
		return false;
	/* A whole number can be written in one way only. */
	if (a->bytes[0] != '"')
		return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
	mcp_copy_text(a, x, sizeof(x));
	mcp_copy_text(b, y, sizeof(y));
	return str_eq(x, y);
}

/* Notifications get no answer. */
static enum mcp_deed mcp_hear(const struct message *x, struct mcp_request *ret)
{
	struct mcp_slice id = { 0 };
	const struct mcp_member members[] = { { "requestId", &id } };

	if (!mcp_is_text(&x->method, "notifications/cancelled") ||
		!MCP_FIND_MEMBERS(&x->params, members) || !mcp_is_id(&id))
		return MCP_DO_NOTHING;
	*ret = (struct mcp_request){ .id = id };
	return MCP_DO_CANCEL;
}

/* Why the line is no message of JSON-RPC; NULL: it is one. */
static const char *mcp_find_fault(struct message *x, const struct mcp_slice *line)
{
	const struct mcp_member members[] = { { "jsonrpc", &x->jsonrpc }, { "id", &x->id },
		{ "method", &x->method }, { "params", &x->params }, { "result", &x->result },
		{ "error", &x->error } };

	if (!mcp_is_map(line))
		return "a message is one object";
	if (!MCP_FIND_MEMBERS(line, members)) {
		x->id = (struct mcp_slice){ 0 };
		return "a message has each key once";
	}
	if (x->id.bytes && !mcp_is_id(&x->id)) {
		x->id = (struct mcp_slice){ 0 };
		return "an id is a text or a whole number, of 1024 bytes at most";
	}
	if (!mcp_is_text(&x->jsonrpc, "2.0"))
		return "a message says \"jsonrpc\": \"2.0\"";
	if (!x->method.bytes || x->method.bytes[0] != '"')
		return "a request has a method";
	return NULL;
}

/* JSON that cannot be used: whoever waits for an answer shall have one, by the id. */
static void answer_unusable(const char *line, size_t n, struct buf *out)
{
	own_free char *mended = mcp_mend(line, n);
	const struct mcp_slice all = { mended, n };
	struct message x = { 0 };

	if (!mended || !mcp_is_json(mended, n))
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): own_free frees it */
		mcp_print_error(out, NULL, MCP_NOT_JSON,
			"the line is not JSON, or nested more than 32 deep");
	else if (mcp_find_fault(&x, &all) || x.id.bytes)
		mcp_print_error(out, &x.id, MCP_BAD_PARAMS,
			"a text of the request has \\u0000 or half of a character, which no command "
			"and no tool takes");
}

enum mcp_deed mcp_read(
	struct mcp *m, const char *line, size_t n, struct mcp_request *ret, struct buf *out)
{
	struct message x = { 0 };
	struct mcp_slice all;
	const char *fault;

	while (n && strchr(" \t\r", line[0]))
		line++, n--;
	if (!n)
		return MCP_DO_NOTHING;
	if (!mcp_is_json(line, n)) {
		answer_unusable(line, n, out);
		return MCP_DO_NOTHING;
	}
	all = (struct mcp_slice){ line, n };
	fault = mcp_find_fault(&x, &all);
	/* We ask for nothing: an answer is to somebody else. */
	if (fault && !x.method.bytes && (x.result.bytes || x.error.bytes))
		return MCP_DO_NOTHING;
	if (fault) {
		mcp_print_error(out, &x.id, MCP_NOT_A_REQUEST, fault);
		return MCP_DO_NOTHING;
	}
	return x.id.bytes ? answer(m, &x, ret, out) : mcp_hear(&x, ret);
}

/* --- calls --- */

const char *const mcp_tool_names[MCP_TOOL_COUNT] = {
	[MCP_BASH] = "bash",
	[MCP_READ] = "read",
	[MCP_WRITE] = "write",
	[MCP_EDIT] = "edit",
	[MCP_GLOB] = "glob",
	[MCP_GREP] = "grep",
};

/* --- what bash is asked --- */

static int call_read_command(const struct mcp_slice *s, char **ret, struct err *e)
{
	struct json_reader r;
	const char *text = NULL;

	if (!s->size || s->bytes[0] != '"')
		return err_set(e, ERR_USE, EINVAL, "bash needs a command, which is a text");
	json_read_init(&r, s->bytes, s->size, MCP_MAX_COMMAND);
	if (json_read_text(&r, &text))
		*ret = strdup(text);
	json_reader_done(&r);
	if (!text)
		return err_set(e, ERR_USE, E2BIG,
			"the command is longer than 120 kB: write a script with the tool write, "
			"and run that");
	return *ret ? 0 : err_set(e, ERR_SYS, ENOMEM, "not enough memory for the command");
}

static int read_timeout(const struct mcp_slice *s, uint64_t *ret, struct err *e)
{
	struct json_reader r;
	int64_t ms = 0;
	bool is_good;

	*ret = MCP_USUAL_TIMEOUT;
	if (!s->size || s->bytes[0] == 'n')
		return 0;
	json_read_init(&r, s->bytes, s->size, 1);
	is_good = json_read_int(&r, &ms) && json_read_end(&r);
	json_reader_done(&r);
	if (!is_good || ms < 1 || ms > MCP_MAX_TIMEOUT)
		return err_set(e, ERR_USE, EINVAL,
			"timeout is a whole number of milliseconds, from 1 to %d", MCP_MAX_TIMEOUT);
	*ret = (uint64_t)ms;
	return 0;
}

int mcp_read_shell(const struct mcp_slice *arguments, struct mcp_shell *ret, struct err *e)
{
	struct mcp_slice command = { 0 }, timeout = { 0 }, description = { 0 };
	const struct mcp_member members[] = { { "command", &command }, { "timeout", &timeout },
		{ "description", &description } };
	char stranger[64];
	int r;

	*ret = (struct mcp_shell){ 0 };
	if (!MCP_FIND_MEMBERS(arguments, members))
		return err_set(e, ERR_USE, EINVAL, "the arguments of bash have a key twice");
	/* What is not done must not look as if it were: a folder to run in, say. */
	if (mcp_find_stranger(arguments, members, 3, stranger, sizeof(stranger)))
		return err_set(e, ERR_USE, EINVAL,
			"bash has no argument '%s', and the command was not run; it has command, "
			"timeout and description, and what else is wanted goes into the command, "
			"such as: cd FOLDER && …",
			stranger);
	r = read_timeout(&timeout, &ret->timeout_ms, e);
	return r == 0 ? call_read_command(&command, &ret->command, e) : r;
}

void mcp_shell_done(struct mcp_shell *s)
{
	free(s->command);
	*s = (struct mcp_shell){ 0 };
}

/* --- how it ended --- */

/*
 * Where there is structuredContent, clients show a model that and not the text; so what else is
 * known is in _meta, and what a model should know is in the text.
 */
void mcp_print_result(const struct mcp_request *q, const struct mcp_result *result, struct buf *out)
{
	struct json j;

	mcp_open_result(&j, out, &q->id, q->is_modern);
	json_open_list(&j, "content");
	json_open_map(&j, NULL);
	json_text(&j, "type", "text");
	json_text(&j, "text", result->text);
	json_close_map(&j);
	json_close_list(&j);
	json_bool(&j, "isError", result->is_error);
	json_open_map(&j, "_meta");
	json_text(&j, "bawn/session", result->session);
	if (result->run && result->run[0]) {
		json_text(&j, "bawn/run", result->run);
		json_int(&j, "bawn/status", result->status);
	}
	json_close_map(&j);
	mcp_close_answer(&j, out);
}

void mcp_add_text(struct buf *out, const char *bytes, size_t n)
{
	while (n) {
		uint32_t c = 0;
		size_t width = utf8_decode(bytes, n, &c);

		if (width && c)
			buf_add(out, bytes, width);
		else
			buf_puts(out, "\xef\xbf\xbd");
		bytes += width ? width : 1;
		n -= width ? width : 1;
	}
}
