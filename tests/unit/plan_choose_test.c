/*
 * What a spec demands and which engine is chosen. The property that matters: no engine is chosen
 * on a machine that lacks what a required guarantee is made of.
 */
#include <stdlib.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "check.h"
#include "fake_host.h"
#include "make_spec.h"
#include "plan/plan.h"

static struct spec spec;
static struct host host;

/* --- demands --- */

static void test_table(void)
{
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
		const struct plan_guarantee_def *def = &plan_guarantee_defs[g];

		CHECK(def->name && def->meaning && def->observed && str_ends(def->meaning, "."));
		CHECK(plan_guarantee_find(def->name) == g);
	}
	CHECK(plan_guarantee_find("") == PLAN_GUARANTEE_COUNT);
	CHECK(plan_guarantee_find("limits") == PLAN_GUARANTEE_COUNT);
}

static uint8_t need_of(enum plan_guarantee g)
{
	struct plan_demand demand;

	plan_demand(&spec, g, &demand);
	return demand.need;
}

static void test_default_demands(void)
{
	static const enum plan_guarantee may[] = { PLAN_GROUPS, PLAN_LIMITS_MEMORY,
		PLAN_LIMITS_PIDS, PLAN_LIMITS_DISK };
	static const enum plan_guarantee none[] = { PLAN_FS_PROTECT, PLAN_NET_ALLOWLIST,
		PLAN_LIMITS_CPU, PLAN_LIMITS_TIME, PLAN_LIMITS_OUTPUT, PLAN_LIMITS_FILES };
	uint8_t wanted[PLAN_GUARANTEE_COUNT];

	memset(wanted, PLAN_MUST, sizeof(wanted));
	for (size_t i = 0; i < COUNT_OF(may); i++)
		wanted[may[i]] = PLAN_MAY;
	for (size_t i = 0; i < COUNT_OF(none); i++)
		wanted[none[i]] = PLAN_NONE;
	CHECK(make_spec(&spec, "version: 1\n"));
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++)
		check_that(
			need_of(g) == wanted[g], plan_guarantee_defs[g].name, __FILE__, __LINE__);
	spec_done(&spec);
}

static void test_demands(void)
{
	static const struct {
		const char *file;
		enum plan_guarantee guarantee;
		uint8_t need;
		const char *value;
	} rows[] = {
		{ "version: 1\n", PLAN_FS_PROJECT, PLAN_MUST, "captured" },
		{ "version: 1\n", PLAN_SYSTEM_CALLS, PLAN_MUST, "default" },
		{ "version: 1\n", PLAN_LIMITS_MEMORY, PLAN_MAY, "8G" },
		{ "version: 1\n", PLAN_LIMITS_CPU, PLAN_NONE, "" },
		{ "version: 1\nlimits: {memory: 8G}\n", PLAN_LIMITS_MEMORY, PLAN_MUST, "8G" },
		{ "version: 1\nlimits: {cpu: 1.5}\n", PLAN_LIMITS_CPU, PLAN_MUST, "1.5" },
		{ "version: 1\nlimits: {time: 90m}\n", PLAN_LIMITS_TIME, PLAN_MUST, "1h30m" },
		{ "version: 1\nlimits: {files: 9}\n", PLAN_LIMITS_FILES, PLAN_MUST, "9" },
		{ "version: 1\nproject: {mode: writable}\n", PLAN_FS_PROTECT, PLAN_MUST, "yes" },
		{ "version: 1\nproject: {mode: read_only}\n", PLAN_FS_PROJECT, PLAN_MUST,
			"read_only" },
		{ "version: 1\nproject: {mode: read_only}\n", PLAN_FS_PROTECT, PLAN_NONE, NULL },
		{ "version: 1\nnetwork: {mode: allowlist}\n", PLAN_NET_ALLOWLIST, PLAN_MUST,
			"yes" },
		{ "version: 1\nnetwork: {mode: allowlist}\n", PLAN_NET_NONE, PLAN_NONE, NULL },
		{ "version: 1\nnetwork: {mode: host}\n", PLAN_NET_NONE, PLAN_NONE, NULL },
		{ "version: 1\nnetwork: {mode: host}\n", PLAN_NET_ALLOWLIST, PLAN_NONE, NULL },
		{ "version: 1\nsyscalls: /a/name/that/is/longer/than/the/forty/bytes.json\n",
			PLAN_SYSTEM_CALLS, PLAN_MUST, "/a/name/that/is/longer/than/the/forty/by" },
		{ "version: 1\nallow_degraded: [limits.memory]\nlimits: {memory: 1G, pids: 5}\n",
			PLAN_LIMITS_MEMORY, PLAN_MAY, "1G" },
		{ "version: 1\nallow_degraded: [limits.memory]\nlimits: {memory: 1G, pids: 5}\n",
			PLAN_LIMITS_PIDS, PLAN_MUST, "5" },
		{ "version: 1\nallow_degraded: [net.none]\n", PLAN_NET_NONE, PLAN_MAY, "yes" },
		{ "version: 1\nallow_degraded: [net.none]\nnetwork: {mode: host}\n", PLAN_NET_NONE,
			PLAN_NONE, NULL },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct plan_demand demand;

		CHECK(make_spec(&spec, rows[i].file));
		plan_demand(&spec, rows[i].guarantee, &demand);
		check_that(demand.need == rows[i].need, rows[i].file, __FILE__, __LINE__);
		if (rows[i].value)
			check_that(
				strncmp(demand.value, rows[i].value, sizeof(demand.value) - 1) == 0,
				rows[i].file, __FILE__, __LINE__);
		spec_done(&spec);
	}
}

