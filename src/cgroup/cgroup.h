#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * The cgroups of one run, which enforce its limits of memory, processors and processes. In version
 * 1 each controller has a tree and a folder of its own; in version 2 one folder has them all.
 *
 * A folder is called bawn-RUN and is made below the keeper's own cgroup. The keeper holds a lock on
 * it (flock) as long as it lives. A folder that nobody has locked was left by a keeper that was
 * killed: any other keeper kills the processes in it and removes it.
 */
enum cgroup_controller {
	CGROUP_MEMORY,
	CGROUP_CPU,
	CGROUP_PIDS,
	CGROUP_COUNT,
};

/* The kernel's names. */
extern const char *const cgroup_controller_names[CGROUP_COUNT];

#define CGROUP_NAME_SIZE 32

struct cgroup_folder {
	int parent; /* the folder that it is made in */
	int fd;     /* -1: not made; has the lock */
	int door;   /* cgroup.procs or tasks: a process that writes 0 enters */
	bool is_v2;
};

/* Owns its descriptors. Must be initialised with cgroup_init. */
struct cgroup {
	char name[CGROUP_NAME_SIZE];
	struct cgroup_folder folders[CGROUP_COUNT];
	int count;
	int of[CGROUP_COUNT]; /* index of the folder that has the controller, or -1 */
	char why_not[200];    /* why systemd refused a scope; "" if it was not asked or made one */
};

void cgroup_init(struct cgroup *g);

/*
 * Closes all descriptors; folders stay. A child of the keeper that neither enters a folder nor
 * calls execve must call it too: its copies of the descriptors would keep the lock after the
 * keeper's death.
 */
void cgroup_done(struct cgroup *g);

/*
 * Finds where folders for the controllers in `wanted` (bits 1 << CGROUP_…) can be made, and makes
 * none. If there is no such place, asks the user's systemd manager for a scope for the run and
 * moves this process into it. A controller without a place is an error of cgroup_limit. Returns
 * -EINVAL if `run` is not the name of a run.
 */
int cgroup_find(struct cgroup *g, const char *run, unsigned wanted, struct err *e);

/*
 * Sets a limit and makes the run's folder if it is missing. `limit` is bytes of memory, including
 * swap if the kernel can count it; thousandths of a processor; or a number of processes.
 */
int cgroup_limit(struct cgroup *g, enum cgroup_controller c, uint64_t limit, struct err *e);

/* Returns a descriptor for CLONE_INTO_CGROUP, borrowed; -1: there is no folder of version 2. */
int cgroup_clone_fd(const struct cgroup *g);

/*
 * Moves the calling process into every folder and closes the descriptors. Must be called first in
 * the new process, while it has one thread and the keeper's ids. Allocates nothing.
 */
int cgroup_enter(const struct cgroup *g, bool was_born_there, struct err *e);

/*
 * Inspects from outside whether process `pid` is in the folder and the limit is the one that was
 * set. Sets `fault` to "" or to a sentence that says what is wrong.
 */
void cgroup_look(const struct cgroup *g, enum cgroup_controller c, pid_t pid, uint64_t limit,
	char *fault, size_t size);

/* How often the run hit each limit. 0 for what the kernel does not count. */
struct cgroup_counts {
	uint64_t oom_kills;     /* processes killed because memory was used up */
	uint64_t memory_peak;   /* bytes */
	uint64_t forks_refused; /* times a process could not be started */
	uint64_t pids_peak;     /* since kernel 6.1 */
	uint64_t throttled_us;  /* time in which processes had to wait for their share */
};

/*
 * Reads the counts. Must be called before cgroup_kill, which makes the kernel refuse forks too.
 * Returns 0 or -errno; *ret has the counts that could be read.
 */
int cgroup_count(const struct cgroup *g, struct cgroup_counts *ret);

/*
 * Kills all processes in the folders, and no others. Waits a while for their end if the kernel has
 * no cgroup.kill.
 */
void cgroup_kill(const struct cgroup *g);

/*
 * Removes the folders and closes all descriptors. Waits up to 2 s for processes that are exiting. A
 * folder that cannot be removed is left for a later sweep.
 */
int cgroup_remove(struct cgroup *g, struct err *e);

/*
 * Removes the folders of dead keepers in the places that were found, and kills the processes in
 * them. Touches only folders with the name of a run, and skips those that it may not remove.
 */
void cgroup_sweep(const struct cgroup *g);
