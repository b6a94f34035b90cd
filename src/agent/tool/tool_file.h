#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Files that may be anything: nothing here waits for one, and no device is used. */

/* Files that are held in memory as a whole. */
#define TOOL_MAX_FILE ((size_t)64 << 20)

/* A descriptor of a regular file to be read, or -errno and a sentence. */
int tool_open_file(const char *verb, const char *path, struct err *e);
