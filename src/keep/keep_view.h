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

enum keep_namespace {
	KEEP_NS_USER,
	KEEP_NS_MOUNT,
	KEEP_NS_PID,
	KEEP_NS_NET,
	KEEP_NS_IPC,
	KEEP_NS_UTS,
	KEEP_NS_CGROUP,
	KEEP_NS_COUNT,
};

extern const char *const keep_namespace_names[KEEP_NS_COUNT]; /* as plans call them */

#define KEEP_MAX_TERMINALS 4
#define KEEP_MAX_VIEW      ((size_t)64 << 20) /* bytes of what it says */

struct keep_mount {
	int id;
	const char *device;  /* "8:1" */
	const char *root;    /* what of the file system is mounted */
	const char *place;   /* where */
	const char *options; /* of the mount: "ro,nosuid,…" */
	const char *type;
	const char *super; /* of the file system */
};

/* The first line of a map, and how many there are. */
struct keep_id_map {
	uint32_t inside, outside, count;
	unsigned lines;
};

struct keep_view {
	uint32_t uids[4], gids[4];
	unsigned group_count;     /* supplementary ones, without gids[1] */
	uint64_t capabilities[5]; /* inheritable, permitted, effective, bounding, ambient */
	int no_new_privileges, seccomp, filter_count;
	struct keep_id_map uid_map, gid_map;
	uint64_t namespaces[KEEP_NS_COUNT]; /* inodes */
	struct keep_mount *mounts;
	size_t mount_count;
	uint64_t max_files, max_processes; /* UINT64_MAX: unlimited */
	char interfaces[64];               /* names, a blank after each */
	struct {
		char name[64];
		dev_t device, number;    /* of the file system it is in; its own */
	} terminals[KEEP_MAX_TERMINALS]; /* the descriptors that are one */
	unsigned terminal_count;         /* may be more than are kept */
	unsigned descriptor_count;
	int64_t session, terminal_number; /* 0: no controlling terminal */
};

/* Reads all of it. What is in *ret lives in `arena`. */
int keep_view_read(struct keep_view *ret, pid_t pid, struct arena *arena, struct err *e);

/* Files of a process that can be read after it has hidden the rest. -1: not open. */
struct keep_view_files {
	int status, limits, descriptors;
};

int keep_view_open(struct keep_view_files *ret, pid_t pid, struct err *e);
void keep_view_close(struct keep_view_files *files);

/* What of a view may have changed, once more. */
int keep_view_read_again(struct keep_view *v, const struct keep_view_files *files,
	struct arena *arena, struct err *e);

/* What a cage is compared with: status, namespaces and mounts of this process. */
int keep_view_read_own(struct keep_view *ret, struct arena *arena, struct err *e);

/* Is a word among the comma-separated options? */
bool keep_has_option(const char *options, const char *word);

/* The kernel's files about a process; of this one the first KEEP_TEXT_OWN are read. */
enum keep_text {
	KEEP_TEXT_STATUS,
	KEEP_TEXT_MOUNTS,
	KEEP_TEXT_OWN,
	KEEP_TEXT_UID_MAP = KEEP_TEXT_OWN,
	KEEP_TEXT_GID_MAP,
	KEEP_TEXT_STAT,
	KEEP_TEXT_LIMITS,
	KEEP_TEXT_INTERFACES,
	KEEP_TEXT_COUNT,
};

/* All that they say, into a view of zeros. The view points into the text of the mounts. */
int keep_view_parse(struct keep_view *v, char *const texts[static KEEP_TEXT_COUNT], bool is_whole,
	struct arena *arena);

/* The parts of /proc's files that are parsed, for their tests. */
int keep_view_parse_status(struct keep_view *v, const char *text);
int keep_view_parse_mounts(struct keep_view *v, char *text, struct arena *arena);
