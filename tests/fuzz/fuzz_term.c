/*
 * Hostile output through the filter. Where it is cut makes no difference; what came out comes out
 * again unchanged, and holds nothing of what must not pass; what undoes has its bounds, and works.
 * The first byte says where to cut.
 */
#include <stdbool.h>
#include <stdio.h>

#include "base/count.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "term/term_cast.h"
#include "term/term_filter.h"

static void demand(bool is_so, const char *what)
{
	if (is_so)
		return;
	fprintf(stderr, "not so: %s\n", what);
	abort();
}

/* All of the input in pieces of `step`; the result is the caller's. */
static char *pass(struct term_filter *f, const char *in, size_t n, size_t step, size_t *ret)
{
	char *out = malloc(n + TERM_FILTER_HELD);
	size_t done = 0;

	if (!out)
		abort();
	for (size_t i = 0; i < n; i += step) {
		size_t piece = n - i < step ? n - i : step;
		char *room = malloc(piece + TERM_FILTER_HELD); /* and not a byte more */
		size_t got;

		if (!room)
			abort();
		got = term_filter_pass(f, in + i, piece, room);
		demand(got <= piece + TERM_FILTER_HELD && done + got <= n, "bytes were added");
		memcpy(out + done, room, got);
		done += got;
		free(room);
	}
	*ret = done;
	return out;
}

/* Written for this question alone: finds by looking for what must never be there. */
static void search(const char *out, size_t n)
{
	static const char *const never[] = { "\005", "\021", "\023", "\033]5", "\033]7", "\033]9",
		"\033]52", "\033]1337", "\033]633", "\033_", "\033^", "\033X", "\033k", "\033P$",
		"\033P+", "\033P>", "\033P=", "\033Ptmux", "\033P|", "\033Z", "\033%@", "\033 G",
		"\033G", "\033}", "\033[i", "\033[5i", "\033[?5i", "\033[t", "\033[20t", "\033[21t",
		"\033[8;1;1t", "\033[=c", "\033[x", "\033[?2l", "\033[?46h", "\033[2h",
		"\033[12l" };

	for (size_t i = 0; i < COUNT_OF(never); i++)
		demand(!memmem(out, n, never[i], strlen(never[i])), never[i] + 1);
	for (size_t i = 0; i < n;) {
		uint32_t c = 0;
		size_t width = utf8_decode(out + i, n - i, &c);

		demand(width ? c < 0x80 || c >= 0xa0 : (unsigned char)out[i] >= 0xa0, "C1");
		i += width ? width : 1;
	}
}

static void check_undo(const struct term_filter *f)
{
	char undo[TERM_FILTER_UNDO_MAX], *out;
	struct term_filter rest = { .state = f->state, .at = f->base, .base = f->base };
	size_t n = term_filter_undo(f, undo), n_out;

	demand(n <= sizeof(undo), "what undoes has a bound");
	out = pass(&rest, undo, n, n + 1, &n_out);
	demand(n_out == n && memcmp(out, undo, n) == 0, "what undoes may pass");
	demand(term_filter_undo(&rest, undo) == 0, "nothing is left to undo");
	free(out);
}

static void check_raw(const char *in, size_t n, size_t step)
{
	struct term_filter f = { .is_raw = true };
	char undo[TERM_FILTER_UNDO_MAX], *out;
	size_t n_out;

	out = pass(&f, in, n, step, &n_out);
	demand(n_out == n && memcmp(in, out, n) == 0 && f.dropped == 0, "raw is unchanged");
	demand(term_filter_undo(&f, undo) <= sizeof(undo), "what undoes has a bound");
	term_filter_answered(&f, in, n);
	free(out);
}

/* A recording of it is UTF-8 on lines. */
static void check_cast(const char *in, size_t n, size_t step)
{
	struct term_cast c = { .is_plain = step & 1 };
	struct buf out;

	buf_init(&out, 64 * n + 4096 * (n / step + 2));
	for (size_t i = 0; i < n; i += step)
		term_cast_output(&c, i, in + i, n - i < step ? n - i : step, &out);
	term_cast_end(&c, n, &out);
	demand(!out.failed, "there is room");
	for (size_t i = 0; i < out.len;) {
		uint32_t decoded = 0;
		size_t width = utf8_decode(out.data + i, out.len - i, &decoded);

		demand(width > 0 && (decoded >= 0x20 || decoded == '\n'), "a recording is text");
		i += width;
	}
	buf_done(&out);
}

/* With a letter more, which shows that nothing waits: a byte that starts a character would. */
static void check_again(const char *out, size_t n, size_t step)
{
	struct term_filter f = { 0 };
	char *longer = malloc(n + 1), *again;
	size_t n_again;

	if (!longer)
		abort();
	memcpy(longer, out, n);
	longer[n] = 'x';
	again = pass(&f, longer, n + 1, step, &n_again);
	demand(n_again == n + 1 && memcmp(longer, again, n_again) == 0, "what passed passes");
	demand(f.dropped == 0, "what passed has nothing to drop");
	free(longer);
	free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *in = (const char *)data + (size > 0);
	size_t n = size ? size - 1 : 0, step = size ? data[0] % 32 + 1U : 1, n_whole, n_cut;
	struct term_filter whole = { 0 }, cut = { 0 };
	char *out = pass(&whole, in, n, n + 1, &n_whole);
	char *out_cut = pass(&cut, in, n, step, &n_cut);

	demand(n_cut == n_whole && memcmp(out, out_cut, n_cut) == 0, "a cut makes no difference");
	demand(cut.dropped == whole.dropped, "a cut does not count");
	demand(memcmp(&cut.state, &whole.state, sizeof(cut.state)) == 0, "a cut is not remembered");
	check_again(out, n_whole, step);
	search(out, n_whole);
	check_undo(&whole);
	check_raw(in, n, step);
	check_cast(in, n, step);
	free(out);
	free(out_cut);
	return 0;
}
