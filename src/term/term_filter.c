/*
 * term_filter - filters the output of a caged command for the operator's terminal. Pure.
 *
 * Text passes in runs. The filter buffers a sequence from its first byte to its last and then
 * passes or drops it as a whole, so that the terminal never gets the beginning of a sequence
 * without its end. Only pictures (sixel) are too long to buffer: they pass as they come, and `base`
 * says that the terminal is inside one. A dropped sequence in a picture does not end the picture,
 * neither for the terminal nor for the filter.
 *
 * C1 controls (U+0080 to U+009F) are other spellings of ESC sequences. Few terminals know them, and
 * they turn up in text that was encoded twice. The filter drops them, and single bytes 80 to 9f,
 * one by one; what follows is text, for the terminal too.
 *
 * Nearly all output is text, so nearly all time goes into finding where text ends. The filter does
 * that sixteen bytes at a time, with the compilers' vector types.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "base/utf8.h"
#include "term/term_filter.h"

/* --- text --- */

#define BLOCK 16

/* A byte each: all ones where something is so, 0 where it is not. */
typedef unsigned char lanes __attribute__((vector_size(BLOCK)));

static inline lanes text_load(const unsigned char *bytes)
{
	lanes v;

	memcpy(&v, bytes, sizeof(v));
	return v;
}

static inline bool text_is_none(lanes v)
{
	uint64_t halves[2];

	memcpy(halves, &v, sizeof(halves));
	return (halves[0] | halves[1]) == 0;
}

static inline lanes is_control(lanes v)
{
	return (lanes)(v < 0x20) & (lanes)((lanes)(v - '\a') > '\r' - '\a');
}

static inline bool is_ascii_block(const unsigned char *bytes)
{
	lanes v = text_load(bytes);

	return text_is_none((lanes)(v >= 0x80) | is_control(v));
}

/*
 * Does every byte go with the three before it? The last character may be unfinished. Which bytes
 * may follow the first one of a character is in table 3-7 of the Unicode standard; C2 may not be
 * followed by the controls U+0080 to U+009F.
 */
static inline bool is_text_block(const unsigned char *bytes)
{
	lanes v = text_load(bytes), one = text_load(bytes - 1), two = text_load(bytes - 2),
	      three = text_load(bytes - 3);
	lanes follows = (lanes)((v & 0xc0) == 0x80);
	lanes should = (lanes)(one >= 0xc0) | (lanes)(two >= 0xe0) | (lanes)(three >= 0xf0);
	lanes bad = (follows ^ should) | is_control(v);

	bad |= (lanes)(v == 0xc0) | (lanes)(v == 0xc1) | (lanes)(v >= 0xf5);
	bad |= ((lanes)(one == 0xc2) | (lanes)(one == 0xe0)) & (lanes)(v < 0xa0);
	bad |= (lanes)(one == 0xed) & (lanes)(v >= 0xa0);
	bad |= (lanes)(one == 0xf0) & (lanes)(v < 0x90);
	bad |= (lanes)(one == 0xf4) & (lanes)(v >= 0x90);
	return text_is_none(bad);
}

/* Back to the end of the last whole character. */
static size_t back_up(const unsigned char *bytes, size_t n)
{
	for (size_t back = 1; back <= 3 && back <= n; back++) {
		unsigned char c = bytes[n - back];

		if (c < 0x80)
			return n;
		if (c >= 0xc0)
			return back < (c < 0xe0 ? 2U : c < 0xf0 ? 3U : 4U) ? n - back : n;
	}
	return n;
}

static size_t text_width(const unsigned char *bytes, size_t n)
{
	uint32_t c = 0;

	if (bytes[0] < 0x80)
		return bytes[0] >= 0x20 || (bytes[0] >= '\a' && bytes[0] <= '\r');
	/* Only C2 begins a control. */
	return bytes[0] == 0xc2 && n > 1 && bytes[1] < 0xa0
		       ? 0
		       : utf8_decode((const char *)bytes, n, &c);
}

/*
 * How many of n bytes, from the first one on, are whole characters in UTF-8 that a terminal shows
 * or that ring and move the cursor (BEL to CR), and nothing else: no other control, in one byte
 * or in two, and no broken character. It may stop early, but not where it could not go on.
 */
static size_t term_text_run(const char *text, size_t n)
{
	const unsigned char *bytes = (const unsigned char *)text;
	size_t i = 0;

	while (i < n) {
		size_t scalar_end;

		while (n - i >= BLOCK && is_ascii_block(bytes + i))
			i += BLOCK;
		if (i >= 3) {
			while (n - i >= BLOCK && is_text_block(bytes + i))
				i += BLOCK;
			i = back_up(bytes, i);
		}
		for (scalar_end = i + BLOCK; i < n && i < scalar_end;) {
			size_t width = text_width(bytes + i, n - i);

			if (width == 0)
				return i;
			i += width;
		}
	}
	return i;
}

/* --- the filter --- */

