#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* What is kept of the private home from one run of a project to the next: STATE/home/PROJECT. */

/*
 * Opens one folder of it, made where it is missing: a descriptor or -errno. *lock, -1 before the
 * first, is a descriptor that the caller has open for as long as the folders are used.
 */
int run_home_open(int state, const char *project, const char *name, int *lock, struct err *e);

/* What the runs of a project called it; one that is gone is called what it was. False: errno. */
bool run_home_resolve(const char *name, char ret[static 4096]);

struct run_home_kept {
	char *names[64]; /* of its folders, as paths below the private home */
	size_t count;
};

/* What is kept for one project: 0, -ENOENT if there is nothing, or -errno. run_home_kept_done it.
 */
int run_home_list(int state, const char *project, struct run_home_kept *ret);
void run_home_kept_done(struct run_home_kept *kept);

/*
 * Removes the folder that is kept as `name` for one project, or with NULL all of it: 0, -ENOENT if
 * there is none, or -errno; -EBUSY: it is used.
 */
int run_home_forget(int state, const char *project, const char *name, struct err *e);
