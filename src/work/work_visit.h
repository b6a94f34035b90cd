#pragma once

#include <limits.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/tree.h"
#include "work/work_copy.h"
#include "work/work_list.h"

/* What the parts of finishing a copy share. */

struct work_finish {
	int copy;     /* its top */
	bool removes; /* the second walk */
	struct work_list list;
	const struct work_progress *progress;
	uint64_t seen;
	unsigned depth;
	size_t names_size; /* of the folders we are in */
	size_t path_size;
	char path[WORK_MAX_PATH + 1];        /* of the folder we are in */
	char attributes[XATTR_LIST_MAX];     /* names of one entry's */
	char entry[WORK_LIST_MAX_NAME + 64]; /* it, by a path of /proc */
	struct err *e;
};

/* A folder while we are in it. It has its mode again when we leave it. */
struct work_visit {
	int fd; /* -1 while we are in a folder of it */
	mode_t mode;
	bool is_given; /* its owner got rights */
	struct tree_names names;
};

typedef int work_walk(struct work_finish *f, struct work_visit *v);

/* Says what could not be done with an entry of the folder we are in. -num. */
int work_finish_fail(const struct work_finish *f, const char *name, int num, const char *doing);

/* The top, and what `inside` does there. */
int work_visit_top(struct work_finish *f, work_walk *inside);

/* Goes into a folder and comes back. */
int work_visit_folder(struct work_finish *f, struct work_visit *v, const char *name, mode_t mode,
	work_walk *inside);

/* Makes the folder one that we may change, as long as we are in it. */
int work_visit_give(struct work_visit *v);

/*
 * Takes attributes off a file or a folder that an overlay would obey; `hides`: and puts that one
 * on by which a folder hides what is below it.
 */
int work_finish_mark(
	struct work_finish *f, const struct work_visit *v, const char *name, bool hides);
