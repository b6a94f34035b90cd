#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/wire_gate.h"

/*
 * The first thing a TLS client says. Pure, and reads hostile bytes: the hello may come in any
 * number of records and segments, and every length in it may lie.
 */

enum gate_tls {
	GATE_TLS_MORE,    /* so far it is a hello; read on */
	GATE_TLS_NAME,    /* whole, and names one server */
	GATE_TLS_NO_NAME, /* whole, and names none */
	GATE_TLS_OTHER,   /* not TLS: it cannot become a hello any more */
	GATE_TLS_BAD,     /* TLS, and not to be trusted: lengths that lie, two names, an odd name */
};

/* Whatever is longer, its records' heads included, is GATE_TLS_BAD: who reads needs no more room.
 */
#define GATE_TLS_MAX_HELLO 16384

/*
 * Looks at all that has come so far. With GATE_TLS_NAME, `name` is the server's in lower case,
 * without a trailing dot; otherwise it is "". What follows the hello does not matter.
 */
enum gate_tls gate_tls_read(const uint8_t *bytes, size_t n, char name[static WIRE_NAME_SIZE]);

/* An alert that a client shows, as bytes that can stand in place of the server's first ones. */
enum gate_tls_alert {
	GATE_TLS_ACCESS_DENIED = 49,
	GATE_TLS_INTERNAL_ERROR = 80,
	GATE_TLS_UNRECOGNIZED_NAME = 112,
};

#define GATE_TLS_ALERT_SIZE 7

void gate_tls_write_alert(enum gate_tls_alert alert, uint8_t ret[static GATE_TLS_ALERT_SIZE]);
