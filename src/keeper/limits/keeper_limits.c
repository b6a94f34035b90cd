/*
 * keeper_limits - the limits that the kernel holds all processes of the cage to together.
 *
 * Runs as: the keeper.
 * Leaves:  no cgroup: what was made for the run is removed with it, and what keepers left that
 *          were killed, by whoever makes one next.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/lines.h"
#include "base/str.h"
#include "keeper/keeper_inside.h"

static const struct {
	const char *name;
	enum cgroup_controller controller;
} controllers[] = {
	{ "limits.memory", CGROUP_MEMORY },
	{ "limits.cpu", CGROUP_CPU },
	{ "limits.pids", CGROUP_PIDS },
};

enum cgroup_controller keeper_controller_of(const struct plan *p, const struct plan_op *op)
{
	if (op->kind != PLAN_LIMIT || !str_starts(plan_str(p, op->b), "cgroup"))
		return CGROUP_COUNT;
	for (size_t i = 0; i < COUNT_OF(controllers); i++)
		if (str_eq(controllers[i].name, plan_str(p, op->a)))
			return controllers[i].controller;
	return CGROUP_COUNT;
}

int keeper_limits_make(struct keeper *k, struct err *e)
{
	const struct plan *p = k->start.plan;
	unsigned wanted = 0;
	int r;

	for (uint32_t i = 0; i < p->op_count; i++) {
		enum cgroup_controller c = keeper_controller_of(p, &plan_ops(p)[i]);

		wanted |= c < CGROUP_COUNT ? 1U << c : 0;
	}
	if (!wanted)
		return 0;
	r = cgroup_find(&k->group, k->record->run, wanted, e);
	for (uint32_t i = 0; r == 0 && i < p->op_count; i++) {
		const struct plan_op *op = &plan_ops(p)[i];
		enum cgroup_controller c = keeper_controller_of(p, op);
		struct err why = { 0 };

		if (c == CGROUP_COUNT || cgroup_limit(&k->group, c, op->n, &why) == 0)
			continue;
		if (op->need == PLAN_MUST) {
			*e = why;
			r = -EPERM;
		} else {
			record_note(k->record, i, why.text);
		}
	}
	k->start.group = &k->group;
	return r;
}

void keeper_limits_explain(const struct keeper *k, struct err *e)
{
	if (k->end.counts.oom_kills) {
		err_prefix(e, "cannot fit into limits.memory");
		err_hint(e, 0, "is limits.memory too small?");
	}
}

bool keeper_ends_for_output(const struct keeper *k)
{
	const struct plan_op *op = plan_find(k->start.plan, PLAN_LIMIT, "limits.output");

	return k->stdio.is_cut && op && op->flags & PLAN_ENDS;
}

/* utime, stime, cutime and cstime of proc_pid_stat(5), counted from the field behind the name. */
#define FIRST_TIME 11
#define LAST_TIME  14

int64_t keeper_ask_cpu_us(pid_t first)
{
	char path[64], text[1024], *rest, *field;
	uint64_t ticks = 0;
	int i = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", first);
	if (file_read_small(path, text, sizeof(text)) <= 0)
		return -1;
	/* Its name, which may have anything in it, ends with the last bracket. */
	rest = strrchr(text, ')');
	rest = rest && rest[1] ? rest + 2 : NULL;
	for (; rest && i <= LAST_TIME && (field = lines_field(&rest, ' ')); i++)
		if (i >= FIRST_TIME)
			ticks += strtoull(field, NULL, 10);
	return i > LAST_TIME ? (int64_t)(ticks * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK)) : -1;
}

void keeper_limits_measure(struct keeper *k)
{
	struct record_used *used = &k->record->used;

	used->cpu_us = k->process.cpu_us;
	used->printed = (int64_t)k->stdio.printed;
	keeper_output_end(&k->stdio, &k->record->output);
	/* No cgroup of the cage's has had nothing in it. */
	used->memory_peak = k->end.counts.memory_peak ? (int64_t)k->end.counts.memory_peak : -1;
	used->processes_peak = k->end.counts.pids_peak ? (int64_t)k->end.counts.pids_peak : -1;
}

void keeper_limits_judge(struct keeper *k)
{
	const struct plan_op *pids = plan_find(k->start.plan, PLAN_LIMIT, "limits.pids");
	uint64_t *reached = k->record->reached;

	/* It may have been found out only when nobody was left to be asked to end. */
	if (keeper_ends_for_output(k) && k->end.limit == PLAN_GUARANTEE_COUNT)
		k->end.limit = PLAN_LIMITS_OUTPUT;
	reached[PLAN_LIMITS_TIME] = k->end.limit == PLAN_LIMITS_TIME;
	reached[PLAN_LIMITS_OUTPUT] = k->stdio.is_cut;
	reached[PLAN_LIMITS_DISK] = k->end.is_disk_full || k->end.limit == PLAN_LIMITS_DISK;
	k->record->ended_for = k->end.limit;
	reached[PLAN_LIMITS_MEMORY] = k->end.counts.oom_kills;
	reached[PLAN_LIMITS_PIDS] = k->end.counts.forks_refused;
	/* The user namespace counts nothing for us: only a limit that is reached still shows, with
	 * the init and the command. */
	if (pids && keeper_controller_of(k->start.plan, pids) == CGROUP_COUNT &&
		(uint64_t)k->end.others + 2 >= pids->n)
		reached[PLAN_LIMITS_PIDS] = 1;
}
