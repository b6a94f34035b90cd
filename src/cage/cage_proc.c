/*
 * cage_proc - the cage's own /proc, of which nothing is left but processes and a few files.
 *
 * Runs as:  the first process of the cage's pid namespace.
 * Leaves:   a fresh /proc; an empty folder or an empty file, read-only, over everything in it that
 *           is neither a process nor kept by the plan.
 * Must not: cover by name: what a later kernel adds is covered too.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "cage/cage_inside.h"

#define COVER (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY)

/* Makes a cover from an empty name in the pool: attached there, it can be cloned at will. */
static int make_cover(int plain, const char *name, struct err *e)
{
	own_fd int tree = plain < 0 ? plain : cage_clone_tree(plain, COVER, e);
	int r = tree < 0 ? tree : cage_attach(tree, plain, name, e);

	return r < 0 ? r : take_fd(&tree);
}

static int blank_file(struct cage *c, struct err *e)
{
	int fd = mknodat(c->pool, "blank", S_IFREG | 0444, 0) < 0
			 ? -errno
			 : file_open_beneath(c->pool, "blank", O_PATH, 0);

	return fd < 0 ? err_sys(e, -fd, "cannot make the cage's own files") : fd;
}

static int proc_cover(
	int proc, const struct file_entry *entry, const int covers[static 2], struct err *e)
{
	own_fd int tree = open_tree(covers[entry->type == DT_DIR], "",
		AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (tree < 0)
		return err_sys(e, errno, "cannot clone a cover for '/proc/%s'", entry->name);
	/* The name was listed by the kernel a moment ago; a last link is not followed. */
	if (move_mount(tree, "", proc, entry->name, MOVE_MOUNT_F_EMPTY_PATH) < 0 && errno != ENOENT)
		return err_sys(e, errno, "cannot cover '/proc/%s'", entry->name);
	return 0;
}

static int cover_all(struct cage *c, const struct plan_op *op, int proc, struct err *e)
{
	own_fd int list = openat(proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	own_fd int file = blank_file(c, e), folder = cage_pool_folder(c, "empty", e);
	own_fd int blank = make_cover(file, "blank", e), empty = make_cover(folder, "empty", e);
	struct file_entries entries = { .fd = list };
	const struct file_entry *entry;
	int r = blank < 0 ? blank : empty < 0 ? empty : 0;

	/* Links in /proc lead to the reader's own process. */
	while (r == 0 && (entry = file_next_entry(&entries)))
		if (entry->type != DT_LNK && !plan_keeps_in_proc(c->start->plan, op, entry->name))
			r = proc_cover(proc, entry, (int[2]){ blank, empty }, e);
	if (r == 0 && entries.failure)
		return err_sys(e, entries.failure, "cannot list the cage's /proc");
	return r;
}

/* Without pids of its own, which only the test build leaves out, a cage has the host's /proc. */
static int new_proc(const char *const *options, uint64_t attributes, struct err *e)
{
	own_fd int hosts = -1;

	if (!cage_is_broken("namespace:pid"))
		return cage_new_mount("proc", options, attributes, e);
	hosts = file_open("/proc", O_PATH);
	return hosts < 0 ? hosts : cage_clone_tree(hosts, attributes, e);
}

int cage_mount_proc(struct cage *c, const struct plan_op *op, struct err *e)
{
	static const char *const subset[] = { "subset", "pid", NULL };
	bool is_subset = op->flags & PLAN_SUBSET;
	own_fd int place = cage_open_place(c, c->root, cage_b(c, op), true, e);
	own_fd int proc = -1;
	int r;

	if (place < 0)
		return place;
	proc = new_proc(is_subset ? subset : NULL, cage_restrictions(op->flags), e);
	if (proc < 0)
		return proc;
	r = cage_attach(proc, place, cage_b(c, op), e);
	/* With the subset there is nothing else in it. */
	if (r < 0 || is_subset || cage_is_broken("proc") || cage_is_broken("namespace:pid"))
		return r;
	return cover_all(c, op, proc, e);
}
