#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/* RFC 4648. Written with the standard alphabet and padding, or url-safe and without. */
void base64_add(struct buf *out, const void *bytes, size_t n, bool is_url);

/*
 * Reads either alphabet, not both in one text, with padding or, url-safe, without; nothing else in
 * between, and no bits that nobody reads. `ret` has room for n / 4 * 3 + 3 bytes. The size, or
 * -EINVAL.
 */
ssize_t base64_read(const char *text, size_t n, uint8_t *ret);
