#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "cli/cli.h"

/* Options follow docker's names where docker has one. */
const struct cli_option cli_spec_options[] = {
	CLI_OWN("file", 'f', "FILE", "read the spec from FILE [bawn.yaml, if it exists]"),
	CLI_OWN("trust", 0, NULL, "trust the spec file as if you had written it"),
	{ "project", 0, "DIR", SPEC_PROJECT_PATH, NULL, "cage this directory [the current one]" },
	{ "read-only", 0, NULL, SPEC_PROJECT_MODE, "read_only", "mount the project read-only" },
	{ "write", 0, NULL, SPEC_PROJECT_MODE, "writable", "let writes reach the project at once" },
	{ "own-path", 0, NULL, SPEC_PROJECT_AT, "own",
		"mount the project at its own path [/work]" },
	{ "volume", 'v', "SRC:DST[:ro|:rw]", SPEC_BINDS, NULL,
		"mount a path of the host [read-only]" },
	{ "toolchain", 0, "NAME", SPEC_TOOLCHAINS, NULL,
		"show tools of your home: auto, cargo, nvm, pyenv …" },
	{ "env", 'e', "NAME[=VALUE]", SPEC_ENV_SET, NULL, "set a variable, or pass yours" },
	CLI_OWN("env-file", 0, "FILE", "set the variables that FILE lists"),
	{ "workdir", 'w', "DIR", SPEC_WORKDIR, NULL,
		"start the command in this directory of the cage" },
	{ "network", 0, "MODE", SPEC_NETWORK_MODE, NULL, "choose none, allowlist or host [none]" },
	{ "allow", 0, "HOST:PORT", SPEC_NETWORK_ALLOW, NULL,
		"allow a destination, or: npm pip apt cargo go git" },
	{ "host-port", 0, "PORT", SPEC_NETWORK_HOST_PORTS, NULL,
		"offer a port of the host as bawn-host:PORT" },
	{ "publish", 'p', "[ADDR:]PORT:PORT", SPEC_NETWORK_PUBLISH, NULL,
		"publish a port of the cage on ADDR [127.0.0.1]" },
	{ "memory", 'm', "SIZE", SPEC_LIMITS_MEMORY, NULL, "limit memory, such as 2G" },
	{ "cpus", 0, "NUMBER", SPEC_LIMITS_CPU, NULL, "limit processor time, such as 1.5" },
	{ "pids-limit", 0, "NUMBER", SPEC_LIMITS_PIDS, NULL, "limit processes and threads" },
	{ "disk", 0, "SIZE", SPEC_LIMITS_DISK, NULL, "limit what may be written, such as 1G" },
	{ "time", 0, "DURATION", SPEC_LIMITS_TIME, NULL, "limit the running time, such as 30m" },
	{ "output", 0, "SIZE", SPEC_LIMITS_OUTPUT, NULL, "limit what may be printed, such as 10M" },
	{ "name", 0, "NAME", SPEC_NAME, NULL, "name the run in records and cards" },
	{ "agent", 0, "NAME", SPEC_AGENT, NULL,
		"use the profile of an agent; see: bawn agent list" },
	CLI_OWN("secret", 0, "VARIABLE", "use an agent's key without showing it to the cage"),
	{ "engine", 0, "NAME", SPEC_ENGINE, NULL, "choose the engine that builds the cage [auto]" },
	{ "syscalls", 0, "PROFILE", SPEC_SYSCALLS, NULL,
		"choose a system call filter: default, strict or a file" },
	{ "allow-degraded", 0, "GUARANTEE", SPEC_ALLOW_DEGRADED, NULL,
		"run even if this guarantee is unavailable" },
	{ "preflight-allow", 0, "PATH", SPEC_PREFLIGHT_ALLOW, NULL,
		"let a path with credentials be bound" },
	{ "fakeroot", 0, NULL, SPEC_FAKEROOT, "true", "be uid 0 in the cage" },
	{ "relaxed", 0, NULL, SPEC_RELAXED, "true", "run even if guarantees are unavailable" },
	{ "digest-project", 0, NULL, SPEC_AUDIT_DIGEST_PROJECT, "true",
		"record a digest of the project before the run" },
	CLI_OWN("host", 0, "FILE", "plan for a host that doctor --json described"),
	{ 0 },
};

const struct cli_option cli_common_options[] = {
	CLI_OWN("json", 0, NULL, "print one JSON object"),
	CLI_OWN("color", 0, "WHEN", "use colour: auto, always or never [auto]"),
	CLI_OWN("quiet", 'q', NULL, "print nothing but errors"),
	CLI_OWN("help", 'h', NULL, "print this help"),
	{ 0 },
};

const char *const cli_names[CLI_OPT_COUNT] = { [CLI_OPT_NONE] = "",
#define X(name, text) [CLI_OPT_##name] = (text),
	CLI_NAMES(X)
#undef X
};

