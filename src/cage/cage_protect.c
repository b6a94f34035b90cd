/*
 * cage_protect - a writable project in which some paths stay as they are.
 *
 * Runs as:     the first process, while the tree is built.
 * Enters with: a list of the keeper's: what is protected, what of it is missing, what leads there.
 * Leaves:      the project at its place, written to directly; a read-only mount on each protected
 *              path, and a mount on each folder that leads to one.
 * Must not:    create anything in the project, not even for a moment; mark the host's files.
 *
 * A mount needs a name to stand on, and a name that is missing must not be made on the host. So the
 * project is the upper layer of an overlay, which is where writes go, and below it is a folder of
 * the pool that has the missing names. Whoever wants to create one of them finds it taken. A mount
 * on each of them keeps the layer from being asked to remove it, and a mount on each folder on the
 * way keeps that from being moved away.
 *
 * Bind mounts on the project itself would hold only what is there, and only until the host replaces
 * it: then the kernel takes the mount away. Those on an overlay are out of its reach.
 *
 * The overlay is made without userxattr: marks of its own would be trusted attributes, which nobody
 * in a user namespace can set, and it goes on without. What it would need its work folder for never
 * happens here, so that is removed at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "cage/cage_inside.h"
#include "wire/wire.h"

#define LINK_SIZE 32

/* --- the names that are missing --- */

static int make_text(int dir, const char *name, const char *text)
{
	own_fd int fd =
		openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);

	return fd < 0 ? -errno : file_write_all(fd, text, strlen(text));
}

/* What stands for something that is missing, in the layer below. */
static int make_stand_in(
	struct cage *c, int below, const struct cage_protected *item, struct err *e)
{
	const char *name;
	own_fd int dir = -1;
	int r = 0;

	if (item->kind == CAGE_HELD_WAY || item->kind == CAGE_HELD_THERE)
		return 0;
	dir = cage_open_parent(c, below, item->path, &name, e);
	if (dir < 0)
		return dir;
	if (item->kind == CAGE_HELD_FILE)
		r = make_text(dir, name, item->text);
	else if (item->kind == CAGE_HELD_FOLDER)
		r = mkdirat(dir, name, 0555) < 0 ? -errno : 0;
	else
		r = mknodat(dir, name, S_IFSOCK | 0444, 0) < 0 ? -errno : 0;
	if (r < 0)
		return err_sys(e, -r, "cannot take the name '%s' in the cage", item->path);
	return 0;
}

static int make_below(struct cage *c, const struct cage_protect *h, const char *name, struct err *e)
{
	own_fd int below = cage_pool_folder(c, name, e);
	int r = below < 0 ? below : 0;

	for (size_t i = 0; r == 0 && i < h->count; i++)
		r = make_stand_in(c, below, &h->items[i], e);
	return r < 0 ? r : take_fd(&below);
}

/* --- the layer --- */

/* What root's keeper opened is in a tree that has to be in this mount namespace to be used. */
static int attach_host(
	struct cage *c, const struct cage_protect *h, const char *name, struct err *e)
{
	own_fd int folder = cage_pool_folder(c, name, e);

	return folder < 0 ? folder : cage_attach(h->work.tree, folder, name, e);
}

static int open_sides(
	struct cage *c, const struct plan_op *op, int *ret_project, int *ret_work, struct err *e)
{
	enum cage_layer which = cage_layer_of(op);
	const struct cage_protect *h = &c->start->protects[which];
	int r = 0;

	if (h->work.tree >= 0) {
		r = attach_host(c, h, which == CAGE_LAYER_GIT ? "git-host" : "host", e);
		*ret_project = fcntl(h->project_fd, F_DUPFD_CLOEXEC, 3);
		*ret_work = fcntl(h->work_fd, F_DUPFD_CLOEXEC, 3);
		return r;
	}
	r = *ret_project = cage_open_source(&c->start->sources[cage_op_index(c, op)], e);
	if (r >= 0)
		r = *ret_work = cage_open_source(&h->work, e);
	return r < 0 ? r : 0;
}

