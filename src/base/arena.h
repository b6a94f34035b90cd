#pragma once

#include <stddef.h>

/*
 * Memory that is given out piece by piece and released at once. Everything a spec or a plan
 * consists of lives in one. Grows to `max` bytes, then answers NULL.
 */
struct arena_block;

struct arena {
	struct arena_block *blocks;
	size_t used, max;
};

void arena_init(struct arena *a, size_t max);
void arena_done(struct arena *a);

/* Zeroed memory, aligned for anything; NULL when the arena is full. Owned by the arena. */
void *arena_alloc(struct arena *a, size_t size);

/* `count` elements of `size`, the product checked. */
void *arena_array(struct arena *a, size_t count, size_t size);

/* Copies n bytes and ends them with a NUL. */
char *arena_copy(struct arena *a, const char *text, size_t n);

/* Like asprintf; NULL when the arena is full. */
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
