/*
 * tree_remove - takes a tree away, whatever a stranger made of it.
 *
 * Runs as:  the operator; the cage's first process.
 * Must not: follow a link; leave the tree; need more descriptors than TREE_MAX_DEPTH, or than
 *           there are.
 *
 * A folder that lies too deep is moved to the top of the tree, where it is as shallow as any.
 * Nothing is looked at that need not be: what stands in the way is seen when it does.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"

#define SPARE_FDS    8     /* so many are left for what is not a folder of the walk */
#define MOST_REPEATS 10000 /* somebody who fills it all the time is not waited for */

struct removal {
	const struct tree_removal *o;
	int top, last_fd;
	unsigned depth, moved, repeats;
	uint64_t failed;
	struct tree_path path;
	struct err error; /* the first */
};

static int tree_remove_fail(struct removal *w, const char *name, int num, const char *verb)
{
	w->failed++;
	/* A folder that is busy is one on which something is mounted. */
	return tree_fail(&w->path, name, num == EBUSY ? EXDEV : num, verb,
		w->error.kind == ERR_NONE ? &w->error : NULL);
}

static int tree_remove_open_folder(const struct removal *w, int at, const char *name)
{
	return w->o->stays ? file_open_same_mount(at, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK)
			   : tree_open_folder(at, name);
}

/* --- what stands in the way --- */

/* True if the entry was immutable or append-only and that was cleared. */
static bool clear_marks(int fd)
{
	int marks = 0;

	if (fd < 0 || ioctl(fd, FS_IOC_GETFLAGS, &marks) < 0 ||
		!(marks & (FS_IMMUTABLE_FL | FS_APPEND_FL)))
		return false;
	marks &= ~(FS_IMMUTABLE_FL | FS_APPEND_FL);
	return ioctl(fd, FS_IOC_SETFLAGS, &marks) == 0;
}

