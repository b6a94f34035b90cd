#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/tree.h"
#include "host/host.h"
#include "plan/plan.h"
#include "run/run_request.h"
#include "run/run_spec.h"
#include "spec/spec.h"

/*
 * The command line: a table of commands, each in a file of its own. A command returns the exit
 * status; errors are printed once, here at the edge. Functions that return a status have printed
 * the error.
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
	bool takes_spec; /* takes the options of a spec too, and a command after -- */
	int (*run)(struct cli *cli);
	bool returns_another;     /* its status is a program's; 125 means that bawn itself failed */
	bool takes_words;         /* takes words between and after the options */
	bool names_session;       /* the first word is a session */
	const char *no_json;      /* why it takes no --json; NULL: it does */
	enum run_purpose purpose; /* with takes_spec */
	/* The commands that its first word chooses from, each named by both words; or NULL. */
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

/* An option of a command's own, in its table. */
#define CLI_OWN(name, letter, argument, help)                                                      \
	{                                                                                          \
		name, letter, argument, SPEC_KEY_COUNT, NULL, help                                 \
	}

/* An option as given. */
struct cli_given {
	const struct cli_option *option;
	const char *value; /* or NULL */
	const char *unit;  /* of a setting: the unit to add to the value; NULL: an option */
};

/* An environment variable that stands for an option. */
struct cli_setting {
	struct cli_option option; /* its name is the variable's */
	const char *unit;         /* the unit to add to the value, as in a spec; or "" */
	const char *counts;       /* the unit in words, for a whole number; or NULL */
};

#define CLI_MAX_OPTIONS 4096

/*
 * The options that code reads, of all commands. A unit test finds a name here that is in no table
 * of options; the compiler finds a misspelt CLI_OPT_… elsewhere.
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
	/*
	 * CLOCK_MONOTONIC at the beginning of main, and how long the processor had worked for us.
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

/* --- names that people know from other tools: cli_habits.c --- */

extern const struct cli_option cli_habit_options[];

/* Returns the command that an alias stands for, as "list" for "session ls"; or NULL. */
const char *cli_habit_same(const char *words);

/* Returns the command's first word, or the word that it is an alias for; "" without. */
const char *cli_habit_verb(const struct cli *cli);

/* Return what to type instead of an unknown command, or option with its dashes; or NULL. */
const char *cli_habit_command(const char *words);
const char *cli_habit_option(const struct cli_command *command, const char *option);

/* Sorts the arguments into options and words. Returns CLI_OK or CLI_MISUSE. */
int cli_parse(struct cli *cli, const struct cli_command *command, int argc, char **argv);

/* Continues cli_parse behind the first word, which a command has taken for itself. */
int cli_parse_rest(struct cli *cli);

/* Makes cli->request of the options and words. Returns a status. */
int cli_fill_request(struct cli *cli);

void cli_done(struct cli *cli);

/* Returns the last value of an option; "" for one without a value; NULL: not given. */
const char *cli_value(const struct cli *cli, enum cli_name name);

/* True if `g` is that option. */
bool cli_is(const struct cli_given *g, enum cli_name name);

/*
 * Adds the settings of the environment in front of the options, so that an option wins. For
 * commands that services start. Ignores empty variables. Returns a status. Borrows the values from
 * the environment.
 */
int cli_add_settings(struct cli *cli);

void cli_print_help(void);
void cli_print_command_help(const struct cli_command *command);
void cli_print_subcommands(const struct cli_command *command);

/* Returns the last word of a command's name. */
const char *cli_command_word(const struct cli_command *command);

/*
 * Makes all later messages hide what follows a '=' in these arguments, which are borrowed for good.
 * False: no memory.
 */
bool cli_remember_arguments(int argc, char **argv);

/* Hides these values in a message that cli_complain does not print. */
void cli_hide_values(char *text, size_t size);

/* Prints one sentence on stderr as "bawn: …", with control characters escaped. */
void cli_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Returns the error to print if a plan was refused because bawn runs inside a cage; else NULL. */
#define CLI_NESTED_HINT "start the command without bawn: this cage holds it too"
const char *cli_find_nested(const struct plan_choice *choice, const struct err *e);

/* Print the sentence of an error, or another one about it, and its hint below. */
void cli_complain_err(const struct err *e);
void cli_complain_about(const struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Prints "hint: …" below an error. */
void cli_hint(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Asks on the terminal whether to do what the text says, which begins with a verb; --yes answers
 * the question. Without a terminal the answer is yes if is_certain: the command line left no doubt
 * about what is removed. Returns CLI_OK or CLI_NO.
 */
int cli_confirm(const struct cli *cli, bool is_certain, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* True if somebody at a terminal can answer a question. */
bool cli_can_ask(void);

/* An option of all commands that call cli_confirm. */
#define CLI_YES CLI_OWN("yes", 'y', NULL, "do not ask")

/* Options of all commands that run something. */
#define CLI_RUN_OPTIONS                                                                            \
	CLI_OWN("record", 0, "FILE", "write the record to FILE too"),                              \
		CLI_OWN("subject", 0, "PATH",                                                      \
			"record the digest of a project file after the run"),                      \
		CLI_OWN("sync", 0, NULL, "fsync the log and the record"),                          \
		CLI_OWN("status-fd", 0, "N", "write events to descriptor N as lines of JSON"),     \
		CLI_OWN("tty", 't', NULL, "always allocate a terminal"),                           \
		CLI_OWN("no-tty", 0, NULL, "never allocate a terminal"),                           \
		CLI_OWN("raw", 0, NULL, "do not filter escape sequences"),                         \
		CLI_OWN("cast", 0, "FILE", "write the output to FILE as an asciicast"),            \
		CLI_OWN("timing", 0, NULL, "print how long each step of the start took")

/* Begin and end the object that a command prints with --json: one line with a version. */
void cli_json_begin(struct json *j, struct buf *out);
void cli_json_end(struct json *j);

/* Writes a buffer to stdout. Returns `status`, or CLI_FAILED. */
int cli_write(const struct buf *out, int status);

/* --- what commands on a spec share: cli_load.c --- */

/*
 * Loads the spec of cli->request: run_load_spec. Returns 0; CLI_NO if the spec's diagnostics say
 * what is wrong, which the caller prints; or CLI_FAILED.
 */
int cli_load_spec(const struct cli *cli, struct spec *s, struct run_place *ret_place);

/* Prints s->diags on stderr; with --json nothing. */
void cli_print_diags(const struct cli *cli, const struct spec *s);

/* Probes this machine, or reads the file of --host. Returns a status. */
int cli_probe(const struct cli *cli, struct host *ret);
