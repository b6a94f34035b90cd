/*
 * keeper_overlay - the overlay of the root that outlives the run: taken before, saved after it.
 *
 * Runs as:  the keeper.
 * Leaves:   the overlay as the run left its root, or, where the command never ran or saving failed,
 *           as it was; and its lock with nobody.
 * Must not: let two runs have one overlay; put one where the cage can see it.
 *
 * The cage loads what is kept into a file system of its own, of the overlay's size, and hands that
 * over. It stays when the cage is gone, and is saved from there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "keeper/keeper_inside.h"

static void keeper_overlay_init(struct keeper *k)
{
	struct keeper_overlay *o = &k->overlay;

	change_overlay_init(&o->kept);
	o->loaded = -1;
	o->op = NULL;
}

static void keeper_overlay_done(struct keeper *k)
{
	struct keeper_overlay *o = &k->overlay;

	change_overlay_done(&o->kept);
	if (o->loaded >= 0)
		close(o->loaded);
	o->loaded = -1;
}

/* --- where it may be --- */

/* The folder that holds all of bawn's state, from that of this run: STATE/runs/RUN. */
static int find_state(struct keeper *k, char ret[static PATH_MAX], struct err *e)
{
	ssize_t n = file_path_of(k->q->folder, ret);

	if (n < 0)
		return err_sys(e, (int)-n, "cannot inspect the run's folder");
	for (int i = 0; i < 2; i++)
		*strrchr(ret, '/') = '\0';
	return 0;
}

static int overlay_refuse_place(
	const char *path, const char *other, const char *what, struct err *e)
{
	if (!str_path_within(path, other) && !str_path_within(other, path))
		return 0;
	return err_hint(e,
		err_set(e, ERR_REFUSED, EINVAL, "cannot use the overlay '%s': %s '%s'", path, what,
			other),
		"choose a place apart from it");
}

static int overlay_check_place(struct keeper *k, struct err *e)
{
	const char *path = k->overlay.kept.path;
	char state[PATH_MAX];
	int r = find_state(k, state, e);

	if (r == 0)
		r = overlay_refuse_place(path, state, "bawn keeps its runs in", e);
	if (r == 0)
		r = overlay_refuse_place(path, k->q->project, "the cage is shown the project", e);
	for (uint32_t i = 0; r == 0 && i < k->sources.count; i++)
		if (k->sources.items[i].path)
			r = overlay_refuse_place(
				path, k->sources.items[i].path, "the cage is shown", e);
	return r;
}

/* Finds the plan's overlay, which may be missing, where it may be. */
static int keeper_overlay_find(struct keeper *k, struct err *e)
{
	const struct plan_op *op = plan_find(k->start.plan, PLAN_OVERLAY, NULL);
	const char *from = op ? plan_str(k->start.plan, op->a) : NULL;
	struct change_overlay *o = &k->overlay.kept;
	char path[PATH_MAX], text[PLAN_TEXT_SIZE];
	int r;

	k->record->overlay = (struct record_overlay){ 0 };
	if (!op)
		return 0;
	if (!cage_fill_in(&k->start, op->a_root, from, path, sizeof(path)))
		return err_set(e, ERR_REFUSED, ENAMETOOLONG, "cannot find the overlay '%s': %s",
			plan_root_text(op->a_root, from, text),
			k->start.home ? "its path is too long" : "there is no home");
	r = change_overlay_find(o, path, e);
	return r == 0 ? overlay_check_place(k, e) : r;
}

/* --- taking it --- */

static int make_missing(struct keeper *k, const struct plan_op *op, struct err *e)
{
	struct change_overlay *o = &k->overlay.kept;

	if (!(op->flags & PLAN_CREATE))
		return err_hint(e,
			err_set(e, ERR_REFUSED, ENOENT,
				"cannot use the overlay '%s': it does not exist", o->path),
			"make it with bawn overlay init, or set root.overlay_create_if_missing: "
			"true");
	if (!op->n)
		return err_hint(e,
			err_set(e, ERR_REFUSED, ENOENT,
				"cannot make the overlay '%s': a new one needs a size", o->path),
			"set root.overlay_size, such as 5G");
	return change_overlay_create(o, op->n, e);
}

