/*
 * tree_copy - copies a tree.
 *
 * Runs as:  the cage's first process, which loads a layer; the operator, who saves or captures one.
 * Must not: follow a symlink, allocate, change the source (except with opens_up).
 *
 * Each file is complete before it gets its mode, and each folder before it gets its times. Holes
 * stay holes and are never read.
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

/* --- content --- */

static int copy_bytes(int from, int to, off_t at, off_t end, struct tree_bytes *b)
{
	while (at < end) {
		size_t want = sizeof(b->content);
		ssize_t n;

		if (end - at < (off_t)want)
			want = (size_t)(end - at);
		n = pread(from, b->content, want, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0; /* it became shorter meanwhile */
		for (ssize_t done = 0; done < n;) {
			ssize_t wrote =
				pwrite(to, b->content + done, (size_t)(n - done), at + done);

			if (wrote < 0 && errno != EINTR)
				return -errno;
			done += wrote < 0 ? 0 : wrote;
		}
		at += n;
	}
	return 0;
}

/* Lets the kernel copy, which may share blocks on disk; copies by hand where it cannot. */
static int copy_range(int from, int to, off_t at, off_t end, struct tree_bytes *b)
{
	off_t in = at, out = at;

	while (in < end) {
		ssize_t n = copy_file_range(from, &in, to, &out, (size_t)(end - in), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO || errno == EFBIG))
			return -errno;
		if (n <= 0)
			return copy_bytes(from, to, in, end, b);
	}
	return 0;
}

/* Copies `size` bytes into an empty file; *ret_copied grows by those that are no hole. */
static int tree_copy_content(
	int from, int to, off_t size, struct tree_bytes *b, uint64_t *ret_copied)
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
		r = copy_range(from, to, start, end, b);
		if (r < 0)
			return r;
		*ret_copied += (uint64_t)(end - start);
		at = end;
	}
	return 0;
}

/* Returns the offset of the next data at or behind `at`; -1: there is none. */
static off_t tree_content_next_data(int fd, off_t at)
{
	off_t data = lseek(fd, at, SEEK_DATA);

	if (data < 0)
		return errno == ENXIO ? -1 : at; /* a file system that does not tell */
	return data;
}

