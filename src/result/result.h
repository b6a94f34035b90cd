#pragma once

#include <limits.h>
#include <time.h>

#include "base/arena.h"
#include "change/apply/change_apply.h"
#include "change/change.h"
#include "proof/record/record.h"

/*
 * What a run or a session left: which one is meant, its folder, its lock, its effects, and what
 * becomes of them. Prints nothing. In the folder of a run:
 *
 *   project        a link whose text is the project's real path, made when the run began
 *   protect        paths that the operator protects beside those that always are, each ended by NUL
 *   git            the same as project for the folder of its git, where that is outside of it
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
 *
 * Errors: ERR_USE for words that are wrong; ERR_REFUSED with ENOENT, ENOTUNIQ or EWOULDBLOCK where
 * there is no such run, several are meant, or somebody else has it locked.
 */
struct result {
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
	const char *unopened;     /* which of the two cannot be opened, … */
	int below_failure;        /* … and why */
	bool has_copy;            /* the layer is one still, or has parts of one */
	bool is_locked;           /* by us */
	bool is_going_on;         /* the keeper has it */
	bool was_interrupted;     /* its effects were found just now */
	struct arena arena;       /* of the paths */
	const char *const *paths; /* below the project's top; none: everything */
	size_t path_count;
	const char *const *held; /* what the operator protects */
	size_t held_count;
	struct change_effects effects;
	bool *is_there; /* of each effect: the host is like that already; or NULL */
};

void result_init(struct result *k);
void result_done(struct result *k);

/* Opens the folder of a run, and what is in it. */
int result_open(struct result *k, int runs, const char *id, struct err *e);

/* The same for a session's open workspace, which it takes. */
int result_take_workspace(struct result *k, int *workspace, const char *session, struct err *e);

/* For commands that change something: locks it, and opens it again. `verb` is what they do. */
int result_lock(struct result *k, const char *verb, struct err *e);

/* Is anything there that it wrote? */
bool result_has_layer(const struct result *k);

/* The error of a project that cannot be opened. */
int result_check_below(const struct result *k, struct err *e);

/*
 * Reads what its effects are; of a run that was interrupted, or goes on, finds it out, and leaves
 * effects.json where an interrupted run has none.
 */
int result_load(struct result *k, const struct change_progress *progress, struct err *e);

/* Half a sentence about a run that did not end as it should, or did not end yet; "" otherwise. */
const char *result_state(const struct result *k);

/* Where the folder of its git is, if that is outside the project; NULL otherwise. */
const struct change_git_tops *result_git(const struct result *k);

/* Is it among the chosen paths? */
bool result_is_chosen(const struct result *k, const struct change_effect *x);

/* The first of the chosen paths from `from` on that has no effect, or NULL. */
const char *result_find_unchanged(const struct result *k, size_t *from);

/* What was found out beside k->is_there about what the host has already. */
struct result_there {
	bool has_failed; /* all of it, and e says why */
	struct err e;
	size_t unknown;                      /* effects of which it could not be found out, … */
	const struct change_effect *example; /* … the first of them, … */
	char why[200];                       /* … and its reason */
};

/* Finds out which of the effects have been applied, into k->is_there. Changes nothing. */
void result_find_there(struct result *k, struct result_there *ret);

/* How many, without folders that go with what is in them. */
size_t result_count_there(const struct result *k);

/* --- applying and discarding: result_apply.c --- */

/* What came of an apply. */
struct result_applied {
	struct change_applied counts;
	size_t left;         /* effects that the layer has to stay for */
	size_t rest;         /* effects that were not asked for, and wait */
	bool is_finished;    /* nothing of the run was left to apply, and the layer is removed */
	struct err unlogged; /* why what was done is not in the log */
};

/*
 * Applies the effects, which are loaded and locked, as `how` says: its options, paths and
 * functions; the rest is filled in. The layer is removed once every single effect is accounted for.
 */
int result_apply(struct result *k, const struct change_apply *how, struct result_applied *ret,
	struct err *e);

/* Does the layer have to stay for effects with this verdict? */
bool result_is_left(enum change_verdict v);

/*
 * Drops what it wrote, and drafts that an interrupted apply left in the project; of a locked run.
 * Where there was a layer, that is in the log: *ret_unlogged is why not.
 */
int result_discard(struct result *k, struct err *ret_unlogged, struct err *e);

/* Removes the layer and what belongs to it: at once for whoever looks, then from the disk. */
int result_remove(struct result *k, struct err *e);

/* --- which one is meant: result_find.c --- */

/* By which words it is meant. All is borrowed. */
struct result_words {
	const char *run;          /* by option; or NULL */
	const char *const *words; /* the first may be a run or a session, the others are paths */
	size_t count;
	size_t open_count; /* so many of them stand before a "--": only these are names */
	bool is_session;   /* the first word is a session */
	bool is_named;     /* set: the first word was a run or a session */
	size_t others;     /* set: runs of the project that wait beside it, where none was named */
	char where[PATH_MAX]; /* set: the project that was searched, or the current folder */
	char here[PATH_MAX];  /* set: the current folder */
};

/*
 * The run that is meant: by option, by the first word, or the newest of this project with changes
 * still to be applied; with the paths among the words. 0 with no folder where there is none.
 */
int result_choose(struct result *k, struct result_words *words, struct err *e);

/* The session that a word names. */
int result_choose_session(struct result *k, const char *word, struct err *e);

#define RESULT_NAME_SIZE 80

/* A session with changes of the project that `here` is in, by its name or id; false: there is none.
 */
bool result_find_session(const char *here, char ret[static RESULT_NAME_SIZE]);

/*
 * Opens the folder of the run that a word names, or with NULL of the newest of all, wherever it
 * was. 0 with -1 where no run was ever kept. The caller owns *ret_folder.
 */
int result_open_run(
	const char *word, char ret[static RECORD_RUN_SIZE], int *ret_folder, struct err *e);

/*
 * Calls `see` for every run with something to apply whose project is that of the current folder,
 * the newest first; what it returns but 0 ends it. *ret_count: how many; `where` as above.
 */
int result_each(int (*see)(void *of, struct result *k), void *of, struct result_words *ret,
	size_t *ret_count, struct err *e);

/* Has a run its folder locked, which it has while it lasts? */
bool result_is_going_on(int folder);
