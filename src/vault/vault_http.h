#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/http/gate_http.h"
#include "gate/http/gate_http_parts.h"

/*
 * HTTP/1.1 between a cage and the host of a secret: requests get the key, answers lose it. Pure,
 * and both sides are hostile.
 *
 * Requests are framed as gate_http.h says, so that what can be read in two ways is refused; answers
 * are taken apart and put together again, so that the client reads bawn's framing and not the
 * server's.
 */

/* A secret. Borrowed by everything below. */
struct vault_secret {
	const char *name, *host;
	uint16_t port;
	const char *header, *scheme; /* "": none */
	struct gate_span key;
	uint64_t sum, leaving; /* of vault_prepare_key */
};

/* A key shorter than this is not looked for: it would be found everywhere. */
#define VAULT_MIN_SOUGHT 8

/* Text of a fixed room; a failure sticks. */
struct vault_text {
	char *at;
	size_t n, max;
	bool failed;
};

enum vault_verdict {
	VAULT_MORE, /* it is not whole */
	VAULT_GOOD,
	VAULT_BAD,
};

/* Why not, for the operator and for who asked. */
struct vault_refusal {
	enum wire_reason reason;
	unsigned status;
	char other[WIRE_NAME_SIZE]; /* printable */
};

/* --- requests --- */

struct vault_request {
	uint32_t secret; /* index */
	size_t size;     /* of the head that was read */
	bool is_head;    /* the answer to it has no body */
	bool closes;     /* the client wants no other one on this connection */
};

/* The room that a head needs at most, with its key. */
#define VAULT_MAX_REQUEST (GATE_HTTP_MAX_HEAD + WIRE_MAX_KEY + 4 * WIRE_NAME_SIZE)

/*
 * One head that a client sent, for http://bawn-host/NAME/…, and as it goes on to the host. On
 * VAULT_GOOD `h` knows what follows it: see gate_http_read_body.
 */
enum vault_verdict vault_read_request(struct gate_http *h, struct gate_span in,
	const struct vault_secret *secrets, uint32_t count, struct vault_request *ret,
	struct vault_text *out, struct vault_refusal *no);

/* --- answers --- */

#define VAULT_MAX_ANSWER 32768

enum vault_framing {
	VAULT_NO_BODY,
	VAULT_LENGTH,
	VAULT_CHUNKED,
	VAULT_UNTIL_CLOSE,
};

struct vault_answer {
	size_t size; /* of the head that was read */
	unsigned status;
	bool is_interim; /* another one follows (1xx) */
	bool closes;     /* the server takes no other request on this connection */
	bool has_echo;   /* the key was in it, and is crossed out */
	enum vault_framing framing;
	uint64_t length;
};

/*
 * One head that the server sent, and as it goes on to the client, who is told that the connection
 * ends if `closes`. `out` has room for VAULT_MAX_ANSWER and 256 bytes.
 */
enum vault_verdict vault_read_answer(struct gate_span in, const struct vault_secret *secret,
	bool is_head, bool closes, struct vault_answer *ret, struct vault_text *out,
	struct vault_refusal *no);

/* --- keys --- */

/* Fills in what the key is sought by. */
void vault_prepare_key(struct vault_secret *s);

/* The search for a key, as far as bytes have come. */
struct vault_seek {
	uint64_t sum; /* of the last `run` bytes */
	size_t run;   /* so many in a row may be the key's; not more than it has */
};

/* --- bodies --- */

/*
 * A body on its way to the client, in which the key is looked for. Bytes at the end of what has
 * come are held back if they may be the beginning of some key, whichever that is: a client that
 * chooses what the server sends would else see from what is missing how much of the key it has
 * guessed.
 */
struct vault_body {
	enum vault_framing framing;
	const struct vault_secret *secret;
	uint64_t left;         /* of VAULT_LENGTH */
	struct gate_http http; /* of VAULT_CHUNKED */
	struct vault_seek seek;
	bool is_whole;
	size_t held_count;
	char held[WIRE_MAX_KEY];
};

void vault_body_init(
	struct vault_body *b, const struct vault_answer *answer, const struct vault_secret *secret);

/*
 * Takes what fits into `out`; *ret_used bytes of `in` were taken. VAULT_GOOD: it is whole.
 * VAULT_MORE: it goes on. VAULT_BAD: it is none, or the key is in it.
 */
enum vault_verdict vault_body_take(struct vault_body *b, struct gate_span in, size_t *ret_used,
	struct vault_text *out, struct vault_refusal *no);

/* The server has ended. VAULT_BAD: in the middle of it. */
enum vault_verdict vault_body_end(
	struct vault_body *b, struct vault_text *out, struct vault_refusal *no);
