#pragma once

#include <stddef.h>

/*
 * Memory that is allocated piece by piece and freed at once. Everything a spec or a plan consists
 * of lives in one. An arena grows to `max` bytes; beyond that its functions return NULL.
 */
struct arena_block;

struct arena {
	struct arena_block *blocks;
	size_t used, max;
};

void arena_init(struct arena *a, size_t max);
void arena_done(struct arena *a);

/* Returns zeroed memory, aligned for any type, or NULL if the arena is full. The arena owns it. */
void *arena_alloc(struct arena *a, size_t size);

/* Returns zeroed memory for `count` elements of `size` bytes, checked for overflow; or NULL. */
void *arena_array(struct arena *a, size_t count, size_t size);

/* Returns a copy of n bytes with a NUL behind them, or NULL if the arena is full. */
char *arena_copy(struct arena *a, const char *text, size_t n);

/* Returns the formatted text, as asprintf does, or NULL if the arena is full. */
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
