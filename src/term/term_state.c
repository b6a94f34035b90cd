/*
 * term_state - remembers what a command switched in the terminal, for the day it dies halfway.
 *
 * Where it cannot be known, for example after a restored cursor, a thing counts as switched: to
 * switch it back once more does no harm. Of answers in what the terminal sends only the shape
 * counts: a key can look like one, which at worst has an answer taken for seen that is still on its
 * way.
 */
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "term/term_state.h"

/* --- modes --- */

/*
 * Left out, so that sequences with them are dropped: 2 locks the keyboard, 12 shows what is typed
 * (passwords too); ?2 and ?38 are other terminals, with another syntax; ?3 and ?40 resize the
 * window; ?46 logs to a file; ?1001 has the terminal wait for the command; ?1041 moves what is
 * selected to the clipboard; ?1042 and ?1043 raise the window; ?1050 to ?1061 are other keyboards;
 * ?5522 hands over what is pasted with leave to read more.
 *
 * In the order in which they are undone: first what holds back the others.
 */
const struct term_mode term_modes[TERM_MODE_COUNT] = {
	{ '?', 2026, 'l', false, false }, /* output shown as one */
	{ '?', 47, 'l', false, true },    /* the other screen */
	{ '?', 1047, 'l', false, true },
	{ '?', 1049, 'l', false, true },
	{ '?', 9, 'l', false, false }, /* the mouse */
	{ '?', 1000, 'l', false, false },
	{ '?', 1002, 'l', false, false },
	{ '?', 1003, 'l', false, false },
	{ '?', 1005, 'l', false, false },
	{ '?', 1006, 'l', false, false },
	{ '?', 1015, 'l', false, false },
	{ '?', 1016, 'l', false, false },
	{ '?', 1004, 'l', false, false }, /* focus */
	{ '?', 2004, 'l', false, false }, /* pasted text in brackets */
	{ '?', 2031, 'l', false, false }, /* tell when colours change */
	{ '?', 2048, 'l', false, false }, /* tell when the size changes */
	{ '?', 9001, 'l', false, false }, /* keys as Windows has them */
	{ '?', 7727, 'l', false, false }, /* the escape key, in mintty */
	{ '?', 1, 'l', true, false },     /* cursor keys for applications */
	{ '?', 66, 'l', true, false },    /* the keypad too */
	{ '?', 67, 'l', false, false },   /* the backspace key */
	{ '?', 8, 'h', false, false },    /* keys repeat */
	{ '?', 5, 'l', false, false },    /* light and dark swapped */
	{ '?', 69, 'l', true, false },    /* margins left and right */
	{ '?', 6, 'l', true, false },     /* the cursor stays in the region */
	{ '?', 7, 'h', true, false },     /* lines wrap */
	{ '?', 45, 'l', false, false },   /* and back */
	{ '?', 25, 'h', true, false },    /* the cursor shows */
	{ 0, 4, 'l', true, false },       /* insert */
	{ 0, 20, 'l', true, false },      /* the return key sends two characters */
	/* Terminals start with different values of these, and nothing breaks. */
	{ 0, 34, 0, false, false },
	{ '?', 4, 0, false, false },
	{ '?', 12, 0, false, false },
	{ '?', 41, 0, false, false },
	{ '?', 42, 0, false, false },
	{ '?', 44, 0, false, false },
	{ '?', 80, 0, false, false },
	{ '?', 95, 0, false, false },
	{ '?', 1007, 0, false, false },
	{ '?', 1010, 0, false, false },
	{ '?', 1011, 0, false, false },
	{ '?', 1034, 0, false, false },
	{ '?', 1035, 0, false, false },
	{ '?', 1036, 0, false, false },
	{ '?', 1037, 0, false, false },
	{ '?', 1039, 0, false, false },
	{ '?', 1048, 0, false, false },
	{ '?', 1070, 0, false, false },
	{ '?', 2027, 0, false, false },
	{ '?', 8452, 0, false, false },
};
_Static_assert(TERM_MODE_COUNT <= 64, "a mode is a bit of 64");

const struct term_mode *term_mode_find(char prefix, uint32_t number)
{
	for (size_t i = 0; i < TERM_MODE_COUNT; i++)
		if (term_modes[i].prefix == prefix && term_modes[i].number == number)
			return &term_modes[i];
	return NULL;
}

/* --- sequences --- */

/* Digits, semicolons and colons from *at on; leaves *at behind them. */
static bool read_params(const char *bytes, size_t n, size_t *at, struct term_sequence *ret)
{
	size_t i = *at;
	bool is_part = false;

	if (i == n || !(str_is_digit(bytes[i]) || bytes[i] == ';' || bytes[i] == ':'))
		return true;
	for (ret->count = 1; i < n; i++) {
		uint32_t *param = &ret->params[ret->count - 1];

		if (bytes[i] == ';') {
			if (ret->count == TERM_MAX_PARAMS)
				return false;
			ret->params[ret->count++] = 0;
			is_part = false;
		} else if (bytes[i] == ':') {
			ret->has_colon = is_part = true;
		} else if (!str_is_digit(bytes[i])) {
			break;
		} else if (!is_part) {
			*param = *param * 10 + (uint32_t)(bytes[i] - '0');
			if (*param > TERM_MAX_PARAM)
				return false;
		}
	}
	*at = i;
	return true;
}

