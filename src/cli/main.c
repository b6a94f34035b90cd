/*
 * bawn - puts a wall around an agent, or any command, and proves afterwards that it stood.
 *
 * Runs as: the operator.
 * Reads:   its arguments; the commands read the spec and the policies.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/cli.h"
#include "gate/gate.h"
#include "session/store/store.h"

/* Names that bawn starts itself by, to be another program. */
static const struct {
	const char *name;
	int (*main)(void);
} programs[] = {
	{ GATE_PROGRAM, gate_main },
	{ GATE_DIALER_PROGRAM, dialer_main },
};

/* `before` is what the table's commands begin with: "", or "session ". */
static const struct cli_command *find_command(
	const struct cli_command *table, const char *before, const char *word)
{
	char words[64];
	const char *meant;

	snprintf(words, sizeof(words), "%s%.32s", before, word);
	meant = cli_habit_same(words);
	for (const struct cli_command *c = table; c->name; c++)
		if (str_eq(cli_command_word(c), meant ? meant : word))
			return c;
	return NULL;
}

/* `before` is what the table's commands begin with: "", or "session ". */
static int main_say_unknown(const struct cli_command *table, const char *before, const char *word)
{
	const char *names[64];
	const char *near, *answer;
	char words[64];
	size_t n = 0;

	snprintf(words, sizeof(words), "%s%.32s", before, word);
	answer = cli_habit_command(words);
	for (const struct cli_command *c = table; c->name && n < 64; c++)
		names[n++] = cli_command_word(c);
	near = str_nearest(word, names, n);
	if (answer) {
		cli_complain("there is no command '%s%s'", before, word);
		cli_hint("%s", answer);
	} else if (near)
		cli_complain("there is no command '%s%s'; did you mean %s?", before, word, near);
	else {
		cli_complain("there is no command '%s%s'; bawn %s--help lists them", before, word,
			before);
		if (!*before)
			cli_hint("to run a program in a cage: bawn run -- program…");
	}
	return CLI_MISUSE;
}

