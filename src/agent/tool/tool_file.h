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

/* Makes the folders that lead to a file. */
int tool_make_folders(const char *verb, const char *path, struct err *e);

/*
 * Waits until no other of these tools changes a file of the same folder. Until the descriptor *ret
 * is closed, which was -1 and may still be, none of them does.
 */
int tool_lock_file(const char *verb, const char *path, int *ret, struct err *e);

/*
 * Gives a file a content, whole or not at all where that is possible: a link is followed, a mode is
 * kept. *ret_existed: there was one.
 */
int tool_store_file(const char *verb, const char *path, const char *bytes, size_t n,
	bool *ret_existed, struct err *e);
