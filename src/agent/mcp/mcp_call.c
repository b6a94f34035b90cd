#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/mcp/mcp_inside.h"
#include "base/json_read.h"
#include "base/utf8.h"

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
	mcp_close_result(&j, out);
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
