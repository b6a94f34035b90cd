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
 * Sessions whose commands share one cage: the keeper of that cage, which has no command, and those
 * of the commands, which join it. Parts of struct keeper.
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

void keeper_joined_init(struct keeper_joined *j);
void keeper_joined_done(struct keeper_joined *j);

/* Which namespace is at a place of struct cage_join. */
extern const enum keeper_namespace keeper_join_order[CAGE_NAMESPACES];

/* Of what makes a cage, and not of what each command in it has for itself. */
void keeper_join_digest_plan(const struct plan *p, char ret[static SHA256_HEX_SIZE]);
void keeper_join_digest_mounts(const struct keeper_snapshot *v, char ret[static SHA256_HEX_SIZE]);

/* Is this the cage that the plan makes? An error: it must not be entered. */
int keeper_join_check(
	const struct cage_start *start, const struct keeper_cage_head *h, struct err *e);

/* Waits for the turn to look for the session's cage, and gets what it takes to enter it, if there
 * is one. */
int keeper_join_find(struct keeper *k, struct err *e);

/* The same where there was none; and what else a command in it needs. */
int keeper_join_prepare(struct keeper *k, struct err *e);

/* Looks at the process that entered, before it hides. */
int keeper_join_look(struct keeper *k, struct err *e);

/* To the command, and what a terminal sends to all of its group. */
void keeper_join_signal(const struct keeper_process *p, int number);

/* The command has ended. */
void keeper_join_reap(struct keeper *k);

/* Ends what is ended for a reason; false: it does not end. */
bool keeper_join_end(struct keeper *k);

/* What the command left behind may go on printing: the cage's keeper reads it from here on. */
void keeper_join_leave(struct keeper *k);

/* --- keeper_resident.c --- */

void keeper_resident_init(struct keeper_resident *r);
void keeper_resident_done(struct keeper *k);

/* The cage was looked at: takes hold of its namespaces, and a name that is known to others. */
int keeper_resident_open(struct keeper *k, struct err *e);

/* Its startup commands have ended: lets others in. */
void keeper_resident_begin(struct keeper *k);
void keeper_resident_hear(struct keeper *k);
