#pragma once

#include "cgroup/cgroup.h"

/* Shared by the files of the module and its tests. */

/* True for the name of a run's folder: exactly like bawn-20261115-224501-0a1b2c3d. */
bool cgroup_is_name(const char *name);

/* --- the kernel's files in a folder --- */

/* Read a small file and add a NUL, or write one. Return the length read, 0 or -errno. */
ssize_t cgroup_read(int folder, const char *file, char *ret, size_t size);
int cgroup_write(int folder, const char *file, const char *text);

/*
 * A file that sets a limit. `text` is also what the kernel returns when the file is read: rounded
 * to pages and within its range.
 */
struct cgroup_knob {
	const char *file;
	char text[48];
	bool may_be_missing;
};

#define CGROUP_MAX_KNOBS 2

/*
 * Finds the files of a limit, in the order to write them. Returns how many; 0: not a valid limit.
 */
int cgroup_knobs(enum cgroup_controller c, bool is_v2, uint64_t limit,
	struct cgroup_knob ret[static CGROUP_MAX_KNOBS]);

/* Finds the number in a line "KEY NUMBER"; with "" as key, the number at the start of the text. */
bool cgroup_find_number(const char *text, const char *key, uint64_t *ret);

/* Returns 1 if the process is in the folder, 0 if not, or -errno. */
int cgroup_lists(int folder, pid_t pid);
