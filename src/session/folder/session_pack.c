/*
 * session_pack - a workspace becomes one piece of bytes.
 *
 * Runs as:  a worker, when nothing runs in the session, or while processes that a command left
 *           behind still do.
 * Reads:    the layers, the home, and the files that say of which project they are. Their contents
 *           are a stranger's and may change meanwhile: a file that vanishes is left out.
 * Must not: follow a link, enter a mount, wait for anything, take more memory than is saved.
 *
 * The same workspace gives the same bytes: names and attributes are in order, and holes do not
 * depend on the file system. What its owner cannot read is made readable for a moment.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"
#include "base/own.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/tree.h"
#include "session/folder/session.h"
#include "session/folder/session_piece.h"
#include "session/store/store.h"

/* --- bytes --- */

static void piece_write_put(struct piece_writer *p, const void *bytes, size_t n)
{
	if (n > p->limit - p->out->len)
		p->is_full = true;
	else
		buf_add(p->out, bytes, n);
}

static void piece_write_print_number(uint64_t number, size_t size, uint8_t *ret)
{
	for (size_t i = 0; i < size; i++)
		ret[i] = (uint8_t)(number >> (8 * i));
}

void piece_put_number(struct piece_writer *p, uint64_t number, size_t size)
{
	uint8_t bytes[8];

	piece_write_print_number(number, size, bytes);
	piece_write_put(p, bytes, size);
}

void piece_put_text(struct piece_writer *p, const char *text)
{
	size_t n = strlen(text);

	piece_put_number(p, n, 2);
	piece_write_put(p, text, n + 1);
}

/* A number at a place where one was put before. */
static void piece_write_set_number(struct piece_writer *p, size_t at, uint64_t number, size_t size)
{
	if (!p->is_full && !p->out->failed)
		piece_write_print_number(number, size, (uint8_t *)p->out->data + at);
}

int piece_how_it_went(const struct piece_writer *p)
{
	return p->is_full ? -EFBIG : p->out->failed ? -ENOMEM : 0;
}

/* --- one entry --- */

void piece_put_head(
	struct piece_writer *p, enum piece_kind kind, const char *name, const struct stat *st)
{
	piece_put_number(p, kind, 1);
	piece_put_text(p, name);
	piece_put_number(p, (uint64_t)st->st_mtim.tv_sec, 8);
	piece_put_number(p, (uint64_t)st->st_mtim.tv_nsec, 4);
}

static int put_attribute(struct piece_writer *p, int fd, const char *name, unsigned *count)
{
	ssize_t n = fgetxattr(fd, name, p->bytes, sizeof(p->bytes));

	if (n < 0)
		return errno == ENODATA ? 0 : -errno;
	piece_put_text(p, name);
	piece_put_number(p, (uint64_t)n, 4);
	piece_write_put(p, p->bytes, (size_t)n);
	++*count;
	return 0;
}

static int piece_put_attributes(struct piece_writer *p, int fd)
{
	ssize_t n = flistxattr(fd, p->names, sizeof(p->names));
	own_free const char **sorted = NULL;
	size_t count = 0, at = p->out->len;
	unsigned kept = 0;
	int r = 0;

	if (n < 0 && errno != EOPNOTSUPP && errno != ENOSYS)
		return -errno;
	sorted = tree_sort_texts(p->names, n < 0 ? 0 : (size_t)n, &count);
	if (!sorted)
		return -ENOMEM;
	piece_put_number(p, 0, 2);
	for (size_t i = 0; r == 0 && i < count; i++)
		if (str_starts(sorted[i], "user.") && sorted[i][strlen("user.")])
			r = put_attribute(p, fd, sorted[i], &kept);
	piece_write_set_number(p, at, kept, 2);
	return r;
}

/* Returns the next block with data at or behind `at`; `size` if there is none. */
static off_t next_content(int fd, off_t at, off_t size)
{
	off_t data = lseek(fd, at, SEEK_DATA);

	if (data < 0 && errno == ENXIO)
		return size;
	/* Some file systems do not tell. */
	return data < at ? at : data - data % PIECE_BLOCK;
}

