#include "plan/plan_guarantees.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/num.h"
#include "base/str.h"
#include "plan/plan.h"

const struct plan_guarantee_def plan_guarantee_defs[PLAN_GUARANTEE_COUNT] = {
	[PLAN_FS_ROOT] = { "fs.root", "The cage has a root of its own; the host's cannot be named.",
		"mountinfo: every mount is one of the plan's", "every mount is one of the plan's" },
	[PLAN_FS_READS] = { "fs.reads", "Only declared paths of the host can be read.",
		"mountinfo: the source of every mount is declared", "every source is declared" },
	[PLAN_FS_WRITES] = { "fs.writes", "Only declared paths of the host can be written.",
		"mountinfo: every other mount is read-only or the cage's own",
		"every mount has the planned restrictions" },
	[PLAN_FS_PROJECT] = { "fs.project",
		"The project is read-only, captured or writable, as asked.",
		"mountinfo: type and options of the project's mount", "mounted as planned" },
	[PLAN_FS_PROTECT] = { "fs.protect",
		"In a writable project, what runs on the host later stays as it is.",
		"mountinfo: a read-only mount on each protected path that could be written, and a mount on each folder that leads to it" },
	[PLAN_HOME] = { "home",
		"The home is /home/agent, private, with nothing in it but declared binds and what an overlay keeps.",
		"mountinfo: /home/agent is in the cage's own root, and nothing is mounted on it",
		"in the cage's own root" },
	[PLAN_ENVIRONMENT] = { "env", "No variable of the operator's passes unless it is declared.",
		"the keeper makes it: the planned variables and no others",
		"the planned variables and no others" },
	[PLAN_IDS_UNPRIVILEGED] = { "ids",
		"On the host the agent is an unprivileged user without capabilities, for good.",
		"status, uid_map: no capability in any set, no_new_privs, no uid 0 outside" },
	[PLAN_GROUPS] = { "groups", "No supplementary group of the operator's is kept.",
		"status: Groups has none but the own group, which is not root's", "none" },
	[PLAN_PROCESSES] = { "proc", "Processes of the host are neither seen nor signalled.",
		"ns/pid differs; mountinfo: a fresh /proc", "pids of its own, and a fresh /proc" },
	[PLAN_IPC] = { "ipc", "No shared memory, semaphore or queue is shared with the host.",
		"ns/ipc differs" },
	[PLAN_UTS] = { "uts", "The host's name is not seen.", "ns/uts differs" },
	[PLAN_CGROUP] = { "cgroup", "The host's cgroups are not seen.", "ns/cgroup differs" },
	[PLAN_DEV] = { "dev",
		"Only null, zero, full, random, urandom, tty and own terminals exist.",
		"mountinfo: below /dev the planned devices and no others", "the planned devices" },
	[PLAN_TTY] = { "tty", "The operator's terminal is never a descriptor in the cage.",
		"/proc/PID/fd: three of bawn's own beside the standard ones, which are pipes or the cage's own terminal; a session of its own",
		"no terminal among its descriptors" },
	[PLAN_SYSTEM_CALLS] = { "syscalls", "System calls outside the profile are refused.",
		"status: Seccomp is 2, with the planned number of filters",
		"seccomp mode 2 with the filter" },
	[PLAN_LANDLOCKED] = { "landlock",
		"A second, independent layer opens what is declared; protected paths rest on mounts alone.",
		"a claim of the cage, after a write that only Landlock refuses: the kernel shows nothing outside",
		"a write was refused by it" },
	[PLAN_NET_NONE] = { "net.none", "There is no network.",
		"ns/net differs; its only interface is loopback",
		"a network of its own with loopback only" },
	[PLAN_NET_ALLOWLIST] = { "net.allowlist",
		"Only the declared hosts and ports are reached, by name.",
		"ns/net differs; its only interface is loopback; the gate listens",
		"loopback only, and a confined gate at the planned ports" },
	[PLAN_LIMITS_MEMORY] = { "limits.memory", "All processes together use no more memory.",
		"the cgroup's limit" },
	[PLAN_LIMITS_CPU] = { "limits.cpu", "All processes together use no more processor time.",
		"the cgroup's limit" },
	[PLAN_LIMITS_PIDS] = { "limits.pids", "There are never more processes and threads.",
		"the cgroup's limit, or /proc/PID/limits in the user namespace" },
	[PLAN_LIMITS_DISK] = { "limits.disk",
		"What vanishes with the run or is captured by it takes no more space.",
		"mountinfo: sizes of the cage's own file systems" },
	[PLAN_LIMITS_TIME] = { "limits.time", "The run ends in time.", "the keeper's own clock" },
	[PLAN_LIMITS_OUTPUT] = { "limits.output", "The command prints no more.",
		"the keeper's own count" },
	[PLAN_LIMITS_FILES] = { "limits.files", "A process has no more files open.",
		"/proc/PID/limits" },
};

