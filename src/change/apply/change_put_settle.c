/*
 * change_put_settle - what was written takes its place; what is to go, goes.
 *
 * Runs as:     the operator, in one of several threads.
 * Enters with: an open folder, a complete temporary file in it, what was seen under the name.
 * Leaves:      the name for the new file, whole; or for what was there, untouched.
 * Must not:    resolve a path; replace anything but what was seen; leave a lock behind.
 *
 * What git guards is guarded by its lock meanwhile, NAME.lock. The lock is another name of the
 * temporary file: so it is made complete or not at all, and after a crash it is known to be ours.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "change/apply/change_put.h"

#define LOCK_SIZE (NAME_MAX + sizeof(".lock"))

/* --- git's locks --- */

static void print_lock(const struct change_put *p, char ret[static LOCK_SIZE])
{
	snprintf(ret, LOCK_SIZE, "%.*s.lock", NAME_MAX, p->name);
}

void change_put_refuse_lock(struct change_put *p)
{
	change_put_decide(p, CHANGE_CONFLICT,
		"git is at work in this repository: '%.100s.lock' is there", p->name);
}

bool change_put_is_locked(const struct change_put *p)
{
	char lock[LOCK_SIZE];

	print_lock(p, lock);
	return p->git.is_locked && p->folder->fd >= 0 &&
	       faccessat(p->folder->fd, lock, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool change_put_lock(const struct change_job *j, struct change_put *p)
{
	char lock[LOCK_SIZE], name[CHANGE_NAME_SIZE];

	if (!p->git.is_locked)
		return true;
	print_lock(p, lock);
	change_put_name(j, p, name);
	if (linkat(p->folder->fd, name, p->folder->fd, lock, 0) == 0)
		p->has_lock = true;
	else if (errno == EEXIST)
		change_put_refuse_lock(p);
	else
		change_put_fail(p, errno, "cannot lock it as git does");
	return p->has_lock;
}

void change_put_drop(const struct change_job *j, struct change_put *p)
{
	char lock[LOCK_SIZE], name[CHANGE_NAME_SIZE];

	print_lock(p, lock);
	change_put_name(j, p, name);
	if (p->has_lock)
		unlinkat(p->folder->fd, lock, 0);
	if (p->has_temporary)
		unlinkat(p->folder->fd, name, 0);
	p->has_lock = p->has_temporary = false;
}

/* --- taking a place --- */

/* Where there is nothing; what appears there meanwhile stays. 0 or -errno. */
static int take_free_place(const struct change_put *p, const char *name)
{
	int dir = p->folder->fd;

	if (renameat2(dir, name, dir, p->name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* A file system that cannot: links do not replace anything either. */
	if (linkat(dir, name, dir, p->name, 0) < 0)
		return -errno;
	unlinkat(dir, name, 0);
	return 0;
}

static int put_settle_remove_name(const struct change_put *p, const char *name)
{
	int flags = S_ISDIR(p->seen.st_mode) ? AT_REMOVEDIR : 0;

	return unlinkat(p->folder->fd, name, flags) < 0 ? -errno : 0;
}

int change_put_exchange(struct change_put *p, const char *temporary)
{
	int dir = p->folder->fd, r;

	if (renameat2(dir, temporary, dir, p->name, RENAME_EXCHANGE) < 0) {
		if (errno != EINVAL && errno != ENOSYS)
			return -errno;
		r = put_settle_remove_name(p, p->name);
		if (r == 0 && renameat(dir, temporary, dir, p->name) < 0)
			r = -errno;
		return r;
	}
	r = change_put_is_under(p, temporary) ? put_settle_remove_name(p, temporary) : -ESTALE;
	if (r < 0)
		renameat2(dir, temporary, dir, p->name, RENAME_EXCHANGE);
	return r;
}

static int put_settle_take_place(struct change_put *p, const char *name)
{
	if (p->seen.st_mode == 0)
		return take_free_place(p, name);
	if (S_ISDIR(p->seen.st_mode))
		return change_put_exchange(p, name);
	return renameat(p->folder->fd, name, p->folder->fd, p->name) < 0 ? -errno : 0;
}

void change_put_settle(const struct change_job *j, struct change_put *p)
{
	enum change_verdict v = p->step == CHANGE_STEP_MERGE ? CHANGE_MERGED : CHANGE_APPLIED;
	char name[CHANGE_NAME_SIZE];
	/* Where there was nothing, the renaming itself takes care that there still is. */
	int r = p->seen.st_mode == 0 || change_put_is_still(p) ? 0 : -ESTALE;

	change_put_name(j, p, name);
	if (r == 0)
		r = put_settle_take_place(p, name);
	if (r == 0) {
		p->has_temporary = false;
		p->folder->has_changed = true;
		p->verdict = v;
		p->step = CHANGE_STEP_NONE;
	} else if (r == -ESTALE || r == -EEXIST) {
		change_put_decide(p, CHANGE_CONFLICT, "the host changed it at this moment");
	} else if (r == -ENOTEMPTY) {
		change_put_decide(
			p, CHANGE_CONFLICT, "the host has a folder there, and it is not empty");
	} else {
		change_put_fail(p, -r, "cannot put it in its place");
	}
	change_put_drop(j, p);
}

/* --- removing --- */

void change_put_remove(const struct change_job *j, struct change_put *p)
{
	int r = 0;

	if (p->step != CHANGE_STEP_REMOVE)
		return;
	if (p->git.is_locked && !S_ISDIR(p->seen.st_mode)) {
		r = change_put_touch(j, p);
		if (r < 0)
			change_put_fail(p, -r, "cannot lock it as git does");
		if (r < 0 || !change_put_lock(j, p)) {
			change_put_drop(j, p);
			return;
		}
	}
	r = change_put_is_still(p) ? put_settle_remove_name(p, p->name) : -ESTALE;
	if (r == 0 || r == -ENOENT) {
		p->folder->has_changed = true;
		p->verdict = CHANGE_APPLIED;
		p->step = CHANGE_STEP_NONE;
	} else if (r == -ESTALE) {
		change_put_decide(p, CHANGE_CONFLICT, "the host changed it at this moment");
	} else if (r == -ENOTEMPTY || r == -EEXIST) {
		change_put_decide(p, CHANGE_CONFLICT, "it is not empty");
	} else {
		change_put_fail(p, -r, "cannot remove it");
	}
	change_put_drop(j, p);
}

void change_put_remove_old(const struct change_job *j, struct change_put *p)
{
	struct change_folder folder = { .fd = -1 };
	struct change_put old = { .x = p->x,
		.index = p->index,
		.path = p->x->from,
		.folder = &folder,
		.git = change_git_place_of(p->x->from),
		.host = -1,
		.verdict = CHANGE_UNDECIDED };

	if (old.git.kind == CHANGE_GIT_OBJECT)
		return;
	/* Where the new name was free, what was compared is the old one's. */
	if (p->seen.st_mode == 0)
		old.old = p->old;
	change_folder_open(&folder, j->q->below, j->q->git, old.path);
	old.name = change_name_of(old.path);
	change_put_look_removal(j, &old);
	change_put_remove(j, &old);
	if (old.host >= 0)
		close(old.host);
	if (folder.has_changed && j->syncs_each)
		change_folder_sync(&folder);
	if (folder.fd >= 0)
		close(folder.fd);
	if (old.verdict == CHANGE_APPLIED || old.verdict == CHANGE_THERE)
		return;
	change_put_decide(p, old.verdict, "it has its new name, and the old one too: %s", old.why);
	p->error = old.error;
}
