/*
 * change_visit - the folders of a copy, and the marks of an overlay on what is in them.
 *
 * Runs as:  the operator, after the run.
 * Must not: follow a link; leave a folder with another mode than it had.
 *
 * Folders are opened from the top, one at a time: no depth costs descriptors. What nobody may enter
 * is entered by giving its owner the right for that long.
 */
#include "change/copy/change_visit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

int change_finish_fail(const struct change_finish *f, const char *name, int num, const char *doing)
{
	size_t skip = f->path_size > 200 ? f->path_size - 200 : 0;

	return err_sys(f->e, num, "cannot find out what the run changed: %s '%s%s%s%s'", doing,
		skip ? "…" : "", f->path + skip, f->path_size && *name ? "/" : "", name);
}

/* --- folders --- */

static int open_visit(const struct change_finish *f, struct change_visit *v)
{
	v->fd = file_open_beneath(
		f->copy, f->path_size ? f->path : ".", O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);
	return v->fd < 0 ? change_finish_fail(f, "", -v->fd, "reading") : 0;
}

static void close_visit(struct change_visit *v)
{
	if (v->fd >= 0)
		close(v->fd);
	v->fd = -1;
}

int change_visit_give(struct change_visit *v)
{
	if (v->is_given || (v->mode & S_IWUSR && v->mode & S_IXUSR))
		return 0;
	v->is_given = true;
	return fchmod(v->fd, v->mode | S_IRWXU) < 0 ? -errno : 0;
}

/* The folder at f->path, from its opening to its mode. */
static int do_visit(struct change_finish *f, struct change_visit *v, change_walk *inside)
{
	int r = open_visit(f, v);

	if (r == 0) {
		r = tree_names_read(v->fd, TREE_MAX_NAMES - f->names_size, &v->names);
		f->names_size += v->names.bytes.len;
		r = r < 0 ? change_finish_fail(f, "", -r, "reading") : inside(f, v);
		f->names_size -= v->names.bytes.len;
		tree_names_done(&v->names);
	}
	if (v->fd >= 0 && v->is_given && fchmod(v->fd, v->mode) < 0 && r == 0)
		r = change_finish_fail(f, "", errno, "leaving");
	close_visit(v);
	return r;
}

int change_visit_top(struct change_finish *f, change_walk *inside)
{
	struct change_visit v = { .fd = -1, .mode = S_IRWXU };

	return do_visit(f, &v, inside);
}

int change_visit_folder(struct change_finish *f, struct change_visit *v, const char *name,
	mode_t mode, change_walk *inside)
{
	struct change_visit inner = { .fd = -1, .mode = mode & 07777 };
	size_t before = f->path_size, n = strlen(name);
	int r, again;

	if (before + 1 + n > CHANGE_MAX_PATH || f->depth == CHANGE_MAX_DEPTH)
		return change_finish_fail(f, name, ENAMETOOLONG, "entering");
	if (!(mode & S_IRUSR) || !(mode & S_IXUSR)) {
		inner.is_given = true;
		if (fchmodat(v->fd, name, inner.mode | S_IRWXU, AT_SYMLINK_NOFOLLOW) < 0)
			return change_finish_fail(f, name, errno, "entering");
	}
	close_visit(v);
	if (before)
		f->path[f->path_size++] = '/';
	memcpy(f->path + f->path_size, name, n + 1);
	f->path_size += n;
	f->depth++;
	r = do_visit(f, &inner, inside);
	f->depth--;
	f->path_size = before;
	f->path[before] = '\0';
	/* Also when it failed: the mode is to be put back. */
	again = open_visit(f, v);
	return r < 0 ? r : again;
}

/* --- marks --- */

static int change_attribute(const struct change_finish *f, const char *name, bool hides)
{
	int r = hides ? lsetxattr(f->entry, name, "y", 1, 0) : lremovexattr(f->entry, name);

	return r < 0 && errno != ENODATA ? -errno : 0;
}

/* It takes the right to write, which a file of our own may not give us. */
static int change_by_right(const struct change_finish *f, const struct change_visit *v,
	const char *name, const char *attribute, bool hides)
{
	int r = change_attribute(f, attribute, hides);
	struct stat st;

	if (r != -EACCES)
		return r;
	if (fstatat(v->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		fchmodat(v->fd, name, (st.st_mode & 07777) | S_IWUSR, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	r = change_attribute(f, attribute, hides);
	if (fchmodat(v->fd, name, st.st_mode & 07777, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return r;
}

/* An overlay lets nobody write these; in a copy the run could. */
static int remove_marks(struct change_finish *f, const struct change_visit *v, const char *name)
{
	ssize_t n = llistxattr(f->entry, f->attributes, sizeof(f->attributes));
	int r = n < 0 && errno != ENOTSUP && errno != ENOSYS ? -errno : 0;

	for (const char *a = f->attributes; r == 0 && a < f->attributes + n; a += strlen(a) + 1)
		if (str_starts(a, "user.overlay."))
			r = change_by_right(f, v, name, a, false);
	return r;
}

int change_finish_mark(
	struct change_finish *f, const struct change_visit *v, const char *name, bool hides)
{
	int n = snprintf(f->entry, sizeof(f->entry), "/proc/self/fd/%d/%s", v->fd, name);
	int r = n < 0 || n >= (int)sizeof(f->entry) ? -ENAMETOOLONG : remove_marks(f, v, name);

	if (r == 0 && hides)
		r = change_by_right(f, v, name, "user.overlay.opaque", true);
	return r < 0 ? change_finish_fail(f, name, -r, "marking") : 0;
}
