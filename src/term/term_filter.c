/*
 * term_filter - follows the operator's terminal through what a caged command prints.
 *
 * Text is passed in runs. A sequence is held from its first byte to its last and then passed or
 * dropped as a whole, so the terminal never sees the beginning of something whose end is kept
 * from it. The one exception are pictures (sixel), which are too long to be held: they are passed
 * as they come, and `base` says that the terminal is inside one. A sequence that interrupts a
 * picture and is dropped has not interrupted it for the terminal, nor for us.
 *
 * C1 controls (U+0080 to U+009F) are other spellings of ESC sequences that few terminals know,
 * and that turn up in text which was encoded twice. They are dropped by themselves, as are single
 * bytes 80 to 9f, and what follows is text: for the terminal, too.
 */
#include "term/term_filter.h"

#include <string.h>

#include "base/utf8.h"
#include "term/term_text.h"

enum {
	AT_TEXT,
	AT_PICTURE,
	AT_ESCAPE,        /* ESC and what stands between it and the final byte */
	AT_CSI,           /* ESC [ */
	AT_PICTURE_START, /* ESC P: perhaps */
	AT_STRING,        /* all that ends with ST */
	AT_STRING_ESCAPE, /* the first half of ST, perhaps */
	AT_COUNTED,       /* `to_ignore` more bytes */
};

enum {
	BEL = 0x07,
	CAN = 0x18,
	SUB = 0x1a,
	ESC = 0x1b,
	DEL = 0x7f,
	C1_LEAD = 0xc2, /* C1 controls in UTF-8 are this byte and their own */
	C1_ST = 0x9c,
};

#define MAX_PICTURE_START 32

/* Where output goes; NULL where it has gone already. */
struct sink {
	char *at;
};

static void sink_add(struct sink *s, const char *bytes, size_t n)
{
	if (!s->at)
		return;
	memcpy(s->at, bytes, n);
	s->at += n;
}

static void filter_hold(struct term_filter *f, unsigned char c)
{
	if (f->is_lost)
		return;
	if (f->n_held == sizeof(f->held)) {
		f->is_lost = true;
		return;
	}
	f->held[f->n_held++] = (char)c;
}

/* --- the end of a sequence --- */

static void start_over(struct term_filter *f, uint8_t at)
{
	f->at = at;
	f->n_held = 0;
	f->is_lost = false;
	f->last = 0;
}

static void filter_drop(struct term_filter *f)
{
	f->dropped += !f->is_raw;
	start_over(f, f->base);
}

static void pass(struct term_filter *f, struct sink *s)
{
	sink_add(s, f->held, f->n_held);
	f->base = AT_TEXT; /* it began with ESC, which ends a picture */
	start_over(f, AT_TEXT);
}

/* `n_end`: how many of the held bytes are the end of a string. */
static void filter_judge(struct term_filter *f, size_t n_end, struct sink *s)
{
	struct term_sequence q;
	bool is_known = !f->is_lost && term_sequence_read(f->held, (size_t)f->n_held - n_end, &q);
	int answers = is_known ? term_sequence_judge(&q) : TERM_DROP;

	/* Unfiltered, what nobody knows may well be answered. */
	if (f->is_raw && answers == TERM_DROP)
		answers = 1;
	if (is_known && answers != TERM_DROP)
		term_state_note(&f->state, &q, answers);
	else if (f->is_raw)
		f->state.queries++;
	if (answers == TERM_DROP)
		filter_drop(f);
	else
		pass(f, s);
}

/* --- bytes outside and inside sequences --- */

/*
 * Control characters that move the cursor, ring or shift, and NUL, which is nothing. Not ENQ,
 * which is answered; not DC1 and DC3, which stop the other side; not CAN, which starts transfers
 * of files (ZMODEM) in some terminals, and SUB, which starts commands in Emacs.
 */
static bool filter_is_harmless(unsigned char c)
{
	return c == 0 || (c >= 0x07 && c <= 0x0f);
}

static void step_control(struct term_filter *f, unsigned char c, struct sink *s)
{
	bool is_passed = f->base == AT_PICTURE ? c == '\r' || c == '\n' : filter_is_harmless(c);

	if (is_passed || f->is_raw)
		term_state_note_control(&f->state, c);
	if (is_passed)
		sink_add(s, &(char){ (char)c }, 1);
	else
		f->dropped += !f->is_raw;
}