/* Makes it, if it is missing; locks it; and hands what is in it to the cage. */
static int keeper_overlay_take(struct keeper *k, struct err *e)
{
	const struct plan_op *op = plan_find(k->start.plan, PLAN_OVERLAY, NULL);
	struct change_overlay *o = &k->overlay.kept;
	char holder[RECORD_RUN_SIZE + 8];
	own_fd int tree = -1;
	int r = 0;

	if (!op)
		return 0;
	snprintf(holder, sizeof(holder), "run %s", k->record->run);
	if (o->folder < 0)
		r = make_missing(k, op, e);
	/* What was made just now is judged like any other. */
	if (r == 0)
		r = change_overlay_open(o, e);
	if (r == 0)
		r = change_overlay_take(o, holder, e);
	if (r < 0)
		return r;
	if (op->n)
		o->size = op->n;
	k->start.overlay_size = k->record->overlay.size = o->size;
	k->overlay.op = op;
	k->clock.ready_ms = KEEPER_LOAD_MS;
	tree = change_overlay_tree(o, e);
	if (tree < 0)
		return tree;
	return keeper_sources_add_overlay(
		&k->sources, &k->start, (uint32_t)(op - plan_ops(k->start.plan)), tree, e);
}

/* While the cage copies it. */
static int keeper_overlay_digest(struct keeper *k, struct err *e)
{
	if (!k->overlay.op)
		return 0;
	return change_overlay_digest(&k->overlay.kept, k->record->overlay.before, e);
}

/* Is what the cage loaded it into as large as it may be, and no larger? */
static int keeper_overlay_inspect(struct keeper *k, struct err *e)
{
	uint64_t size = (k->start.overlay_size + 4095) / 4096 * 4096;
	struct statfs fs;

	if (!k->overlay.op)
		return 0;
	if (k->overlay.loaded < 0)
		return err_set(
			e, ERR_SYS, EPROTO, "cannot save the overlay: the cage did not pass it");
	if (fstatfs(k->overlay.loaded, &fs) == 0 &&
		(uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize == size &&
		fs.f_files == plan_inodes(k->start.overlay_size))
		return 0;
	return err_set(e, ERR_REFUSED, EPERM,
		"cannot start the command: the cage was inspected from outside, and its overlay is "
		"not of the planned size");
}

/* --- saving it --- */

static void overlay_save(struct keeper *k)
{
	struct record_overlay *x = &k->record->overlay;
	struct change_overlay *o = &k->overlay.kept;
	own_fd int upper = file_open_name(k->overlay.loaded, "upper", O_RDONLY | O_DIRECTORY);
	struct statfs fs;
	int r;

	/* No process is left that could make it less. */
	if (fstatfs(k->overlay.loaded, &fs) == 0)
		x->is_full = fs.f_bavail == 0 || fs.f_ffree == 0;
	r = upper < 0 ? err_sys(&x->error, -upper, "cannot open what the run wrote")
		      : change_overlay_save(o, upper, &k->q->progress, &x->skipped, &x->error);
	x->is_saved = r == 0;
	if (r == 0)
		memcpy(x->after, o->digest, sizeof(x->after));
}

/* Saves what the run left of it; record->overlay says whether, and why not. */
static void keeper_overlay_save(struct keeper *k)
{
	if (!k->overlay.op || !k->end.has_run || k->overlay.loaded < 0)
		return;
	if (!k->end.is_left)
		overlay_save(k);
	else
		err_set(&k->record->overlay.error, ERR_SYS, EBUSY,
			"cannot save the overlay '%s': processes of the cage hang in the kernel "
			"and may still write, so it is as it was before",
			k->overlay.kept.path);
}

const struct keeper_part keeper_overlay_part = {
	.init = keeper_overlay_init,
	.take = { [KEEPER_OPEN] = keeper_overlay_find,
		[KEEPER_PREPARE] = keeper_overlay_take,
		[KEEPER_MEANWHILE] = keeper_overlay_digest,
		[KEEPER_INSPECT] = keeper_overlay_inspect },
	.save = keeper_overlay_save,
	.done = keeper_overlay_done,
};
