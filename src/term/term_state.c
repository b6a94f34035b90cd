/*
 * term_state - remembers what a command switched in the terminal, for the day it dies halfway.
 *
 * Where it cannot be known, for example after a restored cursor, a thing counts as switched: to
 * switch it back once more does no harm.
 */
#include "term/term_state.h"

#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "term/term_mode.h"

enum {
	MARK_CHARSET = 1 << 0, /* G0 is not ASCII */
	MARK_SHIFT = 1 << 1,   /* another set than G0 is in use */
	MARK_SGR = 1 << 2,
	MARK_PROTECT = 1 << 3, /* characters are written protected */
	MARK_REGION = 1 << 4,
	MARK_KEYPAD = 1 << 5,
	MARK_CURSOR = 1 << 6,       /* its shape */
	MARK_CURSOR_LINUX = 1 << 7, /* the same, as the Linux console has it */
	MARK_TABS = 1 << 8,
	MARK_LINK = 1 << 9,
	MARK_PALETTE = 1 << 10,
	MARK_FOREGROUND = 1 << 11,
	MARK_BACKGROUND = 1 << 12,
	MARK_CURSOR_COLOUR = 1 << 13,
	MARK_ORIGIN = 1 << 14, /* the mode ?6, in what was saved */

	/* What a saved cursor brings back. */
	MARKS_SAVED = MARK_CHARSET | MARK_SHIFT | MARK_SGR | MARK_PROTECT,
	MARKS_SOFT = MARKS_SAVED | MARK_REGION | MARK_KEYPAD,
	/* Not every terminal forgets these in a full reset. */
	MARKS_HARD = MARK_PALETTE | MARK_FOREGROUND | MARK_BACKGROUND | MARK_CURSOR_COLOUR,
};

/* To set the region moves the cursor: it is saved before and restored after. */
static const struct {
	uint32_t mark;
	const char *undo;
} mark_undo[] = {
	{ MARK_LINK, "\033]8;;\033\\" },
	{ MARK_CHARSET, "\033(B" },
	{ MARK_SHIFT, "\017" },
	{ MARK_SGR, "\033[0m" },
	{ MARK_PROTECT, "\033[0\"q" },
	{ MARK_REGION, "\0337\033[r\0338" },
	{ MARK_KEYPAD, "\033>" },
	{ MARK_CURSOR, "\033[0 q" },
	{ MARK_CURSOR_LINUX, "\033[?0c" },
	{ MARK_TABS, "\033[?5W" },
	{ MARK_PALETTE, "\033]104\033\\" },
	{ MARK_FOREGROUND, "\033]110\033\\" },
	{ MARK_BACKGROUND, "\033]111\033\\" },
	{ MARK_CURSOR_COLOUR, "\033]112\033\\" },
};

static void set_mark(struct term_state *s, uint32_t mark, bool is_on)
{
	s->marks = is_on ? s->marks | mark : s->marks & ~mark;
}

static uint64_t mode_bit(const struct term_mode *mode)
{
	return (uint64_t)1 << (mode - term_modes);
}

static uint64_t screen_bits(void)
{
	return mode_bit(term_mode_find('?', 47)) | mode_bit(term_mode_find('?', 1047)) |
	       mode_bit(term_mode_find('?', 1049));
}

static unsigned which_screen(const struct term_state *s)
{
	return (s->modes & screen_bits()) != 0;
}

/* --- what is noted --- */

static void save_cursor(struct term_state *s)
{
	bool is_origin = (s->modes & mode_bit(term_mode_find('?', 6))) != 0;

	s->saved_last = (s->marks & MARKS_SAVED) | (is_origin ? MARK_ORIGIN : 0);
	s->saved[which_screen(s)] = s->saved_last;
}

/* Some terminals keep one cursor, some keep one for each screen. */
static void restore_cursor(struct term_state *s)
{
	uint64_t origin = mode_bit(term_mode_find('?', 6));
	uint32_t saved = s->saved_last | s->saved[which_screen(s)];

	s->marks = (s->marks & ~(uint32_t)MARKS_SAVED) | (saved & MARKS_SAVED);
	s->modes = saved & MARK_ORIGIN ? s->modes | origin : s->modes & ~origin;
}

static void forget_cursors(struct term_state *s)
{
	s->saved_last = s->saved[0] = s->saved[1] = 0;
}

static void reset_soft(struct term_state *s)
{
	for (size_t i = 0; i < TERM_MODE_COUNT; i++)
		if (term_modes[i].is_soft)
			s->modes &= ~((uint64_t)1 << i);
	s->marks &= ~(uint32_t)MARKS_SOFT;
	forget_cursors(s);
}