/*
 * The tables of sequences that a caged command may send to the operator's terminal. The filter
 * drops all others. Among those that are left out on purpose:
 *
 *   CSI i, ?i          prints, and may hand the screen to a program
 *   CSI t              moves, resizes and raises the window; 20 and 21 type the title, which the
 *                      command chose, into whatever reads the keyboard next
 *   CSI > t, > T       how titles are encoded, and so what a title may hold
 *   CSI = c, ?15n, …   say which device this is, and what keyboard the operator has
 *   CSI x, $w, $u, &u  reports of settings; #|, #R of colours; *y a checksum of what is shown
 *   CSI 'w 'z '{ '|    the locator: reports where the mouse is
 *   CSI *z             runs a macro, which could hold anything
 *   CSI y, q, "p       self tests, the lights of the keyboard, 8-bit controls
 *   CSI $|, *|         resize; $} and $~ write below the screen
 *   CSI ]              the Linux console's own: brings another console to the front
 *   ESC Z              the old way to ask CSI c; nobody needs it
 *   ESC %@, ESC SP G   end UTF-8, begin 8-bit controls: the terminal would read what follows
 *                      otherwise than the filter did
 *   ESC G, ESC }       rxvt's question for graphics, Terminology's commands
 *   ESC l, ESC m       HP's memory lock
 *   OSC                50 fonts, 52 the clipboard, 7 and 1337 folders and files, 9, 99 and 777
 *                      notices, 55 a dump of the screen to a file, 633 and 51 commands of
 *                      editors, 5379 commands of mlterm
 */

#define MAX_TITLE 256
#define MAX_MARK  256

/* --- CSI --- */

static bool has_no_colon(const struct term_sequence *s)
{
	return !s->has_colon;
}

/* With five parameters it is xterm's mouse highlighting, in which the terminal waits for us. */
static bool is_scroll(const struct term_sequence *s)
{
	return s->count <= 1 && !s->has_colon;
}

static bool rules_is_zero(const struct term_sequence *s)
{
	return s->count <= 1 && term_sequence_param(s, 0, 0) == 0 && !s->has_colon;
}

static bool has_known_modes(const struct term_sequence *s)
{
	for (unsigned i = 0; i < s->count; i++)
		if (!term_mode_find(s->prefix, s->params[i]))
			return false;
	return !s->has_colon;
}

/* True for queries of the terminal's status, the cursor's position, or light and dark colours. */
static bool is_status_query(const struct term_sequence *s)
{
	uint32_t what = term_sequence_param(s, 0, 0);

	if (s->count != 1 || s->has_colon)
		return false;
	return s->prefix ? what == 6 || what == 996 : what == 5 || what == 6;
}

/* The size of the text area and of a character, which the command is told anyway. */
static bool is_size_query(const struct term_sequence *s)
{
	uint32_t what = term_sequence_param(s, 0, 0);

	return s->count == 1 && !s->has_colon && (what == 14 || what == 16 || what == 18);
}

/* Which title, and where on the stack. */
static bool is_title_stack(const struct term_sequence *s)
{
	uint32_t what = term_sequence_param(s, 0, 0);

	return s->count <= 3 && !s->has_colon && (what == 22 || what == 23) &&
	       term_sequence_param(s, 1, 0) <= 2 && term_sequence_param(s, 2, 0) <= 10;
}

static bool is_key_resource(const struct term_sequence *s)
{
	return s->count <= 2 && !s->has_colon && term_sequence_param(s, 0, 0) < 8;
}

static const struct csi_rule {
	char prefix, middle;
	const char *finals;
	bool (*is_fine)(const struct term_sequence *s); /* NULL: whatever its parameters */
	int answers;
} csi_rules[] = {
	{ 0, 0, "m", NULL, 0 },
	{ 0, 0, "ABCDEFGH@IJKLMPSXZ^`abdefgrsu", has_no_colon, 0 },
	{ 0, 0, "T", is_scroll, 0 },
	{ 0, 0, "hl", has_known_modes, 0 },
	{ 0, 0, "c", rules_is_zero, 1 },
	{ 0, 0, "n", is_status_query, 1 },
	{ 0, 0, "t", is_size_query, 1 },
	{ 0, 0, "t", is_title_stack, 0 },
	{ 0, ' ', "@Aqtu", has_no_colon, 0 },
	{ 0, '!', "p", rules_is_zero, 0 },
	{ 0, '"', "q", has_no_colon, 0 },
	{ 0, '#', "pq{}PQ", has_no_colon, 0 },
	{ 0, '$', "rtvxz{", has_no_colon, 0 },
	{ 0, '$', "p", has_no_colon, 1 },
	{ 0, '*', "x", has_no_colon, 0 },
	{ 0, '\'', "}~", has_no_colon, 0 },
	{ '?', 0, "JKWc", has_no_colon, 0 },
	{ '?', 0, "hlrs", has_known_modes, 0 },
	{ '?', 0, "n", is_status_query, 1 },
	{ '?', 0, "Smu", has_no_colon, 1 },
	{ '?', '$', "p", has_no_colon, 1 },
	{ '>', 0, "cq", rules_is_zero, 1 },
	{ '>', 0, "mn", is_key_resource, 0 },
	{ '>', 0, "u", has_no_colon, 0 },
	{ '<', 0, "u", has_no_colon, 0 },
	{ '=', 0, "u", has_no_colon, 0 },
};

