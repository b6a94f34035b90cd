#pragma once

#include "agent/mcp/mcp.h"
#include "base/count.h"
#include "base/json.h"

/* What the files of this module share. */

/* Errors of JSON-RPC, and of the protocol. */
enum mcp_code {
	MCP_NOT_JSON = -32700,
	MCP_NOT_A_REQUEST = -32600,
	MCP_NO_METHOD = -32601,
	MCP_BAD_PARAMS = -32602,
	MCP_INTERNAL = -32603,
	MCP_UNSUPPORTED_VERSION = -32022,
};

extern const char mcp_modern_version[];
extern const char *const mcp_legacy_versions[]; /* newest first, ended by NULL */

/* --- reading: mcp_slice.c --- */

/* One member of a map that is looked for; what is not in the table is skipped. */
struct mcp_member {
	const char *key;
	struct mcp_slice *into;
};

/* Is the whole of it one value of JSON? */
bool mcp_is_json(const char *bytes, size_t n);

/*
 * A copy of as many bytes in which \u0000 and halves of characters, which JSON has and no text here
 * can, are replaced. The caller frees it; NULL without memory.
 */
char *mcp_mend(const char *bytes, size_t n);

/* Is there a key in the map that is not in the table? Copies the first, cut to what has room. */
bool mcp_find_stranger(const struct mcp_slice *map, const struct mcp_member *members, size_t count,
	char *ret, size_t size);

/* Looks members of a map up. False: it is no map, or has one of them twice. */
bool mcp_find_members(const struct mcp_slice *map, const struct mcp_member *members, size_t count);

#define MCP_FIND_MEMBERS(map, members) mcp_find_members(map, members, COUNT_OF(members))

/* Is it a map? */
bool mcp_is_map(const struct mcp_slice *s);

/* Is it a text, and this one? A text, or "" where it is none or has no room; both for short ones.
 */
bool mcp_is_text(const struct mcp_slice *s, const char *text);
void mcp_copy_text(const struct mcp_slice *s, char *ret, size_t size);

/* --- answers: mcp_answer.c --- */

/* An error that is open at `data`, to which members may be added before it is closed. */
void mcp_open_error(struct json *j, struct buf *out, const struct mcp_slice *id, enum mcp_code code,
	const char *sentence);
void mcp_close_error(struct json *j, struct buf *out);

/* One without. */
void mcp_print_error(
	struct buf *out, const struct mcp_slice *id, enum mcp_code code, const char *sentence);

/* A result; its members are added in between. */
void mcp_open_result(struct json *j, struct buf *out, const struct mcp_slice *id, bool is_modern);
void mcp_close_result(struct json *j, struct buf *out);

/* What may be remembered, and for how long: members of a modern result. */
void mcp_print_caching(struct json *j);

/* A piece of JSON without the white space between its parts. */
void mcp_add_compact(struct buf *out, const char *json);
