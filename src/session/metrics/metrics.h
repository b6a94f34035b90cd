#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "proof/record/record.h"

/*
 * What a worker counts, and how Prometheus reads it. A plain struct: all 0 is the beginning, and a
 * process of one's own may count in one and hand it over whole, for metrics_add. One thread counts.
 */

/* How a run ended: record_outcome_words, and what has no record. */
enum metrics_result {
	METRICS_FAILED = RECORD_OUTCOME_COUNT, /* bawn did */
	METRICS_LOST,                          /* its worker was */
	METRICS_RESULT_COUNT,
};

/* What was refused: the types of events. */
enum metrics_refusal {
	METRICS_REFUSED, /* a run */
	METRICS_NET_DENIED,
	METRICS_NAME_DENIED,
	METRICS_SYSCALL_DENIED,
	METRICS_WRITE_DENIED,
	METRICS_SYSCALLS_UNTOLD,
	METRICS_LIMIT_HIT,
	METRICS_REFUSAL_COUNT,
};

#define METRICS_BUCKET_COUNT 16

struct metrics {
	uint64_t runs[METRICS_RESULT_COUNT];
	uint64_t refusals[METRICS_REFUSAL_COUNT];
	uint64_t starts[METRICS_BUCKET_COUNT]; /* each by itself; the last has what is slower */
	uint64_t start_ns;                     /* of all together */
	uint64_t sweeps, swept, sweep_failures;
	uint64_t leases_lost;
	uint64_t pool_hits, pool_misses;
	uint64_t sessions, workers; /* that there are now, in the store */
	uint64_t queued, oldest_s;  /* runs that wait there, and how long the first of them has */
};

/* A word of record_outcome_words, "failed" or "lost"; any other is counted as "failed". */
enum metrics_result metrics_result_of(const char *word);

/* A run ended. `start_ns`: until its command was let go; 0: it never was. */
void metrics_count_run(struct metrics *m, enum metrics_result result, uint64_t start_ns);

/* The same by its record, with all that was refused in it; a limit counts once. */
void metrics_count_record(struct metrics *m, const struct record *r);

/* Adds what another counted; what there is now stays as it is. */
void metrics_add(struct metrics *m, const struct metrics *other);

#define METRICS_MAX_SIZE ((size_t)64 << 10)

/* All of it in Prometheus' text format, in one order, also what is 0. */
void metrics_print(const struct metrics *m, struct buf *out);

/*
 * Puts it into a file, which others may read: at every moment that is the whole of one time. What
 * is there and is no plain file is refused.
 */
int metrics_write(const struct metrics *m, const char *path, struct err *e);
