#pragma once

#include <limits.h>
#include <time.h>

#include "change/apply/change_apply.h"
#include "change/change.h"
#include "cli/cli.h"
#include "proof/record/record.h"

/*
 * What is kept of a run, as the commands diff, apply and discard see it. In its folder:
 *
 *   project        a link whose text is the project's real path, made when the run began
 *   protect        paths that the operator protects beside those that always are, each ended by NUL
 *   git            the same for the folder of its git, where that is outside of it
 *   layer/upper    what it wrote, as long as there is something to apply
 *   git-layer      the same for git
 *   layer/copy     instead of it: a copy of the project, while the run lasts or was interrupted
 *   effects.json   what that does to the project; missing where the run was interrupted
 *   base/INDEX     what a text file was
 *
 * Whoever writes to the folder has locked it: the keeper while the run lasts, apply, discard.
 *
 * The workspace of a session has the same in it, but for effects.json: what it does to the project
 * is found out each time, because the session goes on. What is locked there is the file `lock`.
 */
struct cli_kept {
	const struct cli *cli;
	char id[64];      /* of the run, or the session */
	const char *what; /* which of them: "run" or "session" */
	bool is_session;
	char project[PATH_MAX]; /* "": the run kept nothing of a project */
	struct timespec began;
	int folder;                 /* -1: there is no such run */
	int lock;                   /* what is locked; -1: the folder */
	int layer, below, base;     /* -1: not there */
	struct change_git_tops git; /* -1, -1: it has none outside */
	char git_path[PATH_MAX];
	const char *unopened; /* which of the two cannot be opened, … */
	int below_failure;    /* … and why */
	bool has_copy;        /* the layer is one still, or has parts of one */
	bool has_named_run;   /* the first word is one */
	size_t other_count;   /* runs of the project that wait beside it, where none was named */
	bool is_locked;       /* by us */
	bool is_going_on;     /* the keeper has it */
	bool was_interrupted; /* its effects were found just now */
	struct arena arena;   /* of the paths */
	const char *const *paths; /* below the project's top; none: everything */
	size_t path_count;
	const char *const *held; /* what the operator protects */
	size_t held_count;
	struct change_effects effects;
	bool *is_there; /* of each effect: the host is like that already; or NULL */
};

void cli_kept_init(struct cli_kept *k, const struct cli *cli);
void cli_kept_done(struct cli_kept *k);

/* --- which run: cli_runs.c --- */

/*
 * The run that is meant: that of --run, one that the first word names, or the newest of this
 * project with changes still to be applied; and the paths among the words. CLI_OK with no folder
 * where there is no such run, which was said.
 */
int cli_kept_choose(struct cli_kept *k);

/*
 * Opens the folder of the run that a word names, or with NULL of the newest of all, wherever it
 * was. CLI_OK with -1 where no run was ever kept, which was said. The caller owns *ret_folder.
 */
int cli_open_run(
	const struct cli *cli, const char *word, char ret[static RECORD_RUN_SIZE], int *ret_folder);

/* Calls `see` for every run whose project is that of the current folder, the newest first. */
int cli_kept_each(const struct cli *cli, int (*see)(void *of, struct cli_kept *k), void *of);

/* The words from `first` on, as paths of the project. cli_kept_paths.c */
int cli_kept_take_paths(struct cli_kept *k, const char *here, size_t first);

/* CLI_NO where one of the paths has no effect, which is said. */
int cli_kept_check_paths(const struct cli_kept *k);

/* Is it among the chosen paths? */
bool cli_kept_is_chosen(const struct cli_kept *k, const struct change_effect *x);

/*
 * The session that a word names, unless it is one of those that may be paths and is: CLI_OK with no
 * folder where there is none. cli_session_kept.c
 */
int cli_kept_choose_session(struct cli_kept *k, const char *word, bool may_be_path);

/* Hints at a session of the project that `here` is in, if one has changes. */
void cli_hint_session(const char *here);

/* --- one run: cli_kept.c --- */

/* Opens the folder of a run, and what is in it. */
int cli_kept_open(struct cli_kept *k, int runs, const char *id);

/* The same for a session's open workspace, which it takes. */
int cli_kept_take_workspace(struct cli_kept *k, int *workspace, const char *session);

/* Opens it again: somebody else may have changed it. */
int cli_kept_reopen(struct cli_kept *k);

/* For commands that change something; CLI_NO, which is said, while somebody else has the lock. */
int cli_kept_lock(struct cli_kept *k);

/* The lock by itself: 0 or -errno. */
int cli_kept_try_lock(const struct cli_kept *k);
void cli_kept_unlock(const struct cli_kept *k);

/* Is anything there that it wrote? */
bool cli_kept_has_layer(const struct cli_kept *k);

/* CLI_FAILED, which is said, where the project cannot be opened. */
int cli_kept_check_below(const struct cli_kept *k);

/*
 * Reads what its effects are; of a run that was interrupted, or goes on, finds it out.
 * cli_kept_effects.c
 */
int cli_kept_load(struct cli_kept *k);

/* --- what the host has already: cli_kept_there.c --- */

/* What was found out about it beside k->is_there: what could not be. */
struct cli_there {
	struct cli_kept *k;
	bool has_failed; /* all of it, and e says why */
	struct err e;
	size_t unknown;                      /* effects of which it could not, … */
	const struct change_effect *example; /* … the first of them, … */
	char why[200];                       /* … and its reason */
};

/* Finds out which of the effects have been applied, into k->is_there. */
void cli_kept_find_there(struct cli_there *ret);

/* How many, without folders that go with what is in them. */
size_t cli_kept_count_there(const struct cli_kept *k);

/* Half a sentence about a run that did not end as it should, or did not end yet; "" otherwise. */
const char *cli_kept_state(const struct cli_kept *k);

/* Where the folder of its git is, if that is outside the project; NULL otherwise. */
const struct change_git_tops *cli_kept_git(const struct cli_kept *k);

/* Events of the run, which is locked; what goes wrong is said, and changes nothing. cli_kept_log.c
 */
void cli_kept_log_applied(
	const struct cli_kept *k, const struct change_applied *done, const struct err *e);
void cli_kept_log_discarded(const struct cli_kept *k);

/* Removes the layer and what belongs to it: at once for whoever looks, then from the disk. */
int cli_kept_remove(struct cli_kept *k);
