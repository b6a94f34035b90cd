/*
 * change_put_folder - folders: those that things are put into, and those that are effects
 * themselves.
 *
 * Runs as:     the operator, in one thread.
 * Enters with: the top of the tree.
 * Leaves:      folders that were not there, with the mode and the attributes of the effect.
 * Must not:    follow a link or enter a mount; change a folder that is not the one it made or saw.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "change/apply/change_put.h"
#include "change/scan/change_open.h"

/* --- those that things are put into --- */

const char *change_name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

void change_folder_open(
	struct change_folder *f, int below, const struct change_git_tops *git, const char *path)
{
	const char *name = change_name_of(path), *from = path;
	int top = change_below_of(git, below, &from);
	char parent[CHANGE_MAX_PATH] __attribute__((uninitialized));
	size_t n = name == from ? 0 : (size_t)(name - from) - 1;
	struct stat st;

	*f = (struct change_folder){ .path = path, .fd = -ENAMETOOLONG };
	f->len = name == path ? 0 : (size_t)(name - path) - 1;
	if (n >= sizeof(parent))
		return;
	memcpy(parent, from, n);
	parent[n] = '\0';
	f->fd = file_open_same_mount(top, n ? parent : ".", O_PATH | O_DIRECTORY);
	if (f->fd < 0)
		return;
	if (fstat(f->fd, &st) < 0) {
		close(f->fd);
		f->fd = -EIO;
		return;
	}
	f->uid = st.st_uid;
	f->gid = st.st_gid;
	f->gives_group = st.st_mode & S_ISGID;
}

int change_job_sync(const struct change_job *j)
{
	const struct change_git_tops *git = j->q->git;

	return syncfs(j->q->below) < 0 || (git && syncfs(git->below) < 0) ? -errno : 0;
}

int change_folder_sync(const struct change_folder *f)
{
	own_fd int fd = openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* A folder we may write to and not read: then with all the others. */
	if (fd < 0)
		return -EACCES;
	return fsync(fd) < 0 ? -errno : 0;
}

/* --- those that are effects --- */

/* Would its mode keep us from putting things into it? */
static bool is_late(const struct change_effect *x)
{
	return (x->after.mode & 0300) != 0300;
}

static int put_folder_open_folder(const struct change_put *p, const char *name, struct stat *ret)
{
	own_fd int fd =
		file_open_same_mount(p->folder->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);

	if (fd < 0)
		return fd;
	if (fstat(fd, ret) < 0)
		return -errno;
	return take_fd(&fd);
}

/* What the effect says of it; what the host gives to its folders beyond stays. */
static int change(struct change_job *j, struct change_put *p, int fd, mode_t now)
{
	const mode_t special = S_ISUID | S_ISGID | S_ISVTX;
	int r = 0;

	/* Attributes first: the mode may forbid them. */
	if (p->x->attribute_count) {
		own_fd int layer =
			change_put_open_layer(j, p->x->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);

		r = layer < 0 ? layer : change_put_change_attributes(layer, fd, p->x);
	}
	if (r == 0 && fchmod(fd, (p->x->after.mode & 0777) | (now & special)) < 0)
		r = -errno;
	if (r == 0 && p->x->after.mode & ~now & special)
		change_put_note(p, "without its set-user-id, set-group-id and sticky bits");
	return r;
}

/* A new one, as it will be; only its owner's rights stay where they are needed. 0 or -errno. */
static int put_folder_prepare(struct change_job *j, struct change_put *p, const char *name)
{
	struct change_owner owner;
	own_fd int fd = -1;
	struct stat st;

	if (mkdirat(p->folder->fd, name, 0700) < 0)
		return -errno;
	fd = put_folder_open_folder(p, name, &st);
	if (fd < 0)
		return fd;
	/* Whoever owns the folder around could put another in its place: it would be given away. */
	if (st.st_uid != j->uid || (st.st_mode & 0777) != 0700)
		return -ESTALE;
	if (change_put_owner(j, p, &owner) && fchown(fd, owner.uid, owner.gid) < 0 &&
		(j->uid == 0 || errno != EPERM))
		return -errno;
	return is_late(p->x) ? 0 : change(j, p, fd, st.st_mode);
}

