#pragma once

#include <sys/types.h>

#include "base/arena.h"
#include "keeper/keeper.h"

/* What the cage is shown of the host, who it is there, and the words of its command. */

/* --- keeper_words.c: what the command is told --- */

struct keeper_words {
	struct arena arena;
	char **arguments, **environment;
	char *shared; /* with a warm cage, which finds its words there later; or NULL */
	size_t shared_size;
};

int keeper_words_make(struct keeper_words *ret, const struct cage_start *start, struct err *e);
void keeper_words_done(struct keeper_words *words);

/* --- keeper_ids.c --- */

/* The id a cage of ours has outside, and whether we must give it. */
int keeper_choose_ids(const struct keeper_request *q, struct cage_ids *ret, struct err *e);

/*
 * Writes the map of groups of a cage whose ids are a team's: `group` is `inside` in it. Makes the
 * program that does so in the run's folder.
 */
int keeper_team_map(pid_t pid, gid_t group, unsigned inside, int folder, struct err *e);

/* --- keeper_sources.c --- */

/* What a source is, beside what the cage is told of it. */
struct keeper_source_facts {
	mode_t mode;
	uint64_t mount; /* its mount's id, or 0: the kernel does not tell */
};

struct keeper_sources {
	struct arena arena;
	struct cage_source *items;         /* one per operation */
	struct keeper_source_facts *facts; /* the same */
	int *fds;                          /* the same, open with O_PATH, or -1 */
	int *given;                        /* the same, for keeper_open; or NULL */
	struct cage_source layers[CAGE_LAYER_COUNT];
	struct cage_idmap map; /* root's */
	int unmapped;          /* what is captured and has no map: the operation, or -1 */
	uint32_t count;
};

/* And a layer, which is an open folder of ours; `start` gets it. */
int keeper_sources_add_layer(struct keeper_sources *s, struct cage_start *start,
	enum cage_layer which, int fd, struct err *e);

/* And what an overlay keeps, for operation `i`. */
int keeper_sources_add_overlay(struct keeper_sources *s, const struct cage_start *start, uint32_t i,
	int fd, struct err *e);

/* And one that another process has mounted: a detached tree, which is owned from here on. */
void keeper_sources_take_layer(
	struct keeper_sources *s, struct cage_start *start, enum cage_layer which, int tree);

/* Do the names that were declared still lead to what was opened? Not asked of a session's. */
bool keeper_sources_are_current(const struct keeper_sources *s, const struct cage_start *start);

/* Puts a folder of ours, which is owned from here on, in the place of a source. */
int keeper_sources_replace(struct keeper_sources *s, const struct cage_start *start, uint32_t i,
	int fd, struct err *e);

/* Makes the tree of a source that is mapped and not needed until now. */
int keeper_sources_map(
	struct keeper_sources *s, const struct cage_start *start, uint32_t i, struct err *e);
