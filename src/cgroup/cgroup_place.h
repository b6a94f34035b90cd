#pragma once

#include "cgroup/cgroup.h"

/* Where this process is in the trees of cgroups: its own folders are made there, or above. */

#define CGROUP_PATH_SIZE 1024

/* In one tree: "" for not at all. */
struct cgroup_place {
	char path[CGROUP_PATH_SIZE];  /* as /proc/self/cgroup says it */
	char mount[CGROUP_PATH_SIZE]; /* where the tree is mounted */
	char dir[CGROUP_PATH_SIZE];   /* path below mount */
};

struct cgroup_places {
	struct cgroup_place v1[CGROUP_COUNT], v2;
};

/* Of this process; what cannot be read is nowhere. */
void cgroup_place_find(struct cgroup_places *ret);

/* One line of /proc/self/cgroup, and after all of them one of /proc/self/mountinfo. Cut up. */
void cgroup_place_take_own(struct cgroup_places *p, char *line);
void cgroup_place_take_mount(struct cgroup_places *p, char *line);

/* Opens a directory that really is a cgroup; `magic` is its file system's. A descriptor or -errno.
 */
int cgroup_place_open(const char *dir, long magic);

/*
 * One level of the version 2 tree. A cgroup has the controllers that its parent hands down, and a
 * parent that holds processes hands down none: so one goes up from where one is to the nearest
 * that may be divided and does.
 */
struct cgroup_level {
	char dir[CGROUP_PATH_SIZE];
	size_t mount_len;
	int fd;
	bool has[CGROUP_COUNT];        /* the controller, for itself */
	bool hands_down[CGROUP_COUNT]; /* … to a new child */
	int refusal;                   /* why we may not divide it: an errno, or 0 */
};

/* Stands before the first level, which is the place itself. */
void cgroup_level_init(struct cgroup_level *l, const struct cgroup_place *place);
void cgroup_level_done(struct cgroup_level *l);

/* One level up, to the top of the mount; false beyond it. */
bool cgroup_level_next(struct cgroup_level *l);

/* --- a scope from systemd --- */

/*
 * A cgroup from systemd: where a login's own is not delegated, the user's manager makes a scope
 * that is, and moves this process into it. As podman does.
 */

/* Which controllers a scope would have; -errno where no manager of this user's can be asked. */
int cgroup_scope_offers(bool ret[static CGROUP_COUNT]);

/*
 * Moves this process into a new scope NAME.scope, in a cgroup of its own below it, and hands the
 * controllers in `wanted` down from the scope: folders can be made there. The scope ends with
 * the last process in it.
 */
int cgroup_scope_enter(const char *name, unsigned wanted, struct err *e);

/* Part of it, for tests: asks a manager at the socket `bus` for a scope with process `pid`. */
int cgroup_scope_ask(int bus, const char *unit, pid_t pid, struct err *e);
