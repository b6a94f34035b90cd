#pragma once

#include "base/err.h"

/* What is kept of the private home from one run of a project to the next: STATE/home/PROJECT. */

/*
 * Opens one folder of it, made where it is missing: a descriptor or -errno. *lock, -1 before the
 * first, is a descriptor that the caller has open for as long as the folders are used.
 */
int home_open(int state, const char *project, const char *name, int *lock, struct err *e);

/* Removes all of it, for one project: 0, -ENOENT if there is none, or -errno; -EBUSY: it is used.
 */
int home_forget(int state, const char *project, struct err *e);
