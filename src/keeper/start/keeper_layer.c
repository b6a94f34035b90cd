/*
 * keeper_layer - where the writes of a captured project go, and what becomes of them.
 *
 * Runs as:  the keeper.
 * Leaves:   in the run's folder `layer`, with what the run wrote, and effects.json, which says what
 *           that does to the project; neither where nothing changed.
 * Must not: write to the project; follow a link of the layer's.
 *
 * The layer is on disk, so that the work of a run that was interrupted is not lost: `bawn diff`
 * finds in it what nobody was left to write down.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"
#include "change/copy/change_copy.h"
#include "keeper/keeper_inside.h"

/* What may be captured, and what its layer is called: in the run's folder, and in the pool. */
static const struct tree {
	enum plan_op_kind kind;
	const char *link;  /* says which folder it is */
	const char *layer; /* in the run's folder, with upper and work in it */
	const char *pool;  /* its upper in the cage's own file system */
	const char *what;  /* for sentences */
} trees[CAGE_LAYER_COUNT] = {
	[CAGE_LAYER_PROJECT] = { PLAN_PROJECT, "project", "layer", "upper", "the project" },
	[CAGE_LAYER_GIT] = { PLAN_GIT, "git", "git-layer", "git-upper", "git's folder" },
};

static const struct plan_op *find_shared(const struct keeper *k, enum cage_layer which)
{
	const struct plan_op *op = plan_find(k->start.plan, trees[which].kind, NULL);

	return op && op->flags & PLAN_SHARED ? op : NULL;
}

/* Is anything captured in a session's workspace? */
static bool layer_is_shared(const struct keeper *k)
{
	return find_shared(k, CAGE_LAYER_PROJECT) || find_shared(k, CAGE_LAYER_GIT);
}

/* --- places for mounts --- */

/*
 * Some mounts need a folder or file to be mounted on, which the cage makes in the layer. They are
 * listed before the command may start, and taken out of the layer when the cage has ended, unless
 * the command put something there. Must not remove anything else.
 */

#define DEEPEST     64
#define MOST_MEMORY ((size_t)1 << 20)

struct keeper_point {
	struct keeper_point *next; /* what was found before: folders come before what is in them */
	const char *path;
	ino_t inode;
};

static int no_room(struct err *e)
{
	return err_hint(e,
		err_set(e, ERR_REFUSED, E2BIG,
			"cannot mount in the project: too many places would be made in it"),
		"create them first");
}

static int points_note(
	struct keeper_layer *l, const char *path, const struct stat *st, struct err *e)
{
	struct keeper_point *p = arena_alloc(&l->arena, sizeof(*p));

	if (!p)
		return no_room(e);
	*p = (struct keeper_point){ .next = l->points, .path = path, .inode = st->st_ino };
	l->points = p;
	return 0;
}

static int find_in(struct keeper_layer *l, int at, const char *name, const char *path, int depth,
	struct err *e)
{
	own_fd int folder = file_open_name(at, name, O_RDONLY | O_DIRECTORY);
	struct file_entries entries = { .fd = folder };
	const struct file_entry *entry;
	int r = 0;

