#pragma once

#include <sys/stat.h>

#include "change/change.h"
#include "change/effects/change_base.h"

/* What the parts of a scan share: the walk, the comparison, what follows at the end. */

/* An effect while the others are still being found. */
struct change_found {
	struct change_effect x;
	uint64_t base_at; /* where what it was is in q->base, if x.has_base */
	bool is_dropped;
};

/* A folder to be looked at. */
struct change_place {
	struct change_place *next;
	unsigned depth;
	uint16_t mode;    /* the layer's */
	const char *note; /* why nothing is known about the tree's: holds for all that is in it */
	bool has_below;   /* the tree has a folder there too */
	bool is_opaque;   /* of which nothing is seen through the layer */
	bool is_gone;     /* the tree's alone: everything in it was deleted */
	bool is_noted;    /* that of what is gone in it nothing is known */
	char path[];
};

struct change_scanner {
	const struct change_scan *q;
	struct change_effects *ret; /* whose arena has the paths */
	struct change_found *found;
	size_t count, room;
	struct change_place *places; /* folders yet to be looked at */
	struct change_place *late;   /* files that are looked at when all others were */
	size_t place_count;
	size_t path_bytes; /* of effects and of places that wait */
	uint64_t mount;    /* of the tree below */
	uint64_t git_mount;
	uint64_t seen; /* entries */
	struct change_base base;
	uint64_t unstored; /* how much was read that takes no room on the disk */
	void *linked;      /* files that have several names, with their hashes */
	struct err *e;
	size_t folder_size; /* how much of the path is the folder */
	char path[CHANGE_MAX_PATH + 1];
};

/* What one side has under a name. */
struct change_entry {
	enum change_type type;
	struct statx st;
};

/* One name on both sides. */
struct change_pair {
	int layer, below; /* the folders; -ENOENT: there is none, another error: not for us */
	const char *name;
	struct change_entry now, before;
	const char *note; /* of the side below */
};

#define CHANGE_NOTE_MOUNT "another file system is mounted there on the host"

/* Says in s->e that it is too much. */
int change_refuse_size(const struct change_scanner *s);

/* Sets s->path: to a folder, to one name in it. change_scan.c */
void change_enter(struct change_scanner *s, const char *path);
int change_set_name(struct change_scanner *s, const char *name);

/* Adds s->path, otherwise like `like`, to what waits; takes the one added last, or NULL. */
int change_place_add(
	struct change_scanner *s, struct change_place **list, const struct change_place *like);
struct change_place *change_place_take(struct change_scanner *s, struct change_place **list);

/* Did the host change a file since the run began, by its time of change? */
bool change_is_since(const struct statx_timestamp *changed, const struct timespec *began);

/* Adds an effect of s->path with what the entries say; NULL, and s->e, where that is too much. */
struct change_found *change_add(struct change_scanner *s, enum change_change change,
	const struct change_entry *before, const struct change_entry *now);

/* Reading a smaller file takes no longer than opening it. */
#define CHANGE_SMALL ((uint64_t)64 << 10)

/* Adds an effect of s->path where the two sides differ. change_compare.c */
int change_compare(struct change_scanner *s, const struct change_pair *p);

/* Finds which effects, sorted, are renames. change_compare.c */
int change_find_renames(struct change_scanner *s);

/*
 * Sorts the effects by path, finds renames, marks them, names the bases, and hands them over to
 * s->ret. change_finish.c
 */
int change_finish(struct change_scanner *s);

/* The effect of a path, or NULL. */
struct change_effect *change_effect_find(
	const struct change_effects *x, const char *path, size_t n);
