#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * Messages about the network between keeper, gate, dialer and vault of one run. Each has a fixed
 * size and no pointers, and its receiver checks it before it uses it.
 *
 *   keeper ─ rules (sealed memory) ─► gate ─ "reach this" ─► dialer
 *   keeper ◄─ decisions ───────────── gate ◄─ a socket ───── dialer
 *
 * With secrets there is the vault too, and only it gets the keys:
 *
 *   keeper ─ keys ─► vault ◄─ the cage's connections ─ gate
 *                    vault ─ "reach this one's host" ─► dialer, and a socket back
 *
 * The gate talks to the cage, in the cage's network namespace, which has no way out. The dialer
 * connects to the world, and checks every request against the same rules again.
 */

#define WIRE_NAME_SIZE 256 /* a host name with its NUL */
#define WIRE_HOST_NAME "bawn-host"

#define WIRE_VAULT_PORT  80 /* of bawn-host: http://bawn-host/SECRET/… */
#define WIRE_SECRET_SIZE 64 /* the name of a secret with its NUL */

enum wire_protocol {
	WIRE_TLS,
	WIRE_HTTP,
	WIRE_TCP,
	WIRE_UDP, /* never allowed; only for denials */
};

extern const char *const wire_protocol_names[];

/* One allowed destination. */
struct wire_rule {
	char name[WIRE_NAME_SIZE]; /* lower case, without "*." and trailing dot; "": a network */
	uint8_t address[16];       /* of the network; IPv4 as ::ffff:a.b.c.d */
	uint8_t prefix;            /* in bits of these */
	uint8_t protocol;          /* enum wire_protocol */
	bool is_wildcard;          /* any name below `name`, and not `name` itself */
	bool is_host;              /* bawn-host: a port of the host's loopback */
	bool is_vault;             /* bawn-host: the port of the vault */
	uint16_t port;
};

/* A port of the host that leads into the cage. The gate inherits its listening socket. */
struct wire_publish {
	char address[48]; /* of the host, for people */
	uint16_t host_port, cage_port;
};

/* A secret without its key. */
struct wire_secret {
	char name[WIRE_SECRET_SIZE];
	char host[WIRE_NAME_SIZE]; /* lower case */
	uint16_t port;
};

#define WIRE_MAX_RULES   65536
#define WIRE_MAX_PUBLISH 64
#define WIRE_MAX_SECRETS 32

/* The rules for gate, dialer and vault, in sealed memory. */
struct wire_rules {
	uint32_t rule_count, publish_count, secret_count;
	uint32_t uid, gid;  /* the ids to switch to if started as root; else the process's own */
	bool is_landlocked; /* the plan demands Landlock: the gate fails without it */
	struct wire_publish publish[WIRE_MAX_PUBLISH];
	struct wire_secret secrets[WIRE_MAX_SECRETS];
	struct wire_rule rules[];
};

/* --- keys: keeper → vault, and nobody else --- */

#define WIRE_MAX_KEY     8192
#define WIRE_HEADER_SIZE 128
#define WIRE_CA_SIZE     4096

/* The rest of a secret, in the order of the rules. */
struct wire_key {
	char header[WIRE_HEADER_SIZE]; /* lower case */
	char scheme[WIRE_HEADER_SIZE]; /* or "" */
	char ca[WIRE_CA_SIZE];         /* the path of a file of certificates, or "" */
	uint32_t size;
	char bytes[WIRE_MAX_KEY]; /* visible ASCII, not ended */
};

/* Passed in a memfd, which the vault truncates after reading. */
struct wire_keys {
	uint32_t count;
	struct wire_key keys[WIRE_MAX_SECRETS];
};

/* --- matching; the only code that interprets rules --- */

/*
 * Return the rule for a name or an address at a port, or NULL if it is not allowed. An exact name
 * wins over "*.", a longer "*." over a shorter one. Port 0 matches any rule for the name.
 */
const struct wire_rule *wire_find_name(
	const struct wire_rules *rules, const char *name, uint16_t port);
const struct wire_rule *wire_find_address(
	const struct wire_rules *rules, const uint8_t address[static 16], uint16_t port);

/* --- decisions --- */

enum wire_decision_kind {
	WIRE_NET_ALLOWED,
	WIRE_NET_DENIED,
	WIRE_NET_FAILED, /* allowed, but it could not be reached */
	WIRE_NAME_DENIED,
	WIRE_PUBLISHED,
	WIRE_DECISION_KIND_COUNT,
};

extern const char *const wire_decision_names[WIRE_DECISION_KIND_COUNT];

