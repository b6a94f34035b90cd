/*
 * Bytes as an envelope. What is accepted can be signed again and says the same then; no signature
 * in it is by a key that signed nothing.
 */
#include "base/own.h"
#include "fuzz.h"
#include "proof/sign/sign.h"

static struct sign_key make_key(void)
{
	static const uint8_t seed[SIGN_SEED_SIZE] = "a key that signed no input at al";
	struct sign_key key;

	sign_derive_key(seed, &key);
	return key;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	own(sign_key) struct sign_key key = make_key();
	own(buf) struct buf out = { .max = (size_t)1 << 24 };
	own(arena) struct arena arena;
	own_free char *text = fuzz_text(data, size);
	struct sign_envelope x, again;
	struct err e = { 0 };
	int r;

	arena_init(&arena, (size_t)1 << 24);
	r = sign_read_envelope(text, size, &arena, &x, &e);
	if ((r < 0) != (e.text[0] != '\0') || (r < 0 && (x.type || x.count)))
		abort();
	if (r < 0)
		return 0;
	if (x.count > SIGN_MOST_SIGNATURES || sign_is_by(&x, &key.public))
		abort();
	sign_print_envelope(&key, x.payload, x.size, &out);
	if (sign_read_envelope(buf_text(&out), out.len, &arena, &again, NULL) < 0 ||
		!sign_is_by(&again, &key.public) || again.size != x.size ||
		memcmp(again.payload, x.payload, x.size) != 0)
		abort();
	return 0;
}
