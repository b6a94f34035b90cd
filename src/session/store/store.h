#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * The state that several processes share, on one machine or many: sessions, their queued runs, the
 * workers' leases and the saved workspaces. One interface, two databases: SQLite, which needs no
 * setup, and PostgreSQL.
 *
 * A worker that takes a session gets a lease, which it renews, and a token, which is larger than
 * any token before. It writes about the session only with that token; the store refuses an older
 * one with -ESTALE. So a worker that slept through the end of its lease cannot undo what its
 * successor did. The store's clock measures leases; the workers' clocks do not matter.
 *
 * A run is taken once: the store notes it as taken before the worker starts it, so that no other
 * worker ever runs it too. If the worker is lost, the run is reported as lost.
 *
 * Times are milliseconds since 1970 by the store's clock. A result owns its texts. Functions return
 * 0 or -errno with a sentence in `e`, unless they say otherwise.
 */

#define STORE_ID_SIZE     33 /* of a session: 32 hexadecimal digits */
#define STORE_NAME_SIZE   65 /* of a session or a worker */
#define STORE_RUN_SIZE    32
#define STORE_LEASE_MS    15000               /* duration of a lease that is not renewed */
#define STORE_MAX_REQUEST ((size_t)2 << 20)   /* of a run */
#define STORE_MAX_OUTPUT  ((size_t)1 << 20)   /* of a run, kept of each stream: its end */
#define STORE_MAX_SAVED   ((size_t)256 << 20) /* of a workspace */

struct store;

/*
 * Opens a store and updates its tables to this version; several processes may do so at once.
 * Refuses tables of a newer version. `where` is "sqlite:PATH" or "postgresql://…".
 */
int store_open(const char *where, struct store **ret, struct err *e);
void store_close(struct store *s);

/* Returns the store's name for messages: a path or a host, never a password. Borrowed from `s`. */
const char *store_name(const struct store *s);

/*
 * Executes bawn-pg with the same arguments if this program is built without PostgreSQL and `where`,
 * which may be NULL, names a PostgreSQL store. Must be called before anything else is done. Returns
 * 0 if it is not needed, or -errno.
 */
int store_prefer_program(const char *where, char *const argv[], struct err *e);

/* Reads the store's clock. */
int store_now(struct store *s, int64_t *ret_ms, struct err *e);

/*
 * Notifications. After store_listen, the descriptor of store_wait_fd (-1 before) becomes readable
 * when a run was queued or ended, or a session was stopped or taken by another worker. store_hear
 * makes it unreadable again. While nobody changes anything, nobody is woken.
 *
 * If any call returns -EPIPE, the connection is lost. The next call that succeeds connects again
 * and listens again; the descriptor stays the same and is readable then, as a notification may have
 * been missed.
 */
int store_listen(struct store *s, struct err *e);
int store_wait_fd(const struct store *s);
int store_hear(struct store *s, struct err *e);

/* --- sessions --- */

enum store_session_state {
	STORE_OPEN,     /* runs may start in it */
	STORE_STOPPED,  /* queued runs are refused; `session exec` opens it again */
	STORE_REMOVING, /* its folder is being removed; no run may start any more */
	STORE_SESSION_STATE_COUNT,
};

extern const char *const store_session_words[STORE_SESSION_STATE_COUNT];

struct store_session {
	char id[STORE_ID_SIZE], name[STORE_NAME_SIZE]; /* name "": it has none */
	char place[STORE_ID_SIZE];                     /* the root that has its files */
	uint64_t workspace;                            /* number of its current workspace */
	enum store_session_state state;
	int64_t created_ms, used_ms, ttl_ms; /* ttl 0: it does not expire */
	char worker[STORE_NAME_SIZE];        /* the worker with the lease; "": none */
	uint64_t token;                      /* of the last lease; 0: there never was one */
	int64_t lease_ms;                    /* when the lease ends */
	bool is_lease_over;                  /* when the row was read; also without a lease */
	bool is_expired;          /* when the row was read; never while a run is running */
	uint64_t queued, running; /* number of runs */
	char *spec;               /* canonical, fixed at creation; owned */
	char *project;            /* its path on the host; owned */
};

