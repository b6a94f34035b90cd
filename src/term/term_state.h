#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- sequences --- */

#define TERM_MAX_PARAMS 32
/* Larger parameters have hung terminals (CVE-2012-2738), and no program needs them. */
#define TERM_MAX_PARAM 99999

/* One complete sequence, parsed. */
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
 * Parses a sequence, from ESC to its last byte, without the terminator of an OSC (BEL or ST). False
 * if it is malformed.
 */
bool term_sequence_read(const char *bytes, size_t n, struct term_sequence *ret);

/* Returns a parameter, or `otherwise` if it is missing or 0. */
uint32_t term_sequence_param(const struct term_sequence *s, unsigned i, uint32_t otherwise);

/* The verdict on a sequence: TERM_DROP, or how many answers the terminal sends to it. */
#define TERM_DROP (-1)

/* --- modes --- */

/* A mode of the terminal that a caged command may switch, by CSI h and l or CSI ? h and l. */
struct term_mode {
	char prefix; /* '?' or 0 */
	uint16_t number;
	char rest;      /* 'h' or 'l', its default; 0: it is not restored */
	bool is_soft;   /* a soft reset restores it */
	bool is_screen; /* switches to the alternate screen; leaving one of these leaves all */
};

#define TERM_MODE_COUNT 50
extern const struct term_mode term_modes[TERM_MODE_COUNT];

/* Returns a mode, or NULL if a command may not switch it. */
const struct term_mode *term_mode_find(char prefix, uint32_t number);

/* --- the terminal's state --- */

/* Room for the sequences that restore everything at once. */
#define TERM_STATE_UNDO_MAX 640

/* How the terminal differs from its defaults, and which answers are outstanding. Zeroed: not at
 * all. */
struct term_state {
	uint16_t rows; /* height of the window, set by the caller; 0: unknown */

	uint64_t modes;         /* a bit for each of term_modes that is not at its default */
	uint32_t marks;         /* other changes: enum in term_state.c */
	uint32_t saved[2];      /* marks that come back with the cursor saved on each screen */
	uint32_t saved_last;    /* the same for the cursor that was saved last */
	uint8_t keys;           /* xterm's key resources that were changed, by number */
	uint8_t keys_pushed[2]; /* depth of kitty's keyboard stack on the main and alternate screen
				 */
	bool are_keys_set[2];   /* kitty's keyboard flags were set without a push */

	uint64_t queries, answers;     /* queries passed to the terminal, and queries settled */
	uint64_t settled_by_identity;  /* queries that the last identity answer settles */
	uint32_t identities;           /* identity queries without an answer yet */
	uint8_t answer_at, answer_was; /* the parser's state within an answer, and its prefix */
};

/* Notes a sequence that was passed to the terminal, which will send `answers` answers to it. */
void term_state_note(struct term_state *s, const struct term_sequence *q, int answers);

/* Notes a control character that was passed to the terminal. */
void term_state_note_control(struct term_state *s, unsigned char c);

/* Writes the sequences that restore the terminal and returns their length. `is_open`: the terminal
 * is in the middle of a sequence, which must be ended first. */
size_t term_state_undo(
	const struct term_state *s, bool is_open, char out[static TERM_STATE_UNDO_MAX]);

/* Counts answers in the terminal's input. */
void term_state_note_input(struct term_state *s, const char *in, size_t n);
