/*
 * keep_hold - what the cage needs to hold what is protected in a writable project.
 *
 * Runs as:  the keeper.
 * Leaves:   a list of what to hold; a folder for the layer's work, in the run's folder, until the
 *           cage is ready; for root a tree in which that folder and the project have the cage's
 *           owner.
 * Must not: create anything in the project.
 *
 * The kernel wants the layer's work folder on the mount of what is written to. The only place where
 * bawn may make one is its own state; where that is on another mount, nothing can be held.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "cage/cage_break.h"
#include "keep/keep_inside.h"

void keep_hold_init(struct keep_hold *h)
{
	arena_init(&h->arena, (size_t)1 << 24);
	h->folder = h->work = h->tree = h->tree_project = h->tree_work = h->view = -1;
}

void keep_hold_done(struct keep_hold *h)
{
	int *const fds[] = { &h->work, &h->tree, &h->tree_project, &h->tree_work, &h->view };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
	arena_done(&h->arena);
}

static const char *const folders[CAGE_LAYER_COUNT] = { "hold", "git-hold" };

void keep_hold_end(struct keeper *k)
{
	for (size_t i = 0; i < CAGE_LAYER_COUNT; i++) {
		struct keep_hold *h = &k->holds[i];

		if (h->work < 0)
			continue;
		/* What the kernel made in it is the cage's to remove, unless that never came so
		 * far. */
		unlinkat(h->work, "work", AT_REMOVEDIR);
		unlinkat(h->folder, folders[i], AT_REMOVEDIR);
		close(h->work);
		h->work = -1;
	}
}

/* --- while the command runs --- */

#define REFRESH_MS    200 /* between two times, or more: */
#define REFRESH_SHARE 50  /* one part of so many of the time */

void keep_hold_take_view(struct keeper *k, int fd)
{
	/* Git's folder comes first. */
	for (int i = CAGE_LAYER_COUNT - 1; i >= 0; i--)
		if (k->holds[i].work >= 0 && k->holds[i].view < 0) {
			k->holds[i].view = fd;
			return;
		}
	close(fd);
}

int keep_hold_wait(const struct keeper *k)
{
	bool has_view = false;

	for (size_t i = 0; i < CAGE_LAYER_COUNT; i++)
		has_view |= k->holds[i].view >= 0;
	return has_view && k->is_started && !k->has_exited ? REFRESH_MS : -1;
}

static void refresh(struct keep_hold *h)
{
	uint64_t now = clock_ns(), took;

	if (h->view < 0 || now < h->next_ns)
		return;
	/* Nothing is changed; but whatever is mounted anew drops the names that nobody uses. */
	if (fsconfig(h->view, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) < 0) {
		close(h->view);
		h->view = -1;
		return;
	}
	took = (clock_ns() - now) * REFRESH_SHARE;
	now += REFRESH_MS * (uint64_t)1000000;
	h->next_ns = now + took;
}

void keep_hold_refresh(struct keeper *k)
{
	if (keep_hold_wait(k) < 0 || cage_is_broken("refresh"))
		return;
	for (size_t i = 0; i < CAGE_LAYER_COUNT; i++)
		refresh(&k->holds[i]);
}

/* --- ways around it --- */

/* Would writing to what a bind shows change something that is protected? */
static bool goes_around(
	const struct plan *p, enum cage_layer which, const char *source, const char *project)
{
	const struct plan_op *end = plan_ops(p) + p->op_count;

	if (str_path_within(project, source))
		return true;
	if (!str_path_within(source, project))
		return false;
	source += strlen(project) + 1;
	for (const struct plan_op *op = plan_ops(p); op < end; op++) {
		const char *path = plan_str(p, op->b);

		if (op->kind == PLAN_PROTECT && cage_layer_of(p, op) == which &&
			(str_path_within(source, path) || str_path_within(path, source)))
			return true;
	}
	return false;
}

