/* Bytes as a plan. What is accepted can be shown, and has a digest. */
#include "base/own.h"
#include "fuzz.h"
#include "plan/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	own_free char *bytes = fuzz_text(data, size); /* aligned, as malloc's memory is */
	own(buf) struct buf text = { .max = (size_t)1 << 24 }, json = text;
	const struct plan *p = (const struct plan *)(const void *)bytes;
	struct err e = { 0 };
	char digest[SHA256_HEX_SIZE];

	if (plan_check(bytes, size, &e) < 0)
		return 0;
	plan_print(p, &text, false);
	plan_print_json(p, &json);
	if (plan_digest(p, digest) < 0 && !json.failed)
		abort();
	for (size_t i = 0; i < text.len; i++) /* nothing in it moves a cursor */
		if ((unsigned char)text.data[i] < 0x20 && text.data[i] != '\n')
			abort();
	return 0;
}
