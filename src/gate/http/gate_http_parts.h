#pragma once

#include "gate/http/gate_http.h"

/*
 * Shared by the readers of a connection's parts: gate_http.c and the vault. Each looks
 * at the bytes that are there and answers as gate_http_read does. They decide line by line, in
 * order: so the answer is the same however the bytes came.
 */

struct gate_span {
	const char *at; /* borrowed from the dialer's bytes */
	size_t n;
};

/* Why not. Either a sentence of ours, or what the client said. */
struct gate_why {
	enum wire_reason reason;
	struct gate_span what;
};

/* Case does not matter. */
bool gate_span_is(struct gate_span s, const char *lower);

struct gate_span gate_span_trim(struct gate_span s); /* blanks and tabs at both ends */

/*
 * The first line, without its CR LF, of at most `max` bytes with them. A line that ends otherwise,
 * or has a control byte other than a tab in it, is refused.
 */
enum gate_http_verdict gate_http_read_line(struct gate_span in, size_t max, const char *too_long,
	struct gate_span *ret, struct gate_why *why);

/* The size of a line, and of what ends it. */
#define GATE_HTTP_LINE_SIZE(line) ((line).n + 2)

/* NAME: VALUE */
struct gate_field {
	struct gate_span name, value;
};

bool gate_http_read_field(struct gate_span line, struct gate_field *ret, struct gate_why *why);

/* How much passes, and which parts of that are crossed out before; those of size 0 are none. */
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
	struct gate_pass pass; /* the head itself */
};

enum gate_http_verdict gate_http_read_head(const struct gate_http *h, struct gate_span in,
	struct gate_body *ret, struct gate_why *why);

/* One line each, in the state of the same name; GATE_HTTP_PASS has set the next. */
enum gate_http_verdict gate_http_read_chunk_size(
	struct gate_http *h, struct gate_span in, struct gate_pass *ret, struct gate_why *why);
enum gate_http_verdict gate_http_read_chunk_end(
	struct gate_http *h, struct gate_span in, struct gate_pass *ret, struct gate_why *why);
enum gate_http_verdict gate_http_read_trailer(
	struct gate_http *h, struct gate_span in, struct gate_pass *ret, struct gate_why *why);