/* The reason of a decision. wire_gate.c has a word and a sentence for each. */
enum wire_reason {
	WIRE_BECAUSE_ALLOWED,
	WIRE_BECAUSE_NAME,         /* the name is not in network.allow */
	WIRE_BECAUSE_PORT,         /* the name is, but not with this port */
	WIRE_BECAUSE_ADDRESS,      /* the client used an address instead of an allowed name */
	WIRE_BECAUSE_NO_NETWORK,   /* the run has no network */
	WIRE_BECAUSE_ODD_NAME,     /* not a valid host name */
	WIRE_BECAUSE_MANY_NAMES,   /* the run has asked for too many names */
	WIRE_BECAUSE_UDP,          /* only TCP is allowed */
	WIRE_BECAUSE_NOT_TLS,      /* the port is declared as tls … */
	WIRE_BECAUSE_NO_SNI,       /* … and the hello names no server */
	WIRE_BECAUSE_OTHER_SNI,    /* … or another: `other` */
	WIRE_BECAUSE_NOT_HTTP,     /* the port is declared as http … */
	WIRE_BECAUSE_NO_HOST,      /* … and a request names no host */
	WIRE_BECAUSE_OTHER_HOST,   /* … or another: `other` */
	WIRE_BECAUSE_BAD_HTTP,     /* … or can be parsed in two ways */
	WIRE_BECAUSE_URGENT,       /* the client sent TCP urgent data */
	WIRE_BECAUSE_SILENT,       /* the client sent nothing before the timeout */
	WIRE_BECAUSE_MANY,         /* too many connections at once */
	WIRE_BECAUSE_RESERVED,     /* the name resolves to `other`, which is not public */
	WIRE_BECAUSE_OWN_ADDRESS,  /* the name resolves to `other`, which is the host itself */
	WIRE_BECAUSE_UNKNOWN_NAME, /* failed: the name does not exist */
	WIRE_BECAUSE_RESOLVER,     /* failed: the host's name server did not answer */
	WIRE_BECAUSE_UNREACHABLE,  /* failed: `other` says why */
	WIRE_BECAUSE_NO_SECRET,    /* of secrets: none is called `other` */
	WIRE_BECAUSE_NO_VAULT,     /* failed: the vault has exited */
	WIRE_BECAUSE_UNTRUSTED,    /* failed: the host's certificate; `other` says why */
	WIRE_BECAUSE_NO_TLS,       /* failed: the handshake; `other` says why */
	WIRE_BECAUSE_BAD_ANSWER,   /* failed: the host's answer; `other` says what is wrong */
	WIRE_BECAUSE_ECHO,         /* the host sent the key back: `other` says where */
	WIRE_REASON_COUNT,
};

/* One word each, for programs; they never change. */
extern const char *const wire_reason_names[WIRE_REASON_COUNT];

/* A decision, and how often it was made. */
struct wire_decision {
	uint8_t kind, reason, protocol;
	uint16_t port;
	char name[WIRE_NAME_SIZE];     /* a name or an address, as the cage asked; printable */
	char other[WIRE_NAME_SIZE];    /* detail of the reason; printable */
	char secret[WIRE_SECRET_SIZE]; /* the secret that was used, or "" */
	uint64_t times;
	uint64_t bytes_out, bytes_in; /* of allowed connections, seen from the cage */
};

#define WIRE_WHERE_SIZE (WIRE_NAME_SIZE + 16)

/* Prints example.org:443 or [2001:db8::1]:443; without the port if that is 0. */
void wire_print_where(const char *name, uint16_t port, char ret[static WIRE_WHERE_SIZE]);

/* Prints a decision as a sentence without a full stop, for the record, the log and the client. */
void wire_print_decision(const struct wire_decision *d, char *ret, size_t size);

/*
 * True if a decision from another process is valid, and its texts are printable and end with NUL.
 */
bool wire_is_decision(const struct wire_decision *d);

/* --- gate → keeper --- */

enum wire_gate_kind {
	WIRE_GATE_READY,   /* gate and dialer are confined and ready */
	WIRE_GATE_FAILED,  /* `err` says why; the gate exits */
	WIRE_GATE_DECIDED, /* row `row` is `decision` now: it is new, or its counts changed */
	WIRE_GATE_UNTOLD,  /* `row` decisions got no row */
	WIRE_GATE_END,     /* everything is sent, as the keeper asked it to end */
};

struct wire_gate_message {
	uint32_t kind, row;
	union {
		struct wire_decision decision;
		struct err err;
	};
};

#define WIRE_MAX_ROWS 512

/* --- gate → dialer, and back --- */

struct wire_call {
	uint32_t id; /* chosen by the gate, and sent back */
	uint16_t port;
	uint8_t has_address;
	uint8_t address[16];       /* with has_address … */
	char name[WIRE_NAME_SIZE]; /* … otherwise */
};

/* Comes with a connected socket if `reason` is WIRE_BECAUSE_ALLOWED. */
struct wire_called {
	uint32_t id;
	uint8_t kind, reason;       /* as in a decision */
	char other[WIRE_NAME_SIZE]; /* the address that was reached, or detail of the reason */
};

/*
 * The id of the dialer's first message, with kind WIRE_NET_ALLOWED. With another kind `other` says
 * what went wrong, and the dialer exits.
 */
#define WIRE_DIALER_READY 0xffffffffU

/* --- vault → dialer; the answer is a struct wire_called --- */

struct wire_vault_call {
	uint32_t id;     /* chosen by the vault, and sent back */
	uint32_t secret; /* index of the secret to connect for; WIRE_NO_SECRET: `id` is cancelled */
};

/* --- gate → vault: a connection comes with this --- */

struct wire_visit {
	uint32_t id; /* unused: a message must not be empty */
};

/* --- vault → gate --- */

enum wire_vault_kind {
	WIRE_VAULT_READY,   /* the vault is confined and has the keys */
	WIRE_VAULT_FAILED,  /* `err` says why; the vault exits */
	WIRE_VAULT_DECIDED, /* a decision about the host of `secret` */
	WIRE_VAULT_PASSED,  /* more bytes passed in the last allowed request of `secret` */
};

#define WIRE_NO_SECRET 0xffffffffU /* the decision is about no secret */

struct wire_vault_message {
	uint32_t kind, secret;
	uint8_t decided, reason; /* as in a decision */
	char other[WIRE_NAME_SIZE];
	uint64_t bytes_out, bytes_in;
	struct err err;
};
