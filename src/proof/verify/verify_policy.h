#pragma once

#include "proof/verify/verify.h"
#include "spec/diag.h"

/*
 * Requirements that a record must meet in addition to being valid: a YAML file, with a row of the
 * table for each key. docs/verify.md has an example of all.
 */

enum verify_demand {
	VERIFY_LEVEL,
	VERIFY_IN_CHAIN,
	VERIFY_NETWORK,
	VERIFY_GUARANTEES,
	VERIFY_OUTSIDE,
	VERIFY_DEGRADED,
	VERIFY_PREFLIGHT,
	VERIFY_OUTCOME,
	VERIFY_STATUS,
	VERIFY_KEYS,
	VERIFY_SPEC,
	VERIFY_PLAN,
	VERIFY_IMAGE,
	VERIFY_ENGINE,
	VERIFY_BAWN,
	VERIFY_MAX_AGE,
	VERIFY_CHECKED,
	VERIFY_DEMAND_COUNT,
};

/* The type of a demand's values. */
enum verify_kind {
	VERIFY_WORD, /* one of the row's words */
	VERIFY_GUARANTEE,
	VERIFY_TEXT,
	VERIFY_DIGEST,
	VERIFY_NUMBER, /* an exit status */
	VERIFY_DURATION,
};

#define VERIFY_MAX_WORDS 64

struct verify_demand_def {
	const char *key;
	enum verify_kind kind;
	const char *words[12]; /* of a WORD, ended with NULL */
	bool takes_one;        /* takes one value, not a list */
	const char *example;
	const char *help; /* a sentence */
};

extern const struct verify_demand_def verify_demand_defs[VERIFY_DEMAND_COUNT];

struct verify_policy {
	const char *path; /* as the verifier named it */
	char sha256[SHA256_HEX_SIZE];
	struct {
		bool is_given;
		struct record_texts texts; /* empty for `none` */
		struct diag_pos at;
	} demands[VERIFY_DEMAND_COUNT];
};

/* Reads a policy. Returns 0, or -EINVAL with all errors in `diags`. */
int verify_read_policy(struct verify_policy *ret, const char *path, const char *bytes, size_t n,
	struct arena *arena, struct diags *diags);

/*
 * Loads the keys that the policy names by files, relative to its own folder, and replaces the names
 * by the keys' ids.
 */
int verify_take_policy_keys(
	struct verify_policy *policy, struct verify_keys *keys, struct arena *arena, struct err *e);

/* Judges a record by o->policy. Each requirement in it becomes a property. */
void verify_judge_policy(const struct verify_record *v, const struct verify_options *o,
	struct verify_report *report);
