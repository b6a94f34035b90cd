#pragma once

#include <limits.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/tree.h"
#include "change/copy/change_copy.h"
#include "change/copy/change_list.h"

/* What the parts of finishing a copy share. */

struct change_finish {
	int copy;     /* its top */
	bool removes; /* the second walk */
	struct change_list list;
	const struct change_progress *progress;
	uint64_t seen;
	unsigned depth;
	size_t names_size; /* of the folders we are in */
	size_t path_size;
	char path[CHANGE_MAX_PATH + 1];        /* of the folder we are in */
	char attributes[XATTR_LIST_MAX];       /* names of one entry's */
	char entry[CHANGE_LIST_MAX_NAME + 64]; /* it, by a path of /proc */
	struct err *e;
};

/* A folder while we are in it. It has its mode again when we leave it. */
struct change_visit {
	int fd; /* -1 while we are in a folder of it */
	mode_t mode;
	bool is_given; /* its owner got rights */
	struct tree_names names;
};

typedef int change_walk(struct change_finish *f, struct change_visit *v);
