/*
 * tool_walk - finds what is below a folder.
 *
 * Runs as:  a command in a cage, or anywhere, with the rights of who runs it.
 * Must not: follow a link, open anything but folders, hold more than one folder's names a level.
 */
#include "agent/tool/tool_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"

/* Before each name, so that sorting puts folders behind the rest. */
enum mark {
	MARK_FILE = '1',
	MARK_OTHER = '2',
	MARK_FOLDER = '3'
};

/* Longer than the path of anything that is not too deep. */
#define MAX_PATH ((size_t)TREE_MAX_DEPTH * 260)

struct level {
	struct tool_walk *w;
	struct buf *path;
	int fd;
	unsigned depth;
	dev_t dev;
};

static enum mark mark_of(int folder, const struct file_entry *entry)
{
	struct stat st;

	if (entry->type != DT_UNKNOWN)
		return entry->type == DT_DIR   ? MARK_FOLDER
		       : entry->type == DT_REG ? MARK_FILE
					       : MARK_OTHER;
	if (fstatat(folder, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return MARK_OTHER;
	return S_ISDIR(st.st_mode) ? MARK_FOLDER : S_ISREG(st.st_mode) ? MARK_FILE : MARK_OTHER;
}

static int tool_walk_read_names(int folder, struct tree_names *ret)
{
	struct file_entries entries = { .fd = folder };
	const struct file_entry *entry;

	*ret = (struct tree_names){ .bytes.max = TREE_MAX_NAMES };
	while ((entry = file_next_entry(&entries))) {
		if (str_eq(entry->name, ".") || str_eq(entry->name, ".."))
			continue;
		buf_putc(&ret->bytes, (char)mark_of(folder, entry));
		buf_add(&ret->bytes, entry->name, strlen(entry->name) + 1);
	}
	if (entries.failure || ret->bytes.failed)
		return entries.failure ? -entries.failure : -ENOMEM;
	ret->sorted = tree_sort_texts(buf_text(&ret->bytes), ret->bytes.len, &ret->count);
	return ret->sorted ? 0 : -ENOMEM;
}

static bool walk_level(struct level *l, int *ret);

/* Its files are not such that one could search them; some have no end. */
static bool is_of_kernel(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && (fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC);
}

static bool walk_enter(struct level *above, const char *name)
{
	struct level l = { above->w, above->path, -1, above->depth + 1, 0 };
	own_fd int fd = -1;
	struct stat st;
	bool goes_on;
	int r = 0;

	if (l.w->enters && !l.w->enters(l.w->of, buf_text(l.path)))
		return true;
	if (!l.w->enters_git && str_eq(name, ".git")) {
		l.w->left_out++;
		return true;
	}
	if (l.depth < TREE_MAX_DEPTH)
		fd = tree_open_folder(above->fd, name);
	if (fd < 0 || fstat(fd, &st) < 0) {
		l.w->unread++;
		return true;
	}
	if (st.st_dev != above->dev && is_of_kernel(fd))
		return true;
	l.fd = fd;
	l.dev = st.st_dev;
	goes_on = walk_level(&l, &r);
	l.w->unread += r < 0;
	return goes_on;
}

static bool walk_name(struct level *l, const char *marked)
{
	size_t before = l->path->len;
	struct tool_entry entry = { .folder = l->fd,
		.name = marked + 1,
		.is_folder = *marked == MARK_FOLDER,
		.is_file = *marked == MARK_FILE };
	bool goes_on;

	buf_printf(l->path, "%s%s", before ? "/" : "", marked + 1);
	entry.path = buf_text(l->path);
	goes_on = l->w->visit(l->w->of, &entry) && (!entry.is_folder || walk_enter(l, marked + 1));
	l->path->len = before;
	l->path->data[before] = '\0';
	return goes_on;
}

/* False: it was enough. */
static bool walk_level(struct level *l, int *ret)
{
	struct tree_names names;
	bool goes_on = true;

	*ret = tool_walk_read_names(l->fd, &names);
	for (size_t i = 0; *ret == 0 && goes_on && i < names.count; i++)
		goes_on = walk_name(l, names.sorted[i]);
	tree_names_done(&names);
	return goes_on;
}

int tool_walk(int fd, struct tool_walk *w)
{
	own(buf) struct buf path = { .max = MAX_PATH };
	struct level top = { .w = w, .path = &path, .fd = fd };
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	top.dev = st.st_dev;
	walk_level(&top, &r);
	return r;
}