/* What ends everything, pictures too. */
static void step_cancel(struct term_filter *f, unsigned char c, struct sink *s)
{
	f->dropped += !f->is_raw && f->at != AT_PICTURE;
	if (f->base == AT_PICTURE)
		sink_add(s, &(char){ (char)c }, 1);
	f->base = AT_TEXT;
	start_over(f, AT_TEXT);
}

static void start_escape(struct term_filter *f)
{
	start_over(f, AT_ESCAPE);
	filter_hold(f, ESC);
}

static size_t utf8_wanted(unsigned char lead)
{
	return lead < 0xc2 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 1;
}

/* Bytes that are no character: a terminal that reads bytes would obey those below A0. */
static void flush_bytes(struct term_filter *f, struct sink *s)
{
	for (size_t i = 0; i < f->n_held; i++) {
		if ((unsigned char)f->held[i] >= 0xa0)
			sink_add(s, f->held + i, 1);
		else
			f->dropped += !f->is_raw;
	}
	f->n_held = 0;
}

static void step_wide(struct term_filter *f, unsigned char c, struct sink *s)
{
	uint32_t decoded = 0;

	filter_hold(f, c);
	if (f->n_held < utf8_wanted((unsigned char)f->held[0]))
		return;
	if (!utf8_decode(f->held, f->n_held, &decoded)) {
		flush_bytes(f, s);
		return;
	}
	if (decoded >= 0xa0)
		sink_add(s, f->held, f->n_held);
	else
		f->dropped += !f->is_raw;
	f->n_held = 0;
}

static void step_text(struct term_filter *f, unsigned char c, struct sink *s)
{
	if (f->n_held && (c & 0xc0) != 0x80)
		flush_bytes(f, s);
	if (c == ESC)
		start_escape(f);
	else if (c >= 0x80)
		step_wide(f, c, s);
	else if (c < 0x20)
		step_control(f, c, s);
	else
		sink_add(s, &(char){ (char)c }, 1);
}

static void step_picture(struct term_filter *f, unsigned char c, struct sink *s)
{
	if (c == ESC)
		start_escape(f);
	else if (c == CAN || c == SUB)
		step_cancel(f, c, s);
	else if (c >= 0x20 && c < DEL)
		sink_add(s, &(char){ (char)c }, 1);
	else
		step_control(f, c, s);
}

/* --- inside sequences --- */

static void filter_step(struct term_filter *f, unsigned char c, struct sink *s);

/* What is no part of an escape or control sequence; false where it is. */
static bool step_foreign(struct term_filter *f, unsigned char c, struct sink *s)
{
	if (c >= 0x20 && c < DEL)
		return false;
	if (c == ESC) {
		filter_drop(f);
		start_escape(f);
	} else if (c == CAN || c == SUB) {
		step_cancel(f, c, s);
	} else if (c < 0x20) {
		step_control(f, c, s); /* obeyed at once, the sequence goes on */
	} else if (c == DEL) {
		f->dropped += !f->is_raw;
	} else {
		filter_drop(f);
		filter_step(f, c, s);
	}
	return true;
}

static void step_escape(struct term_filter *f, unsigned char c, struct sink *s)
{
	if (step_foreign(f, c, s))
		return;
	filter_hold(f, c);
	if (c < 0x30)
		return;
	if (f->n_held > 2 || !strchr("[]PX^_k", c))
		filter_judge(f, 0, s);
	else if (c == '[')
		f->at = AT_CSI;
	else if (c == 'P')
		f->at = AT_PICTURE_START;
	else
		f->at = AT_STRING;
	/* Privacy messages, programs' own commands (kitty's pictures read files) and the titles of
	 * screen: nothing in them passes. */
	if (f->at == AT_STRING && c != ']')
		f->is_lost = true;
}

static void step_csi(struct term_filter *f, unsigned char c, struct sink *s)
{
	if (step_foreign(f, c, s))
		return;
	filter_hold(f, c);
	if (c >= 0x40)
		filter_judge(f, 0, s);
}

