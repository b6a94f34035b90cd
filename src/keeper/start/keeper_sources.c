/*
 * keeper_sources - opens what the operator declared, once, and lets nothing else take its place.
 *
 * Runs as: the keeper, before the clone.
 * Leaves:  for every operation with a source its real path and what is there; for root also a
 *          detached tree in which files of the owner of its top are those of the cage's user, and
 *          what the cage writes is that owner's: the operator's files keep their owner.
 *
 * A name may lead elsewhere from one moment to the next. So it is followed here and nowhere else;
 * what it led to is approved; and the cage opens that, by a path without links, or gets the tree.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "keeper/keeper_inside.h"
#include "spec/spec_grammar.h"

/* One source that is to be opened. */
struct opening {
	const struct cage_start *start;
	const struct keeper_request *q; /* NULL: nothing of bawn's is opened */
	enum plan_root root;
	const char *path; /* below it */
	const char *text; /* both, for people */
	char room[PLAN_TEXT_SIZE];
	/* Of what was opened: its path, or "" where only the kernel knows that. */
	char real[PATH_MAX];
};

/* Which operations have a source that the cage is shown? The overlay is loaded instead. */
static bool has_source(const struct plan_op *op)
{
	return op->kind == PLAN_BIND || op->kind == PLAN_PROJECT || op->kind == PLAN_GIT ||
	       op->kind == PLAN_IMAGE;
}

static bool sources_is_declared(const struct plan_op *op)
{
	return plan_roots[op->a_root].owner == PLAN_OWNER_OPERATOR;
}

static void find_source(struct opening *ret, const struct cage_start *start,
	const struct keeper_request *q, const struct plan_op *op)
{
	ret->start = start;
	ret->q = q;
	ret->root = op->a_root;
	ret->path = plan_str(start->plan, op->a);
	ret->text = plan_root_text(ret->root, ret->path, ret->room);
	ret->real[0] = '\0';
}

/* What somebody declared by its name. */
static int open_declared(struct opening *o, struct err *e)
{
	char path[PATH_MAX];
	own_fd int project = -1;
	bool is_real = false;
	int fd;

	if (!cage_fill_in(o->start, o->root, o->path, path, sizeof(path)))
		return err_set(e, ERR_REFUSED, ENAMETOOLONG, "cannot open '%s': %s", o->text,
			o->start->home ? "its path is too long" : "there is no home");
	if (o->root == PLAN_ROOT_PROJECT && !spec_climbs(o->path)) {
		/* Resolved when the spec was read; from there on no link leads out. */
		project = file_open_real(o->start->project, O_PATH | O_DIRECTORY);
		is_real = !*o->path;
		fd = project < 0 || !*o->path ? take_fd(&project)
					      : file_open_inside(project, o->path + 1, O_PATH);
	} else if (o->root == PLAN_ROOT_GIT) {
		fd = file_open_real(path, O_PATH | O_DIRECTORY);
	} else {
		fd = file_open_told(path, O_PATH, &is_real);
	}
	if (fd == -EXDEV)
		return err_set(e, ERR_REFUSED, EXDEV,
			"cannot show '%s' in the cage: it leads out of the project", path);
	/* What only a kernel without openat2 says is for the host to explain. */
	if (fd < 0)
		return err_set(e, fd == -ENOSYS ? ERR_SYS : ERR_REFUSED, -fd,
			"cannot show '%s' in the cage: %s", path, strerror(-fd));
	if (is_real)
		memcpy(o->real, path, strlen(path) + 1);
	return fd;
}

/* What a session keeps is ours, and what is in it a stranger's. */
static int sources_open_kept(struct opening *o, struct err *e)
{
	const char *name = strrchr(plan_roots[o->root].name, '/') + 1;
	int workspace = o->q->workspace;
	int fd = workspace < 0 ? -ENOENT : file_open_name(workspace, name, O_PATH | O_DIRECTORY);

	return fd < 0 ? err_set(e, ERR_REFUSED, -fd, "cannot open the session's %s: %s", name,
				strerror(-fd))
		      : fd;
}

/* The program that runs, by no name at all: another may have taken its place. */
static int open_own_program(struct opening *o, struct err *e)
{
	own_fd int fd = file_open("/proc/self/exe", O_PATH);
	struct stat st;

	(void)o;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, fd < 0 ? -fd : errno, "cannot open bawn's own program");
	if (st.st_nlink == 0)
		return err_hint(e,
			err_set(e, ERR_REFUSED, ESTALE,
				"cannot show bawn's own program in the cage: it was replaced since "
				"it started"),
			"start it again");
	return take_fd(&fd);
}

