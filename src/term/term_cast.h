#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * A recording of a terminal as asciicast version 2: a line of JSON that describes it, then a line
 * for everything that happened (docs.asciinema.org/manual/asciicast/v2). Bytes that are no UTF-8
 * become U+FFFD, so what is written is always UTF-8 and JSON without half characters.
 */
struct term_cast_header {
	unsigned width, height;
	int64_t timestamp;                /* seconds since 1970 */
	const char *title, *term, *shell; /* NULL: not said */
};

/* All zero is a good start. */
struct term_cast {
	bool is_plain; /* no terminal made \r\n of the command's \n: it is made here */

	bool was_return; /* the last byte was \r */
	uint8_t n_held;  /* of a character that is not complete */
	char held[4];
	uint64_t last_us; /* time does not go back */
};

void term_cast_header(const struct term_cast_header *h, struct buf *out);

/*
 * An event at `ns` since the beginning. Output of which nothing but the start of a character is
 * known yet is no event; the rest of it comes with the next one.
 */
void term_cast_output(
	struct term_cast *c, uint64_t ns, const char *text, size_t n, struct buf *out);
void term_cast_resize(
	struct term_cast *c, uint64_t ns, unsigned width, unsigned height, struct buf *out);

/* There will be no more output: what is left of a character becomes U+FFFD. */
void term_cast_end(struct term_cast *c, uint64_t ns, struct buf *out);
