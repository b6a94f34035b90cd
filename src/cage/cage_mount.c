/*
 * cage_mount - gives the cage its file tree, and nothing else.
 *
 * Runs as:     the first process; all capabilities in its own user namespace, none outside.
 * Enters with: a mount namespace of its own that still shows the host.
 * Leaves:      every mount operation of the plan attached below the new root, which is the
 *              process's root; the host's root unmounted.
 * Must not:    follow a symlink in a target, read configuration, allocate, log.
 *
 * Each tree of the host is cloned detached, restricted, and only then attached: at its final path
 * it never has more rights than planned, and a failure half way leaves nothing to undo. A new file
 * system is mounted with its restrictions.
 *
 * One tmpfs, the pool, holds everything the cage can write that is not the host's: its folders are
 * the root and the layers that capture writes, and they share one quota. It is mounted over the
 * host's /proc, which is not needed once the ids are mapped, and is unmounted with the host's root:
 * in the cage it has no name.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"
#include "cage/cage_inside.h"

/*
 * --- the kept overlay of the root ---
 *
 * Loads what earlier runs wrote to the root into a detached tmpfs of the overlay's size, before
 * anything else is made. The kept tree on the host is only read.
 *
 * Its contents are hostile: where the plan makes a folder there may be a link to anywhere, where it
 * makes a link there may be a folder of programs. Whatever is in the plan's way is removed before
 * anything is mounted, so that the walk finds the same root as in a first run.
 */

static int overlay_fail(const char *what, int num, struct err *e)
{
	return err_sys(e, num, "cannot %s the overlay of the root", what);
}

/* What the plan wants to find at a place. */
enum want {
	WANT_ANYTHING,
	WANT_FOLDER,
	WANT_FILE,
	WANT_NOTHING, /* it makes it itself */
};

static bool is_in_the_way(mode_t mode, enum want want)
{
	return (want == WANT_FOLDER && !S_ISDIR(mode)) || (want == WANT_FILE && !S_ISREG(mode)) ||
	       want == WANT_NOTHING;
}

