/*
 * cage_project - the project in the cage: read-only, captured or writable, whole or in parts; its
 * git folder, where that is outside of it; and the trees that a session brings.
 *
 * Runs as:     the first process, while the tree is built.
 * Enters with: the root of the tree; the pool.
 * Leaves:      the project at its place with the planned rights, and each part with its own rights.
 *              With parts, the whole project with all rights is in the pool, which has no name in
 *              the cage.
 * Must not:    create anything in the project on the host.
 *
 * Captured: an overlay above the project whose upper layer is in the run's folder, or in the pool;
 * the project below it is mounted read-only, so that no write can reach it. Where that cannot work,
 * the source of the operation is a copy of the project.
 * Writable: the project itself, through the layer that protects paths.
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
#include "wire/wire.h"

/* --- what a session brings --- */

/* A standard stream of the run; a warm cage was made with none. */
static int take_stream(int stream, int fd, struct err *e)
{
	if (dup2(fd, stream) == stream)
		return 0;
	return err_sys(e, errno, "cannot pass standard input and output");
}

/*
 * The workspace holder sends the session's trees, detached, as descriptors. The finished root has
 * no way to the host, and the first process still has the capabilities to mount with. A warm cage
 * waits here until a run needs one.
 */
static int cage_await(struct cage *c, const struct plan_op *op, struct err *e)
{
	(void)op;
	if (wire_send(c->channel, WIRE_AWAITS, 0, NULL) < 0)
		_exit(125);
	for (;;) {
		struct wire_message m = { 0 };
		own_fd int tree = -1;

		/* EOF on the channel: the keeper has ended. */
		if (wire_receive(c->channel, &m, &tree) < 0)
			_exit(125);
		if (m.kind == WIRE_JOINED)
			break;
		if (m.kind == WIRE_STDIO && m.n >= 0 && m.n < 3 && tree >= 0) {
			int r = take_stream(m.n, tree, e);

			if (r < 0)
				return r;
			continue;
		}
		if (m.kind != WIRE_TREE || m.n < 0 || m.n >= CAGE_TREE_COUNT || tree < 0)
			return err_set(e, ERR_SYS, EPROTO,
				"cannot use the session's workspace: an unknown folder came from "
				"it");
		c->late[m.n] = take_fd(&tree);
	}
	c->has_session = true;
	return 0;
}

int cage_attach_late(
	struct cage *c, const struct plan_op *op, unsigned which, const char *path, struct err *e)
{
	int r;

	if (c->late[which] < 0)
		return err_set(e, ERR_SYS, ENOENT,
			"cannot use the session's workspace: '%s' did not come from it", path);
	r = cage_restrict_tree(c->late[which], cage_restrictions(op->flags), e);
	if (r < 0)
		return r;
	return cage_put(c, c->late[which], path, true, e);
}

/* --- protected paths --- */

/*
 * A writable project in which the protected paths cannot change. The keeper lists them, which of
 * them are missing, and the folders that lead to them. Each gets a mount, read-only if it is
 * protected itself. Nothing may be created in the project for that, not even for a moment, and the
 * host's files get no attributes.
 *
 * A mount needs an existing name, and a missing name must not be created on the host. So the
 * project is the upper layer of an overlay, which writes go to, and the lower layer is a folder of
 * the pool that has the missing names: creating one of them in the cage fails with EEXIST. The
 * mount on each of them prevents its removal, which would leave a whiteout in the project, and the
 * mount on each folder that leads to one prevents that folder's renaming.
 *
 * Bind mounts on the project itself could not protect missing names, and the kernel removes them
 * when the host replaces the file. It does not remove those on an overlay.
 *
 * The overlay is made without userxattr: its attributes would then be trusted ones, which a process
 * in a user namespace cannot set, and overlayfs works without them. It never uses its work folder
 * here, so that is removed at once.
 */
#define LINK_SIZE 32

static int make_text(int dir, const char *name, const char *text)
{
	own_fd int fd =
		openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);

	return fd < 0 ? -errno : file_write_all(fd, text, strlen(text));
}

/* Creates the stand-in for a missing path in the lower layer. */
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

/* The tree that root's keeper opened must be attached in this mount namespace to be used. */
static int attach_host(
	struct cage *c, const struct cage_protect *h, const char *name, struct err *e)
{
	return cage_put_in_pool(c, h->work.tree, name, e);
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
	r = *ret_project = cage_open_source(&c->start->sources[cage_op_index(c, op)], NULL, e);
	if (r >= 0)
		r = *ret_work = cage_open_source(&h->work, NULL, e);
	return r < 0 ? r : 0;
}