static int check_binds(
	const struct keeper *k, enum cage_layer which, const char *project, struct err *e)
{
	const struct plan *p = k->start.plan;

	for (uint32_t i = 0; i < p->op_count; i++) {
		const struct plan_op *op = &plan_ops(p)[i];
		const char *source = k->sources.items[i].path;

		if (op->kind == PLAN_BIND && !(op->flags & PLAN_READ_ONLY) &&
			goes_around(p, which, source, project))
			return err_set(e, ERR_REFUSED, EPERM,
				"what is protected in '%.100s' could be written through the bind "
				"of '%.200s'; make it :ro",
				project, source);
	}
	return 0;
}

/* What is held is seen: nothing else is put there. */
static int check_targets(const struct keeper *k, const struct plan_op *whole, struct err *e)
{
	const struct plan *p = k->start.plan;
	const struct keep_hold *h = &k->holds[cage_layer_of(p, whole)];
	const struct plan_op *end = plan_ops(p) + p->op_count;
	char place[4096];

	if (!cage_fill_in(&k->start, plan_str(p, whole->b), place, sizeof(place)))
		return err_set(e, ERR_REFUSED, ENAMETOOLONG, "the project's path is too long");
	for (const struct plan_op *op = whole; op < end; op++) {
		const char *to = plan_str(p, op->b);
		size_t n = strlen(place);

		if (op->kind != PLAN_BIND || !str_path_within(to, place) || !to[n])
			continue;
		for (size_t i = 0; i < h->count; i++)
			if (str_eq(h->items[i].path, to + n + 1))
				return err_set(e, ERR_REFUSED, EBUSY,
					"cannot show '%.160s' at '%.160s': that is protected, or leads to "
					"something that is",
					plan_str(p, op->a), to);
	}
	return 0;
}

/* --- the folder for the layer's work --- */

/* Which mount something is on, and which file it is; a mount of 0 is none. */
static struct statx look_at(int fd)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &st) < 0 ||
		!(st.stx_mask & STATX_MNT_ID))
		memset(&st, 0, sizeof(st));
	return st;
}

static bool are_same(const struct statx *a, const struct statx *b)
{
	return a->stx_ino && a->stx_ino == b->stx_ino && a->stx_dev_major == b->stx_dev_major &&
	       a->stx_dev_minor == b->stx_dev_minor;
}

static int fail(int num, struct err *e)
{
	return err_set(e, ERR_SYS, num,
		"cannot make a folder in the run's folder, which holding what is protected in the "
		"project takes: %s",
		strerror(num));
}

/* It belongs to whom the project belongs: so will what the cage does in it. */
static int make_work(struct keeper *k, enum cage_layer which, int project, struct err *e)
{
	struct keep_hold *h = &k->holds[which];
	struct stat owner;

	h->folder = k->q->open_folder(k->q->of, e);
	if (h->folder < 0)
		return h->folder;
	if (fstat(project, &owner) < 0 || mkdirat(h->folder, folders[which], 0700) < 0)
		return fail(errno, e);
	h->work = file_open_name(h->folder, folders[which], O_RDONLY | O_DIRECTORY);
	if (h->work < 0)
		return fail(-h->work, e);
	if (geteuid() == 0 && fchown(h->work, owner.st_uid, owner.st_gid) < 0)
		return fail(errno, e);
	return 0;
}

static int find_work(struct keep_hold *h, const struct cage_source *project, int project_fd,
	struct cage_source *work, struct err *e)
{
	struct statx there = look_at(project_fd), ours = look_at(h->work);
	struct stat st;
	char path[4096], link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", h->work);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0 || fstat(h->work, &st) < 0)
		return fail(errno, e);
	*work = (struct cage_source){ .path = arena_copy(&h->arena, path, (size_t)n),
		.device = st.st_dev,
		.inode = st.st_ino,
		.tree = -1 };
	if (!work->path)
		return fail(ENOMEM, e);
	if (str_path_within(work->path, project->path))
		return err_set(e, ERR_REFUSED, ELOOP,
			"what is protected in the project cannot be held, because bawn's own "
			"folder '%.160s' is in it; XDG_STATE_HOME can name another",
			work->path);
	if (!there.stx_mnt_id || there.stx_mnt_id != ours.stx_mnt_id)
		return err_set(e, ERR_REFUSED, EXDEV,
			"what is protected in the project cannot be held, because that takes a "
			"folder on the same mount, and bawn's '%.160s' is on another; "
			"XDG_STATE_HOME can name one",
			work->path);
	return 0;
}

