/*
 * tree_copy - one tree into another.
 *
 * Runs as:  the cage's first process, which loads a layer; the operator, who saves or captures one.
 * Must not: follow a link, allocate, change the source unless it is given up.
 *
 * Each file is complete before it gets its mode, and each folder before it gets its times.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"

struct copy {
	const struct tree_options *o;
	struct tree_counts *counts;
	unsigned depth;
	struct tree_path path;
	struct tree_counts uncounted; /* where the caller does not ask */
	char names[XATTR_LIST_MAX];   /* of attributes */
	char bytes[XATTR_SIZE_MAX];   /* a value, or content */
};

/* --- content --- */

static int copy_bytes(struct copy *c, int from, int to, off_t at, off_t end)
{
	while (at < end) {
		size_t want = sizeof(c->bytes);
		ssize_t n;

		if (end - at < (off_t)want)
			want = (size_t)(end - at);
		n = pread(from, c->bytes, want, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0; /* it became shorter meanwhile */
		for (ssize_t done = 0; done < n;) {
			ssize_t wrote = pwrite(to, c->bytes + done, (size_t)(n - done), at + done);

			if (wrote < 0 && errno != EINTR)
				return -errno;
			done += wrote < 0 ? 0 : wrote;
		}
		at += n;
	}
	return 0;
}

/* By the kernel, which may share what is on disk; by hand where it cannot. */
static int copy_range(struct copy *c, int from, int to, off_t at, off_t end)
{
	off_t in = at, out = at;

	while (in < end) {
		ssize_t n = copy_file_range(from, &in, to, &out, (size_t)(end - in), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO || errno == EFBIG))
			return -errno;
		if (n <= 0)
			return copy_bytes(c, from, to, in, end);
	}
	return 0;
}

static int copy_content(struct copy *c, int from, int to, off_t size)
{
	off_t at = 0;

	if (ftruncate(to, size) < 0)
		return -errno;
	while (at < size) {
		off_t start = lseek(from, at, SEEK_DATA), end;
		int r;

		if (start < 0 && errno == ENXIO)
			break; /* only a hole is left */
		if (start < 0)
			start = at; /* a file system that does not tell */
		end = lseek(from, start, SEEK_HOLE);
		if (end < 0 || end > size)
			end = size;
		if (start >= end)
			break;
		r = copy_range(c, from, to, start, end);
		if (r < 0)
			return r;
		c->counts->bytes += (uint64_t)(end - start);
		at = end;
	}
	return 0;
}

/* --- attributes --- */

static bool is_kept(const struct copy *c, const char *attribute)
{
	return str_starts(attribute, "user.") &&
	       !(c->o->is_plain && str_starts(attribute, "user.overlay."));
}

static int copy_attributes(struct copy *c, int from, int to)
{
	ssize_t n = flistxattr(from, c->names, sizeof(c->names));

	if (n < 0)
		return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -errno;
	for (const char *name = c->names; name < c->names + n; name += strlen(name) + 1) {
		ssize_t size;

		if (!is_kept(c, name))
			continue;
		size = fgetxattr(from, name, c->bytes, sizeof(c->bytes));
		if (size < 0 && errno == ENODATA)
			continue;
		if (size < 0 || fsetxattr(to, name, c->bytes, (size_t)size, 0) < 0)
			return -errno;
	}
	return 0;
}

/* What a file may do for whoever runs it is its owner's to say, and the copy has another one. */
static mode_t mode_of(const struct copy *c, const struct stat *st)
{
	mode_t mode = st->st_mode & 07777 & ~c->o->drops;

	if (c->o->drops_ids && S_ISREG(st->st_mode) && st->st_uid != geteuid())
		mode &= ~(mode_t)S_ISUID;
	if (c->o->drops_ids && S_ISREG(st->st_mode) && st->st_gid != getegid())
		mode &= ~(mode_t)S_ISGID;
	return mode;
}

/* Everything that is not content. */
static int finish(struct copy *c, int from, int to, const struct stat *st)
{
	const struct timespec times[] = { st->st_atim, st->st_mtim };
	mode_t mode = mode_of(c, st);
	int r = copy_attributes(c, from, to);

	if (c->o->opens_up)
		mode |= S_ISDIR(st->st_mode) ? S_IRWXU : S_IRUSR;
	if (r == 0 && (fchmod(to, mode) < 0 || futimens(to, times) < 0))
		r = -errno;
	return r;
}

