#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * What several processes, on one machine or many, know together: sessions, their queued runs, who
 * works on which, and the workspaces that were saved. One interface, two stores: SQLite, which is
 * there without being set up, and PostgreSQL.
 *
 * A worker that takes a session gets a lease, which it renews, and a token, which is larger than
 * any before. Whatever it writes about the session it writes with that token, and what comes with
 * an older one is refused: -ESTALE. A worker that slept through the end of its lease cannot undo
 * what its successor did, whatever its own clock says: leases are measured by the store's.
 *
 * A run is taken once. That it was taken is written before anything of it is done, so that no
 * other worker ever does it too; one whose worker is lost is reported as lost.
 *
 * Times are milliseconds since 1970 by the store's clock. Texts in results belong to the result.
 */

#define STORE_ID_SIZE     33 /* of a session: 32 hexadecimal digits */
#define STORE_NAME_SIZE   65 /* of a session or a worker */
#define STORE_RUN_SIZE    32
#define STORE_LEASE_MS    15000               /* how long one holds without being renewed */
#define STORE_MAX_REQUEST ((size_t)2 << 20)   /* of a run */
#define STORE_MAX_OUTPUT  ((size_t)1 << 20)   /* of a run, kept of each stream: its end */
#define STORE_MAX_SAVED   ((size_t)256 << 20) /* of a workspace */

struct store;

/*
 * Opens a store and brings its tables up to date. `where` is "sqlite:PATH" or
 * "postgresql://…"; several may do so at one time. A newer version's tables are refused.
 */
int store_open(const char *where, struct store **ret, struct err *e);
void store_close(struct store *s);

/* What the store is called in a sentence: a path or a host, never a password. Borrowed from `s`. */
const char *store_name(const struct store *s);

/*
 * Becomes bawn-pg, with the same words, where this program does not know PostgreSQL and `where`,
 * which may be NULL, is one: so it is called before anything is done. 0: there is no need to.
 */
int store_prefer_program(const char *where, char *const argv[], struct err *e);

/* The store's clock. */
int store_now(struct store *s, int64_t *ret_ms, struct err *e);

/*
 * Readable when something may have happened that somebody waits for: a run was queued or ended, a
 * session was stopped or taken by another. Never polled in vain: nothing happens while nobody does
 * anything. store_hear makes it unreadable again. After store_listen only; -1 before. -EPIPE from
 * any call: the connection is lost; it is made anew by the next call that succeeds, with which one
 * listens again and the descriptor, which stays the same, is readable: something may have been
 * missed.
 */
int store_listen(struct store *s, struct err *e);
int store_wait_fd(const struct store *s);
int store_hear(struct store *s, struct err *e);

/* --- sessions --- */

enum store_session_state {
	STORE_OPEN,     /* runs may be started in it */
	STORE_STOPPED,  /* none may, until it is started again by one */
	STORE_REMOVING, /* its folder is being removed; nothing can be done with it */
	STORE_SESSION_STATE_COUNT,
};

extern const char *const store_session_words[STORE_SESSION_STATE_COUNT];

struct store_session {
	char id[STORE_ID_SIZE], name[STORE_NAME_SIZE]; /* name "": it has none */
	char place[STORE_ID_SIZE];                     /* the root that has its files */
	uint64_t workspace;                            /* which of its folders is the present one */
	enum store_session_state state;
	int64_t created_ms, used_ms, ttl_ms; /* ttl 0: it does not expire */
	char worker[STORE_NAME_SIZE];        /* who has the lease; "": nobody */
	uint64_t token;                      /* of the last lease; 0: there never was one */
	int64_t lease_ms;                    /* until when */
	bool is_lease_over;                  /* by the store's clock, just now; or there is none */
	bool is_expired;          /* the same for the session; not while a run is in it */
	uint64_t queued, running; /* runs */
	char *spec;               /* canonical, fixed when it was created; owned */
	char *project;            /* its path on the host; owned */
};

