/*
 * cli_habits - words and options that people know from docker, podman, git and systemd.
 *
 * What means the same here is taken as that; for the rest there is one line that says what to type.
 */
#include <stdio.h>

#include "base/str.h"
#include "cli/cli.h"

/* Of commands that take a spec. Not in the help: each has another name there, or is always so. */
const struct cli_option cli_habit_options[] = {
	CLI_OWN("interactive", 'i', NULL, ""), /* standard input is always there */
	CLI_OWN("rm", 0, NULL, ""),            /* no cage outlives its command */
	CLI_OWN("init", 0, NULL, ""),          /* every cage has one */
	{ "net", 0, "MODE", SPEC_NETWORK_MODE, NULL, "" },
	{ "timeout", 0, "DURATION", SPEC_LIMITS_TIME, NULL, "" },
	{ "mem", 0, "SIZE", SPEC_LIMITS_MEMORY, NULL, "" },
	{ "cpu", 0, "NUMBER", SPEC_LIMITS_CPU, NULL, "" },
	{ "pids", 0, "NUMBER", SPEC_LIMITS_PIDS, NULL, "" },
	{ 0 },
};

struct habit {
	const char *word, *answer;
};

static const struct habit commands[] = {
	{ "ps", "bawn session list shows sessions, bawn record list shows runs" },
	{ "ls", "bawn session list shows sessions, bawn record list shows runs" },
	{ "list", "bawn session list shows sessions, bawn record list shows runs" },
	{ "exec", "bawn session exec SESSION -- command…" },
	{ "stop", "bawn session stop SESSION; ^C ends a run" },
	{ "kill", "bawn session stop SESSION; ^C ends a run" },
	{ "rm", "bawn session rm SESSION removes a session, bawn discard RUN a run's changes" },
	{ "shell", "bawn run -- bash" },
	{ "bash", "bawn run -- bash" },
	{ "sh", "bawn run -- sh" },
	{ "init", "no file is needed; a spec is a bawn.yaml that begins with: version: 1" },
	{ "start", "bawn session create, then bawn session exec SESSION -- command…" },
	{ "create", "bawn session create" },
	{ "inspect", "bawn record show RUN, or bawn session show SESSION" },
	{ "status", "bawn doctor shows this host, bawn session list sessions" },
	{ "images", "root.image in bawn.yaml names one: host, or dir:PATH" },
	{ "pull", "root.image in bawn.yaml names an image: host, or dir:PATH" },
	{ "build", "root.image in bawn.yaml names an image: host, or dir:PATH" },
	{ "attach", "bawn session exec SESSION -- bash" },
	{ "cp", "bawn apply copies changes to the project, -v SRC:DST shows a folder in the cage" },
	{ "show", "bawn record show RUN, or bawn session show SESSION" },
	{ "claude", "bawn run --agent claude" },
	{ "codex", "bawn run --agent codex" },
	{ "gemini", "bawn run --agent gemini" },
	{ "opencode", "bawn run --agent opencode" },
	{ "undo", "bawn discard" },
	{ "revert", "bawn discard" },
	{ "why", "bawn log --denials shows what was refused, and what would allow it" },
	{ "spec", "man bawn.yaml" },
	{ "bawn.yaml", "man bawn.yaml; bawn check reads it" },
	{ "policy", "man bawn.yaml; your policy is ~/.config/bawn/policy.yaml" },
	{ "policy.yaml", "man bawn.yaml; your policy is ~/.config/bawn/policy.yaml" },
	{ "session start", "bawn session create" },
	{ "session new", "bawn session create" },
	{ "session run", "bawn session exec SESSION -- command…" },
	{ "session kill", "bawn session stop SESSION" },
	{ "session attach", "bawn session exec SESSION -- bash" },
	{ "session end", "bawn session stop SESSION, then: bawn session rm SESSION" },
	{ "session close", "bawn session stop SESSION, then: bawn session rm SESSION" },
	{ "session shell", "bawn session exec SESSION -- bash" },
	{ "session log", "bawn log --session SESSION" },
	{ "session logs", "bawn log --session SESSION" },
	{ 0 },
};

static const struct habit options[] = {
	{ "-d", "a run stays in the foreground; to come back to it: bawn session create" },
	{ "--detach", "a run stays in the foreground; to come back to it: bawn session create" },
	{ "-u", "the command has a user of its own; --fakeroot makes it uid 0" },
	{ "--user", "the command has a user of its own; --fakeroot makes it uid 0" },
	{ "--privileged", "no cage has privileges; bawn plan shows what one has" },
	{ "--cap-add", "no cage has capabilities; bawn plan shows what one has" },
	{ "--mount", "-v SRC:DST[:ro|:rw]" },
	{ "--bind", "-v SRC:DST:rw" },
	{ "--ro-bind", "-v SRC:DST" },
	{ "--unshare-all", "it is always so; see: bawn plan" },
	{ "--image", "root.image in bawn.yaml" },
	{ "--entrypoint", "write the command behind the options" },
	{ "--expose", "-p PORT:PORT" },
	{ "--port", "-p PORT:PORT publishes a port of the cage, --host-port PORT offers yours" },
	{ "--no-network", "no network is the default" },
	{ "--no-spec", "bawn.yaml is read where it is; -f FILE reads another one instead" },
	{ "log --denied", "bawn log --denials" },
	{ "log --why", "bawn log --denials" },
	{ "record --out", "-o FILE" },
	{ "session rm --all", "name the sessions; bawn session list shows them" },
	{ 0 },
};

/* Aliases. */
static const struct habit same[] = {
	{ "logs", "log" },
	{ "-v", "version" },
	{ "-V", "version" },
	{ "record ls", "list" },
	{ "record inspect", "show" },
	{ "agent ls", "list" },
	{ "session ls", "list" },
	{ "session ps", "list" },
	{ "session remove", "rm" },
	{ "session delete", "rm" },
	{ "session inspect", "show" },
	{ 0 },
};

static const char *habits_find(const struct habit *h, const char *word)
{
	for (; h->word; h++)
		if (str_eq(h->word, word))
			return h->answer;
	return NULL;
}

const char *cli_habit_same(const char *words)
{
	return habits_find(same, words);
}

const char *cli_habit_verb(const struct cli *cli)
{
	char words[64];
	const char *verb = cli->word_count ? cli->words[0] : "", *meant;

	snprintf(words, sizeof(words), "%s %.32s", cli->command->name, verb);
	meant = habits_find(same, words);
	return meant ? meant : verb;
}

const char *cli_habit_command(const char *words)
{
	return habits_find(commands, words);
}

const char *cli_habit_option(const struct cli_command *command, const char *option)
{
	char words[64];
	const char *answer;

	snprintf(words, sizeof(words), "%s %s", command->name, option);
	answer = habits_find(options, words);
	return answer || !command->takes_spec ? answer : habits_find(options, option);
}
