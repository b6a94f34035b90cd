/*
 * metrics_write - what is counted becomes a file, for who collects such.
 *
 * Runs as:  the operator, in a worker.
 * Writes:   the file that --metrics names, and beside it, for a moment, one with our number behind
 * it. Must not: put a file in the place of a device or a folder; show a half of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "session/metrics/metrics.h"

static int write_fail(const char *path, int num, struct err *e)
{
	return err_sys(e, num, "cannot write the metrics to '%s'", path);
}

int metrics_write(const struct metrics *m, const char *path, struct err *e)
{
	own(buf) struct buf out = { .max = METRICS_MAX_SIZE };
	char draft[PATH_MAX];
	own_fd int fd = -1;
	struct stat st;
	int r;

	metrics_print(m, &out);
	if (out.failed)
		return write_fail(path, ENOMEM, e);
	/* As root, a name such as /dev/null would be a plain file from then on. */
	if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return err_set(e, ERR_USE, EEXIST,
			"cannot write the metrics to '%s': it is there, and is not a plain file",
			path);
	if (snprintf(draft, sizeof(draft), "%s.%ld.tmp", path, (long)getpid()) >=
		(int)sizeof(draft))
		return write_fail(path, ENAMETOOLONG, e);
	/* One may be left of somebody with our number, who was killed. */
	unlink(draft);
	fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return write_fail(path, errno, e);
	r = file_write_all(fd, out.data, out.len);
	if (r == 0 && rename(draft, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(draft);
	return r < 0 ? write_fail(path, -r, e) : 0;
}
