/*
 * change_base - what changed texts were before a run, in one file.
 *
 * Runs as:     the operator: in the keeper when a run ends, in bawn diff and apply.
 * Enters with: the folder base/ of the run.
 * Leaves:      base/contents, or nothing where there is nothing to keep.
 * Must not:    believe the file: every number in it is compared with its size, and a content with
 *              its hash.
 */
#include "change/effects/change_base.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"

#define NAME  "contents"
#define FIRST "bawn-base-1\n"

/* Numbers have a fixed width, so that a row is found without reading the others. */
#define ROW_FORMAT   "%08zx %016" PRIx64 " %016" PRIx64 "\n"
#define ROW_SIZE     (8 + 1 + 16 + 1 + 16 + 1)
#define COUNT_FORMAT "%016zx\n"
#define COUNT_SIZE   (16 + 1)
#define WRITE_SIZE   ((size_t)256 << 10)

/* --- writing --- */

void change_base_init(struct change_base *b, int folder)
{
	*b = (struct change_base){ .folder = folder, .fd = -1 };
	buf_init(&b->pending, SIZE_MAX);
}

void change_base_done(struct change_base *b)
{
	buf_done(&b->pending);
	if (b->fd >= 0)
		close(take_fd(&b->fd));
}

static int base_flush(struct change_base *b)
{
	int r = b->pending.failed ? -ENOMEM
				  : file_write_all(b->fd, buf_text(&b->pending), b->pending.len);

	b->pending.len = 0;
	return r;
}

static int base_append(struct change_base *b, const char *bytes, size_t n)
{
	buf_add(&b->pending, bytes, n);
	return b->pending.failed || b->pending.len >= WRITE_SIZE ? base_flush(b) : 0;
}

int change_base_add(struct change_base *b, const char *bytes, size_t n, uint64_t *ret_at)
{
	int r = 0;

	if (b->fd < 0) {
		r = b->fd = file_open_beneath(
			b->folder, NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
		if (r >= 0)
			r = base_append(b, FIRST, strlen(FIRST));
		b->size = strlen(FIRST);
	}
	*ret_at = b->size;
	b->size += n;
	return r < 0 ? r : base_append(b, bytes, n);
}

int change_base_name(struct change_base *b, const struct change_base_row *row)
{
	char text[ROW_SIZE + 1];

	snprintf(text, sizeof(text), ROW_FORMAT, row->index, row->at, row->size);
	return base_append(b, text, ROW_SIZE);
}

int change_base_finish(struct change_base *b, size_t rows)
{
	if (b->fd < 0)
		return 0;
	buf_printf(&b->pending, COUNT_FORMAT, rows);
	return base_flush(b);
}

/* --- reading --- */

/* Exactly n bytes. 0 or -errno; -EBADMSG: the file is shorter. */
static int base_read_at(int fd, uint64_t at, char *ret, size_t n)
{
	while (n) {
		ssize_t got = pread(fd, ret, n, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -EBADMSG;
		ret += got;
		at += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}

/* `width` digits and the byte that ends them. */
static bool base_parse(const char **text, int width, char end, uint64_t *ret)
{
	*ret = 0;
	for (int i = 0; i < width; i++) {
		/* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): it was read whole */
		char c = *(*text)++;

		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
			return false;
		*ret = *ret << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	return *(*text)++ == end;
}

static int base_read_row(int fd, uint64_t at, struct change_base_row *ret)
{
	char text[ROW_SIZE];
	const char *rest = text;
	uint64_t index;
	int r = base_read_at(fd, at, text, sizeof(text));

	if (r < 0)
		return r;
	if (!base_parse(&rest, 8, ' ', &index) || !base_parse(&rest, 16, ' ', &ret->at) ||
		!base_parse(&rest, 16, '\n', &ret->size))
		return -EBADMSG;
	ret->index = (size_t)index;
	return 0;
}

/* Where the table begins, and how many rows it has. */
static int base_find_table(int fd, uint64_t *ret_at, uint64_t *ret_rows)
{
	char text[COUNT_SIZE], first[sizeof(FIRST) - 1];
	const char *rest = text;
	struct stat st;
	uint64_t room;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)(sizeof(first) + COUNT_SIZE))
		return -EBADMSG;
	room = (uint64_t)st.st_size - COUNT_SIZE;
	r = base_read_at(fd, 0, first, sizeof(first));
	if (r == 0)
		r = base_read_at(fd, room, text, sizeof(text));
	if (r < 0)
		return r;
	if (memcmp(first, FIRST, sizeof(first)) != 0 || !base_parse(&rest, 16, '\n', ret_rows) ||
		*ret_rows > (room - sizeof(first)) / ROW_SIZE)
		return -EBADMSG;
	*ret_at = room - *ret_rows * ROW_SIZE;
	return 0;
}

/* The row of an effect. 0 or -errno; -ENOENT: it has none. */
static int base_find_row(int fd, size_t index, struct change_base_row *ret)
{
	uint64_t table = 0, first = 0, last = 0;
	int r = base_find_table(fd, &table, &last);

	while (r == 0 && first < last) {
		uint64_t middle = first + (last - first) / 2;

		r = base_read_row(fd, table + middle * ROW_SIZE, ret);
		if (r < 0)
			return r;
		if (ret->index == index)
			return ret->at <= table && ret->size <= table - ret->at ? 0 : -EBADMSG;
		if (ret->index < index)
			first = middle + 1;
		else
			last = middle;
	}
	return r < 0 ? r : -ENOENT;
}

/* As bawn kept it before there was one file for all. */
static int base_read_single(int folder, size_t index, size_t max, char **ret, size_t *ret_size)
{
	char name[32];
	own_fd int fd = -1;

	snprintf(name, sizeof(name), "%zu", index);
	fd = file_open_beneath(folder, name, O_RDONLY | O_NONBLOCK, 0);
	return fd < 0 ? fd : file_read_all(fd, max, ret, ret_size);
}

static int base_read_content(int fd, size_t index, size_t max, char **ret, size_t *ret_size)
{
	own_free char *bytes = NULL;
	struct change_base_row row;
	int r = base_find_row(fd, index, &row);

	if (r < 0)
		return r;
	if (row.size > max)
		return -EFBIG;
	bytes = malloc((size_t)row.size + 1);
	if (!bytes)
		return -ENOMEM;
	r = base_read_at(fd, row.at, bytes, (size_t)row.size);
	if (r < 0)
		return r;
	bytes[row.size] = '\0';
	*ret_size = (size_t)row.size;
	*ret = take_ptr(bytes);
	return 0;
}

int change_base_read(int folder, size_t index, const uint8_t hash[static SHA256_SIZE], size_t max,
	char **ret, size_t *ret_size)
{
	own_fd int fd = file_open_beneath(folder, NAME, O_RDONLY | O_NONBLOCK, 0);
	own_free char *bytes = NULL;
	uint8_t found[SHA256_SIZE];
	struct sha256 s;
	int r = fd;

	if (fd == -ENOENT)
		r = base_read_single(folder, index, max, &bytes, ret_size);
	else if (fd >= 0)
		r = base_read_content(fd, index, max, &bytes, ret_size);
	if (r < 0)
		return r;
	sha256_init(&s);
	sha256_add(&s, bytes, *ret_size);
	sha256_finish(&s, found);
	if (memcmp(found, hash, sizeof(found)) != 0)
		return -EBADMSG;
	*ret = take_ptr(bytes);
	return 0;
}
