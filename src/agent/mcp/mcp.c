/* Lines of a client: which era they are of, what they ask, and what is wrong with them. */
#include "agent/mcp/mcp.h"

#include <assert.h>
#include <string.h>

#include "agent/mcp/mcp_inside.h"
#include "base/count.h"
#include "base/own.h"
#include "base/str.h"

/* How the two eras begin: what a server is, and can do. */

const char mcp_modern_version[] = "2026-07-28";
const char *const mcp_legacy_versions[] = { "2025-11-25", "2025-06-18", NULL };

/* The wall, for who wants to know: which session it is, and by which spec. */
static void print_isolation(const struct mcp_about *about, struct json *j)
{
	json_open_map(j, "bawn/isolation");
	json_text(j, "session", about->session);
	json_text(j, "level", about->level);
	json_text(j, "specSha256", about->spec_sha256);
	json_close_map(j);
}

/* What is not in the protocol has a place of its own in each era. */
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
	/* To who wants one that we do not speak, the newest of this era. */
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
	mcp_close_result(&j, out);
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
	mcp_close_result(&j, out);
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
	mcp_close_result(&j, out);
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
	mcp_close_result(&j, out);
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
	mcp_close_error(&j, out);
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

/* Nobody waits for an answer. */
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

/* What is wrong with it as a message of JSON-RPC; NULL: nothing. */
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
