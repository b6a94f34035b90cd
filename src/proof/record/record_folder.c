/*
 * record_folder - where the records of runs are kept.
 *
 * Runs as: the keeper; whoever looks at runs later.
 * Leaves:  a folder of its own for each run, below the operator's state, that nobody else can
 *          read; in it files that are whole.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/ids.h"
#include "base/own.h"
#include "base/str.h"
#include "proof/record/record.h"

#define RUNS "runs" /* in the state */

int record_find_state(const char *home, char ret[static PATH_MAX])
{
	const char *state = getenv("XDG_STATE_HOME");
	int n;

	if (state && state[0] == '/')
		n = snprintf(ret, PATH_MAX, "%s/bawn", state);
	else if (ids_user() == 0)
		n = snprintf(ret, PATH_MAX, "/var/lib/bawn");
	else if (home)
		n = snprintf(ret, PATH_MAX, "%s/.local/state/bawn", home);
	else
		return -ENOENT;
	return n >= 0 && n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* Opens a folder, and makes it and what leads to it where missing. */
static int open_path(char *path)
{
	int fd = file_open(path, O_RDONLY | O_DIRECTORY);

	if (fd != -ENOENT)
		return fd;
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		int r;

		*slash = '\0';
		r = mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
		*slash = '/';
		if (r < 0)
			return r;
	}
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	return file_open(path, O_RDONLY | O_DIRECTORY);
}

/* Nobody else may have put anything into it. */
static bool folder_is_ours(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_uid == ids_user() &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

static int folder_fail(const char *path, int num, struct err *e)
{
	return err_hint(e,
		err_set(e, ERR_REFUSED, num, "cannot keep a record in '%s': %s", path,
			strerror(num)),
		"set XDG_STATE_HOME to another place");
}

int record_open_state(const char *home, bool makes, struct err *e)
{
	char path[PATH_MAX];
	own_fd int state = -1;
	int r = record_find_state(home, path);

	if (r < 0)
		return err_hint(e,
			err_set(e, ERR_REFUSED, -r,
				"cannot keep a record: HOME and XDG_STATE_HOME are not set"),
			"set one of them");
	state = makes ? open_path(path) : file_open(path, O_RDONLY | O_DIRECTORY);
	if (state == -ENOENT && !makes)
		return -ENOENT;
	if (state < 0)
		return folder_fail(path, -state, e);
	if (!folder_is_ours(state))
		return err_hint(e,
			err_set(e, ERR_REFUSED, EPERM,
				"cannot use '%s': it is not yours, or others can write to it",
				path),
			"chmod go-w it, or set XDG_STATE_HOME to another place");
	return take_fd(&state);
}

static int fail_run(const char *run, int num, struct err *e)
{
	return err_hint(e,
		err_set(e, ERR_REFUSED, num, "cannot make a folder for run %s: %s", run,
			strerror(num)),
		"set XDG_STATE_HOME to another place");
}

int record_make_folder(int state, const char *run, struct err *e)
{
	own_fd int runs = file_open_name(state, RUNS, O_RDONLY | O_DIRECTORY), fd = -1;

	if (runs == -ENOENT)
		runs = mkdirat(state, RUNS, 0700) < 0 && errno != EEXIST
			       ? -errno
			       : file_open_name(state, RUNS, O_RDONLY | O_DIRECTORY);
	if (runs < 0)
		return fail_run(run, -runs, e);
	if (mkdirat(runs, run, 0700) < 0)
		return fail_run(run, errno, e);
	fd = file_open_name(runs, run, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return fail_run(run, -fd, e);
	/* Whoever comes to look sees by this that the run still lasts. */
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return fail_run(run, errno, e);
	return take_fd(&fd);
}

int record_open_runs(const char *home, struct err *e)
{
	own_fd int state = record_open_state(home, false, e), runs = -1;

	if (state < 0)
		return state;
	runs = file_open_name(state, RUNS, O_RDONLY | O_DIRECTORY);
	if (runs == -ENOENT)
		return -ENOENT;
	if (runs < 0)
		return err_sys(e, -runs, "cannot open the runs");
	return take_fd(&runs);
}

int record_open_folder(int runs, const char *run, struct err *e)
{
	own_fd int fd = file_open_name(runs, run, O_RDONLY | O_DIRECTORY);

	if (fd == -ENOENT)
		return err_hint(e, err_set(e, ERR_REFUSED, ENOENT, "cannot find run %s", run),
			"bawn record list shows the runs");
	if (fd < 0)
		return err_sys(e, -fd, "cannot open run %s", run);
	if (!folder_is_ours(fd))
		return err_set(e, ERR_REFUSED, EPERM,
			"cannot use run %s: its folder is not yours, or others can write to it",
			run);
	return take_fd(&fd);
}

int record_write_file(
	int folder, const char *name, const struct buf *text, bool is_synced, struct err *e)
{
	char draft[64];
	own_fd int fd = -1;
	int r;

	snprintf(draft, sizeof(draft), "%s.new", name);
	fd = openat(folder, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	/* One may be left of somebody who was killed; nobody else writes now. */
	if (fd < 0 && errno == EEXIST && unlinkat(folder, draft, 0) == 0)
		fd = openat(
			folder, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : text->failed ? -ENOMEM : file_write_all(fd, text->data, text->len);
	if (r == 0 && is_synced && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(folder, draft, folder, name) < 0)
		r = -errno;
	if (r == 0 && is_synced && fsync(folder) < 0)
		r = -errno;
	if (r == 0)
		return 0;
	unlinkat(folder, draft, 0);
	return err_sys(e, -r, "cannot write the run's %s", name);
}