static int mount_layer(
	struct cage *c, int below, int project, int work, uint64_t attributes, struct err *e)
{
	/* By descriptor: what the host calls its folders does not matter, and is not shown. */
	char lower[LINK_SIZE], upper[LINK_SIZE], workdir[LINK_SIZE];
	const char *options[] = { "lowerdir", lower, "upperdir", upper, "workdir", workdir, "index",
		"off", NULL };
	int overlay;

	snprintf(lower, sizeof(lower), "proc/self/fd/%d", below);
	snprintf(upper, sizeof(upper), "proc/self/fd/%d", project);
	snprintf(workdir, sizeof(workdir), "proc/self/fd/%d", work);
	if (fchdir(c->root) < 0)
		return err_sys(e, errno, "cannot enter the cage's root");
	overlay = cage_new_mount("overlay", options, attributes, e);
	if (overlay < 0)
		err_prefix(e, "cannot protect paths of the project: its file system does not work "
			      "as a layer");
	return overlay;
}

/* For the keeper, which has it forget what it remembers of the host's names. */
static int protect_hand_over(const struct cage *c, int overlay, struct err *e)
{
	own_fd int view = fspick(overlay, "", FSPICK_EMPTY_PATH | FSPICK_CLOEXEC);
	int r = view < 0 ? -errno : wire_send_fd(c->channel, WIRE_VIEW, view);

	if (r < 0)
		return err_sys(e, -r, "cannot hand the project's layer over");
	return 0;
}

int cage_protect_project(
	struct cage *c, const struct plan_op *op, uint64_t attributes, struct err *e)
{
	enum cage_layer which = cage_layer_of(op);
	own_fd int project = -1, work = -1, below = -1, overlay = -1;
	int r = open_sides(c, op, &project, &work, e);

	if (r < 0)
		return r;
	below = make_below(
		c, &c->start->protects[which], which == CAGE_LAYER_GIT ? "git-held" : "held", e);
	if (below < 0)
		return below;
	overlay = mount_layer(c, below, project, work, attributes, e);
	if (overlay < 0)
		return overlay;
	if (unlinkat(work, "work", AT_REMOVEDIR) < 0)
		return err_sys(e, errno, "cannot remove the work folder of a layer");
	r = protect_hand_over(c, overlay, e);
	return r < 0 ? r : take_fd(&overlay);
}

/* --- the mounts on it --- */

static int protect_hold(
	struct cage *c, const char *top, const struct cage_protected *item, struct err *e)
{
	unsigned flags = PLAN_NO_DEV | (item->kind == CAGE_HELD_WAY ? 0 : PLAN_READ_ONLY);
	char path[CAGE_PATH_SIZE];
	own_fd int place = -1, tree = -1;

	if (snprintf(path, sizeof(path), "%s/%s", top, item->path) >= (int)sizeof(path))
		return err_set(e, ERR_SYS, ENAMETOOLONG,
			"cannot protect '%s': its path is too long", item->path);
	place = file_open_beneath(c->root, path + 1, O_PATH | O_NOFOLLOW, 0);
	if (place < 0)
		return err_sys(e, -place, "cannot protect '%s'", path);
	tree = cage_clone_tree(place, cage_restrictions(flags), e);
	return tree < 0 ? tree : cage_attach(tree, place, path, e);
}

int cage_protect_path(struct cage *c, const struct plan_op *op, struct err *e)
{
	enum cage_layer which = cage_layer_of(op);
	const struct cage_protect *h = &c->start->protects[which];
	const char *top = which == CAGE_LAYER_GIT ? c->start->git : c->place;
	int r = 0;

	for (size_t i = 0; r == 0 && i < h->count && !cage_is_broken("protect"); i++)
		if (h->items[i].op == cage_op_index(c, op))
			r = protect_hold(c, top, &h->items[i], e);
	return r;
}
