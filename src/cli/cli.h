#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/tree.h"
#include "host/host.h"
#include "plan/plan.h"
#include "run/run_request.h"
#include "run/run_spec.h"
#include "spec/spec.h"

/*
 * The command line: a table of subcommands, each in its own file. A subcommand returns the exit
 * status; what went wrong is told once, here at the edge.
 */

enum cli_status {
	CLI_OK = 0,
	CLI_NO = 1,       /* a negative answer */
	CLI_MISUSE = 2,   /* wrong use */
	CLI_FAILED = 125, /* bawn refused or failed */
};

struct cli;
struct cli_option;

struct cli_command {
	const char *name;
	const char *usage;                /* what follows the name */
	const char *help;                 /* one line */
	const struct cli_option *options; /* of its own, ended with a NULL name; or NULL */
	bool takes_spec; /* the options of a spec as well, and a command after -- */
	int (*run)(struct cli *cli);
	bool returns_another;     /* its status is a program's; where it is bawn's own it is 125 */
	bool takes_words;         /* its own, between and after the options */
	bool names_session;       /* the first word is one */
	const char *no_json;      /* why it has no result to print as JSON; NULL: it has one */
	enum run_purpose purpose; /* with takes_spec */
	/* What its first word chooses from, each with both words as its name; or NULL. */
	const struct cli_command *subcommands;
};

/* An option that sets a key of the spec, or one of a command's own (key is SPEC_KEY_COUNT). */
struct cli_option {
	const char *name;
	char letter;
	const char *argument; /* its name in the help; NULL: the option takes none */
	enum spec_key key;
	const char *fixed; /* what an option without argument sets the key to */
	const char *help;
};

/* An option as given. */
struct cli_given {
	const struct cli_option *option;
	const char *value; /* or NULL */
	const char *unit;  /* it is a setting, with what follows its value; NULL: an option */
};

/* A variable of the environment that stands for an option. */
struct cli_setting {
	struct cli_option option; /* its name is the variable's */
	const char *unit;         /* what its value counts, as the spec writes it; or "" */
	const char *counts;       /* the same in words: it is a whole number; or NULL */
};

#define CLI_MAX_OPTIONS 4096

/*
 * The options that code asks for, of whatever command. One that is misspelt here is in no table,
 * which a unit test finds; one that is misspelt elsewhere is not compiled.
 */