enum plan_guarantee plan_guarantee_find(const char *name)
{
	enum plan_guarantee g = 0;

	while (g < PLAN_GUARANTEE_COUNT && !str_eq(plan_guarantee_defs[g].name, name))
		g++;
	return g;
}

/* --- what a spec asks for --- */

const struct plan_limit plan_limits[PLAN_LIMIT_COUNT] = {
	{ PLAN_LIMITS_MEMORY, SPEC_LIMITS_MEMORY },
	{ PLAN_LIMITS_CPU, SPEC_LIMITS_CPU },
	{ PLAN_LIMITS_PIDS, SPEC_LIMITS_PIDS },
	{ PLAN_LIMITS_DISK, SPEC_LIMITS_DISK },
	{ PLAN_LIMITS_TIME, SPEC_LIMITS_TIME },
	{ PLAN_LIMITS_OUTPUT, SPEC_LIMITS_OUTPUT },
	{ PLAN_LIMITS_FILES, SPEC_LIMITS_FILES },
};

/* A limit someone declared must hold; one that is only a default is applied where it can be. */
static bool demand_limit(const struct spec *s, enum plan_guarantee g, struct plan_demand *ret)
{
	for (size_t i = 0; i < PLAN_LIMIT_COUNT; i++) {
		enum spec_key key = plan_limits[i].key;
		struct buf value = { .max = sizeof(ret->value) - 1 };

		if (plan_limits[i].guarantee != g)
			continue;
		ret->need = PLAN_NONE;
		if (spec_number(s, key)) {
			ret->need = spec_is_declared(s, key) ? PLAN_MUST : PLAN_MAY;
			spec_print_value(key, spec_list(s, key), &value);
			snprintf(ret->value, sizeof(ret->value), "%s", buf_text(&value));
			buf_done(&value);
		}
		return true;
	}
	return false;
}

/* A project that governs itself is held off what the operator declared, and off nothing else. */
static bool demands_protection(const struct spec *s)
{
	return spec_choice(s, SPEC_PROJECT_MODE) == SPEC_MODE_WRITABLE &&
	       (!s->is_self_governed || spec_list(s, SPEC_PROJECT_PROTECT)->count);
}

static void demand_rest(const struct spec *s, enum plan_guarantee g, struct plan_demand *ret)
{
	unsigned net = spec_choice(s, SPEC_NETWORK_MODE), mode = spec_choice(s, SPEC_PROJECT_MODE);

	ret->need = PLAN_MUST;
	snprintf(ret->value, sizeof(ret->value), "yes");
	if (g == PLAN_FS_PROJECT)
		snprintf(ret->value, sizeof(ret->value), "%s",
			spec_keys[SPEC_PROJECT_MODE].choices[mode]);
	else if (g == PLAN_SYSTEM_CALLS)
		snprintf(ret->value, sizeof(ret->value), "%.39s", spec_text(s, SPEC_SYSCALLS));
	else if ((g == PLAN_FS_PROTECT && !demands_protection(s)) ||
		 (g == PLAN_NET_NONE && net != SPEC_NET_NONE) ||
		 (g == PLAN_NET_ALLOWLIST && net != SPEC_NET_ALLOWLIST))
		ret->need = PLAN_NONE;
	else if (g == PLAN_FS_PROTECT && s->is_self_governed)
		snprintf(ret->value, sizeof(ret->value), "declared");
	else if (g == PLAN_GROUPS)
		ret->need = PLAN_MAY;
}

bool plan_may_be_missing(const struct spec *s, enum plan_guarantee g)
{
	const struct spec_value *names = spec_list(s, SPEC_ALLOW_DEGRADED);

	for (size_t i = 0; i < names->count; i++)
		if (str_eq(names->items[i].text, plan_guarantee_defs[g].name))
			return true;
	return spec_bool(s, SPEC_RELAXED);
}

void plan_demand(const struct spec *s, enum plan_guarantee guarantee, struct plan_demand *ret)
{
	*ret = (struct plan_demand){ 0 };
	if (!demand_limit(s, guarantee, ret))
		demand_rest(s, guarantee, ret);
	ret->is_degraded = ret->need == PLAN_MUST && plan_may_be_missing(s, guarantee);
	if (ret->is_degraded)
		ret->need = PLAN_MAY;
}
