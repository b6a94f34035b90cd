#include "term/term_cast.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"

#define REPLACEMENT "\357\277\275" /* U+FFFD */

/* --- JSON --- */

/* Bytes of printable ASCII that stand for themselves. */
static size_t plain_run(const char *text, size_t n)
{
	size_t i = 0;

	while (i < n && text[i] >= 0x20 && text[i] < 0x7f && text[i] != '"' && text[i] != '\\')
		i++;
	return i;
}

/* Could these bytes, up to the end, be the start of a character? */
static bool is_cut(const char *text, size_t n)
{
	unsigned char lead = (unsigned char)text[0];
	size_t wanted = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;

	for (size_t i = 1; i < n; i++)
		if ((text[i] & 0xc0) != 0x80)
			return false;
	return n < wanted;
}

/* Writes n bytes as the inside of a string; returns how many were left because they are cut. */
static size_t cast_put_text(struct buf *out, const char *text, size_t n)
{
	for (size_t i = 0; i < n;) {
		size_t width = plain_run(text + i, n - i);
		uint32_t c = 0;

		if (width) {
			buf_add(out, text + i, width);
			i += width;
			continue;
		}
		width = utf8_decode(text + i, n - i, &c);
		if (width)
			json_put_character(out, c, text + i, width);
		else if (n - i < 4 && is_cut(text + i, n - i))
			return n - i;
		else
			buf_puts(out, REPLACEMENT);
		i += width ? width : 1;
	}
	return 0;
}

static void put_replacements(struct buf *out, size_t n)
{
	while (n--)
		buf_puts(out, REPLACEMENT);
}

static void put_member(struct buf *out, const char *before, const char *key, const char *value)
{
	buf_printf(out, "%s\"%s\": \"", before, key);
	put_replacements(out, cast_put_text(out, value, strlen(value)));
	buf_putc(out, '"');
}

/* --- lines --- */

void term_cast_header(const struct term_cast_header *h, struct buf *out)
{
	buf_printf(out, "{\"version\": 2, \"width\": %u, \"height\": %u, \"timestamp\": %" PRId64,
		h->width, h->height, h->timestamp);
	if (h->title)
		put_member(out, ", ", "title", h->title);
	if (h->term || h->shell) {
		buf_puts(out, ", \"env\": {");
		if (h->term)
			put_member(out, "", "TERM", h->term);
		if (h->shell)
			put_member(out, h->term ? ", " : "", "SHELL", h->shell);
		buf_putc(out, '}');
	}
	buf_puts(out, "}\n");
}

static void start_event(struct term_cast *c, uint64_t ns, const char *code, struct buf *out)
{
	uint64_t us = ns / 1000;

	c->last_us = us > c->last_us ? us : c->last_us;
	buf_printf(out, "[%" PRIu64 ".%06" PRIu64 ", \"%s\", \"", c->last_us / 1000000,
		c->last_us % 1000000, code);
}

/* Takes what was held to its end; returns how many bytes of the text are part of it. */
static size_t put_held(struct term_cast *c, const char *text, size_t n, struct buf *out)
{
	size_t used = 0;

	while (c->n_held && used < n) {
		uint32_t decoded = 0;
		size_t width;

		c->held[c->n_held] = text[used];
		width = utf8_decode(c->held, (size_t)c->n_held + 1, &decoded);
		if (!width && is_cut(c->held, (size_t)c->n_held + 1)) {
			c->n_held++;
			used++;
			continue;
		}
		if (width)
			json_put_character(out, decoded, c->held, width);
		else
			put_replacements(out, c->n_held);
		used += width > 0;
		c->n_held = 0;
	}
	return used;
}

static void put_lines(struct term_cast *c, const char *text, size_t n, struct buf *out)
{
	bool was_return = c->was_return;

	for (const char *newline; n > 0; text = newline + 1) {
		size_t length, left;

		newline = c->is_plain ? memchr(text, '\n', n) : NULL;
		length = newline ? (size_t)(newline - text) : n;
		left = cast_put_text(out, text, length);
		was_return = length ? text[length - 1] == '\r' : was_return;
		if (!newline) {
			memcpy(c->held, text + length - left, left);
			c->n_held = (uint8_t)left;
			break;
		}
		put_replacements(out, left);
		buf_puts(out, was_return ? "\\n" : "\\u000d\\n");
		was_return = false;
		n -= length + 1;
	}
	c->was_return = was_return;
}

/* An event without text is none. */
static void end_event(struct buf *out, size_t before, size_t start)
{
	if (out->len > start || out->failed) {
		buf_puts(out, "\"]\n");
		return;
	}
	out->len = before;
	out->data[before] = '\0';
}

void term_cast_output(struct term_cast *c, uint64_t ns, const char *text, size_t n, struct buf *out)
{
	size_t before = out->len, start, used;

	start_event(c, ns, "o", out);
	start = out->len;
	used = put_held(c, text, n, out);
	if (used)
		c->was_return = false;
	put_lines(c, text + used, n - used, out);
	end_event(out, before, start);
}

void term_cast_resize(
	struct term_cast *c, uint64_t ns, unsigned width, unsigned height, struct buf *out)
{
	start_event(c, ns, "r", out);
	buf_printf(out, "%ux%u\"]\n", width, height);
}

void term_cast_end(struct term_cast *c, uint64_t ns, struct buf *out)
{
	size_t before = out->len, start;

	start_event(c, ns, "o", out);
	start = out->len;
	put_replacements(out, c->n_held);
	c->n_held = 0;
	end_event(out, before, start);
}
