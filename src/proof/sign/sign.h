#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

/*
 * Keys and signatures: Ed25519 by libsodium, keys as PEM that openssl reads (PKCS #8 and
 * SubjectPublicKeyInfo), envelopes of DSSE. Whatever is read here may be anybody's bytes.
 */

#define SIGN_PUBLIC_SIZE    32
#define SIGN_SECRET_SIZE    64
#define SIGN_SEED_SIZE      32 /* what the other two are made of */
#define SIGN_SIGNATURE_SIZE 64
#define SIGN_ID_SIZE        65 /* SHA-256 of the SubjectPublicKeyInfo, in hex */
#define SIGN_PAYLOAD_TYPE   "application/vnd.in-toto+json"

struct sign_public {
	uint8_t bytes[SIGN_PUBLIC_SIZE];
	char id[SIGN_ID_SIZE];
};

/* Wiped by sign_key_done; own(sign_key). */
struct sign_key {
	uint8_t secret[SIGN_SECRET_SIZE];
	struct sign_public public;
};

void sign_key_done(struct sign_key *key);

/* Derives the secret key and the public key from a seed. */
void sign_derive_key(const uint8_t seed[static SIGN_SEED_SIZE], struct sign_key *ret);

/* --- keys as text; pure --- */

/* Computes the id from the bytes. */
void sign_name_key(struct sign_public *key);

/*
 * -EBADMSG where a text is anything but one such key. sign_print_private writes a secret: its
 * caller wipes the buffer.
 */
int sign_read_private(const char *pem, size_t n, struct sign_key *ret, struct err *e);
int sign_read_public(const char *pem, size_t n, struct sign_public *ret, struct err *e);
void sign_print_private(const struct sign_key *key, struct buf *out);
void sign_print_public(const struct sign_public *key, struct buf *out);

/* --- the operator's own: sign_keys.c; `state` is the open folder of the operator's state --- */

#define SIGN_KEY_FOLDER  "keys"
#define SIGN_KEY_FILE    "signing.pem"
#define SIGN_PUBLIC_FILE "signing.pub"

/*
 * Loads STATE/keys/signing.pem, which must be a plain file of the operator's with mode 0600;
 * -ENOENT, with nothing in `e`, where there is none.
 */
int sign_load_key(int state, struct sign_key *ret, struct err *e);

/* The public key beside it, as the last maker left it. -ENOENT, with nothing in `e`: there is none.
 */
int sign_load_public(int state, struct sign_public *ret, struct err *e);

/*
 * Makes a key and writes it with its public key (signing.pub), whole or not at all, and fsynced;
 * two processes that do so at once get the same key. -EEXIST, with nothing in `e`, where there is
 * one, which then is *ret; with `replaces` its public key is kept as former/ID.pub first.
 */
int sign_make_key(int state, bool replaces, struct sign_key *ret, struct err *e);

/* The public key with that id among the operator's own. -ENOENT, with nothing in `e`: none of them.
 */
int sign_find_own(int state, const char *id, struct sign_public *ret, struct err *e);

/* --- signatures and envelopes; pure --- */

void sign_bytes(const struct sign_key *key, const void *bytes, size_t n,
	uint8_t ret[static SIGN_SIGNATURE_SIZE]);
bool sign_check(const struct sign_public *key, const void *bytes, size_t n,
	const uint8_t signature[static SIGN_SIGNATURE_SIZE]);

/* A DSSE envelope around a payload of SIGN_PAYLOAD_TYPE, on one line with its newline. */
void sign_print_envelope(
	const struct sign_key *key, const void *payload, size_t n, struct buf *out);

#define SIGN_MOST_SIGNATURES 16

struct sign_envelope {
	const char *type;
	const uint8_t *payload;
	size_t size;
	struct {
		const char *key_id; /* a hint, "" where there is none */
		uint8_t bytes[SIGN_SIGNATURE_SIZE];
	} signatures[SIGN_MOST_SIGNATURES];
	size_t count; /* those that are of another length are not among them */
};

/*
 * Reads one line, with its newline or without. What it points to is the arena's. -EBADMSG or
 * -ENOMEM, with a sentence.
 */
int sign_read_envelope(
	const char *line, size_t n, struct arena *arena, struct sign_envelope *ret, struct err *e);

/* Is one of its signatures by that key? */
bool sign_is_by(const struct sign_envelope *x, const struct sign_public *key);
