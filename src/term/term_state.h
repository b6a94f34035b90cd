#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "term/term_sequence.h"

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

/* What brings the terminal back; returns its length. `is_open`: in the middle of a sequence. */
size_t term_state_undo(
	const struct term_state *s, bool is_open, char out[static TERM_STATE_UNDO_MAX]);

/* What the terminal sends; counts answers. */
void term_state_note_input(struct term_state *s, const char *in, size_t n);
