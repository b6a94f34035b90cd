#pragma once

#include <sys/stat.h>

#include "check/check_repository.h"

/* What the two halves of check_repository share: is it believed, and what in it is delicate. */
struct check_looking {
	const struct check_project *project;
	struct arena *arena;
	struct check_repository *ret;
	struct stat owner;         /* of the project */
	char pointer[PATH_MAX];    /* what .git says; "": it is a folder */
	char common[PATH_MAX];     /* what all worktrees share */
	bool is_common_in_project; /* and needs no place of its own in the cage */
};

/* The one line of a small file in an open folder; not through a link. 0 or -errno. */
int check_read_line(int folder, const char *name, char ret[static PATH_MAX]);

/* What a path in a file of `folder` leads to. 0 or -errno. */
int check_resolve(const char *folder, const char *path, char ret[static PATH_MAX]);

/* All of a file of git's configuration, ended with a NUL; NULL where there is none. Caller frees.
 */
char *check_read_config(int folder, const char *name, size_t *ret_size);
