#include "check/check.h"

#include "base/count.h"
#include "base/num.h"
#include "base/str.h"
#include "check/check_lints.h"
#include "plan/plan_guarantees.h"

/* --- settings that another one leaves without effect --- */

struct pointless {
	enum spec_key key, because;
	unsigned value; /* of `because`: a choice, or true */
	const char *text, *hint;
};

static const char *const use_allowlist = "set network.mode: allowlist";

static const struct pointless pointless[] = {
	{ SPEC_NETWORK_ALLOW, SPEC_NETWORK_MODE, SPEC_NET_NONE,
		"nothing of it is reachable, because network.mode is none", use_allowlist },
	{ SPEC_NETWORK_HOST_PORTS, SPEC_NETWORK_MODE, SPEC_NET_NONE,
		"nothing of it is reachable, because network.mode is none", use_allowlist },
	{ SPEC_NETWORK_PUBLISH, SPEC_NETWORK_MODE, SPEC_NET_NONE,
		"nothing is published, because network.mode is none", use_allowlist },
	{ SPEC_NETWORK_ALLOW, SPEC_NETWORK_MODE, SPEC_NET_HOST,
		"it holds nothing back, because network.mode: host shares the whole network",
		use_allowlist },
	{ SPEC_NETWORK_HOST_PORTS, SPEC_NETWORK_MODE, SPEC_NET_HOST,
		"network.mode: host shares every port of the host, and has no name bawn-host",
		use_allowlist },
	{ SPEC_NETWORK_PUBLISH, SPEC_NETWORK_MODE, SPEC_NET_HOST,
		"nothing is published, because with network.mode: host the ports are the host's",
		use_allowlist },
	{ SPEC_PROJECT_WRITE, SPEC_PROJECT_MODE, SPEC_MODE_READ_ONLY,
		"nothing of it can be written, because project.mode is read_only",
		"remove it, or set project.mode: captured" },
	{ SPEC_PROJECT_AT, SPEC_PROJECT_CAGE, SPEC_CAGE_PROJECT,
		"the project is at its own path, because project.cage is project",
		"remove it, or set project.cage: full" },
	{ SPEC_ALLOW_DEGRADED, SPEC_RELAXED, true,
		"it allows nothing more, because relaxed lets every guarantee be missing",
		"remove relaxed: the named guarantees are enough" },
	{ SPEC_ENGINE_ARGS, SPEC_ENGINE, SPEC_ENGINE_AUTO,
		"which engine gets them depends on the host, because engine is auto",
		"name the engine they are for" },
	{ SPEC_ENGINE_ARGS, SPEC_ENGINE, SPEC_ENGINE_NATIVE,
		"the run is refused, because the engine native takes no arguments",
		"remove them, or name the engine they are for" },
};

/* Set by `key`'s author knowing `because`: an operator may well overrule a list and leave it. */
static bool is_said_under(const struct spec *s, enum spec_key key, enum spec_key because)
{
	return spec_is_declared(s, key) && s->set_by[key] >= s->set_by[because];
}

static bool has_value(const struct spec *s, enum spec_key key, unsigned value)
{
	if (spec_keys[key].type == SPEC_TYPE_BOOL)
		return spec_bool(s, key) == (value != 0);
	return spec_choice(s, key) == value;
}

void check_pointless(struct spec *s)
{
	for (size_t i = 0; i < COUNT_OF(pointless); i++) {
		const struct pointless *p = &pointless[i];
		bool is_empty =
			spec_is_list(spec_keys[p->key].type) && !spec_list(s, p->key)->count;

		if (has_value(s, p->because, p->value) && !is_empty &&
			is_said_under(s, p->key, p->because))
			diags_warn(&s->diags, spec_where(s, p->key), p->hint, "%s: %s",
				spec_keys[p->key].path, p->text);
	}
}

/* --- the network that allows nothing --- */

static void check_empty_network(struct spec *s)
{
	bool is_empty = !spec_list(s, SPEC_NETWORK_ALLOW)->count &&
			!spec_list(s, SPEC_NETWORK_HOST_PORTS)->count &&
			!spec_list(s, SPEC_NETWORK_PUBLISH)->count;

	/* An agent's profile brings its own hosts. */
	if (is_empty && spec_choice(s, SPEC_NETWORK_MODE) == SPEC_NET_ALLOWLIST &&
		!spec_text(s, SPEC_AGENT))
		diags_warn(&s->diags, spec_where(s, SPEC_NETWORK_MODE),
			"name hosts in network.allow, or set network.mode: none",
			"network.mode: allowlist allows nothing, because network.allow is empty");
}

