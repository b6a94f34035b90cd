#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/http/gate_http.h"
#include "gate/http/gate_http_parts.h"

/*
 * HTTP/1.1 between a cage and the host of a secret: adds the key to requests and removes it from
 * answers. Pure. Both sides are hostile.
 *
 * Requests are read as in gate_http.h, which refuses what can be parsed in two ways. Answers are
 * parsed and written anew, so that the client reads bawn's framing and not the server's.
 */

/* A secret. Borrowed by everything below. */
struct vault_secret {
	const char *name, *host;
	uint16_t port;
	const char *header, *scheme; /* "": none */
	struct gate_span key;
	uint64_t sum, leaving; /* set by vault_prepare_key */
};

/* Answers are not searched for a shorter key: it would be found everywhere. */
#define VAULT_MIN_SOUGHT 8

/* Text in a buffer of fixed size. A failure sticks. */
struct vault_text {
	char *at;
	size_t n, max;
	bool failed;
};

enum vault_verdict {
	VAULT_MORE, /* incomplete */
	VAULT_GOOD,
	VAULT_BAD,
};

/* Why a request or an answer is refused, for the operator and for the client. */
struct vault_refusal {
	enum wire_reason reason;
	unsigned status;
	char other[WIRE_NAME_SIZE]; /* printable */
};

/* --- requests --- */

struct vault_request {
	uint32_t secret; /* index */
	size_t size;     /* of the head that was read */
	bool is_head;    /* the method is HEAD: the answer has no body */
	bool closes;     /* the client sends no other request on this connection */
};

/* The largest head with its key. */
#define VAULT_MAX_REQUEST (GATE_HTTP_MAX_HEAD + WIRE_MAX_KEY + 4 * WIRE_NAME_SIZE)

/*
 * Reads the head of a client's request for http://bawn-host/NAME/… and writes the head for the
 * secret's host to `out`. On VAULT_GOOD, gate_http_read_body with `h` reads what follows it.
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
	bool is_interim; /* another answer follows (1xx) */
	bool closes;     /* the server takes no other request on this connection */
	bool has_echo;   /* the key was in it, and was overwritten */
	enum vault_framing framing;
	uint64_t length;
};

/*
 * Reads the head of the server's answer and writes the head for the client to `out`, which must
 * have room for VAULT_MAX_ANSWER + 256 bytes. With `closes` it tells the client that the connection
 * ends.
 */
enum vault_verdict vault_read_answer(struct gate_span in, const struct vault_secret *secret,
	bool is_head, bool closes, struct vault_answer *ret, struct vault_text *out,
	struct vault_refusal *no);

/* --- keys --- */

/* Sets the sums that the search for the key needs. */
void vault_prepare_key(struct vault_secret *s);

/* The state of the search for a key in bytes that come in pieces (rolling hash). */
struct vault_seek {
	uint64_t sum; /* of the last `run` bytes */
	size_t run;   /* bytes in a row that can be in a key, at most its length */
};

/* --- bodies --- */

/*
 * A body on its way to the client, which is searched for the key. The last bytes that have come are
 * buffered if they can be the beginning of any key. Buffering only beginnings of this key would
 * leak: a client that chooses what the server sends could see how much of the key it has guessed.
 */
struct vault_body {
	enum vault_framing framing;
	const struct vault_secret *secret;
	uint64_t left;         /* with VAULT_LENGTH */
	struct gate_http http; /* with VAULT_CHUNKED */
	struct vault_seek seek;
	bool is_whole;
	size_t held_count;
	char held[WIRE_MAX_KEY];
};

void vault_body_init(
	struct vault_body *b, const struct vault_answer *answer, const struct vault_secret *secret);

/*
 * Passes bytes of the body to `out`, as many as fit, and sets *ret_used to how many of `in` it
 * took. VAULT_GOOD: the body is complete. VAULT_MORE: it goes on. VAULT_BAD: it is malformed, or
 * has the key in it.
 */
enum vault_verdict vault_body_take(struct vault_body *b, struct gate_span in, size_t *ret_used,
	struct vault_text *out, struct vault_refusal *no);

/* Ends the body when the server has closed the connection. VAULT_BAD: in the middle of the body. */
enum vault_verdict vault_body_end(
	struct vault_body *b, struct vault_text *out, struct vault_refusal *no);