/* --- one entry --- */

struct entry {
	int from, to; /* the folders it is in */
	const char *name;
	struct stat st;
};

/* Opens an entry of the source, and makes it readable first if need be and may be. */
static int open_source(const struct copy *c, const struct entry *x)
{
	bool is_folder = S_ISDIR(x->st.st_mode);
	int flags = is_folder ? O_RDONLY | O_DIRECTORY : O_RDONLY | O_NONBLOCK | O_NOCTTY;
	mode_t readable = x->st.st_mode | (is_folder ? S_IRWXU : S_IRUSR);
	int fd = -EACCES;

	/* A folder that can be read may still not be one that can be entered. */
	if (!c->o->opens_up || !is_folder || readable == x->st.st_mode)
		fd = file_open_name(x->from, x->name, flags);
	if (fd != -EACCES || !c->o->opens_up)
		return fd;
	if (fchmodat(x->from, x->name, readable & 07777, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return file_open_name(x->from, x->name, flags);
}

static void name_links(const struct stat *st, char ret[static 64])
{
	snprintf(ret, 64, "%" PRIx64 "-%" PRIx64, (uint64_t)st->st_dev, (uint64_t)st->st_ino);
}

/* One more name for a file that was copied before: 1 if there is one. */
static int find_linked(const struct copy *c, const struct entry *x)
{
	char known[64];

	if (c->o->links <= 0 || x->st.st_nlink < 2)
		return 0;
	name_links(&x->st, known);
	if (linkat(c->o->links, known, x->to, x->name, 0) == 0)
		return 1;
	if (errno == EMLINK)
		unlinkat(c->o->links, known, 0); /* the next names are those of another copy */
	else if (errno != ENOENT)
		return -errno;
	return 0;
}

static int remember_linked(const struct copy *c, const struct entry *x)
{
	char known[64];

	if (c->o->links <= 0 || x->st.st_nlink < 2)
		return 0;
	name_links(&x->st, known);
	return linkat(x->to, x->name, c->o->links, known, 0) < 0 ? -errno : 0;
}

static int copy_file(struct copy *c, struct entry *x, struct err *e)
{
	own_fd int from = -1, to = -1;
	int r = find_linked(c, x);

	if (r == 0) {
		from = open_source(c, x);
		r = from < 0 ? from : fstat(from, &x->st) < 0 ? -errno : 0;
		/* What it was a moment ago does not count. */
		if (r == 0 && !S_ISREG(x->st.st_mode))
			r = -ESTALE;
		if (r < 0)
			return tree_fail(&c->path, x->name, -r, "read", e);
		to = openat(
			x->to, x->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		r = to < 0 ? -errno : copy_content(c, from, to, x->st.st_size);
		if (r == 0)
			r = finish(c, from, to, &x->st);
		if (r == 0)
			r = remember_linked(c, x);
	}
	if (r < 0)
		return tree_fail(&c->path, x->name, -r, "copy", e);
	c->counts->files++;
	return 0;
}

static int set_link_times(const struct entry *x)
{
	const struct timespec times[] = { x->st.st_atim, x->st.st_mtim };

	return utimensat(x->to, x->name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int copy_link(struct copy *c, struct entry *x, struct err *e)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(x->from, x->name, target, sizeof(target));
	int r = n < 0 ? -errno : n == (ssize_t)sizeof(target) ? -ENAMETOOLONG : 0;

	if (r == 0) {
		target[n] = '\0';
		r = symlinkat(target, x->to, x->name) < 0 ? -errno : set_link_times(x);
	}
	if (r < 0)
		return tree_fail(&c->path, x->name, -r, "copy", e);
	c->counts->links++;
	return 0;
}

/* A pipe, or what a layer has where something below it is gone. */
static int copy_node(struct copy *c, struct entry *x, struct err *e)
{
	mode_t mode = (x->st.st_mode & S_IFMT) | (S_ISFIFO(x->st.st_mode) ? 0600 : 0);

	if (mknodat(x->to, x->name, mode, 0) < 0 || set_link_times(x) < 0)
		return tree_fail(&c->path, x->name, errno, "copy", e);
	/* It is new, and in a folder that nobody else uses yet. */
	if (S_ISFIFO(mode) && fchmodat(x->to, x->name, x->st.st_mode & 0777, 0) < 0)
		return tree_fail(&c->path, x->name, errno, "copy", e);
	c->counts->others++;
	return 0;
}

static int copy_folder(struct copy *c, int from, int to, struct err *e);

static int copy_subfolder(struct copy *c, struct entry *x, struct err *e)
{
	own_fd int from = -1, to = -1;
	size_t before;
	int r;

	if (c->depth == TREE_MAX_DEPTH)
		return tree_fail(&c->path, x->name, ELOOP, "copy", e);
	from = open_source(c, x);
	if (from < 0 || fstat(from, &x->st) < 0)
		return tree_fail(&c->path, x->name, from < 0 ? -from : errno, "read", e);
	if (mkdirat(x->to, x->name, 0700) < 0)
		return tree_fail(&c->path, x->name, errno, "copy", e);
	to = tree_open_folder(x->to, x->name);
	if (to < 0)
		return tree_fail(&c->path, x->name, -to, "copy", e);
	before = tree_path_enter(&c->path, x->name);
	c->depth++;
	r = copy_folder(c, from, to, e);
	c->depth--;
	tree_path_leave(&c->path, before);
	if (r < 0)
		return r;
	r = finish(c, from, to, &x->st);
	if (r < 0)
		return tree_fail(&c->path, x->name, -r, "copy", e);
	c->counts->folders++;
	return 0;
}

static int copy_entry(struct copy *c, struct entry *x, struct err *e)
{
	mode_t type;

	if (fstatat(x->from, x->name, &x->st, AT_SYMLINK_NOFOLLOW) < 0)
		return tree_fail(&c->path, x->name, errno, "look at", e);
	type = x->st.st_mode & S_IFMT;
	if (type == S_IFREG)
		return copy_file(c, x, e);
	if (type == S_IFDIR)
		return copy_subfolder(c, x, e);
	if (type == S_IFLNK)
		return copy_link(c, x, e);
	if (type == S_IFIFO || (type == S_IFCHR && x->st.st_rdev == 0 && !c->o->is_plain))
		return copy_node(c, x, e);
	c->counts->skipped++;
	return 0;
}

static int copy_folder(struct copy *c, int from, int to, struct err *e)
{
	struct file_entries entries = { .fd = from };
	const struct file_entry *entry;
	int r = 0;

	while (r == 0 && (entry = file_next_entry(&entries))) {
		struct entry x = { .from = from, .to = to, .name = entry->name };

		if (str_eq(entry->name, ".") || str_eq(entry->name, ".."))
			continue;
		r = copy_entry(c, &x, e);
		if (r == 0 && c->o->step)
			r = c->o->step(c->o->of);
	}
	if (r == 0 && entries.failure)
		return tree_fail(&c->path, "", entries.failure, "list", e);
	return r;
}

/* --- the whole --- */

static int forget_links(int links)
{
	own_fd int folder = tree_open_folder(links, ".");
	struct file_entries entries = { .fd = folder };
	const struct file_entry *entry;

	while (folder >= 0 && (entry = file_next_entry(&entries)))
		unlinkat(folder, entry->name, 0);
	return folder < 0 ? folder : -entries.failure;
}

int tree_copy(int from, int to, const struct tree_options *o, struct err *e)
{
	struct copy c = { .o = o, .depth = 1 };
	own_fd int source = tree_open_folder(from, "."), target = tree_open_folder(to, ".");
	struct stat st;
	int r;

	c.counts = o->counts ? o->counts : &c.uncounted;
	if (source < 0 || target < 0 || fstat(source, &st) < 0)
		return tree_fail(&c.path, ".",
			source < 0   ? -source
			: target < 0 ? -target
				     : errno,
			"open", e);
	r = copy_folder(&c, source, target, e);
	if (o->links > 0)
		forget_links(o->links);
	if (r != 0)
		return r;
	r = finish(&c, source, target, &st);
	return r < 0 ? tree_fail(&c.path, ".", -r, "copy", e) : 0;
}
