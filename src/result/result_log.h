#pragma once

#include "proof/log/log_event.h"
#include "proof/record/record.h"
#include "wire/wire_gate.h"

/* What the events of runs come to. Pure. */

/* --- what would allow what was denied --- */

#define RESULT_MOST_WAYS 64

struct result_ways {
	char allow[RESULT_MOST_WAYS][WIRE_WHERE_SIZE]; /* entries of network.allow */
	uint16_t ports[RESULT_MOST_WAYS];              /* entries of network.host_ports */
	size_t allow_count, port_count;
	bool has_guess;   /* a port that nobody asked for */
	bool has_more;    /* there are more than are here */
	int64_t attempts; /* of runs without a network */
};

/* Adds what an event calls for: entries that the grammar of a spec takes, each once. */
void result_ways_add(struct result_ways *ways, const struct log_event *x);

/* --- what could be seen at all --- */

/* As the events say: what a run had, so that silence is not taken for "nothing happened". */
struct result_seen {
	bool has_run, is_none, is_allowlist;
	bool is_deaf;               /* calls that the filter refuses are not told */
	char cage[RECORD_RUN_SIZE]; /* the run whose cage it was in; "": its own */
};

void result_seen_note(struct result_seen *seen, const struct log_event *x);

/* What bawn sees of what is denied, "" where nothing, and what it does not. */
void result_seen_print(
	const struct result_seen *seen, struct buf *ret_seen, struct buf *ret_unseen);
