#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sha256.h"
#include "change/change.h"

/*
 * What runs wrote to the root and the next one finds again: a folder of bawn's own,
 *
 *   overlay.json   what it is: its size, when it was made, the digest of what the last run left
 *   tree           what is kept, as an overlay's upper layer
 *   lock           who uses it; locked for as long
 *   tree.new       a tree that is being saved, or one that was replaced and is being removed
 *   tree.old       the same, where the file system cannot exchange two names at once
 *   links.new      of a save in progress
 *
 * The tree is never written to in place. A run that is killed leaves it whole, as it was before.
 * Files that did not change are shared with the tree that follows it.
 */
struct change_overlay {
	char path[PATH_MAX]; /* its real one */
	int parent;          /* the folder it is in */
	int folder;          /* itself; -1: it is missing */
	int lock;            /* held, or -1 */
	uint64_t size;       /* what the tree may take, in bytes */
	char created[32];
	char digest[SHA256_HEX_SIZE]; /* of what the last run left; that of nothing at first */
};

void change_overlay_init(struct change_overlay *o);
void change_overlay_done(struct change_overlay *o);

/*
 * Finds where a path leads. The overlay may be missing; the folder it is in may not. Its last part
 * is not followed if it is a link.
 */
int change_overlay_find(struct change_overlay *o, const char *path, struct err *e);

/* Makes one that was found to be missing, and opens it. */
int change_overlay_create(struct change_overlay *o, uint64_t size, struct err *e);

/*
 * Opens one that is there: it must be an overlay, the caller's own, and nobody else's to write to.
 * Fills in the rest.
 */
int change_overlay_open(struct change_overlay *o, struct err *e);

/*
 * Locks it until change_overlay_done, as `holder` ("run 2026…"); refused with the name of who has
 * it. What an earlier holder left half done is put right.
 */
int change_overlay_take(struct change_overlay *o, const char *holder, struct err *e);

/* Opens what is kept. The caller owns the descriptor. */
int change_overlay_tree(const struct change_overlay *o, struct err *e);

/* The digest of what is kept, of its bytes as they are now. */
int change_overlay_digest(
	const struct change_overlay *o, char ret[static SHA256_HEX_SIZE], struct err *e);

/*
 * Keeps what is in the folder `from`, which is given up, instead of what was kept; and notes
 * o->size and the new digest. On a failure the old tree stays, whole. *ret_skipped: sockets and
 * devices, which are not kept.
 */
int change_overlay_save(struct change_overlay *o, int from, const struct change_progress *progress,
	uint64_t *ret_skipped, struct err *e);

/* Keeps nothing. */
int change_overlay_reset(struct change_overlay *o, struct err *e);

/* Removes what saves that were killed left behind; how many trees. */
int change_overlay_prune(struct change_overlay *o, unsigned *ret_count, struct err *e);

/* Writes overlay.json, whole or not at all. */
int change_overlay_note(const struct change_overlay *o, struct err *e);
