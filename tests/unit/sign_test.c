/* Signatures by the RFC's vectors; keys as PEM, there and back, and what is none. */
#include <errno.h>
#include <stdlib.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "check.h"
#include "proof/sign/sign.h"

static size_t from_hex(const char *hex, uint8_t *ret)
{
	size_t n = strlen(hex) / 2;

	for (size_t i = 0; i < n; i++)
		ret[i] = (uint8_t)(str_hex_digit(hex[2 * i]) << 4 | str_hex_digit(hex[2 * i + 1]));
	return n;
}

/* RFC 8032, section 7.1. Nothing calls sodium_init in this program. */
static const struct {
	const char *seed, *public, *message, *signature;
} vectors[] = {
	{ "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
		"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
		"e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc6"
		"1e39701cf9b46bd25bf5f0595bbe24655141438e7a100b" },
	{ "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
		"3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
		"92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e45"
		"8f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00" },
	{ "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
		"fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
		"6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae"
		"67f760984dc6594a7c15e9716ed28dc027beceea1ec40a" },
	{ "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
		"ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
		"ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836"
		"ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
		"dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfd"
		"fbc7c66431e0303dca179c138ac17ad9bef1177331a704" },
};

static struct sign_key make_key(const char *hex)
{
	uint8_t seed[SIGN_SEED_SIZE];
	struct sign_key key;

	from_hex(hex, seed);
	sign_derive_key(seed, &key);
	return key;
}

static void test_vectors(void)
{
	for (size_t i = 0; i < COUNT_OF(vectors); i++) {
		own(sign_key) struct sign_key key = make_key(vectors[i].seed);
		uint8_t public[SIGN_PUBLIC_SIZE], message[64], wanted[SIGN_SIGNATURE_SIZE];
		uint8_t got[SIGN_SIGNATURE_SIZE];
		size_t n = from_hex(vectors[i].message, message);

		from_hex(vectors[i].public, public);
		from_hex(vectors[i].signature, wanted);
		CHECK(memcmp(key.public.bytes, public, sizeof(public)) == 0);
		sign_bytes(&key, message, n, got);
		CHECK(memcmp(got, wanted, sizeof(got)) == 0);
		CHECK(sign_check(&key.public, message, n, got));
	}
}

/* Each bit of what is signed, of the signature and of the key counts. */
static void test_flips(void)
{
	own(sign_key) struct sign_key key = make_key(vectors[3].seed);
	uint8_t message[64], signature[SIGN_SIGNATURE_SIZE];
	size_t n = from_hex(vectors[3].message, message);

	sign_bytes(&key, message, n, signature);
	for (size_t i = 0; i < 64 * 8; i++) {
		uint8_t bit = (uint8_t)(1 << i % 8);

		message[i / 8] ^= bit;
		CHECK(!sign_check(&key.public, message, n, signature));
		message[i / 8] ^= bit;
		signature[i / 8] ^= bit;
		CHECK(!sign_check(&key.public, message, n, signature));
		signature[i / 8] ^= bit;
		if (i / 8 < SIGN_PUBLIC_SIZE) {
			key.public.bytes[i / 8] ^= bit;
			CHECK(!sign_check(&key.public, message, n, signature));
			key.public.bytes[i / 8] ^= bit;
		}
	}
	CHECK(!sign_check(&key.public, message, n - 1, signature));
	CHECK(sign_check(&key.public, message, n, signature));
}

/* Keys for which a signature is good whatever was signed: the points of small order. */
static void test_weak_keys(void)
{
	static const char *const weak[] = {
		"0100000000000000000000000000000000000000000000000000000000000000",
		"0000000000000000000000000000000000000000000000000000000000000000",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
	};
	uint8_t signature[SIGN_SIGNATURE_SIZE] = { 1 };

	for (size_t i = 0; i < COUNT_OF(weak); i++) {
		struct sign_public key;

		from_hex(weak[i], key.bytes);
		CHECK(!sign_check(&key, "a", 1, signature));
		memcpy(signature, key.bytes, sizeof(key.bytes));
		CHECK(!sign_check(&key, "a", 1, signature));
	}
}

/* As openssl 3.0 writes the keys of the RFC's first vector, and their id by sha256sum. */
static const char private_pem[] =
	"-----BEGIN PRIVATE KEY-----\n"
	"MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
	"-----END PRIVATE KEY-----\n";
