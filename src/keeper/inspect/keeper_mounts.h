#pragma once

#include "keeper/inspect/keeper_snapshot.h"
#include "keeper/start/keeper_sources.h"

/*
 * The mounts a plan makes, as mountinfo must show them, and the comparison. Pure but for
 * keeper_mounts_expect, which asks where the sources are on the host.
 */
struct keeper_expected {
	const char *place;
	const char *type;   /* or NULL: that of the host's mount it is a part of */
	const char *device; /* or NULL: a file system of the cage's own */
	const char *root;
	const char *source; /* on the host, where what is mounted below it comes along; or NULL */
	unsigned flags;     /* PLAN_READ_ONLY … */
	unsigned kind;      /* of the operation */
	bool is_pool;       /* a folder of the cage's pool */
	unsigned layer;     /* of the one overlay that a tree is: 1 + enum cage_layer; or 0 */
	bool is_folder;     /* the source is one */
	bool is_seen;
};

/* Nothing may be mounted below a folder of which one file system is shown: that would be missing.
 */
int keeper_refuse_nested(const struct keeper_snapshot *host, const char *source, struct err *e);

struct keeper_mounts {
	struct keeper_expected *expected;
	size_t count, max;
	const char *pool;                     /* device of the cage's pool, once seen */
	const char *layers[CAGE_LAYER_COUNT]; /* and of the overlays */
};

int keeper_mounts_expect(struct keeper_mounts *ret, const struct cage_start *start,
	const struct keeper_sources *sources, const struct keeper_snapshot *host,
	struct arena *arena, struct err *e);

/* And what a session brings, which keeper_mounts_expect leaves out. */
int keeper_mounts_expect_late(struct keeper_mounts *m, const struct cage_start *start,
	const struct keeper_sources *sources, const struct keeper_snapshot *host,
	struct arena *arena, struct err *e);

#define KEEPER_FAULT_SIZE 128

/* What a comparison found wrong, by the guarantee that it breaks; "" where nothing is. */
struct keeper_mount_faults {
	char root[KEEPER_FAULT_SIZE], reads[KEEPER_FAULT_SIZE], writes[KEEPER_FAULT_SIZE];
	char project[KEEPER_FAULT_SIZE], protect[KEEPER_FAULT_SIZE];
	char proc[KEEPER_FAULT_SIZE], dev[KEEPER_FAULT_SIZE];
};

void keeper_mounts_compare(struct keeper_mounts *m, const struct keeper_snapshot *cage,
	const struct keeper_snapshot *host, struct keeper_mount_faults *ret);
