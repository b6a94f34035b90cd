#pragma once

#include "base/arena.h"
#include "cage/cage.h"
#include "change/overlay/change_overlay.h"
#include "keeper/keeper.h"

/*
 * Where what the command writes goes: layers of a captured project and how much they take, copies,
 * the overlay of a root, and what is protected in a writable project.
 */
struct keeper;

struct keeper_point;

/* --- keeper_layer.c --- */

struct keeper_layer {
	int folder;                  /* the run's, borrowed; -1: it has none */
	struct timespec began;       /* no file had a later time then */
	struct keeper_point *points; /* places for mounts, which bawn made in the project's */
	struct arena arena;          /* of these */
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

void keeper_layer_init(struct keeper_layer *l);
void keeper_layer_done(struct keeper_layer *l);

/* Makes the layer, if the plan wants one in the run's folder. */
int keeper_layer_make(struct keeper *k, struct err *e);

/* Is anything captured in a session's workspace? */
bool keeper_layer_is_shared(const struct keeper *k);

/* Opens them, for who is in a cage that has them. */
int keeper_layer_join(struct keeper *k, struct err *e);

/* Makes the layers of a workspace, for who mounts them; and opens them, for who uses them. */
int keeper_layer_make_shared(struct keeper *k, struct err *e);
int keeper_layer_open_shared(struct keeper *k, struct err *e);

/*
 * The cage has ended: finds out what it changed, and keeps that; or, if the command never ran,
 * removes the layer. What goes wrong is in the record.
 */
void keeper_layer_end(struct keeper *k, bool has_run, bool is_gone);

/* --- keeper_copy.c --- */

/* Copies the project, if the plan captures it in that way. Signals are heard already. */
int keeper_copy_make(struct keeper *k, struct err *e);

/* Writes down what is in the copies: what differs from it later is the run's. */
int keeper_copy_list(const struct keeper *k, struct err *e);

/* --- keeper_points.c --- */

/* The cage stands and the command has not started: what is in the layer now is bawn's own. */
int keeper_points_find(struct keeper *k, struct err *e);

/* Takes that out of the layer again. */
void keeper_points_remove(struct keeper_layer *l, int upper);

/* --- keeper_disk.c: how much the layer takes --- */

#define KEEPER_DISK_MS 100 /* between two looks */

/* Begins to watch, if a limit holds that no file system holds. */
void keeper_disk_open(struct keeper *k);

/* How long to wait for the next look, or -1. */
int keeper_disk_wait(const struct keeper *k);

/* Does the run take more than it may? */
bool keeper_disk_is_over(struct keeper *k);

/* --- keeper_overlay.c --- */

struct keeper_overlay {
	struct change_overlay kept; /* on disk */
	const struct plan_op *op;   /* NULL: there is none */
	int loaded;                 /* the file system that the cage loaded it into, or -1 */
};

void keeper_overlay_init(struct keeper_overlay *o);
void keeper_overlay_done(struct keeper_overlay *o);

/* Finds the plan's overlay, which may be missing, where it may be. */
int keeper_overlay_find(struct keeper *k, struct err *e);

/* Makes it, if it is missing; locks it; and hands what is in it to the cage. */
int keeper_overlay_take(struct keeper *k, struct err *e);

/* Notes what it keeps before the command runs. */
int keeper_overlay_digest(struct keeper *k, struct err *e);

/* Is what the cage loaded it into as large as it may be, and no larger? */
int keeper_overlay_look(const struct keeper *k, struct err *e);

/* Saves what the run left of it; record->overlay says whether, and why not. */
void keeper_overlay_end(struct keeper *k, bool has_run, bool is_gone);

/* --- keeper_protect.c, keeper_protect_find.c --- */

struct keeper_protect {
	struct arena arena;
	struct cage_protected *items;
	size_t count;
	char name[64];                     /* of a folder for the layer's work */
	int folder, work;                  /* where it is; it, or -1 */
	int tree, tree_project, tree_work; /* root's: both id-mapped, for the cage; or -1 */
	int view;                          /* the layer's file system, or -1 */
	uint64_t next_ns;                  /* when it is to forget what it knows of the host */
};

void keeper_protect_init(struct keeper_protect *h);
void keeper_protect_done(struct keeper_protect *h);

/*
 * Finds out what has to be held of the open project, or of git's folder, for which `whole` is the
 * operation: what is there, missing, or on the way.
 */
int keeper_protect_find(struct keeper_protect *h, const struct plan *p, const struct plan_op *whole,
	int project, struct err *e);

/* Makes what the cage needs to hold what is protected, if the plan wants that. */
int keeper_protect_make(struct keeper *k, struct err *e);

/* The cage has what it needs, or will never: removes what was made on disk. */
void keeper_protect_end(struct keeper *k);

/* The file system of a layer that holds, as the cage hands it over: in the order of the plan. */
void keeper_protect_take_view(struct keeper *k, int fd);

/* How long to wait until keeper_protect_refresh, or -1. */
int keeper_protect_wait(const struct keeper *k);

/*
 * The layer remembers names, and does not notice that the host puts something else there. So it is
 * made to forget them now and then.
 */
void keeper_protect_refresh(struct keeper *k);
