#pragma once

#include <sys/types.h>

#include "base/arena.h"
#include "keeper/keeper.h"

/* What the cage is shown of the host, who it is there, and the words of its command. */

/* --- keeper_words.c: what the command is told --- */

struct keeper_words {
	struct arena arena;
	char **arguments, **environment, **own_variables;
	char *shared; /* with a warm cage, which finds its words there later; or NULL */
	size_t shared_size;
};

int keeper_words_make(struct keeper_words *ret, const struct cage_start *start, struct err *e);
void keeper_words_done(struct keeper_words *words);

/* --- keeper_ids.c --- */

/* The id a cage of ours has outside, and whether we must give it. */
int keeper_choose_ids(const struct keeper_request *q, struct cage_ids *ret, struct err *e);

/* --- keeper_sources.c --- */

struct keeper_sources {
	struct arena arena;
	struct cage_source *items; /* one per operation */
	int *fds;                  /* the same, open with O_PATH, or -1 */
	int *given;                /* the same, for keeper_open; or NULL */
	struct cage_source layers[CAGE_LAYER_COUNT];
	struct cage_idmap map; /* root's */
	int unmapped;          /* what is captured and has no map: the operation, or -1 */
	uint32_t count;
};

void keeper_sources_init(struct keeper_sources *s);

int keeper_sources_make(struct keeper_sources *ret, const struct cage_start *start,
	const struct keeper_request *q, struct err *e);
void keeper_sources_done(struct keeper_sources *s);

/* And a layer, which is an open folder of ours; `start` gets it. */
int keeper_sources_add_layer(struct keeper_sources *s, struct cage_start *start,
	enum cage_layer which, int fd, struct err *e);

/* And what an overlay keeps, for operation `i`. */
int keeper_sources_add_overlay(struct keeper_sources *s, const struct cage_start *start, uint32_t i,
	int fd, struct err *e);

/* And one that another process has mounted: a detached tree, which is owned from here on. */
void keeper_sources_take_layer(
	struct keeper_sources *s, struct cage_start *start, enum cage_layer which, int tree);

/* The real path of what operation `i` shows of the operator's; NULL: nothing of the kind. */
const char *keeper_sources_shown(
	const struct keeper_sources *s, const struct cage_start *start, uint32_t i);

/* Is it a session that brings what operation `i` shows? */
bool keeper_sources_is_late(const struct plan *p, uint32_t i);

/* Do the names that were declared still lead to what was opened? Not asked of a session's. */
bool keeper_sources_are_current(const struct keeper_sources *s, const struct cage_start *start);

/* Opens what a session has, once there is one; until then they are not there. */
int keeper_sources_make_late(struct keeper_sources *s, const struct cage_start *start,
	const struct keeper_request *q, struct err *e);

/* Puts a folder of ours, which is owned from here on, in the place of a source. */
int keeper_sources_replace(struct keeper_sources *s, const struct cage_start *start, uint32_t i,
	int fd, struct err *e);

/* Makes the tree of a source that is mapped and not needed until now. */
int keeper_sources_map(
	struct keeper_sources *s, const struct cage_start *start, uint32_t i, struct err *e);

/* Closes what is open; the names stay. */
void keeper_sources_close(struct keeper_sources *s);
