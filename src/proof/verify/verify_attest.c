#include "base/clock.h"
#include "base/count.h"
#include "base/str.h"
#include "proof/verify/verify_inside.h"
#include "proof/verify/verify_policy.h"

#define RESULT_TYPE "https://in-toto.io/attestation/svr/v0.2"
#define VERIFIER_ID "urn:bawn:verify:v1"
#define RECORD_NAME "record.intoto.jsonl"

static void print_artifact(struct json *j, const char *name, const char *sha256)
{
	json_open_map(j, NULL);
	json_text(j, "name", name);
	json_open_map(j, "digest");
	json_text(j, "sha256", sha256);
	json_close_map(j);
	json_close_map(j);
}

/* Properties of the report by the names that others know them by. */
static const struct {
	const char *name, *property;
} checked[] = {
	{ "BAWN_SIGNATURE", "signature" },
	{ "BAWN_PROVENANCE", "provenance" },
	{ "BAWN_EVENTS", "events" },
	{ "BAWN_EFFECTS", "effects" },
	{ "BAWN_SPEC", "spec" },
	{ "BAWN_PLAN", "plan" },
	{ "BAWN_PROJECT", "project" },
	{ "BAWN_STDOUT", "stdout" },
	{ "BAWN_STDERR", "stderr" },
	{ "BAWN_IMAGE", "image" },
	{ "BAWN_OVERLAY", "overlay" },
	{ "BAWN_GUARANTEES", "guarantees" },
	{ "BAWN_IN_CHAIN", "in_chain" },
};

/* Does all that was asked for hold, and nothing short of it? */
static bool attest_is_whole(const struct record_read *r)
{
	for (size_t i = 0; i < r->guarantees.count; i++)
		if (!r->guarantees.items[i].holds)
			return false;
	return r->guarantees.count > 0;
}

static void print_properties(struct json *j, const struct verify_record *v,
	const struct verify_options *o, const struct verify_report *report)
{
	const struct record_read *r = &v->record;
	const char *network = verify_network(r);

	json_open_list(j, "properties");
	for (size_t i = 0; i < COUNT_OF(checked); i++)
		if (verify_is_yes(report, checked[i].property))
			json_text(j, NULL, checked[i].name);
	if (r->is_hardened && r->in_chain)
		json_text(j, NULL, "BAWN_HARDENED");
	if (str_eq(network, "none"))
		json_text(j, NULL, "BAWN_NETWORK_NONE");
	if (str_eq(network, "allowlist"))
		json_text(j, NULL, "BAWN_NETWORK_ALLOWLIST");
	if (attest_is_whole(r))
		json_text(j, NULL, "BAWN_NO_DEGRADED");
	if (o->policy)
		json_text(j, NULL, "BAWN_POLICY");
	json_close_list(j);
}

static void print_verifier(struct json *j, const struct verify_options *o)
{
	json_open_map(j, "verifier");
	json_text(j, "id", VERIFIER_ID);
	json_open_list(j, "policies");
	if (o->policy)
		print_artifact(j, o->policy->path, o->policy->sha256);
	json_close_list(j);
	json_close_map(j);
}

void verify_print_result(const struct verify_record *v, const struct verify_options *o,
	const struct verify_report *report, struct buf *out)
{
	const struct record_artifacts *subjects = &v->statement.subjects;
	char now[CLOCK_TEXT_SIZE];
	struct json j;

	clock_print(&o->now, now);
	json_init(&j, out, 0);
	json_open_map(&j, NULL);
	json_text(&j, "_type", RECORD_STATEMENT_TYPE);
	json_open_list(&j, "subject");
	print_artifact(&j, RECORD_NAME, v->sha256);
	for (size_t i = 0; i < subjects->count; i++)
		if (!str_eq(subjects->items[i].name, RECORD_NAME))
			print_artifact(&j, subjects->items[i].name, subjects->items[i].sha256);
	json_close_list(&j);
	json_text(&j, "predicateType", RESULT_TYPE);
	json_open_map(&j, "predicate");
	print_verifier(&j, o);
	json_text(&j, "timeCreated", now);
	print_properties(&j, v, o, report);
	json_close_map(&j);
	json_close_map(&j);
}