/* Colours on a terminal, unless --color or NO_COLOR says otherwise. */
static int choose_color(struct cli *cli)
{
	const char *when = cli_value(cli, CLI_OPT_COLOR), *none = getenv("NO_COLOR");

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

/* When main began, and how long the processor had worked for us by then: the start of libc. */
static uint64_t began_ns, cpu_before_ns;

static void note_beginning(int argc, char **argv)
{
	struct timespec used;
	bool is_timed = false;

	began_ns = clock_ns();
	for (int i = 1; i < argc && !str_eq(argv[i], "--"); i++)
		is_timed |= str_eq(argv[i], "--timing");
	if (is_timed && clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0)
		cpu_before_ns = (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

/* `words` are those by which it was chosen, bawn's own name among them. */
static int run_command(const struct cli_command *command, int words, int argc, char **argv)
{
	struct cli cli;
	size_t size = command_line_size(argc, argv);
	int status = cli_parse(&cli, command, argc - words, argv + words);

	cli.command_line = argv[0];
	cli.command_line_size = size;
	cli.began_ns = began_ns;
	cli.cpu_before_ns = cpu_before_ns;
	if (status == CLI_OK)
		status = choose_color(&cli);
	if (status == CLI_OK && cli_value(&cli, CLI_OPT_HELP))
		cli_print_command_help(command);
	else if (status == CLI_OK && cli.word_count && !command->takes_spec &&
		 !command->takes_words) {
		cli_complain("%s takes no '%s'", command->name, cli.words[0]);
		status = CLI_MISUSE;
	} else if (status == CLI_OK)
		status = command->run(&cli);
	else if (command->returns_another)
		status = CLI_FAILED;
	cli_done(&cli);
	return status;
}

/* Commands that open a store: which may be one that only another program knows. */
static int prefer_program(const char *name, char **argv)
{
	static const char *const names[] = { "session", "worker", "diff", "apply", "discard",
		"mcp" };
	struct err e = { 0 };
	bool opens = false;

	for (size_t i = 0; !opens && i < COUNT_OF(names); i++)
		opens = str_eq(name, names[i]);
	/* The log is in files: only --session asks the store. */
	for (size_t i = 2; !opens && str_eq(name, "log") && argv[i]; i++)
		opens = str_starts(argv[i], "--session");
	if (opens && store_prefer_program(getenv("BAWN_STORE"), argv, &e) < 0) {
		if (!e.hint[0])
			err_hint(&e, 0, "the environment variable BAWN_STORE names this store");
		cli_complain_err(&e);
		return CLI_FAILED;
	}
	return CLI_OK;
}

static bool is_help(const char *word)
{
	return str_eq(word, "--help") || str_eq(word, "-h") || str_eq(word, "help");
}

static int run_subcommand(const struct cli_command *command, int argc, char **argv)
{
	const struct cli_command *inner;
	char before[32];

	if (argc < 3) {
		cli_complain("say what to do; bawn %s --help lists it", command->name);
		return CLI_MISUSE;
	}
	if (is_help(argv[2])) {
		cli_print_subcommands(command);
		return CLI_OK;
	}
	snprintf(before, sizeof(before), "%s ", command->name);
	inner = find_command(command->subcommands, before, argv[2]);
	if (inner)
		return run_command(inner, 3, argc, argv);
	return main_say_unknown(command->subcommands, before, argv[2]);
}

/* bawn help run, bawn help session exec; `inner` may be NULL. */
static int print_help_of(const char *word, const char *inner)
{
	const struct cli_command *c = find_command(cli_commands, "", word), *sub;
	char before[32];

	if (!c)
		return main_say_unknown(cli_commands, "", word);
	if (!c->subcommands) {
		cli_print_command_help(c);
		return CLI_OK;
	}
	if (!inner) {
		cli_print_subcommands(c);
		return CLI_OK;
	}
	snprintf(before, sizeof(before), "%s ", c->name);
	sub = find_command(c->subcommands, before, inner);
	if (!sub)
		return main_say_unknown(c->subcommands, before, inner);
	cli_print_command_help(sub);
	return CLI_OK;
}

/* A descriptor that came in closed would be taken by the next file opened. */
static void keep_standard_descriptors(void)
{
	struct pollfd fds[] = { { .fd = 0 }, { .fd = 1 }, { .fd = 2 } };

	while (poll(fds, COUNT_OF(fds), 0) < 0 && errno == EINTR)
		;
	for (size_t i = 0; i < COUNT_OF(fds); i++)
		if (fds[i].revents & POLLNVAL)
			file_open("/dev/null", O_RDWR);
}

/* A umask that takes rights from the owner would lock bawn out of its own folders. */
static void keep_own_rights(void)
{
	mode_t mask = umask(022);

	if (mask != 022)
		umask(mask & 077);
}

/* A cage tells its commands where its root is, by a name that is a setting outside. */
static void forget_cage_variables(void)
{
	if (run_is_in_cage())
		unsetenv("BAWN_SANDBOX_ROOT");
}

int main(int argc, char **argv)
{
	const struct cli_command *command;
	const char *name;

	note_beginning(argc, argv);
	/* What is freed is needed again a moment later. */
	mallopt(M_TRIM_THRESHOLD, 4 << 20);
	keep_standard_descriptors();
	keep_own_rights();
	forget_cage_variables();
	if (!cli_remember_arguments(argc, argv))
		return CLI_FAILED;
	/* A file that may not grow, such as the log, is an error like any other. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	for (size_t i = 0; argc == 1 && i < COUNT_OF(programs); i++)
		if (str_eq(argv[0], programs[i].name))
			return programs[i].main();
	if (argc < 2) {
		cli_complain("say what to do; bawn --help lists the commands");
		return CLI_MISUSE;
	}
	if (is_help(argv[1]) && argc > 2)
		return print_help_of(argv[2], argv[3]);
	if (is_help(argv[1])) {
		cli_print_help();
		return CLI_OK;
	}
	name = str_eq(argv[1], "--version") ? "version" : argv[1];
	command = find_command(cli_commands, "", name);
	if (!command)
		return main_say_unknown(cli_commands, "", argv[1]);
	if (prefer_program(name, argv) != CLI_OK)
		return CLI_FAILED;
	return command->subcommands ? run_subcommand(command, argc, argv)
				    : run_command(command, 2, argc, argv);
}
