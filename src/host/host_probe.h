#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "host/host.h"

/*
 * Shared by the files of the probe and their tests. Nobody else includes it.
 *
 * The result of a try is 0, an errno or HOST_UNTRIED. host_cause_of turns it into a cause.
 */
#define HOST_UNTRIED (-1)

/* Rules of this machine that may have made a try fail. They only help to name the cause. */
struct host_rules {
	bool userns_off; /* kernel.unprivileged_userns_clone=0 */
	bool apparmor;   /* kernel.apparmor_restrict_unprivileged_userns=1 */
	bool filter;     /* this process has a seccomp filter */
	bool fixed_root; /* the root is a chroot or the initial ram disk */
	bool no_proc;    /* /proc is not a procfs */
	bool weak_root;  /* root without the capabilities to map ids */
	bool in_container;
};

/*
 * Returns why `ability` failed with errno `num`. Pure. The abilities before it must be set in `h`.
 */
enum host_cause host_cause_of(
	const struct host *h, const struct host_rules *rules, enum host_ability ability, int num);

static inline void host_set(
	struct host *h, enum host_ability ability, enum host_cause cause, int num)
{
	h->abilities[ability].cause = cause;
	h->abilities[ability].num = num;
}

/* The id maps of the probe's user namespace, which maps one user and one group. */
#define HOST_ID_INSIDE 1000

struct host_maps {
	bool has_other; /* maps to an id that is not ours, which only root can do */
	char uid[48], gid[48];
};

/* True in the initial user namespace, which maps all ids. */
bool host_maps_is_initial(void);

/* The children's results, in shared memory: those of a killed child are not lost. */
struct host_report {
	int tried[HOST_ABILITY_COUNT];
	int landlock_abi;
};

/* A child and its pidfd, or -1 and -1. */
struct host_process {
	pid_t pid;
	int fd;
};

/* The children: one tries what a cage does, the other the network and single system calls. */
struct host_children {
	struct host_report *report;
	struct host_process cage, net;
	struct host_maps maps, own_maps; /* own_maps is written if maps is refused */
	uint64_t namespaces; /* the cage's child was cloned into these, and tries the others */
	int go[2];           /* a pipe; EOF says that the maps were written or refused */
	int userns;          /* the user namespace of the cage's child, if root maps ids; or -1 */
	int other_ids;       /* result of mapping an id that is not ours */
	int idmap;           /* result of an id-mapped mount; HOST_UNTRIED if not root */
	int start_error;     /* errno of a clone that failed, or 0 */
	bool was_filtered;   /* a seccomp filter killed one of the children */
};

/* The namespaces of a cage except the network. */
#define HOST_NAMESPACES                                                                            \
	((uint64_t)(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |     \
		    CLONE_NEWCGROUP))

/* Starts the children in as many namespaces as they get; as root, writes their id maps. */
int host_children_start(struct host_children *c, bool is_root, struct err *e);
void host_children_done(struct host_children *c);

/* Waits for the children with a timeout and reaps them. Sets what a killed child left untried. */
void host_children_finish(struct host_children *c);
