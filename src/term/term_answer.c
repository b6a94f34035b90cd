/*
 * term_answer - sees answers in what the terminal sends. Only their shape counts: a key can look
 * like one, which at worst has an answer taken for seen that is still on its way.
 */
#include "term/term_state.h"

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
