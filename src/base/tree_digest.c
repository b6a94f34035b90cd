/*
 * tree_digest - one number for all that is in a tree; tree.h says of what.
 *
 * Runs as:  the operator.
 * Must not: follow a link, open anything but files and folders, change anything.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"

#define BLOCK 4096

struct digest {
	struct tree_hasher hasher;
	unsigned depth;
	size_t names_size; /* of the folders that are open */
	struct tree_path path;
};

static_assert(sizeof(((struct tree_hasher *)0)->names) >= XATTR_LIST_MAX, "all names fit");
static_assert(sizeof(((struct tree_hasher *)0)->bytes) >= XATTR_SIZE_MAX, "each value fits");

/* The line of an entry, which is hashed into its folder. */
struct line {
	struct stat st;
	char hash[SHA256_HEX_SIZE], attributes[SHA256_HEX_SIZE];
};

static void tree_digest_print_hash(struct sha256 *s, char ret[static SHA256_HEX_SIZE])
{
	uint8_t hash[SHA256_SIZE];

	sha256_finish(s, hash);
	sha256_print(hash, ret);
}

char tree_type_letter(const struct stat *st)
{
	static const struct {
		mode_t type;
		char letter;
	} types[] = { { S_IFREG, 'f' }, { S_IFDIR, 'd' }, { S_IFLNK, 'l' }, { S_IFIFO, 'p' },
		{ S_IFSOCK, 's' }, { S_IFCHR, 'c' }, { S_IFBLK, 'b' } };

	if (S_ISCHR(st->st_mode) && st->st_rdev == 0)
		return 'w';
	for (size_t i = 0; i < COUNT_OF(types); i++)
		if (types[i].type == (st->st_mode & S_IFMT))
			return types[i].letter;
	return '?';
}

static uint64_t size_of(const struct stat *st)
{
	if (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode))
		return st->st_rdev;
	return S_ISREG(st->st_mode) || S_ISLNK(st->st_mode) ? (uint64_t)st->st_size : 0;
}

static void tree_digest_add_line(struct sha256 *s, const struct line *l, const char *name)
{
	char head[256];
	int n = snprintf(head, sizeof(head), "%c %04o %" PRIu64 " %s %s ", tree_type_letter(&l->st),
		(unsigned)l->st.st_mode & 07777, size_of(&l->st), l->hash, l->attributes);

	sha256_add(s, head, (size_t)n);
	sha256_add(s, name, strlen(name) + 1);
}

/* --- what an entry consists of --- */

int tree_hash_attributes(struct tree_hasher *d, int fd, char ret[static SHA256_HEX_SIZE])
{
	ssize_t n = flistxattr(fd, d->names, sizeof(d->names));
	own_free const char **sorted = NULL;
	struct sha256 s;
	size_t count = 0;
	bool has_any = false;

	if (n < 0)
		return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -errno;
	sorted = tree_sort_texts(d->names, (size_t)n, &count);
	if (!sorted)
		return -ENOMEM;
	sha256_init(&s);
	for (size_t i = 0; i < count; i++) {
		ssize_t size;
		char text[32];

		if (!str_starts(sorted[i], "user."))
			continue;
		size = fgetxattr(fd, sorted[i], d->bytes, sizeof(d->bytes));
		if (size < 0)
			return -errno;
		has_any = true;
		sha256_add(&s, sorted[i], strlen(sorted[i]) + 1);
		sha256_add(&s, text, (size_t)snprintf(text, sizeof(text), "%zd ", size));
		sha256_add(&s, d->bytes, (size_t)size);
	}
	if (has_any)
		tree_digest_print_hash(&s, ret);
	return 0;
}

static bool tree_digest_is_zero(const char *bytes, size_t n)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, n - 1) == 0;
}

/* Tells how far it is. 0, or what ends it. */
static int tree_digest_tell(const struct tree_hasher *d, uint64_t bytes)
{
	if (d->options && d->options->counts)
		d->options->counts->bytes += bytes;
	return d->options && d->options->step ? d->options->step(d->options->of) : 0;
}

