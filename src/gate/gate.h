#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "seccomp/filter.h"
#include "wire/wire_gate.h"

/*
 * The network of a cage with network: allowlist. Two processes of each run, both started by execve
 * of bawn's own program, so that they have nothing of the keeper's memory:
 *
 *   the gate     in the cage's network namespace: answers name queries, accepts connections, reads
 *                their first bytes, splices the rest. It has no other network.
 *   the dialer   in the host's network: resolves names, connects, passes the socket to the gate. It
 *                reads no byte that the agent sends.
 *
 * With secrets there is a third process, a program of its own (src/vault): it has the keys and no
 * network, gets the cage's connections from the gate and its own from the dialer.
 *
 * All are confined before they read a hostile byte: no capability, no file, few system calls.
 */

/* argv[0] that makes bawn's program the gate or the dialer. */
#define GATE_PROGRAM        "bawn-gate"
#define GATE_DIALER_PROGRAM "bawn-dialer"

/* The descriptors that gate and dialer start with. */
enum gate_fd {
	GATE_FD_KEEPER = 3, /* the gate's channel to the keeper; the dialer has none */
	GATE_FD_OTHER = 4,  /* the channel between gate and dialer */
	GATE_FD_RULES = 5,  /* sealed memory: struct wire_rules */
	GATE_FD_VAULT = 7,  /* with secrets: the channel to the vault, for both */
	GATE_FD_PUBLISH = 8 /* the gate's first listening socket; the others follow */
};

/* The program that holds the keys of secrets (src/vault), and the descriptors it starts with. */
#define GATE_VAULT_PROGRAM "bawn-vault"

enum vault_fd {
	VAULT_FD_GATE = 3,
	VAULT_FD_DIALER = 4,
	VAULT_FD_RULES = 5, /* sealed memory: struct wire_rules */
	VAULT_FD_KEYS = 6,  /* struct wire_keys */
};

/* The main functions of gate and dialer. Return the exit status. */
int gate_main(void);
int dialer_main(void);

/* --- for gate, dialer and vault --- */

/* Maps the rules and checks that they are complete. Returns NULL and `e` if not. */
const struct wire_rules *gate_map_rules(int fd, struct err *e);

/* What a process that faces strangers may still do once it is confined. */
struct gate_wall {
	const struct filter *filter;
	const char *const
		*readable;     /* files it may read, ended with NULL; missing ones are ignored */
	const uint16_t *ports; /* TCP ports it may connect to, if Landlock knows ports */
	size_t port_count;
	unsigned max_files; /* limit of open descriptors */
	bool is_root;       /* it was started as root, and has ids to drop */
	int channel;        /* EOF on it means that the keeper is gone: the process must exit */
};

/*
 * Confines the calling process for good: drops ids (root becomes rules->uid), groups, capabilities,
 * new privileges, core dumps, ptrace by others, files and system calls, except for what `wall`
 * allows. The process dies with its parent. Returns 0, or -errno: it must exit then.
 */
int gate_confine(const struct gate_wall *wall, const struct wire_rules *rules, struct err *e);
