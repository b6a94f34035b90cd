/* bawn(1): the overview, and what holds for all commands: status, environment, files. */
#include <stdio.h>

#include "base/count.h"
#include "gen_docs.h"

void gen_options(const struct cli_option *o)
{
	for (; o->name; o++) {
		puts(".TP");
		if (o->letter)
			printf("\\fB\\-%c\\fR, ", o->letter);
		fputs("\\fB\\-\\-", stdout);
		gen_roff(o->name);
		fputs("\\fR", stdout);
		if (o->argument) {
			fputs(" \\fI", stdout);
			gen_roff(o->argument);
			fputs("\\fR", stdout);
		}
		putchar('\n');
		gen_roff(o->help);
		puts(".");
	}
}

static void print_commands(void)
{
	puts(".SH COMMANDS");
	for (const struct cli_command *c = cli_commands; c->name; c++) {
		printf(".TP\n.BR bawn\\-%s (1)\n", c->name);
		gen_roff(c->help);
		puts(".");
	}
}

/* Every variable that the program reads; a test compares it with the source. */
static const struct {
	const char *name, *meaning;
} variables[] = {
	{ "HOME", "Your home: what ~ means. Must be an absolute path." },
	{ "XDG_CONFIG_HOME", "Replaces ~/.config." },
	{ "XDG_RUNTIME_DIR",
		"Where the systemd manager of the user listens, which is asked for a cgroup [/run/user/UID]." },
	{ "XDG_STATE_HOME", "Replaces ~/.local/state, and /var/lib for root." },
	{ "PATH", "Where bawn looks for the programs of agents (--agent)." },
	{ "NO_COLOR", "Turns colours off, if it is set and not empty." },
	{ "PAGER",
		"Shows long output on a terminal [less]. It is split into words and run without a shell." },
	{ "LESS", "Options for less [FRX]." },
	{ "TERM", "The type of the terminal, which a command has too if it runs at one." },
	{ "BAWN_STORE",
		"The store of sessions and queued runs: sqlite:PATH or postgresql://USER@HOST/DATABASE "
		"[store.db in the state folder]. libpq's own variables, such as PGPASSWORD, PGPASSFILE and PGSSLMODE, hold for PostgreSQL." },
	{ "BAWN_STAY_SECONDS",
		"How long a process stays after bawn session exec, ready for the session's next command [10]; 0: none does." },
	{ "BAWN_SANDBOX", "Set in every cage: bawn run says that this is already a cage." },
};

static void print_environment(void)
{
	puts(".SH ENVIRONMENT");
	for (size_t i = 0; i < COUNT_OF(variables); i++) {
		printf(".TP\n.B %s\n", variables[i].name);
		gen_roff(variables[i].meaning);
		putchar('\n');
	}
	gen_paragraph(
		"Keys: bawn reads the variables that --secret, --env NAME, env.pass and secrets of a spec name, and "
		"no others. In a cage, bawn sets BAWN_SANDBOX, BAWN_SESSION_ID, BAWN_PROJECT_DIR, BAWN_SANDBOX_ROOT and, "
		"with an image, BAWN_WORKDIR.");
	gen_paragraph(
		"A service may set these instead of options of bawn session create and bawn worker; bawn run does not "
		"read them. Policies hold for them, and an option wins. An empty one is ignored; bawn refuses an unknown one that begins with "
		"BAWN_SANDBOX_.");
	for (const struct cli_setting *x = cli_settings; x->option.name; x++) {
		fputs(".TP\n\\fB", stdout);
		gen_roff(x->option.name);
		printf("\\fR \\fI%s\\fR\n", x->option.argument);
		gen_roff(x->option.help);
		puts(".");
	}
}

static void print_files(void)
{
	static const struct {
		const char *path, *what;
	} files[] = {
		{ "bawn.yaml", "The project's spec, in the project's folder." },
		{ "~/.config/bawn/policy.yaml",
			"Your policy. Must be yours or root's, and writable by nobody else." },
		{ "/etc/bawn/policy.yaml", "The policy of the machine; the same holds." },
		{ "~/.config/bawn/agents/NAME.yaml", "Profiles of agents of your own." },
		{ "~/.local/state/bawn",
			"The state folder; for root /var/lib/bawn. Never visible in a cage." },
		{ "~/.local/state/bawn/runs/RUN",
			"A run: record.intoto.jsonl, events.jsonl, effects.json and, until they are applied or "
			"discarded, its changes." },
		{ "~/.local/state/bawn/specs, plans",
			"What runs were of, each text once, under its SHA-256." },
		{ "~/.local/state/bawn/keys",
			"The signing key, and the public halves of former ones." },
		{ "~/.local/state/bawn/log", "The log of all runs." },
		{ "~/.local/state/bawn/store.db, sessions",
			"Sessions and queued runs, unless BAWN_STORE and BAWN_SANDBOX_ROOT name others." },
		{ "~/.local/state/bawn/unsigned, digests, layers",
			"Runs without a record yet; digests of trees and spare layers, which may be removed." },
	};

	puts(".SH FILES");
	for (size_t i = 0; i < COUNT_OF(files); i++) {
		puts(".TP");
		fputs(".I \"", stdout);
		gen_roff(files[i].path);
		puts("\"");
		gen_roff(files[i].what);
		putchar('\n');
	}
}

void gen_print_bawn_1(void)
{
	gen_title("BAWN", "1", "bawn - run an AI agent, or any command, in a cage");
	puts(".SH SYNOPSIS\n.B bawn\n.I COMMAND\n[options] [--] [arguments]");
	puts(".SH DESCRIPTION");
	gen_roff(
		"bawn runs a command in a cage: a sandbox that the Linux kernel enforces. The command works on your "
		"project, and nothing reaches your files until you have seen the diff. Every run leaves a log and a "
		"signed record that others can verify.\n");
	gen_paragraph(
		"Without a spec the cage has hardened defaults: no network, no home, none of your variables. A spec "
		"declares what else the cage gets, see bawn.yaml(5); options override it. bawn refuses to start if it cannot "
		"enforce what was asked for, and checks the cage from outside before the command runs.");
	print_commands();
	puts(".SH COMMON OPTIONS");
	gen_options(cli_common_options);
	puts(".SH EXIT STATUS");
	gen_paragraph(
		"bawn run and bawn session exec return the command's status, see bawn-run(1).");
	gen_paragraph(
		"Other commands: 0; 1 for a negative answer (check found errors, bawn refuses the plan, a path was not applied, a "
		"record is not good); 2 for wrong use; 125 if bawn itself failed.");
	print_environment();
	print_files();
	puts(".SH EXAMPLES\n.EX");
	gen_roff("bawn doctor\nbawn run -- npm test\nbawn diff\nbawn apply\nbawn log --denials");
	puts("\n.EE\n.SH SEE ALSO");
	for (const struct cli_command *c = cli_commands; c->name; c++)
		printf(".BR bawn\\-%s (1),\n", c->name);
	puts(".BR bawn.yaml (5)");
}
