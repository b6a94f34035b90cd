/*
 * keep_layer - where the writes of a captured project go, and what becomes of them.
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
#include "keep/keep_inside.h"

void keep_layer_init(struct keep_layer *l)
{
	l->folder = l->top = l->below = -1;
}

void keep_layer_done(struct keep_layer *l)
{
	int *const fds[] = { &l->top, &l->below };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

/* --- before the cage is made --- */

static int fail(int num, struct err *e)
{
	return err_set(e, ERR_SYS, num,
		"cannot make a layer for the project's writes in the run's folder: %s; "
		"XDG_STATE_HOME can name another place",
		strerror(num));
}

/* A folder of the layer, which belongs to whom the project belongs. */
static int make_folder(int at, const char *name, const struct stat *owner)
{
	if (mkdirat(at, name, 0755) < 0)
		return -errno;
	if (geteuid() == 0 &&
		fchownat(at, name, owner->st_uid, owner->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

/* Makes `layer` with the folders that an overlay wants; what is merged shows the upper's mode. */
static int make_top(struct keep_layer *l, struct err *e)
{
	struct stat project;
	int r = fstat(l->below, &project) < 0 ? -errno : make_folder(l->folder, "layer", &project);

	if (r == 0)
		r = l->top = file_open_name(l->folder, "layer", O_RDONLY | O_DIRECTORY);
	if (r >= 0)
		r = make_folder(l->top, "upper", &project);
	if (r == 0)
		r = make_folder(l->top, "work", &project);
	if (r == 0 && fchmodat(l->top, "upper", project.st_mode & 0777, 0) < 0)
		r = -errno;
	return r < 0 ? fail(-r, e) : 0;
}

/* Deletions of folders are marked by an attribute; a file system without any cannot be used. */
static int try_attribute(const struct keep_layer *l, struct err *e)
{
	own_fd int work = file_open_name(l->top, "work", O_RDONLY | O_DIRECTORY);

	if (work < 0 || fsetxattr(work, "user.bawn", "", 0, 0) < 0)
		return err_set(e, ERR_SYS, work < 0 ? -work : errno,
			"the file system of the run's folder has no attributes, which capturing the "
			"project's writes takes: %s; XDG_STATE_HOME can name another place",
			strerror(work < 0 ? -work : errno));
	return 0;
}

/* Which project it is, and since when: whoever finds the layer later needs both. */
static int tell_project(struct keeper *k, struct err *e)
{
	struct keep_layer *l = &k->layer;
	struct stat st;

	if ((symlinkat(k->q->project, l->folder, "project") < 0 && errno != EEXIST) ||
		fstatat(l->folder, "project", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(errno, e);
	l->began = st.st_mtim;
	return 0;
}

static int make_on_disk(struct keeper *k, struct err *e)
{
	struct keep_layer *l = &k->layer;
	int r = make_top(l, e);

	if (r == 0)
		r = try_attribute(l, e);
	return r == 0 ? keep_sources_add_layer(&k->sources, &k->start, l->top, e) : r;
}

int keep_layer_make(struct keeper *k, struct err *e)
{
	const struct plan_op *op = plan_find_captured(k->start.plan);
	struct keep_layer *l = &k->layer;
	int index, r;

	if (!op)
		return 0;
	index = (int)(op - plan_ops(k->start.plan));
	l->folder = k->q->open_folder(k->q->of, e);
	if (l->folder < 0)
		return l->folder;
	l->below = file_open_name(k->sources.fds[index], ".", O_RDONLY | O_DIRECTORY);
	if (l->below < 0)
		return err_set(e, ERR_REFUSED, -l->below, "cannot open the project '%s': %s",
			k->q->project, strerror(-l->below));
	r = tell_project(k, e);
	if (r < 0 || op->flags & PLAN_IN_POOL)
		return r;
	/* What fails here is a reason to capture in another way. */
	k->record->failed_op = index;
	r = make_on_disk(k, e);
	if (r == 0)
		k->record->failed_op = -1;
	return r;
}

/* --- when the cage has ended --- */

static void remove_layer(struct keep_layer *l, struct err *e)
{
	if (tree_remove(l->folder, "layer", e) == 0)
		tree_remove(l->folder, "base", e);
}

/* Most runs write nothing to the project. */
static bool is_empty(int folder)
{
	struct file_entries entries = { .fd = folder };
	const struct file_entry *entry;

	while ((entry = file_next_entry(&entries)))
		if (!str_eq(entry->name, ".") && !str_eq(entry->name, ".."))
			return false;
	return entries.failure == 0;
}

/* What was captured in memory goes where it would have been captured on disk. */
static int save(struct keeper *k, int upper, struct err *e)
{
	struct keep_layer *l = &k->layer;
	struct tree_options options = { .opens_up = true };
	own_fd int saved = -1;
	int r = make_top(l, e);

	if (r < 0)
		return r;
	saved = file_open_name(l->top, "upper", O_RDONLY | O_DIRECTORY);
	return saved < 0 ? fail(-saved, e) : tree_copy(upper, saved, &options, e);
}

/* Opens what the run wrote. A descriptor or -errno; *ret_is_empty: it wrote nothing. */
static int open_upper(struct keeper *k, bool *ret_is_empty, struct err *e)
{
	struct keep_layer *l = &k->layer;
	bool is_saved = l->top >= 0;
	own_fd int upper =
		file_open_name(is_saved ? l->top : k->disk, "upper", O_RDONLY | O_DIRECTORY);
	int r;

	if (upper < 0)
		return err_set(
			e, ERR_SYS, -upper, "cannot open the run's layer: %s", strerror(-upper));
	*ret_is_empty = is_empty(upper);
	if (is_saved || *ret_is_empty)
		return take_fd(&upper);
	r = save(k, upper, e);
	return r < 0 ? r : file_open_name(l->top, "upper", O_RDONLY | O_DIRECTORY);
}

/* Keeps what was written; nothing stays of a layer in which there is nothing. */
static void keep_layer(struct keeper *k, struct err *e)
{
	bool wrote_nothing = false;
	own_fd int upper = open_upper(k, &wrote_nothing, e);

	if (upper >= 0 && wrote_nothing)
		remove_layer(&k->layer, &k->record->late);
}

void keep_layer_end(struct keeper *k, bool has_run, bool is_gone)
{
	struct keep_layer *l = &k->layer;
	struct err *e = &k->record->effects.error;

	if (l->below < 0)
		return;
	if (!has_run) {
		remove_layer(l, &k->record->late);
	} else if (!is_gone) {
		err_set(e, ERR_SYS, EBUSY,
			"processes of the cage hang in the kernel and may still write: what the "
			"run changed is told by bawn diff once they have ended");
	} else {
		k->record->effects.error.kind = ERR_NONE;
		keep_layer(k, e);
	}
}
