#pragma once

#include "keeper/keeper.h"
#include "wire/wire_gate.h"

/* The network of a cage: its gate, its dialer and its vault. */
struct keeper;
struct keeper_process;

/* --- keeper_gate_rules.c, keeper_gate.c, keeper_gate_inspect.c --- */

struct keeper_gate {
	bool is_awaited;                 /* there has to be one, and it does not stand yet */
	bool is_over;                    /* it has told all */
	bool is_outdated[WIRE_MAX_ROWS]; /* the log has another count of it */
	pid_t pids[3];                   /* the gate, the dialer, and the vault if there is one */
	int channel;                     /* to the gate; -1: there is none, or it has ended */
	int rules;                       /* sealed, until they have them */
	bool has_secrets;
	int published[WIRE_MAX_PUBLISH];
	uint32_t published_count;
};

void keeper_gate_init(struct keeper_gate *g);
void keeper_gate_done(struct keeper_gate *g);

/* Gathers the rules of the plan's network, and takes the ports of the host that lead into it. */
int keeper_gate_make(struct keeper *k, struct err *e);

/*
 * keeper_keys.c: can every key of a secret be read? And all of them, as a file without a name for
 * the vault: a descriptor, or -errno. The vault's own program.
 */
int keeper_keys_check(const struct keeper *k, struct err *e);
int keeper_keys_open(const struct keeper *k, struct err *e);
int keeper_vault_find(char *ret, size_t size, struct err *e);

/* The cage has its namespaces: starts the gate and the dialer. */
int keeper_gate_start(struct keeper *k, struct err *e);

/* What the gate has said. An error: it will never stand. */
int keeper_gate_hear(struct keeper *k, struct err *e);

/* Is the gate what it should be? "", or what is wrong. */
void keeper_gate_inspect(const struct keeper_gate *g, const struct keeper_process *cage,
	const struct plan *p, char *ret, size_t size);

/* The cage has ended: hears the last of the gate, and ends it. */
void keeper_gate_end(struct keeper *k);