/* --- root's tree --- */

/* How long the path of the folder is that both are in; 0: it is the root. */
static size_t common_length(const char *a, const char *b)
{
	size_t n = 0;

	for (size_t i = 0; a[i] && a[i] == b[i]; i++)
		if (a[i] == '/')
			n = i;
	return n;
}

static int map_tree(int tree, const struct cage_ids *ids, const struct statx *owner, struct err *e)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP };
	struct cage_idmap map;
	int r;

	cage_idmap_init(&map);
	r = cage_idmap_make(&map, ids, owner->stx_uid, owner->stx_gid, e);
	attr.userns_fd = (unsigned)map.fd;
	if (r == 0 && mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		r = err_set(e, ERR_REFUSED, errno,
			"cannot show the project with its owner mapped to the cage's user: %s",
			strerror(errno));
	cage_idmap_done(&map);
	return r;
}

/* Opens below the tree what is at `path`, and looks whether it is the same. */
static int open_in_tree(int tree, const char *path, const struct statx *same, struct err *e)
{
	own_fd int fd = file_open_beneath(tree, path, O_PATH | O_DIRECTORY, 0);
	struct statx st = look_at(fd);

	if (fd < 0 || !are_same(&st, same))
		return err_set(e, ERR_SYS, fd < 0 ? -fd : ESTALE,
			"cannot find '%s' on its mount: %s", path, strerror(fd < 0 ? -fd : ESTALE));
	return take_fd(&fd);
}

/* The folder that both are in, cloned, with the project's owner mapped to the cage's user. */
static int make_tree(struct keep_hold *h, const struct cage_ids *ids, const char *project,
	int project_fd, const char *work, struct err *e)
{
	struct statx there = look_at(project_fd), ours = look_at(h->work);
	size_t n = common_length(project, work);
	const char *top = n ? arena_copy(&h->arena, project, n) : "/";
	own_fd int folder = top ? file_open_real(top, O_PATH | O_DIRECTORY) : -ENOMEM;
	int r;

	if (folder < 0)
		return fail(-folder, e);
	h->tree = open_tree(folder, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (h->tree < 0)
		return err_set(e, ERR_SYS, errno, "cannot clone the mount of '%s': %s", project,
			strerror(errno));
	r = map_tree(h->tree, ids, &there, e);
	if (r == 0)
		r = h->tree_project = open_in_tree(h->tree, project + n + 1, &there, e);
	if (r >= 0)
		r = h->tree_work = open_in_tree(h->tree, work + n + 1, &ours, e);
	return r < 0 ? r : 0;
}

static int make_hold(struct keeper *k, const struct plan_op *op, struct err *e)
{
	enum cage_layer which = cage_layer_of(k->start.plan, op);
	size_t i = (size_t)(op - plan_ops(k->start.plan));
	const struct cage_source *source = &k->sources.items[i];
	struct cage_hold *start = &k->start.holds[which];
	struct keep_hold *h = &k->holds[which];
	int fd = k->sources.fds[i], r;

	/* What fails here is a reason to do without, for who may. */
	k->record->failed_op = (int)i;
	r = check_binds(k, which, source->path, e);
	if (r == 0)
		r = keep_hold_find(h, k->start.plan, op, fd, e);
	if (r == 0)
		r = check_targets(k, op, e);
	if (r == 0)
		r = make_work(k, which, fd, e);
	if (r == 0)
		r = find_work(h, source, fd, &start->work, e);
	if (r == 0 && k->start.ids.is_given)
		r = make_tree(h, &k->start.ids, source->path, fd, start->work.path, e);
	if (r == 0)
		k->record->failed_op = -1;
	start->items = h->items;
	start->count = h->count;
	start->work.tree = h->tree;
	start->project_fd = h->tree_project;
	start->work_fd = h->tree_work;
	return r;
}

int keep_hold_make(struct keeper *k, struct err *e)
{
	static const enum plan_op_kind kinds[] = { PLAN_GIT, PLAN_PROJECT };
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct plan_op *op = plan_find(k->start.plan, kinds[i], NULL);

		if (op && op->flags & PLAN_HELD)
			r = make_hold(k, op, e);
	}
	return r;
}
