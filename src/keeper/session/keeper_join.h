#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/sha256.h"
#include "cage/cage.h"
#include "cgroup/cgroup.h"
#include "keeper/inspect/keeper_snapshot.h"
#include "proof/record/record.h"

/*
 * Runs of a session: they share its workspace, and some also one cage. That cage has a keeper
 * without a command, and the keepers of the commands join it. Parts of struct keeper.
 */

/* What it takes to enter a cage, as its keeper tells it; descriptors follow as WIRE_PART. */
struct keeper_cage_head {
	char run[RECORD_RUN_SIZE];
	char plan[SHA256_HEX_SIZE];   /* of the operations that make a cage */
	char mounts[SHA256_HEX_SIZE]; /* as they were when it was looked at */
	uint32_t uid, gid;
	int32_t group_count;
	int32_t group_of[CGROUP_COUNT];
	uint8_t is_v2[CGROUP_COUNT];
	uint8_t is_own[CAGE_NAMESPACES]; /* and not the host's */
};

static_assert((int)CAGE_NAMESPACES == (int)KEEPER_NS_COUNT, "a cage has all of them");

/* A run in the workspace of its session. */
struct keeper_member {
	int connection; /* to the process that has the workspace mounted, or -1 */
	int lock;       /* of the workspace, shared with others that use it, or -1 */
	int turn;       /* to look for the session's cage and start one, or -1 */
	int kept[CAGE_TREE_COUNT - CAGE_LAYER_COUNT]; /* what it has beside its layers, or -1 */
};

/* A command in the cage of its session. */
struct keeper_joined {
	int connection; /* to the keeper of the cage, or -1 */
	struct cage_join enter;
	uint64_t inodes[KEEPER_NS_COUNT]; /* of its namespaces */
	struct cgroup group;              /* its cgroups, to be entered; not ours */
	char mounts[SHA256_HEX_SIZE];
	struct keeper_snapshot_files again;
	int left[2]; /* where processes may still print to that the command leaves; or -1 */
};

/* The keeper of that cage. */
struct keeper_resident {
	int clients;  /* an epoll: who wants in, who is in, and what they left */
	int listener; /* `cage` in the workspace */
	int count;
	int namespaces[CAGE_NAMESPACES]; /* in the order of struct cage_join; -1: the host's */
	char plan[SHA256_HEX_SIZE], mounts[SHA256_HEX_SIZE];
};

struct keeper;
struct keeper_process;

/* --- keeper_join.c --- */

/* Returns a socket that listens by that name in the workspace, or -errno. */
int keeper_member_listen(int workspace, const char *name);

/* Locks the workspace, and gets the detached trees of what is captured in it. */
int keeper_member_join(struct keeper *k, struct err *e);

void keeper_joined_init(struct keeper_joined *j);

/* Which namespace is at a place of struct cage_join. */
extern const enum keeper_namespace keeper_join_order[CAGE_NAMESPACES];

/* Inspects the process that entered the cage, before it makes itself undumpable. */
int keeper_join_look(struct keeper *k, struct err *e);

/* Kills the command unless it has ended. Returns true if nothing is left to wait for. */
bool keeper_join_end(struct keeper *k);

/* Hands the pipes that the command left behind to the keeper of the cage, which reads them on. */
void keeper_join_leave(struct keeper *k);

/* --- keeper_resident.c --- */

/* Digests of the operations that make a cage, without those that each command has for itself, and
 * of its mounts. */
void keeper_join_digest_plan(const struct plan *p, char ret[static SHA256_HEX_SIZE]);
void keeper_join_digest_mounts(const struct keeper_snapshot *v, char ret[static SHA256_HEX_SIZE]);

/* Checks that the cage is the one that the plan makes; after an error it must not be entered. */
int keeper_join_check(
	const struct cage_start *start, const struct keeper_cage_head *h, struct err *e);
