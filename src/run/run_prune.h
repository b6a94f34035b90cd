#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/err.h"
#include "proof/log/log.h"
#include "proof/record/record.h"
#include "session/store/store.h"
#include "spec/spec.h"

/*
 * What of the operator's state is removed again, so that nothing grows without a bound: runs whose
 * number, age or size is above a limit, and old files of the log of all runs. Prints nothing.
 */

/* The limits; 0: there is none. */
struct run_retention {
	uint64_t runs, age_ms, bytes;
};

/* Returns what the operator's policies say, or the defaults. */
struct run_retention run_find_retention(const struct spec *s);

/* A run above a limit, or an old file of the log. */
struct run_prunable {
	char name[RECORD_RUN_SIZE + 16]; /* the run's id; of a file its name */
	bool is_log;
	struct timespec began;
	uint64_t bytes;
	const char *limit;  /* the one that it is above: "keep_runs", … */
	const char *spared; /* why it stays all the same; NULL: it goes */
};

struct run_prune {
	struct run_retention keep;
	bool is_dry;         /* nothing is removed: `see` is told what would be */
	struct store *store; /* rows of runs whose session is gone go too; or NULL */
	/* Told of each; `e` says why one could not be removed. May be NULL. */
	void (*see)(void *of, const struct run_prunable *x, const struct err *e);
	void *of;
	uint64_t runs, logs, bytes; /* that were removed, or would be */
	uint64_t spared, failed;
	uint64_t rows; /* of the store */
	bool is_other; /* somebody else prunes at this moment, and nothing was done */
};

/*
 * Removes what is above the limits, the oldest first. Never removed are runs that go on, have
 * changes that nobody applied or discarded, wait for their signature, or belong to a session that
 * is there. Before anything is removed a line of the log of all runs has its digest, signed with
 * the operator's key; where that cannot be written, nothing is removed. 0 or -errno.
 */
int run_prune(int state, struct run_prune *x, struct err *e);

/*
 * Does the same for a run that has ended, once in a while: the state stays within the limits and a
 * few runs more. Failures are told in *e and concern nobody's run.
 */
void run_prune_sometimes(int state, const char *run, const struct spec *s, struct err *e);

/*
 * Checks that the log of all runs, whose first line is given, was pruned up to there: a signed line
 * says so. 0; -ENOENT: no line does; -EKEYREJECTED: the one that does is not signed by the
 * operator.
 */
int run_check_log_start(int state, const struct log_line *first, struct err *e);