static void reset_hard(struct term_state *s)
{
	s->modes = 0;
	s->marks &= MARKS_HARD;
	forget_cursors(s);
	s->keys = 0;
	memset(s->keys_pushed, 0, sizeof(s->keys_pushed));
	memset(s->are_keys_set, 0, sizeof(s->are_keys_set));
}

/* How: 'h' on, 'l' off, 'r' as it was saved, which may be either. */
static void state_note_mode(struct term_state *s, const struct term_mode *mode, char how)
{
	bool is_saving = mode->prefix == '?' && (mode->number == 1048 || mode->number == 1049);

	if (how == 'h' && is_saving)
		save_cursor(s);
	if (mode->is_screen && how == 'l')
		s->modes &= ~screen_bits();
	else if (mode->rest && how != mode->rest)
		s->modes |= mode_bit(mode);
	else
		s->modes &= ~mode_bit(mode);
	if (how == 'l' && is_saving)
		restore_cursor(s);
}

static void note_sgr(struct term_state *s, const struct term_sequence *q)
{
	static const char to_default[] = { 22, 23, 24, 25, 27, 28, 29, 39, 49, 59 };

	if (q->count == 0)
		set_mark(s, MARK_SGR, false);
	for (unsigned i = 0; i < q->count; i++) {
		uint32_t param = q->params[i];

		if (param == 0)
			set_mark(s, MARK_SGR, false);
		else if (param > 59 || !memchr(to_default, (int)param, sizeof(to_default)))
			set_mark(s, MARK_SGR, true);
		/* A colour by number: what follows is no attribute. With colons it is one. */
		if ((param == 38 || param == 48 || param == 58) && !q->has_colon)
			i += term_sequence_param(q, i + 1, 0) == 2 ? 4 : 2;
	}
}

/* The keyboard: kitty's way (u), xterm's (m and n). */
static void note_keys(struct term_state *s, const struct term_sequence *q)
{
	uint32_t first = term_sequence_param(q, 0, 0);
	unsigned screen = which_screen(s);
	uint8_t *pushed = &s->keys_pushed[screen];

	if (q->final == 'u' && q->prefix == '>') {
		*pushed = (uint8_t)(*pushed + (*pushed < UINT8_MAX));
	} else if (q->final == 'u' && q->prefix == '<') {
		first = first ? first : 1;
		*pushed = first < *pushed ? (uint8_t)(*pushed - first) : 0;
	} else if (q->final == 'u' && q->prefix == '=') {
		/* All of them, or (2, 3) those that are named, on or off. */
		if (term_sequence_param(q, 1, 1) == 1 || (first && !s->are_keys_set[screen]))
			s->are_keys_set[screen] = first != 0;
	} else if (q->prefix == '>' && q->final == 'm' && q->count == 0) {
		s->keys = 0;
	} else if (q->prefix == '>' && (q->final == 'm' || q->final == 'n')) {
		bool is_on = q->final == 'n' || term_sequence_param(q, 1, 0) != 0;

		/* In raw mode any number can be here. */
		if (first < 8)
			s->keys =
				(uint8_t)(is_on ? s->keys | 1U << first : s->keys & ~(1U << first));
	}
}

/* Programs name the last line rather than leave it out. */
static bool is_whole_screen(const struct term_state *s, const struct term_sequence *q)
{
	uint32_t first = term_sequence_param(q, 0, 1), last = term_sequence_param(q, 1, 0);

	return first == 1 && (last == 0 || (s->rows && last >= s->rows));
}

static void note_plain_csi(struct term_state *s, const struct term_sequence *q)
{
	if (q->final == 'm')
		note_sgr(s, q);
	else if (q->final == 'r')
		set_mark(s, MARK_REGION, !is_whole_screen(s, q));
	else if (q->final == 's' && q->count == 0)
		save_cursor(s);
	else if (q->final == 'u' && q->count == 0)
		restore_cursor(s);
	else if (q->final == 'g')
		set_mark(s, MARK_TABS, true);
}

static void note_csi(struct term_state *s, const struct term_sequence *q)
{
	uint32_t first = term_sequence_param(q, 0, 0);

	if (q->middle == '!' && q->final == 'p')
		reset_soft(s);
	else if (q->middle == ' ' && q->final == 'q')
		set_mark(s, MARK_CURSOR, first != 0);
	else if (q->middle == '"' && q->final == 'q')
		set_mark(s, MARK_PROTECT, first == 1);
	else if (q->middle)
		return;
	else if ((!q->prefix || q->prefix == '?') && strchr(q->prefix ? "hlr" : "hl", q->final))
		for (unsigned i = 0; i < q->count; i++) {
			const struct term_mode *mode = term_mode_find(q->prefix, q->params[i]);

			if (mode)
				state_note_mode(s, mode, q->final);
		}
	else if (!q->prefix)
		note_plain_csi(s, q);
	else if (q->prefix == '?' && q->final == 'c')
		set_mark(s, MARK_CURSOR_LINUX, first != 0);
	else if (q->prefix == '?' && q->final == 'W')
		set_mark(s, MARK_TABS, first != 5);
	else
		note_keys(s, q);
}

