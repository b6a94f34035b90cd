#pragma once

#include "base/arena.h"
#include "cage/cage.h"
#include "keep/keep.h"
#include "work/work_overlay.h"

/*
 * Where what the command writes goes: layers of a captured project and how much they take, copies,
 * the overlay of a root, and what is protected in a writable project.
 */
struct keeper;

struct keep_point;

/* --- keep_layer.c --- */

struct keep_layer {
	int folder;                /* the run's, borrowed; -1: it has none */
	struct timespec began;     /* no file had a later time then */
	struct keep_point *points; /* places for mounts, which bawn made in the project's */
	struct arena arena;        /* of these */
	struct {
		int top;        /* `layer` or `git-layer` in it, or -1: nothing is captured there */
		int below;      /* the project, or the folder of its git; -1: it is not captured */
		bool is_copied; /* instead of being under an overlay */
		bool is_filled; /* under one whose layer begins with what is others' in it */
		struct tree_counts copied; /* for the run */
	} trees[CAGE_LAYER_COUNT];
	struct {
		uint64_t max;          /* bytes; 0: nobody watches */
		uint64_t next_ns;      /* when to look again */
		uint64_t count_ns;     /* when to count, even if nothing seems to be taken */
		uint64_t bytes, files; /* in the layer, when it was last counted */
		uint64_t first_bytes, first_files; /* what a copy has before the run */
		uint64_t free, free_files;         /* of its file system, at that time */
		uint64_t free_at_start;
		int kept; /* the folder of what the private home keeps; -1: it keeps nothing */
	} disk;
};

void keep_layer_init(struct keep_layer *l);
void keep_layer_done(struct keep_layer *l);

/* Makes the layer, if the plan wants one in the run's folder. */
int keep_layer_make(struct keeper *k, struct err *e);

/* Is anything captured in a session's workspace? */
bool keep_layer_is_shared(const struct keeper *k);

/* Opens them, for who is in a cage that has them. */
int keep_layer_join(struct keeper *k, struct err *e);

/* Makes the layers of a workspace, for who mounts them; and opens them, for who uses them. */
int keep_layer_make_shared(struct keeper *k, struct err *e);
int keep_layer_open_shared(struct keeper *k, struct err *e);

/*
 * The cage has ended: finds out what it changed, and keeps that; or, if the command never ran,
 * removes the layer. What goes wrong is in the record.
 */
void keep_layer_end(struct keeper *k, bool has_run, bool is_gone);

/* --- keep_copy.c --- */

/* Copies the project, if the plan captures it in that way. Signals are heard already. */
int keep_copy_make(struct keeper *k, struct err *e);

/* Writes down what is in the copies: what differs from it later is the run's. */
int keep_copy_list(const struct keeper *k, struct err *e);

/* --- keep_points.c --- */

/* The cage stands and the command has not started: what is in the layer now is bawn's own. */
int keep_points_find(struct keeper *k, struct err *e);

/* Takes that out of the layer again. */
void keep_points_remove(struct keep_layer *l, int upper);

/* --- keep_disk.c: how much the layer takes --- */

#define KEEP_DISK_MS 100 /* between two looks */

/* Begins to watch, if a limit holds that no file system holds. */
void keep_disk_open(struct keeper *k);

/* How long to wait for the next look, or -1. */
int keep_disk_wait(const struct keeper *k);

/* Does the run take more than it may? */
bool keep_disk_is_over(struct keeper *k);

/* --- keep_overlay.c --- */

struct keep_overlay {
	struct work_overlay kept; /* on disk */
	const struct plan_op *op; /* NULL: there is none */
	int loaded;               /* the file system that the cage loaded it into, or -1 */
};

void keep_overlay_init(struct keep_overlay *o);
void keep_overlay_done(struct keep_overlay *o);

/* Finds the plan's overlay, which may be missing, where it may be. */
int keep_overlay_find(struct keeper *k, struct err *e);

/* Makes it, if it is missing; locks it; and hands what is in it to the cage. */
int keep_overlay_take(struct keeper *k, struct err *e);

/* Notes what it keeps before the command runs. */
int keep_overlay_digest(struct keeper *k, struct err *e);

/* Is what the cage loaded it into as large as it may be, and no larger? */
int keep_overlay_look(const struct keeper *k, struct err *e);

/* Saves what the run left of it; record->overlay says whether, and why not. */
void keep_overlay_end(struct keeper *k, bool has_run, bool is_gone);

/* --- keep_hold.c, keep_hold_find.c --- */

struct keep_hold {
	struct arena arena;
	struct cage_held *items;
	size_t count;
	char name[64];                     /* of a folder for the layer's work */
	int folder, work;                  /* where it is; it, or -1 */
	int tree, tree_project, tree_work; /* root's: both id-mapped, for the cage; or -1 */
	int view;                          /* the layer's file system, or -1 */
	uint64_t next_ns;                  /* when it is to forget what it knows of the host */
};

void keep_hold_init(struct keep_hold *h);
void keep_hold_done(struct keep_hold *h);

/*
 * Finds out what has to be held of the open project, or of git's folder, for which `whole` is the
 * operation: what is there, missing, or on the way.
 */
int keep_hold_find(struct keep_hold *h, const struct plan *p, const struct plan_op *whole,
	int project, struct err *e);

/* Makes what the cage needs to hold what is protected, if the plan wants that. */
int keep_hold_make(struct keeper *k, struct err *e);

/* The cage has what it needs, or will never: removes what was made on disk. */
void keep_hold_end(struct keeper *k);

/* The file system of a layer that holds, as the cage hands it over: in the order of the plan. */
void keep_hold_take_view(struct keeper *k, int fd);

/* How long to wait until keep_hold_refresh, or -1. */
int keep_hold_wait(const struct keeper *k);

/*
 * The layer remembers names, and does not notice that the host puts something else there. So it is
 * made to forget them now and then.
 */
void keep_hold_refresh(struct keeper *k);