static ssize_t tree_content_read_at(int fd, char *bytes, size_t size, off_t at)
{
	size_t len = 0;

	while (len < size) {
		ssize_t n = pread(fd, bytes + len, size - len, at + (off_t)len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

/* True if two files have the same bytes; false also if that is unknown. */
static bool tree_same_content(int one, int other, struct tree_bytes *b)
{
	off_t at = 0;

	for (;;) {
		off_t here = tree_content_next_data(one, at),
		      there = tree_content_next_data(other, at);
		ssize_t n;

		if (here < 0 && there < 0)
			return true;
		at = here < 0 || (there >= 0 && there < here) ? there : here;
		n = tree_content_read_at(one, b->content, sizeof(b->content), at);
		if (n < 0 || tree_content_read_at(other, b->other, sizeof(b->other), at) != n ||
			memcmp(b->content, b->other, (size_t)n) != 0)
			return false;
		if (n == 0)
			return true;
		at += n;
	}
}

struct copy {
	const struct tree_options *o;
	struct tree_counts *counts;
	unsigned depth;
	struct tree_path path;
	struct tree_counts uncounted; /* where the caller does not ask */
	struct tree_bytes bytes;
};

/* --- attributes --- */

static bool tree_copy_is_kept(const struct copy *c, const char *attribute)
{
	return str_starts(attribute, "user.") &&
	       !(c->o->is_plain && str_starts(attribute, "user.overlay."));
}

static int copy_attributes(struct copy *c, int from, int to)
{
	char *names = c->bytes.other, *value = c->bytes.content;
	ssize_t n = flistxattr(from, names, sizeof(c->bytes.other));

	if (n < 0)
		return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -errno;
	for (const char *name = names; name < names + n; name += strlen(name) + 1) {
		ssize_t size;

		if (!tree_copy_is_kept(c, name))
			continue;
		size = fgetxattr(from, name, value, sizeof(c->bytes.content));
		if (size < 0 && errno == ENODATA)
			continue;
		if (size < 0 || fsetxattr(to, name, value, (size_t)size, 0) < 0)
			return -errno;
	}
	return 0;
}

/* File capabilities are granted by the file's owner, and the copy has another owner. */
static mode_t mode_of(const struct copy *c, const struct stat *st)
{
	mode_t mode = st->st_mode & 07777 & ~c->o->drops;

	if (c->o->drops_ids && S_ISREG(st->st_mode) && st->st_uid != geteuid())
		mode &= ~(mode_t)S_ISUID;
	if (c->o->drops_ids && S_ISREG(st->st_mode) && st->st_gid != getegid())
		mode &= ~(mode_t)S_ISGID;
	if (c->o->opens_up)
		mode |= S_ISDIR(st->st_mode) ? S_IRWXU : S_IRUSR;
	return mode;
}

/* True if others_only leaves the entry out. */
static bool tree_copy_is_own(const struct copy *c, const struct stat *st)
{
	return c->o->others_only && st->st_uid == geteuid() && st->st_gid == c->o->group;
}

/* Unreadable entries are left out too. */
static int tree_copy_leave_out(
	struct copy *c, const char *name, int num, const char *verb, struct err *e)
{
	if (num != EACCES || !c->o->others_only)
		return tree_fail(&c->path, name, num, verb, e);
	c->counts->skipped++;
	return 0;
}

static int give_group(const struct copy *c, int at, const char *name)
{
	if (!c->o->others_only || fchownat(at, name, (uid_t)-1, c->o->group,
					  AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	return -errno;
}

/* Everything that is not content. */
static int tree_copy_finish(struct copy *c, int from, int to, const struct stat *st)
{
	const struct timespec times[] = { st->st_atim, st->st_mtim };
	int r = copy_attributes(c, from, to);

	/* Before the mode: a new group takes set-id bits away. */
	if (r == 0)
		r = give_group(c, to, "");
	if (r == 0 && (fchmod(to, mode_of(c, st)) < 0 || futimens(to, times) < 0))
		r = -errno;
	return r;
}

/* --- one entry --- */

struct entry {
	int from, to; /* the folders it is in */
	int older;    /* and was in; or -1 */
	const char *name;
	struct stat st;
};

/* Opens an entry of the source, and makes it readable first if need be and may be. */
static int tree_copy_open_source(const struct copy *c, const struct entry *x)
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
static int tree_copy_find_linked(const struct copy *c, const struct entry *x)
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

/* True if a file has, or may have, attributes that would be copied. */
static bool has_attributes(struct copy *c, int fd)
{
	ssize_t n = flistxattr(fd, c->bytes.other, sizeof(c->bytes.other));

	if (n < 0)
		return errno != EOPNOTSUPP && errno != ENOSYS;
	for (const char *name = c->bytes.other; name < c->bytes.other + n; name += strlen(name) + 1)
		if (tree_copy_is_kept(c, name))
			return true;
	return false;
}

/*
 * Does the older copy still say all there is to say? Times do not prove that: whoever wrote the
 * file can have set them. What has several names, or attributes, is not looked into: few have.
 */
static bool is_as_before(struct copy *c, const struct entry *x, int from)
{
	const struct timespec *now = &x->st.st_mtim;
	own_fd int old = -1;
	struct stat st;

	if (x->older < 0 || x->st.st_nlink != 1)
		return false;
	old = file_open_name(x->older, x->name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (old < 0 || fstat(old, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1)
		return false;
	return st.st_size == x->st.st_size && st.st_uid == geteuid() &&
	       (st.st_mode & 07777) == mode_of(c, &x->st) && st.st_mtim.tv_sec == now->tv_sec &&
	       st.st_mtim.tv_nsec == now->tv_nsec && !has_attributes(c, from) &&
	       !has_attributes(c, old) && tree_same_content(from, old, &c->bytes);
}

/* Makes the file anew, or one more name for what was made before. */
static int tree_copy_write_file(struct copy *c, const struct entry *x, int from)
{
	own_fd int to = -1;
	int r;

	if (is_as_before(c, x, from) && linkat(x->older, x->name, x->to, x->name, 0) == 0) {
		c->counts->reused++;
		return 0;
	}
	to = openat(x->to, x->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = to < 0 ? -errno
		   : tree_copy_content(from, to, x->st.st_size, &c->bytes, &c->counts->bytes);
	if (r == 0)
		r = tree_copy_finish(c, from, to, &x->st);
	return r == 0 ? remember_linked(c, x) : r;
}

static int copy_file(struct copy *c, struct entry *x, struct err *e)
{
	own_fd int from = -1;
	int r = tree_copy_find_linked(c, x);

	if (r == 0) {
		from = tree_copy_open_source(c, x);
		r = from < 0 ? from : fstat(from, &x->st) < 0 ? -errno : 0;
		/* The entry may have changed since it was read. */
		if (r == 0 && !S_ISREG(x->st.st_mode))
			r = -ESTALE;
		if (r < 0)
			return tree_copy_leave_out(c, x->name, -r, "read", e);
		r = tree_copy_write_file(c, x, from);
	}
	if (r < 0)
		return tree_fail(&c->path, x->name, -r, "copy", e);
	c->counts->files++;
	return 0;
}

/* Sets times and group of an entry without a descriptor. */
static int finish_name(const struct copy *c, const struct entry *x)
{
	const struct timespec times[] = { x->st.st_atim, x->st.st_mtim };

	if (utimensat(x->to, x->name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return give_group(c, x->to, x->name);
}

static int copy_link(struct copy *c, struct entry *x, struct err *e)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(x->from, x->name, target, sizeof(target));
	int r = n < 0 ? -errno : n == (ssize_t)sizeof(target) ? -ENAMETOOLONG : 0;

	if (r == 0) {
		target[n] = '\0';
		r = symlinkat(target, x->to, x->name) < 0 ? -errno : finish_name(c, x);
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
	int r = mknodat(x->to, x->name, mode, 0) < 0 ? -errno : finish_name(c, x);

	if (r < 0)
		return tree_fail(&c->path, x->name, -r, "copy", e);
	/* It is new, and in a folder that nobody else uses yet. */
	if (S_ISFIFO(mode) && fchmodat(x->to, x->name, x->st.st_mode & 0777, 0) < 0)
		return tree_fail(&c->path, x->name, errno, "copy", e);
	c->counts->others++;
	return 0;
}

static int copy_folder(struct copy *c, int from, int to, int older, struct err *e);

static int copy_subfolder(struct copy *c, struct entry *x, struct err *e)
{
	own_fd int from = -1, to = -1, older = -1;
	size_t before;
	int r;

	if (c->depth == TREE_MAX_DEPTH)
		return tree_fail(&c->path, x->name, ELOOP, "copy", e);
	from = tree_copy_open_source(c, x);
	if (from < 0 || fstat(from, &x->st) < 0)
		return tree_copy_leave_out(c, x->name, from < 0 ? -from : errno, "read", e);
	if (mkdirat(x->to, x->name, 0700) < 0)
		return tree_fail(&c->path, x->name, errno, "copy", e);
	to = tree_open_folder(x->to, x->name);
	if (to < 0)
		return tree_fail(&c->path, x->name, -to, "copy", e);
	older = x->older < 0 ? -1 : tree_open_folder(x->older, x->name);
	before = tree_path_enter(&c->path, x->name);
	c->depth++;
	r = copy_folder(c, from, to, older, e);
	c->depth--;
	tree_path_leave(&c->path, before);
	if (r < 0)
		return r;
	/* It stays only if it leads to something of others. */
	if (tree_copy_is_own(c, &x->st) && unlinkat(x->to, x->name, AT_REMOVEDIR) == 0)
		return 0;
	r = tree_copy_finish(c, from, to, &x->st);
	if (r < 0)
		return tree_fail(&c->path, x->name, -r, "copy", e);
	c->counts->folders++;
	return 0;
}

static int copy_entry(struct copy *c, struct entry *x, struct err *e)
{
	mode_t type;

	if (fstatat(x->from, x->name, &x->st, AT_SYMLINK_NOFOLLOW) < 0)
		return tree_copy_leave_out(c, x->name, errno, "read", e);
	type = x->st.st_mode & S_IFMT;
	if (type != S_IFDIR && tree_copy_is_own(c, &x->st))
		return 0;
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

static int copy_folder(struct copy *c, int from, int to, int older, struct err *e)
{
	struct file_entries entries = { .fd = from };
	const struct file_entry *entry;
	int r = 0;

	while (r == 0 && (entry = file_next_entry(&entries))) {
		struct entry x = { .from = from, .to = to, .older = older, .name = entry->name };

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
	r = copy_folder(&c, source, target, o->older > 0 ? o->older : -1, e);
	if (o->links > 0)
		forget_links(o->links);
	if (r != 0)
		return r;
	r = tree_copy_finish(&c, source, target, &st);
	return r < 0 ? tree_fail(&c.path, ".", -r, "copy", e) : 0;
}
