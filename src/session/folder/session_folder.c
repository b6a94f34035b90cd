/*
 * session_folder - the folder of one session: made, found, opened.
 *
 * Runs as:  the operator; a worker.
 * Leaves:   a folder that is whole, or none.
 * Must not: follow a link, or enter a mount, below the root.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "session/folder/session.h"
#include "session/folder/session_inside.h"

#define DRAFT       ".new" /* after its id: a folder that is being made */
#define DRAFT_AGE_S 3600
#define MOVED_TRIES 3

static int fail_make(const char *id, int num, struct err *e)
{
	return err_sys(e, num, "cannot make the folder of session %s", id);
}

/* --- making --- */

static int folder_write_file(int folder, const char *name, const char *text)
{
	own_fd int fd =
		openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : file_write_all(fd, text, strlen(text));
}

static int folder_make_workspace(int folder)
{
	own_fd int workspace = -1;

	if (mkdirat(folder, "w", 0700) < 0 || mkdirat(folder, "w/1", 0700) < 0)
		return -errno;
	workspace = file_open_same_mount(folder, "w/1", O_RDONLY | O_DIRECTORY);
	if (workspace < 0)
		return workspace;
	/* Whoever is in the cage finds /tmp as it is everywhere; nobody else comes this far. */
	if (mkdirat(workspace, "home", 0700) < 0 || mkdirat(workspace, "tmp", 0700) < 0 ||
		fchmodat(workspace, "tmp", 01777, 0) < 0)
		return -errno;
	return folder_write_file(workspace, SESSION_LOCK, "");
}

static int folder_fill(int root, const char *draft, const char *spec)
{
	own_fd int folder = file_open_same_mount(root, draft, O_RDONLY | O_DIRECTORY);
	int r = folder < 0 ? folder : folder_write_file(folder, SESSION_NEW, "");

	if (r == 0)
		r = folder_write_file(folder, "spec.json", spec);
	return r == 0 ? folder_make_workspace(folder) : r;
}

int session_make_folder(int root, const char *id, const char *spec, struct err *e)
{
	char draft[SESSION_NAME_SIZE];
	int r;

	if (!session_is_id(id, true))
		return fail_make("?", EINVAL, e);
	snprintf(draft, sizeof(draft), "%s" DRAFT, id);
	if (mkdirat(root, draft, 0700) < 0)
		return fail_make(id, errno, e);
	r = folder_fill(root, draft, spec);
	if (r == 0 && renameat2(root, draft, root, id, RENAME_NOREPLACE) < 0)
		r = -errno;
	/* Where a file system does not know that: an empty folder in the way is all it replaces. */
	if (r == -EINVAL)
		r = renameat(root, draft, root, id) < 0 ? -errno : 0;
	if (r == 0)
		return 0;
	tree_remove(root, draft, NULL);
	return fail_make(id, -r, e);
}

int session_confirm_folder(int root, const char *id, struct err *e)
{
	own_fd int folder = session_open_folder(root, id, e);

	if (folder < 0)
		return folder;
	if (unlinkat(folder, SESSION_NEW, 0) < 0 && errno != ENOENT)
		return fail_make(id, errno, e);
	return 0;
}

/* --- opening --- */

int session_open_folder(int root, const char *id, struct err *e)
{
	own_fd int fd = session_is_id(id, true)
				? file_open_same_mount(root, id, O_RDONLY | O_DIRECTORY)
				: -EINVAL;

	if (fd == -ENOENT)
		return -ENOENT;
	if (fd < 0)
		return err_set(e, ERR_SYS, -fd, "cannot open the folder of session %.*s: %s",
			STORE_ID_SIZE - 1, id,
			fd == -EXDEV ? "another file system is mounted there" : strerror(-fd));
	if (!session_is_ours(fd))
		return err_set(e, ERR_REFUSED, EPERM,
			"cannot use session %s: its folder is not yours, or others can write to it",
			id);
	return take_fd(&fd);
}

int session_open_workspaces(int folder, struct err *e)
{
	own_fd int fd = file_open_same_mount(folder, "w", O_RDONLY | O_DIRECTORY);

	if (fd < 0 && fd != -ENOENT)
		return err_sys(e, -fd, "cannot open the workspaces");
	return take_fd(&fd);
}

