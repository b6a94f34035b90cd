#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- sequences --- */

#define TERM_MAX_PARAMS 32
/* Larger counts have hung terminals (CVE-2012-2738), and nobody needs them. */
#define TERM_MAX_PARAM 99999

/* One complete sequence, taken apart. */
struct term_sequence {
	char kind;                  /* '[' CSI, ']' OSC, 0 any other escape sequence */
	char prefix, middle, final; /* CSI ? 1 $ p: '?', '$', 'p'; 0 where there is none */
	bool has_colon;             /* parameters have parts, of which only the first is kept */
	unsigned count;             /* of parameters; an empty one is 0 */
	const char *text;           /* of an OSC, behind its number; borrowed */
	size_t n;
	uint32_t params[TERM_MAX_PARAMS];
};

/*
 * Takes the bytes of a sequence apart, from ESC to its last byte; the end of an OSC (BEL or ST)
 * is not among them. False where it is not well formed.
 */
bool term_sequence_read(const char *bytes, size_t n, struct term_sequence *ret);

/* A parameter, or what stands for it where it is missing or 0. */
uint32_t term_sequence_param(const struct term_sequence *s, unsigned i, uint32_t otherwise);

/* The verdict on a sequence: TERM_DROP, or how many answers the terminal sends to it. */
#define TERM_DROP (-1)

/* --- modes --- */

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

/* --- what a command changed --- */

/* Room for what undoes everything at once. */
#define TERM_STATE_UNDO_MAX 640

/* How a terminal differs from one at rest, and what it still owes. All zero: at rest. */
struct term_state {
	uint16_t rows; /* of the window, kept by whoever knows; 0: not known */

	uint64_t modes;         /* by place in term_modes: not as at rest */
	uint32_t marks;         /* of term_state.c */
	uint32_t saved[2];      /* what comes back with the cursor that was saved on a screen */
	uint32_t saved_last;    /* or on any */
	uint8_t keys;           /* xterm's resources for keys that were changed, by number */
	uint8_t keys_pushed[2]; /* kitty's keyboard, on the main and on the other screen */
	bool are_keys_set[2];   /* without a push */

	uint64_t queries, answers;     /* passed to the terminal; settled */
	uint64_t settled_by_identity;  /* how many queries are, when the last identity comes */
	uint32_t identities;           /* asked for and not seen yet */
	uint8_t answer_at, answer_was; /* where in an answer; its prefix */
};

/* A sequence went to the terminal, and it will answer so many times. */
void term_state_note(struct term_state *s, const struct term_sequence *q, int answers);

/* A control character went to the terminal. */
void term_state_note_control(struct term_state *s, unsigned char c);

/* Writes the sequences that restore the terminal; returns their length. `is_open`: in the middle of
 * a sequence. */
size_t term_state_undo(
	const struct term_state *s, bool is_open, char out[static TERM_STATE_UNDO_MAX]);

/* Counts answers in the terminal's input. */
void term_state_note_input(struct term_state *s, const char *in, size_t n);
