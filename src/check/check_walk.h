#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CHECK_MAX_ENTRIES ((size_t)20000)
#define CHECK_MAX_DEPTH   40U

/* Something in a tree. All is borrowed for the time of the visit. */
struct check_entry {
	int dir_fd;      /* the directory it is in */
	const char *dir; /* the same as a path below the root; "" for the root */
	const char *name;
	unsigned depth; /* of the directory: 0 for the root */
	mode_t type;    /* S_IFREG, S_IFDIR, … */
	bool is_mount;  /* a directory that belongs to another mount */
};

/* Looks at an entry; answers whether to go on below it. */
typedef bool check_visit(void *visitor, const struct check_entry *entry);