int session_open_workspace(int root, const char *id, uint64_t workspace, struct err *e)
{
	char path[SESSION_NAME_SIZE];
	own_fd int folder = session_open_folder(root, id, e), fd = -1;

	if (folder < 0)
		return folder == -ENOENT
			       ? err_set(e, ERR_REFUSED, ENOENT,
					 "cannot use session %s: its folder is not here", id)
			       : folder;
	snprintf(path, sizeof(path), "w/%" PRIu64, workspace);
	fd = file_open_same_mount(folder, path, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return err_set(e, fd == -ENOENT ? ERR_REFUSED : ERR_SYS, -fd,
			"cannot open workspace %" PRIu64 " of session %s: %s", workspace, id,
			strerror(-fd));
	if (!session_is_ours(fd))
		return err_set(e, ERR_REFUSED, EPERM,
			"cannot use workspace %" PRIu64
			" of session %s: it is not yours, or others can write to it",
			workspace, id);
	return take_fd(&fd);
}

uint64_t session_read_number(const char *name)
{
	struct err e = { 0 };
	int64_t number;

	if (name[0] == '0' || num_parse_int(name, 1, INT64_MAX, &number, &e) < 0)
		return 0;
	return (uint64_t)number;
}

uint64_t session_find_newest(int workspaces, uint64_t to, int *ret_failure)
{
	struct file_entries entries = { .fd = workspaces };
	const struct file_entry *entry;
	uint64_t newest = 0;

	*ret_failure = lseek(workspaces, 0, SEEK_SET) < 0 ? -errno : 0;
	while (*ret_failure == 0 && (entry = file_next_entry(&entries))) {
		uint64_t number = session_read_number(entry->name);

		if (number > newest && number < to)
			newest = number;
	}
	if (entries.failure)
		*ret_failure = -entries.failure;
	return newest;
}

/* One that was moved there, and the store does not say so; 0: there is none. */
static uint64_t find_moved(int root, const struct store_session *s)
{
	own_fd int folder = -1, workspaces = -1;
	char place[STORE_ID_SIZE];
	struct err e = { 0 };
	uint64_t newest = 0;
	int r = session_root_id(root, place, &e);

	if (r == 0 && str_eq(place, s->place))
		folder = session_open_folder(root, s->id, &e);
	if (folder >= 0)
		workspaces = session_open_workspaces(folder, &e);
	if (workspaces >= 0)
		newest = session_find_newest(workspaces, UINT64_MAX, &r);
	return r == 0 && newest > s->workspace ? newest : 0;
}

int session_open_present(int root, const struct store_session *s, struct err *e)
{
	int fd = session_open_workspace(root, s->id, s->workspace, e);

	/* It may be moved again while we look. */
	for (int i = 0; i < MOVED_TRIES && fd == -ENOENT; i++) {
		uint64_t moved = find_moved(root, s);

		if (moved)
			fd = session_open_workspace(root, s->id, moved, e);
	}
	if (fd >= 0 && e)
		*e = (struct err){ 0 };
	return fd;
}

int session_open_before(int root, const char *id, uint64_t *number, struct err *e)
{
	own_fd int folder = session_open_folder(root, id, e), workspaces = -1;
	uint64_t before = *number;
	int r = folder;

	*number = 0;
	if (r >= 0)
		r = workspaces = session_open_workspaces(folder, e);
	if (r < 0)
		return r;
	*number = session_find_newest(workspaces, before, &r);
	if (r < 0)
		return err_sys(e, -r, "cannot list the workspaces of session %s", id);
	return *number ? session_open_workspace(root, id, *number, e) : -ENOENT;
}

/* --- all of them --- */

static int64_t age_of(const struct stat *st)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec - st->st_mtim.tv_sec;
}

static void remove_draft(int root, const char *name, const struct stat *st)
{
	own_fd int folder = -1;

	if (age_of(st) < DRAFT_AGE_S)
		return;
	folder = file_open_same_mount(root, name, O_RDONLY | O_DIRECTORY);
	if (folder >= 0)
		session_remove_opened(root, name, folder, NULL);
}

int session_each_folder(
	int root, int (*see)(void *of, const struct session_folder *x), void *of, struct err *e)
{
	own_fd int again = file_open_name(root, ".", O_RDONLY | O_DIRECTORY);
	struct file_entries entries = { .fd = again, .failure = again < 0 ? -again : 0 };
	const struct file_entry *entry;
	struct stat st;
	int r = 0;

	while (again >= 0 && r == 0 && (entry = file_next_entry(&entries))) {
		struct session_folder x = { .id = entry->name };
		char path[SESSION_NAME_SIZE];

		if (fstatat(root, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (str_ends(entry->name, DRAFT))
			remove_draft(root, entry->name, &st);
		if (!S_ISDIR(st.st_mode) || !session_is_id(entry->name, true))
			continue;
		snprintf(path, sizeof(path), "%s/" SESSION_NEW, entry->name);
		x.is_new = fstatat(root, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
		x.age_s = age_of(&st);
		r = see(of, &x);
	}
	if (r == 0 && entries.failure)
		return err_sys(e, entries.failure, "cannot list the sessions' root");
	return r;
}
