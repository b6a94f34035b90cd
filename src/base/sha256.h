#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE     32
#define SHA256_HEX_SIZE 65

/* Writes the digest of n bytes as 64 lower-case hex digits and a NUL. */
void sha256_hex(const void *bytes, size_t n, char ret[static SHA256_HEX_SIZE]);
