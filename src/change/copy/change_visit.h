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

/* Says what could not be done with an entry of the folder we are in. -num. */
int change_finish_fail(const struct change_finish *f, const char *name, int num, const char *doing);

/* The top, and what `inside` does there. */
int change_visit_top(struct change_finish *f, change_walk *inside);

/* Goes into a folder and comes back. */
int change_visit_folder(struct change_finish *f, struct change_visit *v, const char *name,
	mode_t mode, change_walk *inside);

/* Makes the folder one that we may change, as long as we are in it. */
int change_visit_give(struct change_visit *v);

/*
 * Takes attributes off a file or a folder that an overlay would obey; `hides`: and puts that one
 * on by which a folder hides what is below it.
 */
int change_finish_mark(
	struct change_finish *f, const struct change_visit *v, const char *name, bool hides);
