#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decodes the character at `text` into *ret and returns its width in bytes; 0 where the bytes
 * are not UTF-8 (overlong forms, surrogates and numbers above U+10FFFF are not), *ret untouched.
 */
size_t utf8_decode(const char *text, size_t n, uint32_t *ret);

/* Writes a character as bytes and returns how many; 0 where the number is no character. */
size_t utf8_encode(uint32_t c, char ret[static 4]);

/* A character that shows nothing, or changes how others show: controls, bidi, zero-width. */
bool utf8_is_hidden(uint32_t c);
