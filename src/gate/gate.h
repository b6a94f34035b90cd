#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "seccomp/filter.h"
#include "wire/wire_gate.h"

/*
 * The way out of a cage with network: allowlist. Two processes of one run, each a fresh start of
 * bawn's own program with nothing of the keeper's memory:
 *
 *   the gate     in the cage's network: answers names, takes connections, reads what the agent
 *                says first, splices. It has no other network.
 *   the dialer   in the host's network: finds the addresses of a name, connects, hands the socket
 *                over. It reads nothing of the agent's.
 *
 * With secrets a third one, a program of its own (src/vault): it has the keys and no network, takes
 * connections from the gate, and gets its own from the dialer.
 *
 * All are confined before their first hostile byte: no capability, no file, few system calls.
 */

/* argv[0] by which bawn's program becomes one of the two. */
#define GATE_PROGRAM        "bawn-gate"
#define GATE_CALLER_PROGRAM "bawn-dialer"

/* The descriptors they start with. */
enum gate_fd {
	GATE_FD_KEEPER = 3, /* the gate's channel to the keeper; the dialer has none */
	GATE_FD_OTHER = 4,  /* between gate and dialer */
	GATE_FD_RULES = 5,  /* sealed memory: struct wire_rules */
	GATE_FD_CAGE = 6,   /* the gate's: a pidfd of the cage's first process */
	GATE_FD_VAULT = 7,  /* the channel to the vault, of both, where there are secrets */
	GATE_FD_PUBLISH = 8 /* the gate's: and those that follow, one listening socket each */
};

/* The program that holds the keys of secrets (src/vault), and what it starts with. */
#define GATE_VAULT_PROGRAM "bawn-vault"

enum vault_fd {
	VAULT_FD_GATE = 3,
	VAULT_FD_CALLER = 4,
	VAULT_FD_RULES = 5, /* as above */
	VAULT_FD_KEYS = 6,  /* struct wire_keys */
};

/* Their whole lives; the exit status. */
int gate_main(void);
int dialer_main(void);

/* --- for both --- */

/* Maps the rules, and looks whether all that is counted in them is there; NULL and `e` if not. */
const struct wire_rules *gate_map_rules(int fd, struct err *e);

/* Everything that a process that faces strangers may still do. */
struct gate_wall {
	const struct filter *filter;
	const char *const *readable; /* files, ended with NULL; those that are not there are none */
	const uint16_t *ports;       /* that it may connect to by TCP, where Landlock knows ports */
	size_t port_count;
	unsigned max_files; /* open descriptors */
	bool is_root;       /* it was started as that, and has ids to lose */
	int channel;        /* ends when the keeper has: nothing lives on without it */
};

/*
 * Takes everything else away, for good: ids (root becomes rules->uid), groups, capabilities, new
 * privileges, core dumps and ptrace by others, files, system calls. Dies with its parent.
 */
int gate_confine(const struct gate_wall *wall, const struct wire_rules *rules, struct err *e);
