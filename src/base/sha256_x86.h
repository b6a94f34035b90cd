#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* SHA-256 by the processor's own instructions, where it has them: about five times as fast. */

#if defined(__x86_64__)
bool sha256_x86_is_there(void);

/* Takes whole blocks of 64 bytes into the state. Only where they are there. */
void sha256_x86_blocks(uint32_t state[static 8], const uint8_t *bytes, size_t blocks);
#else
static inline bool sha256_x86_is_there(void)
{
	return false;
}

static inline void sha256_x86_blocks(uint32_t *state, const uint8_t *bytes, size_t blocks)
{
	(void)state, (void)bytes, (void)blocks;
}
#endif
