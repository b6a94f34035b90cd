/* What a caged command may say to a terminal; each row is fed whole, byte by byte and in two. */
#include <ctype.h>

#include "base/count.h"
#include "check.h"
#include "term/term_filter.h"

struct row {
	const char *in, *out;
	size_t n_in, n_out;
};

#define ROW(in, out)                                                                               \
	{                                                                                          \
		(in), (out), sizeof(in) - 1, sizeof(out) - 1                                       \
	}
#define PASSES(text) ROW("a" text "b", "a" text "b")
#define DROPS(text)  ROW("a" text "b", "ab")

#define ESC "\033"
#define CSI "\033["
#define OSC "\033]"
#define DCS "\033P"
#define ST  "\033\\"
#define BEL "\a"

static char room[1 << 16];

static void show(const char *what, const char *text, size_t n)
{
	printf("%s", what);
	for (size_t i = 0; i < n; i++)
		printf(isprint((unsigned char)text[i]) ? "%c" : "\\%03o", (unsigned char)text[i]);
	printf("\n");
}

static size_t pass_cut(struct term_filter *f, const struct row *row, size_t cut, char *out)
{
	size_t n = term_filter_pass(f, row->in, cut, out);

	return n + term_filter_pass(f, row->in + cut, row->n_in - cut, out + n);
}

static bool is_same_by_byte(const struct row *row)
{
	struct term_filter f = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < row->n_in; i++)
		n += term_filter_pass(&f, row->in + i, 1, room + n);
	return n == row->n_out && memcmp(room, row->out, n) == 0;
}

/* The twin: without the filter the same bytes arrive. */
static bool is_raw_as_it_was(const struct row *row)
{
	struct term_filter f = { .is_raw = true };

	return term_filter_pass(&f, row->in, row->n_in, room) == row->n_in &&
	       memcmp(room, row->in, row->n_in) == 0 && f.dropped == 0;
}

static void check_row(const struct row *row)
{
	bool is_good = true;

	for (size_t cut = 0; cut <= row->n_in && is_good; cut++) {
		struct term_filter f = { 0 };
		size_t n = pass_cut(&f, row, cut, room);

		is_good = n == row->n_out && memcmp(room, row->out, n) == 0;
		is_good = is_good && (n == row->n_in || f.dropped > 0 || f.n_held > 0);
		if (!is_good)
			printf("cut at %zu, %u dropped\n", cut, (unsigned)f.dropped);
	}
	is_good = is_good && is_same_by_byte(row);
	CHECK(is_good);
	CHECK(is_raw_as_it_was(row));
	if (!is_good) {
		struct term_filter f = { 0 };

		show("    in: ", row->in, row->n_in);
		show("   got: ", room, term_filter_pass(&f, row->in, row->n_in, room));
		show("wanted: ", row->out, row->n_out);
	}
}

#define CHECK_ROWS(rows)                                                                           \
	for (size_t i_ = 0; i_ < COUNT_OF(rows); i_++)                                             \
	check_row(&(rows)[i_])

/* --- text --- */

static void test_text(void)
{
	static const struct row rows[] = {
		ROW("", ""),
		PASSES("plain text\r\nand\ttabs\b\v\f\a"),
		PASSES("Größe — „日本語“ 🙂 é 中"),
		PASSES("exactly sixteen!exactly sixteen!é"),
		PASSES("\0\177"),
		PASSES("\016lqqk\017"),
		/* ENQ is answered; XON and XOFF stop the other side; markers of readline. */
		DROPS("\005"),
		DROPS("\001\002\003\004\006\020\021\022\023\024\025\026\027\031\034\035\036\037"),
		/* Starts of a ZMODEM transfer, and of a command to Emacs. */
		ROW("**\030B00000000000000\r", "**B00000000000000\r"),
		ROW("\032/etc\n", "/etc\n"),
	};

	CHECK_ROWS(rows);
}