/* All of n bytes, or those to the end; how many, or -errno. */
static ssize_t piece_write_read_content(struct piece_writer *p, int fd, size_t n, off_t at)
{
	size_t len = 0;

	while (len < n) {
		ssize_t got = pread(fd, p->bytes + len, n - len, at + (off_t)len);

		if (got < 0 && errno != EINTR)
			return -errno;
		if (got == 0)
			break;
		len += got > 0 ? (size_t)got : 0;
	}
	return (ssize_t)len;
}

static bool piece_write_is_zero(const char *bytes, size_t n)
{
	return bytes[0] == '\0' && memcmp(bytes, bytes + 1, n - 1) == 0;
}

/* An extent that grows: where its size stands, and how much there is of it. */
struct extent {
	size_t at;
	uint64_t size;
};

static void end_extent(struct piece_writer *p, struct extent *x)
{
	if (x->size)
		piece_write_set_number(p, x->at, x->size, 8);
	x->size = 0;
}

static void put_blocks(struct piece_writer *p, struct extent *x, off_t offset, size_t n)
{
	for (size_t i = 0; i < n && !p->is_full; i += PIECE_BLOCK) {
		size_t size = n - i < PIECE_BLOCK ? n - i : PIECE_BLOCK;

		if (piece_write_is_zero(p->bytes + i, size)) {
			end_extent(p, x);
			continue;
		}
		if (!x->size) {
			x->at = p->out->len;
			piece_put_number(p, 0, 8);
			piece_put_number(p, (uint64_t)offset + i, 8);
		}
		piece_write_put(p, p->bytes + i, size);
		x->size += size;
	}
}

/* Writes the content of an open file as extents. Returns 0 or -errno. */
static int piece_put_content(struct piece_writer *p, int fd, off_t size)
{
	struct extent x = { 0 };
	off_t at = 0;

	piece_put_number(p, (uint64_t)size, 8);
	while (piece_how_it_went(p) == 0) {
		off_t start = next_content(fd, at, size);
		size_t want = sizeof(p->bytes);
		ssize_t n;

		if (start >= size)
			break;
		if (start > at)
			end_extent(p, &x);
		if (size - start < (off_t)want)
			want = (size_t)(size - start);
		n = piece_write_read_content(p, fd, want, start);
		if (n < 0)
			return (int)n;
		put_blocks(p, &x, start, (size_t)n);
		at = start + n;
		if ((size_t)n < want)
			break; /* it became shorter meanwhile */
	}
	end_extent(p, &x);
	piece_put_number(p, 0, 8);
	return 0;
}

/* --- the frame --- */

int piece_begin(struct piece_writer *p)
{
	p->limit = p->out->max < STORE_MAX_SAVED ? p->out->max : STORE_MAX_SAVED;
	if (p->out->len || p->limit < PIECE_HEAD_SIZE + PIECE_DIGEST_SIZE)
		return -EINVAL;
	p->limit -= PIECE_DIGEST_SIZE;
	piece_write_put(p, PIECE_MAGIC, PIECE_MAGIC_SIZE);
	piece_put_number(p, PIECE_VERSION, 4);
	piece_put_number(p, 0, 8);
	piece_put_number(p, 0, 8);
	return piece_how_it_went(p);
}

int piece_finish(struct piece_writer *p)
{
	uint8_t digest[SHA256_SIZE];
	struct sha256 s;

	if (piece_how_it_went(p) < 0)
		return piece_how_it_went(p);
	piece_write_set_number(p, PIECE_MAGIC_SIZE + 4, p->out->len - PIECE_HEAD_SIZE, 8);
	piece_write_set_number(p, PIECE_MAGIC_SIZE + 12, p->left_out, 8);
	sha256_init(&s);
	sha256_add(&s, p->out->data, p->out->len);
	sha256_finish(&s, digest);
	buf_add(p->out, digest, sizeof(digest));
	return piece_how_it_went(p);
}

/* --- the walk --- */