void store_session_done(struct store_session *x);

/*
 * Adds a session. id, name, place, workspace, state, ttl_ms, spec and project must be set; sets
 * created_ms and used_ms. Returns -EEXIST if the name is taken.
 */
int store_add_session(struct store *s, struct store_session *x, struct err *e);

/* Finds a session by id, name or the beginning of an id. -ENOENT; -ENOTUNIQ: several match. */
int store_find_session(struct store *s, const char *word, struct store_session *ret, struct err *e);

/* Calls `see` for each session, oldest first. A result of `see` other than 0 ends it. */
int store_each_session(struct store *s, int (*see)(void *of, const struct store_session *x),
	void *of, struct err *e);

/* Starts the session's time to live anew. -ENOENT; -ECANCELED: it is being removed. */
int store_touch_session(struct store *s, const char *id, struct err *e);

/*
 * Sets the state of a session. Cancels its queued runs unless the state is STORE_OPEN. -ENOENT;
 * -ECANCELED: it is being removed.
 */
int store_set_state(struct store *s, const char *id, enum store_session_state state, struct err *e);

/*
 * Marks those of the sessions as being removed that are still expired and not marked yet. ret_begun
 * says which.
 */
int store_begin_sweeps(
	struct store *s, const char *const *ids, size_t count, bool *ret_begun, struct err *e);

/* Deletes a session whose folder was removed, and its saved workspace. Its runs stay. -ENOENT. */
int store_remove_session(struct store *s, const char *id, struct err *e);

/* Deletes many sessions, all or none. Skips those that are gone already. */
int store_remove_sessions(struct store *s, const char *const *ids, size_t count, struct err *e);

/* Sets the current workspace of a session, and the root that has it. -ESTALE. */
int store_set_workspace(struct store *s, const char *id, uint64_t token, const char *place,
	uint64_t workspace, struct err *e);

/* --- runs --- */

enum store_run_state {
	STORE_QUEUED,
	STORE_RUNNING,
	STORE_ENDED,     /* the command ran; `status` says how it ended */
	STORE_FAILED,    /* it was refused, or bawn failed; `error` says why */
	STORE_LOST,      /* its worker was lost, and nobody knows how far it came */
	STORE_CANCELLED, /* it never started */
	STORE_RUN_STATE_COUNT,
};

extern const char *const store_run_words[STORE_RUN_STATE_COUNT];

struct store_run {
	char id[STORE_RUN_SIZE], session[STORE_ID_SIZE], worker[STORE_NAME_SIZE];
	enum store_run_state state;
	uint64_t token;                        /* of the lease under which it was taken */
	int64_t queued_ms, taken_ms, ended_ms; /* 0: not yet */
	int status;                            /* the exit status of `session exec` */
	char *request;                         /* JSON; owned, as all of these */
	char *error;                           /* a sentence, or "" */
	char *record;                          /* the signed record, or "" */
	char *out, *err;                       /* the end of each output stream */
	size_t out_size, err_size;
};

void store_run_done(struct store_run *x);

/*
 * Queues a run and touches its session. id, session and request must be set. -ECANCELED: the
 * session is stopped or being removed; -ENOENT; -EEXIST: a run with that id is queued already,
 * perhaps by this call before the connection broke.
 */
int store_queue_run(struct store *s, const struct store_run *x, struct err *e);

/*
 * Deletes the rows of runs that have ended, of sessions that were removed: those that ended longer
 * ago than `age_ms`, or have more than `count` runs behind them. 0: no limit. *ret_count is set.
 */
int store_prune_runs(
	struct store *s, uint64_t age_ms, uint64_t count, uint64_t *ret_count, struct err *e);

int store_find_run(struct store *s, const char *id, struct store_run *ret, struct err *e);

/* Calls `see` for each run of a session, or with NULL of all, oldest first, without its output. */
int store_each_run(struct store *s, const char *session,
	int (*see)(void *of, const struct store_run *x), void *of, struct err *e);

/* The number of queued runs in all sessions, and how long the oldest has waited; 0: none. */
struct store_queue {
	uint64_t runs, oldest_ms;
};

int store_measure_queue(struct store *s, struct store_queue *ret, struct err *e);

