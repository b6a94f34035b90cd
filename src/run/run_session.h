#pragma once

#include "base/buf.h"
#include "base/tail.h"
#include "run/run.h"
#include "session/metrics/metrics.h"
#include "session/store/store.h"

struct run_result;
struct keeper;
struct plan;
struct record;
struct run;

/* One command in a session, from whoever wants it: `bawn session exec`, or a worker. */

/* Cages that wait for their session, one for each of the last plans. */
#define RUN_POOL_SIZE 4

struct run_pool {
	struct keeper *cages[RUN_POOL_SIZE]; /* the one used last comes first; or NULL */
	uint64_t hits, misses;
	struct host host; /* as it was assumed to be */
	uint64_t host_ns; /* when; 0: never */
};

struct run_job {
	const struct store_session *session; /* its spec, its project */
	const char *run;                     /* its id, given when it was queued; NULL: a new one */
	const char *worker;                  /* who does it, or NULL */
	uint64_t token;                      /* of its lease, or 0 */
	char *command_line;                  /* what ps shows, in one piece of memory */
	size_t command_line_size;
	const struct run_sink *sink;
	int root;        /* the sessions', open; borrowed */
	int kill_signal; /* keeper_request; or 0 */
	int caller;      /* the same; 0: there is none */
	struct tail
		*printed[2]; /* output and error are kept here instead: keeper_request; or NULL */
	const struct run_request *request; /* its settings narrow the session's spec */
	/* Asked once the command has ended, before anything is signed: may the result still be
	 * written? 0 or -ESTALE. NULL: nobody else could have taken the session. */
	int (*is_still_ours)(void *of, struct err *e);
	/* What is known of it, before anything is let go; or NULL. */
	void (*look)(void *of, const struct record *r);
	/* All is done and signed; what comes before run_in_session returns is for the next one. */
	void (*done)(void *of, struct run_result *result);
	void *of;
	struct run_pool *pool; /* or NULL */
	int *hold;             /* gets what keeps the workspace mounted, where it is -1; or NULL */
};

struct run_result {
	enum store_run_state state; /* STORE_ENDED or STORE_FAILED */
	int status;
	char run[STORE_RUN_SIZE];
	uint64_t start_ns;      /* from the request until the command was let go */
	uint64_t end_ns;        /* and until its end was known */
	struct metrics counted; /* how it ended, and what was refused in it */
	struct err error;
	struct buf record; /* the signed one; the caller's: buf_done */
};

/* May it be asked in a session? What is fixed when that is created may not. */
int run_check_session(const struct run_request *q, struct err *e);

/* Makes a warm cage for such jobs. Without one the next is run as any other. */
void run_warm_session(const struct run_job *job);

/* Runs it to its end. */
void run_in_session(const struct run_job *job, struct run_result *ret);

/* --- run_pool.c --- */

/* One for a plan, which is the caller's; or NULL. */
struct keeper *run_pool_take(struct run_pool *pool, const struct plan *p);

/* Makes one for the next run of this kind, if there is none. */
void run_pool_fill(struct run_pool *pool, struct run *r);

void run_pool_done(struct run_pool *pool);

/* --- run_session.c, run_resident.c: what they share --- */

/* The workspace of the job's session, and its spec, which the job's options narrow. */
int run_open_workspace(const struct run_job *job, struct err *e);
int run_load_job(const struct run_job *job, struct run *r, struct err *e);

/* Starts the cage that the commands of a session share, and waits until it stands. */
int run_start_shared_cage(const struct run_job *job, struct err *e);

/* In such a session: does a command ask for what only a cage of its own could have? */
int run_check_sharing(const struct spec *s, struct err *e);
