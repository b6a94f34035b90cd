/*
 * bawn - puts a wall around an agent, or any command, and proves afterwards that it stood.
 *
 * Runs as: the operator.
 * Reads:   its arguments; the commands read the spec and the policies.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "cli/cli.h"
#include "gate/gate.h"
#include "store/store.h"

/* Names that bawn starts itself by, to be another program. */
static const struct {
	const char *name;
	int (*main)(void);
} programs[] = {
	{ GATE_PROGRAM, gate_main },
	{ GATE_CALLER_PROGRAM, gate_caller_main },
};

static const struct cli_command *find_command(const char *name)
{
	for (const struct cli_command *c = cli_commands; c->name; c++)
		if (str_eq(c->name, name))
			return c;
	return NULL;
}

static int say_unknown(const char *name)
{
	const char *names[64];
	const char *near;
	size_t n = 0;

	for (const struct cli_command *c = cli_commands; c->name && n < 64; c++)
		names[n++] = c->name;
	near = str_nearest(name, names, n);
	if (near)
		cli_complain("there is no command '%s'; did you mean %s?", name, near);
	else
		cli_complain("there is no command '%s'; bawn --help lists them", name);
	return CLI_MISUSE;
}

/* Colours on a terminal, unless --color or NO_COLOR says otherwise. */
static int choose_color(struct cli *cli)
{
	const char *when = cli_value(cli, "color"), *none = getenv("NO_COLOR");

	if (!when)
		when = none && *none ? "never" : "auto";
	if (!str_eq(when, "auto") && !str_eq(when, "always") && !str_eq(when, "never")) {
		cli_complain("--color is auto, always or never, not '%s'", when);
		return CLI_MISUSE;
	}
	cli->has_color = str_eq(when, "always") ||
			 (str_eq(when, "auto") && isatty(STDOUT_FILENO) && isatty(STDERR_FILENO));
	return CLI_OK;
}

/* The kernel puts the arguments one behind the other; as far as they are, they are counted. */
static size_t command_line_size(int argc, char **argv)
{
	size_t size = 0;

	for (int i = 0; i < argc && argv[i] == argv[0] + size; i++)
		size += strlen(argv[i]) + 1;
	return size;
}

static int run_command(const struct cli_command *command, int argc, char **argv)
{
	struct cli cli;
	size_t size = command_line_size(argc, argv);
	int status = cli_parse(&cli, command, argc - 2, argv + 2);

	cli.command_line = argv[0];
	cli.command_line_size = size;

	if (status == CLI_OK)
		status = choose_color(&cli);
	if (status == CLI_OK && cli_value(&cli, "help"))
		cli_print_command_help(command);
	else if (status == CLI_OK && cli.word_count && !command->takes_spec &&
		 !command->takes_words) {
		cli_complain("%s takes no '%s'", command->name, cli.words[0]);
		status = CLI_MISUSE;
	} else if (status == CLI_OK)
		status = command->run(&cli);
	else if (command->returns_another)
		status = CLI_FAILED;
	free(cli.given);
	return status;
}

/* Commands that open a store: which may be one that only another program knows. */
static int prefer_program(const char *name, char **argv)
{
	struct err e = { 0 };

	if (!str_eq(name, "session") && !str_eq(name, "worker"))
		return CLI_OK;
	if (store_prefer_program(getenv("BAWN_STORE"), argv, &e) < 0) {
		cli_complain("%s", e.text);
		return CLI_FAILED;
	}
	return CLI_OK;
}

/* A descriptor that came in closed would be taken by the next file opened. */
static void keep_standard_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			file_open("/dev/null", O_RDWR);
}

int main(int argc, char **argv)
{
	const struct cli_command *command;
	const char *name;

	keep_standard_descriptors();
	/* A file that may not grow, such as the log, is an error like any other. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	for (size_t i = 0; argc == 1 && i < sizeof(programs) / sizeof(programs[0]); i++)
		if (str_eq(argv[0], programs[i].name))
			return programs[i].main();
	if (argc < 2) {
		cli_complain("say what to do; bawn --help lists the commands");
		return CLI_MISUSE;
	}
	if (str_eq(argv[1], "--help") || str_eq(argv[1], "-h") || str_eq(argv[1], "help")) {
		cli_print_help();
		return CLI_OK;
	}
	name = str_eq(argv[1], "--version") ? "version" : argv[1];
	command = find_command(name);
	if (prefer_program(name, argv) != CLI_OK)
		return CLI_FAILED;
	return command ? run_command(command, argc, argv) : say_unknown(argv[1]);
}
