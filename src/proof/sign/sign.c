/*
 * sign - Ed25519 signatures (RFC 8032, by libsodium), keys as PEM, envelopes of DSSE 1.0. Pure; the
 * keys and envelopes that it reads may be anybody's.
 *
 * sodium_init is not called: it chooses implementations by processor and prepares random numbers,
 * but Ed25519 and SHA-512 have one implementation, a signature needs no random number, and a key's
 * seed comes from the kernel. The unit tests check the RFC's vectors in this state.
 */
#include "proof/sign/sign.h"

#include <assert.h>
#include <errno.h>
#include <sodium/crypto_sign_ed25519.h>
#include <string.h>

#include "base/base64.h"
#include "base/json_read.h"
#include "base/own.h"
#include "base/sha256.h"
#include "base/str.h"

static_assert(SIGN_PUBLIC_SIZE == crypto_sign_ed25519_PUBLICKEYBYTES, "as libsodium has it");
static_assert(SIGN_SECRET_SIZE == crypto_sign_ed25519_SECRETKEYBYTES, "as libsodium has it");
static_assert(SIGN_SEED_SIZE == crypto_sign_ed25519_SEEDBYTES, "as libsodium has it");
static_assert(SIGN_SIGNATURE_SIZE == crypto_sign_ed25519_BYTES, "as libsodium has it");

