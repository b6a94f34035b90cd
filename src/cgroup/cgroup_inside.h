#pragma once

#include "cgroup/cgroup.h"

/* Shared by the files of the module and its tests. */

/* Is this the name of a run's folder? bawn-20261115-224501-0a1b2c3d and nothing else is. */
bool cgroup_is_name(const char *name);

/* --- the kernel's files in a folder --- */

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
