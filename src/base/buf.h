#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Text that grows up to a named maximum and always ends with a NUL. A failure (out of memory, or
 * over the maximum) sticks: later additions do nothing, and callers check `failed` once at the end.
 */
struct buf {
	char *data;
	size_t len, cap, max;
	bool failed;
};

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);

void buf_add(struct buf *b, const void *bytes, size_t n);
void buf_puts(struct buf *b, const char *text);
void buf_putc(struct buf *b, char c);
void buf_repeat(struct buf *b, char c, size_t n);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Returns the text, never NULL. Borrowed from `b` until its next change. */
const char *buf_text(const struct buf *b);

/*
 * Adds n bytes in a form that cannot control a terminal: control characters, bidirectional and
 * zero-width characters and bytes that are not UTF-8 become \xNN or \u{NNNN}.
 */
void buf_add_visible(struct buf *b, const char *text, size_t n);
