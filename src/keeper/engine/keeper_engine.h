#pragma once

#include <stdint.h>

#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "keeper/inspect/keeper_snapshot.h"
#include "proof/record/record.h"
#include "spec/spec.h"

/*
 * An engine makes the processes of a cage. All else is the keeper's, whichever engine runs: it
 * opens and approves the sources, passes on streams and signals, enforces limits, compares the cage
 * with the plan, and writes the record. What an engine can give on a host is its row in
 * plan_choose.c, by which it is chosen.
 */
struct keeper;

struct keeper_engine {
	enum spec_engine engine;

	/*
	 * Starts the process that k->start describes: the first one of a cage or, with
	 * k->start.join, a command in a cage that stands. Sets `pid` and `pidfd` of k->process to a
	 * child of the keeper that is in all namespaces of the cage, and closes k->start.channel.
	 * What starts speaks on that channel, as the table in keeper_watch.c allows: WIRE_READY
	 * when the cage is made, WIRE_STARTED after WIRE_GO, and so on.
	 */
	int (*start)(struct keeper *k, struct err *e);

	/* Sends a signal to the command; one that stops or continues, to all of the cage. */
	void (*signal)(const struct keeper *k, int number);

	/* Kills every process of the cage; with k->start.join, the command and its group. */
	void (*kill)(const struct keeper *k);

	/*
	 * Reaps the process, and with it every other one of the cage. Fills k->process.cpu_us, and
	 * *ret_status, which may be NULL, as wait(2) does. Fails after KEEPER_REAP_MS.
	 */
	int (*wait)(struct keeper *k, int *ret_status, struct err *e);

	/* Returns the CPU time of a cage whose first process is not reaped yet, in us; or -1. */
	int64_t (*cpu_us)(const struct keeper *k);

	/* Reads what the kernel shows of the process, into `arena`. Must not ask the cage. */
	int (*inspect)(const struct keeper *k, struct keeper_snapshot *ret, struct arena *arena,
		struct err *e);

	/* Notes the versions of what makes the cage, beside bawn's own. */
	void (*versions)(struct record *record);
};

/* Returns the row of an engine that runs cages, or NULL. */
const struct keeper_engine *keeper_engine_of(enum spec_engine engine);

/*
 * Refuses where a crash in a cage would start the host's handler, which the kernel does as root and
 * with what was in the process: where core_pattern is a pipe, whatever the limit of core dumps is,
 * but for the limit 1. `most` is the account's hard limit, which cannot be raised from 0 to that.
 */
int keeper_check_crashes(uint64_t most, const char *pattern, struct err *e);

extern const struct keeper_engine keeper_native;
