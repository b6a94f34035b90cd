/* Reads the requirements of a verifier from YAML, and judges a record by them. */
#include "proof/verify/verify_policy.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "plan/plan_guarantees.h"
#include "spec/yaml.h"

const struct verify_demand_def verify_demand_defs[VERIFY_DEMAND_COUNT] = {
	[VERIFY_LEVEL] = { "level", VERIFY_WORD, { "hardened", "custom" }, false, "hardened",
		"The level of the run." },
	[VERIFY_IN_CHAIN] = { "in_chain", VERIFY_WORD, { "true", "false" }, true, "true",
		"false takes runs that were relaxed too, which are refused otherwise." },
	[VERIFY_NETWORK] = { "network", VERIFY_WORD, { "none", "allowlist", "host" }, false,
		"[none, allowlist]", "What the cage had of it, as was seen." },
	[VERIFY_GUARANTEES] = { "guarantees", VERIFY_GUARANTEE, { NULL }, false,
		"[fs.root, net.none]", "These must hold, whatever the spec asked for." },
	[VERIFY_OUTSIDE] = { "outside", VERIFY_GUARANTEE, { NULL }, false, "[fs.root]",
		"These must hold, and the keeper itself must have seen it: what bawn's own code "
		"in the cage said is a claim." },
	[VERIFY_DEGRADED] = { "degraded", VERIFY_GUARANTEE, { NULL }, false, "none",
		"Guarantees that may be missing, or none. Without this key any may be that the "
		"spec "
		"let go." },
	[VERIFY_PREFLIGHT] = { "preflight", VERIFY_WORD, { "true" }, true, "true",
		"The preflight must have been run, and passed." },
	[VERIFY_OUTCOME] = { "outcome", VERIFY_WORD,
		{ "exited", "signaled", "timed_out", "cut_off", "broken", "refused",
			"interrupted" },
		false, "exited", "How the run ended." },
	[VERIFY_STATUS] = { "status", VERIFY_NUMBER, { NULL }, false, "0",
		"What the command exited with." },
	[VERIFY_KEYS] = { "keys", VERIFY_TEXT, { NULL }, false, "[ci.pub]",
		"Who may have signed: files with public keys, from the policy's folder on, or the "
		"ids of keys that are known." },
	[VERIFY_SPEC] = { "spec", VERIFY_DIGEST, { NULL }, false, NULL,
		"Digests of specs, as bawn check --canonical | sha256sum prints them." },
	[VERIFY_PLAN] = { "plan", VERIFY_DIGEST, { NULL }, false, NULL,
		"Digests of plans, as bawn plan --digest prints them." },
	[VERIFY_IMAGE] = { "image", VERIFY_TEXT, { NULL }, false, "host",
		"What the root was made of: digests, or names as a spec has them. A name proves "
		"nothing of what was in it." },
	[VERIFY_ENGINE] = { "engine", VERIFY_TEXT, { NULL }, false, "kernel",
		"What carried the plan out." },
	[VERIFY_BAWN] = { "bawn", VERIFY_TEXT, { NULL }, false, "0.1.0", "The version of bawn." },
	[VERIFY_MAX_AGE] = { "max_age", VERIFY_DURATION, { NULL }, true, "30d",
		"How long ago the run may have ended." },
	[VERIFY_CHECKED] = { "checked", VERIFY_WORD,
		{ "provenance", "events", "effects", "spec", "plan", "project", "stdout", "stderr",
			"image", "overlay" },
		false, "[events, effects, spec]",
		"What must have been there to be checked: without this key, what is missing is "
		"said, and no failure." },
};

/* --- what a value may be --- */

/* The words that can stand there; 0: any text of the right form. */
static size_t vocabulary(
	const struct verify_demand_def *d, const char *ret[static VERIFY_MAX_WORDS])
{
	size_t n = 0;

	static_assert(PLAN_GUARANTEE_COUNT <= VERIFY_MAX_WORDS, "all are among them");
	if (d->kind == VERIFY_WORD)
		for (; d->words[n]; n++)
			ret[n] = d->words[n];
	else if (d->kind == VERIFY_GUARANTEE)
		for (; n < PLAN_GUARANTEE_COUNT; n++)
			ret[n] = plan_guarantee_defs[n].name;
	return n;
}

/* NULL: it may stand there. Otherwise what should. */
static const char *policy_find_fault(const struct verify_demand_def *d, const char *text)
{
	uint8_t digest[SHA256_SIZE];
	uint64_t ms;
	int64_t n;

	if (d->kind == VERIFY_DIGEST)
		return sha256_parse(text, digest) == 0 ? NULL : "a SHA-256 in hex";
	if (d->kind == VERIFY_NUMBER)
		return num_parse_int(text, 0, 255, &n, NULL) == 0 ? NULL : "an exit status";
	if (d->kind == VERIFY_DURATION)
		return num_parse_duration(text, &ms, NULL) == 0 ? NULL : "a duration such as 30d";
	return text[0] ? NULL : "a text";
}

struct reading {
	struct verify_policy *ret;
	struct arena *arena;
	struct diags *diags;
};

static bool policy_is_among(const char *const *words, size_t count, const char *text)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(words[i], text))
			return true;
	return false;
}

/* One value, as text. NULL where that was said. */
static const char *policy_read_value(
	struct reading *r, const struct verify_demand_def *d, const struct yaml_node *node)
{
	const char *words[VERIFY_MAX_WORDS], *near, *fault;
	size_t count = vocabulary(d, words);

