#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "proof/record/record.h"

/*
 * The counters of a worker, printed for Prometheus. A plain struct, which must be zeroed. Another
 * process may count in a struct of its own and send it for metrics_add. Not for several threads.
 */

/* How a run ended: an outcome of record_outcome_words, or one of those without a record. */
enum metrics_result {
	METRICS_FAILED = RECORD_OUTCOME_COUNT, /* bawn itself failed */
	METRICS_LOST,                          /* its worker was lost */
	METRICS_RESULT_COUNT,
};

/* What was refused, by type of event. */
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
	uint64_t starts[METRICS_BUCKET_COUNT]; /* not cumulative; the last has all slower starts */
	uint64_t start_ns;                     /* sum of all starts */
	uint64_t sweeps, swept, sweep_failures;
	uint64_t leases_lost;
	uint64_t pool_hits, pool_misses;
	uint64_t sessions, workers; /* gauges: present in the store */
	uint64_t queued, oldest_s;  /* gauges: queued runs, and how long the oldest has waited */
};

/* Returns the result for a word: of record_outcome_words, "failed" or "lost". Others: "failed". */
enum metrics_result metrics_result_of(const char *word);

/* Counts a run that ended. `start_ns` is the time until its command started; 0: it never did. */
void metrics_count_run(struct metrics *m, enum metrics_result result, uint64_t start_ns);

/* Counts a run by its record, with the refusals in it; each limit that was hit counts once. */
void metrics_count_record(struct metrics *m, const struct record *r);

/* Adds another struct's counters. Gauges stay as they are. */
void metrics_add(struct metrics *m, const struct metrics *other);

#define METRICS_MAX_SIZE ((size_t)64 << 10)

/* Prints all counters in Prometheus' text format in a fixed order, also those that are 0. */
void metrics_print(const struct metrics *m, struct buf *out);

/*
 * Writes the counters to a file that others may read, and replaces it atomically. Refuses a path
 * that is not a regular file.
 */
int metrics_write(const struct metrics *m, const char *path, struct err *e);
