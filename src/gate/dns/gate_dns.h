#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/wire_gate.h"

/*
 * Reads DNS queries, which come from the cage and are hostile, and writes replies. Pure: knows no
 * names, sockets or rules.
 */

#define GATE_DNS_MAX_QUERY 512
#define GATE_DNS_MAX_REPLY 512 /* every client accepts that much, with and without EDNS */

enum gate_dns_type {
	GATE_DNS_A = 1,
	GATE_DNS_AAAA = 28,
	GATE_DNS_SVCB = 64,
	GATE_DNS_HTTPS = 65,
};

enum gate_dns_code {
	GATE_DNS_OK = 0,
	GATE_DNS_FORMAT = 1, /* FORMERR: malformed query */
	GATE_DNS_FAILED = 2,
	GATE_DNS_NO_NAME = 3,  /* NXDOMAIN: clients give up at once and do not ask again */
	GATE_DNS_NOT_HERE = 4, /* NOTIMP: another kind of request */
	GATE_DNS_REFUSED = 5,
	GATE_DNS_BAD_VERSION = 16, /* BADVERS, for clients that use EDNS */
};

struct gate_question {
	/*
	 * Lower case, without trailing dot; the root is ".". Bytes that no host name has, also a
	 * dot within a label, become \ddd; the text is cut if it is too long. "" if it is
	 * malformed.
	 */
	char name[WIRE_NAME_SIZE];
	bool is_host; /* only letters, digits, - and _, and no label begins or ends with - */
	uint16_t type;
	bool has_options;     /* the client uses EDNS, and can get an explanation */
	size_t size;          /* of header and question, which a reply repeats; or of the header */
	enum gate_dns_code r; /* GATE_DNS_OK, or the code to answer with in any case */
};

/* Reads a query. False if no reply must be sent: too short, or itself a reply. */
bool gate_dns_read(const uint8_t *bytes, size_t n, struct gate_question *ret);

/* A reply. GATE_DNS_OK without an address: the name exists and has no record of that type. */
struct gate_answer {
	enum gate_dns_code code;
	const uint8_t *address; /* with GATE_DNS_OK: 4 bytes for A, 16 for AAAA; or NULL */
	uint32_t ttl;
	const char *why; /* an explanation for EDNS clients (RFC 8914), cut if too long; or NULL */
};

/* Writes the reply to the query that `q` was read from. Returns its size. */
size_t gate_dns_write(const uint8_t *query, const struct gate_question *q,
	const struct gate_answer *a, uint8_t ret[static GATE_DNS_MAX_REPLY]);
