#pragma once

#include <sys/stat.h>

#include "work/work.h"

/* What the parts of a scan share: the walk, one entry, its attributes, what follows at the end. */

/* An effect while the others are still being found. */
struct work_found {
	struct work_effect x;
	uint32_t base; /* its file in q->base is new-BASE until its index is known; 0: none */
	bool is_dropped;
};

/* A folder to be looked at. */
struct work_place {
	struct work_place *next;
	unsigned depth;
	uint16_t mode;    /* the layer's */
	const char *note; /* why nothing is known about the tree's: holds for all that is in it */
	bool has_below;   /* the tree has a folder there too */
	bool is_opaque;   /* of which nothing is seen through the layer */
	bool is_gone;     /* the tree's alone: everything in it was deleted */
	bool is_noted;    /* that of what is gone in it nothing is known */
	char path[];
};

struct work_scanner {
	const struct work_scan *q;
	struct work_effects *ret; /* whose arena has the paths */
	struct work_found *found;
	size_t count, room;
	struct work_place *places; /* folders yet to be looked at */
	struct work_place *late;   /* files that are looked at when all others were */
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
	char path[WORK_MAX_PATH + 1];
};

/* What one side has under a name. */
struct work_entry {
	enum work_type type;
	struct statx st;
};

/* One name on both sides. */
struct work_pair {
	int layer, below; /* the folders; -ENOENT: there is none, another error: not for us */
	const char *name;
	struct work_entry now, before;
	const char *note; /* of the side below */
};

#define WORK_NOTE_MOUNT "another file system is mounted there on the host"

/* Says in s->e that it is too much; that reading or the like of s->path failed. */
int work_refuse_size(const struct work_scanner *s);
int work_refuse(const struct work_scanner *s, int num, const char *what);

/* s->path: a folder, one name in it, and that name again. work_places.c */
void work_enter(struct work_scanner *s, const char *path);
int work_set_name(struct work_scanner *s, const char *name);
const char *work_last_name(const struct work_scanner *s);

/* Counts s->path, which somebody will keep; refuses what is too much. */
int work_charge_path(struct work_scanner *s);

/* Something for later: s->path, otherwise like `like`. The last one comes first; NULL: no more. */
int work_place_add(struct work_scanner *s, struct work_place **list, const struct work_place *like);
struct work_place *work_place_take(struct work_scanner *s, struct work_place **list);

/* Puts them in the order of their paths. 0 or -ENOMEM. */
int work_places_sort(struct work_place **list);

/* What is at one name, "" for the folder itself. What is not there is NOTHING. 0 or -errno. */
int work_entry_look(int folder, const char *name, struct work_entry *ret);

/* Did the host change a file since the run began, by its time of change? */
bool work_is_since(const struct statx_timestamp *changed, const struct timespec *began);

/* Adds an effect of s->path with what the entries say; NULL, and s->e, where that is too much. */
struct work_found *work_add(struct work_scanner *s, enum work_change change,
	const struct work_entry *before, const struct work_entry *now);

/* What is in a file or a link. work_content.c */
struct work_content {
	char *bytes; /* where it is not too large to be a text; else NULL */
	size_t size;
	uint64_t length; /* as it was read */
	uint8_t hash[SHA256_SIZE];
	bool is_unread;        /* bytes are missing because they were read too often */
	uint64_t unread_holes; /* not 0: there is no hash either, for these are too many */
};

/* Larger files than `max` are only hashed. 0 or -errno. */
int work_content_read(struct work_scanner *s, int fd, size_t max, struct work_content *ret);
void work_content_hash(struct work_content *c, const char *bytes, size_t n);
void work_content_done(struct work_content *c);

/* Is it to be looked at when all others were? */
bool work_content_is_late(const struct work_pair *p);

/* Ends the memory of files with several names. */
void work_content_forget(struct work_scanner *s);

/* Fills in what differs, and adds an effect if anything does. work_compare.c */
int work_compare(struct work_scanner *s, const struct work_pair *p);

/* user.…, sorted by name. work_attributes.c */
struct work_attributes {
	struct work_attribute *items;
	size_t count;
	char *names;
};

/*
 * Those of an open file or folder. *ret_forged (may be NULL) is a name that an overlay obeys and
 * that no run sets, or NULL. 0 or -errno.
 */
int work_attributes_read(int fd, struct work_attributes *ret, const char **ret_forged);
void work_attributes_done(struct work_attributes *a);

/* What became of them, as an effect has it; `before` may be NULL. 0 or -ENOMEM. */
int work_attributes_compare(const struct work_attributes *before, const struct work_attributes *now,
	struct arena *arena, struct work_effect *ret);

/* Finds which of them, sorted, are renames. work_renames.c */
int work_find_renames(struct work_scanner *s);

/* Sorts them by path; marks them, names the bases, and hands over to s->ret. work_finish.c */
void work_sort(struct work_scanner *s);
int work_finish(struct work_scanner *s);

/* Files of folders that git would take for repositories are marked like .git's. work_bare.c */
int work_mark_bare(const struct work_scan *q, struct work_effects *x);

/* What was removed from a repository together with its HEAD is held. work_heads.c */
int work_hold_headless(struct work_effects *x);

/* The effect of a path, or NULL. */
struct work_effect *work_effect_find(const struct work_effects *x, const char *path, size_t n);
