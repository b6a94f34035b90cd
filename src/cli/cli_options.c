#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cli/cli.h"

/* Options follow docker's names where docker has one. */
const struct cli_option cli_spec_options[] = {
	{ "file", 'f', "FILE", SPEC_KEY_COUNT, NULL, "the spec; bawn.yaml here if there is one" },
	{ "trust", 0, NULL, SPEC_KEY_COUNT, NULL, "take the spec file as your own word" },
	{ "project", 0, "DIR", SPEC_PROJECT_PATH, NULL, "the project; the current directory" },
	{ "read-only", 0, NULL, SPEC_PROJECT_MODE, "read_only", "the project cannot be written" },
	{ "write", 0, NULL, SPEC_PROJECT_MODE, "writable", "writes reach the project at once" },
	{ "volume", 'v', "SRC:DST[:ro|:rw]", SPEC_BINDS, NULL,
		"show a path of the host; read-only" },
	{ "env", 'e', "NAME[=VALUE]", SPEC_ENV_SET, NULL, "set a variable, or let yours pass" },
	{ "workdir", 'w', "DIR", SPEC_WORKDIR, NULL, "where the command starts, in the cage" },
	{ "network", 0, "MODE", SPEC_NETWORK_MODE, NULL, "none, allowlist or host" },
	{ "allow", 0, "HOST:PORT", SPEC_NETWORK_ALLOW, NULL, "a destination; turns allowlist on" },
	{ "host-port", 0, "PORT", SPEC_NETWORK_HOST_PORTS, NULL,
		"a port of yours, as bawn-host:PORT; the same" },
	{ "publish", 'p', "[ADDR:]PORT:PORT", SPEC_NETWORK_PUBLISH, NULL,
		"open a port of the cage; the same" },
	{ "memory", 'm', "SIZE", SPEC_LIMITS_MEMORY, NULL, "such as 2G" },
	{ "cpus", 0, "NUMBER", SPEC_LIMITS_CPU, NULL, "such as 1.5" },
	{ "pids-limit", 0, "NUMBER", SPEC_LIMITS_PIDS, NULL, "processes and threads" },
	{ "disk", 0, "SIZE", SPEC_LIMITS_DISK, NULL, "what may be written" },
	{ "time", 0, "DURATION", SPEC_LIMITS_TIME, NULL, "such as 30m" },
	{ "output", 0, "SIZE", SPEC_LIMITS_OUTPUT, NULL, "what may be printed" },
	{ "name", 0, "NAME", SPEC_NAME, NULL, "a name for records and cards" },
	{ "agent", 0, "NAME", SPEC_AGENT, NULL, "the profile of an agent" },
	{ "secret", 0, "VARIABLE", SPEC_KEY_COUNT, NULL,
		"a key of the agent's that is used for it and never in the cage" },
	{ "engine", 0, "NAME", SPEC_ENGINE, NULL, "what carries the plan out" },
	{ "syscalls", 0, "PROFILE", SPEC_SYSCALLS, NULL, "default, strict or a file" },
	{ "allow-degraded", 0, "GUARANTEE", SPEC_ALLOW_DEGRADED, NULL, "one that may be missing" },
	{ "fakeroot", 0, NULL, SPEC_FAKEROOT, "true", "uid 0 in the cage" },
	{ "relaxed", 0, NULL, SPEC_RELAXED, "true", "do not insist on any guarantee" },
	{ "digest-project", 0, NULL, SPEC_AUDIT_DIGEST_PROJECT, "true",
		"what the project is before the run goes on record" },
	{ "host", 0, "FILE", SPEC_KEY_COUNT, NULL, "plan for the host of a doctor --json file" },
	{ 0 },
};

const struct cli_option cli_common_options[] = {
	{ "json", 0, NULL, SPEC_KEY_COUNT, NULL, "one JSON object on standard output" },
	{ "color", 0, "WHEN", SPEC_KEY_COUNT, NULL, "auto, always or never" },
	{ "quiet", 'q', NULL, SPEC_KEY_COUNT, NULL, "say nothing but errors" },
	{ "help", 'h', NULL, SPEC_KEY_COUNT, NULL, "this text" },
	{ 0 },
};

