#pragma once

#include "cgroup/cgroup_place.h"

/*
 * A place of the test's own in the trees of cgroups, in which everything it tries happens: nothing
 * of others' is beside it, and all of it together is bounded.
 */
#define PLACE_MAX_FOLDERS 4

struct test_place {
	uid_t uid;
	struct {
		char path[CGROUP_PATH_SIZE + 64];
		const char *door; /* the file through which a process goes in, or NULL */
	} folders[PLACE_MAX_FOLDERS];
	int count;
};

/* As root; a place that `uid` may divide. NULL, or why there can be none here. */
const char *test_place_make(struct test_place *p, uid_t uid);

/* Goes there and becomes that user. */
bool test_place_enter(const struct test_place *p);

/* False where something was left in it. */
bool test_place_remove(struct test_place *p);
