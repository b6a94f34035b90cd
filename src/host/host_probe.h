#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "host/host.h"

/*
 * Shared by the files of the probe and their tests. Nobody else includes it.
 *
 * A result is an errno, 0 for "it can", or HOST_UNTRIED. host_cause_of turns it into a cause.
 */
#define HOST_UNTRIED (-1)

/* Rules of this machine that may have refused something. They explain; they decide nothing. */
struct host_rules {
	bool userns_off; /* kernel.unprivileged_userns_clone=0 */
	bool apparmor;   /* kernel.apparmor_restrict_unprivileged_userns=1 */
	bool filter;     /* a seccomp filter is on this process */
	bool fixed_root; /* the root is a chroot or the initial ram disk */
	bool no_proc;    /* /proc is not the kernel's */
	bool weak_root;  /* root without the capabilities to give ids away */
	bool in_container;
};

/*
 * Why `ability` failed with errno `num`. Pure. What comes before `ability` in `h` is already
 * known.
 */
enum host_cause host_cause_of(
	const struct host *h, const struct host_rules *rules, enum host_ability ability, int num);

static inline void host_set(
	struct host *h, enum host_ability ability, enum host_cause cause, int num)
{
	h->abilities[ability].cause = cause;
	h->abilities[ability].num = num;
}

/* The id maps of the probe's user namespace, which has one user and one group in it. */
#define HOST_ID_INSIDE 1000

struct host_maps {
	bool has_other; /* to an id that is not our own, which only root can write */
	char uid[48], gid[48];
};

/* Is this the user namespace that has all ids? */
bool host_maps_is_initial(void);

/* Results of the children, in shared memory, so that those of a killed one are not lost. */
struct host_report {
	int tried[HOST_ABILITY_COUNT];
	int landlock_abi;
};

/* A child and its pidfd, or -1 and -1. */
struct host_process {
	pid_t pid;
	int fd;
};

/* The children that try things: one what a cage does, one the network and single calls. */
struct host_children {
	struct host_report *report;
	struct host_process cage, net;
	struct host_maps maps, own_maps; /* the second for when the first is refused */
	uint64_t namespaces; /* the cage's child is born into these, and tries the rest singly */
	int go[2];           /* a pipe: its end says that the maps are written or refused */
	int userns;          /* of the cage's child, where its maps are written for it, or -1 */
	int other_ids;       /* result of giving it an id other than our own */
	int idmap;           /* result of an id-mapped mount; HOST_UNTRIED where not root */
	int start_error;     /* errno of the clone that failed, else 0 */
	bool was_filtered;   /* a filter killed one of them */
};

/* Namespaces of a cage, but for the network. */
#define HOST_NAMESPACES                                                                            \
	((uint64_t)(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |     \
		    CLONE_NEWCGROUP))

/* Starts them in as many namespaces as they get; writes the maps where root does that. */
int host_children_start(struct host_children *c, bool is_root, struct err *e);
void host_children_done(struct host_children *c);

/* Waits for them, but not for ever, and reaps them. Sets what a killed one left untried. */
void host_children_finish(struct host_children *c);