static int open_told(struct opening *o, struct err *e)
{
	int fd = file_open_name(o->q->folder, KEEPER_TOLD, O_PATH);

	return fd < 0 ? err_sys(e, -fd, "cannot open the run's socket") : fd;
}

static int sources_open_source(struct opening *o, struct err *e)
{
	static int (*const openers[PLAN_ROOT_COUNT])(struct opening * o, struct err * e) = {
		[PLAN_ROOT_NONE] = open_declared,
		[PLAN_ROOT_HOME] = open_declared,
		[PLAN_ROOT_PROJECT] = open_declared,
		[PLAN_ROOT_GIT] = open_declared,
		[PLAN_ROOT_SESSION_HOME] = sources_open_kept,
		[PLAN_ROOT_SESSION_TMP] = sources_open_kept,
		[PLAN_ROOT_BAWN] = open_own_program,
		[PLAN_ROOT_TOLD] = open_told,
	};

	return openers[o->root](o, e);
}

#define WANTED_FACTS (STATX_TYPE | STATX_MODE | STATX_INO | STATX_MNT_ID)

/*
 * What a descriptor is called, and what it is; its links are all followed by now. `real` is its
 * path, or "": then the kernel is asked.
 */
static int sources_find_path(struct keeper_sources *s, int fd, const char *from, const char *real,
	struct cage_source *ret, struct keeper_source_facts *ret_facts, struct err *e)
{
	char path[PATH_MAX];
	struct statx st;
	ssize_t n = *real ? (ssize_t)strlen(real) : file_path_of(fd, path);

	if (n >= 0 && statx(fd, "", AT_EMPTY_PATH, WANTED_FACTS, &st) < 0)
		n = -errno;
	if (n < 0)
		return err_sys(e, (int)-n, "cannot inspect '%s'", from);
	ret->path = arena_copy(&s->arena, *real ? real : path, (size_t)n);
	ret->device = makedev(st.stx_dev_major, st.stx_dev_minor);
	ret->inode = st.stx_ino;
	*ret_facts = (struct keeper_source_facts){
		.mode = st.stx_mode,
		.mount = st.stx_mask & STATX_MNT_ID ? st.stx_mnt_id : 0,
	};
	return ret->path ? 0
			 : err_set(e, ERR_SYS, ENOMEM,
				   "cannot show '%s' in the cage: out of memory", from);
}

/* Most sources have one owner, and so one map is enough; a second one ends the first. */
static int find_idmap(
	struct keeper_sources *s, const struct cage_start *start, int source, struct err *e)
{
	struct stat st;

	if (fstat(source, &st) < 0)
		return err_sys(e, errno, "cannot inspect a source");
	if (s->map.fd >= 0 && s->map.uid == st.st_uid && s->map.gid == st.st_gid)
		return 0;
	cage_idmap_done(&s->map);
	return cage_idmap_make(&s->map, &start->ids, st.st_uid, st.st_gid, e);
}

static int clone_tree(int fd, const char *path, struct err *e)
{
	int tree = open_tree(
		fd, "", AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	return tree < 0 ? err_sys(e, errno, "cannot clone the mount of '%s'", path) : tree;
}

static int sources_make_tree(struct keeper_sources *s, const struct cage_start *start, int fd,
	const char *path, struct err *e)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP };
	own_fd int tree = -1;
	int r = find_idmap(s, start, fd, e);

	if (r < 0)
		return r;
	attr.userns_fd = (unsigned)s->map.fd;
	tree = clone_tree(fd, path, e);
	if (tree < 0)
		return tree;
	if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) == 0)
		return take_fd(&tree);
	/* EINVAL is what a file system says that cannot; the rest is the host's to explain. */
	return err_hint(e,
		err_set(e, errno == EINVAL ? ERR_REFUSED : ERR_SYS, errno,
			"cannot show '%s' with its owner mapped to the cage's user: %s", path,
			strerror(errno)),
		"its file system may not support that, and an ordinary user does not need it");
}

int keeper_sources_map(
	struct keeper_sources *s, const struct cage_start *start, uint32_t i, struct err *e)
{
	const struct plan_op *op = &plan_ops(start->plan)[i];
	int r;

	if (!start->ids.is_given)
		return 0;
	s->items[i].tree = sources_make_tree(s, start, s->fds[i], s->items[i].path, e);
	r = s->items[i].tree < 0 ? s->items[i].tree : 0;
	/* What its file system refuses, a copy may have. */
	if (r < 0 && e->kind == ERR_REFUSED && op->flags & PLAN_CAPTURED) {
		e->kind = ERR_SYS;
		s->unmapped = (int)i;
	}
	return r;
}

