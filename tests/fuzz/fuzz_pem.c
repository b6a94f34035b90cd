/* Bytes as a key. What is accepted is printed as one that is the same. */
#include "base/own.h"
#include "fuzz.h"
#include "proof/sign/sign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	own(sign_key) struct sign_key key = { 0 }, again = { 0 };
	own(buf) struct buf out = { .max = 1000 };
	own_free char *text = fuzz_text(data, size);
	struct sign_public public, same;
	struct err e = { 0 };
	int r = sign_read_private(text, size, &key, &e);

	if ((r < 0) != (e.text[0] != '\0'))
		abort();
	if (r == 0) {
		sign_print_private(&key, &out);
		if (sign_read_private(buf_text(&out), out.len, &again, NULL) < 0 ||
			memcmp(&key, &again, sizeof(key)) != 0)
			abort();
	}
	if (sign_read_public(text, size, &public, NULL) == 0) {
		out.len = 0;
		sign_print_public(&public, &out);
		if (r == 0 || sign_read_public(buf_text(&out), out.len, &same, NULL) < 0 ||
			memcmp(&public, &same, sizeof(same)) != 0)
			abort();
	}
	return 0;
}
