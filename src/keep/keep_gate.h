#pragma once

#include "keep/keep.h"
#include "wire/wire_gate.h"

/* The network of a cage: its gate, its dialer and its vault. */
struct keeper;
struct keep_process;

/* --- keep_gate_rules.c, keep_gate.c, keep_gate_look.c --- */

struct keep_gate {
	bool is_awaited;                 /* there has to be one, and it does not stand yet */
	bool is_over;                    /* it has told all */
	bool is_outdated[WIRE_MAX_ROWS]; /* the log has another count of it */
	pid_t pids[3];                   /* the gate, the caller, and the vault if there is one */
	int channel;                     /* to the gate; -1: there is none, or it has ended */
	int rules;                       /* sealed, until they have them */
	bool has_secrets;
	int published[WIRE_MAX_PUBLISH];
	uint32_t published_count;
};

void keep_gate_init(struct keep_gate *g);
void keep_gate_done(struct keep_gate *g);

/* Gathers the rules of the plan's network, and takes the ports of the host that lead into it. */
int keep_gate_make(struct keeper *k, struct err *e);

/*
 * keep_keys.c: can every key of a secret be read? And all of them, as a file without a name for the
 * vault: a descriptor, or -errno. The vault's own program.
 */
int keep_keys_check(const struct keeper *k, struct err *e);
int keep_keys_open(const struct keeper *k, struct err *e);
int keep_vault_find(char *ret, size_t size, struct err *e);

/* The cage has its namespaces: starts the gate and the caller. */
int keep_gate_start(struct keeper *k, struct err *e);

/* What the gate has said. An error: it will never stand. */
int keep_gate_hear(struct keeper *k, struct err *e);

/* Is the gate what it should be? "", or what is wrong. */
void keep_gate_look(const struct keep_gate *g, const struct keep_process *cage,
	const struct plan *p, char *ret, size_t size);

/* The cage has ended: hears the last of the gate, and ends it. */
void keep_gate_end(struct keeper *k);
