#pragma once

#include "base/buf.h"
#include "run/run_spec.h"
#include "session/folder/session.h"
#include "session/store/store.h"

/* What the commands about sessions, and workers, begin with. run_sessions.c */

/*
 * Opens the store: BAWN_STORE, or `store.db` in the operator's state. -ENOENT, with nothing in `e`,
 * where that is missing and `makes` is not set.
 */
int run_open_store(bool makes, struct store **ret, struct err *e);

/* The store, and the root that has the folders. */
struct run_sessions {
	int state;                 /* the operator's */
	int root;                  /* -1: there is none yet, and so there are no folders */
	char place[STORE_ID_SIZE]; /* which root it is; "": none */
	struct store *store;       /* NULL: there is none yet, and so there are no sessions */
};

/* Opens both; `ret` is the caller's in any case. What is wrong is in `e`. */
int run_sessions_open(struct run_sessions *ret, bool makes, struct err *e);
void run_sessions_done(struct run_sessions *x);

/* The session of a word: 1, 0, or -errno with the reason in `e`. The caller's: store_session_done.
 */
int run_sessions_look_up(
	struct run_sessions *x, const char *word, struct store_session *ret, struct err *e);

/* Is its folder one of this root's? */
bool run_sessions_is_here(const struct run_sessions *x, const struct store_session *s);

/* An event of the log about a session; `why` may be NULL. Where it is not written, `e` says so. */
int run_sessions_log(
	int state, const char *type, const struct store_session *x, const char *why, struct err *e);

/* One that was found may be used: it lives on from now, and is started again where it was stopped.
 */
int run_use_session(struct run_sessions *at, const struct store_session *s, struct err *e);

/* Leaves a run to whichever worker takes it; *ret_run is its id. */
int run_queue(const struct run_request *q, struct store *s, const struct store_session *x,
	char ret_run[static STORE_RUN_SIZE], struct err *e);

/*
 * Waits for the end of a queued run. `alone`, which may be NULL, is called once if no worker is
 * there to take it.
 */
int run_wait_queued(struct store *s, const char *run, void (*alone)(void *of), void *of,
	struct store_run *ret, struct err *e);

/*
 * Ends what runs in a session in this root, also what is left in workspaces of earlier leases: a
 * cage of a session outlives the worker that made it. 0 also where nothing is.
 */
int run_stop_session(int root, const char *id, unsigned patience_ms, struct err *e);

/*
 * Ends what runs in a session, whose removal was begun, and removes its folder. Nothing but `e` is
 * shared between two of them at one time.
 */
int run_remove_files(int root, const struct store_session *s, struct err *e);

/* Removes one that was found, with all that is in it; -EXDEV: its files are in another root. */
int run_remove_session(struct run_sessions *at, const struct store_session *s, struct err *e);

/* --- those whose time is over: run_sweep.c --- */

/* What a sweep is to do, and what it did. */
struct run_swept {
	bool discards; /* those with changes that nobody applied or discarded are removed too */
	bool is_dry;   /* nothing is removed: `removed` is what would be */
	/* One was removed, or would be; or it cannot be, and `e` says why. */
	void (*swept)(
		void *of, const struct store_session *s, const char *why, const struct err *e);
	/* One has expired and is kept, because of changes to these files. */
	void (*spared)(void *of, const struct store_session *s, const struct buf *names);
	void *of;
	uint64_t removed, failed; /* sessions, and folders of creations that were interrupted */
	uint64_t kept;
	bool is_other;       /* another sweep is at work, and this one did nothing */
	bool is_cut;         /* there was no memory for all of them */
	struct err unlogged; /* why what was removed is not in the log */
};

/*
 * Removes the sessions of this root whose time is over and that have nothing to apply, or whose
 * removal was begun, and what interrupted creations left an hour ago. What cannot be removed never
 * stops the rest. -errno only where the store or the root cannot be read.
 */
int run_sweep(struct run_sessions *at, struct run_swept *x, struct err *e);

/* --- making one: run_create.c --- */

struct run_creation {
	const struct run_request *request;
	const char *name;     /* what it may be called by, or NULL */
	int64_t usual_ttl_ms; /* how long it is kept where nobody says; 0: as the spec has it */
	struct spec spec;
	struct run_place place;
	struct host host;
	struct plan_choice choice;
	bool is_loaded; /* the spec is: what was refused is its plan */
};

/*
 * Loads the spec that is asked for, and finds out whether its commands could be caged so. As
 * run_load_spec, and more; run_creation_done it in any case.
 */
int run_prepare_session(struct run_creation *c, struct err *e);

/* Makes it: first its folder, then its row in the store. -EEXIST: there is one of that name. */
int run_create_session(
	struct run_creation *c, struct run_sessions *at, struct store_session *ret, struct err *e);

void run_creation_done(struct run_creation *c);
