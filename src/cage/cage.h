#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/err.h"
#include "cgroup/cgroup.h"
#include "plan/plan_data.h"

/*
 * A cage: one process that is born into the new namespaces, carries the plan out operation by
 * operation, tells the keeper that the wall stands, and starts the command once the keeper has
 * inspected it. It parses nothing, chooses nothing and falls back to nothing.
 */

/* The cage's one user, by its ids on the host. */
struct cage_ids {
	bool is_given; /* the keeper writes the maps: root's cages run as an id of their own */
	bool is_team;  /* so it does here: the group is the project's, another one of the operator's
			*/
	uint32_t uid, gid;
};

/* Time stamps, in memory that keeper and cage share. Nanoseconds of CLOCK_MONOTONIC. */
struct cage_times {
	uint64_t born, mapped, ready, told, checked, started;
	uint64_t spent[PLAN_OP_KIND_COUNT];
};

/* A source of an operation, as the keeper opened, checked and approved it. */
struct cage_source {
	const char *path; /* its real one; NULL: the operation has none */
	dev_t device;
	ino_t inode;
	int tree; /* a detached tree made for the cage, or -1: the cage clones it by its path */
};

/* The trees that are captured in layers of the run's folder, or written to with protected paths. */
enum cage_layer {
	CAGE_LAYER_PROJECT,
	CAGE_LAYER_GIT,
	CAGE_LAYER_COUNT,
};

/* The trees that a session's runs share; the layers come first. */
enum cage_tree {
	CAGE_TREE_HOME = CAGE_LAYER_COUNT,
	CAGE_TREE_TMP,
	CAGE_TREE_COUNT,
};

/* The tree that a bind shows; CAGE_TREE_COUNT: none. */
static inline int cage_tree_of_bind(const struct plan_op *op)
{
	if (op->a_root == PLAN_ROOT_SESSION_HOME)
		return CAGE_TREE_HOME;
	return op->a_root == PLAN_ROOT_SESSION_TMP ? CAGE_TREE_TMP : CAGE_TREE_COUNT;
}

/* How a path of a writable project is protected. */
enum cage_held_kind {
	CAGE_HELD_WAY,    /* leads to a protected path: cannot be renamed */
	CAGE_HELD_THERE,  /* exists, and is read-only */
	CAGE_HELD_FOLDER, /* is missing and stays so: its stand-in is an empty folder … */
	CAGE_HELD_FILE,   /* … or a file with `text` … */
	CAGE_HELD_NAME,   /* … or a socket without a listener */
};

struct cage_protected {
	const char *path; /* below the top */
	const char *text;
	enum cage_held_kind kind;
	uint32_t op; /* index of the operation it belongs to */
};

/*
 * All protected paths, each after the folders that lead to it, and the work folder of the layer
 * that protects them. Overlayfs wants project and work folder in one mount: root's keeper opens
 * both in one detached tree.
 */
struct cage_protect {
	const struct cage_protected *items;
	size_t count;
	struct cage_source work; /* its `tree` has both of these in it, or is -1 */
	int project_fd, work_fd;
};

/* What the workspace holder of a session starts with. */
struct cage_member {
	int door;    /* the listening socket to which runs connect */
	int turn;    /* a file, locked to start a holder, or to end as one */
	int lock;    /* a locked file: the workspace has a holder */
	int mounted; /* a locked file: it is mounted, on this machine or another */
};

#define CAGE_NAMESPACES 7

/* A standing cage, for a command of its session. */
struct cage_join {
	int namespaces[CAGE_NAMESPACES]; /* the user's first, mounts last; -1: they are the host's
					  */
};

