#include <assert.h>
#include <string.h>

#include "plan/plan.h"

/*
 * What each guarantee needs of the host. An engine that shares the host's kernel needs what the
 * kernel must do for it; native needs, on top, what it does itself by system calls.
 */
#define BIT(n) ((uint64_t)1 << (n))

static_assert(HOST_ABILITY_COUNT <= 63, "abilities must fit in one word");
static_assert(PLAN_GUARANTEE_COUNT <= 63, "guarantees must fit in one word");

static const uint64_t kernel_needs[PLAN_GUARANTEE_COUNT] = {
	[PLAN_GROUPS] = BIT(HOST_NO_GROUPS),
	[PLAN_SYSTEM_CALLS] = BIT(HOST_SECCOMP),
	[PLAN_LANDLOCKED] = BIT(HOST_LANDLOCK),
	[PLAN_LIMITS_MEMORY] = BIT(HOST_CGROUP_MEMORY),
	[PLAN_LIMITS_CPU] = BIT(HOST_CGROUP_CPU),
	[PLAN_LIMITS_PIDS] = BIT(HOST_CGROUP_PIDS),
};

#define USER BIT(HOST_NS_USER)
#define TREE (USER | BIT(HOST_NS_MOUNT) | BIT(HOST_MOUNT_API) | BIT(HOST_OPENAT2))

#define NAMESPACES                                                                                 \
	(USER | BIT(HOST_NS_MOUNT) | BIT(HOST_NS_PID) | BIT(HOST_NS_NET) | BIT(HOST_NS_IPC) |      \
		BIT(HOST_NS_UTS) | BIT(HOST_NS_CGROUP))

static const uint64_t native_needs[PLAN_GUARANTEE_COUNT] = {
	[PLAN_FS_ROOT] = TREE,
	[PLAN_FS_READS] = TREE,
	[PLAN_FS_WRITES] = TREE,
	[PLAN_FS_PROJECT] = TREE,
	[PLAN_FS_PROTECT] = TREE | BIT(HOST_OVERLAY) | BIT(HOST_PROC),
	[PLAN_HOME] = TREE,
	[PLAN_IDS_UNPRIVILEGED] = USER,
	[PLAN_GROUPS] = USER,
	[PLAN_PROCESSES] = TREE | BIT(HOST_NS_PID) | BIT(HOST_PROC),
	[PLAN_IPC] = USER | BIT(HOST_NS_IPC),
	[PLAN_UTS] = USER | BIT(HOST_NS_UTS),
	[PLAN_CGROUP] = USER | BIT(HOST_NS_CGROUP),
	[PLAN_DEV] = TREE,
	[PLAN_NET_NONE] = USER | BIT(HOST_NS_NET),
	[PLAN_NET_ALLOWLIST] = USER | BIT(HOST_NS_NET),
	[PLAN_LIMITS_DISK] = TREE,
};

/* Another way for native to the same end, without what stands above. */
static const uint64_t native_instead[PLAN_GUARANTEE_COUNT] = {
	[PLAN_FS_PROTECT] = TREE | BIT(HOST_OVERLAY) | BIT(HOST_PROC_SUBSET),
	[PLAN_PROCESSES] = TREE | BIT(HOST_NS_PID) | BIT(HOST_PROC_SUBSET),
	[PLAN_LIMITS_PIDS] = USER | BIT(HOST_USERNS_PIDS),
};

#define EVERYTHING    (BIT(PLAN_GUARANTEE_COUNT) - 1)
#define KEEPERS_OWN   (BIT(PLAN_LIMITS_TIME) | BIT(PLAN_LIMITS_OUTPUT))
#define NATIVE_AND_VM (BIT(PLAN_FS_PROTECT) | BIT(PLAN_NET_ALLOWLIST))
#define WITHOUT_ROOT                                                                               \
	(KEEPERS_OWN | BIT(PLAN_FS_READS) | BIT(PLAN_FS_WRITES) | BIT(PLAN_ENVIRONMENT) |          \
		BIT(PLAN_TTY) | BIT(PLAN_SYSTEM_CALLS) | BIT(PLAN_LANDLOCKED) |                    \
		BIT(PLAN_NET_NONE) | BIT(PLAN_LIMITS_MEMORY) | BIT(PLAN_LIMITS_CPU) |              \
		BIT(PLAN_LIMITS_PIDS) | BIT(PLAN_LIMITS_FILES))

/*
 * The engines: what must be installed (one way of three), and what they give at all. One that does
 * not run cages yet can be planned by name, and is neither chosen nor offered.
 */
