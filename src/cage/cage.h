#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "cgroup/cgroup.h"
#include "plan/plan_data.h"

/*
 * A cage: one process that is born into the new namespaces, carries the plan out operation by
 * operation, tells the keeper that the wall stands, and starts the command once the keeper has
 * looked. It parses nothing, chooses nothing and falls back to nothing.
 */

/* Who the cage's one user is on the host. */
struct cage_ids {
	bool is_given; /* the keeper writes the maps: root's cages run as an id of their own */
	bool is_team;  /* so it does here: the group is the project's, another one of the operator's
			*/
	uint32_t uid, gid;
};

/* Where the time went, in memory that keeper and cage share. Nanoseconds, CLOCK_MONOTONIC. */
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

/* The trees that are captured, in layers of the run's folder, or written to and held. */
enum cage_layer {
	CAGE_LAYER_PROJECT,
	CAGE_LAYER_GIT,
	CAGE_LAYER_COUNT,
};

/* What a session has that its runs share; the first are its layers. */
enum cage_tree {
	CAGE_TREE_HOME = CAGE_LAYER_COUNT,
	CAGE_TREE_TMP,
	CAGE_TREE_COUNT,
};

/* Which of them a bind shows; CAGE_TREE_COUNT: none. */
static inline int cage_tree_of_bind(const struct plan_op *op)
{
	if (op->a_root == PLAN_ROOT_SESSION_HOME)
		return CAGE_TREE_HOME;
	return op->a_root == PLAN_ROOT_SESSION_TMP ? CAGE_TREE_TMP : CAGE_TREE_COUNT;
}

/* How a path of a writable project is held that is protected, or leads to one. */
enum cage_held_kind {
	CAGE_HELD_WAY,    /* leads to one: stays where it is */
	CAGE_HELD_THERE,  /* is there, and stays as it is */
	CAGE_HELD_FOLDER, /* is missing, and stays so: an empty folder stands for it … */
	CAGE_HELD_FILE,   /* … or a file with a text … */
	CAGE_HELD_NAME,   /* … or a socket at which nobody listens */
};

struct cage_protected {
	const char *path; /* below the top */
	const char *text;
	enum cage_held_kind kind;
	uint32_t op; /* the operation that it is for */
};

/*
 * All of them, ways before what they lead to; and what the layer takes that holds them, a folder
 * for its work. It is on the project's mount, so root's come together: as a detached tree, and both
 * open in it.
 */
struct cage_protect {
	const struct cage_protected *items;
	size_t count;
	struct cage_source work; /* its `tree` has both of these in it, or is -1 */
	int project_fd, work_fd;
};

/* What the process has that holds the captured trees of a session for all of its runs. */
struct cage_member {
	int door;    /* where runs come and ask; it listens */
	int turn;    /* a file: who has it locked starts such a process, or ends as one */
	int lock;    /* another, locked: somebody has the workspace */
	int mounted; /* and another, locked: it is mounted, on this machine or another */
};

#define CAGE_NAMESPACES 7

/* A cage that stands, for a command of its session. */
struct cage_join {
	int namespaces[CAGE_NAMESPACES]; /* the user's first, mounts last; -1: they are the host's
					  */
};

/* All the first process is told. Everything in it is the keeper's and is borrowed. */
struct cage_start {
	const struct plan *plan;
	const char *git_identity;               /* what $GIT_IDENTITY stands for, or NULL */
	const char *project, *git, *home, *run; /* roots of the plan; git and home may be NULL */
	const char *term; /* the operator's TERM, where the command has a terminal; or NULL */
	struct cage_ids ids;
	const struct cage_source *sources;           /* one per operation */
	struct cage_source layers[CAGE_LAYER_COUNT]; /* in the run's folder, for what is captured */
	uint64_t overlay_size;                       /* what a kept layer of the root may take */
	struct cage_protect protects[CAGE_LAYER_COUNT]; /* of what is written to and held */
	const struct sock_filter *filter;
	unsigned short filter_count;
	const struct sock_filter *telling; /* the same, which tells what it denies; or NULL */
	unsigned short telling_count;
	char *const *arguments;     /* of the command */
	char *const *environment;   /* of the command and the startup commands */
	char *const *own_variables; /* of the preflight */
	const char *preflight;      /* its script */
	char *command_line;         /* what ps shows of this process; wiped in the cage */
	size_t command_line_size;
	int stdio[3];              /* become the command's 0, 1 and 2 … */
	unsigned terminal_streams; /* … but for these bits, which become a terminal of the cage */
	const struct cgroup *group; /* what holds all of the cage to limits, or NULL */
	int channel;                /* the cage's end of a wire_pair */
	int keepers_end;            /* the keeper's, of which the cage has a copy; it closes it */
	struct cage_times *times;   /* or NULL */
	bool is_warm; /* for whatever session comes: the preflight is run before it does */
	bool stays;   /* there is no command: it is a session's, and ends when that is stopped */
	const struct cage_join *join; /* the cage is another's, and this one enters it; or NULL */
	const struct cage_member *share; /* this is no cage, but shares a session's; or NULL */
};

/*
 * Starts the first process of a cage in the plan's namespaces. It writes its own id maps, or waits
 * for WIRE_MAPPED after cage_write_maps. *ret_pidfd is the caller's.
 */
int cage_spawn(const struct cage_start *start, pid_t *ret_pid, int *ret_pidfd, struct err *e);

/*
 * Starts a process in the cage that start->join is, which becomes the command. It is the caller's
 * child, and tells WIRE_LOOK before it drops what keeps others of the cage from it.
 */
int cage_spawn_join(const struct cage_start *start, pid_t *ret_pid, int *ret_pidfd, struct err *e);

/*
 * Starts the process that start->share is for, in namespaces of users and mounts alone. It is
 * nobody's child, and says WIRE_READY on the channel, or WIRE_FAILED.
 */
int cage_spawn_share(const struct cage_start *start, struct err *e);

/* Gives process `pid` its ids; `inside` is what they are called in the cage. */
int cage_write_maps(pid_t pid, const struct cage_ids *ids, unsigned inside, struct err *e);

/*
 * A user namespace that shows files of one owner as those of the cage's user, for id-mapped
 * mounts. A process holds it until it is done with; where it is must not move meanwhile.
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

/* Which of the trees an operation is of. */
static inline enum cage_layer cage_layer_of(const struct plan_op *op)
{
	return op->a_root == PLAN_ROOT_GIT ? CAGE_LAYER_GIT : CAGE_LAYER_PROJECT;
}

/* A path of the plan where it is for this run; false where it does not fit, or has no such root. */
bool cage_fill_in(const struct cage_start *start, enum plan_root root, const char *path, char *ret,
	size_t size);

/* The same for the place of an operation, its `b`. */
static inline bool cage_fill_in_place(
	const struct cage_start *start, const struct plan_op *op, char *ret, size_t size)
{
	return cage_fill_in(start, op->b_root, plan_str(start->plan, op->b), ret, size);
}
