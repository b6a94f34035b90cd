#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "host/host.h"
#include "spec/spec.h"

/*
 * The guarantees, one row each. The plan, `bawn doctor`, cards, records, the man page and the docs
 * all follow from this table.
 */
enum plan_guarantee {
	PLAN_FS_ROOT,
	PLAN_FS_READS,
	PLAN_FS_WRITES,
	PLAN_FS_PROJECT,
	PLAN_FS_PROTECT,
	PLAN_HOME,
	PLAN_ENVIRONMENT,
	PLAN_IDS_UNPRIVILEGED,
	PLAN_GROUPS,
	PLAN_PROCESSES,
	PLAN_IPC,
	PLAN_UTS,
	PLAN_CGROUP,
	PLAN_DEV,
	PLAN_TTY,
	PLAN_SYSTEM_CALLS,
	PLAN_LANDLOCKED,
	PLAN_NET_NONE,
	PLAN_NET_ALLOWLIST,
	PLAN_LIMITS_MEMORY,
	PLAN_LIMITS_CPU,
	PLAN_LIMITS_PIDS,
	PLAN_LIMITS_DISK,
	PLAN_LIMITS_TIME,
	PLAN_LIMITS_OUTPUT,
	PLAN_LIMITS_FILES,
	PLAN_GUARANTEE_COUNT,
};

struct plan_guarantee_def {
	const char *name;     /* "fs.root" */
	const char *meaning;  /* a sentence */
	const char *observed; /* how the keeper checks it from outside */
	const char *usual;    /* what it then says it saw, if it says the same of most runs */
};

extern const struct plan_guarantee_def plan_guarantee_defs[PLAN_GUARANTEE_COUNT];

/* The guarantees that are limits, and the keys that declare them. */
#define PLAN_LIMIT_COUNT 7

struct plan_limit {
	enum plan_guarantee guarantee;
	enum spec_key key;
};

extern const struct plan_limit plan_limits[PLAN_LIMIT_COUNT];

/* Returns the guarantee with a name, or PLAN_GUARANTEE_COUNT. */
enum plan_guarantee plan_guarantee_find(const char *name);

#define PLAN_ENGINE_COUNT (SPEC_ENGINE_LOGICAL + 1)

/* Says whether an engine can give a guarantee on a host and, if not, what is missing. */
struct plan_verdict {
	bool can;
	bool is_possible;          /* the engine could give it on another host */
	enum host_ability missing; /* what this host lacks; set if !can && is_possible */
};

struct plan_verdict plan_engine_gives(
	enum spec_engine engine, enum plan_guarantee guarantee, const struct host *h);

/* False if the engine can only be planned: this version runs no cages with it. */
bool plan_engine_runs(enum spec_engine engine);

/* What a spec demands: an enum plan_need, and the value. */
struct plan_demand {
	uint8_t need;
	bool is_degraded; /* a MUST that the spec allows to be missing, and therefore a MAY */
	char value[40];
};

/* True if allow_degraded names the guarantee, or the spec is relaxed. */
bool plan_may_be_missing(const struct spec *s, enum plan_guarantee guarantee);

void plan_demand(const struct spec *s, enum plan_guarantee guarantee, struct plan_demand *ret);

/* The choice of an engine, and for each engine tried what it cannot give. */
struct plan_choice {
	enum spec_engine engine; /* the one chosen; SPEC_ENGINE_AUTO: none */
	struct plan_demand demands[PLAN_GUARANTEE_COUNT];
	struct {
		bool is_tried;
		bool is_unable;    /* it cannot make any cage on this host */
		unsigned lacking;  /* required guarantees that it cannot give */
		unsigned degraded; /* guarantees that may be missing, and are */
		struct plan_verdict verdicts[PLAN_GUARANTEE_COUNT];
	} engines[PLAN_ENGINE_COUNT];
};

/*
 * Chooses the engine that the spec names. With `auto` it is the first that runs cages, gives every
 * required guarantee, and lacks the fewest of those that may be missing.
 */
void plan_choose(const struct spec *s, const struct host *h, struct plan_choice *ret);

/* Print why no engine was chosen: for each missing guarantee the cause and the remedy. */
void plan_print_refusal(const struct plan_choice *c, const struct host *h, struct buf *out);
void plan_print_refusal_json(const struct plan_choice *c, const struct host *h, struct json *j);
