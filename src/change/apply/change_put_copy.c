/*
 * change_put_copy - content of the layer, into a file of ours.
 *
 * Runs as:     the operator, in one of several threads.
 * Enters with: the layer, whose names and contents are a stranger's.
 * Leaves:      a file with exactly the bytes that were recorded when the run ended, or -EBADMSG.
 * Must not:    follow a link of the layer; believe it to be what it was.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/file.h"
#include "change/apply/change_put.h"
#include "change/scan/change_open.h"

#define PIECE (64 * 1024)

int change_put_open_layer(struct change_job *j, const char *path, int flags)
{
	int top = change_layer_of(j->q->git, j->q->layer, &path);
	int fd = file_open_beneath(top, path, flags, 0);

	if (fd == -EACCES) {
		struct change_right right;

		/* Rights are given to folders for a moment: one at a time. */
		pthread_mutex_lock(&j->rights);
		fd = change_open(top, path, flags, &right);
		change_right_done(&right);
		pthread_mutex_unlock(&j->rights);
	}
	return fd;
}

static void put_copy_add_zeros(struct sha256 *s, uint64_t n)
{
	static const uint8_t zeros[4096];

	for (; n > sizeof(zeros); n -= sizeof(zeros))
		sha256_add(s, zeros, sizeof(zeros));
	sha256_add(s, zeros, (size_t)n);
}

static int put_copy_write_at(int fd, const char *bytes, size_t n, off_t at)
{
	while (n) {
		ssize_t wrote = pwrite(fd, bytes, n, at);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0)
			return -errno;
		bytes += wrote;
		at += wrote;
		n -= (size_t)wrote;
	}
	return 0;
}

/* From `at` to `end`. 0 or -errno; -EBADMSG: it is shorter than it was. */
static int copy_data(struct sha256 *s, int from, int to, off_t at, off_t end)
{
	char bytes[PIECE] __attribute__((uninitialized));

	while (at < end) {
		size_t wanted =
			end - at < (off_t)sizeof(bytes) ? (size_t)(end - at) : sizeof(bytes);
		ssize_t n = pread(from, bytes, wanted, at);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG;
		sha256_add(s, bytes, (size_t)n);
		r = put_copy_write_at(to, bytes, (size_t)n, at);
		if (r < 0)
			return r;
		at += n;
	}
	return 0;
}

/* A file with holes, which stay holes. */
static int copy_sparse(struct sha256 *s, int from, int to, off_t size)
{
	for (off_t at = 0, data, hole; at < size; at = hole) {
		int r;

		data = lseek(from, at, SEEK_DATA);
		if (data < 0 && errno == EINVAL) /* not that kind of file system */
			return copy_data(s, from, to, at, size);
		if (data < 0 || data > size)
			data = size;
		hole = data < size ? lseek(from, data, SEEK_HOLE) : size;
		if (hole < 0 || hole > size)
			hole = size;
		put_copy_add_zeros(s, (uint64_t)(data - at));
		r = copy_data(s, from, to, data, hole);
		if (r < 0)
			return r;
	}
	return ftruncate(to, size) < 0 ? -errno : 0;
}

/* Shares the content, where the file system can. */
static bool clone_file(struct change_job *j, int from, int to)
{
	if (atomic_load(&j->has_no_clones))
		return false;
	if (ioctl(to, FICLONE, from) == 0)
		return true;
	atomic_store(&j->has_no_clones, true);
	return false;
}

int change_put_copy(struct change_job *j, int from, int to, const struct stat *st,
	const uint8_t hash[static SHA256_SIZE])
{
	bool is_sparse = st->st_blocks * 512 < st->st_size && st->st_size > PIECE;
	uint8_t found[SHA256_SIZE];
	struct sha256 s;
	int r;

	if (st->st_size && clone_file(j, from, to)) {
		r = sha256_file(to, found, NULL);
	} else {
		sha256_init(&s);
		r = is_sparse ? copy_sparse(&s, from, to, st->st_size)
			      : copy_data(&s, from, to, 0, st->st_size);
		sha256_finish(&s, found);
	}
	if (r < 0)
		return r;
	return memcmp(found, hash, SHA256_SIZE) == 0 ? 0 : -EBADMSG;
}
