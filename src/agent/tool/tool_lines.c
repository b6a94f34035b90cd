#include "agent/tool/tool_lines.h"

#include <inttypes.h>
#include <string.h>

#include "agent/tool/tool.h"
#include "base/utf8.h"

/* Returns how many of at most `max` bytes are complete characters. *ret_bad: one is invalid. */
static size_t lines_measure(const char *text, size_t n, size_t max, bool *ret_bad)
{
	size_t at = 0, width;
	uint32_t c;

	*ret_bad = false;
	for (; at < n && at < max; at += width) {
		width = (unsigned char)text[at] < 0x80 ? 1 : utf8_decode(text + at, n - at, &c);
		if (width == 0)
			*ret_bad = true;
		if (width == 0 || at + width > max)
			break;
	}
	return at;
}

static void put_cut(struct buf *out, size_t size)
{
	buf_printf(out, " … (cut: this line has %zu bytes)", size);
}

/* The line has ended, or the text. */
static void lines_print_line(struct tool_lines *l)
{
	bool is_bad;
	size_t shown = lines_measure(l->text, l->kept, TOOL_LINE_SIZE, &is_bad);

	/* Where the line is longer than what was kept, its last character may be cut in two. */
	if (is_bad && !(l->size > l->kept && l->kept - shown < 4)) {
		l->is_foreign = true;
		return;
	}
	if (l->out->len + shown + 128 > TOOL_MAX_OUTPUT) {
		l->has_more = true;
		return;
	}
	buf_printf(l->out, "%6" PRIu64 "\t", l->line + 1);
	buf_add(l->out, l->text, shown);
	if (shown < l->size)
		put_cut(l->out, l->size);
	buf_putc(l->out, '\n');
	l->printed++;
}

static bool is_done(const struct tool_lines *l)
{
	return l->has_nul || l->is_foreign || l->has_more;
}

static void keep_part(struct tool_lines *l, const char *bytes, size_t n)
{
	size_t room = sizeof(l->text) - l->kept;

	if (l->printed == l->count) {
		l->has_more = true;
		return;
	}
	memcpy(l->text + l->kept, bytes, n < room ? n : room);
	l->kept += n < room ? n : room;
	l->size += n;
}

bool tool_lines_feed(struct tool_lines *l, const char *bytes, size_t n)
{
	const char *end = bytes + n;

	l->has_nul = l->has_nul || memchr(bytes, '\0', n) != NULL;
	while (bytes < end && !is_done(l)) {
		const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
		const char *stop = newline ? newline : end;
		bool is_wanted = l->line + 1 >= l->first;

		if (is_wanted)
			keep_part(l, bytes, (size_t)(stop - bytes));
		else
			l->size = 1; /* or more: there is a line */
		if (newline && is_wanted && !is_done(l))
			lines_print_line(l);
		if (newline) {
			l->line++;
			l->size = l->kept = 0;
		}
		bytes = stop + (newline != NULL);
	}
	return !is_done(l);
}

void tool_lines_end(struct tool_lines *l)
{
	if (l->size == 0 || is_done(l))
		return;
	if (l->line + 1 >= l->first)
		lines_print_line(l);
	l->line++;
	l->size = 0;
}

/* Adds text as it is, but for bytes that are not UTF-8, each of which becomes U+FFFD. */
static void tool_put_text(struct buf *out, const char *bytes, size_t n)
{
	while (n) {
		bool is_bad;
		size_t good = lines_measure(bytes, n, n, &is_bad);

		buf_add(out, bytes, good);
		if (is_bad)
			buf_puts(out, "\xef\xbf\xbd");
		bytes += good + is_bad;
		n -= good + is_bad;
	}
}

void tool_put_line(struct buf *out, const char *bytes, size_t n)
{
	size_t shown = n;

	if (n > TOOL_LINE_SIZE) {
		/* Back to the first byte of a character. */
		shown = TOOL_LINE_SIZE;
		while (shown > TOOL_LINE_SIZE - 4 && ((unsigned char)bytes[shown] & 0xc0) == 0x80)
			shown--;
	}
	tool_put_text(out, bytes, shown);
	if (shown < n)
		put_cut(out, n);
}
