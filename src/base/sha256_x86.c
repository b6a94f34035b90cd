#include "base/sha256_x86.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

static bool ask_processor(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(1, &a, &b, &c, &d) && c & bit_SSSE3 && c & bit_SSE4_1 &&
	       __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_SHA;
}

bool sha256_x86_is_there(void)
{
	/* Asked once: in a virtual machine each question goes to the host. */
	static enum {
		NOT_ASKED,
		NO,
		YES
	} answer;

	if (answer == NOT_ASKED)
		answer = ask_processor() ? YES : NO;
	return answer == YES;
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
__attribute__((target("sha,sse4.1,ssse3"))) void sha256_x86_blocks(
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
#endif
