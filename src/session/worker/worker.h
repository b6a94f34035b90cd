#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "run/run.h"
#include "session/store/store.h"

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

struct worker_settings {
	const char *name;
	unsigned slots;
	uint64_t lease_ms, idle_ms, drain_ms, sweep_ms; /* no sweeps: 0 */
	bool is_once;                                   /* ends when nothing is queued */
	int root;                                       /* of the sessions; borrowed */
	int state;                                      /* the operator's, for the log, or -1 */
	char **sweep;        /* the command of a round, which prints JSON; ended by NULL */
	const char *metrics; /* a file for what was counted, or NULL */

	/* For the runs: who hears of them, and what ps shows. */
	const struct run_sink *sink;
	char *command_line;
	size_t command_line_size;
	/* In the coordinator, once its children are there, which must not have what it takes. */
	int (*open_store)(struct store **ret, struct err *e);
	/* What people should know, in a sentence, or may want to: a detail. */
	void (*tell)(const char *text, bool is_detail);
};

/* Works until it is told to end, or with is_once until nothing is left. 0, or -errno. */
int worker_run(const struct worker_settings *s, struct err *e);

/*
 * A name is one process's: under it the store has its leases, and one that is started anew must not
 * take itself for the one before. It begins with `text`, or the host's name. worker_name.c
 */
int worker_make_name(const char *text, char ret[static STORE_NAME_SIZE], struct err *e);