/* Read-only says nothing about who may talk to a socket or into a pipe. */
static int refuse_talkers(mode_t mode, const char *path, struct err *e)
{
	if (!S_ISSOCK(mode) && !S_ISFIFO(mode))
		return 0;
	return err_hint(e,
		err_set(e, ERR_REFUSED, EPERM,
			"cannot show '%s' read-only: it is a socket or a pipe, and a cage could "
			"send to it",
			path),
		"if that is meant, bind it with :rw");
}

static bool sources_is_of_session(const struct plan_op *op)
{
	return op->kind == PLAN_PROJECT || cage_tree_of_bind(op) < CAGE_TREE_COUNT;
}

/*
 * Bawn's program and the socket belong to whom they belong: a map is not needed, and the program's
 * file system may have none. But what leads there may be closed to the id that root's cages have.
 */
static int clone_own(
	struct keeper_sources *s, const struct cage_start *start, uint32_t i, struct err *e)
{
	if (!start->ids.is_given)
		return 0;
	s->items[i].tree = clone_tree(s->fds[i], s->items[i].path, e);
	return s->items[i].tree < 0 ? s->items[i].tree : 0;
}

/* Is it fit to be shown? Whether it may be is asked later: keeper_shown. */
static int judge_source(
	struct keeper_sources *s, uint32_t i, const struct opening *o, struct err *e)
{
	const struct plan_op *op = &plan_ops(o->start->plan)[i];
	int r = 0;

	switch (plan_roots[o->root].owner) {
	case PLAN_OWNER_OPERATOR:
		if (op->flags & PLAN_READ_ONLY)
			r = refuse_talkers(s->facts[i].mode, s->items[i].path, e);
		return r;
	case PLAN_OWNER_BAWN:
		return clone_own(s, o->start, i, e);
	case PLAN_OWNER_CAGE:
		break;
	}
	return 0;
}

static int make_source(struct keeper_sources *s, uint32_t i, const struct cage_start *start,
	const struct keeper_request *q, struct err *e)
{
	const struct plan_op *op = &plan_ops(start->plan)[i];
	struct opening o;
	bool is_late;
	int r;

	s->fds[i] = s->items[i].tree = -1;
	/* A cage that is made before its session is known. */
	if (!has_source(op) || (start->is_warm && q->workspace < 0 && sources_is_of_session(op)))
		return 0;
	find_source(&o, start, q, op);
	s->fds[i] = keeper_state_of(start->plan, i) ? take_fd(&s->given[i])
						    : sources_open_source(&o, e);
	r = s->fds[i];
	if (r >= 0)
		r = sources_find_path(s, s->fds[i], o.text, o.real, &s->items[i], &s->facts[i], e);
	if (r == 0)
		r = judge_source(s, i, &o, e);
	/* What is copied needs no tree: its copy does. And what is shared is mounted by another. */
	is_late =
		cage_tree_of_bind(op) < CAGE_TREE_COUNT && plan_find(start->plan, PLAN_AWAIT, NULL);
	if (r == 0 && op->flags & PLAN_IDMAPPED && !is_late &&
		!(op->flags & (PLAN_COPIED | PLAN_SHARED)))
		r = keeper_sources_map(s, start, i, e);
	return r;
}

const char *keeper_state_of(const struct plan *p, uint32_t i)
{
	const struct plan_op *op = &plan_ops(p)[i];

	return has_source(op) && op->a_root == PLAN_ROOT_STATE ? plan_str(p, op->a) + 1 : NULL;
}

static void keeper_sources_init(struct keeper *k)
{
	struct keeper_sources *s = &k->sources;

	s->unmapped = -1;
	s->count = 0;
	cage_idmap_init(&s->map);
	for (size_t i = 0; i < CAGE_LAYER_COUNT; i++)
		s->layers[i] = (struct cage_source){ .tree = -1 };
}

static int sources_make(struct keeper_sources *ret, const struct cage_start *start,
	const struct keeper_request *q, struct err *e)
{
	uint32_t n = start->plan->op_count;
	int r = 0;

	arena_init(&ret->arena, PLAN_MAX_SIZE * 2);
	ret->items = arena_array(&ret->arena, n, sizeof(*ret->items));
	ret->facts = arena_array(&ret->arena, n, sizeof(*ret->facts));
	ret->fds = arena_array(&ret->arena, n, sizeof(*ret->fds));
	if (!ret->items || !ret->facts || !ret->fds)
		return err_set(e, ERR_SYS, ENOMEM, "cannot open the plan's sources: out of memory");
	for (; r == 0 && ret->count < n; ret->count++)
		r = make_source(ret, ret->count, start, q, e);
	return r;
}