static bool is_middle(char c)
{
	return c >= 0x20 && c <= 0x2f;
}

static bool read_csi(const char *bytes, size_t n, struct term_sequence *ret)
{
	size_t at = 2;

	if (at < n && bytes[at] >= '<' && bytes[at] <= '?')
		ret->prefix = bytes[at++];
	if (!read_params(bytes, n, &at, ret))
		return false;
	if (at < n && is_middle(bytes[at]))
		ret->middle = bytes[at++];
	if (at + 1 != n)
		return false;
	ret->final = bytes[at];
	return true;
}

static bool read_osc(const char *bytes, size_t n, struct term_sequence *ret)
{
	size_t at = 2;

	while (at < n && str_is_digit(bytes[at]))
		at++;
	if (at == 2 || at > 2 + 5 || (at < n && bytes[at] != ';'))
		return false;
	for (size_t i = 2; i < at; i++)
		ret->params[0] = ret->params[0] * 10 + (uint32_t)(bytes[i] - '0');
	ret->count = 1;
	at += at < n;
	ret->text = bytes + at;
	ret->n = n - at;
	return true;
}

bool term_sequence_read(const char *bytes, size_t n, struct term_sequence *ret)
{
	/* Not the parameters, most of which nobody will use. */
	memset(ret, 0, offsetof(struct term_sequence, params));
	ret->params[0] = 0;
	if (n < 2)
		return false;
	if (bytes[1] == '[' || bytes[1] == ']')
		ret->kind = bytes[1];
	if (ret->kind == '[')
		return read_csi(bytes, n, ret);
	if (ret->kind == ']')
		return read_osc(bytes, n, ret);
	if (n > 3 || is_middle(bytes[1]) != (n == 3))
		return false;
	ret->middle = n == 3 ? bytes[1] : 0;
	ret->final = bytes[n - 1];
	return true;
}

uint32_t term_sequence_param(const struct term_sequence *s, unsigned i, uint32_t otherwise)
{
	return i < s->count && s->params[i] ? s->params[i] : otherwise;
}

/* --- answers --- */

enum {
	AT_KEYS,
	AT_ESCAPE,
	AT_CSI,
	AT_STRING,
	AT_STRING_ESCAPE,
};

static void count_answer(struct term_state *s, char prefix, char final)
{
	if (s->answers < s->queries)
		s->answers++;
	/* Answers come in the order of the questions, and this one comes from every terminal. */
	if (prefix == '?' && final == 'c' && s->identities && --s->identities == 0 &&
		s->answers < s->settled_by_identity)
		s->answers = s->settled_by_identity;
}

static bool is_answer(char prefix, char final)
{
	switch (final) {
	case 'R':
	case 'n':
	case 't':
	case 'y':
		return true;
	case 'c':
	case 'S':
	case 'u':
	case 'm':
		return prefix != 0;
	default:
		return false;
	}
}

static bool ends_string(const struct term_state *s, char c)
{
	return s->answer_at == AT_STRING ? c == '\a'
					 : s->answer_at == AT_STRING_ESCAPE && c == '\\';
}

static void note_byte(struct term_state *s, char c)
{
	if (ends_string(s, c)) {
		s->answer_at = AT_KEYS;
		count_answer(s, 0, 0);
	} else if (c == 0x1b) {
		s->answer_at = s->answer_at == AT_STRING ? AT_STRING_ESCAPE : AT_ESCAPE;
	} else if (s->answer_at == AT_ESCAPE) {
		s->answer_at = c == '[' ? AT_CSI : c == 'P' || c == ']' ? AT_STRING : AT_KEYS;
		s->answer_was = 0;
	} else if (s->answer_at == AT_CSI && c >= '<' && c <= '?') {
		s->answer_was = (uint8_t)c;
	} else if (s->answer_at == AT_CSI && (c < 0x20 || c >= 0x40)) {
		s->answer_at = AT_KEYS;
		if (is_answer((char)s->answer_was, c))
			count_answer(s, (char)s->answer_was, c);
	} else if (s->answer_at == AT_STRING_ESCAPE) {
		s->answer_at = AT_KEYS;
	}
}

void term_state_note_input(struct term_state *s, const char *in, size_t n)
{
	for (size_t i = 0; i < n; i++)
		note_byte(s, in[i]);
}

/* --- what the command changed --- */

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

	/* A saved cursor restores these too. */
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

/* 'h' sets the mode, 'l' resets it, 'r' restores the saved value, which may be either. */
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
	if (restoring && s->modes & mode_bit(restoring))
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
