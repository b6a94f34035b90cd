#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"

/*
 * The kernel's view of a process, as plain data: what /proc says of it, nothing concluded. The
 * same for the cage's first process and for the keeper, so that the two can be compared.
 */

enum keeper_namespace {
	KEEPER_NS_USER,
	KEEPER_NS_MOUNT,
	KEEPER_NS_PID,
	KEEPER_NS_NET,
	KEEPER_NS_IPC,
	KEEPER_NS_UTS,
	KEEPER_NS_CGROUP,
	KEEPER_NS_COUNT,
};

extern const char *const keeper_namespace_names[KEEPER_NS_COUNT]; /* as plans call them */

#define KEEPER_MAX_TERMINALS 4
#define KEEPER_MAX_VIEW      ((size_t)64 << 20) /* bytes of what it says */

struct keeper_mount {
	int id;
	const char *device;  /* "8:1" */
	const char *root;    /* what of the file system is mounted */
	const char *place;   /* where */
	const char *options; /* of the mount: "ro,nosuid,…" */
	const char *type;
	const char *super; /* of the file system */
};

/* The first line of a map, and how many there are. */
struct keeper_id_map {
	uint32_t inside, outside, count;
	unsigned lines;
};

struct keeper_snapshot {
	uint32_t uids[4], gids[4];
	unsigned group_count;     /* supplementary ones, without gids[1] */
	uint64_t capabilities[5]; /* inheritable, permitted, effective, bounding, ambient */
	int no_new_privileges, seccomp, filter_count;
	uint64_t ignored; /* signals, as bits */
	struct keeper_id_map uid_map, gid_map;
	uint64_t namespaces[KEEPER_NS_COUNT]; /* inodes */
	struct keeper_mount *mounts;
	size_t mount_count;
	uint64_t max_files, max_processes; /* UINT64_MAX: unlimited */
	char interfaces[64];               /* names, a blank after each */
	struct {
		char name[64];
		dev_t device, number;      /* of the file system it is in; its own */
	} terminals[KEEPER_MAX_TERMINALS]; /* the descriptors that are one */
	unsigned terminal_count;           /* may be more than are kept */
	unsigned descriptor_count;
	int64_t session, terminal_number; /* 0: no controlling terminal */
};

/* Reads all of it. What is in *ret lives in `arena`. */
int keeper_snapshot_read(
	struct keeper_snapshot *ret, pid_t pid, struct arena *arena, struct err *e);

/* Files of a process that can be read after it has hidden the rest. -1: not open. */
struct keeper_snapshot_files {
	int status, limits, descriptors;
};

int keeper_snapshot_open(struct keeper_snapshot_files *ret, pid_t pid, struct err *e);
void keeper_snapshot_close(struct keeper_snapshot_files *files);

/* What of a view may have changed, once more. */
int keeper_snapshot_read_again(struct keeper_snapshot *v, const struct keeper_snapshot_files *files,
	struct arena *arena, struct err *e);

/*
 * What a cage is compared with: the number of filters, namespaces and mounts of this process.
 * `filters` is that number, or -1: it is read.
 */
int keeper_snapshot_read_own(
	struct keeper_snapshot *ret, int filters, struct arena *arena, struct err *e);

/* What the status of this process says; `text` is room for it. 0 or -errno. */
int keeper_snapshot_read_status(struct keeper_snapshot *v, char *text, size_t size);

/* Is a word among the comma-separated options? */
bool keeper_has_option(const char *options, const char *word);

/* The kernel's files about a process. */
enum keeper_text {
	KEEPER_TEXT_STATUS,
	KEEPER_TEXT_MOUNTS,
	KEEPER_TEXT_UID_MAP,
	KEEPER_TEXT_GID_MAP,
	KEEPER_TEXT_STAT,
	KEEPER_TEXT_LIMITS,
	KEEPER_TEXT_INTERFACES,
	KEEPER_TEXT_COUNT,
};

/* All that they say, into a view of zeros. The view points into the text of the mounts. */
int keeper_snapshot_parse(struct keeper_snapshot *v, char *const texts[static KEEPER_TEXT_COUNT],
	struct arena *arena);

/* The parts of /proc's files that are parsed, for their tests. */
int keeper_snapshot_parse_status(struct keeper_snapshot *v, const char *text);
int keeper_snapshot_parse_mounts(struct keeper_snapshot *v, char *text, struct arena *arena);
