/* Keys as openssl writes and reads them: RFC 8410 in the armour of RFC 7468. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/base64.h"
#include "base/own.h"
#include "base/sha256.h"
#include "proof/sign/sign.h"

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

/* --- writing --- */

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

/* --- reading --- */

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

/* Says what is there instead, as far as one can see that; none of it is repeated. */
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