/* The option lists that a command understands, most its own first. */
static size_t option_lists(const struct cli_command *c, const struct cli_option *ret[static 4])
{
	size_t n = 0;

	if (c->options)
		ret[n++] = c->options;
	if (c->takes_spec)
		ret[n++] = cli_spec_options;
	ret[n++] = cli_common_options;
	if (c->takes_spec)
		ret[n++] = cli_habit_options;
	return n;
}

static const struct cli_option *options_find(
	const struct cli_command *c, const char *name, size_t n, char letter)
{
	const struct cli_option *lists[4];
	size_t count = option_lists(c, lists);

	for (size_t i = 0; i < count; i++)
		for (const struct cli_option *o = lists[i]; o->name; o++)
			if (letter ? o->letter == letter
				   : name && strlen(o->name) == n && memcmp(o->name, name, n) == 0)
				return o;
	return NULL;
}

/* `option` is the part of the argument, `size` long, that names it, with its dashes. */
static int options_say_unknown(
	const struct cli_command *c, const char *argument, const char *option, size_t size)
{
	const struct cli_option *lists[4];
	const char *names[96];
	size_t count = option_lists(c, lists), n = 0;
	char given[64];
	const char *near, *answer;

	snprintf(given, sizeof(given), "%.*s", (int)(size < 63 ? size : 63), option);
	answer = cli_habit_option(c, given);
	for (size_t i = 0; i < count && lists[i] != cli_habit_options; i++)
		for (const struct cli_option *o = lists[i]; o->name && n < 96; o++)
			names[n++] = o->name;
	near = str_starts(argument, "--") ? str_nearest(given + 2, names, n) : NULL;
	cli_complain("cannot use %s: bawn %s has no such option", given, c->name);
	if (answer)
		cli_hint("%s", answer);
	else if (near)
		cli_hint("did you mean --%s?", near);
	else
		cli_hint("bawn %s --help lists the options", c->name);
	return CLI_MISUSE;
}

static int options_keep(struct cli *cli, const struct cli_option *option, const char *value)
{
	if (cli->given_count == CLI_MAX_OPTIONS) {
		cli_complain("cannot read the command line: more than %d options", CLI_MAX_OPTIONS);
		return CLI_MISUSE;
	}
	cli->given[cli->given_count++] = (struct cli_given){ option, value, NULL };
	return CLI_OK;
}

/* Keeps an option with its value, which may stand by itself: then *i moves past it. */
static int options_take(
	struct cli *cli, const struct cli_option *o, const char *value, char **argv, int *i)
{
	if (o->argument && !value) {
		value = argv[*i + 1];
		if (!value) {
			cli_complain("cannot use --%s: its value is missing", o->name);
			cli_hint("--%s %s", o->name, o->argument);
			return CLI_MISUSE;
		}
		++*i;
	}
	return options_keep(cli, o, o->argument ? value : "");
}

static int take_long(struct cli *cli, char **argv, int *i)
{
	const char *argument = argv[*i], *name = argument + 2;
	size_t n = strcspn(name, "=");
	const struct cli_option *o = options_find(cli->command, name, n, '\0');

	if (!o)
		return options_say_unknown(cli->command, argument, argument, n + 2);
	if (!o->argument && name[n]) {
		cli_complain("cannot use --%s: it takes no value", o->name);
		return CLI_MISUSE;
	}
	return options_take(cli, o, name[n] ? name + n + 1 : NULL, argv, i);
}

/* -it is -i -t; what follows a letter with a value is that. */
static int take_letters(struct cli *cli, char **argv, int *i)
{
	const char *argument = argv[*i];
	int status = CLI_OK;

	for (const char *p = argument + 1; *p && status == CLI_OK; p++) {
		const struct cli_option *o = options_find(cli->command, NULL, 0, *p);
		char letter[] = { '-', *p, '\0' };

		if (!o)
			return options_say_unknown(cli->command, argument, letter, 2);
		if (o->argument)
			return options_take(cli, o, p[1] ? p + 1 : NULL, argv, i);
		status = options_keep(cli, o, "");
	}
	return status;
}

/* Sorts them; words between options, where the command takes some, are moved to the front. */
static int sort(struct cli *cli, int argc, char **argv)
{
	size_t n = 0;
	int i = 0;

	for (; i < argc; i++) {
		bool is_word = argv[i][0] != '-' || !argv[i][1];
		int status;

		if (is_word && !cli->command->takes_words)
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
		status = argv[i][1] == '-' ? take_long(cli, argv, &i) : take_letters(cli, argv, &i);
		if (status != CLI_OK)
			return status;
	}
	cli->open_count = n;
	cli->word_count = n + (size_t)(argc - i);
	memmove(argv + i - n, argv, n * sizeof(*argv));
	cli->words = argv + i - n;
	cli->is_json = cli_value(cli, CLI_OPT_JSON) != NULL;
	cli->is_quiet = cli_value(cli, CLI_OPT_QUIET) != NULL;
	if (cli->is_json && cli->command->no_json) {
		cli_complain("%s has no --json: %s", cli->command->name, cli->command->no_json);
		return CLI_MISUSE;
	}
	return cli->command->takes_spec ? cli_fill_request(cli) : CLI_OK;
}

