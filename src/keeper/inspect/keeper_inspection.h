#pragma once

#include "keeper/inspect/keeper_mounts.h"

/*
 * The comparisons of the inspection, apart from the reading: all they know is in these structs, so
 * that a test can change one value.
 */

struct keeper_inspection {
	const struct cage_start *start;
	struct arena arena;
	struct record *record;
	struct keeper_snapshot cage, host;
	pid_t pid;
	const struct keeper_joined *joined; /* the cage it is in is its session's; or NULL */
	struct keeper_mounts mounts;
	struct keeper_mount_faults faults;
};

/* Every guarantee into the record. An error: one that must hold does not. */
int keeper_inspection_compare(
	struct keeper_inspection *l, const struct keeper *k, struct record *record, struct err *e);

/* --- the gate --- */

#define KEEPER_PORTS 65536

/* Has the process with this status no rights, and a filter? */
bool keeper_gate_is_confined(const char *status);

/* Notes the ports that somebody listens at, from one of the kernel's tables. */
int keeper_gate_parse_listeners(const char *table, uint8_t ret[static KEEPER_PORTS]);

/* Are the listening ports those of the plan, and no others? "", or what is wrong. */
void keeper_gate_compare_ports(
	const struct plan *p, const uint8_t seen[static KEEPER_PORTS], char *ret, size_t size);
