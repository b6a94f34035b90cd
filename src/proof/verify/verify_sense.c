#include <inttypes.h>
#include <stdio.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "proof/verify/verify_inside.h"

/* Both unknown, or both known and the same. */
static bool sense_are_same(const char *a, const char *b)
{
	return a && b ? str_eq(a, b) : a == b;
}

/* --- the provenance --- */

static bool have_same_subjects(const struct record_artifacts *a, const struct record_artifacts *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (!str_eq(a->items[i].name, b->items[i].name) ||
			!str_eq(a->items[i].sha256, b->items[i].sha256))
			return false;
	return true;
}

/* Is the digest of what went into the run that of the record, as far as both name one? */
static bool has_dependency(const struct record_provenance *p, const char *name, const char *sha256)
{
	for (size_t i = 0; i < p->dependencies.count; i++)
		if (str_eq(p->dependencies.items[i].name, name))
			return sense_are_same(p->dependencies.items[i].sha256, sha256);
	return !sha256;
}

/* What they do not agree on; NULL: nothing. */
static const char *find_difference(const struct verify_record *v)
{
	const struct record_provenance *p = &v->provenance;
	const struct record_read *r = &v->record;
	const struct {
		const char *what, *one, *other;
	} pairs[] = {
		{ "kind", p->build_type, RECORD_BUILD_TYPE },
		{ "run", p->run, r->run },
		{ "name", p->name, r->name },
		{ "level", p->level, r->level },
		{ "spec", p->spec_sha256, r->spec_sha256 },
		{ "plan", p->plan_sha256, r->plan_sha256 },
		{ "filter", p->filter_sha256, r->filter_sha256 },
		{ "engine", p->engine, r->engine },
		{ "version", p->bawn, r->bawn },
		{ "kernel", p->kernel, r->kernel },
		{ "beginning", p->began, r->began },
		{ "end", p->ended, r->ended },
	};

	for (size_t i = 0; i < COUNT_OF(pairs); i++)
		if (!sense_are_same(pairs[i].one, pairs[i].other))
			return pairs[i].what;
	if (!have_same_subjects(&v->statement.subjects, &v->provenance_statement.subjects))
		return "subject";
	if (!has_dependency(p, "image", r->image.sha256))
		return "image";
	if (!has_dependency(p, "project", r->project.sha256))
		return "project";
	return has_dependency(p, "overlay", r->overlay.sha256_before) ? NULL : "overlay";
}

void verify_provenance(const struct verify_record *v, struct verify_report *report)
{
	const char *what = v->has_provenance ? find_difference(v) : NULL;

	if (!v->has_provenance)
		verify_say(report, "provenance", VERIFY_ABSENT, "the file has none");
	else if (what)
		verify_say(report, "provenance", VERIFY_NO,
			"it is not of the record's run: it names another %s", what);
	else
		verify_say(report, "provenance", VERIFY_YES, "it says the same as the record");
}

/* --- guarantees --- */

static bool sense_is_listed(const struct record_texts *names, const char *name)
{
	for (size_t i = 0; i < names->count; i++)
		if (str_eq(names->items[i], name))
			return true;
	return false;
}

/* The names of those that must hold and do not. */
static size_t find_missing(const struct record_read *r, struct buf *ret)
{
	size_t count = 0;

	for (size_t i = 0; i < r->guarantees.count; i++) {
		const struct record_read_guarantee *g = &r->guarantees.items[i];

		if (g->is_must && !g->holds)
			buf_printf(ret, "%s%s", count++ ? ", " : "", g->name);
	}
	return count;
}

static void verify_degraded(const struct record_read *r, struct verify_report *report)
{
	size_t missing = 0;

	for (size_t i = 0; i < r->guarantees.count; i++) {
		const struct record_read_guarantee *g = &r->guarantees.items[i];
		bool is_degraded = !g->is_must && !g->holds;

		missing += is_degraded;
		if (is_degraded == sense_is_listed(&r->degraded, g->name))
			continue;
		verify_say(report, "degraded", VERIFY_NO,
			is_degraded ? "'%s' is missing, and not said to be"
				    : "'%s' is said to be missing, and holds or must hold",
			g->name);
		return;
	}
	if (missing != r->degraded.count)
		verify_say(report, "degraded", VERIFY_NO,
			"the list has names twice, or of what was not asked for");
	else if (missing)
		verify_say(report, "degraded", VERIFY_YES,
			"%zu optional guarantee%s not enforced, as the record says: %s first",
			missing, missing == 1 ? " was" : "s were", r->degraded.items[0]);
	else
		verify_say(report, "degraded", VERIFY_YES, "nothing that was asked for is missing");
}

void verify_guarantees(const struct verify_record *v, struct verify_report *report)
{
	const struct record_read *r = &v->record;
	own(buf) struct buf names = { .max = 2048 };
	size_t missing = find_missing(r, &names), must = 0;

	for (size_t i = 0; i < r->guarantees.count; i++)
		must += r->guarantees.items[i].is_must;
	if (missing)
		verify_say(report, "guarantees", VERIFY_NO,
			"%zu of %zu that are required do not hold, or nobody saw it: %s", missing,
			must, buf_text(&names));
	else
		verify_say(report, "guarantees", VERIFY_YES,
			"all %zu that are required were seen to hold", must);
	verify_degraded(r, report);
}

/* --- how it ended --- */

void verify_outcome(const struct verify_record *v, struct verify_report *report)
{
	const struct record_read *r = &v->record;
	bool has_status = r->status >= 0, has_signal = r->signal >= 0;
	const char *word = record_outcome_words[r->outcome];

	if (has_status != (r->outcome == RECORD_EXITED) ||
		has_signal != (r->outcome == RECORD_SIGNALED))
		verify_say(report, "outcome", VERIFY_NO,
			"'%s' does not go with the status or the signal that is there", word);
	else if (has_status)
		verify_say(report, "outcome", VERIFY_YES, "exited with %" PRId64, r->status);
	else if (has_signal)
		verify_say(report, "outcome", VERIFY_YES, "ended by signal %" PRId64, r->signal);
	else if (r->outcome == RECORD_INTERRUPTED)
		verify_say(report, "outcome", VERIFY_YES,
			"interrupted: bawn ended before it signed what became of the run");
	else
		verify_say(report, "outcome", VERIFY_YES, "%s%s%s", word, r->error ? ": " : "",
			r->error ? r->error : "");
}

const char *verify_network(const struct record_read *r)
{
	const struct record_read_guarantee *none = record_read_find(r, "net.none");
	const struct record_read_guarantee *allowlist = record_read_find(r, "net.allowlist");

	if (none && none->holds)
		return "none";
	return allowlist && allowlist->holds ? "allowlist" : "host";
}