	if (node->kind != YAML_SCALAR || node->type == YAML_NULL) {
		diags_error(r->diags, node->at, d->help, "%s: expected a value, not %s", d->key,
			yaml_describe(node));
		return NULL;
	}
	fault = policy_find_fault(d, node->text);
	if (fault) {
		diags_error(r->diags, node->at, d->help, "%s: expected %s, not '%s'", d->key, fault,
			node->text);
		return NULL;
	}
	if (!count || policy_is_among(words, count, node->text))
		return node->text;
	near = str_nearest(node->text, words, count);
	diags_error(r->diags, node->at,
		near ? arena_printf(r->arena, "did you mean '%s'?", near) : d->help,
		"%s: '%s' is not one that bawn knows", d->key, node->text);
	return NULL;
}

static bool policy_is_none(const struct verify_demand_def *d, const struct yaml_node *node)
{
	return d == &verify_demand_defs[VERIFY_DEGRADED] && node->kind == YAML_SCALAR &&
	       node->type == YAML_TEXT && str_eq(node->text, "none");
}

static void read_demand(struct reading *r, enum verify_demand which, const struct yaml_node *node)
{
	const struct verify_demand_def *d = &verify_demand_defs[which];
	bool is_list = node->kind == YAML_LIST;
	const struct yaml_node *item = is_list ? node->first : node;
	size_t count = is_list ? node->count : 1;
	struct record_texts *texts = &r->ret->demands[which].texts;

	r->ret->demands[which].is_given = true;
	r->ret->demands[which].at = node->at;
	if (policy_is_none(d, node))
		return;
	if (node->kind == YAML_MAP || (is_list && d->takes_one) || count == 0) {
		diags_error(r->diags, node->at, d->help, "%s: expected %s, not %s", d->key,
			d->takes_one ? "one value" : "a value or a list of some",
			count ? yaml_describe(node) : "an empty list");
		return;
	}
	texts->items = arena_array(r->arena, count, sizeof(*texts->items));
	for (; texts->items && item; item = is_list ? item->next : NULL) {
		const char *text = policy_read_value(r, d, item);

		if (text)
			texts->items[texts->count++] = text;
	}
	if (!texts->items)
		diags_error(r->diags, node->at, NULL, "%s: not enough memory", d->key);
}

/* --- the file --- */

static void policy_read_version(struct reading *r, const struct yaml_node *root)
{
	const struct yaml_node *node = yaml_get(root, "version");

	if (!node)
		diags_error(r->diags, root->at, "version: 1", "the key 'version' is missing");
	else if (node->kind != YAML_SCALAR || !str_eq(node->text, "1"))
		diags_error(r->diags, node->at, NULL, "version: this bawn knows version 1");
}

static void policy_say_unknown(struct reading *r, const struct yaml_node *node)
{
	const char *keys[VERIFY_DEMAND_COUNT], *near;

	for (size_t i = 0; i < VERIFY_DEMAND_COUNT; i++)
		keys[i] = verify_demand_defs[i].key;
	near = str_nearest(yaml_key(node), keys, VERIFY_DEMAND_COUNT);
	diags_error(r->diags, node->key->at,
		near ? arena_printf(r->arena, "did you mean '%s'?", near)
		     : "bawn(1) lists the keys of a verifier's policy",
		"unknown key '%s'", yaml_key(node));
}

int verify_read_policy(struct verify_policy *ret, const char *path, const char *bytes, size_t n,
	struct arena *arena, struct diags *diags)
{
	struct reading r = { .ret = ret, .arena = arena, .diags = diags };
	unsigned source = diags_add_source(diags, path, bytes, n);
	const struct yaml_node *root = yaml_read(arena, diags, source, bytes, n);

	*ret = (struct verify_policy){ .path = path };
	sha256_hex(bytes, n, ret->sha256);
	if (!root)
		return -EINVAL;
	policy_read_version(&r, root);
	for (const struct yaml_node *node = root->first; node; node = node->next) {
		enum verify_demand d = 0;

		while (d < VERIFY_DEMAND_COUNT &&
			!str_eq(verify_demand_defs[d].key, yaml_key(node)))
			d++;
		if (d < VERIFY_DEMAND_COUNT)
			read_demand(&r, d, node);
		else if (!str_eq(yaml_key(node), "version"))
			policy_say_unknown(&r, node);
	}
	return diags->errors ? -EINVAL : 0;
}

/* --- keys --- */

int verify_take_policy_keys(
	struct verify_policy *policy, struct verify_keys *keys, struct arena *arena, struct err *e)
{
	struct record_texts *texts = &policy->demands[VERIFY_KEYS].texts;
	const char *slash = strrchr(policy->path, '/');
	int folder = slash ? (int)(slash - policy->path) + 1 : 0;

	for (size_t i = 0; i < texts->count; i++) {
		uint8_t id[SHA256_SIZE];
		const char *path;
		int r;

		if (sha256_parse(texts->items[i], id) == 0)
			continue;
		path = texts->items[i][0] == '/' ? texts->items[i]
						 : arena_printf(arena, "%.*s%s", folder,
							   policy->path, texts->items[i]);
		r = path ? verify_add_key(keys, path, arena, e)
			 : err_set(e, ERR_SYS, ENOMEM, "cannot use the keys: out of memory");
		if (r < 0) {
			err_prefix(e, "%s", policy->path);
			return r;
		}
		texts->items[i] = keys->items[keys->count - 1].public.id;
	}
	return 0;
}

/* --- judging by it --- */

#define MOST_SKEW_S 300 /* by which two clocks may differ */

/* The facts that a demand is judged by. */
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

/* Adds a property: whether the record's value, or its other name, is among the wanted ones. */
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

/* Judges by the guarantees seen, not by the record's list, which verify_degraded compares. */
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

void verify_judge_policy(
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
