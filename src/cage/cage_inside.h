#pragma once

#include <linux/landlock.h>
#include <stdnoreturn.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cage/cage.h"
#include "cage/cage_break.h"

/* Shared by the files of this folder only. */

#define CAGE_MAX_OWN   16 /* file systems of the cage's own */
#define CAGE_MAX_KNOWN 256
#define CAGE_MAX_SHOWN 64
#define CAGE_FEW_FDS   200
#define CAGE_PATH_SIZE 4096
#define CAGE_CHANNEL   3 /* the channel's descriptor once the wall stands */

/*
 * A folder of the cage's tree that only this process has changed and nothing is mounted over: a
 * name below it can be made in one call, because no link and no mount is on the way.
 */
struct cage_known {
	const char *path; /* in the cage; borrowed from the plan, not terminated */
	size_t size;
	int base;    /* the folder that the rest of the path is relative to, which can be written */
	size_t skip; /* this much of a path leads to the base */
};

/* What a mount shows, by the tree that was attached. */
struct cage_shown {
	const char *path;
	int tree;
	bool is_dir;
};

/* The first process's state. Its descriptors are closed by exec, or by its end. */
struct cage {
	const struct cage_start *start;
	int channel;
	int at;    /* the index of the current operation, or -1 */
	int pool;  /* a tmpfs without a name in the cage: root and layers, under one quota */
	int kept;  /* a tmpfs with the kept overlay of the root, under its own quota; or -1 */
	int root;  /* the tree being built */
	int rules; /* the Landlock ruleset */
	int abi;
	int late[CAGE_TREE_COUNT];  /* the session's trees, detached; or -1 */
	bool has_session;           /* they have come */
	bool has_image;             /* the root starts with files of an image or an overlay */
	bool is_confined;           /* Landlock is on, and was seen to refuse something */
	int project;                /* the whole project with all rights, in the pool */
	char place[CAGE_PATH_SIZE]; /* the project's path in the cage */
	struct {
		int fd; /* of what `device` was not asked of yet, or -1 */
		dev_t device;
	} own[CAGE_MAX_OWN];
	unsigned own_count;
	/* On a file system of the host: the copy of a project, the trees of a session. */
	uint64_t own_mounts[CAGE_MAX_OWN];
	unsigned own_mount_count;
	struct cage_known known[CAGE_MAX_KNOWN];
	unsigned known_count;
	bool is_in_root; /* the root is the working directory */
	struct cage_shown shown[CAGE_MAX_SHOWN];
	unsigned shown_count;
};

/*
 * A descriptor that stays open until all are closed together, once the wall stands; at once only
 * where there are many.
 */
static inline void cage_fd_(const int *fd)
{
	if (*fd >= CAGE_FEW_FDS)
		close(*fd);
}

#define cage_fd __attribute__((cleanup(cage_fd_)))

/* The state at the start. */
static inline struct cage cage_begin(const struct cage_start *start)
{
	return (struct cage){ .start = start,
		.channel = start->channel,
		.at = -1,
		.pool = -1,
		.kept = -1,
		.root = -1,
		.rules = -1,
		.project = -1,
		.late = { -1, -1, -1, -1 } };
}

/* Carries one operation out. 0 or -errno. */
typedef int cage_step(struct cage *c, const struct plan_op *op, struct err *e);

static inline const char *cage_a(const struct cage *c, const struct plan_op *op)
{
	return plan_str(c->start->plan, op->a);
}

static inline const char *cage_b(const struct cage *c, const struct plan_op *op)
{
	return plan_str(c->start->plan, op->b);
}

static inline size_t cage_op_index(const struct cage *c, const struct plan_op *op)
{
	return (size_t)(op - plan_ops(c->start->plan));
}

/*
 * --- the operations ---
 *
 * One table per file. A kind of operation is in one of them at most; the others are the keeper's.
 */
extern cage_step *const cage_ids_steps[PLAN_OP_KIND_COUNT];
extern cage_step *const cage_place_steps[PLAN_OP_KIND_COUNT];
extern cage_step *const cage_mount_steps[PLAN_OP_KIND_COUNT];
extern cage_step *const cage_kernel_steps[PLAN_OP_KIND_COUNT];
extern cage_step *const cage_project_steps[PLAN_OP_KIND_COUNT];
extern cage_step *const cage_confine_steps[PLAN_OP_KIND_COUNT];

/* --- cage_ids.c --- */

/* Changes to the cage's user, once the maps are written, and keeps all capabilities. 0 or -errno.
 */
int cage_become(unsigned inside);

/* --- cage_place.c: names in the new tree --- */

/* Notes that the file system of `fd` is the cage's own: the cage creates names only there. */
int cage_own(struct cage *c, int fd, struct err *e);

/* The same for one mount, where the rest of its file system is the host's. */
int cage_own_mount(struct cage *c, int tree, struct err *e);

/*
 * Opens a path of the tree with O_PATH and creates what is missing of it: directories, and a file
 * at the end unless `is_dir`. Follows no symlink. Returns a descriptor or -errno.
 */
int cage_open_place(struct cage *c, int base, const char *path, bool is_dir, struct err *e);

/* A known folder; `skip` as in struct cage_known. Forgotten if something is mounted there. */
void cage_know(struct cage *c, const char *path, size_t size, int base, size_t skip);

/*
 * The base of a name whose parent is known; makes missing folders on the way. *ret_name is the path
 * relative to it. -1: the parent is not known, and has to be walked to.
 */
int cage_find_known(struct cage *c, const char *path, const char **ret_name);

