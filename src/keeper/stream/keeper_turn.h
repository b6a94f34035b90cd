#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * How much of what a cage sends is heard in a while. A flood waits for the keeper, which spends a
 * part of a processor on it and no more.
 */
struct keeper_turn {
	uint64_t began_ns;
	unsigned done; /* in this turn */
};

/* True while as much was heard as one turn of `ns` has room for. */
static inline bool keeper_turn_is_full(const struct keeper_turn *t, unsigned most, uint64_t ns)
{
	return t->done >= most && clock_ns() - t->began_ns < ns;
}

/* Milliseconds until the next turn, or -1: this one has room. */
static inline int keeper_turn_wait(const struct keeper_turn *t, unsigned most, uint64_t ns)
{
	uint64_t gone = clock_ns() - t->began_ns;

	return t->done >= most && gone < ns ? (int)((ns - gone) / 1000000) + 1 : -1;
}

/* Begins another turn where this one is over. */
static inline void keeper_turn_renew(struct keeper_turn *t, uint64_t ns)
{
	uint64_t now = clock_ns();

	if (now - t->began_ns >= ns)
		*t = (struct keeper_turn){ .began_ns = now };
}
