#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/tree.h"
#include "check/check_repository.h"
#include "host/host.h"
#include "plan/plan.h"
#include "run/run_request.h"
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

struct cli {
	const struct cli_command *command;
	struct cli_given *given;
	size_t given_count;
	char **words; /* what is left, ended with NULL */
	size_t word_count;
	bool has_dashes;   /* there is a "--" */
	size_t open_count; /* with takes_words: the words before it */
	bool is_json, is_quiet, has_color;
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
const char *cli_value(const struct cli *cli, const char *name);

/*
 * Puts the settings of the environment before what was given, so that an option wins against
 * one; for commands that a service calls. An empty variable says nothing. Says what is wrong and
 * returns CLI_MISUSE. The values are the environment's.
 */
int cli_add_settings(struct cli *cli);

/* Adds the settings to the spec as its last layer; relative paths start at `here`. */
void cli_add_options(const struct run_request *q, struct spec *s, const char *here);

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

/* True if a cage of bawn's set our variables. */
bool cli_is_in_cage(void);

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

/* Writes a buffer to stdout; CLI_FAILED and a complaint where that fails, else `status`. */
int cli_write(const struct buf *out, int status);

/* --- what commands on a spec share: cli_load.c --- */

/* A path under which the operator's state, or the folders of all sessions, can be seen. */
struct cli_hidden {
	const char *path;
	bool is_root; /* of sessions */
};

struct cli_place {
	char project[4096]; /* the project's directory, resolved */
	const char *home;   /* or NULL */
	/* The file of -f, really and as it was called, if only the operator or root can write it.
	 */
	const char *own_spec, *own_spec_name;
	struct check_repository repository;
	struct cli_hidden
		*state_paths; /* what of the operator's no cage may see; the spec's arena */
	size_t state_count;
};

/*
 * Reads the policies, the spec file and the options, and settles them. 0, or a status after the
 * diagnostics were printed. The spec is initialised in any case; spec_done it.
 */
int cli_load_spec(const struct cli *cli, struct spec *s, struct cli_place *ret_place);

/*
 * The same for a spec in its canonical form, which is held to what a project's own file may ask for
 * unless --trust is given. Where it says no more than ".", --project says where the project is.
 */
int cli_load_kept_spec(const struct run_request *q, const char *bytes, size_t n, struct spec *s,
	struct cli_place *ret_place);

/*
 * Reads the spec file, if there is one. A status, after it was said what is wrong. What follows
 * from where it lies is judged when all layers are there. cli_spec_file.c
 */
int cli_load_file(const struct run_request *q, struct spec *s, struct cli_place *place);
void cli_judge_file(struct spec *s, const struct cli_place *place, const char *here);

/* Adds the variables that a file lists, as --env does. */
/* `is_here`: the run is to be on this machine, whose variables a name alone passes on. */
void cli_add_env_file(struct spec *s, const char *path, bool is_here);

/* Warns if a variable that is to be passed is not set. */
void cli_warn_unset(struct spec *s, const char *where, const char *variable);

/* Reads a file into the spec's arena, where it stays as long as the diagnostics may quote it. */
int cli_read_into(struct spec *s, int fd, const char **ret, size_t *ret_size);
int cli_fail_reading(const char *what, const char *path, int num);

/* Where the operator's own files are: 0, -ENOENT without a home, or -ENAMETOOLONG. */
int cli_config_folder(const char *home, char ret[static 4096]);

/*
 * Reads a file that must be the operator's own, and nobody else's to write, into the spec's arena;
 * *ret is NULL where there is none. A status, after it was said what is wrong; `what` names it.
 */
int cli_read_own(
	struct spec *s, const char *what, const char *path, const char **ret, size_t *ret_size);

struct store_session;

/*
 * The same for a command in a session: the spec is what was settled when that was created, and the
 * options may only narrow it.
 */
int cli_load_session_spec(const struct run_request *q, const struct store_session *x,
	struct spec *s, struct cli_place *ret_place);

/*
 * What a path leads to: "~" is `home` (which may be NULL), a relative one starts at `base`. 0 or
 * -errno; ret is written only on success.
 */
int cli_resolve(const char *path, const char *home, const char *base, char ret[static 4096]);

/*
 * Says in s->diags what only shows on this machine: paths inside the project that lead out of it,
 * and paths that lead to credentials or to the home by another name.
 */
void cli_check_paths(struct spec *s, const char *here, const struct cli_place *place);

/*
 * What a path as the plan writes it leads to, with $PROJECT and ~; -EXDEV: through a link of the
 * project out of it.
 */
int cli_resolve_source(const char *source, const struct cli_place *place, char ret[static 4096]);

/*
 * The same for one source that has been opened and found to be `real`, a moment later: what it
 * leads to may have changed since.
 */
int cli_approve_source(struct spec *s, const struct cli_place *place, const char *source,
	const char *real, struct err *e);

/* What is wrong with showing a real path that nobody acknowledged, as "holds credentials"; or NULL.
 */
const char *cli_leak_of(struct spec *s, const char *real, const struct cli_place *place);

/* --- the operator's own state: cli_state.c --- */

/* Finds out where it can be seen on this host. 0 or -errno. */
int cli_find_state(struct spec *s, struct cli_place *place);

/*
 * What is wrong with showing a real path because of the operator's own state: "is in …", or "would
 * show …"; or NULL. Nobody can acknowledge that. In the spec's arena.
 */
const char *cli_state_of(struct spec *s, const char *real, const struct cli_place *place);

/* --- agents: cli_agent.c --- */

struct agent_profile;

/* The profile of a name: the operator's own, or a built-in one; NULL where there is none. */
int cli_load_agent(struct spec *s, const char *name, const char *home, struct agent_profile **ret);

/* Adds what the profile of the named agent says to a settled spec, if one is named. A status. */
int cli_add_agent(const struct run_request *q, struct spec *s, const struct cli_place *place);

/* --- where the project is in the cage: cli_own_path.c --- */

/* Puts the project's real path in the place of the word own; false: it was said what is wrong. */
bool cli_settle_place(struct spec *s, const struct cli_place *place);

/* Says in s->diags which of the project's files name a path of it that the cage does not have. */
void cli_check_own_paths(struct spec *s, const struct cli_place *place);

/* --- tools of the operator's home: cli_toolchain.c --- */

/* Puts binds and variables in the place of the names of toolchains. */
void cli_add_toolchains(struct spec *s, const struct cli_place *place);

/*
 * What to type instead of a command whose program the cage does not have; or NULL. What a session
 * shows is fixed when it is created.
 */
const char *cli_hint_command(struct spec *s, const struct cli_place *place, bool is_session);

/* The toolchain that a path of the host is of, where the cage does not have the path; or NULL. */
const char *cli_missing_toolchain(
	const struct spec *s, const struct cli_place *place, const char *path);

/* --- registries by the name of their client: cli_client.c --- */

/* Puts hosts in the place of names such as npm; what is wrong is said in s->diags. */
void cli_add_clients(struct spec *s, const struct cli_place *place, struct spec_value *allow);

/* --- who commits: cli_identity.c --- */

/*
 * Name and e-mail of the operator's git configuration, as a section of one; NULL: there are none.
 * What it includes is not read. Owned by the spec.
 */
const char *cli_git_identity(struct spec *s, const char *home);

/* --- the project's git: cli_repository.c --- */

/* Finds it, and says in s->diags if it will not work in the cage. */
void cli_find_repository(struct spec *s, struct cli_place *place);

/*
 * Has the project at its own path in the cage where its git, as a submodule's, is found from there
 * alone; but not where the spec says where things are.
 */
void cli_choose_own_path(struct spec *s, struct cli_place *place);

/* What a plan for this project has to know. */
void cli_tell_host(const struct cli_place *place, struct host *ret);

/* Paths of the project that are protected here beside those that always are; NULL: no memory. */
const char *const *cli_held_paths(struct spec *s, const struct cli_place *place, size_t *ret_count);

/*
 * Notes that this host cannot do what the start failed at, if that may be done in another way, or
 * be left out: the next plan knows. False: it is nothing of the kind. `failed_op` may be -1.
 */
bool cli_note_failed_way(struct host *h, const struct plan *p, int failed_op, const struct err *e);

/*
 * Opens a plain file that the operator wants something written to: not through a link, and not out
 * of the project where the path begins there. A descriptor or -errno; `what` is for the sentence.
 */
int cli_open_output(
	const struct cli_place *place, const char *path, const char *what, struct err *e);

/* Prints what s->diags hold, as text on stderr; nothing with --json. */
void cli_print_diags(const struct cli *cli, const struct spec *s);

/* host_probe, or the host described by the file of --host. */
int cli_probe(const struct cli *cli, struct host *ret);

/* --- cli_capture.c --- */

/* Rules out, by whom the project belongs to, ways of capturing it: h->no_capture. */
void cli_look_at_project(struct host *h, const struct cli_place *place);

/* Says how much was copied, and what to do about it where that is so because of owners. */
void cli_say_copied(
	const struct cli_place *place, const char *what, const struct tree_counts *counts);
