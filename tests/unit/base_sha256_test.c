/* The processor's own instructions against libsodium, in pieces of every size; files with holes. */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>

#include "base/file.h"
#include "base/own.h"
#include "base/sha256.h"
#include "check.h"

/* The same numbers in every run, so that a failure comes again. */
static uint32_t next_number(void)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 16);
}

static void hash_in_pieces(const uint8_t *bytes, size_t n, bool is_fast, size_t largest,
	uint8_t ret[static SHA256_SIZE])
{
	struct sha256 s;

	sha256_init(&s);
	if (!is_fast) {
		s.is_fast = false;
		crypto_hash_sha256_init(&s.sodium);
	}
	while (n) {
		size_t piece = next_number() % largest + 1;

		piece = piece < n ? piece : n;
		sha256_add(&s, bytes, piece);
		bytes += piece;
		n -= piece;
	}
	sha256_finish(&s, ret);
}

static void test_random(void)
{
	static uint8_t bytes[20000];
	uint8_t wanted[SHA256_SIZE], got[SHA256_SIZE];
	struct sha256 s;

	sha256_init(&s);
	printf("processor's own instructions: %s\n", s.is_fast ? "yes" : "no");
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)next_number();
	for (size_t i = 0; i < 3000; i++) {
		size_t n = i < 300 ? i : next_number() % 16384, from = next_number() % 3000;

		crypto_hash_sha256(wanted, bytes + from, n);
		for (int is_fast = 0; is_fast < 2; is_fast++) {
			hash_in_pieces(bytes + from, n, is_fast, i % 2 ? 200 : 20000, got);
			CHECK(memcmp(got, wanted, SHA256_SIZE) == 0);
		}
	}
}

static void test_hex(void)
{
	uint8_t digest[SHA256_SIZE] = { 0x00, 0xff, 0x1a }, back[SHA256_SIZE];
	char hex[SHA256_HEX_SIZE + 1];

	sha256_print(digest, hex);
	CHECK(strncmp(hex, "00ff1a00", 8) == 0 && strlen(hex) == 64);
	CHECK(sha256_parse(hex, back) == 0 && memcmp(back, digest, SHA256_SIZE) == 0);
	hex[10] = 'g';
	CHECK(sha256_parse(hex, back) == -EINVAL);
	hex[10] = ' ';
	CHECK(sha256_parse(hex, back) == -EINVAL);
	hex[10] = '\0';
	CHECK(sha256_parse(hex, back) == -EINVAL && sha256_parse("", back) == -EINVAL);
	memset(hex, 'a', 65);
	hex[65] = '\0';
	CHECK(sha256_parse(hex, back) == -EINVAL);
}

/* A file is what reading it gives, wherever its holes are. */
static void check_file(int fd)
{
	own_free char *bytes = NULL;
	uint8_t wanted[SHA256_SIZE], got[SHA256_SIZE];
	uint64_t size = 0;
	size_t n = 0;

	CHECK(lseek(fd, 0, SEEK_SET) == 0 && file_read_all(fd, 1 << 25, &bytes, &n) == 0);
	crypto_hash_sha256(wanted, (const uint8_t *)bytes, n);
	CHECK(sha256_file(fd, got, &size) == 0 && size == n);
	CHECK(memcmp(got, wanted, SHA256_SIZE) == 0);
}

static void test_files(void)
{
	own_fd int fd = open("/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	uint8_t digest[SHA256_SIZE];

	CHECK(fd >= 0);
	check_file(fd); /* empty */
	CHECK(ftruncate(fd, 10 << 20) == 0);
	check_file(fd); /* nothing but a hole */
	for (int i = 0; i < 20; i++) {
		char text[300];

		memset(text, 'a' + i, sizeof(text));
		CHECK(pwrite(fd, text, next_number() % 300, next_number() % (10 << 20)) >= 0);
		check_file(fd);
	}
	CHECK(pwrite(fd, "end", 3, 11 << 20) == 3);
	check_file(fd);
	CHECK(sha256_file(-1, digest, NULL) == -EBADF);
}

int main(void)
{
	test_random();
	test_hex();
	test_files();
	return check_report();
}
