/*
 * cmd_tool - the file tools of agents, one call each; for use in a cage, and by hand.
 *
 * Runs as: a command in a cage, or the operator.
 * Leaves:  what a tool wrote; 1 where it could not, 2 where its arguments are wrong.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/tool/tool.h"
#include "base/file.h"
#include "base/json.h"
#include "base/own.h"
#include "cli/commands.h"

static int run_tool(struct cli *cli);

/* Standard input holds what other commands have as arguments. */
const struct cli_command cmd_tool_commands[] = {
	{ "tool read", "[options] <{\"path\", \"offset\"?, \"limit\"?}",
		"print the lines of a text file with their numbers", NULL, false, run_tool },
	{ "tool write", "[options] <{\"path\", \"content\"}",
		"write a file, and create its folders", NULL, false, run_tool },
	{ "tool edit", "[options] <{\"path\", \"old_string\", \"new_string\", \"replace_all\"?}",
		"replace exact text in a file", NULL, false, run_tool },
	{ "tool glob", "[options] <{\"pattern\", \"path\"?}",
		"list paths that match src/*.c or **/*.{c,h}, newest first", NULL, false,
		run_tool },
	{ "tool grep",
		"[options] <{\"pattern\", \"path\"?, \"glob\"?, \"output_mode\"?, \"head_limit\"?, "
		"\"-i\"?, \"-n\"?, \"-A\"?, \"-B\"?, \"-C\"?}",
		"search files for lines that match a regular expression", NULL, false, run_tool },
	{ 0 },
};

static void tool_print_json(const struct buf *text, struct buf *out)
{
	struct json j;

	cli_json_begin(&j, out);
	json_text(&j, "text", buf_text(text));
	cli_json_end(&j);
}

static int tool_read_arguments(char **ret, size_t *ret_size)
{
	int r = file_read_all(STDIN_FILENO, TOOL_MAX_INPUT, ret, ret_size);

	if (r == -EFBIG)
		cli_complain("the arguments are larger than %zu MiB", TOOL_MAX_INPUT >> 20);
	else if (r < 0)
		cli_complain("cannot read the arguments from standard input: %s", strerror(-r));
	return r;
}

static int run_tool(struct cli *cli)
{
	own(buf) struct buf text = { .max = TOOL_MAX_OUTPUT + TOOL_MAX_NOTE };
	own(buf) struct buf json = { .max = 8 * TOOL_MAX_OUTPUT };
	own_free char *arguments = NULL;
	struct err e = { 0 };
	size_t n;

	if (tool_read_arguments(&arguments, &n) < 0)
		return CLI_MISUSE;
	if (tool_run(tool_find(cli_command_word(cli->command)), arguments, n, &text, &e) < 0) {
		cli_complain_err(&e);
		return e.kind == ERR_USE ? CLI_MISUSE : CLI_NO;
	}
	if (!cli->is_json)
		return cli_write(&text, CLI_OK);
	tool_print_json(&text, &json);
	return cli_write(&json, CLI_OK);
}