static int mount_layer(
	struct cage *c, int below, int project, int work, uint64_t attributes, struct err *e)
{
	/* By descriptor: mountinfo then shows no name of the host. */
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

/* For the keeper, which makes the overlay drop its cached names of the host. */
static int protect_hand_over(const struct cage *c, int overlay, struct err *e)
{
	own_fd int view = fspick(overlay, "", FSPICK_EMPTY_PATH | FSPICK_CLOEXEC);
	int r = view < 0 ? -errno : wire_send_fd(c->channel, WIRE_VIEW, view);

	if (r < 0)
		return err_sys(e, -r, "cannot hand the project's layer over");
	return 0;
}

static int cage_protect_project(
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

static int cage_protect_path(struct cage *c, const struct plan_op *op, struct err *e)
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

/* --- the tree as a whole --- */

/* True for capture by overlay; with capture by copying the source is the copy. */
static bool is_captured(const struct plan_op *op)
{
	return op->flags & PLAN_CAPTURED && !(op->flags & PLAN_COPIED) &&
	       !cage_is_broken("project");
}

/* The folders of a captured tree's layers in the pool. */
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

/* Attaches the layer of the run's folder in the pool, where the overlay can name it. */
static int attach_layer(struct cage *c, const struct names *names, struct err *e)
{
	cage_fd int tree = cage_tree_of(
		&c->start->layers[names->which], MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, NULL, e);

	return tree < 0 ? tree : cage_put_in_pool(c, tree, names->layer, e);
}

/*
 * Overlayfs marks deleted folders by attributes, which a tmpfs has since Linux 6.6. Without them
 * each deletion of a folder would fail.
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

/* The whole tree of the project or its git, with the rights of its least restricted part. */
static int whole_tree(
	struct cage *c, const struct plan_op *op, const struct names *names, struct err *e)
{
	uint64_t base = cage_restrictions(op->flags & ~(unsigned)PLAN_READ_ONLY);
	cage_fd int tree = -1;
	int r;

	if (op->flags & PLAN_PROTECTS && !cage_is_broken("protect"))
		return cage_protect_project(c, op, base, e);
	/* A clone from the workspace holder, which has it mounted. */
	if (op->flags & PLAN_SHARED && !c->start->share && !cage_is_broken("project"))
		return cage_tree_of(&c->start->layers[names->which], base, NULL, e);
	tree = cage_source_tree(c, op, is_captured(op) ? base | MOUNT_ATTR_RDONLY : base, NULL, e);
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

static int cage_mount_git(struct cage *c, const struct plan_op *op, struct err *e)
{
	char path[CAGE_PATH_SIZE];
	own_fd int tree = -1;
	int r;

	if (!cage_fill_in_place(c->start, op, path, sizeof(path)))
		return err_set(
			e, ERR_SYS, ENAMETOOLONG, "cannot show git's folder: its path is too long");
	tree = whole_tree(c, op, &git_names, e);
	r = tree < 0 ? tree : cage_restrict_tree(tree, cage_restrictions(op->flags), e);
	return r < 0 ? r : cage_put(c, tree, path, true, e);
}

/* A read-only tree that has only the names of the project's parts. */
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
			continue; /* mounting the part reports it */
		made = cage_open_place(c, view, cage_b(c, part), S_ISDIR(st.st_mode), e);
		if (made < 0)
			return made;
	}
	return cage_clone_tree(view, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY, e);
}

/* The whole stays in the pool, and what is seen of it is cloned from there. */
static int show_in_parts(struct cage *c, const struct plan_op *op, struct err *e)
{
	own_fd int tree = -1;
	int r = cage_put_in_pool(c, c->project, "project", e);

	if (r < 0)
		return r;
	tree = op->flags & PLAN_PARTS
		       ? empty_view(c, op, e)
		       : cage_clone_tree(c->project, cage_restrictions(op->flags), e);
	r = tree < 0 ? tree : cage_put(c, tree, c->place, true, e);
	return r == 0 && op->flags & PLAN_COPIED ? cage_own_mount(c, tree, e) : r;
}

static int show_whole(struct cage *c, const struct plan_op *op, struct err *e)
{
	uint64_t base = cage_restrictions(op->flags & ~(unsigned)PLAN_READ_ONLY);
	uint64_t wanted = cage_restrictions(op->flags);
	int r = wanted == base ? 0 : cage_restrict_tree(c->project, wanted, e);

	if (r == 0)
		r = cage_show(c, c->project, c->place, true, e);
	return r == 0 && op->flags & PLAN_COPIED ? cage_own_mount(c, c->project, e) : r;
}

static bool has_parts(const struct cage *c, const struct plan_op *op)
{
	const struct plan_op *end = plan_ops(c->start->plan) + c->start->plan->op_count;

	return op->flags & PLAN_PARTS || (op + 1 < end && op[1].kind == PLAN_PART);
}

static int cage_mount_project(struct cage *c, const struct plan_op *op, struct err *e)
{
	int r;

	if (!cage_fill_in_place(c->start, op, c->place, sizeof(c->place)))
		return err_set(
			e, ERR_SYS, ENAMETOOLONG, "cannot show the project: its path is too long");
	if (c->has_session)
		return cage_attach_late(c, op, CAGE_LAYER_PROJECT, c->place, e);
	c->project = whole_tree(c, op, &project_names, e);
	if (c->project < 0)
		return c->project;
	r = has_parts(c, op) ? show_in_parts(c, op, e) : show_whole(c, op, e);
	return r == 0 && is_captured(op) ? cage_own(c, c->project, e) : r;
}

static int cage_mount_part(struct cage *c, const struct plan_op *op, struct err *e)
{
	const char *inside = cage_b(c, op);
	char path[CAGE_PATH_SIZE];
	own_fd int source = file_open_beneath(c->project, inside, O_PATH, 0);
	own_fd int tree = -1;
	struct stat st;

	if (source < 0 || fstat(source, &st) < 0)
		return err_sys(e, source < 0 ? -source : errno,
			"cannot open '%s' of the project, which has rights of its own", inside);
	if (snprintf(path, sizeof(path), "%s/%s", c->place, inside) >= (int)sizeof(path))
		return err_set(
			e, ERR_SYS, ENAMETOOLONG, "cannot show '%s': its path is too long", inside);
	tree = cage_clone_tree(source, cage_restrictions(op->flags | PLAN_NO_DEV), e);
	return tree < 0 ? tree : cage_put(c, tree, path, S_ISDIR(st.st_mode), e);
}

cage_step *const cage_project_steps[PLAN_OP_KIND_COUNT] = {
	[PLAN_AWAIT] = cage_await,
	[PLAN_PROJECT] = cage_mount_project,
	[PLAN_PART] = cage_mount_part,
	[PLAN_GIT] = cage_mount_git,
	[PLAN_PROTECT] = cage_protect_path,
};
