/* Bytes as effects.json. What is accepted comes back the same. */
#include "base/own.h"
#include "fuzz.h"
#include "work/work.h"
#include "work/work_json.h"

static void print(struct work_effects *x, struct buf *out)
{
	work_digest(x, x->digest);
	work_effects_print(x, NULL, NULL, out);
	if (out->failed)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	own(work_effects) struct work_effects first, second;
	own(buf) struct buf once = { .max = (size_t)1 << 28 }, twice = once;
	struct err e = { 0 };
	int r;

	work_effects_init(&first);
	work_effects_init(&second);
	r = work_effects_parse((const char *)data, size, &first, &e);
	if (r < 0 ? !e.text[0] || first.count : e.text[0])
		abort();
	if (r < 0)
		return 0;
	print(&first, &once);
	if (work_effects_read(once.data, once.len, &second, &e) < 0)
		abort();
	print(&second, &twice);
	if (once.len != twice.len || memcmp(once.data, twice.data, once.len) != 0)
		abort();
	return 0;
}
