#pragma once

/* What the files of this module know together. */

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/tree.h"

#define SESSION_ROOT      "sessions" /* in the operator's state */
#define SESSION_NEW       "new"
#define SESSION_LOCK      "lock"
#define SESSION_NAME_SIZE 64 /* of a folder of ours */

/* Is an open folder ours, and nobody else may write to it? */
bool session_is_ours(int fd);

/* Opens a session's folder. -ENOENT, with nothing in `e`: there is none. */
int session_open_folder(int root, const char *id, struct err *e);

/* The same for the folder of its workspaces. */
int session_open_workspaces(int folder, struct err *e);

/* The number that a name of a workspace stands for; 0: it is none. */
uint64_t session_read_number(const char *name);

/* The newest before `to`; 0: there is none. Or -errno in *ret_failure. */
uint64_t session_find_newest(int workspaces, uint64_t to, int *ret_failure);

/*
 * Locks a workspace in the folder of workspaces for ourselves: a descriptor; -EBUSY: somebody has
 * it; -ENOENT: it has no lock, and so nobody uses it.
 */
int session_lock_workspace(int workspaces, const char *name);

/* Empties an open folder, and removes it, which has this name in `at`. */
int session_remove_opened(int at, const char *name, int folder, struct err *e);
