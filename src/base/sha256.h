#pragma once

#include <sodium/crypto_hash_sha256.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE     32
#define SHA256_HEX_SIZE 65

/* Writes the digest of n bytes as 64 lower-case hex digits and a NUL. */
void sha256_hex(const void *bytes, size_t n, char ret[static SHA256_HEX_SIZE]);

/* The same piece by piece. */
struct sha256_fast {
	uint32_t words[8];
	uint64_t size;     /* in bytes, so far */
	uint8_t block[64]; /* of which size % 64 are not hashed yet */
};

struct sha256 {
	bool is_fast; /* by the processor's instructions, else by libsodium */
	union {
		struct sha256_fast fast;
		crypto_hash_sha256_state sodium;
	};
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *bytes, size_t n);
void sha256_finish(struct sha256 *s, uint8_t ret[static SHA256_SIZE]);

/* A digest as lower-case hex digits, and back: 0 or -EINVAL, nothing skipped. */
void sha256_print(const uint8_t digest[static SHA256_SIZE], char ret[static SHA256_HEX_SIZE]);
int sha256_parse(const char *hex, uint8_t ret[static SHA256_SIZE]);

/*
 * The digest of a file from its beginning to its end, however large; holes are not read. *ret_size
 * (may be NULL) is how much that was. 0 or -errno.
 */
int sha256_file(int fd, uint8_t ret[static SHA256_SIZE], uint64_t *ret_size);
