#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/wire_gate.h"

/*
 * Reads the server name of a TLS ClientHello. Pure, and reads hostile bytes: the hello may come in
 * any number of records and segments, and every length in it may lie.
 */

enum gate_tls {
	GATE_TLS_MORE,    /* an incomplete hello so far: read more */
	GATE_TLS_NAME,    /* a complete hello that names one server */
	GATE_TLS_NO_NAME, /* a complete hello that names none */
	GATE_TLS_OTHER,   /* not TLS */
	GATE_TLS_BAD,     /* TLS, but malformed: wrong lengths, two names, an invalid name */
};

/* A longer hello, including the headers of its records, is GATE_TLS_BAD. */
#define GATE_TLS_MAX_HELLO 16384

/*
 * Reads all bytes that have come so far. With GATE_TLS_NAME, `name` is the server's in lower case
 * without trailing dot; otherwise it is "". Ignores what follows the hello.
 */
enum gate_tls gate_tls_read(const uint8_t *bytes, size_t n, char name[static WIRE_NAME_SIZE]);

/* Alerts that clients show to people. */
enum gate_tls_alert {
	GATE_TLS_ACCESS_DENIED = 49,
	GATE_TLS_INTERNAL_ERROR = 80,
	GATE_TLS_UNRECOGNIZED_NAME = 112,
};

#define GATE_TLS_ALERT_SIZE 7

/* Writes a fatal alert, which is sent in place of the server's first bytes. */
void gate_tls_write_alert(enum gate_tls_alert alert, uint8_t ret[static GATE_TLS_ALERT_SIZE]);
