/*
 * tree_remove - takes a tree away, whatever a stranger made of it.
 *
 * Runs as:  the operator; the cage's first process.
 * Must not: follow a link; leave the tree; need more descriptors than TREE_MAX_DEPTH.
 *
 * A folder that lies too deep is moved to the top of the tree, where it is as shallow as any.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"

struct removal {
	int top;
	unsigned depth, moved;
	struct tree_path path;
};

/* Opens a folder so that it can be emptied. */
static int open_to_empty(int at, const char *name)
{
	int fd = tree_open_folder(at, name);
	struct stat st;

	if (fd == -EACCES && fchmodat(at, name, S_IRWXU, AT_SYMLINK_NOFOLLOW) == 0)
		fd = tree_open_folder(at, name);
	/* Where this fails, what follows fails, and says so. */
	if (fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & S_IRWXU) != S_IRWXU)
		(void)fchmod(fd, S_IRWXU);
	return fd;
}

/* An empty folder in the way is replaced, which is as good as removed; anything else is avoided. */
static int move_up(struct removal *w, int at, const char *name)
{
	own_fd int folder = open_to_empty(at, name); /* to move it, it must be writable */
	char shallow[32];
	int r;

	if (folder < 0)
		return folder;
	do {
		snprintf(shallow, sizeof(shallow), "moved-%u", w->moved++);
		r = renameat(at, name, w->top, shallow) < 0 ? -errno : 0;
	} while (r == -EEXIST || r == -ENOTEMPTY || r == -ENOTDIR);
	return r;
}

static int empty(struct removal *w, int folder, struct err *e);

static int remove_entry(struct removal *w, int at, const char *name, struct err *e)
{
	own_fd int folder = -1;
	size_t before;
	int r;

	if (unlinkat(at, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return tree_fail(&w->path, name, errno, "remove", e);
	if (w->depth == TREE_MAX_DEPTH) {
		r = move_up(w, at, name);
		return r < 0 ? tree_fail(&w->path, name, -r, "remove", e) : 0;
	}
	folder = open_to_empty(at, name);
	if (folder < 0)
		return tree_fail(&w->path, name, -folder, "remove", e);
	if (w->top < 0)
		w->top = folder;
	before = tree_path_enter(&w->path, name);
	w->depth++;
	r = empty(w, folder, e);
	w->depth--;
	tree_path_leave(&w->path, before);
	if (r == 0 && unlinkat(at, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return tree_fail(&w->path, name, errno, "remove", e);
	return r;
}

/* Until nothing is seen any more: what is removed while it is listed may hide the next. */
static int empty(struct removal *w, int folder, struct err *e)
{
	bool is_empty = false;

	while (!is_empty) {
		struct file_entries entries = { .fd = folder };
		const struct file_entry *entry;
		int r = lseek(folder, 0, SEEK_SET) < 0 ? -errno : 0;

		is_empty = true;
		while (r == 0 && (entry = file_next_entry(&entries))) {
			if (str_eq(entry->name, ".") || str_eq(entry->name, ".."))
				continue;
			is_empty = false;
			r = remove_entry(w, folder, entry->name, e);
			if (r < 0)
				return r;
		}
		if (r < 0 || entries.failure)
			return tree_fail(&w->path, "", r < 0 ? -r : entries.failure, "list", e);
	}
	return 0;
}

int tree_remove(int at, const char *name, struct err *e)
{
	struct removal w = { .top = -1 };

	return remove_entry(&w, at, name, e);
}
