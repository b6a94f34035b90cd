/*
 * term_text - finds where text ends, sixteen bytes at a time.
 *
 * Nearly all that a command prints is text, so nearly all of the filter's time is spent here. The
 * blocks are written with the compilers' vector types, which every processor has some form of.
 */
#include "term/term_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

#define BLOCK 16

/* A byte each: all ones where something is so, 0 where it is not. */
typedef unsigned char lanes __attribute__((vector_size(BLOCK)));

static inline lanes text_load(const unsigned char *bytes)
{
	lanes v;

	memcpy(&v, bytes, sizeof(v));
	return v;
}

static inline bool text_is_none(lanes v)
{
	uint64_t halves[2];

	memcpy(halves, &v, sizeof(halves));
	return (halves[0] | halves[1]) == 0;
}

static inline lanes is_control(lanes v)
{
	return (lanes)(v < 0x20) & (lanes)((lanes)(v - '\a') > '\r' - '\a');
}

static inline bool is_ascii_block(const unsigned char *bytes)
{
	lanes v = text_load(bytes);

	return text_is_none((lanes)(v >= 0x80) | is_control(v));
}

/*
 * Does every byte go with the three before it? The last character may be unfinished. Which bytes
 * may follow the first one of a character is in table 3-7 of the Unicode standard; C2 may not be
 * followed by the controls U+0080 to U+009F.
 */
static inline bool is_text_block(const unsigned char *bytes)
{
	lanes v = text_load(bytes), one = text_load(bytes - 1), two = text_load(bytes - 2),
	      three = text_load(bytes - 3);
	lanes follows = (lanes)((v & 0xc0) == 0x80);
	lanes should = (lanes)(one >= 0xc0) | (lanes)(two >= 0xe0) | (lanes)(three >= 0xf0);
	lanes bad = (follows ^ should) | is_control(v);

	bad |= (lanes)(v == 0xc0) | (lanes)(v == 0xc1) | (lanes)(v >= 0xf5);
	bad |= ((lanes)(one == 0xc2) | (lanes)(one == 0xe0)) & (lanes)(v < 0xa0);
	bad |= (lanes)(one == 0xed) & (lanes)(v >= 0xa0);
	bad |= (lanes)(one == 0xf0) & (lanes)(v < 0x90);
	bad |= (lanes)(one == 0xf4) & (lanes)(v >= 0x90);
	return text_is_none(bad);
}

/* Back to the end of the last whole character. */
static size_t back_up(const unsigned char *bytes, size_t n)
{
	for (size_t back = 1; back <= 3 && back <= n; back++) {
		unsigned char c = bytes[n - back];

		if (c < 0x80)
			return n;
		if (c >= 0xc0)
			return back < (c < 0xe0 ? 2U : c < 0xf0 ? 3U : 4U) ? n - back : n;
	}
	return n;
}

static size_t text_width(const unsigned char *bytes, size_t n)
{
	uint32_t c = 0;

	if (bytes[0] < 0x80)
		return bytes[0] >= 0x20 || (bytes[0] >= '\a' && bytes[0] <= '\r');
	/* Only C2 begins a control. */
	return bytes[0] == 0xc2 && n > 1 && bytes[1] < 0xa0
		       ? 0
		       : utf8_decode((const char *)bytes, n, &c);
}

size_t term_text_run(const char *text, size_t n)
{
	const unsigned char *bytes = (const unsigned char *)text;
	size_t i = 0;

	while (i < n) {
		size_t scalar_end;

		while (n - i >= BLOCK && is_ascii_block(bytes + i))
			i += BLOCK;
		if (i >= 3) {
			while (n - i >= BLOCK && is_text_block(bytes + i))
				i += BLOCK;
			i = back_up(bytes, i);
		}
		for (scalar_end = i + BLOCK; i < n && i < scalar_end;) {
			size_t width = text_width(bytes + i, n - i);

			if (width == 0)
				return i;
			i += width;
		}
	}
	return i;
}
