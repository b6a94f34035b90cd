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

void keep_hold_end(struct keeper *k)
{
	struct keep_hold *h = &k->hold;

	if (h->work < 0)
		return;
	/* What the kernel made in it is the cage's to remove, unless that never came so far. */
	unlinkat(h->work, "work", AT_REMOVEDIR);
	unlinkat(h->folder, "hold", AT_REMOVEDIR);
	close(h->work);
	h->work = -1;
}

/* --- while the command runs --- */

#define REFRESH_MS    200 /* between two times, or more: */
#define REFRESH_SHARE 50  /* one part of so many of the time */

int keep_hold_wait(const struct keeper *k)
{
	return k->hold.view >= 0 && k->is_started && !k->has_exited ? REFRESH_MS : -1;
}

void keep_hold_refresh(struct keeper *k)
{
	struct keep_hold *h = &k->hold;
	uint64_t now = clock_ns(), took;

	if (keep_hold_wait(k) < 0 || now < h->next_ns || cage_is_broken("refresh"))
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

/* --- ways around it --- */

/* Would writing to what a bind shows change something that is protected? */
static bool goes_around(const struct plan *p, const char *source, const char *project)
{
	const struct plan_op *end = plan_ops(p) + p->op_count;

	if (str_path_within(project, source))
		return true;
	if (!str_path_within(source, project))
		return false;
	source += strlen(project) + 1;
	for (const struct plan_op *op = plan_ops(p); op < end; op++) {
		const char *path = plan_str(p, op->b);

		if (op->kind == PLAN_PROTECT &&
			(str_path_within(source, path) || str_path_within(path, source)))
			return true;
	}
	return false;
}

static int check_binds(const struct keeper *k, const char *project, struct err *e)
{
	const struct plan *p = k->start.plan;

	for (uint32_t i = 0; i < p->op_count; i++) {
		const struct plan_op *op = &plan_ops(p)[i];
		const char *source = k->sources.items[i].path;

		if (op->kind == PLAN_BIND && !(op->flags & PLAN_READ_ONLY) &&
			goes_around(p, source, project))
			return err_set(e, ERR_REFUSED, EPERM,
				"what is protected in the project could be written through the "
				"bind of '%.200s'; make it :ro",
				source);
	}
	return 0;
}

/* What is held is seen: nothing else is put there. */
static int check_targets(const struct keeper *k, const struct plan_op *project, struct err *e)
{
	const struct plan *p = k->start.plan;
	const struct plan_op *end = plan_ops(p) + p->op_count;
	char place[4096];

	if (!cage_fill_in(&k->start, plan_str(p, project->b), place, sizeof(place)))
		return err_set(e, ERR_REFUSED, ENAMETOOLONG, "the project's path is too long");
	for (const struct plan_op *op = project; op < end; op++) {
		const char *to = plan_str(p, op->b);
		size_t n = strlen(place);

		if (op->kind != PLAN_BIND || !str_path_within(to, place) || !to[n])
			continue;
		for (size_t i = 0; i < k->hold.count; i++)
			if (str_eq(k->hold.items[i].path, to + n + 1))
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
static int make_work(struct keeper *k, int project, struct err *e)
{
	struct keep_hold *h = &k->hold;
	struct stat owner;

	h->folder = k->q->open_folder(k->q->of, e);
	if (h->folder < 0)
		return h->folder;
	if (fstat(project, &owner) < 0 || mkdirat(h->folder, "hold", 0700) < 0)
		return fail(errno, e);
	h->work = file_open_name(h->folder, "hold", O_RDONLY | O_DIRECTORY);
	if (h->work < 0)
		return fail(-h->work, e);
	if (geteuid() == 0 && fchown(h->work, owner.st_uid, owner.st_gid) < 0)
		return fail(errno, e);
	return 0;
}

static int find_work(
	struct keeper *k, const struct cage_source *project, int project_fd, struct err *e)
{
	struct cage_source *work = &k->start.hold.work;
	struct statx there = look_at(project_fd), ours = look_at(k->hold.work);
	struct stat st;
	char path[4096], link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", k->hold.work);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0 || fstat(k->hold.work, &st) < 0)
		return fail(errno, e);
	*work = (struct cage_source){ .path = arena_copy(&k->hold.arena, path, (size_t)n),
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
static int make_tree(struct keeper *k, const char *project, int project_fd, struct err *e)
{
	struct keep_hold *h = &k->hold;
	const char *work = k->start.hold.work.path;
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
	r = map_tree(h->tree, &k->start.ids, &there, e);
	if (r == 0)
		r = h->tree_project = open_in_tree(h->tree, project + n + 1, &there, e);
	if (r >= 0)
		r = h->tree_work = open_in_tree(h->tree, work + n + 1, &ours, e);
	return r < 0 ? r : 0;
}

int keep_hold_make(struct keeper *k, struct err *e)
{
	const struct plan_op *op = plan_find(k->start.plan, PLAN_PROJECT, NULL);
	size_t i = op ? (size_t)(op - plan_ops(k->start.plan)) : 0;
	int project, r;

	if (!op || !(op->flags & PLAN_HELD))
		return 0;
	project = k->sources.fds[i];
	/* What fails here is a reason to do without, for who may. */
	k->record->failed_op = (int)i;
	r = check_binds(k, k->sources.items[i].path, e);
	if (r == 0)
		r = keep_hold_find(&k->hold, k->start.plan, op, project, e);
	if (r == 0)
		r = check_targets(k, op, e);
	if (r == 0)
		r = make_work(k, project, e);
	if (r == 0)
		r = find_work(k, &k->sources.items[i], project, e);
	if (r == 0 && k->start.ids.is_given)
		r = make_tree(k, k->sources.items[i].path, project, e);
	if (r == 0)
		k->record->failed_op = -1;
	k->start.hold.items = k->hold.items;
	k->start.hold.count = k->hold.count;
	k->start.hold.work.tree = k->hold.tree;
	k->start.hold.project_fd = k->hold.tree_project;
	k->start.hold.work_fd = k->hold.tree_work;
	return r;
}
