#pragma once

#include <limits.h>
#include <time.h>

#include "base/arena.h"
#include "change/apply/change_apply.h"
#include "change/change.h"
#include "proof/record/record.h"

/*
 * The result of a run or a session: finds it by the words of a command, opens and locks its folder,
 * reads its effects, applies and discards them. Prints nothing. In the folder of a run:
 *
 *   project        a symlink to the project's real path, made when the run began
 *   protect        paths that the operator protects besides the built-in ones, each ended by NUL
 *   git            like project for the folder of its git, if that is outside of the project
 *   layer/upper    what the run wrote, as long as there is something to apply
 *   git-layer      the same for git
 *   layer/copy     instead of layer/upper: a copy of the project, during a run or after a crash
 *   effects.json   what the layer changes in the project; missing if the run was interrupted
 *   base/INDEX     what a text file was
 *
 * A process locks the folder before it writes to it: the keeper during the run, apply, discard.
 *
 * The workspace of a session has the same entries except effects.json: its changes are scanned each
 * time, because the session goes on. The lock there is on the file `lock`.
 *
 * Errors: ERR_USE for wrong words; ERR_REFUSED with ENOENT, ENOTUNIQ or EWOULDBLOCK if there is no
 * such run, several match, or another process has it locked.
 */
struct result {
	char id[64];      /* of the run, or the session */
	const char *what; /* "run" or "session" */
	bool is_session;
	char project[PATH_MAX]; /* the project's path; "": the run had none */
	struct timespec began;
	int folder;                 /* -1: there is no such run */
	int lock;                   /* the file that is locked; -1: the folder is */
	int layer, below, base;     /* the layer, the project, the base; -1: missing */
	struct change_git_tops git; /* -1, -1: git's folder is in the project */
	char git_path[PATH_MAX];
	const char *unopened; /* the path of project or git that cannot be opened, or NULL … */
	int below_failure;    /* … and the errno */
	bool has_copy;        /* the layer is still a copy of the project, or parts of one */
	bool is_locked;       /* by this process */
	bool is_going_on;     /* its keeper has it locked */
	bool was_interrupted; /* its effects were scanned just now */
	struct arena arena;   /* owns the paths */
	const char *const *paths; /* chosen paths, below the project's top; none: everything */
	size_t path_count;
	const char *const *protected; /* paths that the operator protects */
	size_t protected_count;
	struct change_effects effects;
	bool *is_there; /* for each effect: it is applied already; NULL: not known */
};

void result_init(struct result *k);
void result_done(struct result *k);

/* Opens the folder of a run and what is in it. */
int result_open(struct result *k, int runs, const char *id, struct err *e);

/* Opens the result of a session in its open workspace, of which it takes ownership. */
int result_take_workspace(struct result *k, int *workspace, const char *session, struct err *e);

/* Locks the result for a command that changes it, and opens it again. `verb` is for the error. */
int result_lock(struct result *k, const char *verb, struct err *e);

/* True if there is a layer with changes. */
bool result_has_layer(const struct result *k);

/* Returns 0, or the error of a project that cannot be opened. */
int result_check_below(const struct result *k, struct err *e);

/*
 * Loads the effects. Scans the layer if the run was interrupted or goes on, and writes effects.json
 * for an interrupted run.
 */
int result_load(struct result *k, const struct change_progress *progress, struct err *e);

/* Returns half a sentence about a run that goes on or was interrupted; "" otherwise. */
const char *result_state(const struct result *k);

/* Returns the folder of its git, if that is outside of the project; NULL otherwise. */
const struct change_git_tops *result_git(const struct result *k);

/* True if the effect is among the chosen paths. */
bool result_is_chosen(const struct result *k, const struct change_effect *x);

/* Returns the first chosen path at or behind *from that has no effect, or NULL. Advances *from. */
const char *result_find_unchanged(const struct result *k, size_t *from);

/* How finding k->is_there went. */
struct result_there {
	bool has_failed; /* it failed as a whole; `e` says why */
	struct err e;
	size_t unknown;                      /* effects that could not be checked, … */
	const struct change_effect *example; /* … the first of them, … */
	char why[200];                       /* … and why it could not */
};

/* Sets k->is_there: which effects are applied already. Changes nothing on the host. */
void result_find_there(struct result *k, struct result_there *ret);

/* Counts the effects in k->is_there, without folders that are implied by their content. */
size_t result_count_there(const struct result *k);

/* --- applying and discarding: result_apply.c --- */

/* The outcome of an apply. */
struct result_applied {
	struct change_applied counts;
	size_t left;         /* effects that were not applied: the layer stays for them */
	size_t rest;         /* effects that were not chosen, and stay pending */
	bool is_finished;    /* nothing is pending, and the layer was removed */
	struct err unlogged; /* why the apply is not in the log, if it is not */
};

/*
 * Applies the effects, which must be loaded and locked. The caller sets the options, paths and
 * functions of `how`; the rest is filled in. Removes the layer once every effect is accounted for.
 */
int result_apply(struct result *k, const struct change_apply *how, struct result_applied *ret,
	struct err *e);

/* True if the layer has to stay for effects with this verdict. */
bool result_is_left(enum change_verdict v);

/*
 * Discards the changes, and temporary files that an interrupted apply left in the project. The
 * result must be locked. Logs it if there was a layer; *ret_unlogged says why that failed, if it
 * did.
 */
int result_discard(struct result *k, struct err *ret_unlogged, struct err *e);

/* Removes the layer and what belongs to it: renames it in one step, then deletes it. */
int result_remove(struct result *k, struct err *e);

/* --- finding the result that a command means: result_find.c --- */

/* The words of a command, borrowed. The last four members are set by the functions below. */
struct result_words {
	const char *run;          /* the value of the option --run, or NULL */
	const char *const *words; /* the first may be a run or a session, the others are paths */
	size_t count;
	size_t open_count; /* words before a "--": only these can name a run or a session */
	bool is_session;   /* the first word is a session */
	bool is_named;     /* the first word was a run or a session */
	size_t others;     /* if none was named: other runs of the project with pending changes */
	char where[PATH_MAX]; /* the project that was searched, or the current folder */
	char here[PATH_MAX];  /* the current folder */
};

/*
 * Opens the run that is meant: by the option, by the first word, or the newest run of this project
 * with pending changes; and takes the paths among the words. Returns 0 also if there is none, with
 * k->folder -1; or -errno.
 */
int result_choose(struct result *k, struct result_words *words, struct err *e);

/* Opens the result of the session that a word names. */
int result_choose_session(struct result *k, const char *word, struct err *e);

#define RESULT_NAME_SIZE 80

/* Finds a session with pending changes of the project that `here` is in. False: there is none. */
bool result_find_session(const char *here, char ret[static RESULT_NAME_SIZE]);

/*
 * Opens the folder of the run that a word names, or with NULL of the operator's newest run in any
 * project. The caller owns *ret_folder. Returns 0 with *ret_folder -1 if there is no run at all.
 */
int result_open_run(
	const char *word, char ret[static RECORD_RUN_SIZE], int *ret_folder, struct err *e);

/*
 * Calls `see` for each run of the current folder's project that has pending changes, newest first.
 * A result of `see` other than 0 ends it. Sets *ret_count, ret->where and ret->here.
 */
int result_each(int (*see)(void *of, struct result *k), void *of, struct result_words *ret,
	size_t *ret_count, struct err *e);

/* True if the run's keeper has its folder locked, which it has until the run ends. */
bool result_is_going_on(int folder);