void store_session_done(struct store_session *x);

/*
 * id, name, place, workspace, state, ttl_ms, spec and project are given. -EEXIST: there is one of
 * that name. Sets created_ms and used_ms.
 */
int store_add_session(struct store *s, struct store_session *x, struct err *e);

/* By id, by name, or by the beginning of an id. -ENOENT; -ENOTUNIQ: several begin so. */
int store_find_session(struct store *s, const char *word, struct store_session *ret, struct err *e);

/* Calls `see` for each, the oldest first; what it returns but 0 ends it. */
int store_each_session(struct store *s, int (*see)(void *of, const struct store_session *x),
	void *of, struct err *e);

/* It was used just now: its time to live begins anew. -ENOENT, -ECANCELED: it is being removed. */
int store_touch_session(struct store *s, const char *id, struct err *e);

/*
 * Runs that are queued in a session that is stopped or removed are reported as cancelled. -ENOENT;
 * -ECANCELED: it is being removed, and stays so.
 */
int store_set_state(struct store *s, const char *id, enum store_session_state state, struct err *e);

/* Begins to remove those that are expired still, and nobody has begun with: so ret_begun says. */
int store_begin_sweeps(
	struct store *s, const char *const *ids, size_t count, bool *ret_begun, struct err *e);

/* Its folder is gone: so is its row, with what was saved of it. Its runs stay, ended. -ENOENT. */
int store_remove_session(struct store *s, const char *id, struct err *e);

/* The same for many at once: all or none of them. One that is not there any more is no failure. */
int store_remove_sessions(struct store *s, const char *const *ids, size_t count, struct err *e);

/* Which folder is the present one from here on, and in which root. -ESTALE. */
int store_set_workspace(struct store *s, const char *id, uint64_t token, const char *place,
	uint64_t workspace, struct err *e);

/* --- runs --- */

enum store_run_state {
	STORE_QUEUED,
	STORE_RUNNING,
	STORE_ENDED,     /* the command ran; result says how it ended */
	STORE_FAILED,    /* it was refused, or bawn failed; result says why */
	STORE_LOST,      /* its worker was, and nobody knows how far it came */
	STORE_CANCELLED, /* it never began */
	STORE_RUN_STATE_COUNT,
};

extern const char *const store_run_words[STORE_RUN_STATE_COUNT];

struct store_run {
	char id[STORE_RUN_SIZE], session[STORE_ID_SIZE], worker[STORE_NAME_SIZE];
	enum store_run_state state;
	uint64_t token;                        /* under which it was taken */
	int64_t queued_ms, taken_ms, ended_ms; /* 0: not yet */
	int status;                            /* what `session exec` would have returned */
	char *request;                         /* JSON; owned, as all of these */
	char *error;                           /* a sentence, or "" */
	char *record;                          /* the signed record, or "" */
	char *out, *err;                       /* the end of what it printed */
	size_t out_size, err_size;
};

void store_run_done(struct store_run *x);

/*
 * id, session and request are given. -ECANCELED: the session is stopped or being removed; -ENOENT;
 * -EEXIST: a run of that id is queued already, perhaps by this very call before the connection
 * broke. The session was used.
 */
int store_queue_run(struct store *s, const struct store_run *x, struct err *e);

int store_find_run(struct store *s, const char *id, struct store_run *ret, struct err *e);

/* Of one session, or of all with NULL; the oldest first, without what they printed. */
int store_each_run(struct store *s, const char *session,
	int (*see)(void *of, const struct store_run *x), void *of, struct err *e);

/* Queued runs of all sessions, and for how long the oldest of them waits; 0: there is none. */
struct store_queue {
	uint64_t runs, oldest_ms;
};

int store_measure_queue(struct store *s, struct store_queue *ret, struct err *e);

/* --- workers --- */

