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

/* Opens a session's folder. -ENOENT, with nothing in `e`: there is none. */
int session_open_folder(int root, const char *id, struct err *e);

/* The same for the folder of its workspaces. */
int session_open_workspaces(int folder, struct err *e);
