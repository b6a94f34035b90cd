#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/*
 * The list of a copy: a head, then for each entry of a folder, in the order of their names' bytes,
 *
 *   TYPE INODE CHANGED NAME NUL
 *
 * where type is d for a folder and f for all else, and changed the time of change in nanoseconds.
 * What is in a folder follows it, and one NUL ends a folder; so a list that was cut is seen as
 * such.
 */
#define CHANGE_LIST_HEAD     "bawn copy 1"
#define CHANGE_LIST_MAX_NAME 1023 /* more than any file system has */

struct change_listed {
	bool is_folder;
	uint64_t inode;
	int64_t changed_ns;
	char name[CHANGE_LIST_MAX_NAME + 1];
};

/* Reads a list from its beginning to its end. */
struct change_list {
	int fd; /* borrowed */
	size_t at, len;
	char bytes[65536];
};

/* 0, or -EBADMSG where it is no list. */
int change_list_begin(struct change_list *l, int fd);

/* 1 with the next entry, 0 at the end of a folder, -EBADMSG where the list is not as it was. */
int change_list_next(struct change_list *l, struct change_listed *ret);

/* Passes by what is in the folder whose entry was read last. */
int change_list_skip(struct change_list *l);

static inline int64_t change_list_changed(const struct stat *st)
{
	return (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec;
}
