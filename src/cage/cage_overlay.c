/*
 * cage_overlay - what earlier runs wrote to the root, brought back before anything else is made.
 *
 * Runs as:     the first process; all capabilities in its own user namespace, none outside.
 * Enters with: the kept tree on the host, as its keeper opened it.
 * Leaves:      a tmpfs of the overlay's size, not yet attached, with `upper` full of a copy of it,
 *              and nothing in there that stands in the way of the plan.
 * Must not:    write to the kept tree; follow a symlink; allocate.
 *
 * What is loaded was left by a stranger: where the plan makes a folder there may be a link to
 * anywhere, where it makes a link a folder of programs. All of that is taken away while nothing is
 * mounted on it yet, so that what follows meets the same root as in a first run.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"
#include "cage/cage_inside.h"

static int overlay_fail(const char *what, int num, struct err *e)
{
	return err_sys(e, num, "cannot %s the overlay of the root", what);
}

/* --- nothing in the way of the plan --- */

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
	/* Without this the command could be kept from its own home. It is a folder, by itself. */
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

/* Every folder that leads to a place is one, and so is the place if it is to be. */
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

/* A bind's target is what its source is. What cannot be looked at is said when it is mounted. */
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

/* --- loading --- */

/* As many files as its size allows, from here on: copying takes some that nobody sees. */
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

	/* The root itself is as in a first run, too. */
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

int cage_load_overlay(struct cage *c, const struct plan_op *op, struct err *e)
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
		MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY, e);
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
	/* Another plan would not help: the host is not to blame for what is kept. */
	if (r < 0 && tree >= 0)
		e->kind = ERR_REFUSED;
	return r;
}

/* --- as the root --- */

int cage_attach_kept(struct cage *c, struct err *e)
{
	own_fd int place = cage_pool_folder(c, "kept", e);

	c->has_image = true;
	return place < 0 ? place : cage_attach(c->kept, place, "kept", e);
}

int cage_check_kept_attributes(const struct cage *c, struct err *e)
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
