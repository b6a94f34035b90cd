#pragma once

#include "cgroup/cgroup.h"

/* Finds the cgroup of this process in each tree: folders of runs are made there, or above. */

#define CGROUP_PATH_SIZE 1024

/* The place in one tree; all "" if the process is not in it. */
struct cgroup_place {
	char path[CGROUP_PATH_SIZE];  /* as in /proc/self/cgroup */
	char mount[CGROUP_PATH_SIZE]; /* where the tree is mounted */
	char dir[CGROUP_PATH_SIZE];   /* path below mount */
};

struct cgroup_places {
	struct cgroup_place v1[CGROUP_COUNT], v2;
};

/*
 * Finds the places of this process. A tree that cannot be read stays empty. `mounts` is the text of
 * this process's mountinfo; NULL: read it.
 */
void cgroup_place_find(const char *mounts, struct cgroup_places *ret);

/*
 * Take one line of /proc/self/cgroup and, when those are done, one of /proc/self/mountinfo. Change
 * the line.
 */
void cgroup_place_take_own(struct cgroup_places *p, char *line);
void cgroup_place_take_mount(struct cgroup_places *p, char *line);

/* Opens a cgroup and checks the magic number of its file system. Returns a descriptor or -errno. */
int cgroup_place_open(const char *dir, long magic);

/*
 * One level of the version 2 tree. A cgroup has the controllers that its parent enables for its
 * children (cgroup.subtree_control), and a cgroup with processes in it can enable none. So callers
 * walk up from the process to the nearest level that may be divided.
 */
struct cgroup_level {
	char dir[CGROUP_PATH_SIZE];
	size_t mount_len;
	int fd;
	bool has[CGROUP_COUNT];        /* it has the controller */
	bool hands_down[CGROUP_COUNT]; /* a new child would have it */
	int refusal;                   /* the errno why we may not make a child, or 0 */
};

/* Prepares a walk. The first call of cgroup_level_next goes to the place itself. */
void cgroup_level_init(struct cgroup_level *l, const struct cgroup_place *place);
void cgroup_level_done(struct cgroup_level *l);

/* Goes to the next level, up to the top of the mount. False if there is none. */
bool cgroup_level_next(struct cgroup_level *l);

/* --- a scope from systemd --- */

/*
 * If the cgroup of a login is not delegated, the user's systemd manager can make a scope that is,
 * and move this process into it. podman does the same.
 */

/* Says which controllers a scope would have. Returns 0, or -errno if no manager can be asked. */
int cgroup_scope_offers(bool ret[static CGROUP_COUNT]);

/*
 * Moves this process into a cgroup below a new scope NAME.scope and enables the controllers in
 * `wanted` for the scope's children, so that folders can be made there. The scope ends with its
 * last process.
 */
int cgroup_scope_enter(const char *name, unsigned wanted, struct err *e);

/* Asks the manager at the socket `bus` for a scope with process `pid`. Exported for tests. */
int cgroup_scope_ask(int bus, const char *unit, pid_t pid, struct err *e);
