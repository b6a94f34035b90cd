#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/tail.h"
#include "metrics/metrics.h"
#include "store/store.h"

/*
 * A worker: takes runs that were queued, does them, and writes down how they ended. Three kinds of
 * processes:
 *
 *   coordinator   has the store and all leases; waits for everything at once, does no run itself
 *   warden        starts the runners, and ends them when the leases have run out, whatever the
 *                 coordinator does meanwhile: it may be stopped, or wait for the store
 *   runners       one for each run at a time; they have no store, nor what one needs to open it
 *
 * Warden and runners are forked before the store is opened. Each ends with its parent.
 */

#define WORKER_MAX_SLOTS    1024
#define WORKER_MAX_HELD     65536 /* sessions that one worker has at a time */
#define WORKER_MIN_LEASE_MS 1000

struct worker_result;

/* One run, as a runner has it done. All of it is borrowed. */
struct worker_job {
	const struct store_session *session;
	const char *run, *worker;
	uint64_t token;
	int root;
	const char *request;     /* what it is asked with, as the store has it */
	struct tail *printed[2]; /* output and error */
	int *hold; /* gets what keeps the workspace mounted; NULL: that is not wanted */
	/* May the result still be written? 0 or -ESTALE. */
	int (*is_still_ours)(void *of, struct err *e);
	/* That is it; what is done after this call, the next run is there for already. Once. */
	void (*done)(void *of, const struct worker_result *x);
	void *of;
};

struct worker_result {
	enum store_run_state state; /* STORE_ENDED or STORE_FAILED */
	int status;
	struct metrics counted; /* what happened in it */
	struct err error;
	const struct buf *record; /* borrowed; or NULL */
};

struct worker_settings {
	const char *name;
	unsigned slots;
	uint64_t lease_ms, idle_ms, drain_ms, sweep_ms; /* no sweeps: 0 */
	bool is_once;                                   /* ends when nothing is queued */
	int root;                                       /* of the sessions; borrowed */
	int state;                                      /* the operator's, for the log, or -1 */
	char **sweep;        /* the command of a round, which prints JSON; ended by NULL */
	const char *metrics; /* a file for what was counted, or NULL */

	/* In a runner: does it, and calls job->done. */
	void (*run)(const struct worker_job *job);
	/* In a runner, at its end: puts away what was kept ready for the next run. */
	void (*end_runner)(void);
	/* In a runner: ends what an earlier lease may have left running in a workspace. */
	void (*end_left)(int workspace);
	/* In the coordinator, once its children are there, which must not have what it takes. */
	int (*open_store)(struct store **ret, struct err *e);
	/* What people should know, in a sentence, or may want to: a detail. */
	void (*tell)(const char *text, bool is_detail);
};

/* Works until it is told to end, or with is_once until nothing is left. 0, or -errno. */
int worker_run(const struct worker_settings *s, struct err *e);
