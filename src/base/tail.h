#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* The last `max` bytes of an output of any length, in at most that much memory. */
struct tail {
	char *bytes; /* a ring of `max` bytes; NULL before the first, or if there was no memory */
	size_t max;
	uint64_t total; /* bytes added, kept or not */
};

void tail_init(struct tail *t, size_t max);
void tail_done(struct tail *t);

void tail_add(struct tail *t, const void *bytes, size_t n);

/* Adds the kept bytes to `out`, oldest first. */
void tail_print(const struct tail *t, struct buf *out);