/* Bytes that are no UTF-8, and the controls that are two bytes in it. */
static void test_bytes(void)
{
	static const struct row rows[] = {
		ROW("a\302\2335ib", "a5ib"),         /* U+009B, CSI */
		ROW("a\302\2350;x\ab", "a0;x\ab"),   /* U+009D, OSC */
		ROW("a\302\220q\302\234b", "aqb"),   /* U+0090, DCS, and ST */
		ROW("\342\302\235\302\205", "\342"), /* twice encoded text */
		PASSES("\302\240\302\277"),
		ROW("a\2335nb", "a5nb"),
		ROW("a\200\237b", "ab"),
		ROW("a\240\377\376b", "a\240\377\376b"),
		ROW("\342\202", ""), /* unfinished: waits */
		ROW("\342\202x", "\342x"),
		ROW("\342\342\202\254", "\342\342\202\254"),
		ROW("\340\200\233x", "\340x"),     /* overlong */
		ROW("\355\240\200x", "\355\240x"), /* half of a pair */
		ROW("\360\217\277\277x", "\360\277\277x"),
		ROW("\364\220\200\200x", "\364x"),
		ROW("\300\233\301\277\365\200\200\200", "\300\301\277\365"),
		ROW("\302\005\233x", "\302x"), /* what is dropped between makes no control */
		ROW("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\302\233aaaaaaaaaaaaaaaaaaaaaaaa",
			"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
		ROW("ääääääääääääääääää\302\233ääääääääääääääää\233ää",
			"ääääääääääääääääääääääääääääääääääää"),
	};

	CHECK_ROWS(rows);
}

/* --- what full-screen programs need --- */

static void test_passes(void)
{
	static const struct row rows[] = {
		PASSES(CSI "31m"),
		PASSES(CSI "38;2;1;2;3;48;5;7m"),
		PASSES(CSI "4:3m" CSI "38:2::1:2:3m"),
		PASSES(CSI "H" CSI "2J" CSI "K" CSI "10;20H" CSI "3A" CSI "999C" CSI "1;24r"),
		PASSES(CSI "4L" CSI "4M" CSI "4P" CSI "4@" CSI "4X" CSI "4S" CSI "4T" CSI "4b"),
		PASSES(CSI "s" CSI "u" ESC "7" ESC "8" ESC "=" ESC ">" ESC "M" ESC "D" ESC "E"),
		PASSES(CSI "?1049h" CSI "?1;25l" CSI "?2004h" CSI "?1004h" CSI "?2026h"),
		PASSES(CSI "?1000h" CSI "?1002h" CSI "?1003h" CSI "?1006h" CSI "?1015h" CSI
			   "?1016h"),
		PASSES(CSI "4l" CSI "20h" CSI "?7l" CSI "?1007h" CSI "?1034h" CSI "?2048h"),
		PASSES(CSI "c" CSI "0c" CSI ">c" CSI ">0c" CSI ">q" CSI ">0q"),
		PASSES(CSI "5n" CSI "6n" CSI "?6n" CSI "?996n"),
		PASSES(CSI "?2026$p" CSI "4$p"),
		PASSES(CSI "?u" CSI ">1u" CSI "<u" CSI "=5;1u"),
		PASSES(CSI ">4;2m" CSI ">4m" CSI "?4m" CSI ">4n"),
		PASSES(CSI "2 q" CSI " q" CSI "!p"),
		PASSES(CSI "14t" CSI "16t" CSI "18t"),
		PASSES(CSI "22;0;0t" CSI "23;0;0t" CSI "22t" CSI "23t" CSI "22;2t" CSI "23;0t"),
		PASSES(CSI "?1;1;0S"),
		PASSES(CSI "1;2;3;4;1$r" CSI "1;2'}" CSI "0\"q" CSI "#{" CSI "#}"),
		PASSES(CSI "?25h" CSI "?0c"),
		PASSES(ESC "(0" ESC ")B" ESC "*A" ESC "+B" ESC "#8" ESC "%G" ESC "c" ESC "H" ESC
			   "<"),
		PASSES(OSC "0;a title" BEL),
		PASSES(OSC "2;✳ Größe 日本" ST),
		PASSES(OSC "1;" BEL),
		PASSES(OSC "10;?" ST OSC "11;?" BEL OSC "12;red" BEL OSC "4;1;rgb:ff/00/00" ST),
		PASSES(OSC "104" BEL OSC "104;1;2" BEL OSC "110" BEL OSC "111" ST OSC "112" BEL),
		PASSES(OSC "8;;https://example.org/a?b=c#d" ST "text" OSC "8;;" ST),
		PASSES(OSC "8;id=1;MAILTO:a@example.org" BEL),
		PASSES(OSC "133;A;aid=1" BEL OSC "133;D;0" ST),
		PASSES(DCS "0;1;0q\"1;1;2;2#0;2;0;0;0~~\r\n-" ST),
		PASSES(DCS "q~~" ST),
	};

	CHECK_ROWS(rows);
}

/* How programs begin and end, as recorded; vim tries out what the terminal makes of nonsense. */
static void test_programs(void)
{
	static const struct row rows[] = {
		PASSES(CSI "?1049h" CSI "22;0;0t" CSI "?1h\033=\r" CSI "?1000h" CSI "?1006h"),
		PASSES("\r" CSI "K" CSI "?1l\033>" CSI "23;0;0t" CSI "?1049l"),
		PASSES(CSI "?2004h$ ls\r\n" CSI "?2004l\r" CSI "0m" CSI "01;34msrc" CSI "0m"),
		PASSES(CSI "?1049h" CSI "22;0;0t" CSI ">4;2m" CSI "?1h\033=" CSI "?2004h" CSI
			   "?1004h" CSI "1;24r" CSI "?12h" CSI "?12l" CSI "22;2t" CSI "22;1t"),
		PASSES(OSC "10;?" BEL OSC "11;?" BEL CSI "?4m" CSI ">c" CSI "6n" CSI "?25h"),
		ROW("\xe2\x96\xbd" CSI "6n" CSI "2;1H  " CSI "3;1H" DCS "zz" ST CSI "0%m" CSI
		    "6n" DCS "+q436f" ST,
			"\xe2\x96\xbd" CSI "6n" CSI "2;1H  " CSI "3;1H" CSI "6n"),
		PASSES(CSI "?1049h" CSI "22;0;0t" ESC "(B" CSI "m" CSI "?1l" ESC ">" CSI "H" CSI
			   "2J" CSI "?12l" CSI "?25h" CSI "?1000l" CSI "?1002l" CSI "?1006l" CSI
			   "?1005l" CSI "c" CSI ">4;1m" CSI "?1004h" CSI ">c" CSI ">q"),
		PASSES(CSI "?7727h" CSI "?7727l" CSI "34h" CSI "?25h" CSI "?0c"),
		ROW(ESC "c" OSC "104" BEL CSI "!p" CSI "?3;4l" CSI "4l" ESC ">" CSI "?69l",
			ESC "c" OSC "104" BEL CSI "!p" CSI "4l" ESC ">" CSI "?69l"),
	};

	CHECK_ROWS(rows);
}

/* --- what must not pass --- */

/* Known holes of terminals, and what they were called. */
static void test_holes(void)
{
	static const struct row rows[] = {
		/* Title and icon reports: CVE-2003-0063 and its kin in twenty terminals
		 * (CVE-2010-2713 vte, CVE-2022-23465, CVE-2024-38396, CVE-2024-56803). */
		DROPS(CSI "21t"),
		DROPS(CSI "20t"),
		DROPS(CSI "021t"),
		DROPS(CSI ";21t"),
		DROPS(CSI "21;0t"),
		ROW("a" CSI "2\n1tb", "a\nb"),
		/* Settings as a report: CVE-2008-2383, CVE-2022-45872. */
		DROPS(DCS "$q\"p" ST),
		DROPS(DCS "$qm\n; id #\n" ST),
		/* Fonts: CVE-2022-45063, CVE-2023-39726; backgrounds: CVE-2022-4170. */
		DROPS(OSC "50;i\nid\n" BEL),
		DROPS(OSC "50;?" BEL),
		DROPS(OSC "20;x;id" BEL),
		/* A dump of the screen into a file: CVE-2003-0021, CVE-2003-0022. */
		DROPS(OSC "55;/home/user/.bashrc" BEL),
		/* Menus, and what they type: CVE-2003-0023. */
		DROPS(OSC "10;[main]" BEL),
		DROPS(OSC "703;[main]" BEL),
		/* iTerm2's way to tmux: CVE-2019-9535, CVE-2023-46300; its uploads: CVE-2023-46301.
		 */
		DROPS(DCS "1000p%begin 1 1 0\r\n%exit\r\n" ST),
		DROPS(OSC "1337;RequestUpload=format=tgz" BEL),
		/* Links that run: CVE-2023-46321, CVE-2023-46322. */
		DROPS(OSC "8;;x-man-page://-Pid/x" ST),
		DROPS(OSC "8;;ssh://-oProxyCommand=id/" ST),
		/* rxvt-unicode answers with a line feed: CVE-2021-33477. */
		ROW("a" ESC "GQb", "aQb"),
		/* Notices with commands: CVE-2022-41322; pictures that read files: CVE-2020-35605.
		 */
		DROPS(OSC "99;i=1:a=report;x" ST),
		DROPS(ESC "_Ga=T,t=f;L2V0Yy9wYXNzd2Q=" ST),
		/* Counts that hang: CVE-2012-2738; too many of them: CVE-2023-40216. */
		DROPS(CSI "2147483647L"),
		DROPS(CSI "99999999999999999999;1H"),
		DROPS(CSI "1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1m"),
		/* Graphics as programs: CVE-2023-40359. */
		DROPS(DCS "pS(E)" ST),
		/* Terminology's commands: CVE-2018-20167. */
		ROW("a" ESC "}pn/etc/passwd", "apn/etc/passwd"),
		/* ConEmu's way to start programs, and those of KiTTY, mlterm and Emacs. */
		DROPS(OSC "9;7;calc.exe" ST),
		DROPS(OSC "0;__cm:calc.exe" BEL),
		DROPS(OSC "5379;exec id" BEL),
		DROPS(OSC "51;Efind-file /etc/passwd" ST),
		ROW("a" ESC "AnSiTc /etc\n", "anSiTc /etc\n"),
	};

	CHECK_ROWS(rows);
}

static void test_drops(void)
{
	static const struct row rows[] = {
		/* The clipboard, both ways; whatever its number looks like. */
		DROPS(OSC "52;c;aWQK" BEL),
		DROPS(OSC "52;c;?" ST),
		DROPS(OSC "052;c;?" ST),
		DROPS(OSC "5522;type=read;." ST),
		DROPS(OSC "52" ST),
		/* Folders, files, notices, editors, and what nobody knows. */
		DROPS(OSC "7;file://host/etc" ST),
		DROPS(OSC "9;hello" BEL),
		DROPS(OSC "9;4;1;50" BEL),
		DROPS(OSC "777;notify;a;b" BEL),
		DROPS(OSC "1337;File=name=eA==;inline=0:eA==" BEL),
		DROPS(OSC "633;E;id" BEL),
		DROPS(OSC "66;s=2;x" BEL),
		DROPS(OSC "5113;ac=send" ST),
		DROPS(OSC "99999;x" BEL),
		DROPS(OSC "4294967296;x" BEL),
		DROPS(OSC ";x" BEL),
		DROPS(OSC "lx" ST),
		DROPS(OSC BEL),
		/* Links elsewhere. */
		DROPS(OSC "8;;file:///etc/passwd" ST),
		DROPS(OSC "8;;javascript:alert(1)" ST),
		DROPS(OSC "8;;/etc/passwd" ST),
		DROPS(OSC "8;;http:/x" ST),
		DROPS(OSC "8;;https://example.org/\303\244" ST),
		DROPS(OSC "8;;https://example.org/ x" ST),
		DROPS(OSC "8;https://example.org" ST),
		/* Titles that hide something. */
		DROPS(OSC "0;a\nb" BEL),
		DROPS(OSC "2;a\342\200\256b" BEL),
		DROPS(OSC "2;a\302\205b" BEL),
		DROPS(OSC "2;a\377b" BEL),
		/* Windows, printers, reports. */
		DROPS(CSI "8;100;100t"),
		DROPS(CSI "3;0;0t" CSI "1t" CSI "2t" CSI "5t" CSI "6t" CSI "9;1t" CSI "10;1t"),
		DROPS(CSI "11t" CSI "13t" CSI "15t" CSI "19t" CSI "t" CSI "22;3t" CSI "22;0;0;0t"),
		DROPS(CSI ">0t" CSI ">2T" CSI "1;2;3;4;5T" CSI "?1t"),
		DROPS(CSI "i" CSI "5i" CSI "?5i" CSI "?i"),
		DROPS(CSI "=c" CSI "=0c" CSI "1c"),
		DROPS(CSI "?15n" CSI "?25n" CSI "?26n" CSI "?53n" CSI "?62n" CSI "?63n" CSI "7n"),
		DROPS(CSI "x" CSI "1x" CSI "1$w" CSI "2$w" CSI "1$u" CSI "&u" CSI "&w"),
		DROPS(CSI "1;1;1;1;5;5*y" CSI "1#y" CSI "#|" CSI "#R" CSI "1*z" CSI "+p"),
		DROPS(CSI "1'z" CSI "'|" CSI "1'{" CSI "'w"),
		DROPS(CSI "80$|" CSI "24*|" CSI "1$}" CSI "2$~" CSI "61;0\"p" CSI "1q" CSI "2;1y"),
		DROPS(CSI "12;2]"),
		/* Modes that lock, echo, log, resize, speak another language. */
		DROPS(CSI "2h" CSI "12l" CSI "?2l" CSI "?38h" CSI "?3h" CSI "?40h" CSI "?46h"),
		DROPS(CSI "?25;2l"),
		DROPS(CSI "?1001h" CSI "?1041h" CSI "?1042h" CSI "?1043h" CSI "?1061h" CSI
			  "?5522h"),
		DROPS(CSI "?65538l" CSI "?7777777h"),
		DROPS(CSI "?1:2h"),
		/* Other strings. */
		DROPS(DCS "+q544e" ST),
		ROW("a" DCS "tmux;" ESC ESC "]52;c;eA==" BEL ST "b", "a" ST "b"),
		DROPS(DCS "0;1|17/0a" ST),
		DROPS(DCS "1;1;1!zhello" ST),
		DROPS(DCS ">|x" ST),
		DROPS(DCS "=1s" ST),
		DROPS(DCS "0$q" ST),
		DROPS(ESC "Xstart\a of string" ST),
		DROPS(ESC "^privacy" ST),
		DROPS(ESC "kwindow" ST),
		ROW("a" ESC "_any" CSI "5i" ST "b", "a" ST "b"),
		/* Short ones. */
		DROPS(ESC "Z"),
		DROPS(ESC "%@"),
		DROPS(ESC " G"),
		DROPS(ESC "l" ESC "m" ESC "|" ESC "~" ESC "V" ESC "F"),
		DROPS(ESC "(%5" ESC "(\"4"),
		/* The Linux console's, which end by themselves. */
		DROPS(OSC "R"),
		DROPS(OSC "P0123456"),
		ROW(OSC "P01\n", "\n"),
	};

	CHECK_ROWS(rows);
}

/* --- how sequences end --- */

static void test_ends(void)
{
	static const struct row rows[] = {
		/* Controls inside a sequence are obeyed at once, the rest of it counts. */
		ROW("a" CSI "3\n1mb", "a\n" CSI "31mb"),
		ROW("a" CSI "2\0051tb", "ab"),
		ROW("a" ESC "\r\n7b", "a\r\n" ESC "7b"),
		ROW("a" CSI "3\1771mb", "a" CSI "31mb"),
		/* Another sequence begins. */
		ROW("a" CSI "3" CSI "1mb", "a" CSI "1mb"),
		ROW("a" ESC ESC "7b", "a" ESC "7b"),
		ROW("a" OSC "0;x" CSI "1mb", "a" CSI "1mb"),
		ROW("a" OSC "52;c;eA==" OSC "0;x" BEL "b", "a" OSC "0;x" BEL "b"),
		/* Cancelled. */
		ROW("a" CSI "3\0301mb", "a1mb"),
		ROW("a" OSC "52;c;\032eA", "aeA"),
		ROW("a" DCS "$q\030m", "am"),
		/* Text that is no part of it. */
		ROW("a" CSI "3é", "aé"),
		ROW("a" ESC "é", "aé"),
		/* ST in two bytes of UTF-8; as part of a character it is none. */
		ROW("a" OSC "52;c;eA==\302\234b", "ab"),
		ROW("a" OSC "0;x\302\234b", "ab"),
		PASSES(OSC "0;\342\234\234" BEL),
		/* BEL ends an OSC only. */
		DROPS(ESC "_G\a" ST),
		/* Not well formed. */
		DROPS(CSI "1?h" CSI "1$2p" CSI "?>1h" CSI "!$p" CSI "1;2;3:4H"),
		/* A lone terminator is nothing. */
		PASSES(ST),
		/* Unfinished: waits. */
		ROW("a" ESC, "a"),
		ROW("a" CSI "38;5", "a"),
		ROW("a" OSC "0;title", "a"),
		/* Pictures: what is dropped inside has not ended them, what passes has. */
		ROW(DCS "q~\t\233é\177~" ST "b", DCS "q~~" ST "b"),
		ROW(DCS "q~" CSI "5i~\t" ST "\tb", DCS "q~~" ST "\tb"),
		ROW(DCS "q~" OSC "52;c;?" BEL "~é" ST, DCS "q~~" ST),
		ROW(DCS "q~" CSI "1m\té", DCS "q~" CSI "1m\té"),
		ROW(DCS "q~\030\té", DCS "q~\030\té"),
		ROW(DCS "q~" CSI "3\030\té", DCS "q~\030\té"),
		ROW(DCS "q~" CSI "3\t\n1m", DCS "q~\n" CSI "31m"),
		ROW(DCS "0000000000;0000000000;0000000000;0q~" ST "b", "b"),
	};

	CHECK_ROWS(rows);
}

/* As long as it may be, and one more. */
static void test_lengths(void)
{
	static char in[1 << 16], out[(1 << 16) + TERM_FILTER_HELD];
	static const struct {
		const char *start, *end;
		size_t most;
	} kinds[] = {
		{ OSC "0;", BEL, 256 },
		{ OSC "8;;http://", ST, TERM_FILTER_HELD - 14 },
		{ OSC "133;A", ST, 255 },
		{ CSI "1", "m", 5000 },
		{ OSC "52;c;", BEL, 0 },
		{ ESC "_G", ST, 0 },
	};

	for (size_t i = 0; i < COUNT_OF(kinds); i++)
		for (size_t n = kinds[i].most; n <= kinds[i].most + 1; n++) {
			struct term_filter f = { 0 };
			bool is_csi = kinds[i].start[1] == '[';
			size_t at = (size_t)sprintf(in, "%s", kinds[i].start), got;

			memset(in + at, is_csi ? ':' : 'x', n);
			at += n;
			at += (size_t)sprintf(in + at, "%s", kinds[i].end);
			got = term_filter_pass(&f, in, at, out);
			CHECK(got == (n <= kinds[i].most && kinds[i].most && !is_csi ? at : 0));
			CHECK(f.at == 0 && f.n_held == 0);
		}
	/* Dropped ones have no length at which they come out. */
	{
		struct term_filter f = { 0 };

		CHECK(term_filter_pass(&f, OSC "52;c;", 7, out) == 0);
		memset(in, 'x', sizeof(in));
		for (int i = 0; i < 64; i++)
			CHECK(term_filter_pass(&f, in, sizeof(in), out) == 0);
		CHECK(term_filter_pass(&f, BEL "b", 2, out) == 1 && f.dropped == 1);
	}
}

int main(void)
{
	test_text();
	test_bytes();
	test_passes();
	test_programs();
	test_holes();
	test_drops();
	test_ends();
	test_lengths();
	return check_report();
}
