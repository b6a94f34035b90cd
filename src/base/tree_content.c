/*
 * tree_content - the bytes of one file: copied, compared. Holes stay holes, and take no time.
 *
 * Runs as:  the cage's first process; the operator.
 * Must not: allocate.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/tree.h"

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

/* By the kernel, which may share what is on disk; by hand where it cannot. */
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

int tree_copy_content(int from, int to, off_t size, struct tree_bytes *b, uint64_t *ret_copied)
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

/* Where the next content is at or after `at`; -1: there is none. */
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

bool tree_same_content(int one, int other, struct tree_bytes *b)
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
