#pragma once

#include "cgroup/cgroup.h"

/* What the files of the module share, and its tests see. */

/* Is this the name of a run's folder? bawn-20261115-224501-0a1b2c3d and nothing else is. */
bool cgroup_is_name(const char *name);

/* Is `word` one of a list, as in "rw,cpu,cpuacct" or "cpuset cpu io"? */
bool cgroup_has_word(const char *list, const char *word);

/* --- cgroup_file.c: the kernel's files in a folder --- */

/* The text of a small file, ended with a NUL; its length or -errno. */
ssize_t cgroup_read(int folder, const char *file, char *ret, size_t size);
int cgroup_write(int folder, const char *file, const char *text);

/*
 * A file of a limit. What is written is what the kernel says when asked: already rounded to pages,
 * and within what it can count to.
 */
struct cgroup_knob {
	const char *file;
	char text[48];
	bool may_be_missing;
};

#define CGROUP_MAX_KNOBS 2

/* The files of a limit in the order they are written; how many, 0 for a limit that is none. */
int cgroup_knobs(enum cgroup_controller c, bool is_v2, uint64_t limit,
	struct cgroup_knob ret[static CGROUP_MAX_KNOBS]);

/* The number in a line "key number", or with "" as key the number the text begins with. */
bool cgroup_find_number(const char *text, const char *key, uint64_t *ret);

/* Is the process in the folder? 1, 0 or -errno. */
int cgroup_lists(int folder, pid_t pid);

/* --- cgroup_end.c --- */

/* Waits longer from time to time; false once it has waited `ms` in all. */
struct cgroup_patience {
	unsigned ms, nap_us, spent_us;
};

bool cgroup_wait(struct cgroup_patience *p);

/* 0, or -EAGAIN when somebody else has the lock for longer than `ms`. */
int cgroup_lock(int folder, unsigned ms);

/* Is it this folder that has the name, and not one made after it? */
bool cgroup_is_at(int parent, const char *name, int folder);

/* Removes an empty folder; -EBUSY when it is not empty within `ms`. */
int cgroup_remove_folder(int parent, const char *name, unsigned ms);
