/*
 * change_journal - which temporary files there may be in the tree, should we not live to remove
 * them.
 *
 * Runs as:     the operator, in one thread.
 * Enters with: the run's folder; the top of the tree.
 * Leaves:      apply.journal in the run's folder while there may be temporary files, none
 *              afterwards.
 * Must not:    remove anything from the tree but files of our own naming, and locks that are
 *              another name of the same file.
 *
 * For each of them two texts, ended by NUL: its path, and the name of git's lock beside it, or
 * nothing. It is on the disk before the first of them is made, so what a crash cut off its end was
 * not made either. The file is locked as long as its writer lives.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "change/apply/change_put.h"

#define NAME "apply.journal"

void change_journal_done(struct change_journal *w)
{
	buf_done(&w->text);
	if (w->fd >= 0)
		close(take_fd(&w->fd));
}

/* --- cleaning --- */

/* Is `name` the same file as `other`? Neither is followed. */
static bool journal_is_same_file(int dir, const char *name, const char *other)
{
	struct stat a, b;

	return fstatat(dir, name, &a, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstatat(dir, other, &b, AT_SYMLINK_NOFOLLOW) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* A lock is ours if it is the temporary file, or what that has become: NAME of NAME.lock. */
static void clean_lock(int dir, const char *temporary, const char *lock)
{
	char name[NAME_MAX + 1];
	size_t n = strlen(lock);

	if (!str_ends(lock, ".lock") || strchr(lock, '/') || n > NAME_MAX)
		return;
	snprintf(name, sizeof(name), "%.*s", (int)(n - strlen(".lock")), lock);
	if (journal_is_same_file(dir, lock, temporary) || journal_is_same_file(dir, lock, name))
		unlinkat(dir, lock, 0);
}

/* 0, or -errno where it is there and stays. */
static int clean_one(int below, const struct change_git_tops *git, const char *run,
	const char *path, const char *lock)
{
	const char *name = change_name_of(path);
	struct change_folder folder;
	char prefix[CHANGE_NAME_SIZE];
	int r = 0;

	snprintf(prefix, sizeof(prefix), CHANGE_TEMPORARY, run);
	if (!str_starts(name, prefix) &&
		!(str_starts(name, CHANGE_TEMPORARY_OBJECT) &&
			str_starts(name + strlen(CHANGE_TEMPORARY_OBJECT), prefix)))
		return 0;
	change_folder_open(&folder, below, git, path);
	if (folder.fd == -ENOENT || folder.fd == -ENOTDIR || folder.fd == -ELOOP)
		return 0; /* what it was in is gone, and it too */
	if (folder.fd < 0)
		return folder.fd;
	if (*lock)
		clean_lock(folder.fd, name, lock);
	if (unlinkat(folder.fd, name, 0) < 0)
		r = -errno;
	if (r == -EISDIR)
		r = unlinkat(folder.fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
	close(folder.fd);
	return r == -ENOENT ? 0 : r;
}

static int journal_clean(
	int fd, int below, const struct change_git_tops *git, const char *run, struct err *e)
{
	own_free char *text = NULL;
	size_t n = 0;
	int r = file_read_all(fd, CHANGE_MAX_MEMORY, &text, &n);

	if (r < 0)
		return err_sys(e, -r, "cannot read the journal of an interrupted apply");
	for (const char *path = text, *end = text + n, *lock; path < end;) {
		lock = memchr(path, '\0', (size_t)(end - path));
		if (!lock || ++lock == end || !memchr(lock, '\0', (size_t)(end - lock)))
			break;
		r = clean_one(below, git, run, path, lock);
		if (r < 0)
			return err_sys(e, -r,
				"cannot remove '%.200s', which an interrupted apply left", path);
		path = lock + strlen(lock) + 1;
	}
	return 0;
}

/* --- opening --- */

/* Is what we opened and locked still the journal, or has its owner just removed it? */
static bool is_current(int fd, int folder)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && fstatat(folder, NAME, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
	       a.st_ino == b.st_ino;
}

static int open_alone(int folder, int flags, struct err *e)
{
	for (;;) {
		own_fd int fd = openat(
			folder, NAME, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags, 0600);

		if (fd < 0 && errno == ENOENT)
			return -ENOENT;
		if (fd < 0)
			return err_sys(e, errno, "cannot open the run's " NAME "");
		if (flock(fd, LOCK_EX | LOCK_NB) < 0)
			return err_hint(e,
				err_set(e, ERR_REFUSED, EBUSY,
					"cannot change this run: another bawn is applying or "
					"discarding it"),
				"try again when it is done");
		if (is_current(fd, folder))
			return take_fd(&fd);
	}
}

int change_journal_open(struct change_journal *w, int folder, int below,
	const struct change_git_tops *git, const char *run, bool *ret_found, struct err *e)
{
	struct stat st;
	int r;

	buf_init(&w->text, CHANGE_MAX_MEMORY);
	*ret_found = false;
	w->fd = open_alone(folder, O_CREAT, e);
	if (w->fd < 0)
		return w->fd;
	if (fstat(w->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(
			e, ERR_SYS, EINVAL, "cannot use the run's " NAME ": it is not a file");
	*ret_found = st.st_size > 0;
	r = journal_clean(w->fd, below, git, run, e);
	if (r == 0 && (ftruncate(w->fd, 0) < 0 || lseek(w->fd, 0, SEEK_SET) < 0))
		r = err_sys(e, errno, "cannot write the run's " NAME "");
	return r;
}

int change_apply_clean(
	int folder, int below, const struct change_git_tops *git, const char *run, struct err *e)
{
	own_fd int fd = open_alone(folder, 0, e);
	int r;

	if (fd == -ENOENT)
		return 0;
	r = fd < 0 ? fd : journal_clean(fd, below, git, run, e);
	if (r == 0 && unlinkat(folder, NAME, 0) < 0)
		r = err_sys(e, errno, "cannot remove the run's " NAME "");
	return r;
}

/* --- writing --- */

void change_journal_add(
	struct change_journal *w, const char *path, const char *temporary, bool is_locked)
{
	const char *name = change_name_of(path);

	buf_add(&w->text, path, (size_t)(name - path));
	buf_add(&w->text, temporary, strlen(temporary) + 1);
	if (is_locked)
		buf_printf(&w->text, "%s.lock", name);
	buf_putc(&w->text, '\0');
}

int change_journal_begin(struct change_journal *w, int folder, struct err *e)
{
	int r = w->text.failed ? -ENOMEM : file_write_all(w->fd, w->text.data, w->text.len);

	if (r == 0 && (fsync(w->fd) < 0 || fsync(folder) < 0))
		r = -errno;
	buf_done(&w->text);
	if (r < 0)
		return err_sys(e, -r, "cannot write the run's " NAME "");
	return 0;
}

void change_journal_end(struct change_journal *w, int folder)
{
	unlinkat(folder, NAME, 0);
	change_journal_done(w);
}