/* The input of the first process. Borrows everything from the keeper. */
struct cage_start {
	const struct plan *plan;
	const char *git_identity;               /* the value of $GIT_IDENTITY, or NULL */
	const char *project, *git, *home, *run; /* roots of the plan; git and home may be NULL */
	const char *term; /* the operator's TERM, where the command has a terminal; or NULL */
	struct cage_ids ids;
	const struct cage_source *sources;           /* one per operation */
	struct cage_source layers[CAGE_LAYER_COUNT]; /* in the run's folder, for what is captured */
	uint64_t overlay_size;                       /* quota of the root's kept overlay */
	struct cage_protect protects[CAGE_LAYER_COUNT]; /* for writable trees */
	const struct sock_filter *filter;
	unsigned short filter_count;
	const struct sock_filter *telling; /* the same, but reports denied calls; or NULL */
	unsigned short telling_count;
	char *const *arguments;   /* of the command */
	char *const *environment; /* of the command and the startup commands */
	char *command_line;       /* what ps shows of this process; wiped in the cage */
	size_t command_line_size;
	int stdio[3];               /* become the command's 0, 1 and 2 … */
	unsigned terminal_streams;  /* … except these bits, which become a terminal of the cage */
	const struct cgroup *group; /* enforces the limits of the whole cage, or NULL */
	int channel;                /* the cage's end of a wire_pair */
	int keepers_end;            /* the keeper's end, a copy of which the cage closes */
	struct cage_times *times;   /* or NULL */
	bool is_warm;               /* for any session, whose trees come later */
	bool stays; /* a session's cage without a command; ends when the session is stopped */
	const struct cage_join *join;    /* the standing cage to enter, or NULL */
	const struct cage_member *share; /* start a workspace holder instead, or NULL */
};

/*
 * Starts the first process of a cage in the plan's namespaces. It writes its own id maps, or waits
 * for WIRE_MAPPED after cage_write_maps. *ret_pidfd is the caller's.
 */
int cage_spawn(const struct cage_start *start, pid_t *ret_pid, int *ret_pidfd, struct err *e);

/*
 * Starts a process in the cage start->join, which becomes the command. It is the caller's child,
 * and sends WIRE_LOOK before it drops the capabilities that keep the cage's processes from tracing
 * it.
 */
int cage_spawn_join(const struct cage_start *start, pid_t *ret_pid, int *ret_pidfd, struct err *e);

/*
 * Starts the workspace holder start->share in new user and mount namespaces. It is not the caller's
 * child, and sends WIRE_READY or WIRE_FAILED on the channel.
 */
int cage_spawn_share(const struct cage_start *start, struct err *e);

/* Writes the id maps of process `pid`; `inside` is the id in the cage. */
int cage_write_maps(pid_t pid, const struct cage_ids *ids, unsigned inside, struct err *e);

/*
 * A user namespace for id-mapped mounts that show files of one owner as the cage's user's. A
 * process keeps the namespace alive until cage_idmap_done; the struct must not move meanwhile.
 */
struct cage_idmap {
	uid_t uid;
	gid_t gid;
	int fd; /* the namespace, or -1 */
	int pipe[2];
	pid_t holder;
	_Alignas(16) char stack[4096];
};

static inline void cage_idmap_init(struct cage_idmap *map)
{
	map->fd = map->pipe[0] = map->pipe[1] = -1;
	map->holder = 0;
}

int cage_idmap_make(
	struct cage_idmap *map, const struct cage_ids *ids, uid_t uid, gid_t gid, struct err *e);
void cage_idmap_done(struct cage_idmap *map);

/* The folder of the pool that is a file system of the plan's in the cage. */
static inline void cage_name_in_pool(const char *path, char *ret, size_t size)
{
	snprintf(ret, size, "own%s", path);
	for (char *at = ret; *at; at++)
		*at = *at == '/' ? '-' : *at;
}

/* The tree that an operation belongs to. */
static inline enum cage_layer cage_layer_of(const struct plan_op *op)
{
	return op->a_root == PLAN_ROOT_GIT ? CAGE_LAYER_GIT : CAGE_LAYER_PROJECT;
}

/* Replaces the root of a plan's path. Returns false if it does not fit or the run lacks the root.
 */
bool cage_fill_in(const struct cage_start *start, enum plan_root root, const char *path, char *ret,
	size_t size);

/* The same for the place of an operation, its `b`. */
static inline bool cage_fill_in_place(
	const struct cage_start *start, const struct plan_op *op, char *ret, size_t size)
{
	return cage_fill_in(start, op->b_root, plan_str(start->plan, op->b), ret, size);
}
