#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decodes the character at `text` into *ret. Returns its width in bytes, or 0 if the bytes are not
 * UTF-8: also for overlong forms, surrogates and numbers above U+10FFFF.
 */
size_t utf8_decode(const char *text, size_t n, uint32_t *ret);

/* Encodes a character. Returns the number of bytes, or 0 if `c` is not a character. */
size_t utf8_encode(uint32_t c, char ret[static 4]);

/* True for characters that are invisible or change how others look: controls, bidi, zero-width. */
bool utf8_is_hidden(uint32_t c);
