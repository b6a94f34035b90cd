#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/wire_gate.h"

/*
 * Reads the names of hosts, which come from the cage and are hostile, in a normal form that can be
 * compared. Pure. The texts need no NUL.
 */

/*
 * Reads a host name: labels of letters, digits, - and _. Sets `ret` in lower case without trailing
 * dot. False for other texts, and for a name that ends in a number, which resolvers take for an
 * address.
 */
bool gate_host_read_name(const char *text, size_t n, char ret[static WIRE_NAME_SIZE]);

/* Host and port, as in a Host field or a URL. */
struct gate_authority {
	char host[WIRE_NAME_SIZE]; /* a name in normal form, or an address as inet_ntop prints it */
	uint16_t port;             /* 0: not given */
};

/* Reads HOST, HOST:PORT, [ADDRESS] or [ADDRESS]:PORT. False for other texts. */
bool gate_host_read_authority(const char *text, size_t n, struct gate_authority *ret);

/* True if `host`, in normal form, is this name, or this address in any spelling. */
bool gate_host_is(const char *host, const char *name);
