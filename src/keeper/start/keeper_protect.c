/*
 * keeper_protect - what the cage needs to hold what is protected in a writable project.
 *
 * Runs as:  the keeper.
 * Leaves:   a list of what to hold; a folder for the layer's work, in the run's folder or beside
 * the project, until the cage is ready; for root a tree in which that folder and the project have
 * the cage's owner. Must not: create anything in the project.
 *
 * The kernel wants the layer's work folder on the mount of what is written to, and outside of that.
 * Bawn's own state is the place for it. Where that is on another mount, it is made in the folder
 * that the project is in, or in another one of the operator's or system's on that mount. It is
 * locked as long as the keeper lives: one that nobody has locked was left by a keeper that was
 * killed, and the next run that comes by removes it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/own.h"
#include "base/str.h"
#include "cage/cage_break.h"
#include "keeper/keeper_inside.h"

void keeper_protect_init(struct keeper_protect *h)
{
	*h = (struct keeper_protect){ .folder = -1,
		.work = -1,
		.tree = -1,
		.tree_project = -1,
		.tree_work = -1,
		.view = -1 };
	arena_init(&h->arena, (size_t)1 << 24);
}

void keeper_protect_done(struct keeper_protect *h)
{
	int *const fds[] = { &h->folder, &h->work, &h->tree, &h->tree_project, &h->tree_work,
		&h->view };

	for (size_t i = 0; i < COUNT_OF(fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
	arena_done(&h->arena);
}

/* The cage has what it needs, or will never: removes what was made on disk. */
static void keeper_protect_end(struct keeper *k)
{
	for (size_t i = 0; i < CAGE_LAYER_COUNT; i++) {
		struct keeper_protect *h = &k->protects[i];

		if (h->work < 0)
			continue;
		/* What the kernel made in it is the cage's to remove, unless that never came so
		 * far. */
		unlinkat(h->work, "work", AT_REMOVEDIR);
		unlinkat(h->folder, h->name, AT_REMOVEDIR);
		close(h->work);
		h->work = -1;
	}
}

/* --- while the command runs --- */

#define REFRESH_MS    200 /* between two times, or more: */
#define REFRESH_SHARE 50  /* one part of so many of the time */

void keeper_protect_take_view(struct keeper *k, int fd)
{
	/* Git's folder comes first. */
	for (int i = CAGE_LAYER_COUNT - 1; i >= 0; i--)
		if (k->protects[i].work >= 0 && k->protects[i].view < 0) {
			k->protects[i].view = fd;
			return;
		}
	close(fd);
}

/* How long to wait until keeper_protect_refresh, or -1. */
static int keeper_protect_wait(const struct keeper *k)
{
	bool has_view = false;

	for (size_t i = 0; i < CAGE_LAYER_COUNT; i++)
		has_view |= k->protects[i].view >= 0;
	return has_view && k->state == KEEPER_RUNNING ? REFRESH_MS : -1;
}

static void refresh(struct keeper_protect *h)
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

/*
 * The layer remembers names, and does not notice that the host puts something else there. So it is
 * made to forget them now and then.
 */
static int keeper_protect_refresh(struct keeper *k, const struct pollfd *seen, struct err *e)
{
	(void)seen, (void)e;
	if (keeper_protect_wait(k) < 0 || cage_is_broken("refresh"))
		return 0;
	for (size_t i = 0; i < CAGE_LAYER_COUNT; i++)
		refresh(&k->protects[i]);
	return 0;
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

		if (op->kind == PLAN_PROTECT && cage_layer_of(op) == which &&
			(str_path_within(source, path) || str_path_within(path, source)))
			return true;
	}
	return false;
}