int cli_parse(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
	*cli = (struct cli){ .command = command };
	run_request_init(&cli->request);
	/* One argument may be several options. */
	cli->given = malloc(CLI_MAX_OPTIONS * sizeof(*cli->given));
	if (!cli->given) {
		cli_complain("not enough memory for the options");
		return CLI_FAILED;
	}
	return sort(cli, argc, argv);
}

int cli_parse_rest(struct cli *cli)
{
	return sort(cli, (int)cli->word_count - 1, cli->words + 1);
}

void cli_done(struct cli *cli)
{
	run_request_done(&cli->request);
	free(cli->given);
	cli->given = NULL;
}

bool cli_is(const struct cli_given *g, enum cli_name name)
{
	return g->option && str_eq(g->option->name, cli_names[name]);
}

const char *cli_value(const struct cli *cli, enum cli_name name)
{
	for (size_t i = cli->given_count; i-- > 0;)
		if (cli_is(&cli->given[i], name))
			return cli->given[i].value;
	return NULL;
}

/* --- as a request --- */

/* Options that are not about a key of the spec, and where they go. */
static const struct {
	enum cli_name name;
	enum {
		TEXT,
		FLAG,
		LIST
	} kind;
	size_t at;
} targets[] = {
	{ CLI_OPT_FILE, TEXT, offsetof(struct run_request, here.file) },
	{ CLI_OPT_HOST, TEXT, offsetof(struct run_request, here.host) },
	{ CLI_OPT_TRUST, FLAG, offsetof(struct run_request, here.is_trusted) },
	{ CLI_OPT_SECRET, LIST, offsetof(struct run_request, here.secrets) },
	{ CLI_OPT_RECORD, TEXT, offsetof(struct run_request, here.record) },
	{ CLI_OPT_CAST, TEXT, offsetof(struct run_request, here.cast) },
	{ CLI_OPT_STATUS_FD, TEXT, offsetof(struct run_request, here.status_fd) },
	{ CLI_OPT_RAW, FLAG, offsetof(struct run_request, here.is_unfiltered) },
	{ CLI_OPT_TIMING, FLAG, offsetof(struct run_request, here.is_timed) },
	{ CLI_OPT_AGAIN, TEXT, offsetof(struct run_request, here.again) },
	{ CLI_OPT_SAME, FLAG, offsetof(struct run_request, here.is_same) },
	{ CLI_OPT_KEY, LIST, offsetof(struct run_request, here.keys) },
	{ CLI_OPT_SUBJECT, LIST, offsetof(struct run_request, subjects) },
	{ CLI_OPT_SYNC, FLAG, offsetof(struct run_request, is_synced) },
};

static int options_add_other(struct run_request *q, const struct cli_given *g, struct err *e)
{
	if (cli_is(g, CLI_OPT_ENV_FILE))
		return run_request_set(q, SPEC_KEY_COUNT, "--env-file", g->value, e);
	if (cli_is(g, CLI_OPT_TTY) && q->here.tty == RUN_TTY_AUTO)
		q->here.tty = RUN_TTY_ALWAYS;
	if (cli_is(g, CLI_OPT_NO_TTY))
		q->here.tty = RUN_TTY_NEVER;
	for (size_t i = 0; i < COUNT_OF(targets); i++) {
		char *at = (char *)q + targets[i].at;

		if (!cli_is(g, targets[i].name))
			continue;
		if (targets[i].kind == LIST)
			return run_request_add(q, (struct run_texts *)(void *)at, g->value, e);
		if (targets[i].kind == TEXT)
			*(const char **)(void *)at = g->value;
		else
			*(bool *)at = true;
	}
	return 0;
}

static int add_given(struct run_request *q, const struct cli_given *g, struct err *e)
{
	const struct cli_option *o = g->option;
	const char *value = o->fixed ? o->fixed : g->value;
	const char *name = arena_printf(&q->arena, "%s%s", g->unit ? "" : "--", o->name);

	if (o->key == SPEC_KEY_COUNT)
		return options_add_other(q, g, e);
	if (g->unit)
		value = arena_printf(&q->arena, "%s%s", value, g->unit);
	if (!name || !value)
		return err_set(e, ERR_SYS, ENOMEM, "cannot read the options: out of memory");
	return run_request_set(q, o->key, name, value, e);
}

int cli_fill_request(struct cli *cli)
{
	struct run_request *q = &cli->request;
	struct err e = { 0 };

	run_request_done(q);
	run_request_init(q);
	q->purpose = cli->command->purpose;
	q->command = (const char *const *)cli->words;
	q->command_count = cli->word_count;
	for (size_t i = 0; i < cli->given_count; i++) {
		if (add_given(q, &cli->given[i], &e) == 0)
			continue;
		cli_complain_err(&e);
		return CLI_FAILED;
	}
	return CLI_OK;
}
