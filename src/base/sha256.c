#include "base/sha256.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256_x86.h"
#include "base/str.h"

#define BLOCK 64

/* --- by the processor: the standard's padding and byte order, around its blocks --- */

static void add_fast(struct sha256_fast *f, const uint8_t *bytes, size_t n)
{
	size_t kept = (size_t)(f->size % BLOCK), first = BLOCK - kept;

	f->size += n;
	if (kept && n >= first) {
		memcpy(f->block + kept, bytes, first);
		sha256_x86_blocks(f->words, f->block, 1);
		bytes += first;
		n -= first;
		kept = 0;
	}
	if (!kept) {
		sha256_x86_blocks(f->words, bytes, n / BLOCK);
		bytes += n - n % BLOCK;
		n %= BLOCK;
	}
	if (n)
		memcpy(f->block + kept, bytes, n);
}

static void put_word(uint8_t *ret, uint32_t word)
{
	for (int i = 0; i < 4; i++)
		ret[i] = (uint8_t)(word >> (24 - 8 * i));
}

/* What is kept, a one, zeros and the length in bits: one block more, or two. */
static void finish_fast(struct sha256_fast *f, uint8_t ret[static SHA256_SIZE])
{
	size_t kept = (size_t)(f->size % BLOCK);
	size_t size = kept < BLOCK - 8 ? BLOCK : 2 * BLOCK;
	uint8_t last[2 * BLOCK] = { 0 };

	memcpy(last, f->block, kept);
	last[kept] = 0x80;
	put_word(last + size - 8, (uint32_t)(f->size >> 29));
	put_word(last + size - 4, (uint32_t)(f->size << 3));
	sha256_x86_blocks(f->words, last, size / BLOCK);
	for (size_t i = 0; i < 8; i++)
		put_word(ret + 4 * i, f->words[i]);
}

/* --- by whichever of the two is faster here; the tests compare them --- */

void sha256_init(struct sha256 *s)
{
	static const struct sha256_fast start = { .words = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372,
							  0xa54ff53a, 0x510e527f, 0x9b05688c,
							  0x1f83d9ab, 0x5be0cd19 } };

	s->is_fast = sha256_x86_is_there();
	if (s->is_fast)
		s->fast = start;
	else
		crypto_hash_sha256_init(&s->sodium);
}

void sha256_add(struct sha256 *s, const void *bytes, size_t n)
{
	if (s->is_fast)
		add_fast(&s->fast, bytes, n);
	else
		crypto_hash_sha256_update(&s->sodium, bytes, n);
}

void sha256_finish(struct sha256 *s, uint8_t ret[static SHA256_SIZE])
{
	if (s->is_fast)
		finish_fast(&s->fast, ret);
	else
		crypto_hash_sha256_final(&s->sodium, ret);
}

void sha256_print(const uint8_t digest[static SHA256_SIZE], char ret[static SHA256_HEX_SIZE])
{
	sodium_bin2hex(ret, SHA256_HEX_SIZE, digest, SHA256_SIZE);
}

int sha256_parse(const char *hex, uint8_t ret[static SHA256_SIZE])
{
	uint8_t digest[SHA256_SIZE];

	if (strlen(hex) != SHA256_HEX_SIZE - 1)
		return -EINVAL;
	for (size_t i = 0; i < SHA256_SIZE; i++) {
		int high = str_hex_digit(hex[2 * i]), low = str_hex_digit(hex[2 * i + 1]);

		if (high < 0 || low < 0)
			return -EINVAL;
		digest[i] = (uint8_t)(high << 4 | low);
	}
	memcpy(ret, digest, SHA256_SIZE);
	return 0;
}

void sha256_hex(const void *bytes, size_t n, char ret[static SHA256_HEX_SIZE])
{
	uint8_t digest[SHA256_SIZE];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, bytes, n);
	sha256_finish(&s, digest);
	sha256_print(digest, ret);
}

/* --- files --- */

static void sha256_add_zeros(struct sha256 *s, uint64_t n)
{
	static const uint8_t zeros[4096];

	for (; n > sizeof(zeros); n -= sizeof(zeros))
		sha256_add(s, zeros, sizeof(zeros));
	sha256_add(s, zeros, (size_t)n);
}

/* Where the next data is, at `at` or behind; the end where there is none. */
static off_t sha256_next_data(int fd, off_t at, off_t end)
{
	off_t data = lseek(fd, at, SEEK_DATA);

	if (data >= 0)
		return data < end ? data : end;
	return errno == ENXIO ? end : at; /* a file system without holes has data everywhere */
}

/* Reads on from `at` until a hole may begin, or the end; how far it came, or -errno. */
static off_t add_data(struct sha256 *s, int fd, off_t at)
{
	char bytes[64 * 1024];
	off_t hole = lseek(fd, at, SEEK_HOLE);

	while (hole < 0 || at < hole) {
		size_t wanted = sizeof(bytes);
		ssize_t n;

		if (hole >= 0 && hole - at < (off_t)wanted)
			wanted = (size_t)(hole - at);
		n = pread(fd, bytes, wanted, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		sha256_add(s, bytes, (size_t)n);
		at += n;
	}
	return at;
}

int sha256_file(int fd, uint8_t ret[static SHA256_SIZE], uint64_t *ret_size)
{
	struct sha256 s;
	struct stat st;
	off_t at = 0;

	if (fstat(fd, &st) < 0)
		return -errno;
	sha256_init(&s);
	while (at < st.st_size) {
		off_t data = sha256_next_data(fd, at, st.st_size), end;

		sha256_add_zeros(&s, (uint64_t)(data - at));
		end = data < st.st_size ? add_data(&s, fd, data) : data;
		if (end < 0)
			return (int)end;
		if (end == at)
			break; /* it became shorter meanwhile */
		at = end;
	}
	sha256_finish(&s, ret);
	if (ret_size)
		*ret_size = (uint64_t)at;
	return 0;
}
