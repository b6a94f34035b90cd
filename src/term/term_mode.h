#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A mode of the terminal that a caged command may switch, by CSI h and l or CSI ? h and l. */
struct term_mode {
	char prefix; /* '?' or 0 */
	uint16_t number;
	char rest;      /* 'h' or 'l', what it is when nobody uses it; 0: left as it is found */
	bool is_soft;   /* a soft reset brings it back */
	bool is_screen; /* switches to the other screen; leaving by one leaves them all */
};

#define TERM_MODE_COUNT 50
extern const struct term_mode term_modes[TERM_MODE_COUNT];

/* NULL: not one that a command may switch. */
const struct term_mode *term_mode_find(char prefix, uint32_t number);
