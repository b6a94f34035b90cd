#pragma once

#include <ares.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/dns/gate_address.h"
#include "gate/gate.h"

/*
 * Shared by the files of the dialer. Nobody else includes it.
 *
 * A call (a request to connect) has a slot in a table from when it is read until its answer is
 * sent; if all slots are taken, the gate has to wait. Only c-ares allocates memory, and the number
 * of lookups is limited.
 */

#define DIALER_MAX_CALLS     1024
#define DIALER_MAX_VAULTS    256 /* calls of the vault, one for each of its connections */
#define DIALER_MAX_LOOKUPS   1024
#define DIALER_MAX_ADDRESSES 8 /* of a name, in each family */
#define DIALER_MAX_ATTEMPTS  8 /* connections that are tried for one call */
#define DIALER_MAX_KNOWN     128
#define DIALER_MAX_FILES     8192

#define DIALER_SECOND_NS 1000000000ULL
#define DIALER_LIMIT_NS  (15 * DIALER_SECOND_NS)  /* timeout of a call */
#define DIALER_NEXT_NS   (DIALER_SECOND_NS / 4)   /* until the next address is tried too */
#define DIALER_KNOWN_NS  (300 * DIALER_SECOND_NS) /* the longest that a name is cached */

/* In the order in which they are tried. */
struct dialer_addresses {
	unsigned count;
	uint8_t items[2 * DIALER_MAX_ADDRESSES][16];
};

enum dialer_state {
	DIALER_FREE,
	DIALER_NAMING,     /* its name is being looked up */
	DIALER_CONNECTING, /* attempts are under way */
	DIALER_ANSWERED,   /* `answer` is not sent yet */
};

struct dialer_attempt {
	int fd;       /* -1: none */
	uint32_t tag; /* tells a late event of an older attempt */
	unsigned address;
};

/* The process that a call comes from. */
enum dialer_asker {
	DIALER_FOR_GATE,
	DIALER_FOR_VAULT,
	DIALER_ASKERS,
};

struct dialer_channel {
	int fd;            /* -1: there is none, or it has ended */
	uint32_t interest; /* epoll events */
	unsigned count;    /* its calls … */
	unsigned unsent;   /* … and those of them whose answer could not be sent yet */
};

struct dialer_call {
	enum dialer_state state;
	enum dialer_asker asker;
	struct wire_call asked;
	uint64_t deadline_ns, next_ns; /* of the call; when the next attempt starts */
	unsigned lookup;               /* the lookup that it waits for */
	bool is_host;                  /* a declared port of the host's own loopback */
	struct dialer_addresses to;
	unsigned next, tried;
	int failure;     /* errno of the last attempt that failed */
	uint8_t refusal; /* enum wire_reason of the first address that was refused; 0: none */
	uint8_t refused[16];
	struct dialer_attempt attempts[DIALER_MAX_ATTEMPTS];
	struct wire_called answer;
	int passed; /* the socket that is sent with the answer, or -1 */
};

/* A name that c-ares looks up, for all calls that wait for it. */
struct dialer_lookup {
	struct dialer *dialer; /* NULL: free */
	char name[WIRE_NAME_SIZE];
};

struct dialer_known {
	char name[WIRE_NAME_SIZE]; /* "": none */
	uint64_t until_ns;
	struct dialer_addresses addresses;
};

struct dialer {
	const struct wire_rules *rules;
	int epoll;
	uint64_t now_ns;
	uint32_t tag;
	struct dialer_channel channels[DIALER_ASKERS];
	unsigned count; /* calls in the table … */
	unsigned end;   /* … and the index behind the last of them */
	ares_channel names;
	struct dialer_call calls[DIALER_MAX_CALLS];
	struct dialer_lookup lookups[DIALER_MAX_LOOKUPS];
	struct dialer_known known[DIALER_MAX_KNOWN];
};

/*
 * The source of an event: the upper half of its epoll data; the lower half is a descriptor or tag.
 */
enum dialer_source {
	DIALER_FROM_GATE, /* the first two are in the order of enum dialer_asker */
	DIALER_FROM_VAULT,
	DIALER_FROM_NAMES,
	DIALER_FROM_ATTEMPT, /* plus the call's index times DIALER_MAX_ATTEMPTS plus the attempt's
			      */
};

/* --- dialer.c --- */

/* Ends a call: sends the answer now, or when the asker's socket has room. Takes ownership of
 * `passed`. */
void dialer_answer(struct dialer *c, struct dialer_call *call, enum wire_decision_kind kind,
	enum wire_reason reason, const char *other, int passed);

/* Tries the addresses of the call as RFC 8305 says: each soon after the one before. */
void dialer_connect(struct dialer *c, struct dialer_call *call);

/* --- dialer_names.c --- */

/* Reads the resolver's configuration. */
int dialer_names_open(struct dialer *c, struct err *e);

/* Looks up the call's name, and calls dialer_connect when its addresses are known. */
void dialer_find(struct dialer *c, struct dialer_call *call);

/* Handles an event of a resolver socket, or with `fd` -1 a timeout. */
void dialer_hear_names(struct dialer *c, int fd, uint32_t events);

/* Returns nanoseconds until the resolver's next timeout, at most `max`. */
uint64_t dialer_names_wait(const struct dialer *c, uint64_t max);
