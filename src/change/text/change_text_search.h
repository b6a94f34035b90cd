#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * What has to go and to come so that one row of numbers becomes another: as little as possible,
 * found with the algorithm of Eugene W. Myers, "An O(ND) Difference Algorithm and Its Variations"
 * (1986), in its variation that needs little memory. Rows that differ much would take long: there
 * it settles for more than the least, and in the end for everything that is left.
 */

/* The most steps it takes, but for one look along the rows: about a tenth of a second. */
#define CHANGE_TEXT_MAX_STEPS ((uint64_t)1 << 24)

struct change_text_row {
	const uint32_t *numbers; /* below 2^31 of them, those of both rows together */
	uint32_t count;
	const uint32_t *places; /* each one's index in `is_changed` */
	bool *is_changed;       /* set to true for those that go or come */
};