/* Attaches a detached tree at a path of the cage's tree, and makes that if it is missing. */
int cage_put(struct cage *c, int tree, const char *path, bool is_dir, struct err *e);

/* The same, and keeps `path` and `tree` in mind: both must stay. */
int cage_show(struct cage *c, int tree, const char *path, bool is_dir, struct err *e);

/* Keeps in mind what is at a path: both must stay. */
void cage_remember(struct cage *c, int tree, const char *path, bool is_dir);

/* What cage_show attached at a path, if nothing is mounted above it since; or NULL. */
const struct cage_shown *cage_find_shown(const struct cage *c, const char *path);

/* True if it is a known folder. */
bool cage_is_known(const struct cage *c, const char *path);

/* The same for the parent directory of a path; *ret_name is the path's last part. */
int cage_open_parent(
	struct cage *c, int base, const char *path, const char **ret_name, struct err *e);

/* --- cage_mount.c --- */

/* The mount attributes for an operation's flags; every mount of a cage is nosuid. */
uint64_t cage_restrictions(unsigned flags);

/*
 * Makes a file system, detached; `options` are pairs that end with NULL. Returns a descriptor or
 * -errno.
 */
int cage_new_mount(
	const char *type, const char *const *options, uint64_t attributes, struct err *e);

/* Adds restrictions to a detached tree, and makes it private. */
int cage_restrict_tree(int tree, uint64_t attributes, struct err *e);

/* A detached, restricted clone of what is at `fd`. Returns a descriptor or -errno. */
int cage_clone_tree(int fd, uint64_t attributes, struct err *e);

/*
 * The same of a name in an open folder; it is not followed. The name has to be the cage's own, or
 * the kernel's.
 */
int cage_clone_name(int at, const char *name, uint64_t attributes, struct err *e);

/* Attaches a detached tree to an open place. `name` is for the error. */
int cage_attach(int tree, int place, const char *name, struct err *e);

/*
 * Opens a source by its real path, with O_PATH, and compares it with what the keeper approved.
 * Returns a descriptor or -errno. `ret_is_dir` may be NULL.
 */
int cage_open_source(const struct cage_source *source, bool *ret_is_dir, struct err *e);

/*
 * The detached tree of a source: the keeper's, or a clone. Returns a descriptor or -errno.
 * `ret_is_dir` may be NULL.
 */
int cage_tree_of(
	const struct cage_source *source, uint64_t attributes, bool *ret_is_dir, struct err *e);

/* The same for the source of an operation. */
int cage_source_tree(struct cage *c, const struct plan_op *op, uint64_t attributes,
	bool *ret_is_dir, struct err *e);

/* Makes the pool, and in it the root, which is attached over the host's root. */
int cage_make_root(struct cage *c, uint64_t size, unsigned flags, struct err *e);

/* Makes the new root the working directory. */
int cage_enter_root(struct cage *c, struct err *e);

/* Makes the root the process's root, and unmounts the host's. A cage_step; `op` may be NULL. */
int cage_enter(struct cage *c, const struct plan_op *op, struct err *e);

/* Attaches a detached tree at a name in the pool, where nothing in the cage finds it. */
int cage_put_in_pool(struct cage *c, int tree, const char *name, struct err *e);

/* Makes a folder in the pool and opens it with O_PATH. Returns a descriptor or -errno. */
int cage_pool_folder(struct cage *c, const char *name, struct err *e);

/*
 * The folders of the pool that an overlay consists of. Without `upper` the overlay is read-only and
 * needs `empty`, because the kernel wants two layers.
 */
struct cage_layers {
	const char *lower, *upper, *work, *empty;
	bool is_kept; /* `upper` and `work` exist already */
};

/*
 * Makes an overlay above the detached tree `lower`, which is attached for it in the pool. The
 * overlay is there too, until it is attached elsewhere. Returns a descriptor or -errno.
 */
int cage_new_overlay(struct cage *c, int lower, const struct cage_layers *layers,
	uint64_t attributes, struct err *e);

/*
 * A read-only overlay of the detached `tree`, which is attached for it. A read-only mount would
 * still let the cage connect to a socket in the folder, and mountinfo would tell its place on the
 * host. Returns a descriptor or -errno.
 */
int cage_view_of(struct cage *c, const struct plan_op *op, int tree, struct err *e);

/* --- cage_kernel.c --- */

/*
 * Opens a terminal in the cage's own devpts: one end becomes the command's streams, the other goes
 * to the keeper.
 */
int cage_take_terminal(struct cage *c, int devpts, struct err *e);

/* --- cage_project.c --- */

/* Attaches a tree of the session to a place of the finished root. */
int cage_attach_late(
	struct cage *c, const struct plan_op *op, unsigned which, const char *place, struct err *e);

/* A captured tree as a detached overlay. Returns a descriptor or -errno. */
int cage_capture(struct cage *c, const struct plan_op *op, struct err *e);

/* --- cage_member.c --- */

/* Holds the captured trees of a session for all of its runs, until the last one ends. */
noreturn void cage_member(struct cage *c);

/* --- cage_confine.c --- */

/* Sets RLIMIT_NOFILE last: building the cage needs more descriptors. */
int cage_limit_files(const struct cage *c, struct err *e);

/* --- cage_command.c --- */

/*
 * The wall stands: tells the keeper, starts the command's process, waits for the keeper's word and
 * becomes the init.
 */
noreturn void cage_run(struct cage *c);

/* Becomes a command in the cage of its session. */
noreturn void cage_be_joined(struct cage *c);

/* Tells the keeper what went wrong, and ends the process. */
noreturn void cage_fail(const struct cage *c, const struct err *e);
