/*
 * session_remove - takes a session's folder away.
 *
 * Runs as:  the operator; a worker.
 * Must not: go by a path, which could lead elsewhere meanwhile; leave the folder; remove anything
 *           while somebody is at work in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "session/folder/session.h"
#include "session/folder/session_inside.h"

#define MOST_LOCKED 16  /* workspaces; each is its own descriptor */
#define MOST_LOOKS  100 /* somebody who fills it all the time is not waited for */

/* Workspaces that nobody uses any more. */
struct locks {
	size_t count;
	int fds[MOST_LOCKED];
};

static void locks_done(const struct locks *l)
{
	for (size_t i = 0; i < l->count; i++)
		close(l->fds[i]);
}

int session_lock_workspace(int workspaces, const char *name)
{
	char path[SESSION_NAME_SIZE];
	own_fd int fd = -1;

	snprintf(path, sizeof(path), "%s/" SESSION_LOCK, name);
	fd = file_open_same_mount(workspaces, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return take_fd(&fd);
}

static int remove_lock_all(int folder, struct locks *ret, struct err *e)
{
	own_fd int workspaces = session_open_workspaces(folder, e);
	struct file_entries entries = { .fd = workspaces };
	const struct file_entry *entry;

	if (workspaces < 0)
		return workspaces == -ENOENT ? 0 : workspaces;
	while ((entry = file_next_entry(&entries))) {
		int fd = session_read_number(entry->name)
				 ? session_lock_workspace(workspaces, entry->name)
				 : -ENOENT;

		if (fd == -EBUSY)
			return err_set(e, ERR_REFUSED, EBUSY, "something is at work in it");
		/* What has no lock is used by nobody: somebody began to remove it. */
		if (fd == -ENOENT || fd == -ENOTDIR)
			continue;
		if (fd < 0)
			return err_set(e, ERR_SYS, -fd, "cannot lock its workspace %s: %s",
				entry->name,
				fd == -EXDEV ? "another file system is mounted there"
					     : strerror(-fd));
		if (ret->count == MOST_LOCKED) {
			close(fd);
			return err_set(
				e, ERR_SYS, E2BIG, "it has more than %d workspaces", MOST_LOCKED);
		}
		ret->fds[ret->count++] = fd;
	}
	return entries.failure ? err_sys(e, entries.failure, "cannot list its workspaces") : 0;
}

int session_remove_opened(int at, const char *name, int folder, struct err *e)
{
	struct tree_removal o = { .goes_on = true, .stays = true, .clears = true };
	struct err first = { 0 };
	int r = tree_empty(folder, &o, &first);

	for (int i = 0; r == 0 && i < MOST_LOOKS && unlinkat(at, name, AT_REMOVEDIR) < 0; i++) {
		if (errno == ENOENT)
			break;
		if (errno != ENOTEMPTY || i == MOST_LOOKS - 1)
			return err_sys(e, errno, "cannot remove '%s'", name);
		r = tree_empty(folder, &o, &first);
	}
	if (r < 0)
		return o.failed > 1 ? err_set(e, first.kind, first.num, "%s, and %" PRIu64 " more",
					      first.text, o.failed - 1)
				    : err_set(e, first.kind, first.num, "%s", first.text);
	return 0;
}

int session_remove_folder(int root, const char *id, struct err *e)
{
	own(locks) struct locks locks = { 0 };
	own_fd int folder = session_open_folder(root, id, e);
	int r;

	if (folder < 0)
		return folder == -ENOENT ? 0 : folder;
	r = remove_lock_all(folder, &locks, e);
	if (r == 0)
		r = session_remove_opened(root, id, folder, e);
	if (r < 0)
		err_prefix(e, "cannot remove the files of session %s", id);
	return r;
}
