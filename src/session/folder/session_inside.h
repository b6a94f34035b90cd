#pragma once

/* Shared by the files of this module. Nobody else includes it. */

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/tree.h"

#define SESSION_ROOT      "sessions" /* in the operator's state */
#define SESSION_NEW       "new"
#define SESSION_LOCK      "lock"
#define SESSION_NAME_SIZE 64 /* of a folder's name */

/* Opens a session's folder. Returns a descriptor, -ENOENT with `e` unset, or -errno. */
int session_open_folder(int root, const char *id, struct err *e);

/* Opens the folder of a session's workspaces in `folder`, in the same way. */
int session_open_workspaces(int folder, struct err *e);
