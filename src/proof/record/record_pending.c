/*
 * record_pending - knows the runs that somebody has to look at, however many others there are.
 *
 * Runs as: the keeper, when a run has ended; whoever applies, discards or lists.
 * Leaves:  STATE/pending/RUN, a link to the folder of each run that has ended and has changes that
 *          were neither applied nor discarded.
 *
 * The folder of the run decides: a link without changes behind it is passed over, and removed by
 * whoever finds it. Runs that go on, or were interrupted, are in STATE/unsigned until they are
 * signed, and are linked before they leave it. A state of before November 2026 has no such links:
 * whoever needs them first looks at all runs once.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "proof/record/record.h"

#define PENDING "../pending"
#define MAKING  PENDING ".new"

static bool pending_is_there(int runs, const char *run, const char *name)
{
	char path[RECORD_RUN_SIZE + 32];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", run, name);
	return fstatat(runs, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

bool record_has_layer(int runs, const char *run)
{
	return pending_is_there(runs, run, RECORD_LAYER "/upper") ||
	       pending_is_there(runs, run, RECORD_LAYER "/copy");
}

static int pending_link(int folder, const char *run)
{
	char target[RECORD_RUN_SIZE + 16];

	snprintf(target, sizeof(target), "../runs/%s", run);
	return symlinkat(target, folder, run) < 0 && errno != EEXIST ? -errno : 0;
}

/* Is anything there to review, or half removed? */
static bool pending_is(int runs, const char *run)
{
	return pending_is_there(runs, run, RECORD_LAYER) ||
	       pending_is_there(runs, run, RECORD_GIT_LAYER) ||
	       pending_is_there(runs, run, RECORD_LAYER_GONE);
}

/* Links all runs with changes in `folder`. */
static int pending_link_all(int runs, int folder)
{
	own_fd int fd = openat(runs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct file_entries entries = { .fd = fd };
	const struct file_entry *entry;
	int r = fd < 0 ? -errno : 0;

	while (r == 0 && (entry = file_next_entry(&entries)))
		if (record_is_run(entry->name, true) && pending_is(runs, entry->name))
			r = pending_link(folder, entry->name);
	return r < 0 ? r : -entries.failure;
}

static int pending_open_folder(int runs, const char *name)
{
	int fd = openat(runs, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	/* cppcheck-suppress resourceLeak */
	return fd < 0 ? -errno : fd;
}

/*
 * Makes the folder of links, whole or not at all. Two that do so at one time fill the same folder,
 * or the slower one adds what it found to the other's, which may have looked before the last run
 * ended.
 */
static int pending_make(int runs)
{
	own_fd int made = -1, there = -1;
	int r;

	if (mkdirat(runs, MAKING, 0700) < 0 && errno != EEXIST)
		return -errno;
	made = pending_open_folder(runs, MAKING);
	r = made < 0 && made != -ENOENT ? made : 0;
	if (made >= 0)
		r = pending_link_all(runs, made);
	if (r < 0)
		return r;
	if (made >= 0 && renameat2(runs, MAKING, runs, PENDING, RENAME_NOREPLACE) == 0)
		return take_fd(&made);
	there = pending_open_folder(runs, PENDING);
	r = there < 0 ? there : pending_link_all(runs, there);
	return r < 0 ? r : take_fd(&there);
}

static int pending_open(int runs)
{
	int fd = pending_open_folder(runs, PENDING);

	return fd == -ENOENT ? pending_make(runs) : fd;
}

int record_note_pending(int runs, const char *run)
{
	own_fd int folder = -1;

	if (!pending_is(runs, run))
		return 0;
	folder = pending_open(runs);
	return folder < 0 ? folder : pending_link(folder, run);
}

void record_forget_pending(int runs, const char *run)
{
	char path[RECORD_RUN_SIZE + sizeof(PENDING "/")];

	snprintf(path, sizeof(path), PENDING "/%s", run);
	unlinkat(runs, path, 0);
}

/* --- all of them --- */

struct pending_list {
	struct record_run *items;
	size_t count, room;
};

static int pending_add(struct pending_list *l, int runs, const char *run)
{
	for (size_t i = 0; i < l->count && l->count < 4096; i++)
		if (strcmp(l->items[i].id, run) == 0)
			return 0;
	if (l->count == l->room) {
		size_t room = l->room ? 2 * l->room : 16;
		void *grown = reallocarray(l->items, room, sizeof(*l->items));

		if (!grown)
			return -ENOMEM;
		l->items = grown;
		l->room = room;
	}
	snprintf(l->items[l->count].id, sizeof(l->items->id), "%s", run);
	record_find_began(runs, run, &l->items[l->count++].began);
	return 0;
}

/* Those in one folder of names; what has no changes is passed over, and its link removed. */
static int pending_add_all(struct pending_list *l, int runs, int folder, bool removes)
{
	struct file_entries entries = { .fd = folder };
	const struct file_entry *entry;
	int r = 0;

	while (r == 0 && folder >= 0 && (entry = file_next_entry(&entries))) {
		if (!record_is_run(entry->name, true))
			continue;
		if (pending_is(runs, entry->name))
			r = pending_add(l, runs, entry->name);
		else if (removes)
			unlinkat(folder, entry->name, 0);
	}
	return r < 0 ? r : -entries.failure;
}

int record_list_pending(int runs, struct record_run **ret, size_t *ret_count)
{
	own_fd int unsigned_runs = pending_open_folder(runs, "../unsigned");
	own_fd int folder = -1;
	struct pending_list l = { NULL, 0, 0 };
	/* First those that move to the other folder, so that none is missed between the two. */
	int r = pending_add_all(&l, runs, unsigned_runs, false);

	if (r == 0)
		r = folder = pending_open(runs);
	if (r >= 0)
		r = pending_add_all(&l, runs, folder, true);
	if (r < 0) {
		free(l.items);
		return r;
	}
	if (l.count)
		qsort(l.items, l.count, sizeof(*l.items), record_compare_runs);
	*ret = l.items;
	*ret_count = l.count;
	return 0;
}