static const char public_pem[] = "-----BEGIN PUBLIC KEY-----\n"
				 "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"
				 "-----END PUBLIC KEY-----\n";

static void test_pem(void)
{
	own(sign_key) struct sign_key key = make_key(vectors[0].seed), back;
	own(buf) struct buf private = { .max = 1000 }, public = { .max = 1000 };
	struct sign_public other;

	sign_print_private(&key, &private);
	sign_print_public(&key.public, &public);
	CHECK_STR(buf_text(&private), private_pem);
	CHECK_STR(buf_text(&public), public_pem);
	CHECK(sign_read_private(private_pem, strlen(private_pem), &back, NULL) == 0);
	CHECK(memcmp(&back, &key, sizeof(key)) == 0);
	CHECK(sign_read_public(public_pem, strlen(public_pem), &other, NULL) == 0);
	CHECK(memcmp(&other, &key.public, sizeof(other)) == 0);
	CHECK_STR(other.id, "06e3fd8fda29bb60ab59557de61edb0aecdb231134be30e75b455f8e1b792fa9");
}

static bool is_private(const char *pem)
{
	own(sign_key) struct sign_key key = { 0 };
	struct err e = { 0 };
	int r = sign_read_private(pem, strlen(pem), &key, &e);

	CHECK(r == 0 ? !e.text[0] : r == -EBADMSG && e.text[0]);
	/* Nothing of a secret is in a message. */
	CHECK(!strstr(e.text, "MC4"));
	return r == 0;
}

#define BEGIN "-----BEGIN PRIVATE KEY-----"
#define END   "-----END PRIVATE KEY-----"
#define BODY  "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g"

static void test_other_pem(void)
{
	static const char *const good[] = { BEGIN "\r\n" BODY "\r\n" END "\r\n",
		"\n\n" BEGIN "\n" BODY "\n" END,
		BEGIN "\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/Vpg\nuoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n" END
		      "\n \n" };
	static const char *const bad[] = { "", "\n", "-", BEGIN, BEGIN "\n", BEGIN "\n" BODY,
		BEGIN "\n" BODY "\n", BEGIN "\n" BODY "\n-----END PUBLIC KEY-----\n",
		BEGIN "\n" BODY "\n" END "\nx", BEGIN "\n" BODY "\n" END "x", BEGIN "\n" END "\n",
		BEGIN BODY "\n" END, "x" BEGIN "\n" BODY "\n" END,
		BEGIN "\n" BODY "\n" END "\n" BEGIN "\n" BODY "\n" END "\n",
		/* another size, another algorithm (X25519), a version 2, a padding */
		BEGIN "\n" BODY "AA==\n" END, BEGIN "\n" BODY BODY "\n" END,
		BEGIN "\nMC4CAQAwBQYDK2VuBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n" END,
		BEGIN "\nMC4CAQEwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n" END,
		BEGIN "\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn8=\n" END,
		BEGIN "\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v!VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n" END,
		"-----BEGIN EC PRIVATE KEY-----\n" BODY "\n-----END EC PRIVATE KEY-----\n" };
	struct sign_public public;
	struct sign_key key;
	struct err e;

	for (size_t i = 0; i < COUNT_OF(good); i++)
		CHECK(is_private(good[i]));
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		if (is_private(bad[i]))
			printf("read: %s\n", bad[i]);
		CHECK(!is_private(bad[i]));
	}
	CHECK(sign_read_private(public_pem, strlen(public_pem), &key, &e) == -EBADMSG);
	CHECK_STR(e.text, "it is no Ed25519 private key in PEM, but begins as a public key");
	CHECK(sign_read_public(private_pem, strlen(private_pem), &public, &e) == -EBADMSG);
	CHECK_STR(e.text, "it is no Ed25519 public key in PEM, but begins as a private key");
	/* Every piece of one is none; without the newline it is one. */
	for (size_t n = 0; n < strlen(public_pem); n++)
		CHECK((sign_read_public(public_pem, n, &public, NULL) == 0) ==
			(n == strlen(public_pem) - 1));
}

int main(void)
{
	test_vectors();
	test_flips();
	test_weak_keys();
	test_pem();
	test_other_pem();
	return check_report();
}