#define CLI_NAMES(X)                                                                               \
	X(AGAIN, "again")                                                                          \
	X(ALL, "all")                                                                              \
	X(ATTEST, "attest")                                                                        \
	X(CANONICAL, "canonical")                                                                  \
	X(CARD, "card")                                                                            \
	X(CAST, "cast")                                                                            \
	X(COLOR, "color")                                                                          \
	X(DENIALS, "denials")                                                                      \
	X(DIGEST, "digest")                                                                        \
	X(DISCARD, "discard")                                                                      \
	X(DRAIN, "drain")                                                                          \
	X(DRY_RUN, "dry-run")                                                                      \
	X(ENV_FILE, "env-file")                                                                    \
	X(EXPLAIN, "explain")                                                                      \
	X(FILE, "file")                                                                            \
	X(FOLLOW, "follow")                                                                        \
	X(FORCE, "force")                                                                          \
	X(FORMAT, "format")                                                                        \
	X(HELP, "help")                                                                            \
	X(HOST, "host")                                                                            \
	X(IDLE, "idle")                                                                            \
	X(JSON, "json")                                                                            \
	X(KEY, "key")                                                                              \
	X(KEEP_AGE, "keep-age")                                                                    \
	X(KEEP_RUNS, "keep-runs")                                                                  \
	X(KEEP_SIZE, "keep-size")                                                                  \
	X(LEASE, "lease")                                                                          \
	X(LINES, "lines")                                                                          \
	X(LIST, "list")                                                                            \
	X(MERGE, "merge")                                                                          \
	X(METRICS, "metrics")                                                                      \
	X(NAME, "name")                                                                            \
	X(NAME_ONLY, "name-only")                                                                  \
	X(NEW, "new")                                                                              \
	X(NO_TTY, "no-tty")                                                                        \
	X(NULL, "null")                                                                            \
	X(ONCE, "once")                                                                            \
	X(OUTPUT, "output")                                                                        \
	X(PEM, "pem")                                                                              \
	X(POLICY, "policy")                                                                        \
	X(PROJECT, "project")                                                                      \
	X(QUEUE, "queue")                                                                          \
	X(QUICK, "quick")                                                                          \
	X(QUIET, "quiet")                                                                          \
	X(RAW, "raw")                                                                              \
	X(RECORD, "record")                                                                        \
	X(RUN, "run")                                                                              \
	X(SAME, "same")                                                                            \
	X(SCHEMA, "schema")                                                                        \
	X(SECRET, "secret")                                                                        \
	X(SESSION, "session")                                                                      \
	X(SINCE, "since")                                                                          \
	X(SIZE, "size")                                                                            \
	X(SLOTS, "slots")                                                                          \
	X(STAT, "stat")                                                                            \
	X(STATUS_FD, "status-fd")                                                                  \
	X(SUBJECT, "subject")                                                                      \
	X(SWEEP, "sweep")                                                                          \
	X(SYNC, "sync")                                                                            \
	X(TIMING, "timing")                                                                        \
	X(TRUST, "trust")                                                                          \
	X(TTY, "tty")                                                                              \
	X(TYPE, "type")                                                                            \
	X(UNSIGNED, "unsigned")                                                                    \
	X(URL, "url")                                                                              \
	X(VERBOSE, "verbose")                                                                      \
	X(WAIT, "wait")                                                                            \
	X(YES, "yes")

enum cli_name {
	CLI_OPT_NONE,
#define X(name, text) CLI_OPT_##name,
	CLI_NAMES(X)
#undef X
	CLI_OPT_COUNT,
};

extern const char *const cli_names[CLI_OPT_COUNT];

struct cli {
	const struct cli_command *command;
	struct cli_given *given;
	size_t given_count;
	char **words; /* what is left, ended with NULL */
	size_t word_count;
	bool has_dashes;   /* there is a "--" */
	size_t open_count; /* with takes_words: the words before it */
	bool is_json, is_quiet, has_color;
	/* CLOCK_MONOTONIC at the beginning of main, and how long the processor had worked for us.
	 */
	uint64_t began_ns, cpu_before_ns;
	char *command_line; /* all of it, in one piece of memory, as ps shows it */
	size_t command_line_size;
	struct run_request request; /* with takes_spec: what the options ask for */
};

extern const struct cli_command cli_commands[];
extern const struct cli_option cli_spec_options[];
extern const struct cli_option cli_common_options[];
extern const struct cli_setting cli_settings[]; /* ended with a NULL name */

/* --- what people type by habit: cli_habits.c --- */

extern const struct cli_option cli_habit_options[];

/* The word that is meant by another, as "list" by "session ls"; or NULL. */
const char *cli_habit_same(const char *words);

/* The command's first word, or the one that is meant by it; "" where there is none. */
const char *cli_habit_verb(const struct cli *cli);

/* What to type instead of a command, or an option with its dashes, that is not there; or NULL. */
const char *cli_habit_command(const char *words);
const char *cli_habit_option(const struct cli_command *command, const char *option);

/* Sorts the arguments into options and words. Says what is wrong and returns CLI_MISUSE. */
int cli_parse(struct cli *cli, const struct cli_command *command, int argc, char **argv);

/* The first word was one of the command's own: goes on behind it, as cli_parse. */
int cli_parse_rest(struct cli *cli);

/* Makes cli->request of what was given. A status, after it was said what is wrong. */
int cli_fill_request(struct cli *cli);

void cli_done(struct cli *cli);

/* The last value of one of the command's own options; "" for one without; NULL: not given. */
const char *cli_value(const struct cli *cli, enum cli_name name);

