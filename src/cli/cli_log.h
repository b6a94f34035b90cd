#pragma once

#include "base/arena.h"
#include "cli/cli.h"
#include "record/record.h"

/* What bawn log knows of a run: its record, which anybody may have written. */

/* One event. What the record does not say is "" or 0; texts are the arena's. */
struct cli_event {
	const char *type, *name, *reason, *other, *text;
	int64_t port, times, bytes_out, bytes_in;
	const char *bytes; /* as it stands in the record, which is borrowed */
	size_t size;
};

struct cli_log {
	char id[RECORD_RUN_SIZE];
	const char *outcome;
	bool is_going_on;
	struct arena arena;
	struct cli_event *events;
	size_t count, room;
};

/* --- cli_log_read.c --- */

/* Reads a record of n bytes, which must live as long. -EBADMSG or -ENOMEM with a sentence. */
int cli_log_read(const char *bytes, size_t n, struct cli_log *log, struct err *e);

/* --- cli_log_allow.c: what would allow what was denied --- */

#define CLI_MOST_WAYS 64

struct cli_ways {
	const char *allow[CLI_MOST_WAYS]; /* entries of network.allow; the arena's */
	uint16_t ports[CLI_MOST_WAYS];    /* entries of network.host_ports */
	size_t allow_count, port_count;
	bool has_guess; /* a port that nobody asked for */
	bool has_more;  /* there are more than are here */
};

bool cli_event_is_denial(const struct cli_event *event);

/* Entries that the grammar of a spec takes, each once, in the order of the events. */
void cli_log_find_ways(struct cli_log *log, struct cli_ways *ret);
