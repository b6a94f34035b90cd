#pragma once

#include "proof/log/log_event.h"
#include "proof/record/record.h"
#include "wire/wire_gate.h"

/* Summaries of events. Pure. */

/* --- the rules that would allow what was denied --- */

#define RESULT_MOST_WAYS 64

struct result_ways {
	char allow[RESULT_MOST_WAYS][WIRE_WHERE_SIZE]; /* entries of network.allow */
	uint16_t ports[RESULT_MOST_WAYS];              /* entries of network.host_ports */
	size_t allow_count, port_count;
	bool has_guess;   /* a port is a guess: only a name was denied */
	bool has_more;    /* there are more than RESULT_MOST_WAYS */
	int64_t attempts; /* denials in runs without a network */
};

/* Adds the entries that would allow a denied event, each once, as a spec has them. */
void result_ways_add(struct result_ways *ways, const struct log_event *x);

/* --- the denials that bawn could see --- */

/*
 * The kind of run that the events are about, so that no event is not taken for "nothing happened".
 */
struct result_seen {
	bool has_run, is_none, is_allowlist; /* is_none, is_allowlist: its network */
	bool is_deaf;               /* the kernel does not notify of refused system calls */
	char cage[RECORD_RUN_SIZE]; /* the run whose cage it was in; "": its own */
};

void result_seen_note(struct result_seen *seen, const struct log_event *x);

/* Prints which denials bawn sees in such a run, "" for none, and which it does not. */
void result_seen_print(
	const struct result_seen *seen, struct buf *ret_seen, struct buf *ret_unseen);
