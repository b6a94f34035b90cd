/*
 * term_rules - which sequences a caged command may send to the operator's terminal.
 *
 * What is not in these tables is dropped, and so is what nobody has thought of yet. Among what is
 * left out on purpose:
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
#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "base/utf8.h"
#include "term/term_mode.h"
#include "term/term_sequence.h"

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

/* Is it working, where is the cursor; light or dark? */
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

/* Where a prompt begins and ends. */
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

int term_sequence_judge(const struct term_sequence *s)
{
	return s->kind == '[' ? judge_csi(s) : s->kind == ']' ? judge_osc(s) : judge_escape(s);
}
