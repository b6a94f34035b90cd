#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * The cgroups of one run: what holds its limits of memory, processors and processes. With version 1
 * each controller has a tree and a folder of its own, with version 2 one folder has them all.
 *
 * A folder is called bawn-RUN and is made below the keeper's own place. It is the keeper's as long
 * as the keeper lives: its descriptor of the folder is locked. One that nobody has locked is left
 * from a keeper that was killed, and anyone who comes by kills what runs in it and removes it.
 */
enum cgroup_controller {
	CGROUP_MEMORY,
	CGROUP_CPU,
	CGROUP_PIDS,
	CGROUP_COUNT,
};

/* As the kernel calls it. */
extern const char *const cgroup_controller_names[CGROUP_COUNT];

#define CGROUP_NAME_SIZE 32

struct cgroup_folder {
	int parent; /* the one it is made in */
	int fd;     /* -1: not made; the lock goes with it */
	int door;   /* who writes 0 here is inside */
	bool is_v2;
};

/* Held by value; all descriptors are its own. Zero is no beginning: cgroup_init. */
struct cgroup {
	char name[CGROUP_NAME_SIZE];
	struct cgroup_folder folders[CGROUP_COUNT];
	int count;
	int of[CGROUP_COUNT]; /* which folder has the controller, or -1 */
	char why_not[200];    /* systemd gave no scope; "" if it was not asked or did */
};

void cgroup_init(struct cgroup *g);

/*
 * Closes everything; folders that were made stay. Also for a child of the keeper's that neither
 * enters nor executes: with a copy of the descriptors it would keep the lock after the keeper's
 * death.
 */
void cgroup_done(struct cgroup *g);

/*
 * Finds where folders for the controllers in `wanted` (bits 1 << CGROUP_…) can be made, and makes
 * none. Where there is no such place, this process moves into a scope that the user's systemd
 * manager makes for the run. A controller that has no place is told by cgroup_limit. -EINVAL:
 * `run` is no run's name.
 */
int cgroup_find(struct cgroup *g, const char *run, unsigned wanted, struct err *e);

/*
 * Sets a limit, in the run's folder, which is made if it is not there: bytes of memory, swap
 * included where the kernel can count it; thousandths of a processor; a number of processes.
 */
int cgroup_limit(struct cgroup *g, enum cgroup_controller c, uint64_t limit, struct err *e);

/* For CLONE_INTO_CGROUP; -1: there is no folder of version 2 to be born in. Borrowed. */
int cgroup_clone_fd(const struct cgroup *g);

/*
 * In the new process, first thing, while it has one thread and the keeper's ids: goes into every
 * folder and closes the descriptors. Needs nothing but the struct, and allocates nothing.
 */
int cgroup_enter(const struct cgroup *g, bool was_born_there, struct err *e);

/*
 * From outside: is process `pid` in the folder, and is the limit the one that was set? "" in
 * `fault`, or a sentence.
 */
void cgroup_look(const struct cgroup *g, enum cgroup_controller c, pid_t pid, uint64_t limit,
	char *fault, size_t size);

/* How often each limit was met. 0 for what the kernel does not count. */
struct cgroup_counts {
	uint64_t oom_kills;     /* processes killed because memory was used up */
	uint64_t memory_peak;   /* bytes */
	uint64_t forks_refused; /* times a process could not be started */
	uint64_t pids_peak;     /* since kernel 6.1 */
	uint64_t throttled_us;  /* time in which processes had to wait for their share */
};

/* Before cgroup_kill, which refuses forks too. 0 or -errno; *ret has what could be read. */
int cgroup_count(const struct cgroup *g, struct cgroup_counts *ret);

/*
 * Kills everything in the folders, and nothing that is not in them. Waits a while for the end
 * where the kernel does not do it in one go.
 */
void cgroup_kill(const struct cgroup *g);

/*
 * Removes the folders and closes everything. A process that was just reaped may still be on its
 * way out: waits for that, 2 s at most. What cannot be removed is left to a later sweep.
 */
int cgroup_remove(struct cgroup *g, struct err *e);

/*
 * Removes what dead keepers left in the places found, and kills what still runs in it. Only what
 * is named as a run's folder is touched, and what may not be is left alone.
 */
void cgroup_sweep(const struct cgroup *g);