#define MOST_LOOKS 16

struct pack {
	unsigned depth;
	size_t names_size; /* of the folders that are open */
	struct tree_path path;
	struct piece_writer writer;
};

struct entry {
	int at; /* the folder it is in */
	const char *name;
	struct stat st;
};

/*
 * Opens a file or a folder, with its permissions changed if they are in the way: *ret_is_changed. A
 * folder that can be read may still not be one that can be entered.
 */
static int open_entry(const struct entry *x, bool *ret_is_changed)
{
	bool is_folder = S_ISDIR(x->st.st_mode);
	int flags = is_folder ? O_RDONLY | O_DIRECTORY : O_RDONLY | O_NONBLOCK | O_NOCTTY;
	mode_t needed = is_folder ? S_IRUSR | S_IXUSR : S_IRUSR;
	int fd = -EACCES;

	*ret_is_changed = false;
	if ((x->st.st_mode & needed) == needed || geteuid() == 0)
		fd = file_open_same_mount(x->at, x->name, flags);
	if (fd != -EACCES)
		return fd;
	if (fchmodat(x->at, x->name, (x->st.st_mode & 07777) | needed, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	*ret_is_changed = true;
	return file_open_same_mount(x->at, x->name, flags);
}

static int pack_folder(struct pack *p, int folder, bool is_layer, struct err *e);

static int pack_opened(struct pack *p, struct entry *x, int fd, bool is_layer, struct err *e)
{
	bool is_folder = S_ISDIR(x->st.st_mode);
	size_t before;
	int r;

	piece_put_head(&p->writer, is_folder ? PIECE_FOLDER : PIECE_FILE, x->name, &x->st);
	/* File capabilities and set-id bits are the owner's to grant, and the copy has another
	 * owner. */
	piece_put_number(&p->writer, x->st.st_mode & (is_folder ? 07777U : 01777U), 2);
	r = piece_put_attributes(&p->writer, fd);
	if (r == 0 && !is_folder)
		r = piece_put_content(&p->writer, fd, x->st.st_size);
	if (r < 0)
		return tree_fail(&p->path, x->name, -r, "read", e);
	if (!is_folder)
		return 0;
	if (p->depth == TREE_MAX_DEPTH)
		return tree_fail(&p->path, x->name, ELOOP, "save", e);
	before = tree_path_enter(&p->path, x->name);
	p->depth++;
	r = pack_folder(p, fd, is_layer, e);
	p->depth--;
	tree_path_leave(&p->path, before);
	return r;
}

static int pack_tree(struct pack *p, struct entry *x, bool is_layer, struct err *e)
{
	mode_t type = x->st.st_mode & S_IFMT, mode = x->st.st_mode & 07777;
	bool is_changed;
	own_fd int fd = open_entry(x, &is_changed);
	int r;

	if (fd == -ENOENT)
		return 0;
	/* The entry may have changed since it was read. */
	if (fd == -ENOTDIR || fd == -ELOOP)
		return -EAGAIN;
	if (fd < 0 || fstat(fd, &x->st) < 0)
		return tree_fail(&p->path, x->name, fd < 0 ? -fd : errno, "read", e);
	if ((x->st.st_mode & S_IFMT) != type)
		return -EAGAIN;
	if (is_changed && type == S_IFREG)
		fchmod(fd, mode);
	if (is_changed)
		x->st.st_mode = type | mode;
	r = pack_opened(p, x, fd, is_layer, e);
	if (is_changed && type == S_IFDIR)
		fchmod(fd, mode);
	return r;
}

static int pack_link(struct pack *p, const struct entry *x, struct err *e)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(x->at, x->name, target, sizeof(target));

	if (n < 0 && errno == ENOENT)
		return 0;
	if (n < 0 && errno == EINVAL)
		return -EAGAIN;
	if (n <= 0 || n == (ssize_t)sizeof(target))
		return tree_fail(&p->path, x->name, n < 0 ? errno : ENAMETOOLONG, "read", e);
	target[n] = '\0';
	piece_put_head(&p->writer, PIECE_LINK, x->name, &x->st);
	piece_put_text(&p->writer, target);
	return 0;
}

static int pack_entry(struct pack *p, struct entry *x, bool is_layer, struct err *e)
{
	if (S_ISREG(x->st.st_mode) || S_ISDIR(x->st.st_mode))
		return pack_tree(p, x, is_layer, e);
	if (S_ISLNK(x->st.st_mode))
		return pack_link(p, x, e);
	if (S_ISCHR(x->st.st_mode) && x->st.st_rdev == 0)
		piece_put_head(&p->writer, PIECE_WHITEOUT, x->name, &x->st);
	else
		p->writer.left_out++;
	return 0;
}

/* One that is replaced by another kind of thing, again and again, is looked at again. */
static int pack_name(struct pack *p, int at, const char *name, bool is_layer, struct err *e)
{
	struct entry x = { .at = at, .name = name };
	int r = -EAGAIN;

	for (int i = 0; r == -EAGAIN && i < MOST_LOOKS; i++)
		if (fstatat(at, name, &x.st, AT_SYMLINK_NOFOLLOW) == 0)
			r = pack_entry(p, &x, is_layer, e);
		else if (errno == ENOENT)
			return 0;
		else
			return tree_fail(&p->path, name, errno, "read", e);
	if (r == -EAGAIN)
		return tree_fail(&p->path, name, EBUSY, "read", e);
	return r < 0 ? r : piece_how_it_went(&p->writer);
}

static int pack_folder(struct pack *p, int folder, bool is_layer, struct err *e)
{
	own(tree_names) struct tree_names names = { 0 };
	int r = tree_names_read(folder, TREE_MAX_NAMES - p->names_size, &names);

	/* A folder that is gone has nothing in it. */
	if (r < 0 && r != -ENOENT)
		return tree_fail(&p->path, "", -r, "list", e);
	r = 0;
	p->names_size += names.bytes.len;
	for (size_t i = 0; r == 0 && i < names.count; i++)
		if (!is_layer || !str_eq(names.sorted[i], PIECE_WORK))
			r = pack_name(p, folder, names.sorted[i], false, e);
	p->names_size -= names.bytes.len;
	piece_put_number(&p->writer, PIECE_END, 1);
	return r < 0 ? r : piece_how_it_went(&p->writer);
}

/* --- the whole --- */

static int pack_parts(struct pack *p, int workspace, struct err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < PIECE_PART_COUNT; i++) {
		const struct piece_part *part = &piece_parts[i];
		size_t at = p->writer.out->len;

		r = pack_name(p, workspace, part->name, part->is_layer, e);
		/* An entry that cannot be unpacked need not be saved. */
		if (r == 0 && p->writer.out->len > at &&
			p->writer.out->data[at] != (char)part->kind)
			return tree_fail(&p->path, part->name, ESTALE, "save", e);
	}
	piece_put_number(&p->writer, PIECE_END, 1);
	return r < 0 ? r : piece_how_it_went(&p->writer);
}

static int pack_fail(int num, struct err *e)
{
	char most[NUM_TEXT_SIZE];

	num_print_size(STORE_MAX_SAVED, most);
	if (num == EFBIG)
		return err_hint(e,
			err_set(e, ERR_REFUSED, num,
				"cannot save the workspace: the writes to the project and the home "
				"take more than %s",
				most),
			"remove what is not needed, or let the workers share one root");
	return err_sys(e, num, "cannot save the workspace");
}

int session_pack(int workspace, struct buf *ret, struct err *e)
{
	struct pack p = { .writer.out = ret };
	struct err why = { 0 };
	int r = piece_begin(&p.writer);

	if (r == 0)
		r = pack_parts(&p, workspace, &why);
	if (r == 0)
		r = piece_finish(&p.writer);
	if (r == 0)
		return 0;
	ret->len = 0;
	if (!why.text[0])
		return pack_fail(-r, e);
	return err_set(e, ERR_SYS, -r, "cannot save the workspace: %s", why.text);
}
