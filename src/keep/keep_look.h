#pragma once

#include "keep/keep_mounts.h"

/*
 * The comparisons of the inspection, apart from the reading: all they know is in these structs, so
 * that a test can change one value.
 */

struct keep_look {
	const struct cage_start *start;
	struct arena arena;
	struct record *record;
	struct keep_view cage, host;
	pid_t pid;
	const struct keep_joined *joined; /* the cage it is in is its session's; or NULL */
	struct keep_mounts mounts;
	struct keep_mount_faults faults;
};

/* Every guarantee into the record. An error: one that must hold does not. */
int keep_look_compare(
	struct keep_look *l, const struct keeper *k, struct record *record, struct err *e);

/* --- keep_gate_look.c --- */

#define KEEP_PORTS 65536

/* Has the process with this status no rights, and a filter? */
bool keep_gate_is_confined(const char *status);

/* Notes the ports that somebody listens at, from one of the kernel's tables. */
int keep_gate_parse_listeners(const char *table, uint8_t ret[static KEEP_PORTS]);

/* Are the listening ports those of the plan, and no others? "", or what is wrong. */
void keep_gate_compare_ports(
	const struct plan *p, const uint8_t seen[static KEEP_PORTS], char *ret, size_t size);
