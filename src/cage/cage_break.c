#include "cage/cage_break.h"

#include <stdlib.h>
#include <string.h>

/* BAWN_TEST_BREAK: names, separated by commas. */
bool cage_is_broken(const char *mechanism)
{
	const char *at = getenv("BAWN_TEST_BREAK");
	size_t n = strlen(mechanism);

	for (; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (strncmp(at, mechanism, n) == 0 && (!at[n] || at[n] == ','))
			return true;
	return false;
}
