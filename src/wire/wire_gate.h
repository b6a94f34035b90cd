#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * What keeper, gate and dialer of one run tell each other about the network. Like every message
 * here: of a fixed size, without pointers, and believed only after a look.
 *
 *   keeper ─ rules (sealed memory) ─► gate ─ "reach this" ─► dialer
 *   keeper ◄─ decisions ───────────── gate ◄─ a socket ───── dialer
 *
 * With secrets there is a third, the vault, and only it is told the keys:
 *
 *   keeper ─ keys ─► vault ◄─ the cage's connections ─ gate
 *                    vault ─ "reach this one's host" ─► dialer, and a socket back
 *
 * The gate speaks with the cage and sits in its network, from which nothing leads out. The dialer
 * speaks with the world and holds every request to the same rules once more.
 */

#define WIRE_NAME_SIZE 256 /* a host name, and what ends it */
#define WIRE_HOST_NAME "bawn-host"

#define WIRE_VAULT_PORT  80 /* of bawn-host: http://bawn-host/SECRET/… */
#define WIRE_SECRET_SIZE 64 /* what a secret is called, and what ends it */

enum wire_protocol {
	WIRE_TLS,
	WIRE_HTTP,
	WIRE_TCP,
	WIRE_UDP, /* never allowed, and told apart where it is denied */
};

extern const char *const wire_protocol_names[];

/* One destination that is allowed. */
struct wire_rule {
	char name[WIRE_NAME_SIZE]; /* lower case, without "*." and trailing dot; "": a network */
	uint8_t address[16];       /* of the network; IPv4 as ::ffff:a.b.c.d */
	uint8_t prefix;            /* in bits of these */
	uint8_t protocol;          /* enum wire_protocol */
	bool is_wildcard;          /* what is below the name, and not the name itself */
	bool is_host;              /* bawn-host: the host's own loopback */
	bool is_vault;             /* bawn-host: where secrets are used */
	uint16_t port;
};

/* A port of the host that leads into the cage; its socket is handed over with it. */
struct wire_publish {
	char address[48]; /* of the host, for people */
	uint16_t host_port, cage_port;
};

/* A secret as all but the vault know it. */
struct wire_secret {
	char name[WIRE_SECRET_SIZE];
	char host[WIRE_NAME_SIZE]; /* lower case */
	uint16_t port;
};

#define WIRE_MAX_RULES   65536
#define WIRE_MAX_PUBLISH 64
#define WIRE_MAX_SECRETS 32