void sign_key_done(struct sign_key *key)
{
	explicit_bzero(key, sizeof(*key));
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

/* --- keys as openssl writes and reads them: RFC 8410 in the armour of RFC 7468 --- */

#define PREFIX_MAX 16
#define DER_MAX    (PREFIX_MAX + SIGN_SEED_SIZE)
#define BODY_MAX   (DER_MAX / 3 * 4)

static_assert(SIGN_SEED_SIZE == SIGN_PUBLIC_SIZE, "either is behind the prefix");

/* DER has one way to write such a key: these bytes, and then the 32 of the key. */
struct form {
	const char *begin, *end;
	const char *what;
	uint8_t prefix[PREFIX_MAX];
	size_t prefix_size;
};

static const struct form private_form = {
	"-----BEGIN PRIVATE KEY-----",
	"-----END PRIVATE KEY-----",
	"private key",
	{ 0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04,
		0x20 },
	16,
};

static const struct form public_form = {
	"-----BEGIN PUBLIC KEY-----",
	"-----END PUBLIC KEY-----",
	"public key",
	{ 0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00 },
	12,
};

/* The prefix and the key in one; how many bytes that is. */
static size_t make_der(
	const struct form *f, const uint8_t key[static SIGN_SEED_SIZE], uint8_t ret[static DER_MAX])
{
	memcpy(ret, f->prefix, f->prefix_size);
	memcpy(ret + f->prefix_size, key, SIGN_SEED_SIZE);
	return f->prefix_size + SIGN_SEED_SIZE;
}

void sign_name_key(struct sign_public *key)
{
	uint8_t der[DER_MAX];

	sha256_hex(der, make_der(&public_form, key->bytes, der), key->id);
}

void sign_derive_key(const uint8_t seed[static SIGN_SEED_SIZE], struct sign_key *ret)
{
	crypto_sign_ed25519_seed_keypair(ret->public.bytes, ret->secret, seed);
	sign_name_key(&ret->public);
}

static void pem_print(
	const struct form *f, const uint8_t key[static SIGN_SEED_SIZE], struct buf *out)
{
	uint8_t der[DER_MAX];
	size_t n = make_der(f, key, der);

	buf_printf(out, "%s\n", f->begin);
	base64_add(out, der, n, false);
	buf_printf(out, "\n%s\n", f->end);
	explicit_bzero(der, sizeof(der));
}

void sign_print_private(const struct sign_key *key, struct buf *out)
{
	pem_print(&private_form, key->secret, out); /* of which the seed is the first half */
}

void sign_print_public(const struct sign_public *key, struct buf *out)
{
	pem_print(&public_form, key->bytes, out);
}

struct text {
	const char *at, *end;
};

static bool pem_is_space(char c)
{
	return c == '\n' || c == '\r' || c == ' ' || c == '\t';
}

static void skip_space(struct text *t)
{
	while (t->at < t->end && pem_is_space(*t->at))
		t->at++;
}

static bool pem_take_line(struct text *t, const char *line)
{
	size_t n = strlen(line);

	skip_space(t);
	if ((size_t)(t->end - t->at) < n || memcmp(t->at, line, n) != 0)
		return false;
	t->at += n;
	return t->at == t->end || pem_is_space(*t->at);
}

/* The characters in front of the line that ends it, however they are broken into lines. */
static ssize_t pem_take_body(struct text *t, char ret[static BODY_MAX])
{
	size_t n = 0;

	for (; t->at < t->end && *t->at != '-'; t->at++) {
		if (pem_is_space(*t->at))
			continue;
		if (n == BODY_MAX)
			return -EINVAL;
		ret[n++] = *t->at;
	}
	return (ssize_t)n;
}

/* The key's 32 bytes out of a text that holds that key and nothing else. */
static bool pem_read_form(
	const struct form *f, const char *pem, size_t n, uint8_t ret[static SIGN_SEED_SIZE])
{
	struct text t = { pem, pem + n };
	uint8_t der[BODY_MAX / 4 * 3 + 3] = { 0 };
	char body[BODY_MAX];
	ssize_t size = pem_take_line(&t, f->begin) ? pem_take_body(&t, body) : -EINVAL;
	bool is_one = size >= 0 && pem_take_line(&t, f->end);

	skip_space(&t);
	if (is_one && t.at == t.end)
		size = base64_read(body, (size_t)size, der);
	else
		size = -EINVAL;
	is_one = size == (ssize_t)(f->prefix_size + SIGN_SEED_SIZE) &&
		 memcmp(der, f->prefix, f->prefix_size) == 0;
	if (is_one)
		memcpy(ret, der + f->prefix_size, SIGN_SEED_SIZE);
	explicit_bzero(body, sizeof(body));
	explicit_bzero(der, sizeof(der));
	return is_one;
}

/* Explains what the text is instead, if that is visible. Never quotes it: it may be a key. */
static int pem_fail(const struct form *wanted, const struct form *other, const char *pem, size_t n,
	struct err *e)
{
	struct text t = { pem, pem + n };
	bool is_other = pem_take_line(&t, other->begin);

	return err_set(e, ERR_REFUSED, EBADMSG, "it is no Ed25519 %s in PEM%s%s", wanted->what,
		is_other ? ", but begins as a " : "", is_other ? other->what : "");
}

int sign_read_private(const char *pem, size_t n, struct sign_key *ret, struct err *e)
{
	uint8_t seed[SIGN_SEED_SIZE];

	if (!pem_read_form(&private_form, pem, n, seed))
		return pem_fail(&private_form, &public_form, pem, n, e);
	sign_derive_key(seed, ret);
	explicit_bzero(seed, sizeof(seed));
	return 0;
}

int sign_read_public(const char *pem, size_t n, struct sign_public *ret, struct err *e)
{
	if (!pem_read_form(&public_form, pem, n, ret->bytes))
		return pem_fail(&public_form, &private_form, pem, n, e);
	sign_name_key(ret);
	return 0;
}

/* --- envelopes: writing --- */

/* Adds what DSSE signs: type and payload with their sizes. */
static void print_pae(const char *type, const void *payload, size_t n, struct buf *out)
{
	buf_printf(out, "DSSEv1 %zu %s %zu ", strlen(type), type, n);
	buf_add(out, payload, n);
}

void sign_print_envelope(const struct sign_key *key, const void *payload, size_t n, struct buf *out)
{
	own(buf) struct buf pae = { .max = SIZE_MAX / 4 };
	uint8_t signature[SIGN_SIGNATURE_SIZE];

	print_pae(SIGN_PAYLOAD_TYPE, payload, n, &pae);
	if (pae.failed) {
		out->failed = true;
		return;
	}
	sign_bytes(key, pae.data, pae.len, signature);
	buf_puts(out, "{\"payloadType\":\"" SIGN_PAYLOAD_TYPE "\",\"payload\":\"");
	base64_add(out, payload, n, false);
	buf_printf(out, "\",\"signatures\":[{\"keyid\":\"%s\",\"sig\":\"", key->public.id);
	base64_add(out, signature, sizeof(signature), false);
	buf_puts(out, "\"}]}\n");
}

/* --- envelopes: reading --- */

struct reader {
	struct json_reader json;
	struct arena *arena;
	struct sign_envelope *ret;
	bool is_full; /* the arena is */
};

/*
 * Notes that a member is there; false: it was already, and readers would differ about which holds.
 */
static bool envelope_is_first(struct reader *r, bool *seen)
{
	if (*seen)
		return json_wrong(&r->json, "every member once");
	*seen = true;
	return true;
}

static bool note_full(struct reader *r)
{
	r->is_full = true;
	return json_wrong(&r->json, "less");
}

static bool read_copy(struct reader *r, const char **ret)
{
	const char *text;

	if (!json_read_text(&r->json, &text))
		return false;
	*ret = arena_copy(r->arena, text, r->json.text.len);
	return *ret ? true : note_full(r);
}

/* A text of base64 as bytes of the arena's. */
static bool envelope_read_bytes(struct reader *r, const uint8_t **ret, size_t *ret_size)
{
	const char *text;
	uint8_t *bytes;
	ssize_t n;

	if (!json_read_text(&r->json, &text))
		return false;
	bytes = arena_alloc(r->arena, r->json.text.len / 4 * 3 + 3);
	if (!bytes)
		return note_full(r);
	n = base64_read(text, r->json.text.len, bytes);
	if (n < 0)
		return json_wrong(&r->json, "base64");
	*ret = bytes;
	*ret_size = (size_t)n;
	return true;
}

static void envelope_read_signature(struct reader *r)
{
	bool has_id = false, has_bytes = false;
	const char *key, *id = "";
	const uint8_t *bytes = NULL;
	size_t size = 0;

	json_enter_map(&r->json);
	while (json_next_key(&r->json, &key))
		if (str_eq(key, "keyid"))
			(void)(envelope_is_first(r, &has_id) && read_copy(r, &id));
		else if (str_eq(key, "sig"))
			(void)(envelope_is_first(r, &has_bytes) &&
				envelope_read_bytes(r, &bytes, &size));
		else
			json_skip(&r->json);
	if (!has_bytes)
		json_wrong(&r->json, "a signature");
	/* Another length is of another kind of key. */
	if (r->json.wrong || size != SIGN_SIGNATURE_SIZE)
		return;
	r->ret->signatures[r->ret->count].key_id = id;
	memcpy(r->ret->signatures[r->ret->count++].bytes, bytes, size);
}

static void envelope_read_signatures(struct reader *r)
{
	size_t count = 0;

	json_enter_list(&r->json);
	while (json_next_item(&r->json))
		if (count++ < SIGN_MOST_SIGNATURES)
			envelope_read_signature(r);
		else
			json_wrong(&r->json, "fewer signatures");
	if (!count)
		json_wrong(&r->json, "a signature");
}

static void envelope_read_members(struct reader *r)
{
	bool has_type = false, has_payload = false, has_signatures = false;
	const char *key;

	json_enter_map(&r->json);
	while (json_next_key(&r->json, &key))
		if (str_eq(key, "payloadType"))
			(void)(envelope_is_first(r, &has_type) && read_copy(r, &r->ret->type));
		else if (str_eq(key, "payload"))
			(void)(envelope_is_first(r, &has_payload) &&
				envelope_read_bytes(r, &r->ret->payload, &r->ret->size));
		else if (str_eq(key, "signatures")) {
			if (envelope_is_first(r, &has_signatures))
				envelope_read_signatures(r);
		} else
			json_skip(&r->json);
	if (!has_type || !has_payload || !has_signatures)
		json_wrong(&r->json, "payloadType, payload and signatures");
	json_read_end(&r->json);
}

int sign_read_envelope(
	const char *line, size_t n, struct arena *arena, struct sign_envelope *ret, struct err *e)
{
	struct reader r = { .arena = arena, .ret = ret };
	const char *wrong;

	*ret = (struct sign_envelope){ 0 };
	json_read_init(&r.json, line, n, n);
	envelope_read_members(&r);
	wrong = r.json.wrong;
	r.is_full = r.is_full || (wrong && r.json.text.failed);
	json_reader_done(&r.json);
	if (!wrong)
		return 0;
	*ret = (struct sign_envelope){ 0 };
	if (r.is_full)
		return err_set(e, ERR_SYS, ENOMEM, "there is no memory for the envelope");
	return err_set(e, ERR_REFUSED, EBADMSG, "this is no DSSE envelope: expected %s", wrong);
}

bool sign_is_by(const struct sign_envelope *x, const struct sign_public *key)
{
	own(buf) struct buf pae = { .max = SIZE_MAX / 4 };

	print_pae(x->type, x->payload, x->size, &pae);
	for (size_t i = 0; !pae.failed && i < x->count; i++)
		if (sign_check(key, pae.data, pae.len, x->signatures[i].bytes))
			return true;
	return false;
}
