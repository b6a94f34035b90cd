#include "proof/verify/verify_inside.h"
#include "proof/verify/verify_policy.h"

/* A relaxed run is recorded like any other, and nothing should be built on it. */
static void verify_in_chain(
	const struct verify_record *v, const struct verify_options *o, struct verify_report *report)
{
	if (v->record.in_chain)
		verify_say(report, "in_chain", VERIFY_YES, "nothing was relaxed");
	else if (verify_policy_allows_relaxed(o->policy))
		verify_say(report, "in_chain", VERIFY_UNASKED,
			"the run was relaxed, which the policy does not mind");
	else
		verify_say(report, "in_chain", VERIFY_NO,
			"the run was relaxed: what it did is known, and nothing should be built "
			"on it");
}

void verify_judge(
	const struct verify_record *v, const struct verify_options *o, struct verify_report *report)
{
	verify_provenance(v, report);
	verify_subjects(v, report);
	verify_events(v, report);
	verify_effects(v, report);
	verify_plain_files(v, report);
	verify_image(v, o, report);
	verify_overlay(v, o, report);
	verify_guarantees(v, report);
	verify_in_chain(v, o, report);
	verify_outcome(v, report);
	if (o->policy)
		verify_demands(v, o, report);
}