static void test_relaxed(void)
{
	uint8_t strict[PLAN_GUARANTEE_COUNT];

	CHECK(make_spec(&spec, "version: 1\nlimits: {memory: 1G}\n"));
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++)
		strict[g] = need_of(g);
	spec_done(&spec);
	CHECK(make_spec(&spec, "version: 1\nlimits: {memory: 1G}\nrelaxed: true\n"));
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++)
		check_that(need_of(g) == (strict[g] == PLAN_MUST ? PLAN_MAY : strict[g]),
			plan_guarantee_defs[g].name, __FILE__, __LINE__);
	spec_done(&spec);
}

/* --- what guarantees are made of, told independently of the engines' own tables --- */

#define BIT(n) ((uint64_t)1 << (n))

/* Namespaces and filters are the kernel's, whichever program asks for them. */
static const uint64_t kernel[PLAN_GUARANTEE_COUNT] = {
	[PLAN_FS_ROOT] = BIT(HOST_NS_USER) | BIT(HOST_NS_MOUNT),
	[PLAN_FS_READS] = BIT(HOST_NS_USER) | BIT(HOST_NS_MOUNT),
	[PLAN_FS_WRITES] = BIT(HOST_NS_USER) | BIT(HOST_NS_MOUNT),
	[PLAN_FS_PROJECT] = BIT(HOST_NS_USER) | BIT(HOST_NS_MOUNT),
	[PLAN_HOME] = BIT(HOST_NS_USER) | BIT(HOST_NS_MOUNT),
	[PLAN_DEV] = BIT(HOST_NS_USER) | BIT(HOST_NS_MOUNT),
	[PLAN_PROCESSES] = BIT(HOST_NS_PID) | BIT(HOST_PROC),
	[PLAN_IPC] = BIT(HOST_NS_IPC),
	[PLAN_UTS] = BIT(HOST_NS_UTS),
	[PLAN_CGROUP] = BIT(HOST_NS_CGROUP),
	[PLAN_NET_NONE] = BIT(HOST_NS_NET),
	[PLAN_NET_ALLOWLIST] = BIT(HOST_NS_NET),
	[PLAN_SYSTEM_CALLS] = BIT(HOST_SECCOMP),
	[PLAN_LANDLOCKED] = BIT(HOST_LANDLOCK),
	[PLAN_LIMITS_MEMORY] = BIT(HOST_CGROUP_MEMORY),
	[PLAN_LIMITS_CPU] = BIT(HOST_CGROUP_CPU),
};

/* The first ability an engine must have for a guarantee and the host has not; COUNT if none. */
static enum host_ability missing_for(enum spec_engine e, enum plan_guarantee g)
{
	uint64_t set = e == SPEC_ENGINE_MICROVM ? 0 : kernel[g];
	enum host_ability a = 0;
	bool can_pids = host_can(&host, HOST_CGROUP_PIDS) ||
			(e == SPEC_ENGINE_NATIVE && host_can(&host, HOST_USERNS_PIDS));

