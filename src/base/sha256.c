#include "base/sha256.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <sys/platform/x86.h>
#endif
#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"

#define BLOCK 64

/* --- the processor's own instructions, about five times as fast --- */

#if defined(__x86_64__)
/* True with SHA instructions. Uses what libc has read at its start: CPUID is slow in virtual
 * machines. */
static bool has_instructions(void)
{
	return CPU_FEATURE_ACTIVE(SSSE3) && CPU_FEATURE_ACTIVE(SSE4_1) && CPU_FEATURE_ACTIVE(SHA);
}

/* clang-format off */
static const uint32_t keys[64] __attribute__((aligned(16))) = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};
/* clang-format on */

/*
 * The processor's instructions want the state as the words a b e f and c d g h, highest first, and
 * do two rounds at a time; the words of the message are made four at a time from the sixteen
 * before.
 */
__attribute__((target("sha,sse4.1,ssse3"))) static void hash_blocks(
	uint32_t state[static 8], const uint8_t *bytes, size_t blocks)
{
	const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
	__m128i low = _mm_loadu_si128((const __m128i *)&state[0]);  /* d c b a */
	__m128i high = _mm_loadu_si128((const __m128i *)&state[4]); /* h g f e */
	__m128i cdab = _mm_shuffle_epi32(low, 0xb1), efgh = _mm_shuffle_epi32(high, 0x1b);
	__m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);

	for (; blocks; blocks--, bytes += 64) {
		__m128i was_abef = abef, was_cdgh = cdgh, w[4];

#pragma GCC unroll 16
		for (unsigned i = 0; i < 16; i++) {
			__m128i *now = &w[i % 4], sum;

			if (i < 4) {
				*now = _mm_loadu_si128((const __m128i *)(bytes + (size_t)i * 16));
				*now = _mm_shuffle_epi8(*now, swap);
			} else {
				__m128i last = w[(i + 3) % 4], middle = w[(i + 2) % 4];

				*now = _mm_sha256msg1_epu32(*now, w[(i + 1) % 4]);
				*now = _mm_add_epi32(*now, _mm_alignr_epi8(last, middle, 4));
				*now = _mm_sha256msg2_epu32(*now, last);
			}
			sum = _mm_add_epi32(*now, _mm_load_si128((const __m128i *)&keys[i * 4]));
			cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
			abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
		}
		abef = _mm_add_epi32(abef, was_abef);
		cdgh = _mm_add_epi32(cdgh, was_cdgh);
	}
	low = _mm_shuffle_epi32(abef, 0x1b);
	high = _mm_shuffle_epi32(cdgh, 0xb1);
	_mm_storeu_si128((__m128i *)&state[0], _mm_blend_epi16(low, high, 0xf0));
	_mm_storeu_si128((__m128i *)&state[4], _mm_alignr_epi8(high, low, 8));
}
#else
static bool has_instructions(void)
{
	return false;
}

static void hash_blocks(uint32_t state[static 8], const uint8_t *bytes, size_t blocks)
{
	(void)state, (void)bytes, (void)blocks;
}
#endif

/* --- by the processor: the standard's padding and byte order, around its blocks --- */

static void add_fast(struct sha256_fast *f, const uint8_t *bytes, size_t n)
{
	size_t kept = (size_t)(f->size % BLOCK), first = BLOCK - kept;

	f->size += n;
	if (kept && n >= first) {
		memcpy(f->block + kept, bytes, first);
		hash_blocks(f->words, f->block, 1);
		bytes += first;
		n -= first;
		kept = 0;
	}
	if (!kept) {
		hash_blocks(f->words, bytes, n / BLOCK);
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

/* Adds the padding: a one bit, zeros and the length in bits, in one or two blocks. */
static void finish_fast(struct sha256_fast *f, uint8_t ret[static SHA256_SIZE])
{
	size_t kept = (size_t)(f->size % BLOCK);
	size_t size = kept < BLOCK - 8 ? BLOCK : 2 * BLOCK;
	uint8_t last[2 * BLOCK] = { 0 };

	memcpy(last, f->block, kept);
	last[kept] = 0x80;
	put_word(last + size - 8, (uint32_t)(f->size >> 29));
	put_word(last + size - 4, (uint32_t)(f->size << 3));
	hash_blocks(f->words, last, size / BLOCK);
	for (size_t i = 0; i < 8; i++)
		put_word(ret + 4 * i, f->words[i]);
}

/* --- by whichever of the two is faster here; the tests compare them --- */

void sha256_init(struct sha256 *s)
{
	static const struct sha256_fast start = { .words = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372,
							  0xa54ff53a, 0x510e527f, 0x9b05688c,
							  0x1f83d9ab, 0x5be0cd19 } };

	s->is_fast = has_instructions();
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

/* Returns the offset of the next data at or behind `at`; the end of the file if there is none. */
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