static const struct {
	uint64_t ways[3]; /* the first may be empty: nothing is needed */
	uint64_t gives;   /* guarantees */
	bool shares_kernel;
	bool runs;
} engines[PLAN_ENGINE_COUNT] = {
	[SPEC_ENGINE_NATIVE] = { { 0 }, EVERYTHING, true, true },
	[SPEC_ENGINE_BWRAP] = { { BIT(HOST_BWRAP) }, EVERYTHING & ~NATIVE_AND_VM, true },
	[SPEC_ENGINE_CONTAINER] = { { USER | BIT(HOST_CRUN), USER | BIT(HOST_RUNC),
					    USER | BIT(HOST_PODMAN) },
		EVERYTHING & ~NATIVE_AND_VM, true },
	[SPEC_ENGINE_MICROVM] = { { BIT(HOST_QEMU) | BIT(HOST_KVM) }, EVERYTHING, false },
	[SPEC_ENGINE_LANDLOCK] = { { BIT(HOST_LANDLOCK) | BIT(HOST_SECCOMP) }, WITHOUT_ROOT, true },
	[SPEC_ENGINE_LOGICAL] = { { 0 }, KEEPERS_OWN | BIT(PLAN_ENVIRONMENT), true },
};

bool plan_engine_runs(enum spec_engine engine)
{
	return engines[engine].runs;
}

/* The first ability of a set that the host lacks; HOST_ABILITY_COUNT if it has them all. */
static enum host_ability first_missing(uint64_t set, const struct host *h)
{
	enum host_ability a = 0;

	while (a < HOST_ABILITY_COUNT && (!(set & BIT(a)) || host_can(h, a)))
		a++;
	return a;
}

/* The abilities that one way to a guarantee takes. */
static uint64_t needs(
	enum spec_engine engine, size_t way, enum plan_guarantee g, const struct host *h)
{
	uint64_t set = engines[engine].ways[way];

	if (engines[engine].shares_kernel)
		set |= kernel_needs[g];
	if (engine == SPEC_ENGINE_NATIVE)
		set |= native_needs[g];
	/* A container's runtime has no more rights than we: it needs the same namespaces. */
	if (engine == SPEC_ENGINE_CONTAINER)
		set |= native_needs[g] & (NAMESPACES | BIT(HOST_PROC));
	/* Root's cages run as another user, so the project's owner must be mapped. */
	if (engine == SPEC_ENGINE_NATIVE && g == PLAN_FS_PROJECT && h->is_root)
		set |= BIT(HOST_IDMAP);
	return set;
}

struct plan_verdict plan_engine_gives(
	enum spec_engine engine, enum plan_guarantee guarantee, const struct host *h)
{
	struct plan_verdict verdict = { .is_possible = engines[engine].gives & BIT(guarantee) };
	uint64_t instead = native_instead[guarantee];

	for (size_t i = 0; verdict.is_possible && !verdict.can && i < 3; i++) {
		enum host_ability missing;

		if (i > 0 && !engines[engine].ways[i])
			break;
		missing = first_missing(needs(engine, i, guarantee, h), h);
		verdict.can = missing == HOST_ABILITY_COUNT;
		if (i == 0)
			verdict.missing = missing;
	}
	if (engine == SPEC_ENGINE_NATIVE && instead &&
		first_missing(instead, h) == HOST_ABILITY_COUNT)
		verdict.can = true;
	/* Before ABI 3 a file could be truncated without the right to write to it. */
	if (engine == SPEC_ENGINE_LANDLOCK && guarantee == PLAN_FS_WRITES && h->landlock_abi < 3) {
		verdict.can = false;
		verdict.missing = HOST_LANDLOCK;
	}
	/* Whether it works with this project shows only when it is tried. */
	if (guarantee == PLAN_FS_PROTECT && h->no_protect)
		verdict = (struct plan_verdict){ 0 };
	if (verdict.can)
		verdict.missing = 0;
	return verdict;
}

static void try_engine(enum spec_engine engine, const struct host *h, struct plan_choice *c)
{
	c->engines[engine].is_tried = true;
	/* Without a tree of its own there is no cage, and its mounts would be the host's. */
	c->engines[engine].is_unable =
		engine == SPEC_ENGINE_NATIVE && first_missing(TREE, h) != HOST_ABILITY_COUNT;
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
		struct plan_verdict v = plan_engine_gives(engine, g, h);

		c->engines[engine].verdicts[g] = v;
		if (!v.can && c->demands[g].need == PLAN_MUST)
			c->engines[engine].lacking++;
		if (!v.can && c->demands[g].is_degraded)
			c->engines[engine].degraded++;
	}
}

/* True if the engine gives all musts and lacks less than the one chosen so far. */
static bool is_better(const struct plan_choice *c, enum spec_engine engine)
{
	if (c->engines[engine].lacking || c->engines[engine].is_unable)
		return false;
	return c->engine == SPEC_ENGINE_AUTO ||
	       c->engines[engine].degraded < c->engines[c->engine].degraded;
}