/* One step of a path: 1 if there is a folder to go on in, and then *at is that. */
static int clear_step(int *at, const char *name, enum want want, mode_t mode, struct err *e)
{
	struct stat st;
	int next;

	if (fstatat(*at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : overlay_fail("look into", errno, e);
	if (is_in_the_way(st.st_mode, want))
		return tree_remove(*at, name, e);
	if (!S_ISDIR(st.st_mode))
		return 0;
	/* Without this an earlier run could lock the command out of its own home. */
	if (!mode)
		mode = (st.st_mode | S_IRWXU) & 07777;
	if ((st.st_mode & 07777) != mode && fchmodat(*at, name, mode, 0) < 0)
		return overlay_fail("clear", errno, e);
	next = file_open_name(*at, name, O_PATH | O_DIRECTORY);
	if (next < 0)
		return overlay_fail("look into", -next, e);
	close(*at);
	*at = next;
	return 1;
}

/* Clears a path of the plan: folders on the way, and at the end what the plan wants there. */
static int clear_place(int upper, const char *path, enum want want, mode_t mode, struct err *e)
{
	own_fd int at = fcntl(upper, F_DUPFD_CLOEXEC, 3);
	char name[NAME_MAX + 1];
	int r = at < 0 ? overlay_fail("look into", errno, e) : 1;

	for (path += *path == '/'; r == 1 && *path;) {
		size_t n = strcspn(path, "/");
		bool is_last = !path[n];

		if (n > NAME_MAX)
			return overlay_fail("look into", ENAMETOOLONG, e);
		memcpy(name, path, n);
		name[n] = '\0';
		r = clear_step(&at, name, is_last ? want : WANT_FOLDER, is_last ? mode : 0, e);
		path += n + (is_last ? 0 : 1);
	}
	return r < 0 ? r : 0;
}

/* A bind's target has the type of its source. If that cannot be read, the mount fails later. */
static enum want want_like_source(const struct cage_source *source)
{
	own_fd int fd = source->tree >= 0 ? -1 : file_open_real(source->path, O_PATH);
	struct stat st;

	if (fstat(source->tree >= 0 ? source->tree : fd, &st) < 0)
		return WANT_ANYTHING;
	return S_ISDIR(st.st_mode) ? WANT_FOLDER : WANT_FILE;
}

static enum want want_of(const struct cage *c, const struct plan_op *op)
{
	static const enum want wants[PLAN_OP_KIND_COUNT] = {
		[PLAN_TMPFS] = WANT_FOLDER,
		[PLAN_DIR] = WANT_FOLDER,
		[PLAN_PROC] = WANT_FOLDER,
		[PLAN_DEVPTS] = WANT_FOLDER,
		[PLAN_PROJECT] = WANT_FOLDER,
		[PLAN_GIT] = WANT_FOLDER,
		[PLAN_DEVICE] = WANT_FILE,
		[PLAN_SYMLINK] = WANT_NOTHING,
		[PLAN_FILE] = WANT_NOTHING,
		[PLAN_DESCRIBE] = WANT_NOTHING,
	};

	if (op->kind == PLAN_BIND)
		return want_like_source(&c->start->sources[cage_op_index(c, op)]);
	return wants[op->kind];
}

static int clear_way(struct cage *c, int upper, struct err *e)
{
	const struct plan_op *ops = plan_ops(c->start->plan);
	char path[CAGE_PATH_SIZE];
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < c->start->plan->op_count; i++) {
		enum want want = want_of(c, &ops[i]);

		if (want == WANT_ANYTHING)
			continue;
		if (!cage_fill_in_place(c->start, &ops[i], path, sizeof(path)))
			return overlay_fail("clear", ENAMETOOLONG, e);
		r = clear_place(upper, path, want, ops[i].kind == PLAN_DIR ? ops[i].mode : 0, e);
	}
	return r;
}

/* The final limit: copying needed additional inodes. */
static int limit_inodes(const struct cage *c)
{
	own_fd int fs = fspick(c->kept, "", FSPICK_EMPTY_PATH | FSPICK_CLOEXEC);
	char inodes[24];

	snprintf(inodes, sizeof(inodes), "%" PRIu64, plan_inodes(c->start->overlay_size));
	if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "nr_inodes", inodes, 0) < 0 ||
		fsconfig(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) < 0)
		return errno == EINVAL ? -ENOSPC : -errno;
	return 0;
}

static int overlay_make_folder(int at, const char *name)
{
	return mkdirat(at, name, 0755) < 0 ? -errno
					   : file_open_name(at, name, O_PATH | O_DIRECTORY);
}

static int copy_tree(const struct cage *c, int tree, int upper, struct err *e)
{
	own_fd int links = overlay_make_folder(c->kept, "links");
	struct tree_options options = { .links = links };
	int r = links < 0 ? overlay_fail("load", -links, e) : tree_copy(tree, upper, &options, e);

	if (r == 0 && unlinkat(c->kept, "links", AT_REMOVEDIR) < 0)
		r = overlay_fail("load", errno, e);
	return r;
}

static int overlay_load(struct cage *c, int tree, struct err *e)
{
	own_fd int upper = overlay_make_folder(c->kept, "upper");
	int r = upper < 0 ? overlay_fail("load", -upper, e) : copy_tree(c, tree, upper, e);

	/* The root's own mode is that of a first run. */
	if (r == 0 && fchmodat(c->kept, "upper", 0755, 0) < 0)
		r = overlay_fail("load", errno, e);
	if (r == 0 && !cage_is_broken("overlay-way"))
		r = clear_way(c, upper, e);
	if (r == 0 && mkdirat(c->kept, "work", 0755) < 0)
		r = overlay_fail("load", errno, e);
	if (r == 0) {
		r = limit_inodes(c);
		if (r < 0)
			overlay_fail("limit", -r, e);
	}
	return r;
}