static int judge_csi(const struct term_sequence *s)
{
	for (size_t i = 0; i < COUNT_OF(csi_rules); i++) {
		const struct csi_rule *rule = &csi_rules[i];

		if (rule->prefix == s->prefix && rule->middle == s->middle &&
			strchr(rule->finals, s->final) && (!rule->is_fine || rule->is_fine(s)))
			return rule->answers;
	}
	return TERM_DROP;
}

/* --- ESC --- */

static int judge_escape(const struct term_sequence *s)
{
	static const struct {
		char middle;
		const char *finals; /* NULL: any, the designations of character sets */
	} rules[] = {
		{ 0, "6789=><DEHMNOc\\no" },
		{ ' ', "F" },
		{ '#', "34568" },
		{ '%', "G8" },
		{ '(', NULL },
		{ ')', NULL },
		{ '*', NULL },
		{ '+', NULL },
	};

	for (size_t i = 0; i < COUNT_OF(rules); i++)
		if (rules[i].middle == s->middle &&
			(!rules[i].finals || strchr(rules[i].finals, s->final)))
			return 0;
	return TERM_DROP;
}

/* --- OSC --- */

static bool is_printable(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (text[i] < 0x20 || text[i] > 0x7e)
			return false;
	return true;
}

/*
 * A title that shows as what it is. KiTTY, the one made of PuTTY, takes titles that begin with
 * two underscores for commands, among them one that starts programs.
 */
static int judge_title(const struct term_sequence *s)
{
	if (s->n > MAX_TITLE || (s->n >= 2 && memcmp(s->text, "__", 2) == 0))
		return TERM_DROP;
	for (size_t i = 0; i < s->n;) {
		uint32_t c = 0;
		size_t width = utf8_decode(s->text + i, s->n - i, &c);

		if (width == 0 || utf8_is_hidden(c))
			return TERM_DROP;
		i += width;
	}
	return 0;
}

/* Names and numbers of colours; a question mark asks. Brackets were menus in old rxvt. */
static int judge_colours(const struct term_sequence *s)
{
	int questions = 0;

	for (size_t i = 0; i < s->n; i++) {
		char c = s->text[i];

		if (!str_is_digit(c) && !str_is_letter(c) && (!c || !strchr(" #:/;,.%?-", c)))
			return TERM_DROP;
		questions += c == '?';
	}
	return questions;
}

/*
 * A link leads where its text does not say, so it may only lead to what a browser or a mail
 * program asks about before anything happens: file: opens programs, ssh: and x-man-page: have
 * run commands.
 */
static int judge_link(const struct term_sequence *s)
{
	static const char *const schemes[] = { "http://", "https://", "mailto:" };
	const char *semicolon = s->n ? memchr(s->text, ';', s->n) : NULL;
	const char *link = semicolon ? semicolon + 1 : NULL;
	size_t n = link ? (size_t)(s->text + s->n - link) : 0;

	if (!link || !is_printable(s->text, s->n) || memchr(link, ' ', n))
		return TERM_DROP;
	if (n == 0)
		return 0;
	for (size_t i = 0; i < COUNT_OF(schemes); i++) {
		size_t same = 0;

		while (same < n && schemes[i][same] && str_lower(link[same]) == schemes[i][same])
			same++;
		if (!schemes[i][same])
			return 0;
	}
	return TERM_DROP;
}

/* Marks of a prompt. */
static int judge_mark(const struct term_sequence *s)
{
	return s->n <= MAX_MARK && is_printable(s->text, s->n) ? 0 : TERM_DROP;
}

static const struct {
	uint32_t number;
	int (*judge)(const struct term_sequence *s);
} osc_rules[] = {
	{ 0, judge_title },
	{ 1, judge_title },
	{ 2, judge_title },
	{ 4, judge_colours },
	{ 8, judge_link },
	{ 10, judge_colours },
	{ 11, judge_colours },
	{ 12, judge_colours },
	{ 104, judge_colours },
	{ 110, judge_colours },
	{ 111, judge_colours },
	{ 112, judge_colours },
	{ 133, judge_mark },
};

static int judge_osc(const struct term_sequence *s)
{
	for (size_t i = 0; i < COUNT_OF(osc_rules); i++)
		if (osc_rules[i].number == s->params[0])
			return osc_rules[i].judge(s);
	return TERM_DROP;
}

static int term_sequence_judge(const struct term_sequence *s)
{
	return s->kind == '[' ? judge_csi(s) : s->kind == ']' ? judge_osc(s) : judge_escape(s);
}

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

/* The output; NULL where the bytes were passed already. */
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

/* CAN and SUB end any sequence, pictures too. */
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

/* Takes a byte outside of any sequence; false if it belongs to one. */
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
	/* The terminal has not seen the held bytes, unless nothing is filtered. */
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
