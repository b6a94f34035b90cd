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
 * A call is a place in a table from the moment it is read to the moment its answer is sent; when
 * all are taken, the gate has to wait. Only c-ares takes memory, for as many lookups as there are
 * places for them.
 */

#define CALLER_MAX_CALLS     1024
#define CALLER_MAX_VAULTS    256 /* of these: the vault's, which are as many as it has connections */
#define CALLER_MAX_LOOKUPS   1024
#define CALLER_MAX_ADDRESSES 8 /* of each family that a name has */
#define CALLER_MAX_ATTEMPTS  8 /* to connect, for one call */
#define CALLER_MAX_KNOWN     128
#define CALLER_MAX_FILES     8192

#define CALLER_SECOND_NS 1000000000ULL
#define CALLER_LIMIT_NS  (15 * CALLER_SECOND_NS)  /* a call, from its first to its last */
#define CALLER_NEXT_NS   (CALLER_SECOND_NS / 4)   /* until the next address is tried as well */
#define CALLER_KNOWN_NS  (300 * CALLER_SECOND_NS) /* and no name is remembered for longer */

/* In the order in which they are tried. */
struct dialer_addresses {
	unsigned count;
	uint8_t items[2 * CALLER_MAX_ADDRESSES][16];
};

enum dialer_state {
	CALLER_FREE,
	CALLER_NAMING,     /* its name is being looked up */
	CALLER_CONNECTING, /* attempts are under way */
	CALLER_ANSWERED,   /* `answer` is not sent yet */
};

struct dialer_attempt {
	int fd;       /* -1: none */
	uint32_t tag; /* what comes late is for another */
	unsigned address;
};

/* The process that a call comes from. */
enum dialer_asker {
	CALLER_FOR_GATE,
	CALLER_FOR_VAULT,
	CALLER_ASKERS,
};

struct dialer_channel {
	int fd;            /* -1: there is none, or it has ended */
	uint32_t interest; /* the events that are waited for */
	unsigned count;    /* of its calls … */
	unsigned unsent;   /* … of which these only wait for it to listen */
};

struct dialer_call {
	enum dialer_state state;
	enum dialer_asker asker;
	struct wire_call asked;
	uint64_t deadline_ns, next_ns; /* the end; the next attempt */
	unsigned lookup;               /* that it waits for */
	bool is_host;                  /* a declared port of the host's own loopback */
	struct dialer_addresses to;
	unsigned next, tried;
	int failure;     /* errno of the last attempt that failed */
	uint8_t refusal; /* enum wire_reason of the first address that was refused; 0: none */
	uint8_t refused[16];
	struct dialer_attempt attempts[CALLER_MAX_ATTEMPTS];
	struct wire_called answer;
	int passed; /* the socket that goes with it, or -1 */
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
	struct dialer_channel channels[CALLER_ASKERS];
	unsigned count; /* of calls … */
	unsigned end;   /* … of which none is from here on */
	ares_channel names;
	struct dialer_call calls[CALLER_MAX_CALLS];
	struct dialer_lookup lookups[CALLER_MAX_LOOKUPS];
	struct dialer_known known[CALLER_MAX_KNOWN];
};

/* Source of an event, in the upper half of its number; the lower half is a descriptor or a tag. */
enum dialer_source {
	CALLER_FROM_GATE, /* and the vault: by enum dialer_asker */
	CALLER_FROM_VAULT,
	CALLER_FROM_NAMES,
	CALLER_FROM_ATTEMPT, /* and those that follow: the call's index times the attempts' */
};

/* --- dialer.c --- */

/* The end of a call: the answer is sent now or as soon as who asked listens. Owns `passed`. */
void dialer_answer(struct dialer *c, struct dialer_call *call, enum wire_decision_kind kind,
	enum wire_reason reason, const char *other, int passed);

/* Tries the addresses of the call, as RFC 8305 wants it: the next one soon after the one before. */
void dialer_connect(struct dialer *c, struct dialer_call *call);

/* --- dialer_names.c --- */

/* Reads how the system looks up names. */
int dialer_names_open(struct dialer *c, struct err *e);

/* Finds the addresses of the call's name and goes on with dialer_connect, now or later. */
void dialer_find(struct dialer *c, struct dialer_call *call);

/* Something happened to one of the sockets of names (or to none, -1, and time passed). */
void dialer_hear_names(struct dialer *c, int fd, uint32_t events);

/* When names want to be heard again, in nanoseconds from now; `max` if that is sooner. */
uint64_t dialer_names_wait(const struct dialer *c, uint64_t max);
