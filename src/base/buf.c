#include "base/buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){ .max = max };
}

void buf_done(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ 0 };
}

/* Makes room for n more bytes and the NUL. */
static bool buf_reserve(struct buf *b, size_t n)
{
	size_t cap = b->cap ? b->cap : 256;
	char *grown;

	if (b->failed || b->len > b->max || n > b->max - b->len) {
		b->failed = true;
		return false;
	}
	if (b->len + n + 1 <= b->cap)
		return true;
	while (cap < b->len + n + 1)
		cap *= 2;
	grown = realloc(b->data, cap);
	if (!grown) {
		b->failed = true;
		return false;
	}
	b->data = grown;
	b->cap = cap;
	return true;
}

void buf_add(struct buf *b, const void *bytes, size_t n)
{
	if (!buf_reserve(b, n))
		return;
	if (n)
		memcpy(b->data + b->len, bytes, n);
	b->len += n;
	b->data[b->len] = '\0';
}

void buf_puts(struct buf *b, const char *text)
{
	buf_add(b, text, strlen(text));
}

void buf_putc(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_repeat(struct buf *b, char c, size_t n)
{
	if (!buf_reserve(b, n))
		return;
	memset(b->data + b->len, c, n);
	b->len += n;
	b->data[b->len] = '\0';
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	if (n < 0 || !buf_reserve(b, (size_t)n)) {
		b->failed = true;
		return;
	}
	va_start(args, fmt);
	vsnprintf(b->data + b->len, (size_t)n + 1, fmt, args);
	va_end(args);
	b->len += (size_t)n;
}

const char *buf_text(const struct buf *b)
{
	return b->data ? b->data : "";
}

void buf_add_visible(struct buf *b, const char *text, size_t n)
{
	for (size_t i = 0; i < n;) {
		uint32_t c = 0;
		size_t width = utf8_decode(text + i, n - i, &c);

		if (width == 0) {
			buf_printf(b, "\\x%02x", (unsigned char)text[i]);
			width = 1;
		} else if (utf8_is_hidden(c)) {
			buf_printf(b, c < 0x80 ? "\\x%02x" : "\\u{%04x}", (unsigned)c);
		} else {
			buf_add(b, text + i, width);
		}
		i += width;
	}
}