/* Only files and folders have these flags, and opening one has no side effects. */
static bool clear_entry(const struct removal *w, int at, const char *name)
{
	own_fd int fd = -1;
	struct stat st;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		(!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
		return false;
	fd = w->o->stays ? file_open_same_mount(at, name, O_RDONLY | O_NONBLOCK | O_NOCTTY)
			 : file_open_name(at, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	return clear_marks(fd);
}

/* After a refusal: could something be done about it? */
static bool make_way(const struct removal *w, int at, const char *name)
{
	bool is_made = false;
	struct stat st;

	if (w->o->clears) {
		bool is_cleared = clear_marks(at);

		is_made = clear_entry(w, at, name) || is_cleared;
	}
	if (at >= 0 && fstat(at, &st) == 0 && (st.st_mode & S_IRWXU) != S_IRWXU &&
		fchmod(at, S_IRWXU) == 0)
		is_made = true;
	return is_made;
}

static int tree_remove_name(const struct removal *w, int at, const char *name, int flags)
{
	bool is_refused;

	if (unlinkat(at, name, flags) == 0)
		return 0;
	is_refused = errno == EACCES || errno == EPERM;
	/* Through the name of a path the folder it is in is not known. */
	if (is_refused && w->depth && make_way(w, at, name) && unlinkat(at, name, flags) == 0)
		return 0;
	return errno == ENOENT ? 0 : -errno;
}

/* Opens a folder so that it can be emptied. */
static int open_to_empty(const struct removal *w, int at, const char *name)
{
	int fd = tree_remove_open_folder(w, at, name);

	if (fd == -EACCES && w->depth && make_way(w, at, name))
		fd = tree_remove_open_folder(w, at, name);
	if (fd == -EACCES && fchmodat(at, name, S_IRWXU, AT_SYMLINK_NOFOLLOW) == 0)
		fd = tree_remove_open_folder(w, at, name);
	return fd;
}

/* --- the walk --- */

/* An empty folder in the way is replaced, which is as good as removed; anything else is avoided. */
static int tree_remove_move_up(struct removal *w, int at, const char *name)
{
	own_fd int folder = open_to_empty(w, at, name);
	char shallow[32];
	int r;

	if (folder < 0)
		return folder;
	/* To be moved, it must be writable, and so must be what it is in. */
	make_way(w, folder, ".");
	make_way(w, at, name);
	do {
		snprintf(shallow, sizeof(shallow), "moved-%u", w->moved++);
		r = renameat(at, name, w->top, shallow) < 0 ? -errno : 0;
	} while (r == -EEXIST || r == -ENOTEMPTY || r == -ENOTDIR);
	return r;
}

/* True if the file system has no room for another folder. */
static bool is_deep(const struct removal *w, int at)
{
	return at != w->top && (w->depth >= TREE_MAX_DEPTH || at >= w->last_fd - SPARE_FDS);
}

static int tree_remove_empty(struct removal *w, int folder, bool *ret_has_removed);

/* Until it is gone: what is removed while it is listed may hide the next. */
static int remove_opened(struct removal *w, int at, const char *name, int folder)
{
	size_t before = tree_path_enter(&w->path, name);
	bool has_removed;
	int r;

	w->depth++;
	do {
		r = tree_remove_empty(w, folder, &has_removed);
		if (r < 0)
			break;
		r = tree_remove_name(w, at, name, AT_REMOVEDIR);
	} while (r == -ENOTEMPTY && has_removed && w->repeats++ < MOST_REPEATS &&
		 lseek(folder, 0, SEEK_SET) == 0);
	w->depth--;
	tree_path_leave(&w->path, before);
	return r;
}

static int remove_folder(struct removal *w, int at, const char *name)
{
	own_fd int folder = -1;
	uint64_t failed = w->failed;
	int r;

	if (is_deep(w, at)) {
		r = tree_remove_move_up(w, at, name);
		return r < 0 ? tree_remove_fail(w, name, -r, "remove") : 0;
	}
	folder = open_to_empty(w, at, name);
	/* It was another just now. */
	if (folder == -ENOTDIR || folder == -ELOOP) {
		r = tree_remove_name(w, at, name, 0);
		return r < 0 ? tree_remove_fail(w, name, -r, "remove") : 0;
	}
	if (folder < 0)
		return folder == -ENOENT ? 0 : tree_remove_fail(w, name, -folder, "remove");
	if (w->top < 0)
		w->top = folder;
	r = remove_opened(w, at, name, folder);
	/* The entry that is in the way was named already. */
	return r < 0 && w->failed == failed ? tree_remove_fail(w, name, -r, "remove") : r;
}

static int tree_remove_entry(struct removal *w, int at, const char *name, uint8_t type)
{
	int r = type == DT_DIR ? -EISDIR : tree_remove_name(w, at, name, 0);

	if (r == -EISDIR)
		return remove_folder(w, at, name);
	return r < 0 ? tree_remove_fail(w, name, -r, "remove") : 0;
}

static int tree_remove_empty(struct removal *w, int folder, bool *ret_has_removed)
{
	struct file_entries entries = { .fd = folder };
	const struct file_entry *entry;
	int r = 0;

	*ret_has_removed = false;
	while ((r == 0 || w->o->goes_on) && (entry = file_next_entry(&entries))) {
		int one;

		if (str_eq(entry->name, ".") || str_eq(entry->name, ".."))
			continue;
		one = tree_remove_entry(w, folder, entry->name, entry->type);
		*ret_has_removed |= one == 0;
		r = one < 0 ? one : r;
	}
	return entries.failure ? tree_remove_fail(w, "", entries.failure, "list") : r;
}

static struct removal tree_remove_begin(const struct tree_removal *o, int top)
{
	struct removal w = { .o = o, .top = top, .last_fd = INT_MAX };
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < INT_MAX)
		w.last_fd = (int)files.rlim_cur;
	return w;
}

int tree_remove(int at, const char *name, struct err *e)
{
	static const struct tree_removal plainly = { 0 };
	struct removal w = tree_remove_begin(&plainly, -1);
	int r = tree_remove_entry(&w, at, name, DT_UNKNOWN);

	if (r < 0 && e)
		*e = w.error;
	return r;
}

int tree_empty(int folder, struct tree_removal *o, struct err *e)
{
	struct removal w = tree_remove_begin(o, folder);
	bool has_removed = false, is_moved;
	int r;

	w.depth = 1;
	/* The next walk finds entries that were moved up meanwhile; the last walk counts. */
	do {
		unsigned moved = w.moved;

		w.failed = 0;
		w.error = (struct err){ 0 };
		r = lseek(folder, 0, SEEK_SET) < 0 ? tree_remove_fail(&w, "", errno, "list")
						   : tree_remove_empty(&w, folder, &has_removed);
		is_moved = w.moved != moved;
	} while ((r < 0 ? o->goes_on && has_removed : is_moved) &&
		 w.repeats++ < MOST_REPEATS + w.moved);
	o->failed = w.failed;
	if (r < 0 && e)
		*e = w.error;
	return r;
}