	if (e == SPEC_ENGINE_NATIVE && host_can(&host, HOST_PROC_SUBSET))
		set &= ~BIT(HOST_PROC); /* one of processes only does as well */
	if (e == SPEC_ENGINE_LANDLOCK)
		set = (kernel[g] & ~(BIT(HOST_NS_USER) | BIT(HOST_NS_MOUNT) | BIT(HOST_NS_NET))) |
		      BIT(HOST_LANDLOCK) | BIT(HOST_SECCOMP);
	/* A bubblewrap that works was tried: it has ways to namespaces that we may lack. */
	if (e == SPEC_ENGINE_BWRAP) {
		for (enum host_ability n = HOST_NS_USER; n <= HOST_NS_TIME; n++)
			set &= ~BIT(n);
		set = (set & ~(BIT(HOST_PROC) | BIT(HOST_PROC_SUBSET))) | BIT(HOST_BWRAP);
	}
	/* A /proc with process directories only will do. */
	if (e == SPEC_ENGINE_NATIVE && host_can(&host, HOST_PROC_SUBSET))
		set &= ~BIT(HOST_PROC);
	if (e == SPEC_ENGINE_MICROVM)
		set |= BIT(HOST_QEMU) | BIT(HOST_KVM);
	if (e == SPEC_ENGINE_CONTAINER && !host_can(&host, HOST_RUNC) &&
		!host_can(&host, HOST_PODMAN))
		set |= BIT(HOST_CRUN);
	if (e == SPEC_ENGINE_NATIVE && g == PLAN_FS_ROOT)
		set |= BIT(HOST_MOUNT_API) | BIT(HOST_OPENAT2);
	if (e == SPEC_ENGINE_NATIVE && g == PLAN_FS_PROJECT && host.is_root)
		set |= BIT(HOST_IDMAP);
	if (e != SPEC_ENGINE_MICROVM && g == PLAN_LIMITS_PIDS && !can_pids)
		return HOST_CGROUP_PIDS;
	while (a < HOST_ABILITY_COUNT && (!(set & BIT(a)) || host_can(&host, a)))
		a++;
	return a;
}

static size_t chosen_count, wrong_count;

/* Nothing required is missing in what was chosen, and what was not lacks something. */
static void check_choice(const char *what)
{
	struct plan_choice c;

	plan_choose(&spec, &host, &c);
	if (c.engine == SPEC_ENGINE_AUTO) {
		for (enum spec_engine e = SPEC_ENGINE_NATIVE; e <= SPEC_ENGINE_LOGICAL; e++)
			check_that(!c.engines[e].is_tried || c.engines[e].lacking ||
					   c.engines[e].is_unable,
				what, __FILE__, __LINE__);
		return;
	}
	chosen_count++;
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
		enum host_ability a = missing_for(c.engine, g);
		char line[200];

		if (c.demands[g].need != PLAN_MUST)
			continue;
		if (c.engines[c.engine].verdicts[g].can && a == HOST_ABILITY_COUNT)
			continue;
		snprintf(line, sizeof(line), "%s: %s gives %s without %s", what,
			spec_keys[SPEC_ENGINE].choices[c.engine], plan_guarantee_defs[g].name,
			a < HOST_ABILITY_COUNT ? host_ability_defs[a].name : "being able to");
		if (++wrong_count <= 20) /* enough to see what is wrong */
			check_that(false, line, __FILE__, __LINE__);
	}
}

/* Every engine on machines that lack any one and any two abilities, for specs that ask a lot. */
static void test_never_without(void)
{
	static const char *const asks[] = { "", "limits: {memory: 1G, cpu: 1, pids: 9}\n",
		"network: {mode: allowlist}\n",
		"project: {mode: writable}\nnetwork: {mode: host}\n",
		"allow_degraded: [landlock, net.none, syscalls, cgroup]\n" };

	for (size_t i = 0; i < COUNT_OF(asks) * PLAN_ENGINE_COUNT * 2; i++) {
		enum spec_engine e = (enum spec_engine)(i / 2 % PLAN_ENGINE_COUNT);
		char file[200];

		snprintf(file, sizeof(file), "version: 1\nengine: %s\n%s",
			spec_keys[SPEC_ENGINE].choices[e], asks[i / 2 / PLAN_ENGINE_COUNT]);
		CHECK(make_spec(&spec, file));
		for (enum host_ability a = 0; a < HOST_ABILITY_COUNT; a++) {
			for (enum host_ability b = a; b < HOST_ABILITY_COUNT; b++) {
				fake_host_init(&host);
				host.is_root = i % 2;
				fake_host_lose(&host, a);
				fake_host_lose(&host, b);
				check_choice(file + strlen("version: 1\n"));
			}
		}
		spec_done(&spec);
	}
	CHECK(chosen_count > 1000 && wrong_count == 0);
	fake_host_init(&host);
}

/* --- the ladder --- */

static enum spec_engine choose(const char *file)
{
	struct plan_choice c;

	CHECK(make_spec(&spec, file));
	plan_choose(&spec, &host, &c);
	spec_done(&spec);
	return c.engine;
}

