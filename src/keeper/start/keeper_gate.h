#pragma once

#include "keeper/keeper.h"
#include "wire/wire_gate.h"

/* The network of a cage: its gate, its dialer and its vault. */
struct keeper;
struct keeper_process;

struct keeper_gate {
	bool is_awaited;                 /* there has to be one, and it does not stand yet */
	bool is_over;                    /* it has told all */
	bool is_outdated[WIRE_MAX_ROWS]; /* the log has another count of it */
	pid_t pids[3];                   /* the gate, the dialer, and the vault if there is one */
	int channel;                     /* to the gate; -1: there is none, or it has ended */
	int rules;                       /* sealed, until they have them */
	int for_vault[2]; /* ends of its channels to gate and dialer, until it is started; or -1 */
	bool has_secrets;
	int published[WIRE_MAX_PUBLISH];
	uint32_t published_count;
};

/* --- keeper_keys.c --- */

/* Checks that every key of a secret can be read. */
int keeper_keys_check(const struct keeper *k, struct err *e);

/* Returns a file without a name that has all keys, for the vault; or -errno. */
int keeper_keys_open(const struct keeper *k, struct err *e);

/* Finds the program of the vault. */
int keeper_vault_find(char *ret, size_t size, struct err *e);
