#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "cli/cli.h"

static void print_options(const struct cli_option *o, struct buf *out)
{
	for (; o->name; o++) {
		size_t before = out->len, used;

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
		"bawn puts a wall around an AI agent, or any command: declared in one YAML file,\n"
		"enforced by the kernel, checked from outside.\n\n");
	for (const struct cli_command *c = cli_commands; c->name; c++)
		buf_printf(&out, "  bawn %-10s %s\n", c->name, c->help);
	buf_puts(&out, "\nbawn COMMAND --help says more; bawn.yaml(5) describes the spec.\n");
	cli_write(&out, CLI_OK);
}

void cli_print_command_help(const struct cli_command *command)
{
	own(buf) struct buf out = { .max = 1 << 16 };

	buf_printf(&out, "bawn %s%s%s\n\n%s\n\n", command->name, *command->usage ? " " : "",
		command->usage, command->help);
	if (command->options)
		print_options(command->options, &out);
	print_options(cli_common_options, &out);
	if (command->takes_spec) {
		buf_puts(&out, "\nOptions that override the spec, one by one:\n");
		print_options(cli_spec_options, &out);
	}
	cli_write(&out, CLI_OK);
}
