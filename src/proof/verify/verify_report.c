/* The result of a verification: collected, and printed as text, as JSON and as an attestation. */
#include "proof/verify/verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "proof/verify/verify_policy.h"

#define MOST_TEXT 4096

/* One word or two: "yes", "not there". */
static const char *property_word(const struct verify_report *r, enum verify_result result)
{
	static const char *const words[] = { "yes", "no", "not there", "not asked" };

	return r->is_comparison && result == VERIFY_ABSENT ? "unknown" : words[result];
}

/* A copy that a terminal obeys nothing in. */
static const char *keep_visible(struct arena *arena, const char *text)
{
	own(buf) struct buf visible = { .max = 8 * MOST_TEXT };
	const char *kept;

	buf_add_visible(&visible, text, strlen(text));
	kept = visible.failed ? NULL : arena_copy(arena, visible.data, visible.len);
	return kept ? kept : "…";
}

void verify_say(
	struct verify_report *r, const char *name, enum verify_result result, const char *fmt, ...)
{
	char text[MOST_TEXT];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	/* A property that does not fit still counts as failed. */
	r->has_failed |= result == VERIFY_NO || r->count == VERIFY_MAX_PROPERTIES;
	if (r->count == VERIFY_MAX_PROPERTIES)
		return;
	r->items[r->count++] = (struct verify_property){
		.name = keep_visible(r->arena, name),
		.result = result,
		.text = keep_visible(r->arena, text),
	};
}

bool verify_is_yes(const struct verify_report *r, const char *name)
{
	for (size_t i = 0; i < r->count; i++)
		if (str_eq(r->items[i].name, name))
			return r->items[i].result == VERIFY_YES;
	return false;
}

void verify_print(const struct verify_report *r, bool has_color, struct buf *out)
{
	static const char *const inks[] = { "\x1b[32m", "\x1b[1;31m", "\x1b[33m", "\x1b[2m" };
	size_t width = 0;

	for (size_t i = 0; i < r->count; i++) {
		size_t n = strlen(r->items[i].name);

		width = n > width && n <= 24 ? n : width;
	}
	for (size_t i = 0; i < r->count; i++) {
		const struct verify_property *p = &r->items[i];

		buf_printf(out, "%-*s  %s%-9s%s  %s\n", (int)width, p->name,
			has_color ? inks[p->result] : "", property_word(r, p->result),
			has_color ? "\x1b[0m" : "", p->text);
	}
}

void verify_print_json(const struct verify_report *r, struct json *j)
{
	json_open_list(j, "properties");
	for (size_t i = 0; i < r->count; i++) {
		json_open_map(j, NULL);
		json_text(j, "name", r->items[i].name);
		json_text(j, "result", property_word(r, r->items[i].result));
		json_text(j, "text", r->items[i].text);
		json_close_map(j);
	}
	json_close_list(j);
}

const char *verify_network(const struct record_read *r)
{
	const struct record_read_guarantee *none = record_read_find(r, "net.none");
	const struct record_read_guarantee *allowlist = record_read_find(r, "net.allowlist");

	if (none && none->holds)
		return "none";
	return allowlist && allowlist->holds ? "allowlist" : "host";
}

/* --- as an attestation --- */

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

/* True if every guarantee of the record holds. */
static bool attest_is_whole(const struct record_read *r)
{
	for (size_t i = 0; i < r->guarantees.count; i++)
		if (!r->guarantees.items[i].holds)
			return false;
	return r->guarantees.count > 0;
}

static void print_checked(struct json *j, const struct verify_record *v,
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
	print_checked(&j, v, o, report);
	json_close_map(&j);
	json_close_map(&j);
}