/* Reads whole blocks at an offset, as many as there are. Returns the size or -errno. */
static ssize_t read_blocks(struct tree_hasher *d, int fd, off_t at)
{
	size_t len = 0;

	while (len < sizeof(d->bytes)) {
		ssize_t n = pread(fd, d->bytes + len, sizeof(d->bytes) - len, at + (off_t)len);

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

/* A stranger can make a hole as long as he likes: it must not take time. */
int tree_hash_content(struct tree_hasher *d, int fd, char ret[static SHA256_HEX_SIZE])
{
	struct sha256 s;
	off_t at = 0;

	sha256_init(&s);
	for (;;) {
		off_t data = lseek(fd, at, SEEK_DATA);
		ssize_t n;
		int r;

		if (data < 0 && errno == ENXIO)
			break;
		if (data > at)
			at = data / BLOCK * BLOCK;
		n = read_blocks(d, fd, at);
		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
		for (ssize_t i = 0; i < n; i += BLOCK) {
			size_t size = n - i < BLOCK ? (size_t)(n - i) : BLOCK;
			char number[32];

			if (tree_digest_is_zero(d->bytes + i, size))
				continue;
			sha256_add(&s, number,
				(size_t)snprintf(number, sizeof(number), "%" PRIu64 " ",
					(uint64_t)(at + i) / BLOCK));
			sha256_add(&s, d->bytes + i, size);
		}
		at += n;
		r = tree_digest_tell(d, (uint64_t)n);
		if (r < 0)
			return r;
	}
	tree_digest_print_hash(&s, ret);
	return tree_digest_tell(d, 0);
}

int tree_hash_target(
	struct tree_hasher *d, int at, const char *name, char ret[static SHA256_HEX_SIZE])
{
	ssize_t n = readlinkat(at, name, d->bytes, sizeof(d->bytes));

	if (n < 0)
		return -errno;
	sha256_hex(d->bytes, (size_t)n, ret);
	return 0;
}

static int hash_folder(struct digest *d, int fd, char ret[static SHA256_HEX_SIZE], struct err *e);

static int hash_subfolder(
	struct digest *d, int fd, const char *name, char ret[static SHA256_HEX_SIZE], struct err *e)
{
	size_t before;
	int r;

	if (d->depth == TREE_MAX_DEPTH)
		return tree_fail(&d->path, name, ELOOP, "read", e);
	before = tree_path_enter(&d->path, name);
	d->depth++;
	r = hash_folder(d, fd, ret, e);
	d->depth--;
	tree_path_leave(&d->path, before);
	return r;
}

int tree_open_entry(const struct tree_hasher *d, int at, const char *name, bool is_folder)
{
	int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | (is_folder ? O_DIRECTORY : 0);

	if (d->options && d->options->stays)
		return file_open_same_mount(at, name, flags);
	return file_open_name(at, name, flags);
}

static int hash_entry(struct digest *d, int at, const char *name, struct line *l, struct err *e)
{
	own_fd int fd = -1;
	bool is_folder;
	int r = 0;

	*l = (struct line){ .hash = "-", .attributes = "-" };
	if (fstatat(at, name, &l->st, AT_SYMLINK_NOFOLLOW) < 0)
		return tree_fail(&d->path, name, errno, "read", e);
	tree_count(d->hasher.options ? d->hasher.options->counts : NULL, l->st.st_mode);
	is_folder = S_ISDIR(l->st.st_mode);
	if (S_ISREG(l->st.st_mode) || is_folder) {
		fd = tree_open_entry(&d->hasher, at, name, is_folder);
		r = fd < 0 ? fd : tree_hash_attributes(&d->hasher, fd, l->attributes);
	}
	if (r == 0 && is_folder)
		return hash_subfolder(d, fd, name, l->hash, e);
	if (r == 0 && fd >= 0)
		r = tree_hash_content(&d->hasher, fd, l->hash);
	if (S_ISLNK(l->st.st_mode))
		r = tree_hash_target(&d->hasher, at, name, l->hash);
	return r < 0 ? tree_fail(&d->path, name, -r, "read", e) : 0;
}

/* --- folders --- */

static int hash_folder(struct digest *d, int fd, char ret[static SHA256_HEX_SIZE], struct err *e)
{
	own(tree_names) struct tree_names names = { 0 };
	struct sha256 s;
	struct line l;
	int r = tree_names_read(fd, TREE_MAX_NAMES - d->names_size, &names);

	if (r < 0)
		return tree_fail(&d->path, "", -r, "list", e);
	d->names_size += names.bytes.len;
	sha256_init(&s);
	for (size_t i = 0; i < names.count; i++) {
		r = hash_entry(d, fd, names.sorted[i], &l, e);
		if (r < 0)
			return r;
		tree_digest_add_line(&s, &l, names.sorted[i]);
	}
	d->names_size -= names.bytes.len;
	tree_digest_print_hash(&s, ret);
	return 0;
}

int tree_digest(
	int fd, const struct tree_options *o, char ret[static SHA256_HEX_SIZE], struct err *e)
{
	struct digest d = { .hasher.options = o };
	struct sha256 s;
	struct line l;
	int r = hash_entry(&d, fd, ".", &l, e);

	if (r < 0)
		return r;
	sha256_init(&s);
	tree_digest_add_line(&s, &l, ".");
	tree_digest_print_hash(&s, ret);
	return 0;
}
