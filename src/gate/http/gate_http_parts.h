#pragma once

#include "gate/http/gate_http.h"

/*
 * Readers for the parts of a connection, for gate_http.c and the vault. Each judges the bytes that
 * have come and answers as gate_http_read does. They decide line by line, in order, so that the
 * answer does not depend on how the bytes were divided into packets.
 */

struct gate_span {
	const char *at; /* borrowed from the connection's buffer */
	size_t n;
};

/* Why something is refused. `what` is a sentence of ours, or a text that the client sent. */
struct gate_why {
	enum wire_reason reason;
	struct gate_span what;
};

/* True if the span is `lower`, ignoring case. */
bool gate_span_is(struct gate_span s, const char *lower);

/* Returns the span without blanks and tabs at both ends. */
struct gate_span gate_span_trim(struct gate_span s);

/*
 * Reads the first line, of at most `max` bytes with its CR LF, which *ret does not have. Refuses a
 * line that ends otherwise or has a control character other than a tab.
 */
enum gate_http_verdict gate_http_read_line(struct gate_span in, size_t max, const char *too_long,
	struct gate_span *ret, struct gate_why *why);

/* The size of a line with its CR LF. */
#define GATE_HTTP_LINE_SIZE(line) ((line).n + 2)

/* NAME: VALUE */
struct gate_field {
	struct gate_span name, value;
};

bool gate_http_read_field(struct gate_span line, struct gate_field *ret, struct gate_why *why);

/* How many bytes pass, and the parts of them to overwrite before; a part of size 0 is none. */
struct gate_pass {
	size_t n;
	struct gate_part {
		size_t at, n;
	} upgrade, settings;
};

/* The body that an allowed head announces. */
struct gate_body {
	enum gate_http_state next;
	uint64_t length;       /* of GATE_HTTP_LENGTH */
	struct gate_pass pass; /* of the head itself */
};

enum gate_http_verdict gate_http_read_head(const struct gate_http *h, struct gate_span in,
	struct gate_body *ret, struct gate_why *why);

/* Each reads one line in the state of its name. With GATE_HTTP_PASS it has set the next state. */
enum gate_http_verdict gate_http_read_chunk_size(
	struct gate_http *h, struct gate_span in, struct gate_pass *ret, struct gate_why *why);
enum gate_http_verdict gate_http_read_chunk_end(
	struct gate_http *h, struct gate_span in, struct gate_pass *ret, struct gate_why *why);
enum gate_http_verdict gate_http_read_trailer(
	struct gate_http *h, struct gate_span in, struct gate_pass *ret, struct gate_why *why);
