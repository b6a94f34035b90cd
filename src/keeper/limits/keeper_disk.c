/*
 * keeper_disk - the limit of a layer on disk, which no file system holds for an ordinary user.
 *
 * Runs as:  the keeper, while the command runs.
 * Must not: take long. The layer's files are counted when the whole file system has lost so much
 *           since the last count that the limit may be reached, and from time to time besides.
 *
 * A copy of the project is not the run's, nor is what earlier ones kept of the private home: what
 * these take at the start does not count.
 *
 * Who reaches the limit is ended at once, and may have written some more by then: as much as the
 * disk takes between two looks. Where that is too much, a declared limits.disk keeps the layer in
 * memory, where the kernel counts.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "keeper/keeper_inside.h"

#define COUNT_NS    ((uint64_t)1000 * 1000 * 1000)
#define COUNT_SHARE 20  /* times as long as counting takes */
#define DEEPEST     128 /* folders in folders that are counted */

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

void keeper_disk_open(struct keeper *k)
{
	const struct plan_op *op = plan_find(k->start.plan, PLAN_LIMIT, "limits.disk");
	struct keeper_layer *l = &k->layer;
	struct usage first = { 0 };
	uint64_t now = clock_ns();

	if (op)
		l->disk.kept = disk_open_kept(k);
	if (!op || !disk_ask(k, &l->disk.free, &l->disk.free_files))
		return;
	l->disk.max = op->n;
	l->disk.free_at_start = l->disk.free;
	/* What a session has already is a part of what it may have. */
	if (k->q->workspace < 0)
		count_layers(k, &first);
	l->disk.count_ns = k->q->workspace < 0 ? next_count(now, clock_ns()) : now;
	l->disk.first_bytes = first.bytes;
	l->disk.first_files = first.files;
}

int keeper_disk_wait(const struct keeper *k)
{
	return k->layer.disk.max && k->state == KEEPER_RUNNING ? KEEPER_DISK_MS : -1;
}

bool keeper_disk_is_over(struct keeper *k)
{
	struct keeper_layer *l = &k->layer;
	uint64_t now = clock_ns(), bytes, files, pool;
	struct usage usage = { 0 };

	if (!l->disk.max || now < l->disk.next_ns || !disk_ask(k, &bytes, &files))
		return false;
	l->disk.next_ns = now + KEEPER_DISK_MS * (uint64_t)1000000;
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
