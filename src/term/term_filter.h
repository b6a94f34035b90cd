#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "term/term_state.h"

/* The longest sequence that is kept back until it can be judged; a longer one is dropped. */
#define TERM_FILTER_HELD     2048
#define TERM_FILTER_UNDO_MAX TERM_STATE_UNDO_MAX

/*
 * Stands between a caged command and the operator's terminal, and drops what reaches out of the
 * screen: the clipboard, files, the window, the printer, and every question whose answer would
 * tell about the operator or be chosen by the command. What is not known is dropped too. The
 * terminal is taken to be in UTF-8, and cannot be brought out of it.
 *
 * All zero is a good start. The members up to `state` may be read at any time; `is_raw` is set
 * before the first byte.
 */
struct term_filter {
	bool is_raw;      /* nothing is dropped, `state` is still kept */
	uint64_t dropped; /* sequences, control characters and characters */
	struct term_state state;

	uint8_t at, base;   /* where in which sequence; what the terminal is in without it */
	uint8_t last;       /* the byte before, in a string */
	bool is_lost;       /* this sequence will be dropped: nothing is held */
	uint16_t n_held;    /* of a sequence, or of a character */
	uint16_t to_ignore; /* of a sequence whose length is known */
	char held[TERM_FILTER_HELD];
};

/*
 * Filters n bytes and returns how many were written. `out` has room for n + TERM_FILTER_HELD and
 * is not `in`. Where the input is cut into calls makes no difference to the bytes that come out.
 * Bytes are never added; a control character inside a sequence comes out before it, which is
 * when terminals obey it.
 */
size_t term_filter_pass(struct term_filter *f, const char *in, size_t n, char *out);

/*
 * What brings the terminal back to where a command should leave it: nothing where nothing was
 * switched. Returns how many bytes were written.
 */
size_t term_filter_undo(const struct term_filter *f, char out[static TERM_FILTER_UNDO_MAX]);

/* Was something passed that the terminal has not answered yet? */
bool term_filter_expects_answer(const struct term_filter *f);

/*
 * Looks at what the terminal sends, for answers. Some terminals leave some questions unanswered:
 * the answer to a later one that all of them answer settles those as well.
 */
void term_filter_answered(struct term_filter *f, const char *in, size_t n);
