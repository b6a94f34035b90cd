#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "term/term_state.h"

/* The longest sequence that the filter buffers until it can judge it; a longer one is dropped. */
#define TERM_FILTER_HELD     2048
#define TERM_FILTER_UNDO_MAX TERM_STATE_UNDO_MAX

/*
 * Filters what a caged command sends to the operator's terminal. Drops escape sequences that reach
 * beyond the screen (clipboard, files, window, printer), queries whose answer would tell about the
 * operator or be chosen by the command, and all sequences that it does not know. Assumes that the
 * terminal uses UTF-8, and drops what would switch it to something else.
 *
 * Must be zeroed before the first byte, and `is_raw` set then. The members up to `state` may be
 * read at any time.
 */
struct term_filter {
	bool is_raw;      /* drop nothing, only keep `state` */
	uint64_t dropped; /* number of sequences and characters dropped */
	struct term_state state;

	uint8_t at, base;   /* the parser's state, and the state behind the sequence */
	uint8_t last;       /* the previous byte, in a string */
	bool is_lost;       /* the current sequence will be dropped and is not buffered */
	uint16_t n_held;    /* bytes buffered of a sequence or a character */
	uint16_t to_ignore; /* bytes left of a sequence of known length */
	char held[TERM_FILTER_HELD];
};

/*
 * Filters n bytes into `out`, which must have room for n + TERM_FILTER_HELD bytes and must not be
 * `in`. Returns the number of bytes written. The result does not depend on how the input is divided
 * into calls. The filter never adds bytes; a control character inside a sequence is written before
 * the sequence, because that is when terminals execute it.
 */
size_t term_filter_pass(struct term_filter *f, const char *in, size_t n, char *out);

/*
 * Writes the sequences that restore the terminal after the command, if it has changed anything.
 * Returns the number of bytes written.
 */
size_t term_filter_undo(const struct term_filter *f, char out[static TERM_FILTER_UNDO_MAX]);

/* True if the terminal has not answered all queries that the filter passed. */
bool term_filter_expects_answer(const struct term_filter *f);

/*
 * Looks for answers in the terminal's input. Some terminals do not answer every query: the answer
 * to a later query that all terminals answer settles the earlier ones too.
 */
void term_filter_answered(struct term_filter *f, const char *in, size_t n);
