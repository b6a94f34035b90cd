#pragma once

#include <sys/stat.h>

#include "change/change.h"

/* What the parts of a scan share: the walk, one entry, its attributes, what follows at the end. */

/* An effect while the others are still being found. */
struct change_found {
	struct change_effect x;
	uint32_t base; /* its file in q->base is new-BASE until its index is known; 0: none */
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
	uint32_t base_count;
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

/* Says in s->e that it is too much; that reading or the like of s->path failed. */
int change_refuse_size(const struct change_scanner *s);
int change_refuse(const struct change_scanner *s, int num, const char *what);

/* s->path: a folder, one name in it, and that name again. change_places.c */
void change_enter(struct change_scanner *s, const char *path);
int change_set_name(struct change_scanner *s, const char *name);
const char *change_last_name(const struct change_scanner *s);

/* Counts s->path, which somebody will keep; refuses what is too much. */
int change_charge_path(struct change_scanner *s);

/* Something for later: s->path, otherwise like `like`. The last one comes first; NULL: no more. */
int change_place_add(
	struct change_scanner *s, struct change_place **list, const struct change_place *like);
struct change_place *change_place_take(struct change_scanner *s, struct change_place **list);

/* Puts them in the order of their paths. 0 or -ENOMEM. */
int change_places_sort(struct change_place **list);

/* What is at one name, "" for the folder itself. What is not there is NOTHING. 0 or -errno. */
int change_entry_look(int folder, const char *name, struct change_entry *ret);

/* Did the host change a file since the run began, by its time of change? */
bool change_is_since(const struct statx_timestamp *changed, const struct timespec *began);

/* Adds an effect of s->path with what the entries say; NULL, and s->e, where that is too much. */
struct change_found *change_add(struct change_scanner *s, enum change_change change,
	const struct change_entry *before, const struct change_entry *now);

/* What is in a file or a link. change_content.c */
struct change_content {
	char *bytes; /* where it is not too large to be a text; else NULL */
	size_t size;
	uint64_t length; /* as it was read */
	uint8_t hash[SHA256_SIZE];
	bool is_unread;        /* bytes are missing because they were read too often */
	uint64_t unread_holes; /* not 0: there is no hash either, for these are too many */
};

/* Larger files than `max` are only hashed. 0 or -errno. */
int change_content_read(struct change_scanner *s, int fd, size_t max, struct change_content *ret);
void change_content_hash(struct change_content *c, const char *bytes, size_t n);
void change_content_done(struct change_content *c);

/* Is it to be looked at when all others were? */
bool change_content_is_late(const struct change_pair *p);

/* Ends the memory of files with several names. */
void change_content_forget(struct change_scanner *s);

/* user.…, sorted by name. change_attributes.c */
struct change_attributes {
	struct change_attribute *items;
	size_t count;
	char *names;
};

/*
 * Those of an open file or folder. *ret_forged (may be NULL) is a name that an overlay obeys and
 * that no run sets, or NULL. 0 or -errno.
 */
int change_attributes_read(int fd, struct change_attributes *ret, const char **ret_forged);
void change_attributes_done(struct change_attributes *a);

/* What became of them, as an effect has it; `before` may be NULL. 0 or -ENOMEM. */
int change_attributes_compare(const struct change_attributes *before,
	const struct change_attributes *now, struct arena *arena, struct change_effect *ret);

/* Finds which of them, sorted, are renames. change_renames.c */
int change_find_renames(struct change_scanner *s);

/* Sorts them by path; marks them, names the bases, and hands over to s->ret. change_finish.c */
void change_sort(struct change_scanner *s);
int change_finish(struct change_scanner *s);

/* The effect of a path, or NULL. */
struct change_effect *change_effect_find(
	const struct change_effects *x, const char *path, size_t n);
