/*
 * session_unpack - a saved workspace becomes a folder again.
 *
 * Runs as:  a worker that has taken the session, and has no workspace of it in its root.
 * Leaves:   the workspace, whole, under its number; or nothing.
 * Must not: make anything before the whole piece was found to be one; follow a link, or leave the
 *           folder: each entry is one name in a folder that was made here and is open.
 *
 * Everything belongs to who unpacks. Nobody else can come into the folder while it is made.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "session/folder/session.h"
#include "session/folder/session_inside.h"
#include "session/folder/session_piece.h"

#define DRAFT ".unpacked" /* after its number: one that is being made */

struct unpack {
	struct piece piece;
	struct tree_path path;
};

/* --- one entry --- */

static int set_attributes(struct piece_entry *x, int fd)
{
	struct piece_attribute a;

	while (piece_read_attribute(&x->attributes, &a))
		if (fsetxattr(fd, a.name, a.value, a.size, XATTR_CREATE) < 0)
			return -errno;
	return 0;
}

static int set_link_time(int at, const struct piece_entry *x)
{
	const struct timespec times[] = { x->mtime, x->mtime };

	return utimensat(at, x->name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* Everything that is not content: the mode last, as it may close what is open. */
static int unpack_finish(struct piece_entry *x, int fd)
{
	const struct timespec times[] = { x->mtime, x->mtime };
	int r = set_attributes(x, fd);

	if (r == 0 && (futimens(fd, times) < 0 || fchmod(fd, x->mode) < 0))
		r = -errno;
	return r;
}

static int unpack_write_at(int fd, const struct piece_extent *x)
{
	size_t done = 0;

	while (done < x->size) {
		ssize_t n = pwrite(fd, (const char *)x->bytes + done, x->size - done,
			(off_t)(x->offset + done));

		if (n < 0 && errno != EINTR)
			return -errno;
		done += n < 0 ? 0 : (size_t)n;
	}
	return 0;
}

static int unpack_make_file(int at, struct piece_entry *x)
{
	own_fd int fd =
		openat(at, x->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct piece_extent extent;
	int r = fd < 0 || ftruncate(fd, (off_t)x->size) < 0 ? -errno : 0;

	while (r == 0 && piece_read_extent(&x->extents, &extent))
		r = unpack_write_at(fd, &extent);
	return r == 0 ? unpack_finish(x, fd) : r;
}

static int make_link(int at, const struct piece_entry *x)
{
	return symlinkat(x->target, at, x->name) < 0 ? -errno : set_link_time(at, x);
}

static int make_whiteout(int at, const struct piece_entry *x)
{
	return mknodat(at, x->name, S_IFCHR, 0) < 0 ? -errno : set_link_time(at, x);
}

/* --- the walk --- */

static int unpack_folder(struct unpack *u, int folder, struct err *e);

static int unpack_make_folder(struct unpack *u, int at, struct piece_entry *x, struct err *e)
{
	own_fd int fd = -1;
	size_t before;
	int r;

	if (mkdirat(at, x->name, 0700) < 0)
		return tree_fail(&u->path, x->name, errno, "make", e);
	fd = tree_open_folder(at, x->name);
	if (fd < 0)
		return tree_fail(&u->path, x->name, -fd, "open", e);
	before = tree_path_enter(&u->path, x->name);
	r = unpack_folder(u, fd, e);
	tree_path_leave(&u->path, before);
	if (r < 0)
		return r;
	r = unpack_finish(x, fd);
	return r < 0 ? tree_fail(&u->path, x->name, -r, "make", e) : 0;
}

/* Until the folder ends. */
static int unpack_folder(struct unpack *u, int folder, struct err *e)
{
	struct piece_entry x;
	int r;

	for (;;) {
		/* It was read before, and has not changed. */
		if (!piece_read_entry(&u->piece, &x))
			return tree_fail(&u->path, "", EBADMSG, "make", e);
		if (x.kind == PIECE_END)
			return 0;
		if (x.kind == PIECE_FOLDER)
			r = unpack_make_folder(u, folder, &x, e);
		else if (x.kind == PIECE_FILE)
			r = unpack_make_file(folder, &x);
		else
			r = x.kind == PIECE_LINK ? make_link(folder, &x)
						 : make_whiteout(folder, &x);
		if (r < 0 && x.kind != PIECE_FOLDER)
			tree_fail(&u->path, x.name, -r, "make", e);
		if (r < 0)
			return r;
	}
}

/* --- the workspace --- */

static int make_lock(int workspace)
{
	own_fd int fd = openat(workspace, SESSION_LOCK,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : file_write_all(fd, "", 0);
}

/* What a workspace has beside that; as session_make_folder makes it. */
static int complete(int workspace)
{
	if ((mkdirat(workspace, "home", 0700) < 0 && errno != EEXIST) ||
		mkdirat(workspace, "tmp", 0700) < 0 || fchmodat(workspace, "tmp", 01777, 0) < 0)
		return -errno;
	return make_lock(workspace);
}

static int unpack_fill(struct unpack *u, int workspaces, const char *draft, struct err *e)
{
	own_fd int workspace = -1;
	int r = mkdirat(workspaces, draft, 0700) < 0 ? -errno : 0;

	if (r == 0)
		r = workspace = file_open_same_mount(workspaces, draft, O_RDONLY | O_DIRECTORY);
	if (r < 0)
		return tree_fail(&u->path, draft, -r, "make", e);
	r = unpack_folder(u, workspace, e);
	if (r < 0)
		return r;
	r = complete(workspace);
	return r < 0 ? tree_fail(&u->path, draft, -r, "complete", e) : 0;
}

static int give_name(int workspaces, const char *draft, const char *name)
{
	if (renameat2(workspaces, draft, workspaces, name, RENAME_NOREPLACE) == 0)
		return 0;
	/* Where a file system does not know that: an empty folder in the way is all it replaces. */
	if (errno != EINVAL || renameat(workspaces, draft, workspaces, name) < 0)
		return -errno;
	return 0;
}

static int unpack_make_workspace(struct unpack *u, int workspaces, uint64_t number, struct err *e)
{
	char name[SESSION_NAME_SIZE], draft[SESSION_NAME_SIZE + sizeof(DRAFT)];
	struct stat st;
	int r;

	snprintf(name, sizeof(name), "%" PRIu64, number);
	snprintf(draft, sizeof(draft), "%s" DRAFT, name);
	if (fstatat(workspaces, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return tree_fail(&u->path, name, EEXIST, "make", e);
	/* What one left that was killed here. */
	r = tree_remove(workspaces, draft, e);
	if (r < 0)
		return r;
	r = unpack_fill(u, workspaces, draft, e);
	if (r == 0) {
		r = give_name(workspaces, draft, name);
		if (r < 0)
			tree_fail(&u->path, name, -r, "make", e);
	}
	if (r < 0)
		tree_remove(workspaces, draft, NULL);
	return r;
}

/* Opens a folder of ours, made first where it is missing. */
static int unpack_open_made(int at, const char *name,
	int (*again)(int at, const char *name, struct err *e), struct err *e)
{
	int fd = again(at, name, e);

	if (fd != -ENOENT)
		return fd;
	if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "cannot make '%s'", name);
	return again(at, name, e);
}

static int open_workspaces(int folder, const char *name, struct err *e)
{
	(void)name;
	return session_open_workspaces(folder, e);
}

int session_unpack(
	int root, const char *id, uint64_t workspace, const void *bytes, size_t n, struct err *e)
{
	struct unpack u = { 0 };
	own_fd int folder = -1, workspaces = -1;
	int r = piece_check(bytes, n, &u.piece, e);

	if (r < 0)
		return r;
	folder = unpack_open_made(root, id, session_open_folder, e);
	workspaces = folder < 0 ? folder : unpack_open_made(folder, "w", open_workspaces, e);
	r = workspaces < 0 ? workspaces : unpack_make_workspace(&u, workspaces, workspace, e);
	if (r < 0) {
		/* Only where nothing is in them. */
		unlinkat(folder, "w", AT_REMOVEDIR);
		unlinkat(root, id, AT_REMOVEDIR);
		err_prefix(e, "cannot unpack workspace %" PRIu64 " of session %.*s", workspace,
			STORE_ID_SIZE - 1, id);
	}
	return r;
}
