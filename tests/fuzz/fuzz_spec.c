/*
 * Bytes as a spec file, once as the project's word and once as the operator's, and as a policy.
 * What settles reads back from its canonical form, and is planned; a plan that
 * is not sound, or that would move a cursor when it is printed, ends the run.
 */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "fake_host.h"
#include "fuzz.h"
#include "plan/plan.h"
#include "plan_sound.h"

static struct spec spec, again; /* too large for a stack */

static void check_reread(void)
{
	own(buf) struct buf form = { .max = (size_t)1 << 24 };

	spec_print_canonical(&spec, &form);
	spec_init(&again);
	if (!form.failed && spec_read_canonical(&again, form.data, form.len, NULL) < 0)
		abort();
	spec_done(&again);
}

static void try_plan(const struct host *host, struct buf *out)
{
	own_free struct plan *p = NULL;

	plan_check_spec(&spec);
	if (plan_build(&spec, host, &p, NULL, NULL) < 0)
		return;
	if (!plan_is_sound(p))
		abort();
	plan_print(p, out, false);
	for (size_t i = 0; i < out->len; i++)
		if ((unsigned char)out->data[i] < 0x20 && out->data[i] != '\n')
			abort();
	plan_print(p, out, true);
	plan_print_json(p, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	struct host host;

	fake_host_init(&host);
	for (int who = 0; who < 3; who++) {
		own(buf) struct buf out = { .max = (size_t)1 << 24 };

		spec_init(&spec);
		if (who == 2)
			spec_add_policy(&spec, SPEC_LAYER_USER, "policy.yaml", text, size);
		else
			spec_add_file(&spec, "bawn.yaml", text, size, who);
		if (spec_settle(&spec)) {
			check_reread();
			try_plan(&host, &out);
		}
		for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++)
			spec_explain(&spec, k, &out);
		diags_print(&spec.diags, &out, true);
		spec_done(&spec);
	}
	free(text);
	return 0;
}
