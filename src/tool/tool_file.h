#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Files that may be anything: nothing here waits for one, and no device is used. */

/* Files that are held in memory as a whole. */
#define TOOL_MAX_FILE ((size_t)64 << 20)

/* A descriptor of a regular file to be read, or -errno and a sentence. */
int tool_open_file(const char *verb, const char *path, struct err *e);

/* The whole of it, at most TOOL_MAX_FILE. The caller owns *ret. */
int tool_load_file(const char *verb, const char *path, char **ret, size_t *ret_size, struct err *e);

/*
 * Gives a file a content, whole or not at all where that is possible: the folders to it are made, a
 * link is followed, a mode is kept. *ret_existed: there was one.
 */
int tool_store_file(const char *verb, const char *path, const char *bytes, size_t n,
	bool *ret_existed, struct err *e);
