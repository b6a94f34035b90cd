#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/wire_gate.h"

/*
 * Hosts as clients write them, in one form each so that two can be compared. Pure, and reads
 * hostile bytes, which do not end with a NUL.
 */

/*
 * The name of a host: labels of letters, digits, - and _, in lower case in `ret`, without a
 * trailing dot. False: it is none. What ends in a number is none either: resolvers take that for an
 * address.
 */
bool gate_host_read_name(const char *text, size_t n, char ret[static WIRE_NAME_SIZE]);

/* Host and port, as in a Host field or a URL. */
struct gate_authority {
	char host[WIRE_NAME_SIZE]; /* a name as above, or an address as the system prints it */
	uint16_t port;             /* 0: not given */
};

/* HOST, HOST:PORT, [ADDRESS] or [ADDRESS]:PORT. False: it is none of these. */
bool gate_host_read_authority(const char *text, size_t n, struct gate_authority *ret);

/* Is `host`, as read above, this name, or this address in whatever spelling? */
bool gate_host_is(const char *host, const char *name);
