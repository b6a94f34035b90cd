#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TERM_MAX_PARAMS 32
/* Larger counts have hung terminals (CVE-2012-2738), and nobody needs them. */
#define TERM_MAX_PARAM 99999

/* One complete sequence, taken apart. */
struct term_sequence {
	char kind;                  /* '[' CSI, ']' OSC, 0 any other escape sequence */
	char prefix, middle, final; /* CSI ? 1 $ p: '?', '$', 'p'; 0 where there is none */
	bool has_colon;             /* parameters have parts, of which only the first is kept */
	unsigned count;             /* of parameters; an empty one is 0 */
	const char *text;           /* of an OSC, behind its number; borrowed */
	size_t n;
	uint32_t params[TERM_MAX_PARAMS];
};

/*
 * Takes the bytes of a sequence apart, from ESC to its last byte; the end of an OSC (BEL or ST)
 * is not among them. False where it is not well formed.
 */
bool term_sequence_read(const char *bytes, size_t n, struct term_sequence *ret);

/* A parameter, or what stands for it where it is missing or 0. */
uint32_t term_sequence_param(const struct term_sequence *s, unsigned i, uint32_t otherwise);

/* What becomes of a sequence: TERM_DROP, or how many answers of the terminal it brings. */
#define TERM_DROP (-1)
