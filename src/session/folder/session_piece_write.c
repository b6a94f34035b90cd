/*
 * session_piece_write - the parts that a saved workspace is made of, one behind the other.
 *
 * Runs as:  a worker.
 * Must not: take more memory than is saved.
 *
 * The same content gives the same bytes: attributes are in order, and what is a hole does not
 * depend on the file system.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/own.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/tree.h"
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

int piece_put_attributes(struct piece_writer *p, int fd)
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

/* Where the content goes on at or after `at`, at the beginning of a block; `size`: nowhere. */
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

int piece_put_content(struct piece_writer *p, int fd, off_t size)
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