bool cli_is(const struct cli_given *g, enum cli_name name);

/*
 * Puts the settings of the environment before what was given, so that an option wins against
 * one; for commands that a service calls. An empty variable says nothing. Says what is wrong and
 * returns CLI_MISUSE. The values are the environment's.
 */
int cli_add_settings(struct cli *cli);

void cli_print_help(void);
void cli_print_command_help(const struct cli_command *command);
void cli_print_subcommands(const struct cli_command *command);

/* The word by which a command is chosen: the last of its name. */
const char *cli_command_word(const struct cli_command *command);

/* From then on no message shows what stands behind a '=' of these, which are borrowed for good.
 * False without memory. */
bool cli_remember_arguments(int argc, char **argv);

/* Hides it in a message that is not said by cli_complain. */
void cli_hide_values(char *text, size_t size);

/* Says one sentence on stderr, as "bawn: …", visibly. */
void cli_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Why no cage can be made here, if the plan was refused because this is a cage; else NULL. The
 * hint is what to do. */
#define CLI_NESTED_HINT "start the command without bawn: this cage holds it too"
const char *cli_find_nested(const struct plan_choice *choice, const struct err *e);

/* Says the error's sentence, or the one given about it, and below it the error's hint. */
void cli_complain_err(const struct err *e);
void cli_complain_about(const struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Says below it what to do, as "hint: …". */
void cli_hint(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Asks on the terminal whether to do what the text says, which begins with a verb; --yes answers.
 * CLI_OK or, after it was said, CLI_NO. Where there is no terminal, what is_certain goes on: the
 * command line left no doubt about what is removed. cli_confirm.c
 */
int cli_confirm(const struct cli *cli, bool is_certain, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* True if somebody at a terminal can answer a question. */
bool cli_can_ask(void);

/* In the options of each command that asks so. */
#define CLI_YES                                                                                    \
	{                                                                                          \
		"yes", 'y', NULL, SPEC_KEY_COUNT, NULL, "do not ask"                               \
	}

/* Of all commands that run something. */
#define CLI_RUN_OPTIONS                                                                            \
	{ "record", 0, "FILE", SPEC_KEY_COUNT, NULL, "write the record to FILE too" },             \
		{ "subject", 0, "PATH", SPEC_KEY_COUNT, NULL,                                      \
			"record the digest of a project file after the run" },                     \
		{ "sync", 0, NULL, SPEC_KEY_COUNT, NULL, "fsync the log and the record" },         \
		{ "status-fd", 0, "N", SPEC_KEY_COUNT, NULL,                                       \
			"write events to descriptor N as lines of JSON" },                         \
		{ "tty", 't', NULL, SPEC_KEY_COUNT, NULL, "always allocate a terminal" },          \
		{ "no-tty", 0, NULL, SPEC_KEY_COUNT, NULL, "never allocate a terminal" },          \
		{ "raw", 0, NULL, SPEC_KEY_COUNT, NULL, "do not filter escape sequences" },        \
		{ "cast", 0, "FILE", SPEC_KEY_COUNT, NULL,                                         \
			"write the output to FILE as an asciicast" },                              \
	{                                                                                          \
		"timing", 0, NULL, SPEC_KEY_COUNT, NULL,                                           \
			"print how long each step of the start took"                               \
	}

/* Writes a buffer to stdout; CLI_FAILED and a complaint where that fails, else `status`. */
int cli_write(const struct buf *out, int status);

/* --- what commands on a spec share: cli_load.c --- */

/*
 * Loads the spec that the request of the command line means: run_load_spec. 0; CLI_NO where its
 * diagnostics say what is wrong; CLI_FAILED after it was said.
 */
int cli_load_spec(const struct cli *cli, struct spec *s, struct run_place *ret_place);

/* Prints what s->diags hold, as text on stderr; nothing with --json. */
void cli_print_diags(const struct cli *cli, const struct spec *s);

/* host_probe, or the host described by the file of --host. */
int cli_probe(const struct cli *cli, struct host *ret);