/* All that gate and dialer are told, in memory that nobody can write to any more. */
struct wire_rules {
	uint32_t rule_count, publish_count, secret_count;
	uint32_t uid, gid;  /* who to be, for root; otherwise one's own */
	bool is_landlocked; /* the plan wants that layer: without it there is no gate */
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

/* Written once to a file without a name; who has read it empties it. */
struct wire_keys {
	uint32_t count;
	struct wire_key keys[WIRE_MAX_SECRETS];
};

/* --- matching: the one meaning of a rule --- */

/*
 * The rule for a name, or an address, at a port: the name itself before "*.", the longer before the
 * shorter. NULL: it is not allowed. With port 0, any rule for the name.
 */
const struct wire_rule *wire_find_name(
	const struct wire_rules *rules, const char *name, uint16_t port);
const struct wire_rule *wire_find_address(
	const struct wire_rules *rules, const uint8_t address[static 16], uint16_t port);

/* --- decisions --- */

enum wire_decision_kind {
	WIRE_NET_ALLOWED,
	WIRE_NET_DENIED,
	WIRE_NET_FAILED, /* allowed, and could not be reached */
	WIRE_NAME_DENIED,
	WIRE_PUBLISHED,
	WIRE_DECISION_KIND_COUNT,
};

extern const char *const wire_decision_names[WIRE_DECISION_KIND_COUNT];

/* Why. wire_gate.c has the words and the sentences. */
enum wire_reason {
	WIRE_BECAUSE_ALLOWED,
	WIRE_BECAUSE_NAME,         /* it is not in network.allow */
	WIRE_BECAUSE_PORT,         /* the name is, and not at this port */
	WIRE_BECAUSE_ADDRESS,      /* an address, not by a name that is allowed */
	WIRE_BECAUSE_NO_NETWORK,   /* the run has none */
	WIRE_BECAUSE_ODD_NAME,     /* no host is called that */
	WIRE_BECAUSE_MANY_NAMES,   /* more names than a run may ask for */
	WIRE_BECAUSE_UDP,          /* only TCP is passed on */
	WIRE_BECAUSE_NOT_TLS,      /* the port is declared as tls … */
	WIRE_BECAUSE_NO_SNI,       /* … and the hello names no server */
	WIRE_BECAUSE_OTHER_SNI,    /* … or another: `other` */
	WIRE_BECAUSE_NOT_HTTP,     /* the port is declared as http … */
	WIRE_BECAUSE_NO_HOST,      /* … and a request names no host */
	WIRE_BECAUSE_OTHER_HOST,   /* … or another: `other` */
	WIRE_BECAUSE_BAD_HTTP,     /* … or can be read in two ways */
	WIRE_BECAUSE_URGENT,       /* something was sent out of turn (TCP's urgent data) */
	WIRE_BECAUSE_SILENT,       /* nothing was said in time */
	WIRE_BECAUSE_MANY,         /* too many connections at once */
	WIRE_BECAUSE_RESERVED,     /* the name leads to `other`, which is not public */
	WIRE_BECAUSE_OWN_ADDRESS,  /* the name leads to `other`, which is the host itself */
	WIRE_BECAUSE_UNKNOWN_NAME, /* failed: there is no such name */
	WIRE_BECAUSE_RESOLVER,     /* failed: the host's name server did not answer */
	WIRE_BECAUSE_UNREACHABLE,  /* failed: `other` says why */
	WIRE_BECAUSE_NO_SECRET,    /* of secrets: none is called `other` */
	WIRE_BECAUSE_NO_VAULT,     /* failed: who holds the keys has ended */
	WIRE_BECAUSE_UNTRUSTED,    /* failed: the host's certificate; `other` says why */
	WIRE_BECAUSE_NO_TLS,       /* failed: the handshake; `other` says why */
	WIRE_BECAUSE_BAD_ANSWER,   /* failed: the host's answer; `other` says what is wrong */
	WIRE_BECAUSE_ECHO,         /* the host sent the key back: `other` says where */
	WIRE_REASON_COUNT,
};

/* One word each, for programs: they stay what they are. */
extern const char *const wire_reason_names[WIRE_REASON_COUNT];

/* A decision, and how often it was made. */
struct wire_decision {
	uint8_t kind, reason, protocol;
	uint16_t port;
	char name[WIRE_NAME_SIZE];     /* as asked for: a name or an address; printable */
	char other[WIRE_NAME_SIZE];    /* what the reason is about; printable */
	char secret[WIRE_SECRET_SIZE]; /* by which it was reached, or "" */
	uint64_t times;
	uint64_t bytes_out, bytes_in; /* of what was allowed, as the cage sees it */
};

#define WIRE_WHERE_SIZE (WIRE_NAME_SIZE + 16)

/* example.org:443, [2001:db8::1]:443; without the port where that is 0. */
void wire_print_where(const char *name, uint16_t port, char ret[static WIRE_WHERE_SIZE]);

/* One sentence without a full stop, for the record, for logs and for a client that can show it. */
void wire_print_decision(const struct wire_decision *d, char *ret, size_t size);

/* Is this message of another process one of the above, with texts that end and can be printed? */
bool wire_is_decision(const struct wire_decision *d);

/* --- gate → keeper --- */

enum wire_gate_kind {
	WIRE_GATE_READY,   /* both stand and are confined */
	WIRE_GATE_FAILED,  /* `err` says why there will be no network; the end */
	WIRE_GATE_DECIDED, /* row `row` is now this; a new one or another count */
	WIRE_GATE_UNTOLD,  /* `row` decisions had no room */
	WIRE_GATE_END,     /* asked to end: all is told */
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
	uint32_t id; /* the gate's, comes back */
	uint16_t port;
	uint8_t has_address;
	uint8_t address[16];       /* with has_address … */
	char name[WIRE_NAME_SIZE]; /* … otherwise */
};

/* Comes with a connected socket if `reason` is WIRE_BECAUSE_ALLOWED. */
struct wire_called {
	uint32_t id;
	uint8_t kind, reason;       /* as of a decision */
	char other[WIRE_NAME_SIZE]; /* the address that was reached, or what the reason is about */
};

#define WIRE_CALLER_READY 0xffffffffU /* the id of the dialer's first message … */
/* … with kind WIRE_NET_ALLOWED; otherwise `other` says what went wrong, and that is the end. */

/* --- vault → dialer: the same, but for what it wants --- */

struct wire_vault_call {
	uint32_t id;     /* the vault's, comes back */
	uint32_t secret; /* index: whose host; or WIRE_NO_SECRET: nobody waits for `id` any more */
};

/* --- gate → vault: a connection comes with this --- */

struct wire_visit {
	uint32_t id; /* for nothing but its size */
};

/* --- vault → gate --- */

enum wire_vault_kind {
	WIRE_VAULT_READY,   /* it is confined, and has the keys */
	WIRE_VAULT_FAILED,  /* `err` says why not; the end */
	WIRE_VAULT_DECIDED, /* `decision`, without the name of a host: that is the secret's */
	WIRE_VAULT_PASSED,  /* so many bytes more, of the last that was allowed of `secret` */
};

#define WIRE_NO_SECRET 0xffffffffU /* what is decided is about none of them */

struct wire_vault_message {
	uint32_t kind, secret;
	uint8_t decided, reason; /* as of a decision */
	char other[WIRE_NAME_SIZE];
	uint64_t bytes_out, bytes_in;
	struct err err;
};
