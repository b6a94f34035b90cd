#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/* Adds bytes as base64 (RFC 4648): standard alphabet and padding, or url-safe and no padding. */
void base64_add(struct buf *out, const void *bytes, size_t n, bool is_url);

/*
 * Decodes base64 in either alphabet. Padding may be missing in the url-safe one. Returns the number
 * of bytes, or -EINVAL: also for a text that mixes the alphabets, has other characters in it, or
 * sets bits behind the last byte. `ret` must have room for n / 4 * 3 + 3 bytes.
 */
ssize_t base64_read(const char *text, size_t n, uint8_t *ret);