/*
 * A name is one process's, and never another's: who comes back under it would be taken for the one
 * that was there before, and have its leases.
 */
struct store_worker {
	char name[STORE_NAME_SIZE], place[STORE_ID_SIZE], host[STORE_NAME_SIZE];
	unsigned slots;   /* runs at one time; 0: it takes no more, and others may take over */
	int64_t lease_ms; /* how long its leases hold; STORE_LEASE_MS */
	int64_t seen_ms;
	bool is_alive;           /* it was seen within lease_ms */
	uint64_t sessions, runs; /* that it has */
};

/* A worker is there, or still is: renews its leases that nobody else took. */
int store_renew_worker(struct store *s, const struct store_worker *w, struct err *e);

/* It goes, and has ended its runs: its leases are free. One that it has not ended is lost. */
int store_remove_worker(struct store *s, const char *name, struct err *e);

int store_each_worker(struct store *s, int (*see)(void *of, const struct store_worker *x), void *of,
	struct err *e);

/* Has any worker that is alive another place than this? Then what is not saved stays here. */
int store_has_other_place(struct store *s, const char *place, bool *ret, struct err *e);

/* What a worker has taken. */
struct store_taken {
	struct store_run run;
	struct store_session session; /* with the worker's lease and token */
	bool is_new;                  /* the lease: it had none on this session */
	bool is_left_open; /* the one before was not given back: somebody may still write there */
};

void store_taken_done(struct store_taken *t);

/*
 * Takes the oldest queued run that is for this worker: of a session that it has, that nobody has,
 * whose lease is over, or whose worker is full and has nothing of it running; and whose files are
 * in the worker's place, or in one that no worker has who is alive and takes any. In one session
 * one run is done after the other. With a session whose lease is over, runs that its worker had are
 * lost. 1 with one, 0: there is none. Workers beside each other never wait for each other: what
 * another has its hands on at this moment is passed over, so one asks again after each renewal,
 * also when nothing was heard. Whether it has room is the worker's to know.
 *
 * After -EPIPE nobody knows whether a run was taken: the next call says it, and returns that run.
 * -ENODATA: a row was wrong, and is right now; there may be others to take.
 */
int store_take_run(
	struct store *s, const struct store_worker *w, struct store_taken *ret, struct err *e);

/*
 * How a run ended: state, status, error, record, out and err; id, session, worker and token are
 * those it was taken with. -ESTALE: the session is another worker's now, or the run is no longer
 * this one's; nothing was written. To say the same again, after -EPIPE, does no harm.
 */
int store_end_run(struct store *s, const struct store_run *x, struct err *e);

/* Gives a lease back; nothing runs under it any more: otherwise -EBUSY. -ESTALE. */
int store_release(struct store *s, const char *session, uint64_t token, struct err *e);

/* The same where somebody may still write to the workspace: the next lease is left open again. */
int store_give_up(struct store *s, const char *session, uint64_t token, struct err *e);

/* Is the token still the newest? 0 or -ESTALE. */
int store_check_token(struct store *s, const char *session, uint64_t token, struct err *e);

/* The same for every lease the worker believes to have: which are not its. */
int store_check_leases(struct store *s, const char *worker, const struct store_session *const *held,
	size_t count, bool *ret_is_lost, struct err *e);

/*
 * Runs of workers whose lease is over, in sessions that nobody takes because nothing is queued
 * there, are lost, and the lease with them: how many there were. Any worker does it now and then.
 */
int store_report_lost(struct store *s, uint64_t *ret_count, struct err *e);

/* --- saved workspaces --- */

/* The newest replaces the ones before. -ESTALE; -EFBIG: more than STORE_MAX_SAVED. */
int store_save(struct store *s, const char *session, uint64_t token, const void *bytes, size_t n,
	struct err *e);

/* -ENOENT: none was saved. *ret is the caller's. */
int store_load(struct store *s, const char *session, char **ret, size_t *ret_size, struct err *e);
