#pragma once

#include <stdbool.h>

/*
 * The test build leaves mechanisms out by name, to prove that their absence is noticed: from
 * outside by the keeper's look, from inside by an attack that gets through. In every other build
 * the answer is a constant, and no code of it is left.
 */
#ifdef BAWN_BREAKABLE
bool cage_is_broken(const char *mechanism);
#else
static inline bool cage_is_broken(const char *mechanism)
{
	(void)mechanism;
	return false;
}
#endif
