#pragma once

#include <sys/types.h>

#include "base/arena.h"
#include "keep/keep.h"

/* What the cage is shown of the host, who it is there, and the words of its command. */

/* --- keep_words.c: what the command is told --- */

struct keep_words {
	struct arena arena;
	char **arguments, **environment, **own_variables;
	char *shared; /* with a warm cage, which finds its words there later; or NULL */
	size_t shared_size;
};

int keep_words_make(struct keep_words *ret, const struct cage_start *start, struct err *e);
void keep_words_done(struct keep_words *words);

/* --- keep_ids.c --- */

/* The id a cage of ours has outside, and whether we must give it. */
int keep_choose_ids(const struct keep_request *q, struct cage_ids *ret, struct err *e);

/* --- keep_sources.c --- */

struct keep_sources {
	struct arena arena;
	struct cage_source *items; /* one per operation */
	int *fds;                  /* the same, open with O_PATH, or -1 */
	int *given;                /* the same, for keep_open; or NULL */
	struct cage_source layers[CAGE_LAYER_COUNT];
	struct cage_idmap map; /* root's */
	int unmapped;          /* what is captured and has no map: the operation, or -1 */
	uint32_t count;
};

void keep_sources_init(struct keep_sources *s);

int keep_sources_make(struct keep_sources *ret, const struct cage_start *start,
	const struct keep_request *q, struct err *e);
void keep_sources_done(struct keep_sources *s);

/* And a layer, which is an open folder of ours; `start` gets it. */
int keep_sources_add_layer(struct keep_sources *s, struct cage_start *start, enum cage_layer which,
	int fd, struct err *e);

/* And what an overlay keeps, for operation `i`. */
int keep_sources_add_overlay(
	struct keep_sources *s, const struct cage_start *start, uint32_t i, int fd, struct err *e);

/* And one that another process has mounted: a detached tree, which is owned from here on. */
void keep_sources_take_layer(
	struct keep_sources *s, struct cage_start *start, enum cage_layer which, int tree);

/* The real path of what operation `i` shows of the operator's; NULL: nothing of the kind. */
const char *keep_sources_shown(
	const struct keep_sources *s, const struct cage_start *start, uint32_t i);

/* Is it a session that brings what operation `i` shows? */
bool keep_sources_is_late(const struct plan *p, uint32_t i);

/* Do the names that were declared still lead to what was opened? Not asked of a session's. */
bool keep_sources_are_current(const struct keep_sources *s, const struct cage_start *start);

/* Opens what a session has, once there is one; until then they are not there. */
int keep_sources_make_late(struct keep_sources *s, const struct cage_start *start,
	const struct keep_request *q, struct err *e);

/* Puts a folder of ours, which is owned from here on, in the place of a source. */
int keep_sources_replace(
	struct keep_sources *s, const struct cage_start *start, uint32_t i, int fd, struct err *e);

/* Makes the tree of a source that is mapped and not needed until now. */
int keep_sources_map(
	struct keep_sources *s, const struct cage_start *start, uint32_t i, struct err *e);

/* Closes what is open; the names stay. */
void keep_sources_close(struct keep_sources *s);
