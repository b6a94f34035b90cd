#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * The Model Context Protocol, as a server of tools speaks it on standard streams: one JSON object
 * a line. Pure: bytes go in; what is to be done, and bytes, come out. Two eras of it:
 *
 *   modern   2026-07-28; every request says its version in params._meta, and nothing is remembered
 *   legacy   2025-11-25 and before; begins with `initialize`
 *
 * The bytes may be anybody's.
 */

#define MCP_MAX_LINE   ((size_t)16 << 20)
#define MCP_MAX_ID     1024               /* bytes, as they were written */
#define MCP_MAX_ANSWER ((size_t)64 << 20) /* one line of ours */

/* --- lines: mcp_lines.c --- */

struct mcp_lines {
	struct buf held; /* what has come and is not a whole line yet */
	size_t at;       /* where the next one begins in it */
	bool is_cut;     /* more of a line comes than there is room for: it is dropped */
};

enum mcp_line {
	MCP_LINE_NONE,
	MCP_LINE_WHOLE,
	MCP_LINE_TOO_LONG, /* it was dropped */
};

void mcp_lines_init(struct mcp_lines *l);
void mcp_lines_done(struct mcp_lines *l);
void mcp_lines_add(struct mcp_lines *l, const char *bytes, size_t n);

/* The next line without its newline, borrowed until more is added. */
enum mcp_line mcp_lines_next(struct mcp_lines *l, const char **ret, size_t *ret_size);

/* --- what is asked --- */

/* A part of a line, as it was written; NULL: it is not there. */
struct mcp_slice {
	const char *bytes;
	size_t size;
};

/* What a server says of itself. All borrowed. */
struct mcp_about {
	const char *version;      /* bawn's */
	const char *instructions; /* for the model */
	const char *session;      /* the id of the one cage session */
	const char *level;        /* hardened or custom */
	const char *spec_sha256;
};

enum mcp_tool {
	MCP_BASH,
	MCP_READ,
	MCP_WRITE,
	MCP_EDIT,
	MCP_GLOB,
	MCP_GREP,
	MCP_TOOL_COUNT,
};

extern const char *const mcp_tool_names[MCP_TOOL_COUNT];

/* The tools as `tools/list` has them, for people: data/mcp/tools.json. */
extern const char mcp_tools_json[];

struct mcp_request {
	struct mcp_slice id; /* of a call, or of the call that is cancelled */
	bool is_modern;
	enum mcp_tool tool;
	struct mcp_slice arguments; /* one object */
};

enum mcp_deed {
	MCP_DO_NOTHING, /* but write what is in `out`, if anything is */
	MCP_DO_CALL,
	MCP_DO_CANCEL,
};

struct mcp {
	const struct mcp_about *about; /* borrowed */
	bool is_initialized;           /* somebody speaks the legacy protocol */
};

/*
 * What to do for a line. An answer that can be given at once is added to `out`, as a line. *ret is
 * written for calls and cancellations, and borrows from the line.
 */
enum mcp_deed mcp_read(
	struct mcp *m, const char *line, size_t n, struct mcp_request *ret, struct buf *out);

/* Are two ids the same, however their texts are written? */
bool mcp_is_same_id(const struct mcp_slice *a, const struct mcp_slice *b);

/* The answer to a line that was too long. */
void mcp_answer_too_long(struct buf *out);

/* --- calls --- */

/* What bash is asked for. */
struct mcp_shell {
	char *command;       /* owned */
	uint64_t timeout_ms; /* MCP_USUAL_TIMEOUT where it says none */
};

#define MCP_MAX_COMMAND   ((size_t)120 << 10) /* less than the kernel takes as one argument */
#define MCP_USUAL_TIMEOUT 120000
#define MCP_MAX_TIMEOUT   86400000

int mcp_read_shell(const struct mcp_slice *arguments, struct mcp_shell *ret, struct err *e);
void mcp_shell_done(struct mcp_shell *s);

/* How a call ended. All borrowed. */
struct mcp_result {
	const char *text; /* UTF-8 */
	bool is_error;
	const char *session;
	const char *run; /* whose record tells more; NULL or "": there was none */
	int status;
};

/* The answer to a call, as a line. Who asked is told by id and is_modern of the request. */
void mcp_print_result(
	const struct mcp_request *q, const struct mcp_result *result, struct buf *out);

/* The same where it never became one: -32603. */
void mcp_print_failure(const struct mcp_slice *id, const char *sentence, struct buf *out);

/* Adds bytes of anybody's as UTF-8 without NUL: what is none becomes U+FFFD. */
void mcp_add_text(struct buf *out, const char *bytes, size_t n);
