/*
 * log_chain - one file of a chain: finds its end, and adds to it.
 *
 * Runs as:  whoever says what happened, and has locked the file's folder.
 * Must not: follow a link; leave a piece of a line where there is anything it can do about it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "proof/log/log_inside.h"

/* The last line, and a piece of another: most often both are in the first few. */
#define NEAR ((size_t)4096)
#define FAR  (2 * LOG_LINE_SIZE)

/* --- the end --- */

static ssize_t chain_read_at(int fd, char *ret, size_t n, off_t at)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = pread(fd, ret + got, n - got, at + (off_t)got);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			break;
		got += (size_t)r;
	}
	return (ssize_t)got;
}

static int take_tail(const char *line, size_t size, struct log_tail *ret)
{
	const char *prev;
	uint64_t seq;

	if (!log_split_line(line, size, &seq, &prev) || seq == UINT64_MAX)
		return -EBADMSG;
	ret->count = seq + 1;
	sha256_hex(line, size, ret->last);
	return 0;
}

/* The tail by the last `most` bytes: 0, -errno, or 1 where it begins before them. */
static int look_back(int fd, size_t size, size_t most, char *bytes, struct log_tail *ret)
{
	size_t start = size > most ? size - most : 0;
	ssize_t n = chain_read_at(fd, bytes, size - start, (off_t)start);
	const char *end, *before;
	const char *line = bytes;

	if (n < 0)
		return (int)n;
	end = memrchr(bytes, '\n', (size_t)n);
	if (!end && start)
		return 1;
	if (!end) {
		*ret = (struct log_tail){ 0 };
		memcpy(ret->last, log_no_line, sizeof(ret->last));
		return 0;
	}
	before = memrchr(bytes, '\n', (size_t)(end - bytes));
	if (!before && start)
		return 1;
	if (before)
		line = before + 1;
	ret->size = start + (size_t)(end - bytes) + 1;
	return take_tail(line, (size_t)(end - line), ret);
}

static int look_far_back(int fd, size_t size, struct log_tail *ret)
{
	char bytes[FAR];
	int r = look_back(fd, size, sizeof(bytes), bytes, ret);

	return r == 1 ? -EBADMSG : r;
}

static int find_tail(int fd, size_t size, struct log_tail *ret)
{
	char bytes[NEAR];
	int r = look_back(fd, size, sizeof(bytes), bytes, ret);

	return r == 1 ? look_far_back(fd, size, ret) : r;
}

int log_open_file(int folder, const char *name, struct log_tail *ret)
{
	own_fd int fd = -1;
	struct log_tail tail;
	struct stat st;
	int r;

	fd = openat(folder, name,
		O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
		return -EPERM; /* cppcheck-suppress resourceLeak */
	r = find_tail(fd, (size_t)st.st_size, &tail);
	if (r < 0)
		return r;
	if (tail.size < (uint64_t)st.st_size && ftruncate(fd, (off_t)tail.size) < 0)
		return -errno;
	*ret = tail;
	return take_fd(&fd);
}

/* --- adding --- */

/* One event as the next line. */
static void chain_add_line(struct buf *out, struct log_tail *tail, const char *event, size_t n)
{
	size_t start = out->len;

	buf_printf(out, "{\"seq\":%" PRIu64 ",", tail->count++);
	buf_add(out, event, n);
	buf_puts(out, ",\"prev\":\"");
	buf_puts(out, tail->last);
	buf_puts(out, "\"}");
	if (!out->failed)
		sha256_hex(out->data + start, out->len - start, tail->last);
	buf_putc(out, '\n');
}

int log_add(int fd, struct log_tail *tail, const struct buf *events, bool is_synced)
{
	own(buf) struct buf out = { .max = SIZE_MAX / 2 };
	const char *at = events->data, *end = at ? at + events->len : at;
	struct log_tail next = *tail;
	int r;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		chain_add_line(&out, &next, at, (size_t)(newline - at));
		at = newline + 1;
	}
	if (out.failed || events->failed)
		return -ENOMEM;
	r = file_write_all(fd, out.data, out.len);
	if (r == 0 && is_synced && fdatasync(fd) < 0)
		r = -errno;
	if (r < 0) {
		/* If this fails too, whoever comes next cuts the piece off. */
		(void)!ftruncate(fd, (off_t)tail->size);
		return r;
	}
	next.size += out.len;
	*tail = next;
	return 0;
}
