#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/wire_gate.h"

/*
 * Questions to a name server and its answers, as bytes. Pure: nothing here knows a name, a socket
 * or a rule. What is read comes from the cage and is hostile.
 */

#define GATE_DNS_MAX_QUERY 512 /* nothing longer is a question */
#define GATE_DNS_MAX_REPLY 512 /* every asker takes that much, with and without EDNS */

enum gate_dns_type {
	GATE_DNS_A = 1,
	GATE_DNS_AAAA = 28,
	GATE_DNS_SVCB = 64,
	GATE_DNS_HTTPS = 65,
};

enum gate_dns_code {
	GATE_DNS_OK = 0,
	GATE_DNS_FORMAT = 1, /* not a question that can be read */
	GATE_DNS_FAILED = 2,
	GATE_DNS_NO_NAME = 3,  /* clients give up at once, and do not ask again */
	GATE_DNS_NOT_HERE = 4, /* another kind of request */
	GATE_DNS_REFUSED = 5,
	GATE_DNS_BAD_VERSION = 16, /* of EDNS; only an asker that has options is told so */
};

struct gate_question {
	/*
	 * Lower case, no trailing dot, the root is ".". Any byte that no host's name has, and be it
	 * a dot within a label, is \ddd; cut where that gets too long. "" if it cannot be read.
	 */
	char name[WIRE_NAME_SIZE];
	bool is_host; /* nothing odd: letters, digits, - and _, no label with a - at an end */
	uint16_t type;
	bool has_options;     /* the asker understands EDNS, and so an explanation */
	size_t size;          /* of header and question, both repeated; or of the header alone */
	enum gate_dns_code r; /* GATE_DNS_OK, or what to answer whatever is asked */
};

/* False: no reply is due (too short, or itself a reply). Otherwise ret->r says if it can be read.
 */
bool gate_dns_read(const uint8_t *bytes, size_t n, struct gate_question *ret);

/* What to say. Without an address and with GATE_DNS_OK: the name exists and has none of that type.
 */
struct gate_answer {
	enum gate_dns_code code;
	const uint8_t *address; /* 4 bytes for A, 16 for AAAA; or NULL. Said with GATE_DNS_OK */
	uint32_t ttl;
	const char *why; /* for who understands it (RFC 8914), cut where it is too long; or NULL */
};

/* Writes the reply to the query that q was read from; its size. */
size_t gate_dns_write(const uint8_t *query, const struct gate_question *q,
	const struct gate_answer *a, uint8_t ret[static GATE_DNS_MAX_REPLY]);
