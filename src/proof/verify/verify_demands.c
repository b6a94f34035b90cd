#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "proof/verify/verify_inside.h"
#include "proof/verify/verify_policy.h"

#define MOST_SKEW_S 300 /* by which two clocks may differ */

/* What a demand is judged by. */
struct judging {
	const struct verify_record *v;
	const struct verify_options *options;
	struct verify_report *report;
	const struct record_texts *wanted;
	char name[64]; /* of the property */
};

static bool demands_is_wanted(const struct judging *j, const char *text)
{
	for (size_t i = 0; text && i < j->wanted->count; i++)
		if (str_eq(j->wanted->items[i], text))
			return true;
	return false;
}

static const char *list_wanted(const struct judging *j, struct buf *out)
{
	for (size_t i = 0; i < j->wanted->count; i++)
		buf_printf(out, "%s%s", i ? ", " : "", j->wanted->items[i]);
	return buf_text(out);
}

/* Is what the record has, or this other name of it, one of those that are wanted? */
static void judge_one(struct judging *j, const char *has, const char *other)
{
	own(buf) struct buf list = { .max = 2048 };

	if (demands_is_wanted(j, has) || demands_is_wanted(j, other))
		verify_say(j->report, j->name, VERIFY_YES, "%s",
			demands_is_wanted(j, has) ? has : other);
	else if (has)
		verify_say(j->report, j->name, VERIFY_NO, "%s, and demanded is: %s", has,
			list_wanted(j, &list));
	else
		verify_say(j->report, j->name, VERIFY_NO,
			"the record has none, and demanded is: %s", list_wanted(j, &list));
}

/* --- what a record says --- */

static const char *level_of(const struct verify_record *v)
{
	return v->record.level;
}

static const char *demands_network_of(const struct verify_record *v)
{
	return verify_network(&v->record);
}

static const char *preflight_of(const struct verify_record *v)
{
	return v->record.preflight_passed ? "true" : "false";
}

static const char *outcome_of(const struct verify_record *v)
{
	return record_outcome_words[v->record.outcome];
}

static const char *key_of(const struct verify_record *v)
{
	return v->key.id;
}

static const char *spec_of(const struct verify_record *v)
{
	return v->record.spec_sha256;
}

static const char *plan_of(const struct verify_record *v)
{
	return v->record.plan_sha256;
}

/* A name that looks like a digest is none: who demands one means what was in the image. */
static const char *demands_image_of(const struct verify_record *v)
{
	const char *name = v->record.image.name;
	uint8_t unused[SHA256_SIZE];

	return name && sha256_parse(name, unused) == 0 ? NULL : name;
}

static const char *image_digest_of(const struct verify_record *v)
{
	return v->record.image.sha256;
}

static const char *engine_of(const struct verify_record *v)
{
	return v->record.engine;
}

static const char *bawn_of(const struct verify_record *v)
{
	return v->record.bawn;
}

/* --- what takes more than a look --- */

static void judge_status(struct judging *j)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, j->v->record.status);
	judge_one(j, j->v->record.status < 0 ? NULL : text, NULL);
}

static void judge_each(struct judging *j, bool is_outside)
{
	for (size_t i = 0; i < j->wanted->count; i++) {
		const char *name = j->wanted->items[i];
		const struct record_read_guarantee *g = record_read_find(&j->v->record, name);

		if (g && g->holds && (!is_outside || g->vantage >= RECORD_KEEPER))
			continue;
		verify_say(j->report, j->name, VERIFY_NO, "%s %s", name,
			!g         ? "was not asked for in this run"
			: g->holds ? "is only claimed from inside the cage"
				   : "does not hold, or nobody saw it");
		return;
	}
	verify_say(j->report, j->name, VERIFY_YES, "all %zu hold%s", j->wanted->count,
		is_outside ? ", seen from outside the cage" : "");
}

static void judge_guarantees(struct judging *j)
{
	judge_each(j, false);
}

static void judge_outside(struct judging *j)
{
	judge_each(j, true);
}

