#pragma once

#include <sys/stat.h>

#include "base/arena.h"
#include "cage/cage.h"
#include "change/overlay/change_overlay.h"
#include "keeper/keeper.h"

/*
 * Where the writes of the command go: layers of a captured project, copies, the overlay of a root;
 * and the protected paths of a writable project.
 */
struct keeper;

struct keeper_point;

/* --- keeper_layer.c --- */

struct keeper_layer {
	int folder;                  /* the run's, borrowed; -1: it has none */
	struct timespec began;       /* no file had a later time then */
	struct timespec to_pass;     /* what changes later has a later time once this has passed */
	struct keeper_point *points; /* places for mounts, which bawn made in the project's */
	struct arena arena;          /* of these */
	struct {
		int top;        /* `layer` or `git-layer` in it, or -1: nothing is captured there */
		int below;      /* the project, or the folder of its git; -1: it is not captured */
		bool is_copied; /* instead of being under an overlay */
		bool is_filled; /* under one whose layer begins with what is others' in it */
		bool is_spare;  /* it was another run's, and is as new */
		bool is_handed; /* it is the next run's, once the kernel has unmounted it */
		bool is_empty;  /* when the run had ended: nothing was written to it */
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

/* The mounts of a cage in a large project: keeper_large.c */
struct keeper_large {
	int mounts; /* their namespace, or -1 */
	bool was_asked;
};

/* Opens the layers of a cage that the run joins. */
int keeper_layer_join(struct keeper *k, struct err *e);

/* Make the layers of a workspace before it is mounted, and open them for a run that uses it. */
int keeper_layer_make_shared(struct keeper *k, struct err *e);
int keeper_layer_open_shared(struct keeper *k, struct err *e);

/* --- keeper_spare.c --- */

/* Work folders have it: a file system without attributes cannot be used. */
#define KEEPER_LAYER_ATTRIBUTE "user.bawn"

/*
 * Takes a spare layer for the run whose folder is open: as new, and of this owner, -1 being who we
 * are. A descriptor, -ENOENT where one has to be made, or -errno.
 */
int keeper_spare_take(int folder, const char *name, const struct stat *owner);

/* Hands on a layer that nobody wrote to and no mount uses; false: there are enough, or it cannot
 * be. */
bool keeper_spare_give(int folder, const char *name);

/* --- keeper_copy.c --- */

/* Lists the copies before the command runs: what differs later was changed by it. */
int keeper_copy_list(const struct keeper *k, struct err *e);

/* --- keeper_overlay.c --- */

struct keeper_overlay {
	struct change_overlay kept; /* on disk */
	const struct plan_op *op;   /* NULL: there is none */
	int loaded;                 /* the file system that the cage loaded it into, or -1 */
};

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
 * Finds the paths to protect in the open project, or in git's folder, which operation `whole`
 * shows: those that exist, those that do not, and the folders on the way.
 */
int keeper_protect_find(struct keeper_protect *h, const struct plan *p, const struct plan_op *whole,
	int project, struct err *e);

/* Takes ownership of the file system of a protecting layer; they come in the order of the plan. */
void keeper_protect_take_view(struct keeper *k, int fd);
