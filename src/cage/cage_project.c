/*
 * cage_project - the project as the cage sees it: read-only, captured or writable, whole or in
 * parts; and the folder of its git, where that is outside of it.
 *
 * Runs as:     the first process, while the tree is built.
 * Enters with: the root of the tree; the pool.
 * Leaves:      the project at its place with the planned rights, and each part with its own. In
 *              the pool, which has no name in the cage, the whole of it with all rights.
 * Must not:    create anything in the project on the host.
 *
 * Captured: an overlay above the project whose upper layer is in the run's folder, or in the pool;
 * the project below it is mounted read-only, so that no write can reach it by any way. Where that
 * cannot be, the keeper has put a copy in the place of the project.
 * Writable: the project itself, through the layer that cage_protect.c makes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "cage/cage_inside.h"

/* As an overlay: where it is captured by copying, the source is the copy. */
static bool is_captured(const struct plan_op *op)
{
	return op->flags & PLAN_CAPTURED && !(op->flags & PLAN_COPIED) &&
	       !cage_is_broken("project");
}

/* What the layers of a captured tree are called in the pool. */
struct names {
	enum cage_layer which;
	const char *layer;             /* of the run's folder */
	struct cage_layers kept, pool; /* there, or in the pool itself */
};

static const struct names project_names = { CAGE_LAYER_PROJECT, "layer",
	{ "lower", "layer/upper", "layer/work", .is_kept = true }, { "lower", "upper", "work" } };
static const struct names git_names = { CAGE_LAYER_GIT, "git-layer",
	{ "git-lower", "git-layer/upper", "git-layer/work", .is_kept = true },
	{ "git-lower", "git-upper", "git-work" } };

/* Puts the layer of the run's folder into the pool, where the overlay can name it. */
static int attach_layer(struct cage *c, const struct names *names, struct err *e)
{
	own_fd int tree = cage_tree_of(
		&c->start->layers[names->which], MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, e);
	own_fd int folder = tree < 0 ? -1 : cage_pool_folder(c, names->layer, e);

	if (tree < 0 || folder < 0)
		return tree < 0 ? tree : folder;
	return cage_attach(tree, folder, names->layer, e);
}

/*
 * Deletions of folders are marked by attributes, which a tmpfs has since Linux 6.6: without them
 * they would fail one by one.
 */
static int overlay_in_pool(
	struct cage *c, int tree, const struct names *names, uint64_t attributes, struct err *e)
{
	own_fd int overlay = cage_new_overlay(c, tree, &names->pool, attributes, e);
	own_fd int work = -1;

	if (overlay < 0)
		return overlay;
	work = file_open_beneath(c->pool, names->pool.work, O_RDONLY | O_DIRECTORY, 0);
	if (work < 0 || cage_is_broken("attributes") || fsetxattr(work, "user.bawn", "", 0, 0) < 0)
		return err_set(e, ERR_SYS, EOPNOTSUPP,
			"cannot capture the project in memory: tmpfs has no attributes on this "
			"kernel");
	return take_fd(&overlay);
}

/* The whole of the project or of its git, with the rights of its best part. */
static int whole_tree(
	struct cage *c, const struct plan_op *op, const struct names *names, struct err *e)
{
	uint64_t base = cage_restrictions(op->flags & ~(unsigned)PLAN_READ_ONLY);
	own_fd int tree = -1;
	int r;

	if (op->flags & PLAN_HELD && !cage_is_broken("protect"))
		return cage_protect_project(c, op, base, e);
	/* Another process has it mounted, and this is a clone for us. */
	if (op->flags & PLAN_SHARED && !c->start->share && !cage_is_broken("project"))
		return cage_tree_of(&c->start->layers[names->which], base, e);
	tree = cage_source_tree(c, op, is_captured(op) ? base | MOUNT_ATTR_RDONLY : base, e);
	if (tree >= 0 && op->flags & PLAN_VIEW && !cage_is_broken("project"))
		return cage_view_of(c, op, tree, e);
	if (tree < 0 || !is_captured(op))
		return tree < 0 ? tree : take_fd(&tree);
	if (!c->start->layers[names->which].path)
		return overlay_in_pool(c, tree, names, base, e);
	r = attach_layer(c, names, e);
	return r < 0 ? r : cage_new_overlay(c, tree, &names->kept, base, e);
}

