#include "proof/verify/verify_policy.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

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

bool verify_policy_allows_relaxed(const struct verify_policy *policy)
{
	const struct record_texts *texts = policy ? &policy->demands[VERIFY_IN_CHAIN].texts : NULL;

	return texts && texts->count && str_eq(texts->items[0], "false");
}