static int protect_check_binds(
	const struct keeper *k, enum cage_layer which, const char *project, struct err *e)
{
	const struct plan *p = k->start.plan;

	for (uint32_t i = 0; i < p->op_count; i++) {
		const struct plan_op *op = &plan_ops(p)[i];
		const char *source = k->sources.items[i].path;

		if (op->kind == PLAN_BIND && !(op->flags & PLAN_READ_ONLY) &&
			goes_around(p, which, source, project))
			return err_hint(e,
				err_set(e, ERR_REFUSED, EPERM,
					"cannot protect paths of '%.100s': they could be written "
					"through the bind of '%.200s'",
					project, source),
				"make the bind read-only (:ro)");
	}
	return 0;
}

/* What is held is seen: nothing else is put there. */
static int protect_check_targets(const struct keeper *k, const struct plan_op *whole, struct err *e)
{
	const struct plan *p = k->start.plan;
	const struct keeper_protect *h = &k->protects[cage_layer_of(whole)];
	const struct plan_op *end = plan_ops(p) + p->op_count;
	char place[4096];

	if (!cage_fill_in_place(&k->start, whole, place, sizeof(place)))
		return err_set(e, ERR_REFUSED, ENAMETOOLONG,
			"cannot protect paths of the project: its path is too long");
	for (const struct plan_op *op = whole; op < end; op++) {
		const char *to = plan_str(p, op->b);
		size_t n = strlen(place);

		if (op->kind != PLAN_BIND || !str_path_within(to, place) || !to[n])
			continue;
		for (size_t i = 0; i < h->count; i++)
			if (str_eq(h->items[i].path, to + n + 1))
				return err_set(e, ERR_REFUSED, EBUSY,
					"cannot show '%.160s' at '%.160s': that path is protected, "
					"or leads to one that is",
					plan_str(p, op->a), to);
	}
	return 0;
}

/* --- the folder for the layer's work --- */

/* Which mount something is on, and which file it is; a mount of 0 is none. */
static struct statx protect_look_at(int fd)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &st) < 0 ||
		!(st.stx_mask & STATX_MNT_ID))
		memset(&st, 0, sizeof(st));
	return st;
}

static bool protect_are_same(const struct statx *a, const struct statx *b)
{
	return a->stx_ino && a->stx_ino == b->stx_ino && a->stx_dev_major == b->stx_dev_major &&
	       a->stx_dev_minor == b->stx_dev_minor;
}

static int protect_fail(int num, struct err *e)
{
	err_sys(e, num, "cannot make a folder to protect paths of the project");
	return -num;
}

#define LEFT "bawn-hold-" /* what folders begin with that are not in the run's, behind a dot */

/* Removes what a keeper that was killed has left. */
static void sweep(int folder)
{
	own_fd int list = file_open_name(folder, ".", O_RDONLY | O_DIRECTORY);
	struct file_entries entries = { .fd = list };
	const struct file_entry *entry;

	while (list >= 0 && (entry = file_next_entry(&entries))) {
		own_fd int left = -1;

		if (!str_starts(entry->name, "." LEFT))
			continue;
		left = file_open_name(folder, entry->name, O_RDONLY | O_DIRECTORY);
		if (left < 0 || flock(left, LOCK_EX | LOCK_NB) < 0)
			continue;
		/* Nothing of anybody's: only what is empty goes. */
		unlinkat(left, "work", AT_REMOVEDIR);
		unlinkat(folder, entry->name, AT_REMOVEDIR);
	}
}

/* Can nobody but us and root put something else in the place of what we make there? */
static bool is_safe(int folder)
{
	struct stat st;

	return fstat(folder, &st) == 0 && (st.st_uid == 0 || st.st_uid == ids_user()) &&
	       (!(st.st_mode & (S_IWGRP | S_IWOTH)) || st.st_mode & S_ISVTX);
}

/* It belongs to whom the project belongs: so will what the cage does in it. 0 or -errno. */
static int make_work(struct keeper_protect *h, int project)
{
	struct stat owner;

	if (fstat(project, &owner) < 0 || mkdirat(h->folder, h->name, 0700) < 0)
		return -errno;
	h->work = file_open_name(h->folder, h->name, O_RDONLY | O_DIRECTORY);
	if (h->work < 0)
		return h->work;
	if (flock(h->work, LOCK_EX | LOCK_NB) < 0 ||
		(ids_user() == 0 && fchown(h->work, owner.st_uid, owner.st_gid) < 0))
		return -errno;
	return 0;
}

