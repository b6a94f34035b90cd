/*
 * sign - Ed25519 as RFC 8032 has it, by libsodium.
 *
 * sodium_init is not called. It chooses among implementations for the processor and prepares
 * random numbers; Ed25519 and SHA-512 have one implementation, signatures need no chance, and keys
 * are made of what the kernel gives. The tests hold the RFC's vectors against it in this state.
 */
#include "proof/sign/sign.h"

#include <assert.h>
#include <sodium/crypto_sign_ed25519.h>
#include <string.h>

static_assert(SIGN_PUBLIC_SIZE == crypto_sign_ed25519_PUBLICKEYBYTES, "as libsodium has it");
static_assert(SIGN_SECRET_SIZE == crypto_sign_ed25519_SECRETKEYBYTES, "as libsodium has it");
static_assert(SIGN_SEED_SIZE == crypto_sign_ed25519_SEEDBYTES, "as libsodium has it");
static_assert(SIGN_SIGNATURE_SIZE == crypto_sign_ed25519_BYTES, "as libsodium has it");

void sign_key_done(struct sign_key *key)
{
	explicit_bzero(key, sizeof(*key));
}

void sign_derive_key(const uint8_t seed[static SIGN_SEED_SIZE], struct sign_key *ret)
{
	crypto_sign_ed25519_seed_keypair(ret->public.bytes, ret->secret, seed);
	sign_name_key(&ret->public);
}

void sign_bytes(const struct sign_key *key, const void *bytes, size_t n,
	uint8_t ret[static SIGN_SIGNATURE_SIZE])
{
	crypto_sign_ed25519_detached(ret, NULL, bytes, n, key->secret);
}

bool sign_check(const struct sign_public *key, const void *bytes, size_t n,
	const uint8_t signature[static SIGN_SIGNATURE_SIZE])
{
	return crypto_sign_ed25519_verify_detached(signature, bytes, n, key->bytes) == 0;
}
