/* Bytes as a plan. What is accepted can be shown, and has a digest. */
#include "base/own.h"
#include "fuzz.h"
#include "plan/plan.h"

static void show(const struct plan *p)
{
	own(buf) struct buf text = { .max = (size_t)1 << 24 }, json = text;
	char digest[SHA256_HEX_SIZE];

	plan_print(p, &text, false);
	plan_print_json(p, &json);
	if (plan_digest(p, digest) < 0 && !json.failed)
		abort();
	for (size_t i = 0; i < text.len; i++) /* nothing in it moves a cursor */
		if ((unsigned char)text.data[i] < 0x20 && text.data[i] != '\n')
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *bytes = fuzz_text(data, size); /* aligned, as malloc's memory is */
	struct err e = { 0 };

	if (plan_check(bytes, size, &e) == 0)
		show((const struct plan *)(const void *)bytes);
	free(bytes);
	return 0;
}
