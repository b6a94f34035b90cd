#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/wire_gate.h"

/*
 * The requests of an HTTP/1 connection: each must name the host that was connected to, and be one
 * that every server reads in the same way. Pure, and reads hostile bytes.
 *
 * What can be read in two ways is refused: two lengths, a length beside chunks, a coding other than
 * chunked, folded or unnamed fields, spaces before a colon, bare LF or CR, NUL, a target of another
 * host than the Host field, CONNECT, HTTP/2's preface, an upgrade to anything but websocket.
 *
 * One offer is common and seldom taken up: Java's client has `Upgrade: h2c` in every request. It is
 * crossed out: the names of that field and of HTTP2-Settings become as many 'x', which no server
 * knows, and the request passes.
 */

#define GATE_HTTP_MAX_HEAD 16384

enum gate_http_state {
	GATE_HTTP_HEAD,        /* a request's line and fields */
	GATE_HTTP_LENGTH,      /* a body of `left` bytes */
	GATE_HTTP_CHUNK_SIZE,  /* the line before a chunk */
	GATE_HTTP_CHUNK_BYTES, /* `left` bytes of it */
	GATE_HTTP_CHUNK_END,   /* the line's end after them */
	GATE_HTTP_TRAILERS,    /* fields after the last chunk */
	GATE_HTTP_UPGRADE,     /* asked for a websocket: nothing passes until the server agreed */
	GATE_HTTP_OPAQUE,      /* it has: whatever comes passes */
};

struct gate_http {
	enum gate_http_state state;
	const char *name; /* borrowed: the host that was connected to, lower case; "": any */
	uint16_t port;
	bool is_later;     /* a request has passed before */
	uint32_t looked;   /* bytes of a head that is not whole which need no second look */
	uint32_t trailers; /* bytes of them that passed */
	uint64_t left;     /* of a body or a chunk */
};

/* `name` may be NULL, as "": then a request may name any host, and must name one. */
void gate_http_init(struct gate_http *h, const char *name, uint16_t port);

enum gate_http_verdict {
	GATE_HTTP_PASS, /* the first *ret_pass bytes may go on to the server (at least one) */
	GATE_HTTP_MORE, /* none may yet */
	GATE_HTTP_DENY, /* none ever: *ret_reason and `other` say why */
};

/*
 * Looks at the n bytes that the client sent and that have not gone on yet. A head goes on only when
 * it is whole and good, so the dialer keeps up to GATE_HTTP_MAX_HEAD bytes: with so many there is
 * always an answer, except in GATE_HTTP_UPGRADE. What passed may be followed by what is denied: the
 * dialer asks again about the rest. `other` is for the decision: the host that was named, or what
 * is wrong, printable. Only bytes that pass are written to, and their number stays.
 */
enum gate_http_verdict gate_http_read(struct gate_http *h, uint8_t *bytes, size_t n,
	size_t *ret_pass, enum wire_reason *ret_reason, char other[static WIRE_NAME_SIZE]);

/*
 * The same for who reads heads by itself (gate_http_parts.h): only what is left of the body passes,
 * and GATE_HTTP_PASS with no byte says that there is nothing left, as in GATE_HTTP_HEAD.
 */
enum gate_http_verdict gate_http_read_body(struct gate_http *h, uint8_t *bytes, size_t n,
	size_t *ret_pass, enum wire_reason *ret_reason, char other[static WIRE_NAME_SIZE]);

/*
 * In GATE_HTTP_UPGRADE: all that has come of the server's answer. True once it is known whether it
 * agreed; the state is then GATE_HTTP_OPAQUE, or GATE_HTTP_HEAD again. Twelve bytes and what
 * follows them are enough.
 */
bool gate_http_hear_server(struct gate_http *h, const uint8_t *bytes, size_t n);

/* Can what came first become an HTTP/1 request, so that an answer in HTTP would be understood? */
bool gate_http_is_request(const uint8_t *bytes, size_t n);

/* A whole response with one sentence as its body, for the eyes of who asked; its size. 0: no room.
 */
size_t gate_http_write(unsigned status, const char *sentence, char *ret, size_t size);
