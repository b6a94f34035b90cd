/* What a command switched is switched back, and nothing else; who still owes an answer. */
#include "base/count.h"
#include "check.h"
#include "term/term_filter.h"

#define ESC "\033"
#define CSI "\033["
#define OSC "\033]"
#define ST  "\033\\"

static char room[1 << 16];

static void feed(struct term_filter *f, const char *text)
{
	term_filter_pass(f, text, strlen(text), room);
}

/* The bytes as text that a terminal can show. */
static const char *undo(const struct term_filter *f)
{
	static char shown[2 * TERM_FILTER_UNDO_MAX];
	char bytes[TERM_FILTER_UNDO_MAX];
	size_t n = term_filter_undo(f, bytes), at = 0;

	for (size_t i = 0; i < n; i++)
		at += (size_t)sprintf(shown + at,
			bytes[i] == 033 ? " ^" : (bytes[i] < 0x20 ? "\\%03o" : "%c"), bytes[i]);
	shown[at] = '\0';
	return shown;
}

static void test_undo(void)
{
	static const struct {
		const char *in, *undo;
	} rows[] = {
		{ "", "" },
		{ "text\r\n", "" },
		{ CSI "?1049h", " ^[?1049l" },
		{ CSI "?1049h" CSI "?1049l", "" },
		{ CSI "?1047h" CSI "?47h", " ^[?47l ^[?1047l" },
		{ CSI "?47h" CSI "?1049l", "" },
		{ CSI "?1000;1006h" CSI "?1003h", " ^[?1000l ^[?1003l ^[?1006l" },
		{ CSI "?9h" CSI "?1002h" CSI "?1005h" CSI "?1015h" CSI "?1016h",
			" ^[?9l ^[?1002l ^[?1005l ^[?1015l ^[?1016l" },
		{ CSI "?1000h" CSI "?1000l", "" },
		{ CSI "?2004h" CSI "?1004h" CSI "?2026h" CSI "?2031h" CSI "?2048h",
			" ^[?2026l ^[?1004l ^[?2004l ^[?2031l ^[?2048l" },
		{ CSI "?1h" ESC "=", " ^[?1l ^>" },
		{ CSI "?1h" ESC "=" CSI "?1l" ESC ">", "" },
		{ CSI "?25l", " ^[?25h" },
		{ CSI "?25l" CSI "?12;25h", "" },
		{ CSI "?6h" CSI "?7l" CSI "?5h" CSI "4h" CSI "20h",
			" ^[?5l ^[?6l ^[?7h ^[4l ^[20l" },
		{ CSI "?69h" CSI "2;20s", " ^[?69l" },
		{ CSI "2;20r", " ^7 ^[r ^8" },
		{ CSI "2;20r" CSI "r", "" },
		{ ESC "(0", " ^(B" },
		{ ESC "(0x" ESC "(B" ESC ")0", "" },
		{ "\016", "\\017" },
		{ "\016x\017", "" },
		{ ESC "n", "\\017" },
		{ CSI ">1u", " ^[<1u" },
		{ CSI ">1u" CSI ">5u" CSI "<u", " ^[<1u" },
		{ CSI ">1u" CSI "<5u", "" },
		{ CSI ">1u" CSI "?1049h" CSI ">3u" CSI ">3u", " ^[<2u ^[?1049l ^[<1u" },
		{ CSI "=5u", " ^[=0u" },
		{ CSI "=5u" CSI "=0u", "" },
		{ CSI "=5;2u" CSI "=1;3u", " ^[=0u" },
		{ CSI ">4;2m", " ^[>4m" },
		{ CSI ">4;2m" CSI ">4;0m", "" },
		{ CSI ">4;2m" CSI ">1;3m" CSI ">4m", " ^[>1m" },
		{ CSI ">4;2m" CSI ">m", "" },
		{ CSI ">4n", " ^[>4m" },
		{ CSI "2 q", " ^[0 q" },
		{ CSI "2 q" CSI "0 q", "" },
		{ CSI "?1c", " ^[?0c" },
		{ CSI "1\"q", " ^[0\"q" },
		{ CSI "3g", " ^[?5W" },
		{ CSI "31m", " ^[0m" },
		{ CSI "31m" CSI "m", "" },
		{ CSI "31m" CSI "0m", "" },
		{ CSI "31;0m", "" },
		{ CSI "0;31m", " ^[0m" },
		{ CSI "38;5;0m", " ^[0m" },
		{ CSI "48;2;0;0;0m", " ^[0m" },
		{ CSI "38;5;0;0m", "" },
		{ CSI "38:5:0m", " ^[0m" },
		{ CSI "39;49m", "" },
		{ CSI "1m" CSI "39m", " ^[0m" },
		/* A saved cursor brings back what it was saved with. */
		{ CSI "31m" ESC "(0" ESC "7" ESC "(B" CSI "m", "" },
		{ CSI "31m" ESC "(0" ESC "7" ESC "(B" CSI "m" ESC "8", " ^(B ^[0m" },
		{ CSI "31m" CSI "s" CSI "m" CSI "u", " ^[0m" },
		{ CSI "31m" CSI "?1049h" CSI "m" CSI "?1049l", " ^[0m" },
		{ CSI "?6h" ESC "7" CSI "?6l" ESC "8", " ^[?6l" },
		{ ESC "7" CSI "31m" ESC "8", "" },
		{ CSI "31m" ESC "7" CSI "m" ESC "7" ESC "8", "" },
		{ CSI "1m" ESC "7" CSI "?47h" CSI "m" ESC "7" CSI "?47l" ESC "8", " ^[0m" },
		{ CSI "?47h" CSI "1m" ESC "7" CSI "?47l" CSI "m" ESC "8", " ^[0m" },
		{ CSI "1m" ESC "7" CSI "m" CSI "2;3r", " ^7 ^[r ^8" },
		{ CSI "1m" CSI "?1049h" CSI "m", " ^[?1049l ^[0m" },
		{ CSI "?6h" CSI "?1049h" CSI "?6l", " ^[?1049l ^[?6l" },
		{ CSI "?1000h" CSI "?1000s" CSI "?1000l" CSI "?1000r", " ^[?1000l" },
		/* Colours and links. */
		{ OSC "8;;https://example.org" ST, " ^]8;; ^\\" },
		{ OSC "8;;https://example.org" ST "x" OSC "8;;" ST, "" },
		{ OSC "8;;file:///x" ST, "" },
		{ OSC "11;black\a", " ^]111 ^\\ ^]112 ^\\" },
		{ OSC "11;black\a" OSC "111\a" OSC "112\a", "" },
		{ OSC "10;?\a" OSC "4;1;?\a", "" },
		{ OSC "4;1;red;2;?\a", " ^]104 ^\\" },
		{ OSC "4;1;red\a" OSC "104;1\a", " ^]104 ^\\" },
		{ OSC "4;1;red\a" OSC "104\a", "" },
		/* Resets: the soft one leaves the mouse and the screen. */
		{ CSI "?1049h" CSI "?25l" CSI "31m" CSI ">1u" ESC "(0" ESC "c", "" },
		{ CSI "?1049h" CSI "?25l" CSI "31m" CSI "2;3r" ESC "=" CSI "!p", " ^[?1049l" },
		/* Only a picture is begun before its end is known. */
		{ CSI "31", "" },
		{ OSC "0;title", "" },
		{ ESC "Pq~~", " ^\\" },
		{ ESC "Pq~~" CSI "3", " ^\\" },
		{ ESC "Pq~~" ST, "" },
		/* What was dropped has changed nothing. */
		{ CSI "?25;46l", "" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct term_filter f = { 0 }, again;

		feed(&f, rows[i].in);
		CHECK_STR(undo(&f), rows[i].undo);
		/* What undoes may itself pass, and leaves nothing to undo. */
		again = f;
		term_filter_pass(&again, room + 1024, term_filter_undo(&f, room + 1024), room);
		CHECK_STR(undo(&again), "");
		CHECK(again.dropped == f.dropped || f.n_held > 0);
	}
}

/* Whoever knows the size of the window need not undo what is not there. */
static void test_rows(void)
{
	static const struct {
		const char *in, *undo;
	} rows[] = {
		{ CSI "1;24r", "" },
		{ CSI ";24r", "" },
		{ CSI "1;99r", "" },
		{ CSI "1;23r", " ^7 ^[r ^8" },
		{ CSI "2;24r", " ^7 ^[r ^8" },
		{ CSI "2r", " ^7 ^[r ^8" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct term_filter f = { .state.rows = 24 };

		feed(&f, rows[i].in);
		CHECK_STR(undo(&f), rows[i].undo);
	}
}

/* Everything at once fits. */
static void test_undo_most(void)
{
	struct term_filter f = { 0 };
	char text[64], bytes[TERM_FILTER_UNDO_MAX];

	feed(&f, CSI ">1u" CSI "=1u");
	for (size_t i = 0; i < TERM_MODE_COUNT; i++) {
		const struct term_mode *mode = &term_modes[i];

		if (!mode->rest)
			continue;
		snprintf(text, sizeof(text), mode->prefix ? CSI "?%u%c" : CSI "%u%c", mode->number,
			mode->rest == 'h' ? 'l' : 'h');
		feed(&f, text);
	}
	for (int i = 0; i < 8; i++) {
		snprintf(text, sizeof(text), CSI ">%d;2m", i);
		feed(&f, text);
	}
	for (int i = 0; i < 300; i++)
		feed(&f, CSI ">1u");
	feed(&f,
		CSI "=1u" ESC "(0\016" CSI "31m" CSI "1\"q" CSI "2;3r" ESC "=" CSI "3 q" CSI "?1c");
	feed(&f, ESC "H" OSC "8;;http://x" ST OSC "4;1;red" ST OSC "10;red" ST ESC "Pq");
	CHECK(f.dropped == 0);
	CHECK(term_filter_undo(&f, bytes) > 300);
	CHECK(strstr(undo(&f), " ^[<255u"));
	feed(&f, ESC "c");
	CHECK_STR(undo(&f), " ^]104 ^\\ ^]110 ^\\ ^]111 ^\\ ^]112 ^\\");
}

static void test_answers(void)
{
	static const struct {
		const char *out, *in;
		int left;
	} rows[] = {
		{ "text" CSI "31m", "", 0 },
		{ CSI "c", "", 1 },
		{ CSI "c", CSI "?62;22c", 0 },
		{ CSI "6n" CSI "5n", CSI "12;40R", 1 },
		{ CSI "6n" CSI "5n", CSI "12;40R" CSI "0n", 0 },
		{ CSI ">c" CSI ">q" CSI "?2026$p" CSI "14t",
			CSI ">41;370;0c" ESC "P>|XTerm(370)" ST CSI "?2026;2$y" CSI "4;1;1t", 0 },
		{ OSC "10;?" ST OSC "11;?\a", OSC "10;rgb:0/0/0" ST, 1 },
		{ OSC "10;?;?" ST, OSC "10;rgb:0/0/0" ST OSC "11;rgb:0/0/0\a", 0 },
		{ OSC "4;1;?;2;?" ST, "", 2 },
		/* Keys are no answers. */
		{ CSI "c", "abc\r" ESC "OA" CSI "A" CSI "1;5C" CSI "97;5u" CSI "200~x" CSI "201~",
			1 },
		{ CSI "?u" CSI "?4m", CSI "?1u" CSI ">4;2m", 0 },
		/* Not all questions are answered by all; what follows them settles it. */
		{ CSI "?u" CSI "?996n" CSI "c", CSI "?62c", 0 },
		{ CSI "?u" CSI "c" CSI "?996n", CSI "?62c", 1 },
		{ CSI "?u" CSI "c" CSI "?996n" CSI "c", CSI "?62c", 3 },
		{ CSI "?u" CSI "c" CSI "?996n" CSI "c", CSI "?62c" CSI "?62c", 0 },
		/* More than was asked. */
		{ CSI "c", CSI "?62c" CSI "?62c" CSI "1;1R", 0 },
		/* What was dropped is not answered. */
		{ CSI "21t" CSI "=c" ESC "Z\005" OSC "52;c;?" ST, "", 0 },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		for (size_t cut = 0; cut <= strlen(rows[i].in); cut++) {
			struct term_filter f = { 0 };

			feed(&f, rows[i].out);
			term_filter_answered(&f, rows[i].in, cut);
			term_filter_answered(&f, rows[i].in + cut, strlen(rows[i].in) - cut);
			CHECK((int)(f.state.queries - f.state.answers) == rows[i].left);
			CHECK(term_filter_expects_answer(&f) == (rows[i].left > 0));
		}
}

/* Unfiltered, everything passes as it is, and is remembered all the same. */
static void test_raw(void)
{
	static const char in[] = "\005\2335i\302" CSI "?25\nl" CSI "21t" OSC "52;c;?\a" CSI "?1;2l"
				 "\016\030" ESC "Z" ESC "_x" ST CSI "?1000h" OSC "9;x";
	static const char most[] = CSI "?9999999h" CSI ">99;1m" CSI ">99n" CSI "1;2:3m";
	struct term_filter f = { .is_raw = true };
	size_t n = sizeof(in) - 1;

	for (size_t cut = 0; cut <= n; cut++) {
		size_t done;

		f = (struct term_filter){ .is_raw = true };
		done = term_filter_pass(&f, in, cut, room);
		CHECK(done == cut);
		done += term_filter_pass(&f, in + cut, n - cut, room + done);
		CHECK(done == n && memcmp(in, room, n) == 0 && f.dropped == 0);
		CHECK_STR(undo(&f), " ^\\ ^[?1000l ^[?25h\\017");
		CHECK(term_filter_expects_answer(&f));
	}
	f = (struct term_filter){ .is_raw = true };
	feed(&f, most);
	CHECK_STR(undo(&f), " ^[0m");
	f = (struct term_filter){ .is_raw = true };
	feed(&f, "text" CSI "1m" OSC "0;x\a");
	CHECK(!term_filter_expects_answer(&f));
	feed(&f, ESC "P$qm" ST);
	CHECK(term_filter_expects_answer(&f));
}

int main(void)
{
	test_undo();
	test_rows();
	test_undo_most();
	test_answers();
	test_raw();
	return check_report();
}