int cage_capture(struct cage *c, const struct plan_op *op, struct err *e)
{
	return whole_tree(c, op, op->kind == PLAN_GIT ? &git_names : &project_names, e);
}

int cage_mount_git(struct cage *c, const struct plan_op *op, struct err *e)
{
	char path[CAGE_PATH_SIZE];
	own_fd int tree = -1, place = -1;
	int r;

	if (!cage_fill_in_place(c->start, op, path, sizeof(path)))
		return err_set(
			e, ERR_SYS, ENAMETOOLONG, "cannot show git's folder: its path is too long");
	tree = whole_tree(c, op, &git_names, e);
	r = tree < 0 ? tree : cage_restrict_tree(tree, cage_restrictions(op->flags), e);
	if (r < 0)
		return r;
	place = cage_open_place(c, c->root, path, true, e);
	return place < 0 ? place : cage_attach(tree, place, path, e);
}

/* What is seen where only parts are: their names, and nothing that can be written. */
static int empty_view(struct cage *c, const struct plan_op *op, struct err *e)
{
	const struct plan_op *end = plan_ops(c->start->plan) + c->start->plan->op_count;
	own_fd int view = cage_pool_folder(c, "view", e);

	if (view < 0)
		return view;
	for (const struct plan_op *part = op + 1; part < end && part->kind == PLAN_PART; part++) {
		own_fd int there = file_open_beneath(c->project, cage_b(c, part), O_PATH, 0);
		own_fd int made = -1;
		struct stat st;

		if (there < 0 || fstat(there, &st) < 0)
			continue; /* said when the part itself is mounted */
		made = cage_open_place(c, view, cage_b(c, part), S_ISDIR(st.st_mode), e);
		if (made < 0)
			return made;
	}
	return cage_clone_tree(view, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY, e);
}

int cage_mount_project(struct cage *c, const struct plan_op *op, struct err *e)
{
	own_fd int hidden = -1, place = -1, tree = -1;
	int r;

	if (!cage_fill_in_place(c->start, op, c->place, sizeof(c->place)))
		return err_set(
			e, ERR_SYS, ENAMETOOLONG, "cannot show the project: its path is too long");
	if (c->has_session)
		return cage_attach_late(c, op, CAGE_LAYER_PROJECT, c->place, e);
	c->project = whole_tree(c, op, &project_names, e);
	if (c->project < 0)
		return c->project;
	hidden = cage_pool_folder(c, "project", e);
	r = hidden < 0 ? hidden : cage_attach(c->project, hidden, "project", e);
	if (r == 0 && is_captured(op))
		r = cage_own(c, c->project, e);
	if (r < 0)
		return r;
	tree = op->flags & PLAN_PARTS
		       ? empty_view(c, op, e)
		       : cage_clone_tree(c->project, cage_restrictions(op->flags), e);
	if (tree < 0)
		return tree;
	place = cage_open_place(c, c->root, c->place, true, e);
	r = place < 0 ? place : cage_attach(tree, place, c->place, e);
	return r == 0 && op->flags & PLAN_COPIED ? cage_own_mount(c, tree, e) : r;
}

int cage_mount_part(struct cage *c, const struct plan_op *op, struct err *e)
{
	const char *inside = cage_b(c, op);
	char path[CAGE_PATH_SIZE];
	own_fd int source = file_open_beneath(c->project, inside, O_PATH, 0);
	own_fd int place = -1, tree = -1;
	struct stat st;

	if (source < 0 || fstat(source, &st) < 0)
		return err_sys(e, source < 0 ? -source : errno,
			"cannot open '%s' of the project, which has rights of its own", inside);
	if (snprintf(path, sizeof(path), "%s/%s", c->place, inside) >= (int)sizeof(path))
		return err_set(
			e, ERR_SYS, ENAMETOOLONG, "cannot show '%s': its path is too long", inside);
	tree = cage_clone_tree(source, cage_restrictions(op->flags | PLAN_NO_DEV), e);
	if (tree < 0)
		return tree;
	place = cage_open_place(c, c->root, path, S_ISDIR(st.st_mode), e);
	return place < 0 ? place : cage_attach(tree, place, path, e);
}
