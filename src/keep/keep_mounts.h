#pragma once

#include "keep/keep_sources.h"
#include "keep/keep_view.h"

/*
 * The mounts a plan makes, as mountinfo must show them, and the comparison. Pure but for
 * keep_mounts_expect, which asks where the sources are on the host.
 */
struct keep_expected {
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
int keep_refuse_nested(const struct keep_view *host, const char *source, struct err *e);

struct keep_mounts {
	struct keep_expected *expected;
	size_t count, max;
	const char *pool;                     /* device of the cage's pool, once seen */
	const char *layers[CAGE_LAYER_COUNT]; /* and of the overlays */
};

int keep_mounts_expect(struct keep_mounts *ret, const struct cage_start *start,
	const struct keep_sources *sources, const struct keep_view *host, struct arena *arena,
	struct err *e);

/* And what a session brings, which keep_mounts_expect leaves out. */
int keep_mounts_expect_late(struct keep_mounts *m, const struct cage_start *start,
	const struct keep_sources *sources, const struct keep_view *host, struct arena *arena,
	struct err *e);

#define KEEP_FAULT_SIZE 128

/* What a comparison found wrong, by the guarantee that it breaks; "" where nothing is. */
struct keep_mount_faults {
	char root[KEEP_FAULT_SIZE], reads[KEEP_FAULT_SIZE], writes[KEEP_FAULT_SIZE];
	char project[KEEP_FAULT_SIZE], protect[KEEP_FAULT_SIZE];
	char proc[KEEP_FAULT_SIZE], dev[KEEP_FAULT_SIZE];
};

void keep_mounts_compare(struct keep_mounts *m, const struct keep_view *cage,
	const struct keep_view *host, struct keep_mount_faults *ret);
