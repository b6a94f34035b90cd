#include "term/term_mode.h"

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
	/* What terminals are set to differs, and nothing breaks. */
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
