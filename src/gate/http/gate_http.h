#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/wire_gate.h"

/*
 * Checks the requests of an HTTP/1 connection: each must name the host that the client connected
 * to, and be one that every server parses in the same way. Pure, and reads hostile bytes.
 *
 * Refuses what can be parsed in two ways: two lengths, a length and chunks, a coding other than
 * chunked, folded fields, fields without a name, spaces before a colon, bare LF or CR, NUL, a
 * target with another host than the Host field; also CONNECT, HTTP/2's preface, and an upgrade to
 * anything but websocket.
 *
 * Java's client offers `Upgrade: h2c` in every request. The offer is overwritten instead of
 * refused: the names of that field and of HTTP2-Settings become as many 'x', which no server knows.
 */

#define GATE_HTTP_MAX_HEAD 16384

enum gate_http_state {
	GATE_HTTP_HEAD,        /* a request line and fields */
	GATE_HTTP_LENGTH,      /* a body of `left` bytes */
	GATE_HTTP_CHUNK_SIZE,  /* the line before a chunk */
	GATE_HTTP_CHUNK_BYTES, /* `left` bytes of a chunk */
	GATE_HTTP_CHUNK_END,   /* the CR LF behind a chunk */
	GATE_HTTP_TRAILERS,    /* fields after the last chunk */
	GATE_HTTP_UPGRADE, /* a websocket was asked for: nothing passes until the server agrees */
	GATE_HTTP_OPAQUE,  /* the server has agreed: everything passes */
};

struct gate_http {
	enum gate_http_state state;
	const char *name; /* borrowed: the host that was connected to, lower case; "": any */
	uint16_t port;
	bool is_later;     /* a request has passed before */
	uint32_t looked;   /* bytes of an incomplete head that were searched for its end */
	uint32_t trailers; /* bytes of trailers that passed */
	uint64_t left;     /* bytes left of a body or a chunk */
};

/* Borrows `name`. With NULL or "" a request may name any host, but must name one. */
void gate_http_init(struct gate_http *h, const char *name, uint16_t port);

enum gate_http_verdict {
	GATE_HTTP_PASS, /* the first *ret_pass bytes may go on to the server (at least one) */
	GATE_HTTP_MORE, /* none may yet */
	GATE_HTTP_DENY, /* none ever: *ret_reason and `other` say why */
};

/*
 * Judges the n bytes that the client sent and that have not been passed on. A head passes only when
 * it is complete and valid, so the caller must buffer up to GATE_HTTP_MAX_HEAD bytes; with that
 * many the answer is never GATE_HTTP_MORE, except in GATE_HTTP_UPGRADE. The caller calls again for
 * the bytes behind those that passed. `other` is for the decision: the host that the request named,
 * or what is wrong, printable. Overwrites only bytes that pass, and never changes their number.
 */
enum gate_http_verdict gate_http_read(struct gate_http *h, uint8_t *bytes, size_t n,
	size_t *ret_pass, enum wire_reason *ret_reason, char other[static WIRE_NAME_SIZE]);

/*
 * The same for a caller that reads heads by itself (gate_http_parts.h): passes only the rest of the
 * body. GATE_HTTP_PASS with 0 bytes says that the body is complete.
 */
enum gate_http_verdict gate_http_read_body(struct gate_http *h, uint8_t *bytes, size_t n,
	size_t *ret_pass, enum wire_reason *ret_reason, char other[static WIRE_NAME_SIZE]);

/*
 * In GATE_HTTP_UPGRADE, reads the bytes of the server's answer that have come so far. Returns true
 * once it is known whether the server agrees, which takes at least twelve bytes; the state is then
 * GATE_HTTP_OPAQUE, or GATE_HTTP_HEAD again.
 */
bool gate_http_hear_server(struct gate_http *h, const uint8_t *bytes, size_t n);

/*
 * True if the first bytes can be the start of an HTTP/1 request, so that an HTTP error is useful.
 */
bool gate_http_is_request(const uint8_t *bytes, size_t n);

/* Writes an HTTP response with one sentence as its body. Returns its size, or 0 without room. */
size_t gate_http_write(unsigned status, const char *sentence, char *ret, size_t size);
