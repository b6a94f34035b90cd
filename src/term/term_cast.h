#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * Writes a recording of a terminal as asciicast version 2: a header line of JSON, then a line for
 * each event (docs.asciinema.org/manual/asciicast/v2). Bytes that are not UTF-8 become U+FFFD, so
 * that the file is always valid UTF-8 and JSON.
 */
struct term_cast_header {
	unsigned width, height;
	int64_t timestamp;                /* seconds since 1970 */
	const char *title, *term, *shell; /* NULL: left out */
};

/* Must be zeroed before the first call. */
struct term_cast {
	bool is_plain; /* the output came from no terminal, so \n is written as \r\n */

	bool was_return; /* the last byte was \r */
	uint8_t n_held;  /* bytes of an incomplete character, in `held` */
	char held[4];
	uint64_t last_us; /* the time of the last event; later ones are never earlier */
};

void term_cast_header(const struct term_cast_header *h, struct buf *out);

/*
 * Add an event, `ns` after the start. An incomplete character at the end of the output is written
 * with the next event; output that has nothing else adds no event.
 */
void term_cast_output(
	struct term_cast *c, uint64_t ns, const char *text, size_t n, struct buf *out);
void term_cast_resize(
	struct term_cast *c, uint64_t ns, unsigned width, unsigned height, struct buf *out);

/* Ends the recording. An incomplete character becomes U+FFFD. */
void term_cast_end(struct term_cast *c, uint64_t ns, struct buf *out);
