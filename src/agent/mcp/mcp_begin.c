/* How the two eras begin: what a server is, and can do. */
#include "agent/mcp/mcp_inside.h"

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

void mcp_answer_initialize(
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

void mcp_answer_discover(const struct mcp *m, const struct mcp_slice *id, struct buf *out)
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