/* Where the folder may be made: the run's, the one that the project is in, and these. */
static const char *const places[] = { "", "..", "~", "/var/tmp", "/tmp" };

static int protect_open_place(const struct keeper *k, const char *place, const char *project)
{
	char parent[PATH_MAX];
	const char *slash = strrchr(project, '/');

	if (!*place)
		return fcntl(k->q->folder, F_DUPFD_CLOEXEC, 3);
	if (*place == '~')
		return k->q->home ? file_open_real(k->q->home, O_RDONLY | O_DIRECTORY) : -ENOENT;
	if (*place == '/')
		return file_open_real(place, O_RDONLY | O_DIRECTORY);
	snprintf(parent, sizeof(parent), "%.*s", slash > project ? (int)(slash - project) : 1,
		project);
	return file_open_real(parent, O_RDONLY | O_DIRECTORY);
}

/* The path of what is open, in the arena; NULL if it cannot be had. */
static const char *protect_path_of(struct keeper_protect *h, int fd)
{
	char path[PATH_MAX];
	ssize_t n = file_path_of(fd, path);

	return n < 0 ? NULL : arena_copy(&h->arena, path, (size_t)n);
}

/* Makes the folder in a place, if it is one: 1; 0 or -errno: it is not. */
static int try_place(struct keeper *k, enum cage_layer which, const char *place,
	const char *project, int project_fd)
{
	struct keeper_protect *h = &k->protects[which];
	struct statx there = protect_look_at(project_fd), ours;
	const char *path;
	int r;

	h->folder = protect_open_place(k, place, project);
	if (h->folder < 0)
		return h->folder;
	ours = protect_look_at(h->folder);
	path = protect_path_of(h, h->folder);
	if (!path || str_path_within(path, project) || !there.stx_mnt_id ||
		there.stx_mnt_id != ours.stx_mnt_id || (*place && !is_safe(h->folder)))
		return 0;
	snprintf(h->name, sizeof(h->name), "%s%s%s", *place ? "." LEFT : "",
		which == CAGE_LAYER_GIT ? "git-hold" : "hold", *place ? k->record->run : "");
	if (*place)
		sweep(h->folder);
	r = make_work(h, project_fd);
	return r < 0 ? r : 1;
}

static int protect_refuse_place(const char *project, int project_fd, struct err *e)
{
	struct statx st;
	bool is_top = statx(project_fd, "", AT_EMPTY_PATH, 0, &st) == 0 &&
		      st.stx_attributes & STATX_ATTR_MOUNT_ROOT;

	if (is_top)
		return err_hint(e,
			err_set(e, ERR_REFUSED, EXDEV,
				"cannot protect paths of the project: '%.160s' is all of its mount, "
				"and a folder beside it is needed",
				project),
			"choose a folder in it as the project");
	return err_hint(e,
		err_set(e, ERR_REFUSED, EXDEV,
			"cannot protect paths of the project: you have no folder on the same "
			"mount outside of '%.160s'",
			project),
		"set XDG_STATE_HOME to one");
}

static int find_work(struct keeper *k, enum cage_layer which, const struct cage_source *project,
	int project_fd, struct cage_source *work, struct err *e)
{
	struct keeper_protect *h = &k->protects[which];
	struct stat st;
	int r = 0;

	for (size_t i = 0; r <= 0 && i < COUNT_OF(places); i++) {
		r = try_place(k, which, places[i], project->path, project_fd);
		/* Without the run's own folder there is no run. */
		if (r < 0 && !*places[i])
			return protect_fail(-r, e);
		if (r <= 0 && h->folder >= 0)
			close(take_fd(&h->folder));
	}
	if (r <= 0)
		return protect_refuse_place(project->path, project_fd, e);
	if (fstat(h->work, &st) < 0)
		return protect_fail(errno, e);
	*work = (struct cage_source){ .path = protect_path_of(h, h->work),
		.device = st.st_dev,
		.inode = st.st_ino,
		.tree = -1 };
	return work->path ? 0 : protect_fail(ENOMEM, e);
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
	struct statx st = protect_look_at(fd);

	if (fd < 0 || !protect_are_same(&st, same))
		return err_sys(e, fd < 0 ? -fd : ESTALE, "cannot find '%s' on its mount", path);
	return take_fd(&fd);
}

