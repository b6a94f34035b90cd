#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

/*
 * Keys and signatures: Ed25519 by libsodium, keys as PEM that openssl reads (PKCS #8 and
 * SubjectPublicKeyInfo), DSSE envelopes. All input may come from a stranger.
 */

#define SIGN_PUBLIC_SIZE    32
#define SIGN_SECRET_SIZE    64
#define SIGN_SEED_SIZE      32 /* both keys are derived from it */
#define SIGN_SIGNATURE_SIZE 64
#define SIGN_ID_SIZE        65 /* SHA-256 of the SubjectPublicKeyInfo, in hex */
#define SIGN_PAYLOAD_TYPE   "application/vnd.in-toto+json"

struct sign_public {
	uint8_t bytes[SIGN_PUBLIC_SIZE];
	char id[SIGN_ID_SIZE];
};

/* sign_key_done wipes it. */
struct sign_key {
	uint8_t secret[SIGN_SECRET_SIZE];
	struct sign_public public;
};

void sign_key_done(struct sign_key *key);

/* Derives the secret key and the public key from a seed. */
void sign_derive_key(const uint8_t seed[static SIGN_SEED_SIZE], struct sign_key *ret);

/* --- keys as text; pure --- */

/* Computes key->id from key->bytes. */
void sign_name_key(struct sign_public *key);

/*
 * Read and print keys as PEM. Reading returns 0, or -EBADMSG for a text that is not exactly one
 * such key. sign_print_private writes a secret: the caller must wipe the buffer.
 */
int sign_read_private(const char *pem, size_t n, struct sign_key *ret, struct err *e);
int sign_read_public(const char *pem, size_t n, struct sign_public *ret, struct err *e);
void sign_print_private(const struct sign_key *key, struct buf *out);
void sign_print_public(const struct sign_public *key, struct buf *out);

/* --- the operator's keys, in the open folder `state` of the operator's state: sign_keys.c --- */

#define SIGN_KEY_FOLDER  "keys"
#define SIGN_KEY_FILE    "signing.pem"
#define SIGN_PUBLIC_FILE "signing.pub"

/*
 * Loads STATE/keys/signing.pem, which must be a regular file of the operator with mode 0600.
 * Returns 0, -ENOENT with `e` unset if there is none, or -errno.
 */
int sign_load_key(int state, struct sign_key *ret, struct err *e);

/*
 * Is there a key file as bawn makes them, by all that shows without reading it: whose, which mode,
 * how many bytes? If not, sign_load_key says what is wrong, or takes a key that somebody else made.
 */
bool sign_has_key(int state);

/* Loads the public key in STATE/keys/signing.pub. Returns 0, -ENOENT with `e` unset, or -errno. */
int sign_load_public(int state, struct sign_public *ret, struct err *e);

/*
 * Makes a key and writes it with its public key, atomically and with fsync. Two processes that do
 * so at once get the same key. If there is a key already, loads it into *ret and returns -EEXIST
 * with `e` unset; with `replaces` keeps its public key as former/ID.pub and replaces it.
 */
int sign_make_key(int state, bool replaces, struct sign_key *ret, struct err *e);

/* Finds the operator's public key, present or former, with an id. -ENOENT, with `e` unset: none. */
int sign_find_own(int state, const char *id, struct sign_public *ret, struct err *e);

/* --- signatures and envelopes; pure --- */

void sign_bytes(const struct sign_key *key, const void *bytes, size_t n,
	uint8_t ret[static SIGN_SIGNATURE_SIZE]);
bool sign_check(const struct sign_public *key, const void *bytes, size_t n,
	const uint8_t signature[static SIGN_SIGNATURE_SIZE]);

/* Prints a signed DSSE envelope around a payload of SIGN_PAYLOAD_TYPE, as one line with newline. */
void sign_print_envelope(
	const struct sign_key *key, const void *payload, size_t n, struct buf *out);

#define SIGN_MOST_SIGNATURES 16

struct sign_envelope {
	const char *type;
	const uint8_t *payload;
	size_t size;
	struct {
		const char *key_id; /* as the envelope claims; "" without */
		uint8_t bytes[SIGN_SIGNATURE_SIZE];
	} signatures[SIGN_MOST_SIGNATURES];
	size_t count; /* signatures of another length are skipped */
};

/*
 * Reads an envelope from one line, with or without its newline. Checks no signature. The arena owns
 * the texts. Returns 0, -EBADMSG or -ENOMEM.
 */
int sign_read_envelope(
	const char *line, size_t n, struct arena *arena, struct sign_envelope *ret, struct err *e);

/* True if one of the envelope's signatures is a valid one by `key`. */
bool sign_is_by(const struct sign_envelope *x, const struct sign_public *key);