/* The option lists that a command understands, most its own first. */
static size_t option_lists(const struct cli_command *c, const struct cli_option *ret[static 3])
{
	size_t n = 0;

	if (c->options)
		ret[n++] = c->options;
	if (c->takes_spec)
		ret[n++] = cli_spec_options;
	ret[n++] = cli_common_options;
	return n;
}

static const struct cli_option *find(
	const struct cli_command *c, const char *name, size_t n, char letter)
{
	const struct cli_option *lists[3];
	size_t count = option_lists(c, lists);

	for (size_t i = 0; i < count; i++)
		for (const struct cli_option *o = lists[i]; o->name; o++)
			if (letter ? o->letter == letter
				   : strlen(o->name) == n && memcmp(o->name, name, n) == 0)
				return o;
	return NULL;
}

static int say_unknown(const struct cli_command *c, const char *argument)
{
	const struct cli_option *lists[3];
	const char *names[64];
	size_t count = option_lists(c, lists), n = 0;
	const char *near;

	for (size_t i = 0; i < count; i++)
		for (const struct cli_option *o = lists[i]; o->name && n < 64; o++)
			names[n++] = o->name;
	near = str_starts(argument, "--") ? str_nearest(argument + 2, names, n) : NULL;
	if (near)
		cli_complain("%s has no option '%s'; did you mean --%s?", c->name, argument, near);
	else
		cli_complain("%s has no option '%s'; bawn %s --help lists them", c->name, argument,
			c->name);
	return CLI_MISUSE;
}

static int keep(struct cli *cli, const struct cli_option *option, const char *value)
{
	if (cli->given_count == CLI_MAX_OPTIONS) {
		cli_complain("more than %d options", CLI_MAX_OPTIONS);
		return CLI_MISUSE;
	}
	cli->given[cli->given_count++] = (struct cli_given){ option, value, NULL };
	return CLI_OK;
}

/* One argument that starts with '-'; moves *i past a value that stands by itself. */
static int take_option(struct cli *cli, char **argv, int *i)
{
	const char *argument = argv[*i], *value = NULL;
	bool is_long = argument[1] == '-';
	const char *name = argument + (is_long ? 2 : 1);
	size_t n = is_long ? strcspn(name, "=") : 1;
	const struct cli_option *o = find(cli->command, name, n, is_long ? '\0' : name[0]);

	if (!o)
		return say_unknown(cli->command, argument);
	if (name[n])
		value = name + n + (is_long ? 1 : 0);
	if (!o->argument && value) {
		cli_complain("option --%s takes no value", o->name);
		return CLI_MISUSE;
	}
	if (o->argument && !value) {
		value = argv[*i + 1];
		if (!value) {
			cli_complain("option --%s needs a value: %s", o->name, o->argument);
			return CLI_MISUSE;
		}
		++*i;
	}
	return keep(cli, o, o->argument ? value : "");
}

int cli_parse(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
	size_t n = 0; /* words found between options are moved to the front */
	int i = 0;

	*cli = (struct cli){ .command = command };
	cli->given = calloc((size_t)argc + 1, sizeof(*cli->given));
	if (!cli->given) {
		cli_complain("not enough memory for the options");
		return CLI_FAILED;
	}
	for (; i < argc; i++) {
		bool is_word = argv[i][0] != '-' || !argv[i][1];
		int status;

		if (is_word && !command->takes_words)
			break;
		if (is_word) {
			argv[n++] = argv[i];
			continue;
		}
		if (str_eq(argv[i], "--")) {
			cli->has_dashes = true;
			i++;
			break;
		}
		status = take_option(cli, argv, &i);
		if (status != CLI_OK)
			return status;
	}
	cli->open_count = n;
	cli->word_count = n + (size_t)(argc - i);
	memmove(argv + i - n, argv, n * sizeof(*argv));
	cli->words = argv + i - n;
	cli->is_json = cli_value(cli, "json") != NULL;
	cli->is_quiet = cli_value(cli, "quiet") != NULL;
	return CLI_OK;
}

const char *cli_value(const struct cli *cli, const char *name)
{
	for (size_t i = cli->given_count; i-- > 0;) {
		const struct cli_option *o = cli->given[i].option;

		if (o && str_eq(o->name, name))
			return cli->given[i].value;
	}
	return NULL;
}
