/* Bytes as effects.json. What is accepted comes back the same. */
#include "base/own.h"
#include "change/change.h"
#include "change/effects/change_json.h"
#include "fuzz.h"

static void print(struct change_effects *x, struct buf *out)
{
	change_digest(x, x->digest);
	change_effects_print(x, NULL, NULL, out);
	if (out->failed)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	own(change_effects) struct change_effects first, second;
	own(buf) struct buf once = { .max = (size_t)1 << 28 }, twice = once;
	struct err e = { 0 };
	int r;

	change_effects_init(&first);
	change_effects_init(&second);
	r = change_effects_parse((const char *)data, size, &first, &e);
	if (r < 0 ? !e.text[0] || first.count : e.text[0])
		abort();
	if (r < 0)
		return 0;
	print(&first, &once);
	if (change_effects_read(once.data, once.len, &second, &e) < 0)
		abort();
	print(&second, &twice);
	if (once.len != twice.len || memcmp(once.data, twice.data, once.len) != 0)
		abort();
	return 0;
}