void plan_choose(const struct spec *s, const struct host *h, struct plan_choice *ret)
{
	enum spec_engine wanted = spec_choice(s, SPEC_ENGINE);
	enum spec_engine first = wanted, last = wanted;

	memset(ret, 0, sizeof(*ret));
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
		plan_demand(s, g, &ret->demands[g]);
		/* An operator who names the engine that enforces nothing knows that. */
		if (wanted == SPEC_ENGINE_LOGICAL && ret->demands[g].need == PLAN_MUST)
			ret->demands[g].need = PLAN_MAY;
	}
	if (wanted == SPEC_ENGINE_AUTO) {
		first = SPEC_ENGINE_NATIVE;
		last = SPEC_ENGINE_LANDLOCK;
	}
	for (enum spec_engine e = first; e <= last; e++) {
		if (wanted == SPEC_ENGINE_AUTO && !plan_engine_runs(e))
			continue;
		try_engine(e, h, ret);
		if (is_better(ret, e))
			ret->engine = e;
	}
}

/* The engine whose gaps are worth explaining: the one named, or the first, which could do all. */
static enum spec_engine explained_engine(const struct plan_choice *c)
{
	enum spec_engine e = SPEC_ENGINE_NATIVE;

	while (e < SPEC_ENGINE_LOGICAL && !c->engines[e].is_tried)
		e++;
	return e;
}

static bool is_lacking(const struct plan_choice *c, enum spec_engine engine, enum plan_guarantee g)
{
	uint8_t least = c->engines[engine].is_unable ? PLAN_MAY : PLAN_MUST;

	return c->demands[g].need >= least && !c->engines[engine].verdicts[g].can;
}

/* The guarantees of one gap, in a line; returns how many. */
static unsigned print_gap(const struct plan_choice *c, enum spec_engine engine, bool is_possible,
	enum host_ability missing, struct buf *out)
{
	unsigned n = 0;

	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
		const struct plan_verdict *v = &c->engines[engine].verdicts[g];

		if (!is_lacking(c, engine, g) || v->is_possible != is_possible ||
			(is_possible && v->missing != missing))
			continue;
		buf_printf(out, "%s%s", n++ ? ", " : "  ", plan_guarantee_defs[g].name);
	}
	if (n)
		buf_putc(out, '\n');
	return n;
}

static void print_gaps(
	const struct plan_choice *c, enum spec_engine engine, const struct host *h, struct buf *out)
{
	for (enum host_ability a = 0; a < HOST_ABILITY_COUNT; a++) {
		const struct host_cause_def *cause = &host_cause_defs[h->abilities[a].cause];

		unsigned n = print_gap(c, engine, true, a, out);

		if (n)
			buf_printf(out, "    need%s %s: %s\n    → %s\n", n == 1 ? "s" : "",
				host_ability_defs[a].meaning, cause->because, cause->remedy);
	}
	if (print_gap(c, engine, false, 0, out))
		buf_puts(out, "    never given by this engine\n");
}

void plan_print_refusal(const struct plan_choice *c, const struct host *h, struct buf *out)
{
	enum spec_engine explained = explained_engine(c);
	const char *name = spec_keys[SPEC_ENGINE].choices[explained];

	if (!plan_engine_runs(explained)) {
		buf_printf(out, "hint: this version has no engine %s; leave engine out\n", name);
		return;
	}
	buf_printf(out, "engine %s cannot give here:\n", name);
	print_gaps(c, explained, h, out);
	if (c->engines[explained].is_unable)
		return;
	buf_puts(out, "To run without, and have the record say so:");
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++)
		if (is_lacking(c, explained, g))
			buf_printf(out, " --allow-degraded %s", plan_guarantee_defs[g].name);
	buf_puts(out, "; in a spec: allow_degraded\n");
}

void plan_print_refusal_json(const struct plan_choice *c, const struct host *h, struct json *j)
{
	enum spec_engine explained = explained_engine(c);

	json_text(j, "engine", spec_keys[SPEC_ENGINE].choices[explained]);
	json_open_map(j, "guarantees");
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
		const struct plan_verdict *v = &c->engines[explained].verdicts[g];
		const struct host_cause_def *cause =
			&host_cause_defs[h->abilities[v->missing].cause];

		if (!is_lacking(c, explained, g))
			continue;
		json_open_map(j, plan_guarantee_defs[g].name);
		json_text(j, "missing", v->is_possible ? host_ability_defs[v->missing].name : NULL);
		if (v->is_possible) {
			json_text(j, "cause", cause->because);
			json_text(j, "remedy", cause->remedy);
		}
		json_close_map(j);
	}
	json_close_map(j);
}
