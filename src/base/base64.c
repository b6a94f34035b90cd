#include "base/base64.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#define CHUNK 3072 /* bytes, a multiple of three: in front of the last there is no padding */

void base64_add(struct buf *out, const void *bytes, size_t n, bool is_url)
{
	int variant =
		is_url ? sodium_base64_VARIANT_URLSAFE_NO_PADDING : sodium_base64_VARIANT_ORIGINAL;
	char text[sodium_base64_ENCODED_LEN(CHUNK, sodium_base64_VARIANT_ORIGINAL)];
	const uint8_t *p = bytes;

	while (n) {
		size_t size = n < CHUNK ? n : CHUNK;

		buf_puts(out, sodium_bin2base64(text, sizeof(text), p, size, variant));
		p += size;
		n -= size;
	}
}

ssize_t base64_read(const char *text, size_t n, uint8_t *ret)
{
	bool is_url = memchr(text, '-', n) || memchr(text, '_', n) || n % 4 != 0;
	int variant = !is_url      ? sodium_base64_VARIANT_ORIGINAL
		      : n % 4 == 0 ? sodium_base64_VARIANT_URLSAFE
				   : sodium_base64_VARIANT_URLSAFE_NO_PADDING;
	size_t size;

	/* libsodium takes some bytes beyond ASCII for letters. */
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] > 0x7f)
			return -EINVAL;
	if (sodium_base642bin(ret, n / 4 * 3 + 3, text, n, NULL, &size, NULL, variant) != 0)
		return -EINVAL;
	return (ssize_t)size;
}