/* The folder that both are in, cloned, with the project's owner mapped to the cage's user. */
static int protect_make_tree(struct keeper_protect *h, const struct cage_ids *ids,
	const char *project, int project_fd, const char *work, struct err *e)
{
	struct statx there = protect_look_at(project_fd), ours = protect_look_at(h->work);
	size_t n = common_length(project, work);
	const char *top = n ? arena_copy(&h->arena, project, n) : "/";
	own_fd int folder = top ? file_open_real(top, O_PATH | O_DIRECTORY) : -ENOMEM;
	int r;

	if (folder < 0)
		return protect_fail(-folder, e);
	h->tree = open_tree(folder, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (h->tree < 0)
		return err_sys(e, errno, "cannot clone the mount of '%s'", project);
	r = map_tree(h->tree, ids, &there, e);
	if (r == 0)
		r = h->tree_project = open_in_tree(h->tree, project + n + 1, &there, e);
	if (r >= 0)
		r = h->tree_work = open_in_tree(h->tree, work + n + 1, &ours, e);
	return r < 0 ? r : 0;
}

static int make_hold(struct keeper *k, const struct plan_op *op, struct err *e)
{
	enum cage_layer which = cage_layer_of(op);
	size_t i = (size_t)(op - plan_ops(k->start.plan));
	const struct cage_source *source = &k->sources.items[i];
	struct cage_protect *start = &k->start.protects[which];
	struct keeper_protect *h = &k->protects[which];
	int fd = k->sources.fds[i], r;

	/* What fails here is a reason to do without, for who may. */
	k->record->failed_op = (int)i;
	r = protect_check_binds(k, which, source->path, e);
	if (r == 0)
		r = keeper_protect_find(h, k->start.plan, op, fd, e);
	if (r == 0)
		r = protect_check_targets(k, op, e);
	if (r == 0)
		r = find_work(k, which, source, fd, &start->work, e);
	if (r == 0 && k->start.ids.is_given)
		r = protect_make_tree(h, &k->start.ids, source->path, fd, start->work.path, e);
	if (r == 0)
		k->record->failed_op = -1;
	start->items = h->items;
	start->count = h->count;
	start->work.tree = h->tree;
	start->project_fd = h->tree_project;
	start->work_fd = h->tree_work;
	return r;
}

/* Makes what the cage needs to hold what is protected, if the plan wants that. */
static int keeper_protect_make(struct keeper *k, struct err *e)
{
	static const enum plan_op_kind kinds[] = { PLAN_GIT, PLAN_PROJECT };
	int r = 0;

	for (size_t i = 0; r == 0 && i < COUNT_OF(kinds); i++) {
		const struct plan_op *op = plan_find(k->start.plan, kinds[i], NULL);

		if (op && op->flags & PLAN_PROTECTS)
			r = make_hold(k, op, e);
	}
	return r;
}

static void protects_init(struct keeper *k)
{
	for (size_t i = 0; i < CAGE_LAYER_COUNT; i++)
		keeper_protect_init(&k->protects[i]);
}

static void protects_done(struct keeper *k)
{
	for (size_t i = 0; i < CAGE_LAYER_COUNT; i++)
		keeper_protect_done(&k->protects[i]);
}

const struct keeper_part keeper_protect_part = {
	.init = protects_init,
	.take = { [KEEPER_PREPARE] = keeper_protect_make },
	.wait = keeper_protect_wait,
	.hear = keeper_protect_refresh,
	.save = keeper_protect_end,
	.done = protects_done,
};
