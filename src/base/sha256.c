#include "base/sha256.h"

#include <sodium.h>

void sha256_hex(const void *bytes, size_t n, char ret[static SHA256_HEX_SIZE])
{
	unsigned char digest[crypto_hash_sha256_BYTES];

	crypto_hash_sha256(digest, bytes, n);
	sodium_bin2hex(ret, SHA256_HEX_SIZE, digest, sizeof(digest));
}