bool keeper_sources_are_current(const struct keeper_sources *s, const struct cage_start *start)
{
	for (uint32_t i = 0; i < s->count; i++) {
		const struct plan_op *op = &plan_ops(start->plan)[i];
		own_fd int fd = -1;
		struct opening o;
		struct stat st;

		/* Our own program is the one that we are. */
		if (!has_source(op) || !sources_is_declared(op) || sources_is_of_session(op))
			continue;
		find_source(&o, start, NULL, op);
		fd = open_declared(&o, NULL);
		if (fd < 0 || fstat(fd, &st) < 0 || st.st_dev != s->items[i].device ||
			st.st_ino != s->items[i].inode)
			return false;
	}
	return true;
}

/* Opens what a session has, once there is one; until then they are not there. */
static int sources_make_late(struct keeper_sources *s, const struct cage_start *start,
	const struct keeper_request *q, struct err *e)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < s->count; i++)
		if (sources_is_of_session(&plan_ops(start->plan)[i]))
			r = make_source(s, i, start, q, e);
	return r;
}

/* A folder of ours, and for root a tree in which it is the cage's. */
static int sources_add_folder(struct keeper_sources *s, const struct cage_start *start, int fd,
	const char *what, struct cage_source *ret, struct keeper_source_facts *ret_facts,
	struct err *e)
{
	int r = sources_find_path(s, fd, what, "", ret, ret_facts, e);

	if (r == 0 && start->ids.is_given) {
		ret->tree = sources_make_tree(s, start, fd, ret->path, e);
		r = ret->tree < 0 ? ret->tree : 0;
	}
	return r;
}

int keeper_sources_add_layer(struct keeper_sources *s, struct cage_start *start,
	enum cage_layer which, int fd, struct err *e)
{
	struct keeper_source_facts unused;
	int r = sources_add_folder(s, start, fd, "the run's layer", &s->layers[which], &unused, e);

	start->layers[which] = s->layers[which];
	return r;
}

void keeper_sources_take_layer(
	struct keeper_sources *s, struct cage_start *start, enum cage_layer which, int tree)
{
	if (s->layers[which].tree >= 0)
		close(s->layers[which].tree);
	s->layers[which] = (struct cage_source){ .path = "", .tree = tree };
	start->layers[which] = s->layers[which];
}

int keeper_sources_add_overlay(
	struct keeper_sources *s, const struct cage_start *start, uint32_t i, int fd, struct err *e)
{
	return sources_add_folder(s, start, fd, "the overlay", &s->items[i], &s->facts[i], e);
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int keeper_sources_replace(
	struct keeper_sources *s, const struct cage_start *start, uint32_t i, int fd, struct err *e)
{
	close_one(&s->fds[i]);
	s->fds[i] = fd;
	return sources_add_folder(s, start, fd, "the copy", &s->items[i], &s->facts[i], e);
}

/* Closes what is open; the names stay. */
static void sources_close(struct keeper_sources *s)
{
	file_close_all(s->fds, s->count);
	for (uint32_t i = 0; i < s->count; i++)
		close_one(&s->items[i].tree);
	for (size_t i = 0; i < CAGE_LAYER_COUNT; i++)
		close_one(&s->layers[i].tree);
	cage_idmap_done(&s->map);
}

static void keeper_sources_done(struct keeper *k)
{
	struct keeper_sources *s = &k->sources;

	sources_close(s);
	arena_done(&s->arena);
	s->count = 0;
}

/* --- as a part of the keeper --- */

const char *keeper_shown(const struct keeper *k, uint32_t i)
{
	const struct plan *p = k->start.plan;

	if (plan_ops(p)[i].kind == PLAN_OVERLAY)
		return k->overlay.kept.path[0] ? k->overlay.kept.path : NULL;
	/* What a warm cage shows was approved when it was made, but for what its session brings. */
	if (!k->sources.count ||
		(k->mode == KEEPER_WARM && !sources_is_of_session(&plan_ops(p)[i])))
		return NULL;
	return has_source(&plan_ops(p)[i]) && sources_is_declared(&plan_ops(p)[i])
		       ? k->sources.items[i].path
		       : NULL;
}

static int keeper_sources_open(struct keeper *k, struct err *e)
{
	int r = k->mode == KEEPER_WARM ? sources_make_late(&k->sources, &k->start, k->q, e)
				       : sources_make(&k->sources, &k->start, k->q, e);

	k->record->failed_op = k->sources.unmapped;
	k->start.sources = k->sources.items;
	return r;
}

static int keeper_sources_close(struct keeper *k, struct err *e)
{
	(void)e;
	sources_close(&k->sources);
	return 0;
}

const struct keeper_part keeper_sources_part = {
	.init = keeper_sources_init,
	.take = { [KEEPER_OPEN] = keeper_sources_open, [KEEPER_MEANWHILE] = keeper_sources_close },
	.done = keeper_sources_done,
};