static void note_escape(struct term_state *s, const struct term_sequence *q)
{
	if (q->middle == '(')
		set_mark(s, MARK_CHARSET, q->final != 'B');
	if (q->middle)
		return;
	if (q->final == '=' || q->final == '>')
		set_mark(s, MARK_KEYPAD, q->final == '=');
	else if (q->final == 'n' || q->final == 'o')
		set_mark(s, MARK_SHIFT, true);
	else if (q->final == '7')
		save_cursor(s);
	else if (q->final == '8')
		restore_cursor(s);
	else if (q->final == 'H')
		set_mark(s, MARK_TABS, true);
	else if (q->final == 'c')
		reset_hard(s);
}

/* Do the colours only ask, or is one of them set? */
static bool is_asking(const struct term_sequence *q)
{
	for (size_t i = 0; i < q->n; i++)
		if (q->text[i] != ';' && q->text[i] != '?' && !str_is_digit(q->text[i]))
			return false;
	return q->n > 0;
}

static void note_osc(struct term_state *s, const struct term_sequence *q)
{
	static const struct {
		uint32_t number, mark;
		bool is_on;
	} colours[] = {
		{ 4, MARK_PALETTE, true },
		{ 10, MARK_FOREGROUND | MARK_BACKGROUND | MARK_CURSOR_COLOUR, true },
		{ 11, MARK_BACKGROUND | MARK_CURSOR_COLOUR, true },
		{ 12, MARK_CURSOR_COLOUR, true },
		{ 104, MARK_PALETTE, false },
		{ 110, MARK_FOREGROUND, false },
		{ 111, MARK_BACKGROUND, false },
		{ 112, MARK_CURSOR_COLOUR, false },
	};

	if (q->params[0] == 8)
		set_mark(s, MARK_LINK, q->n > 0 && q->text[q->n - 1] != ';');
	/* 104 with numbers resets those only. */
	for (size_t i = 0; i < COUNT_OF(colours); i++)
		if (colours[i].number == q->params[0] &&
			(colours[i].is_on ? !is_asking(q) : q->n == 0))
			set_mark(s, colours[i].mark, colours[i].is_on);
}

void term_state_note(struct term_state *s, const struct term_sequence *q, int answers)
{
	if (q->kind == '[')
		note_csi(s, q);
	else if (q->kind == ']')
		note_osc(s, q);
	else
		note_escape(s, q);
	if (answers <= 0)
		return;
	s->queries += (unsigned)answers;
	if (q->kind == '[' && q->final == 'c' && !q->prefix) {
		s->identities++;
		s->settled_by_identity = s->queries;
	}
}

void term_state_note_control(struct term_state *s, unsigned char c)
{
	if (c == 0x0e || c == 0x0f)
		set_mark(s, MARK_SHIFT, c == 0x0e);
}

/* --- what is undone --- */

static size_t undo_keys(const struct term_state *s, unsigned screen, char *out)
{
	char *at = out;

	if (s->keys_pushed[screen])
		at += sprintf(at, "\033[<%uu", s->keys_pushed[screen]);
	if (s->are_keys_set[screen])
		at += sprintf(at, "\033[=0u");
	return (size_t)(at - out);
}

size_t term_state_undo(
	const struct term_state *s, bool is_open, char out[static TERM_STATE_UNDO_MAX])
{
	const struct term_mode *restoring = term_mode_find('?', 1049);
	struct term_state left = *s;
	char *at = out;

	/* To leave this screen brings a saved cursor back, and what was saved with it. */
	if (s->modes & mode_bit(restoring))
		state_note_mode(&left, restoring, 'l');
	/* Ends whatever has begun, and is nothing where nothing has. */
	if (is_open)
		at += sprintf(at, "\033\\");
	if (which_screen(s) == 1)
		at += undo_keys(s, 1, at);
	for (size_t i = 0; i < TERM_MODE_COUNT; i++)
		if ((s->modes | left.modes) >> i & 1)
			at += sprintf(at, "\033[%.1s%u%c", &term_modes[i].prefix,
				term_modes[i].number, term_modes[i].rest);
	at += undo_keys(s, 0, at);
	for (unsigned i = 0; i < 8; i++)
		if (s->keys >> i & 1)
			at += sprintf(at, "\033[>%um", i);
	for (size_t i = 0; i < COUNT_OF(mark_undo); i++)
		if ((s->marks | left.marks) & mark_undo[i].mark)
			at += sprintf(at, "%s", mark_undo[i].undo);
	return (size_t)(at - out);
}