static void test_ladder(void)
{
	static const char ask[] = "version: 1\n";

	/* Programs of other engines are there, and no cage of this version runs by them. */
	CHECK(choose(ask) == SPEC_ENGINE_NATIVE);
	fake_host_lose(&host, HOST_MOUNT_API);
	CHECK(host_can(&host, HOST_BWRAP) && choose(ask) == SPEC_ENGINE_AUTO);
	/* Nor is there a cage without a tree of its own, whatever may be missing. */
	CHECK(choose("version: 1\nrelaxed: true\n") == SPEC_ENGINE_AUTO);
	CHECK(choose("version: 1\nengine: bwrap\n") == SPEC_ENGINE_BWRAP);
	fake_host_init(&host);
	CHECK(choose("version: 1\nengine: landlock\n") == SPEC_ENGINE_AUTO);
	CHECK(choose("version: 1\nengine: bwrap\nnetwork: {mode: allowlist}\n") ==
		SPEC_ENGINE_AUTO);
	fake_host_lose(&host, HOST_NS_USER);
	CHECK(choose("version: 1\nengine: landlock\nallow_degraded: [fs.root, fs.project, home, "
		     "ids, proc, ipc, uts, cgroup, dev]\n") == SPEC_ENGINE_LANDLOCK);
	CHECK(choose("version: 1\nengine: landlock\nallow_degraded: [fs.root, fs.project, home, "
		     "ids, proc, ipc, uts, cgroup]\n") == SPEC_ENGINE_AUTO);
	fake_host_init(&host);
}

/* Before its third version Landlock lets a file be truncated that may not be written to. */
static void test_truncation(void)
{
	for (int abi = 1; abi <= 5; abi++) {
		struct plan_verdict v;

		host.landlock_abi = abi;
		v = plan_engine_gives(SPEC_ENGINE_LANDLOCK, PLAN_FS_WRITES, &host);
		CHECK(v.can == (abi >= 3));
		CHECK(v.is_possible && v.missing == (abi >= 3 ? 0 : HOST_LANDLOCK));
		/* What does not depend on it stays, and so does what mounts give. */
		CHECK(plan_engine_gives(SPEC_ENGINE_LANDLOCK, PLAN_FS_READS, &host).can);
		CHECK(plan_engine_gives(SPEC_ENGINE_NATIVE, PLAN_FS_WRITES, &host).can);
	}
	fake_host_init(&host);
}

/* The engine that enforces nothing is taken by those who name it, and by nobody else. */
static void test_logical(void)
{
	struct plan_choice c;

	for (enum host_ability a = 0; a < HOST_ABILITY_COUNT; a++)
		fake_host_lose(&host, a);
	CHECK(choose("version: 1\n") == SPEC_ENGINE_AUTO);
	CHECK(choose("version: 1\nrelaxed: true\n") != SPEC_ENGINE_LOGICAL);
	CHECK(choose("version: 1\nengine: logical\n") == SPEC_ENGINE_LOGICAL);
	CHECK(make_spec(&spec, "version: 1\nengine: logical\nlimits: {memory: 1G}\n"));
	plan_choose(&spec, &host, &c);
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++)
		CHECK(c.demands[g].need != PLAN_MUST);
	CHECK(!c.engines[SPEC_ENGINE_NATIVE].is_tried);
	spec_done(&spec);
	fake_host_init(&host);
}

static void test_refusal(void)
{
	own(buf) struct buf out = { .max = 100000 };
	struct plan_choice c;

	for (enum host_ability a = HOST_BWRAP; a < HOST_ABILITY_COUNT; a++)
		fake_host_lose(&host, a);
	fake_host_lose(&host, HOST_CGROUP_MEMORY);
	host.abilities[HOST_CGROUP_MEMORY].cause = HOST_CAUSE_NO_DELEGATION;
	CHECK(make_spec(&spec, "version: 1\nlimits: {memory: 1G}\n"));
	plan_choose(&spec, &host, &c);
	CHECK(c.engine == SPEC_ENGINE_AUTO && c.engines[SPEC_ENGINE_NATIVE].lacking == 1);
	plan_print_refusal(&c, &host, &out);
	CHECK(str_starts(buf_text(&out),
		"engine native cannot give here:\n  limits.memory\n    needs a "
		"limit on memory by cgroup: no cgroup is delegated to "
		"this user\n"));
	CHECK(strstr(buf_text(&out), "Delegate=yes") && strstr(buf_text(&out), "allow_degraded"));
	CHECK(!strstr(buf_text(&out), "fs.root"));
	spec_done(&spec);
	fake_host_init(&host);
}

int main(void)
{
	fake_host_init(&host);
	test_table();
	test_default_demands();
	test_demands();
	test_relaxed();
	test_never_without();
	test_ladder();
	test_truncation();
	test_logical();
	test_refusal();
	return check_report();
}