/* By what was seen, not by what the record lists: verify_degraded holds that to it. */
static void judge_degraded(struct judging *j)
{
	const struct record_read *r = &j->v->record;
	size_t missing = 0;

	for (size_t i = 0; i < r->guarantees.count; i++) {
		const struct record_read_guarantee *g = &r->guarantees.items[i];

		if (g->holds)
			continue;
		missing++;
		if (!demands_is_wanted(j, g->name)) {
			verify_say(j->report, j->name, VERIFY_NO, "%s does not hold", g->name);
			return;
		}
	}
	verify_say(j->report, j->name, VERIFY_YES,
		missing ? "%zu are missing, and may be" : "none is missing", missing);
}

static void judge_age(struct judging *j)
{
	const char *text = j->v->record.ended ? j->v->record.ended : j->v->record.began;
	struct timespec then;
	uint64_t most = 0;
	int64_t age;

	if (num_parse_duration(j->wanted->items[0], &most, NULL) < 0 ||
		clock_parse(text, &then) < 0) {
		verify_say(j->report, j->name, VERIFY_NO, "'%s' is no time that can be read", text);
		return;
	}
	age = (int64_t)j->options->now.tv_sec - (int64_t)then.tv_sec;
	if (age < -MOST_SKEW_S)
		verify_say(j->report, j->name, VERIFY_NO, "%s is still to come", text);
	else if (age > 0 && (uint64_t)age * 1000 > most)
		verify_say(j->report, j->name, VERIFY_NO, "%s is longer ago than %s", text,
			j->wanted->items[0]);
	else
		verify_say(j->report, j->name, VERIFY_YES, "%s", text);
}

static void judge_checked(struct judging *j)
{
	for (size_t i = 0; i < j->wanted->count; i++)
		if (!verify_is_yes(j->report, j->wanted->items[i])) {
			verify_say(j->report, j->name, VERIFY_NO, "%s was not found to be so",
				j->wanted->items[i]);
			return;
		}
	verify_say(j->report, j->name, VERIFY_YES, "all %zu", j->wanted->count);
}

/* --- all of them --- */

/* in_chain is a property of every record. */
static const struct {
	const char *(*has)(const struct verify_record *v), *(*other)(const struct verify_record *v);
	void (*judge)(struct judging *j);
} rows[VERIFY_DEMAND_COUNT] = {
	[VERIFY_LEVEL] = { level_of },
	[VERIFY_NETWORK] = { demands_network_of },
	[VERIFY_GUARANTEES] = { .judge = judge_guarantees },
	[VERIFY_OUTSIDE] = { .judge = judge_outside },
	[VERIFY_DEGRADED] = { .judge = judge_degraded },
	[VERIFY_PREFLIGHT] = { preflight_of },
	[VERIFY_OUTCOME] = { outcome_of },
	[VERIFY_STATUS] = { .judge = judge_status },
	[VERIFY_KEYS] = { key_of },
	[VERIFY_SPEC] = { spec_of },
	[VERIFY_PLAN] = { plan_of },
	[VERIFY_IMAGE] = { demands_image_of, image_digest_of },
	[VERIFY_ENGINE] = { engine_of },
	[VERIFY_BAWN] = { bawn_of },
	[VERIFY_MAX_AGE] = { .judge = judge_age },
	[VERIFY_CHECKED] = { .judge = judge_checked },
};

void verify_demands(
	const struct verify_record *v, const struct verify_options *o, struct verify_report *report)
{
	for (enum verify_demand d = 0; d < VERIFY_DEMAND_COUNT; d++) {
		struct judging j = { .v = v,
			.options = o,
			.report = report,
			.wanted = &o->policy->demands[d].texts };

		if (!o->policy->demands[d].is_given)
			continue;
		snprintf(j.name, sizeof(j.name), "policy.%s", verify_demand_defs[d].key);
		if (rows[d].judge)
			rows[d].judge(&j);
		else if (rows[d].has)
			judge_one(&j, rows[d].has(v), rows[d].other ? rows[d].other(v) : NULL);
	}
}