/* --- workers --- */

/*
 * A worker. Its name must never be used by another process, which would get the leases of the
 * first.
 */
struct store_worker {
	char name[STORE_NAME_SIZE], place[STORE_ID_SIZE], host[STORE_NAME_SIZE];
	unsigned slots;   /* runs at a time; 0: it takes no more, and others may take over */
	int64_t lease_ms; /* duration of its leases; STORE_LEASE_MS */
	int64_t seen_ms;
	bool is_alive;           /* it was seen within lease_ms */
	uint64_t sessions, runs; /* sessions that it has a lease on, and runs in them */
};

/*
 * Registers a worker, or notes that it is alive and renews its leases that nobody else has taken.
 */
int store_renew_worker(struct store *s, const struct store_worker *w, struct err *e);

/* Removes a worker that exits and frees its leases. Runs that it has not ended become lost. */
int store_remove_worker(struct store *s, const char *name, struct err *e);

int store_each_worker(struct store *s, int (*see)(void *of, const struct store_worker *x), void *of,
	struct err *e);

/* Says whether a worker that is alive has another place, so that workspaces have to be saved. */
int store_has_other_place(struct store *s, const char *place, bool *ret, struct err *e);

/* A run that a worker has taken. */
struct store_taken {
	struct store_run run;
	struct store_session session; /* with the worker's lease and token */
	bool is_new;                  /* the worker had no lease on the session before */
	bool is_left_open; /* the last lease was not released: its worker may still write there */
};

void store_taken_done(struct store_taken *t);

/*
 * Takes the oldest queued run that this worker may take. Returns 1 with a run, 0 without, or
 * -errno.
 *
 * The worker may take a run if
 *   - no other run of the session is running, and
 *   - it has the lease on the session, or nobody has, or the lease is over, or the worker that has
 *     it is full and runs nothing in the session, and
 *   - the files of the session are in the worker's place, or no worker that is alive and takes runs
 *     has their place.
 * Taking a session whose lease is over makes the runs of its old worker lost. The caller must have
 * a free slot.
 *
 * Workers never wait for each other: a row that another one is writing is skipped. So a worker
 * calls this after each renewal too, even without a notification.
 *
 * After -EPIPE nobody knows whether a run was taken; the next call finds out and returns that run.
 * -ENODATA: a wrong row was corrected; there may be others to take.
 */
int store_take_run(
	struct store *s, const struct store_worker *w, struct store_taken *ret, struct err *e);

/*
 * Writes how a run ended: state, status, error, record, out and err. id, session, worker and token
 * must be those that it was taken with. -ESTALE: another worker has the session or the run now, and
 * nothing was written. The caller may repeat the call after -EPIPE.
 */
int store_end_run(struct store *s, const struct store_run *x, struct err *e);

/* Releases a lease. -EBUSY: a run is still running under it; -ESTALE. */
int store_release(struct store *s, const char *session, uint64_t token, struct err *e);

/* Releases a lease while a process may still write to the workspace: sets is_left_open again. */
int store_give_up(struct store *s, const char *session, uint64_t token, struct err *e);

/* Returns 0 if the token is still the newest of the session, or -ESTALE. */
int store_check_token(struct store *s, const char *session, uint64_t token, struct err *e);

/* Checks all leases that a worker believes it has. ret_is_lost says which it has lost. */
int store_check_leases(struct store *s, const char *worker, const struct store_session *const *held,
	size_t count, bool *ret_is_lost, struct err *e);

/*
 * Makes runs lost whose lease is over and whose session nobody takes, because nothing is queued in
 * it, and frees the leases. Sets how many runs there were. Every worker calls it now and then.
 */
int store_report_lost(struct store *s, uint64_t *ret_count, struct err *e);

/* --- saved workspaces --- */

/* Saves a workspace, which replaces the one before. -ESTALE; -EFBIG: above STORE_MAX_SAVED. */
int store_save(struct store *s, const char *session, uint64_t token, const void *bytes, size_t n,
	struct err *e);

/* Loads the saved workspace; the caller owns *ret. -ENOENT: there is none. */
int store_load(struct store *s, const char *session, char **ret, size_t *ret_size, struct err *e);
