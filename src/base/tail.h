#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* The end of what may be endless: the last `max` bytes, in memory that is never more than that. */
struct tail {
	char *bytes; /* NULL until there are some */
	size_t max;
	uint64_t total; /* that were added; where there was no memory, nothing else is known */
};

void tail_init(struct tail *t, size_t max);
void tail_done(struct tail *t);

void tail_add(struct tail *t, const void *bytes, size_t n);

/* Adds what is kept, in its order. */
void tail_print(const struct tail *t, struct buf *out);
