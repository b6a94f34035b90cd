#pragma once

#include <sodium/crypto_hash_sha256.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE     32
#define SHA256_HEX_SIZE 65

/* Writes the digest of n bytes as 64 lower-case hex digits and a NUL. */
void sha256_hex(const void *bytes, size_t n, char ret[static SHA256_HEX_SIZE]);

/* A digest of bytes that come in pieces. */
struct sha256_fast {
	uint32_t words[8];
	uint64_t size;     /* bytes added so far */
	uint8_t block[64]; /* the last size % 64 bytes, which are not hashed yet */
};

struct sha256 {
	bool is_fast; /* uses the processor's instructions; otherwise libsodium */
	union {
		struct sha256_fast fast;
		crypto_hash_sha256_state sodium;
	};
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *bytes, size_t n);
void sha256_finish(struct sha256 *s, uint8_t ret[static SHA256_SIZE]);

/* Print a digest as lower-case hex digits, and parse exactly that form: 0 or -EINVAL. */
void sha256_print(const uint8_t digest[static SHA256_SIZE], char ret[static SHA256_HEX_SIZE]);
int sha256_parse(const char *hex, uint8_t ret[static SHA256_SIZE]);

/*
 * Computes the digest of a whole file without reading its holes. Sets *ret_size, which may be NULL,
 * to the file's size. Returns 0 or -errno.
 */
int sha256_file(int fd, uint8_t ret[static SHA256_SIZE], uint64_t *ret_size);
