#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "proof/card/card.h"

static const char *const vantages[] = {
	[RECORD_INSIDE] = "inside",
	[RECORD_KEEPER] = "keeper",
	[RECORD_OUTSIDE] = "outside",
};

static const char *const outcomes[] = {
	[RECORD_REFUSED] = "refused",
	[RECORD_EXITED] = "exited",
	[RECORD_SIGNALED] = "signaled",
	[RECORD_TIMED_OUT] = "timed_out",
	[RECORD_CUT_OFF] = "cut_off",
	[RECORD_BROKEN] = "broken",
	[RECORD_INTERRUPTED] = "interrupted",
};

static int wrong(struct err *e, const char *what)
{
	return err_set(e, ERR_SPEC, EBADMSG, "%s", what);
}

/* Is it the spec that the record names, and does it make the level that the record says? */
static int record_check_spec(const struct spec *s, const struct record_read *r, struct err *e)
{
	own(buf) struct buf form = { .max = PLAN_MAX_SIZE };
	char digest[SHA256_HEX_SIZE];
	bool is_hardened = true;

	spec_print_canonical(s, &form);
	if (form.failed)
		return err_set(e, ERR_SYS, ENOMEM, "cannot make the card: out of memory");
	sha256_hex(form.data, form.len, digest);
	if (!r->spec_sha256 || !str_eq(digest, r->spec_sha256))
		return wrong(e, "the spec is not the one that the record names");
	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++)
		is_hardened = is_hardened && !plan_ends_hardened(s, k);
	if (is_hardened != r->is_hardened)
		return wrong(e, "the record has another level than its spec");
	return 0;
}

static int find_engine(const char *name, enum spec_engine *ret, struct err *e)
{
	for (enum spec_engine i = SPEC_ENGINE_AUTO + 1; i < PLAN_ENGINE_COUNT; i++) {
		if (!name || !str_eq(name, spec_keys[SPEC_ENGINE].choices[i]))
			continue;
		*ret = i;
		return 0;
	}
	return wrong(e, "the record names no engine that is known here");
}

static void take_promises(const struct record_read *r, struct card *ret)
{
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
		const struct record_read_guarantee *x =
			record_read_find(r, plan_guarantee_defs[g].name);

		if (x)
			ret->promises[g] = (struct card_promise){
				.need = x->is_must ? PLAN_MUST : PLAN_MAY,
				.holds = x->holds && x->vantage != RECORD_UNSEEN,
				.vantage = vantages[x->vantage],
			};
	}
}

int card_from_record(const struct spec *s, const struct record_read *r, const char *digest,
	const char *key, struct card *ret, struct err *e)
{
	struct card_run run = {
		.is_known = true,
		.record = digest,
		.key = key,
		.id = r->run,
		.outcome = outcomes[r->outcome],
		.effects = r->effects.sha256,
		.is_preflight_passed = r->preflight_passed,
		.is_in_chain = r->in_chain,
	};
	int failure = s ? record_check_spec(s, r, e) : 0;

	*ret = (struct card){
		.spec = s,
		.url = CARD_URL,
		.is_hardened = r->is_hardened,
		.landlock_abi = r->landlock_abi,
		.spec_digest = r->spec_sha256,
		.plan_digest = r->plan_sha256,
		.preflight_digest = r->preflight_sha256,
		.run = run,
	};
	if (failure == 0)
		failure = find_engine(r->engine, &ret->engine, e);
	if (failure == 0 && (!r->run || !r->spec_sha256 || !r->plan_sha256))
		failure = wrong(e, "the record does not say which run, spec or plan it is about");
	take_promises(r, ret);
	return failure;
}
