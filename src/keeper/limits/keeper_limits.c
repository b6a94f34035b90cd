/*
 * keeper_limits - the limits of a run: those that cgroups enforce, and those that the keeper does.
 *
 * Runs as:  the keeper.
 * Leaves:   no cgroup: that of the run is removed with it, and those of keepers that were killed by
 *           the next one that makes a cgroup.
 * Must not: take long while the command runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/file.h"
#include "base/lines.h"
#include "base/own.h"
#include "base/str.h"
#include "keeper/engine/keeper_engine.h"
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

/* Makes the cgroups that the plan's limits need. */
static int keeper_limits_make(struct keeper *k, struct err *e)
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

/* Has the command printed more than it may, and is to be ended for that? */
static bool ends_for_output(const struct keeper *k)
{
	const struct plan_op *op = plan_find(k->start.plan, PLAN_LIMIT, "limits.output");

	return k->stdio.is_cut && op && op->flags & PLAN_ENDS;
}

void keeper_limits_judge(struct keeper *k)
{
	const struct plan_op *pids = plan_find(k->start.plan, PLAN_LIMIT, "limits.pids");
	uint64_t *reached = k->record->reached;

	/* It may have been found out only when nobody was left to be asked to end. */
	if (ends_for_output(k) && k->end.limit == PLAN_GUARANTEE_COUNT)
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

/* --- the limit of a layer on disk --- */

/*
 * No file system enforces a quota for an ordinary user. The layer's files are counted when the file
 * system has lost so much space since the last count that the limit may be reached, and from time
 * to time besides. A copy of the project is not the run's, nor is what earlier runs kept of the
 * private home: what these take at the start does not count.
 *
 * A run that reaches the limit is ended at once, and may have written some more by then: as much as
 * the disk takes between two looks. Where that is too much, a declared limits.disk keeps the layer
 * in memory, where the kernel counts.
 */

#define COUNT_NS    ((uint64_t)1000 * 1000 * 1000)
#define COUNT_SHARE 20  /* times as long as counting takes */
#define DEEPEST     128 /* folders in folders that are counted */
#define LOOK_MS     100 /* between two looks */

struct usage {
	uint64_t bytes, files;
	bool is_blind; /* a folder could not be looked into */
};

static void count_folder(int at, const char *name, unsigned depth, struct usage *ret)
{
	own_fd int folder = file_open_name(at, name, O_RDONLY | O_DIRECTORY);
	struct file_entries entries = { .fd = folder };
	const struct file_entry *entry;

	while (folder >= 0 && (entry = file_next_entry(&entries))) {
		struct stat st;

		if (str_eq(entry->name, ".") || str_eq(entry->name, "..") ||
			fstatat(folder, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		ret->bytes += (uint64_t)st.st_blocks * 512;
		ret->files++;
		if (!S_ISDIR(st.st_mode))
			continue;
		if (depth == DEEPEST)
			ret->is_blind = true;
		else
			count_folder(folder, entry->name, depth + 1, ret);
	}
	/* What was removed meanwhile takes no space; what cannot be opened may hide any. */
	ret->is_blind |= (folder < 0 && folder != -ENOENT) || (folder >= 0 && entries.failure);
}

/* Not what the overlay keeps for itself beside it, which nobody may enter. */
static void count_layers(const struct keeper *k, struct usage *ret)
{
	const struct keeper_layer *l = &k->layer;

	for (size_t i = 0; i < CAGE_LAYER_COUNT; i++)
		if (l->trees[i].top >= 0)
			count_folder(
				l->trees[i].top, l->trees[i].is_copied ? "copy" : "upper", 0, ret);
	if (l->disk.kept >= 0)
		count_folder(l->disk.kept, ".", 0, ret);
	if (k->q->workspace < 0)
		return;
	count_folder(k->q->workspace, "home", 0, ret);
	count_folder(k->q->workspace, "tmp", 0, ret);
}

static uint64_t beyond(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* All that is kept for a project is in one folder, whose name no cage can change. */
static int disk_open_kept(const struct keeper *k)
{
	const struct plan *p = k->start.plan;

	for (uint32_t i = 0; i < k->sources.count; i++)
		if (plan_ops(p)[i].a_root == PLAN_ROOT_STATE)
			return file_open_name(k->sources.fds[i], "..", O_RDONLY | O_DIRECTORY);
	return -1;
}

/* False: nothing of the run is on a disk. A session has a home there, and /tmp, in any case. */
static bool disk_ask(const struct keeper *k, uint64_t *ret_free, uint64_t *ret_files)
{
	const struct keeper_layer *l = &k->layer;
	int fd = l->trees[CAGE_LAYER_PROJECT].top;
	struct statfs fs;

	if (fd < 0)
		fd = k->q->workspace >= 0 ? k->q->workspace : l->disk.kept;
	if (fstatfs(fd, &fs) < 0)
		return false;
	*ret_free = (uint64_t)fs.f_bfree * (uint64_t)fs.f_bsize;
	*ret_files = fs.f_ffree;
	return true;
}

/* When to count in any case: others may free what the run takes. A small part of our time. */
static uint64_t next_count(uint64_t began, uint64_t ended)
{
	uint64_t rest = (ended - began) * COUNT_SHARE;

	return ended + (rest > COUNT_NS ? rest : COUNT_NS);
}

/* What the cage's own file system takes counts too. */
static uint64_t pool_bytes(const struct keeper *k)
{
	struct statfs fs;

	if (k->disk < 0 || fstatfs(k->disk, &fs) < 0)
		return 0;
	return (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
}

/* Begins to watch, if a limit holds that no file system holds. */
static int disk_open(struct keeper *k, struct err *e)
{
	const struct plan_op *op = plan_find(k->start.plan, PLAN_LIMIT, "limits.disk");
	struct keeper_layer *l = &k->layer;
	struct usage first = { 0 };
	uint64_t now = clock_ns();

	(void)e;
	if (op)
		l->disk.kept = disk_open_kept(k);
	if (!op || !disk_ask(k, &l->disk.free, &l->disk.free_files))
		return 0;
	l->disk.max = op->n;
	l->disk.free_at_start = l->disk.free;
	/* What a session has already is a part of what it may have. */
	if (k->q->workspace < 0)
		count_layers(k, &first);
	l->disk.count_ns = k->q->workspace < 0 ? next_count(now, clock_ns()) : now;
	l->disk.first_bytes = first.bytes;
	l->disk.first_files = first.files;
	return 0;
}

/* How long to wait for the next look, or -1. */
static int disk_wait(const struct keeper *k)
{
	return k->layer.disk.max && k->state == KEEPER_RUNNING ? LOOK_MS : -1;
}

/* Does the run take more than it may? */
static bool disk_is_over(struct keeper *k)
{
	struct keeper_layer *l = &k->layer;
	uint64_t now = clock_ns(), bytes, files, pool;
	struct usage usage = { 0 };

	if (!l->disk.max || now < l->disk.next_ns || !disk_ask(k, &bytes, &files))
		return false;
	l->disk.next_ns = now + LOOK_MS * (uint64_t)1000000;
	pool = pool_bytes(k);
	if (now < l->disk.count_ns &&
		l->disk.bytes + beyond(l->disk.free, bytes) + pool <= l->disk.max &&
		l->disk.files + beyond(l->disk.free_files, files) <= plan_inodes(l->disk.max))
		return false;
	count_layers(k, &usage);
	usage.bytes = beyond(usage.bytes, l->disk.first_bytes);
	usage.files = beyond(usage.files, l->disk.first_files);
	if (usage.is_blind && usage.bytes < beyond(l->disk.free_at_start, bytes))
		usage.bytes = beyond(l->disk.free_at_start, bytes);
	l->disk.count_ns = next_count(now, clock_ns());
	l->disk.bytes = usage.bytes;
	l->disk.files = usage.files;
	l->disk.free = bytes;
	l->disk.free_files = files;
	return usage.bytes + pool > l->disk.max || usage.files > plan_inodes(l->disk.max);
}

/* --- both as parts of the keeper --- */

/* No kernel counts what is printed. */
static int limits_watch(struct keeper *k, const struct pollfd *seen, struct err *e)
{
	(void)seen, (void)e;
	if (ends_for_output(k))
		keeper_end_for(k, PLAN_LIMITS_OUTPUT);
	return 0;
}

const struct keeper_part keeper_limits_part = {
	.take = { [KEEPER_PREPARE] = keeper_limits_make },
	.hear = limits_watch,
};

/* At once: whoever fills the disk would go on while it is asked. */
static int disk_watch(struct keeper *k, const struct pollfd *seen, struct err *e)
{
	(void)seen, (void)e;
	if (disk_wait(k) < 0 || !disk_is_over(k))
		return 0;
	if (k->end.limit == PLAN_GUARANTEE_COUNT)
		k->end.limit = PLAN_LIMITS_DISK;
	k->engine->kill(k);
	return 0;
}

const struct keeper_part keeper_disk_part = {
	.take = { [KEEPER_PREPARE] = disk_open },
	.wait = disk_wait,
	.hear = disk_watch,
};