static int put_folder_make(struct change_job *j, struct change_put *p)
{
	char name[CHANGE_NAME_SIZE];
	int r;

	change_put_name(j, p, name);
	r = put_folder_prepare(j, p, name);
	if (r == 0 && p->step == CHANGE_STEP_ADD &&
		renameat2(p->folder->fd, name, p->folder->fd, p->name, RENAME_NOREPLACE) < 0)
		r = -errno;
	/* A file system that cannot: an empty folder gives way to another, and to nothing else. */
	if (r == -EINVAL && renameat(p->folder->fd, name, p->folder->fd, p->name) == 0)
		r = 0;
	if (r == 0 && p->step != CHANGE_STEP_ADD)
		r = change_put_is_still(p) ? change_put_exchange(p, name) : -ESTALE;
	if (r < 0)
		unlinkat(p->folder->fd, name, AT_REMOVEDIR);
	return r;
}

static void put_folder_settle(struct change_put *p, int r)
{
	if (r == 0) {
		p->verdict = CHANGE_APPLIED;
		p->step = CHANGE_STEP_NONE;
	} else if (r == -EBADMSG) {
		change_put_fail_layer(p, -r);
	} else if (r == -ESTALE || r == -EEXIST || r == -ENOTEMPTY || r == -ENOTDIR) {
		change_put_decide(p, CHANGE_CONFLICT, "the host changed it at this moment");
	} else {
		change_put_fail(p, -r, "cannot make the folder");
	}
}

void change_put_make_folder(struct change_job *j, struct change_put *p)
{
	int r;

	if (!change_put_see(p))
		return;
	if (S_ISDIR(p->seen.st_mode)) {
		if (p->x->before.type == CHANGE_FOLDER) {
			if (!is_late(p->x) || j->q->is_dry)
				change_put_finish_folder(j, p);
			return;
		}
		/* It may be one of ours that a call could not finish. */
		if (!is_late(p->x) || (p->seen.st_mode & 0777) != 0700)
			change_put_decide(p, CHANGE_THERE, "%s", "");
		return;
	}
	change_put_look(j, p);
	if (j->q->is_dry)
		change_put_foresee(j, p);
	if (p->step == CHANGE_STEP_NONE)
		return;
	r = put_folder_make(j, p);
	p->folder->has_changed |= r == 0;
	if (r < 0 || !is_late(p->x))
		put_folder_settle(p, r);
}

/* Decides whether an effect on a folder is still to be made. */
static bool may_change(const struct change_job *j, struct change_put *p, int fd, mode_t mode)
{
	const struct change_effect *x = p->x;

	if (x->before.type != CHANGE_FOLDER)
		return true; /* one of ours */
	if (mode == (x->after.mode & 0777)) {
		if (change_put_has_attributes(fd, x))
			change_put_decide(p, CHANGE_THERE, "%s", "");
	} else if (mode != (x->before.mode & 0777) && !j->q->is_forced) {
		change_put_decide(p, CHANGE_CONFLICT, "its mode changed on the host");
	}
	return p->verdict == CHANGE_UNDECIDED;
}

void change_put_finish_folder(struct change_job *j, struct change_put *p)
{
	struct stat st;
	own_fd int fd = put_folder_open_folder(p, p->name, &st);

	if (fd < 0 || st.st_ino != p->seen.st_ino)
		change_put_fail_host(p, fd < 0 ? -fd : ESTALE);
	else if (may_change(j, p, fd, st.st_mode & 0777))
		put_folder_settle(p, j->q->is_dry ? 0 : change(j, p, fd, st.st_mode));
}
