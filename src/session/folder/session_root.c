/*
 * session_root - the folder that all sessions' folders are in.
 *
 * Runs as:  the operator; a worker.
 * Leaves:   the root, where it was missing, and in it its id.
 * Must not: use a folder that somebody else could have prepared.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "session/folder/session.h"
#include "session/folder/session_inside.h"

bool session_is_ours(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

static int open_root(int state, const char *path)
{
	return path ? file_open(path, O_RDONLY | O_DIRECTORY)
		    : file_open_name(state, SESSION_ROOT, O_RDONLY | O_DIRECTORY);
}

int session_open_root(int state, bool makes, struct err *e)
{
	const char *path = getenv("BAWN_SANDBOX_ROOT");
	own_fd int root = -1;

	if (path && !path[0])
		path = NULL;
	if (path && path[0] != '/')
		return err_set(e, ERR_USE, EINVAL,
			"cannot use BAWN_SANDBOX_ROOT: '%.200s' is not an absolute path", path);
	root = path || state >= 0 ? open_root(state, path) : -ENOENT;
	if (root == -ENOENT && !makes)
		return -ENOENT;
	/* Only the last of its names is made: a tree that is not mounted would be made otherwise.
	 */
	if (root == -ENOENT) {
		if (mkdirat(state, path ? path : SESSION_ROOT, 0700) < 0 && errno != EEXIST)
			root = -errno;
		else
			root = open_root(state, path);
	}
	if (root < 0)
		return err_hint(e,
			err_set(e, ERR_REFUSED, -root, "cannot open the sessions' root '%s': %s",
				path ? path : SESSION_ROOT, strerror(-root)),
			"set BAWN_SANDBOX_ROOT to another place");
	if (!session_is_ours(root))
		return err_hint(e,
			err_set(e, ERR_REFUSED, EPERM,
				"cannot keep sessions in '%s': it is not yours, or others can "
				"write to it",
				path ? path : SESSION_ROOT),
			"set BAWN_SANDBOX_ROOT to another place");
	return take_fd(&root);
}

/* --- its id --- */

static int root_fail(int num, struct err *e)
{
	return err_sys(e, num, "cannot read the id of the sessions' root");
}

/* 0, -ENOENT, or another -errno. */
static int read_id(int root, char ret[static STORE_ID_SIZE])
{
	own_fd int fd = file_open_name(root, "id", O_RDONLY | O_NONBLOCK | O_NOCTTY);
	char text[STORE_ID_SIZE + 1];
	ssize_t n = fd < 0 ? fd : file_read_text(fd, text, sizeof(text));

	if (n < 0)
		return (int)n;
	text[strcspn(text, "\n")] = '\0';
	if (!session_is_id(text, true))
		return -EBADMSG;
	memcpy(ret, text, STORE_ID_SIZE);
	return 0;
}

/* Complete under a name of its own first, and then under the real one, unless that is taken. */
static int write_id(int root, struct err *e)
{
	char id[STORE_ID_SIZE], draft[STORE_ID_SIZE + 8], line[STORE_ID_SIZE + 1];
	own_fd int fd = -1;
	int r = session_make_id(id, e);

	if (r < 0)
		return r;
	snprintf(draft, sizeof(draft), "id.%s", id);
	fd = openat(root, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return root_fail(errno, e);
	snprintf(line, sizeof(line), "%s\n", id);
	r = file_write_all(fd, line, strlen(line));
	if (r == 0 && linkat(root, draft, root, "id", 0) < 0 && errno != EEXIST)
		r = -errno;
	unlinkat(root, draft, 0);
	return r < 0 ? root_fail(-r, e) : 0;
}

int session_root_id(int root, char ret[static STORE_ID_SIZE], struct err *e)
{
	int r = read_id(root, ret);

	if (r == -ENOENT) {
		r = write_id(root, e);
		if (r < 0)
			return r;
		r = read_id(root, ret);
	}
	return r < 0 ? root_fail(-r, e) : 0;
}