/* --- overlays (S-16) --- */

static void check_overlay(struct spec *s)
{
	bool is_kept = !str_eq(spec_text(s, SPEC_ROOT_OVERLAY), "ephemeral");
	bool may_create = spec_bool(s, SPEC_ROOT_OVERLAY_CREATE);
	uint64_t size = spec_number(s, SPEC_ROOT_OVERLAY_SIZE);
	uint64_t memory = spec_number(s, SPEC_LIMITS_MEMORY);

	if (!is_kept && is_said_under(s, SPEC_ROOT_OVERLAY_SIZE, SPEC_ROOT_OVERLAY))
		diags_warn(&s->diags, spec_where(s, SPEC_ROOT_OVERLAY_SIZE),
			"name a path in root.overlay, or use limits.disk, which a run is held to",
			"root.overlay_size: it has no effect, because root.overlay is ephemeral");
	if (is_kept && size > memory &&
		is_said_under(s, SPEC_ROOT_OVERLAY_SIZE, SPEC_LIMITS_MEMORY))
		diags_warn(&s->diags, spec_where(s, SPEC_ROOT_OVERLAY_SIZE),
			"lower it, or raise limits.memory",
			"root.overlay_size: it cannot be filled, because an overlay is in memory while "
			"the run lasts, and limits.memory is smaller");
	if (is_kept && may_create && !size)
		diags_warn(&s->diags, spec_where(s, SPEC_ROOT_OVERLAY),
			"add root.overlay_size, such as 5G, or say that it must exist with "
			"root.overlay_create_if_missing: false",
			"root.overlay: the run would be refused if the overlay is missing, because "
			"a new one needs a size");
}

/* --- opting out --- */

static void check_opt_outs(struct spec *s)
{
	bool is_prod = spec_choice(s, SPEC_ENVIRONMENT) == SPEC_PROD;
	enum spec_engine engine = spec_choice(s, SPEC_ENGINE);

	if (spec_bool(s, SPEC_RELAXED))
		diags_warn(&s->diags, spec_where(s, SPEC_RELAXED),
			"name what may be missing in allow_degraded instead",
			"relaxed: guarantees may be missing, and the record is outside the chain "
			"of verification");
	if (s->is_self_governed)
		diags_warn(&s->diags, spec_where(s, SPEC_SELF_GOVERNANCE),
			"remove it from the policy where that is not meant",
			"self_governance: what runs in this project may change its hooks, settings "
			"and spec, which work on the host later");
	/* In production logical is an error already. */
	if (engine != SPEC_ENGINE_AUTO && !plan_engine_runs(engine) &&
		!(is_prod && engine == SPEC_ENGINE_LOGICAL))
		diags_warn(&s->diags, spec_where(s, SPEC_ENGINE), "leave engine out",
			"engine: this version has no engine %s, and a run with it is refused",
			spec_keys[SPEC_ENGINE].choices[engine]);
}

/* Only where somebody chose how long sessions are kept: most runs belong to none. */
static void check_times(struct spec *s)
{
	uint64_t run = spec_number(s, SPEC_LIMITS_TIME), kept = spec_number(s, SPEC_SESSION_TTL);
	char run_text[NUM_TEXT_SIZE], kept_text[NUM_TEXT_SIZE];

	if (!spec_is_declared(s, SPEC_SESSION_TTL) || run <= kept)
		return;
	num_print_duration(run, run_text);
	num_print_duration(kept, kept_text);
	diags_warn(&s->diags, spec_where(s, SPEC_LIMITS_TIME),
		"raise session.ttl, or lower limits.time",
		"limits.time: a run may take %s, longer than its session is kept (session.ttl: %s)",
		run_text, kept_text);
}

typedef void check_lint(struct spec *s);

static check_lint *const lints[] = {
	check_places,
	check_lists,
	check_env,
	check_pointless,
	check_empty_network,
	check_overlay,
	check_opt_outs,
	check_times,
};

void check_settings(struct spec *s)
{
	for (size_t i = 0; i < COUNT_OF(lints); i++)
		lints[i](s);
}