/* Anything but ESC P 1 ; 2 q is a question, a program for the terminal or another's language. */
static void step_picture_start(struct term_filter *f, unsigned char c, struct sink *s)
{
	if ((c >= '0' && c <= '9') || c == ';') {
		filter_hold(f, c);
		f->is_lost |= f->n_held > MAX_PICTURE_START;
		return;
	}
	if (c == 'q' && !f->is_lost) {
		filter_hold(f, c);
		pass(f, s);
		f->at = f->base = AT_PICTURE;
		return;
	}
	f->at = AT_STRING;
	f->is_lost = true;
	filter_step(f, c, s);
}

/*
 * The Linux console ends two strings by itself: ESC ] R, and ESC ] P with seven digits. Whoever
 * writes for it does not end them, and the terminal is sent neither.
 */
static bool step_linux(struct term_filter *f, unsigned char c)
{
	if (f->n_held != 2 || f->is_lost || (c != 'R' && c != 'P'))
		return false;
	if (c == 'R')
		filter_drop(f);
	f->to_ignore = 7;
	if (c == 'P')
		f->at = AT_COUNTED;
	return true;
}

static void step_string(struct term_filter *f, unsigned char c, struct sink *s)
{
	bool is_osc = f->held[1] == ']';

	if (c == ESC) {
		f->at = AT_STRING_ESCAPE;
	} else if (c == CAN || c == SUB) {
		step_cancel(f, c, s);
	} else if (c == BEL && is_osc) {
		filter_hold(f, c);
		filter_judge(f, 1, s);
	} else if (c == C1_ST && f->last == C1_LEAD) {
		f->is_lost = true; /* some go on here, some do not */
		filter_judge(f, 0, s);
	} else if (!is_osc || !step_linux(f, c)) {
		filter_hold(f, c);
		f->last = c;
	}
}

static void step_string_escape(struct term_filter *f, unsigned char c, struct sink *s)
{
	if (c == '\\') {
		filter_hold(f, ESC);
		filter_hold(f, c);
		filter_judge(f, 2, s);
		return;
	}
	filter_drop(f);
	start_escape(f);
	filter_step(f, c, s);
}

static void step_counted(struct term_filter *f, unsigned char c, struct sink *s)
{
	if (c < 0x20 || c >= DEL) {
		filter_drop(f);
		filter_step(f, c, s);
	} else if (--f->to_ignore == 0) {
		filter_drop(f);
	}
}

static void filter_step(struct term_filter *f, unsigned char c, struct sink *s)
{
	static void (*const steps[])(struct term_filter *, unsigned char, struct sink *) = {
		[AT_TEXT] = step_text,
		[AT_PICTURE] = step_picture,
		[AT_ESCAPE] = step_escape,
		[AT_CSI] = step_csi,
		[AT_PICTURE_START] = step_picture_start,
		[AT_STRING] = step_string,
		[AT_STRING_ESCAPE] = step_string_escape,
		[AT_COUNTED] = step_counted,
	};

	steps[f->at](f, c, s);
}

size_t term_filter_pass(struct term_filter *f, const char *in, size_t n, char *out)
{
	struct sink s = { f->is_raw ? NULL : out };
	size_t i = 0;

	if (f->is_raw && n)
		memcpy(out, in, n);
	while (i < n) {
		if (f->at == AT_TEXT && f->n_held == 0) {
			size_t run = term_text_run(in + i, n - i);

			sink_add(&s, in + i, run);
			i += run;
			if (i == n)
				break;
		}
		filter_step(f, (unsigned char)in[i++], &s);
	}
	return f->is_raw ? n : (size_t)(s.at - out);
}

size_t term_filter_undo(const struct term_filter *f, char out[static TERM_FILTER_UNDO_MAX])
{
	/* What is held the terminal has not seen, unless it saw everything. */
	bool is_open = f->is_raw ? f->at != AT_TEXT : f->base != AT_TEXT;

	return term_state_undo(&f->state, is_open, out);
}

bool term_filter_expects_answer(const struct term_filter *f)
{
	return f->state.answers < f->state.queries;
}

void term_filter_answered(struct term_filter *f, const char *in, size_t n)
{
	term_state_note_input(&f->state, in, n);
}
