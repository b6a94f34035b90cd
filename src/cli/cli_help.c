#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"

static bool has_option(const struct cli_option *o, const char *name)
{
	for (; o && o->name; o++)
		if (str_eq(o->name, name))
			return true;
	return false;
}

/* All but those that stand for something else in `own`, which may be NULL, and a refused --json. */
static void print_options(
	const struct cli_option *o, const struct cli_option *own, bool has_json, struct buf *out)
{
	for (; o->name; o++) {
		size_t before = out->len, used;

		if (has_option(own, o->name) || (!has_json && str_eq(o->name, "json")))
			continue;
		buf_printf(out, o->letter ? "  -%c, " : "      ", o->letter);
		buf_printf(out, "--%s%s%s", o->name, o->argument ? " " : "",
			o->argument ? o->argument : "");
		used = out->len - before;
		buf_repeat(out, ' ', used < 34 ? 34 - used : 1);
		buf_printf(out, "%s\n", o->help);
	}
}

void cli_print_help(void)
{
	own(buf) struct buf out = { .max = 1 << 16 };

	buf_puts(&out,
		"bawn runs an AI agent, or any command, in a cage: a sandbox that the Linux kernel\n"
		"enforces. Nothing reaches your files until you apply it.\n\n");
	for (const struct cli_command *c = cli_commands; c->name; c++)
		buf_printf(&out, "  bawn %-10s %s\n", c->name, c->help);
	buf_puts(&out,
		"\nBegin with: bawn doctor, bawn run -- COMMAND, bawn diff, bawn apply\n"
		"Options of a command: bawn COMMAND --help. Manual: man bawn, man bawn.yaml\n");
	cli_write(&out, CLI_OK);
}

void cli_print_command_help(const struct cli_command *command)
{
	own(buf) struct buf out = { .max = 1 << 16 };

	buf_printf(&out, "bawn %s%s%s\n\n%s\n\n", command->name, *command->usage ? " " : "",
		command->usage, command->help);
	if (command->options)
		print_options(command->options, NULL, true, &out);
	print_options(cli_common_options, command->options, !command->no_json, &out);
	if (command->no_json)
		buf_printf(&out, "\nbawn %s has no --json: %s.\n", command->name, command->no_json);
	if (command->takes_spec) {
		buf_puts(&out, "\nOptions that override the spec, one by one:\n");
		print_options(cli_spec_options, command->options, true, &out);
	}
	cli_write(&out, CLI_OK);
}

const char *cli_command_word(const struct cli_command *command)
{
	const char *space = strrchr(command->name, ' ');

	return space ? space + 1 : command->name;
}

void cli_print_subcommands(const struct cli_command *command)
{
	own(buf) struct buf out = { .max = 1 << 16 };

	buf_printf(&out, "bawn %s %s\n\n%s\n\n", command->name, command->usage, command->help);
	for (const struct cli_command *c = command->subcommands; c->name; c++)
		buf_printf(&out, "  bawn %-16s %s\n", c->name, c->help);
	buf_printf(&out, "\nbawn %s COMMAND --help lists the options.\n", command->name);
	cli_write(&out, CLI_OK);
}