static int cage_load_overlay(struct cage *c, const struct plan_op *op, struct err *e)
{
	char bytes[24], inodes[24], size[NUM_TEXT_SIZE], text[PLAN_TEXT_SIZE];
	const char *options[] = { "mode", "0755", "size", bytes, "nr_inodes", inodes, NULL };
	own_fd int tree = -1;
	int r;

	snprintf(bytes, sizeof(bytes), "%" PRIu64,
		c->start->overlay_size * (cage_is_broken("overlay") ? 2 : 1));
	snprintf(inodes, sizeof(inodes), "%" PRIu64, 2 * plan_inodes(c->start->overlay_size));
	c->kept = cage_new_mount("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, e);
	r = c->kept < 0 ? c->kept : cage_own(c, c->kept, e);
	if (r < 0)
		return r;
	tree = cage_source_tree(c, op,
		MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY, NULL,
		e);
	r = tree < 0 ? tree : overlay_load(c, tree, e);
	if (r == -ENOSPC) {
		num_print_size(c->start->overlay_size, size);
		return err_hint(e,
			err_set(e, ERR_REFUSED, ENOSPC,
				"cannot use the overlay '%s': its contents do not fit into its "
				"size of %s",
				plan_root_text(op->a_root, cage_a(c, op), text), size),
			"set a larger root.overlay_size, or empty it: bawn overlay reset");
	}
	/* Not ERR_SYS: planning again would not help. */
	if (r < 0 && tree >= 0)
		e->kind = ERR_REFUSED;
	return r;
}

/* Attaches it in the pool as `kept`; its folder `upper` becomes the root. */
static int cage_attach_kept(struct cage *c, struct err *e)
{
	c->has_image = true;
	return cage_put_in_pool(c, c->kept, "kept", e);
}

/* Fails if it cannot be a layer above an image. */
static int cage_check_kept_attributes(const struct cage *c, struct err *e)
{
	own_fd int work = file_open_name(c->kept, "work", O_RDONLY | O_DIRECTORY);

	if (work >= 0 && fsetxattr(work, "user.bawn", "", 0, 0) == 0)
		return fremovexattr(work, "user.bawn") < 0 ? overlay_fail("use", errno, e) : 0;
	return err_hint(e,
		err_set(e, ERR_REFUSED, EOPNOTSUPP,
			"cannot keep an overlay above an image: its deletions are marked by "
			"attributes, which a tmpfs has since Linux 6.6"),
		"root.image: host needs none");
}

/* --- trees --- */

uint64_t cage_restrictions(unsigned flags)
{
	uint64_t attributes = MOUNT_ATTR_NOSUID;

	if (flags & PLAN_READ_ONLY && !cage_is_broken("read-only"))
		attributes |= MOUNT_ATTR_RDONLY;
	if (flags & PLAN_NO_EXEC)
		attributes |= MOUNT_ATTR_NOEXEC;
	if (flags & PLAN_NO_DEV && !cage_is_broken("no-dev"))
		attributes |= MOUNT_ATTR_NODEV;
	return attributes;
}

int cage_new_mount(const char *type, const char *const *options, uint64_t attributes, struct err *e)
{
	cage_fd int fs = fsopen(type, FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0)
		return err_sys(e, errno, "cannot make a file system of type %s", type);
	for (; options && *options; options += 2) {
		const char *value = options[1];

		if (fsconfig(fs, value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, options[0], value,
			    0) < 0)
			return err_sys(e, errno, "cannot make a %s with %s%s%s", type, options[0],
				value ? "=" : "", value ? value : "");
	}
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return err_sys(e, errno, "cannot make a file system of type %s", type);
	fd = fsmount(fs, FSMOUNT_CLOEXEC, (unsigned)attributes);
	if (fd < 0)
		return err_sys(e, errno, "cannot mount a file system of type %s", type);
	return fd;
}

int cage_restrict_tree(int tree, uint64_t attributes, struct err *e)
{
	struct mount_attr attr = { .attr_set = attributes, .propagation = MS_PRIVATE };

	if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
		return err_sys(e, errno, "cannot restrict a mount");
	return 0;
}

#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif

/* Linux 6.15 clones and restricts at once; for every other one these are two calls. */
int cage_clone_name(int at, const char *name, uint64_t attributes, struct err *e)
{
	static bool is_missing;
	const unsigned flags = AT_EMPTY_PATH | AT_RECURSIVE | AT_SYMLINK_NOFOLLOW |
			       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC;
	struct mount_attr attr = { .attr_set = attributes, .propagation = MS_PRIVATE };
	own_fd int tree =
		is_missing ? -1
			   : (int)syscall(SYS_open_tree_attr, at, name, flags, &attr, sizeof(attr));
	int r;

	if (tree >= 0)
		return take_fd(&tree);
	is_missing = true;
	tree = open_tree(at, name, flags);
	if (tree < 0)
		return err_sys(e, errno, "cannot clone a mount");
	r = cage_restrict_tree(tree, attributes, e);
	return r < 0 ? r : take_fd(&tree);
}

int cage_clone_tree(int fd, uint64_t attributes, struct err *e)
{
	return cage_clone_name(fd, "", attributes, e);
}

int cage_attach(int tree, int place, const char *name, struct err *e)
{
	if (move_mount(tree, "", place, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return err_sys(e, errno, "cannot attach '%s' in the cage", name);
	return 0;
}

int cage_open_source(const struct cage_source *source, bool *ret_is_dir, struct err *e)
{
	own_fd int fd = file_open_real(source->path, O_PATH);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(
			e, fd < 0 ? -fd : errno, "cannot show '%s' in the cage", source->path);
	if ((st.st_dev != source->device || st.st_ino != source->inode) &&
		!cage_is_broken("source"))
		return err_set(e, ERR_REFUSED, ESTALE,
			"cannot show '%s' in the cage: it was replaced just now", source->path);
	if (ret_is_dir)
		*ret_is_dir = S_ISDIR(st.st_mode);
	return take_fd(&fd);
}

int cage_tree_of(
	const struct cage_source *source, uint64_t attributes, bool *ret_is_dir, struct err *e)
{
	cage_fd int fd = -1;
	struct stat st;
	int tree, r;

	if (source->tree >= 0) {
		r = cage_restrict_tree(source->tree, attributes, e);
		if (r == 0 && ret_is_dir && fstat(source->tree, &st) < 0)
			r = err_sys(e, errno, "cannot show '%s' in the cage", source->path);
		if (r == 0 && ret_is_dir)
			*ret_is_dir = S_ISDIR(st.st_mode);
		return r < 0 ? r : source->tree;
	}
	fd = cage_open_source(source, ret_is_dir, e);
	if (fd < 0)
		return fd;
	tree = cage_clone_tree(fd, attributes, e);
	if (tree < 0)
		err_prefix(e, "cannot show '%s' in the cage", source->path);
	return tree;
}

int cage_source_tree(struct cage *c, const struct plan_op *op, uint64_t attributes,
	bool *ret_is_dir, struct err *e)
{
	return cage_tree_of(&c->start->sources[cage_op_index(c, op)], attributes, ret_is_dir, e);
}

/* --- the pool and the root --- */

int cage_pool_folder(struct cage *c, const char *name, struct err *e)
{
	int fd = mkdirat(c->pool, name, 0755) < 0 ? -errno
						  : file_open_beneath(c->pool, name, O_PATH, 0);

	if (fd < 0)
		return err_sys(e, -fd, "cannot make the cage's own folder '%s'", name);
	return fd;
}

int cage_put_in_pool(struct cage *c, int tree, const char *name, struct err *e)
{
	if (mkdirat(c->pool, name, 0755) < 0 && errno != EEXIST)
		return err_sys(e, errno, "cannot make the cage's own folder '%s'", name);
	if (move_mount(tree, "", c->pool, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys(e, errno, "cannot attach '%s' in the cage", name);
	return 0;
}

/*
 * Attaches a detached tree over a folder of the host's root. Only the new root may go over "/",
 * because one umount2 there must unmount all of the host's.
 */
static int attach_over(int tree, const char *folder, struct err *e)
{
	if (move_mount(tree, "", AT_FDCWD, folder, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys(e, errno, "cannot attach the cage's root");
	return 0;
}

int cage_enter_root(struct cage *c, struct err *e)
{
	if (fchdir(c->root) < 0)
		return err_sys(e, errno, "cannot enter the cage's root");
	c->is_in_root = true;
	return 0;
}

static int make_pool(struct cage *c, uint64_t size, struct err *e)
{
	const char *place = cage_is_broken("namespace:pid") ? "/sys" : "/proc";
	char options[80], bytes[32] = "";

	if (size)
		snprintf(bytes, sizeof(bytes), ",size=%" PRIu64, size);
	snprintf(options, sizeof(options), "mode=0755,nr_inodes=%" PRIu64 "%s", plan_inodes(size),
		bytes);
	if (mount("none", place, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
		return err_sys(e, errno, "cannot make a file system of type tmpfs");
	c->pool = file_open(place, O_PATH | O_DIRECTORY);
	if (c->pool < 0)
		return err_sys(e, -c->pool, "cannot open the cage's own file system");
	return cage_own(c, c->pool, e);
}

int cage_make_root(struct cage *c, uint64_t size, unsigned flags, struct err *e)
{
	int r = make_pool(c, size, e);

	if (r == 0 && c->kept >= 0)
		r = cage_attach_kept(c, e);
	else if (r == 0 && mkdirat(c->pool, "root", 0755) < 0)
		r = err_sys(e, errno, "cannot make the cage's own folder 'root'");
	if (r < 0)
		return r;
	c->root = cage_clone_name(
		c->pool, c->kept >= 0 ? "kept/upper" : "root", cage_restrictions(flags), e);
	r = c->root < 0 ? c->root : attach_over(c->root, "/", e);
	if (r == 0)
		cage_remember(c, c->root, "/", true);
	/* What an earlier run left in a kept overlay may be in the way. */
	if (r < 0 || c->kept >= 0)
		return r;
	cage_know(c, "", 0, c->root, 1);
	return cage_enter_root(c, e);
}

/*
 * A folder of the pool, which is read-only where it is seen from the start: its contents are made
 * in the pool.
 */
static int cage_mount_tmpfs(struct cage *c, const struct plan_op *op, struct err *e)
{
	const char *path = cage_b(c, op);
	char name[CAGE_PATH_SIZE];
	cage_fd int folder = -1, tree = -1;
	int r;

	if (str_eq(path, "/"))
		return cage_make_root(c, op->n, op->flags, e);
	cage_name_in_pool(path, name, sizeof(name));
	folder = cage_pool_folder(c, name, e);
	if (folder < 0)
		return folder;
	tree = cage_clone_tree(folder, cage_restrictions(op->flags), e);
	r = tree < 0 ? tree : cage_show(c, tree, path, true, e);
	if (r == 0 && folder < CAGE_FEW_FDS)
		cage_know(c, path, strlen(path), folder, strlen(path) + 1);
	return r;
}

/* Makes the folders of the layers that are named and do not exist yet. */
static int mount_make_folders(struct cage *c, const struct cage_layers *layers, struct err *e)
{
	const char *const names[] = { layers->is_kept ? NULL : layers->upper,
		layers->is_kept ? NULL : layers->work, layers->empty };

	for (size_t i = 0; i < COUNT_OF(names); i++) {
		if (names[i] && mkdirat(c->pool, names[i], 0755) < 0)
			return err_sys(
				e, errno, "cannot make the cage's own folder '%s'", names[i]);
	}
	return 0;
}

int cage_new_overlay(struct cage *c, int lower, const struct cage_layers *layers,
	uint64_t attributes, struct err *e)
{
	char options[128];
	int r = mount_make_folders(c, layers, e), fd;

	if (r == 0)
		r = cage_put_in_pool(c, lower, layers->lower, e);
	if (r < 0)
		return r;
	/* Relative to the pool: mountinfo then shows no name of the host. */
	if (fchdir(c->pool) < 0)
		return err_sys(e, errno, "cannot enter the cage's own folder");
	c->is_in_root = false;
	if (layers->upper)
		snprintf(options, sizeof(options), "lowerdir=%s,upperdir=%s,workdir=%s,userxattr",
			layers->lower, layers->upper, layers->work);
	else
		snprintf(options, sizeof(options), "lowerdir=%s:%s,userxattr", layers->lower,
			layers->empty);
	/* Above the tree that it shows, until it is moved to its place. */
	if (mount("none", layers->lower, "overlay", (unsigned long)attributes, options) < 0)
		return err_sys(e, errno, "cannot make a file system of type overlay");
	fd = file_open(layers->lower, O_PATH | O_DIRECTORY);
	return fd < 0 ? err_sys(e, -fd, "cannot open an overlay") : fd;
}

/* A folder of the host as root, below a writable layer: the kept overlay, or one in the pool. */
static int cage_mount_image(struct cage *c, const struct plan_op *op, struct err *e)
{
	static const struct cage_layers fresh = { "image", "root", "root-work" };
	static const struct cage_layers kept = { "image", "kept/upper", "kept/work",
		.is_kept = true };
	own_fd int tree = -1;
	int r = make_pool(c, op->n, e);

	if (r == 0 && c->kept >= 0)
		r = cage_check_kept_attributes(c, e);
	if (r == 0 && c->kept >= 0)
		r = cage_attach_kept(c, e);

	if (r < 0)
		return r;
	c->has_image = true;
	tree = cage_source_tree(
		c, op, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY, NULL, e);
	if (tree < 0)
		return tree;
	c->root = cage_new_overlay(
		c, tree, c->kept >= 0 ? &kept : &fresh, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, e);
	if (c->root < 0)
		return c->root;
	r = cage_own(c, c->root, e);
	return r < 0 ? r : attach_over(c->root, "/", e);
}

/* --- what is put into the root --- */

int cage_view_of(struct cage *c, const struct plan_op *op, int tree, struct err *e)
{
	char lower[24], empty[24];
	const struct cage_layers layers = { .lower = lower, .empty = empty };

	snprintf(lower, sizeof(lower), "bind-%zu", cage_op_index(c, op));
	snprintf(empty, sizeof(empty), "empty-%zu", cage_op_index(c, op));
	return cage_new_overlay(c, tree, &layers, cage_restrictions(op->flags), e);
}

static int cage_mount_bind(struct cage *c, const struct plan_op *op, struct err *e)
{
	const char *to = cage_b(c, op);
	int late = c->has_session ? cage_tree_of_bind(op) : CAGE_TREE_COUNT;
	bool is_dir = false;
	cage_fd int tree =
		late < CAGE_TREE_COUNT
			? -1
			: cage_source_tree(c, op, cage_restrictions(op->flags), &is_dir, e);
	cage_fd int view = -1;
	int r;

	if (late < CAGE_TREE_COUNT)
		return cage_attach_late(c, op, (unsigned)late, to, e);
	if (tree < 0)
		return tree;
	if (op->flags & PLAN_VIEW && is_dir && !cage_is_broken("read-only")) {
		view = cage_view_of(c, op, tree, e);
		if (view < 0)
			return view;
	}
	r = cage_show(c, view >= 0 ? view : tree, to, is_dir, e);
	if (r == 0 && plan_roots[op->a_root].owner == PLAN_OWNER_CAGE)
		r = cage_own_mount(c, tree, e);
	return r;
}

/* --- the last step --- */

static int let_go_of_host(struct err *e)
{
	if (cage_is_broken("detach"))
		return syscall(SYS_pivot_root, ".", "mnt") < 0 || chdir("/") < 0 ? -errno : 0;
	/* The host's root ends up on top of the new one and is unmounted from there: it needs no
	 * folder in the cage. The working directory stays the new root. */
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return err_sys(e, errno, "cannot enter the cage's root");
	if (umount2(".", MNT_DETACH) < 0)
		return err_sys(e, errno, "cannot unmount the host's root");
	return 0;
}

int cage_enter(struct cage *c, const struct plan_op *op, struct err *e)
{
	int r = c->is_in_root ? 0 : cage_enter_root(c, e);

	(void)op;
	return r < 0 ? r : let_go_of_host(e);
}

cage_step *const cage_mount_steps[PLAN_OP_KIND_COUNT] = {
	[PLAN_OVERLAY] = cage_load_overlay,
	[PLAN_IMAGE] = cage_mount_image,
	[PLAN_TMPFS] = cage_mount_tmpfs,
	[PLAN_BIND] = cage_mount_bind,
	[PLAN_ENTER] = cage_enter,
};
