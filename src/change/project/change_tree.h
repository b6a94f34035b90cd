#pragma once

#include "base/tree.h"
#include "change/change.h"
#include "change/project/change_project.h"

/*
 * The digest of a large tree that seldom changes: hashed once, and afterwards only looked at.
 */

#define CHANGE_TREE_SETTLED_MS 60000

struct change_tree {
	int fd;                               /* its top, opened for reading */
	const struct change_project *project; /* it is one: change_project_digest of it; or NULL */
	int known;                            /* the folder of what was found earlier, or -1 */
	uint64_t settled_ms;             /* that long nothing must have changed to be remembered */
	const char *what;                /* for who waits: "hashing the image, MiB" */
	struct change_progress progress; /* told in MiB */
	int (*step)(void *of);           /* 0, or -errno: then it ends with that; may be NULL */
	void *of;
};

struct change_tree_digest {
	char sha256[SHA256_HEX_SIZE]; /* tree_digest of it, which enters no mount */
	struct buf list;              /* of a project, as much as is kept; the caller's */
	uint64_t files, bytes;        /* bytes of content, holes not counted */
	bool is_remembered;           /* nothing was read */
};

/*
 * Remembers only what lies on a file system that notes every change in ctime, and where nothing
 * changed lately: a file that is mapped has the time of the first write until what was written
 * reaches the disk. What cannot be remembered is hashed anew each time.
 */
int change_tree_digest(const struct change_tree *q, struct change_tree_digest *ret, struct err *e);