	if (folder < 0 || depth == DEEPEST)
		return err_sys(
			e, folder < 0 ? -folder : ELOOP, "cannot inspect the layer of the project");
	while (r == 0 && (entry = file_next_entry(&entries))) {
		const char *below;
		struct stat st;

		if (str_eq(entry->name, ".") || str_eq(entry->name, ".."))
			continue;
		below = arena_printf(&l->arena, "%s%s%s", path, *path ? "/" : "", entry->name);
		if (!below)
			return no_room(e);
		if (fstatat(folder, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return err_sys(e, errno, "cannot inspect '%s'", below);
		r = points_note(l, below, &st, e);
		if (r == 0 && S_ISDIR(st.st_mode))
			r = find_in(l, folder, entry->name, below, depth + 1, e);
	}
	return r;
}

/* The cage stands and the command has not started: what is in the layer now is bawn's own. */
static int keeper_points_find(struct keeper *k, struct err *e)
{
	struct keeper_layer *l = &k->layer;
	int top = l->trees[CAGE_LAYER_PROJECT].top;
	int r = keeper_copy_list(k, e);

	/* The list of a copy has them too. */
	if (r < 0 || l->trees[CAGE_LAYER_PROJECT].is_copied ||
		l->trees[CAGE_LAYER_PROJECT].is_filled)
		return r;
	/* A session keeps them: what is in its layer is of other runs too. */
	if (l->trees[CAGE_LAYER_PROJECT].below < 0 || layer_is_shared(k))
		return 0;
	arena_init(&l->arena, MOST_MEMORY);
	return find_in(l, top >= 0 ? top : k->disk, "upper", "", 0, e);
}

/* Takes that out of the layer again. */
static void keeper_points_remove(struct keeper_layer *l, int upper)
{
	for (const struct keeper_point *p = l->points; p; p = p->next) {
		const char *name = strrchr(p->path, '/');
		own_fd int folder = -1;
		struct stat st;

		if (name) {
			char parent[4096];

			if ((size_t)(name - p->path) >= sizeof(parent))
				continue;
			memcpy(parent, p->path, (size_t)(name - p->path));
			parent[name - p->path] = '\0';
			folder = file_open_beneath(upper, parent, O_RDONLY | O_DIRECTORY, 0);
			name++;
		} else {
			folder = fcntl(upper, F_DUPFD_CLOEXEC, 3);
			name = p->path;
		}
		if (folder < 0 || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			st.st_ino != p->inode)
			continue;
		/* A folder with something in it stays; a file that was mounted over is empty. */
		if (S_ISDIR(st.st_mode) || (S_ISREG(st.st_mode) && st.st_size == 0))
			unlinkat(folder, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
	}
}

#define MOST_TEXT ((size_t)1 << 30) /* of effects.json */

static void keeper_layer_init(struct keeper *k)
{
	struct keeper_layer *l = &k->layer;

	l->folder = l->disk.kept = -1;
	for (size_t i = 0; i < CAGE_LAYER_COUNT; i++)
		l->trees[i].top = l->trees[i].below = -1;
}

static void keeper_layer_done(struct keeper *k)
{
	struct keeper_layer *l = &k->layer;
	struct err e;

	for (size_t i = 0; i < CAGE_LAYER_COUNT; i++) {
		/* The cage has been reaped; what hangs in the kernel has its layer still. */
		if (l->trees[i].is_handed && !k->end.is_left &&
			!keeper_spare_give(l->folder, trees[i].layer))
			(void)tree_remove(l->folder, trees[i].layer, &e);
		if (l->trees[i].top >= 0)
			close(l->trees[i].top);
		if (l->trees[i].below >= 0)
			close(l->trees[i].below);
		l->trees[i].top = l->trees[i].below = -1;
	}
	if (l->disk.kept >= 0)
		close(l->disk.kept);
	l->disk.kept = -1;
	arena_done(&l->arena);
	l->points = NULL;
}

/* --- before the cage is made --- */

/*
 * Whose the layer above the open folder `below` is, and its mode: root gives it to the folder's
 * owner, a team's has the team's group; -1 as an id: as it is made. 0 or -errno.
 */
static int layer_owner_of(const struct cage_ids *ids, int below, struct stat *ret)
{
	if (fstat(below, ret) < 0)
		return -errno;
	/* What is made in it has the group, as in the project. */
	ret->st_mode &= ids->is_team && ret->st_gid == ids->gid ? S_ISGID | 0777 : 0777;
	if (geteuid() != 0) {
		ret->st_uid = (uid_t)-1;
		ret->st_gid = ids->is_team ? ids->gid : (gid_t)-1;
	}
	return 0;
}

static int fail_as(const char *what, int num, struct err *e)
{
	return err_hint(e, err_sys(e, num, "cannot %s in the run's folder", what),
		"set XDG_STATE_HOME to another place");
}

static int layer_fail(int num, struct err *e)
{
	return fail_as("make a layer for the project's writes", num, e);
}

/* A folder of the layer, which belongs to whom the project belongs. */
static int layer_make_folder(int at, const char *name, const struct stat *owner)
{
	if (mkdirat(at, name, 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	return fchownat(at, name, owner->st_uid, owner->st_gid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno
											 : 0;
}

/*
 * Makes a layer with the folders that an overlay wants, or with one for a copy. What is merged
 * shows the upper's mode.
 */
static int make_top(struct keeper *k, enum cage_layer which, struct err *e)
{
	struct keeper_layer *l = &k->layer;
	const char *name = trees[which].layer;
	bool is_copied = l->trees[which].is_copied;
	struct stat owner;
	int top = -1, r = layer_owner_of(&k->start.ids, l->trees[which].below, &owner);

	if (r == 0 && !is_copied && !layer_is_shared(k)) {
		top = keeper_spare_take(l->folder, name, &owner);
		l->trees[which].is_spare = top >= 0;
		r = top == -ENOENT ? 0 : top;
	}
	l->trees[which].top = top < 0 ? -1 : top;
	if (r < 0 || top >= 0)
		return r < 0 ? layer_fail(-r, e) : 0;
	if (r == 0)
		r = layer_make_folder(l->folder, name, &owner);
	if (r == 0)
		r = top = file_open_name(l->folder, name, O_RDONLY | O_DIRECTORY);
	l->trees[which].top = top;
	if (r >= 0)
		r = layer_make_folder(top, is_copied ? "copy" : "upper", &owner);
	if (r == 0 && !is_copied)
		r = layer_make_folder(top, "work", &owner);
	if (r == 0 && !is_copied && fchmodat(top, "upper", owner.st_mode, 0) < 0)
		r = -errno;
	return r < 0 ? layer_fail(-r, e) : 0;
}

/* Deletions of folders are marked by an attribute; a file system without any cannot be used. */
static int try_attribute(int top, struct err *e)
{
	own_fd int work = file_open_name(top, "work", O_RDONLY | O_DIRECTORY);

	if (work < 0 || fsetxattr(work, KEEPER_LAYER_ATTRIBUTE, "", 0, 0) < 0)
		return fail_as("set attributes", work < 0 ? -work : errno, e);
	return 0;
}

/*
 * Since Linux 6.13 a file whose time of change was asked for gets the next one from the fine clock,
 * on file systems that take part, and no file on any of them gets an earlier one from then on. So a
 * link that is asked, changed and asked again has a time that splits those of all files on its
 * device in two. True if that came true: the time is between two looks at the fine clock, and later
 * than the ticking one, by which files are marked otherwise.
 */
static bool split_times(
	const struct keeper_layer *l, const char *link, int below, struct timespec *ret)
{
	struct timespec before, after, tick;
	struct stat st, project;

	if (fstat(below, &project) < 0 || fstatat(l->folder, link, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		st.st_dev != project.st_dev)
		return false;
	clock_gettime(CLOCK_REALTIME, &before);
	if (utimensat(l->folder, link, NULL, AT_SYMLINK_NOFOLLOW) < 0 ||
		fstatat(l->folder, link, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	clock_gettime(CLOCK_REALTIME_COARSE, &tick);
	clock_gettime(CLOCK_REALTIME, &after);
	*ret = st.st_ctim;
	return clock_is_later(ret, &tick) && !clock_is_later(&before, ret) &&
	       !clock_is_later(ret, &after);
}

/*
 * Marks the link with the time that the run began to see the folder: files of the host with a later
 * one were changed since. Without a time that splits all others that is the start of the run, and
 * the command has to wait until the ticking clock has passed it.
 */
static int mark_folder(struct keeper *k, const char *link, int below)
{
	struct keeper_layer *l = &k->layer;
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, k->record->began };
	struct timespec split;

	if (split_times(l, link, below, &split) && split.tv_nsec > 0) {
		/* What changes from here on has this time at least. */
		split.tv_nsec--;
		times[1] = split;
	} else {
		if (!times[1].tv_sec)
			clock_gettime(CLOCK_REALTIME, &times[1]);
		l->to_pass = times[1];
	}
	return utimensat(l->folder, link, times, AT_SYMLINK_NOFOLLOW);
}

/* Which folder it is, and since when: whoever finds the layer later needs both. */
static int tell_folder(struct keeper *k, enum cage_layer which, struct err *e)
{
	struct keeper_layer *l = &k->layer;
	const char *target = which == CAGE_LAYER_GIT ? k->q->git : k->q->project;
	const char *link = trees[which].link;
	struct stat st;
	bool is_new = symlinkat(target, l->folder, link) == 0;

	if ((!is_new && errno != EEXIST) ||
		(is_new && mark_folder(k, link, l->trees[which].below) < 0) ||
		fstatat(l->folder, link, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return layer_fail(errno, e);
	if (!is_new)
		l->to_pass = st.st_mtim;
	if (which == CAGE_LAYER_PROJECT)
		l->began = st.st_mtim;
	return 0;
}

static int make_on_disk(struct keeper *k, enum cage_layer which, struct err *e)
{
	struct keeper_layer *l = &k->layer;
	int r = make_top(k, which, e);

	if (r == 0 && !l->trees[which].is_spare)
		r = try_attribute(l->trees[which].top, e);
	if (r < 0)
		return r;
	return keeper_sources_add_layer(&k->sources, &k->start, which, l->trees[which].top, e);
}

static int make_layer(struct keeper *k, enum cage_layer which, struct err *e)
{
	const struct plan_op *op = plan_find(k->start.plan, trees[which].kind, NULL);
	struct keeper_layer *l = &k->layer;
	int index, below, r;

	if (!op || !(op->flags & PLAN_CAPTURED))
		return 0;
	index = (int)(op - plan_ops(k->start.plan));
	l->folder = op->flags & PLAN_SHARED ? k->q->workspace : k->q->folder;
	below = file_open_name(k->sources.fds[index], ".", O_RDONLY | O_DIRECTORY);
	if (below < 0)
		return err_set(e, ERR_REFUSED, -below, "cannot open %s '%s': %s", trees[which].what,
			k->sources.items[index].path, strerror(-below));
	l->trees[which].below = below;
	l->trees[which].is_copied = op->flags & PLAN_COPIED;
	r = tell_folder(k, which, e);
	if (r < 0 || op->flags & (PLAN_IN_POOL | PLAN_SHARED))
		return r;
	/* What fails here is a reason to capture in another way. */
	k->record->failed_op = index;
	r = op->flags & PLAN_COPIED ? make_top(k, which, e) : make_on_disk(k, which, e);
	if (r == 0)
		k->record->failed_op = -1;
	return r;
}

/* What the operator protects, each path ended with a NUL: whoever finds the layer needs it too. */
static int tell_protected(const struct keeper *k, struct err *e)
{
	own(buf) struct buf out = { .max = MOST_TEXT };

	for (size_t i = 0; i < k->q->held_count; i++)
		buf_add(&out, k->q->held[i], strlen(k->q->held[i]) + 1);
	if (!out.len && !out.failed)
		return 0;
	return record_write_file(k->layer.folder, "protect", &out, false, e);
}

/* --- in a session --- */

/* Home and /tmp, of which the sharer has to have trees too. */
static int map_kept(struct keeper *k, struct err *e)
{
	const struct plan *p = k->start.plan;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < p->op_count; i++) {
		const struct plan_op *op = &plan_ops(p)[i];

		if (op->kind == PLAN_BIND && k->sources.items[i].tree < 0 &&
			cage_tree_of_bind(op) < CAGE_TREE_COUNT)
			r = keeper_sources_map(&k->sources, &k->start, i, e);
	}
	return r;
}

int keeper_layer_make_shared(struct keeper *k, struct err *e)
{
	int r = layer_is_shared(k) ? tell_protected(k, e) : 0;

	if (r == 0)
		r = map_kept(k, e);
	for (enum cage_layer which = 0; r == 0 && which < CAGE_LAYER_COUNT; which++) {
		const struct plan_op *op = find_shared(k, which);

		if (!op)
			continue;
		k->record->failed_op = (int)(op - plan_ops(k->start.plan));
		r = keeper_sources_map(&k->sources, &k->start, (uint32_t)k->record->failed_op, e);
		if (r == 0)
			r = make_on_disk(k, which, e);
	}
	if (r == 0)
		k->record->failed_op = -1;
	return r;
}

int keeper_layer_open_shared(struct keeper *k, struct err *e)
{
	for (enum cage_layer which = 0; which < CAGE_LAYER_COUNT; which++) {
		int *top = &k->layer.trees[which].top;

		if (!find_shared(k, which) || *top >= 0)
			continue;
		*top = file_open_name(k->q->workspace, trees[which].layer, O_RDONLY | O_DIRECTORY);
		if (*top < 0)
			return err_sys(e, -*top, "cannot open the session's layer");
	}
	return 0;
}

int keeper_layer_join(struct keeper *k, struct err *e)
{
	struct keeper_layer *l = &k->layer;

	for (enum cage_layer which = 0; which < CAGE_LAYER_COUNT; which++) {
		const char *path = which == CAGE_LAYER_GIT ? k->q->git : k->q->project;
		int r;

		if (!find_shared(k, which) || !path)
			continue;
		l->folder = k->q->workspace;
		l->trees[which].below = file_open(path, O_RDONLY | O_DIRECTORY);
		r = l->trees[which].below;
		if (r < 0)
			return err_set(e, ERR_REFUSED, -r, "cannot open %s '%s': %s",
				trees[which].what, path, strerror(-r));
		r = tell_folder(k, which, e);
		if (r < 0)
			return r;
	}
	return keeper_layer_open_shared(k, e);
}

/* Makes the layer, if the plan wants one in the run's folder. */
static int keeper_layer_make(struct keeper *k, struct err *e)
{
	int r = 0;

	for (enum cage_layer which = 0; r == 0 && which < CAGE_LAYER_COUNT; which++)
		r = make_layer(k, which, e);
	if (r == 0 && k->layer.folder >= 0 && !layer_is_shared(k))
		r = tell_protected(k, e);
	return r == 0 && k->q->workspace >= 0 ? keeper_member_join(k, e) : r;
}

/* --- when the cage has ended --- */

/* Was nothing written to it? */
static bool layer_is_spare(const struct keeper *k, enum cage_layer which)
{
	const struct keeper_layer *l = &k->layer;

	return l->trees[which].is_empty && !l->trees[which].is_copied &&
	       !l->trees[which].is_filled && k->large.mounts < 0;
}

/* There is nothing in them that anybody would miss: what is as new is handed on. */
static void remove_layers(struct keeper *k, struct err *e)
{
	struct keeper_layer *l = &k->layer;
	bool has_written = false;
	int r = 0;

	for (enum cage_layer i = 0; r == 0 && i < CAGE_LAYER_COUNT; i++) {
		has_written |= l->trees[i].below >= 0 && !l->trees[i].is_empty;
		/* Its mount goes with the last process, which is not awaited here. */
		l->trees[i].is_handed = l->trees[i].top >= 0 && layer_is_spare(k, i);
		if (l->trees[i].top >= 0 && !l->trees[i].is_handed)
			r = tree_remove(l->folder, trees[i].layer, e);
	}
	if (r == 0 && has_written)
		tree_remove(l->folder, "base", e);
}

static void layer_count(const struct change_effects *x, struct record_effects *ret)
{
	struct change_sum sum;

	change_sum_up(x, &sum);
	ret->is_known = true;
	ret->added = sum.added;
	ret->changed = sum.changed;
	ret->deleted = sum.deleted;
	ret->renamed = sum.renamed;
	ret->held = sum.held;
	memcpy(ret->digest, x->digest, sizeof(ret->digest));
}

/* Most runs write nothing to the project. */
static bool has_nothing(int folder)
{
	struct file_entries entries = { .fd = folder };
	const struct file_entry *entry;

	while ((entry = file_next_entry(&entries)))
		if (!str_eq(entry->name, ".") && !str_eq(entry->name, ".."))
			return false;
	return entries.failure == 0;
}

/* What was captured in memory goes where it would have been captured on disk. */
static int layer_save(struct keeper *k, enum cage_layer which, int upper, struct err *e)
{
	struct keeper_layer *l = &k->layer;
	struct tree_options options = { .opens_up = true };
	own_fd int saved = -1;
	int r = make_top(k, which, e);

	if (r < 0)
		return r;
	saved = file_open_name(l->trees[which].top, "upper", O_RDONLY | O_DIRECTORY);
	return saved < 0 ? layer_fail(-saved, e) : tree_copy(upper, saved, &options, e);
}

/* Opens what the run wrote. A descriptor or -errno; *ret_is_empty: it wrote nothing. */
static int open_upper(struct keeper *k, enum cage_layer which, bool *ret_is_empty, struct err *e)
{
	struct keeper_layer *l = &k->layer;
	bool is_saved = l->trees[which].top >= 0;
	own_fd int upper = -1;
	int r = 0;

	/* What was done to a copy is what was written. */
	if (l->trees[which].is_copied || l->trees[which].is_filled)
		r = change_copy_finish(l->trees[which].top, &k->q->progress, e);
	if (r < 0)
		return r;
	upper = file_open_name(is_saved ? l->trees[which].top : k->disk,
		is_saved ? "upper" : trees[which].pool, O_RDONLY | O_DIRECTORY);
	if (upper < 0)
		return err_sys(e, -upper, "cannot open the run's layer");
	if (which == CAGE_LAYER_PROJECT)
		keeper_points_remove(l, upper);
	*ret_is_empty = l->trees[which].is_empty = has_nothing(upper);
	if (is_saved || *ret_is_empty)
		return take_fd(&upper);
	r = layer_save(k, which, upper, e);
	return r < 0 ? r : file_open_name(l->trees[which].top, "upper", O_RDONLY | O_DIRECTORY);
}

/* What texts were, for whoever merges later; -1: without. */
static int layer_open_base(const struct keeper_layer *l)
{
	if (mkdirat(l->folder, "base", 0700) < 0 && errno != EEXIST)
		return -1;
	return file_open_name(l->folder, "base", O_RDONLY | O_DIRECTORY);
}

/* Keeps what was written, and finds out what that does to the project and to its git. */
static int layer_scan(struct keeper *k, struct change_effects *ret, struct err *e)
{
	struct keeper_layer *l = &k->layer;
	bool is_empty[CAGE_LAYER_COUNT] = { true, true };
	bool has_git = l->trees[CAGE_LAYER_GIT].below >= 0;
	own_fd int upper = open_upper(k, CAGE_LAYER_PROJECT, &is_empty[CAGE_LAYER_PROJECT], e);
	own_fd int git = upper >= 0 && has_git
				 ? open_upper(k, CAGE_LAYER_GIT, &is_empty[CAGE_LAYER_GIT], e)
				 : -1;
	own_fd int base = -1;
	const struct change_git_tops tops = { git, l->trees[CAGE_LAYER_GIT].below };
	struct change_scan q = { .layer = upper,
		.below = l->trees[CAGE_LAYER_PROJECT].below,
		.git = has_git ? &tops : NULL,
		.began = l->began,
		.held = k->q->held,
		.held_count = k->q->held_count,
		.progress = k->q->progress };

	if (upper < 0 || (has_git && git < 0))
		return upper < 0 ? upper : git;
	if ((!is_empty[CAGE_LAYER_PROJECT] || !is_empty[CAGE_LAYER_GIT]) && !layer_is_shared(k))
		base = layer_open_base(l);
	/* By it is seen that there is something to apply. */
	if (!is_empty[CAGE_LAYER_GIT] && l->trees[CAGE_LAYER_PROJECT].top < 0) {
		int r = make_top(k, CAGE_LAYER_PROJECT, e);

		if (r < 0)
			return r;
	}
	q.base = base;
	return change_scan(&q, ret, e);
}

/* What the overlay kept for itself is of no use to anybody, and nobody may enter it. */
static void remove_work(struct keeper_layer *l, struct err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < CAGE_LAYER_COUNT; i++)
		if (l->trees[i].top >= 0)
			r = tree_remove(l->trees[i].top, "work", e);
}

static int layer_find_effects(struct keeper *k, struct err *e)
{
	own(buf) struct buf out = { .max = MOST_TEXT };
	own(change_effects) struct change_effects x;
	int r;

	change_effects_init(&x);
	r = layer_scan(k, &x, e);
	if (r < 0)
		return r;
	layer_count(&x, &k->record->effects);
	k->record->used.written = 0;
	for (size_t i = 0; i < x.count; i++)
		k->record->used.written += (int64_t)x.items[i].after.size;
	keeper_log_held(k, &x);
	if (x.count == 0) {
		remove_layers(k, &k->record->late);
		return 0;
	}
	remove_work(&k->layer, &k->record->late);
	change_effects_print(&x, NULL, NULL, &out);
	if (!out.failed)
		sha256_hex(out.data, out.len, k->record->effects.file);
	return record_write_file(k->layer.folder, "effects.json", &out, false, e);
}

/*
 * What the session has done by now, if that can be said: others may be writing. bawn session diff
 * tells it at any time.
 */
static void find_shared_effects(struct keeper *k)
{
	own(change_effects) struct change_effects x;
	struct err e;

	change_effects_init(&x);
	if (layer_scan(k, &x, &e) < 0)
		return;
	layer_count(&x, &k->record->effects);
	keeper_log_held(k, &x);
}

/*
 * The cage has ended: finds out what it changed, and keeps that; or, if the command never ran,
 * removes the layer. What goes wrong is in the record.
 */
static void keeper_layer_save(struct keeper *k)
{
	struct keeper_layer *l = &k->layer;
	struct err *e = &k->record->effects.error;

	if (l->folder < 0)
		return;
	/* What others of the session wrote is in it too, and stays for those that come. */
	if (layer_is_shared(k)) {
		if (k->end.has_run && !k->end.is_left)
			find_shared_effects(k);
		return;
	}
	/* What is short is not told, however long the run was. */
	change_progress_end(&k->q->progress);
	if (!k->end.has_run) {
		remove_layers(k, &k->record->late);
	} else if (k->end.is_left) {
		err_set(e, ERR_SYS, EBUSY,
			"cannot find out what the run changed: its processes hang in the kernel");
		err_hint(e, 0, "bawn diff shows it once they have ended");
	} else {
		k->record->effects.error.kind = ERR_NONE;
		layer_find_effects(k, e);
	}
}

const struct keeper_part keeper_layer_part = {
	.init = keeper_layer_init,
	.take = { [KEEPER_PREPARE] = keeper_layer_make, [KEEPER_INSPECTED] = keeper_points_find },
	.save = keeper_layer_save,
	.done = keeper_layer_done,
};
