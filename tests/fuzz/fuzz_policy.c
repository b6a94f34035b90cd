/* Bytes as a verifier's policy. What is accepted has values of the form that its judges rely on. */
#include "base/num.h"
#include "base/own.h"
#include "fuzz.h"
#include "plan/plan_guarantees.h"
#include "proof/verify/verify_policy.h"

static struct diags diags; /* too large for a stack */

static void check_value(const struct verify_demand_def *d, const char *text)
{
	uint8_t digest[SHA256_SIZE];
	uint64_t ms;

	if (d->kind == VERIFY_GUARANTEE && plan_guarantee_find(text) == PLAN_GUARANTEE_COUNT)
		abort();
	if (d->kind == VERIFY_DIGEST && sha256_parse(text, digest) < 0)
		abort();
	if (d->kind == VERIFY_DURATION && num_parse_duration(text, &ms, NULL) < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	own_free char *text = fuzz_text(data, size);
	own(buf) struct buf out = { .max = (size_t)1 << 24 };
	own(arena) struct arena arena;
	struct verify_policy policy;
	int r;

	arena_init(&arena, (size_t)64 << 20);
	diags_init(&diags, &arena);
	r = verify_read_policy(&policy, "p", text, size, &arena, &diags);
	if ((r == 0) != (diags.errors == 0))
		abort();
	diags_print(&diags, &out, false);
	for (size_t i = 0; r == 0 && i < VERIFY_DEMAND_COUNT; i++) {
		const struct record_texts *texts = &policy.demands[i].texts;

		if (verify_demand_defs[i].takes_one && texts->count > 1)
			abort();
		if (policy.demands[i].is_given && !texts->count && i != VERIFY_DEGRADED)
			abort();
		for (size_t k = 0; k < texts->count; k++)
			check_value(&verify_demand_defs[i], texts->items[k]);
	}
	return 0;
}
