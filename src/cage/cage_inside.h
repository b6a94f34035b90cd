#pragma once

#include <linux/landlock.h>
#include <stdnoreturn.h>
#include <sys/stat.h>

#include "cage/cage.h"
#include "cage/cage_break.h"

/* What the files of the cage share. Nobody else includes it. */

#define CAGE_MAX_OWN    16 /* file systems of the cage's own */
#define CAGE_MAX_SEALED 8  /* of those, the ones that become read-only */
#define CAGE_PATH_SIZE  4096
#define CAGE_CHANNEL    3 /* where the channel is once the wall stands */

/* The first process at work. Descriptors are closed by exec or by its end, whichever comes. */
struct cage {
	const struct cage_start *start;
	int channel;
	int at;    /* the operation that is carried out, or -1 */
	int pool;  /* a tmpfs nobody can name: holds the root and the layers, under one quota */
	int kept;  /* another, of its own size: what is kept of the root; or -1 */
	int root;  /* the tree being built */
	int rules; /* the Landlock ruleset */
	int abi;
	int late[CAGE_TREE_COUNT];  /* what a session brought, detached; or -1 */
	bool has_session;           /* it has */
	bool is_checked;            /* the preflight has passed */
	bool has_image;             /* the root is not empty to begin with */
	bool is_confined;           /* by Landlock, and it was seen to refuse something */
	int project;                /* the whole project, with all rights, out of sight */
	char place[CAGE_PATH_SIZE]; /* where the cage sees it */
	dev_t own[CAGE_MAX_OWN];
	unsigned own_count;
	/* On a file system of the host: the copy of a project, what a session keeps. */
	uint64_t own_mounts[CAGE_MAX_OWN];
	unsigned own_mount_count;
	int sealed[CAGE_MAX_SEALED];
	unsigned sealed_count;
};

/* One that has done nothing yet. */
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

/* --- cage.c: what every process does that becomes a part of a cage --- */

/* Carries an operation out; what must be and fails is the end. */
void cage_carry_out(struct cage *c, const struct plan_op *op);

/* Ends now, if the keeper has, and with it from here on. */
void cage_die_with_keeper(const struct cage *c);
void cage_take_standard_descriptors(const struct cage *c);
void cage_leave_session(const struct cage *c);

/* --- cage_ids.c --- */

cage_step cage_take_ids, cage_take_share;

/* Becomes the cage's user, where its maps stand, and keeps all capabilities. 0 or -errno. */
int cage_become(unsigned inside);

/* --- cage_place.c: names in the new tree --- */

/* Remembers that the file system of `fd` is the cage's own: only there is anything created. */
int cage_own(struct cage *c, int fd, struct err *e);

/* The same for one mount: the rest of its file system is the host's. */
int cage_own_mount(struct cage *c, int tree, struct err *e);

/*
 * Opens a place of the tree, with O_PATH, and makes what is missing of it: directories, and a file
 * at the end unless `is_dir`. Follows no symlink. A descriptor or -errno.
 */
int cage_open_place(struct cage *c, int base, const char *path, bool is_dir, struct err *e);

/* The same for the directory a path is in; *ret_name is its last part. */
int cage_open_parent(
	struct cage *c, int base, const char *path, const char **ret_name, struct err *e);

cage_step cage_make_dir, cage_make_symlink, cage_make_file, cage_make_description;

/* --- cage_mount.c, cage_proc.c, cage_project.c --- */

/* What a mount may not do, from an operation's flags; every mount of a cage is nosuid. */
uint64_t cage_restrictions(unsigned flags);

/* A new file system with options in pairs, ended with NULL; detached. A descriptor or -errno. */
int cage_new_mount(
	const char *type, const char *const *options, uint64_t attributes, struct err *e);

/* Only ever more restricted, and deaf to what is mounted elsewhere. */
int cage_restrict_tree(int tree, uint64_t attributes, struct err *e);

/* A detached copy of what is at `fd`, restricted. A descriptor or -errno. */
int cage_clone_tree(int fd, uint64_t attributes, struct err *e);

/* Puts a detached tree on an open place. `name` is for the sentence. */
int cage_attach(int tree, int place, const char *name, struct err *e);

/* A source by its real path, with O_PATH, if it still is what the keeper saw. A descriptor or
 * -errno.
 */
int cage_open_source(const struct cage_source *source, struct err *e);

/* The detached tree of a source: the one the keeper made, or a clone. A descriptor or -errno. */
int cage_tree_of(const struct cage_source *source, uint64_t attributes, struct err *e);

/* The same for the source of an operation. */
int cage_source_tree(struct cage *c, const struct plan_op *op, uint64_t attributes, struct err *e);

/* The pool, and the root in it, over the host's. */
int cage_make_root(struct cage *c, uint64_t size, unsigned flags, struct err *e);

/* A folder of the pool, made for the purpose; with O_PATH. A descriptor or -errno. */
int cage_pool_folder(struct cage *c, const char *name, struct err *e);

/*
 * Folders of the pool that an overlay is made of. Without an upper one nothing can be written, and
 * an empty one goes below, because the kernel wants two.
 */
struct cage_layers {
	const char *lower, *upper, *work, *empty;
	bool is_kept; /* the upper one and its work are there already */
};

/* An overlay above the detached tree `lower`, which it uses up. A descriptor or -errno. */
int cage_new_overlay(struct cage *c, int lower, const struct cage_layers *layers,
	uint64_t attributes, struct err *e);

/*
 * A folder seen through a layer that nothing can be written to: a socket in it cannot be connected
 * to, which a read-only mount does not forbid, and mountinfo does not tell where it is. Uses `tree`
 * up. A descriptor or -errno.
 */
int cage_view_of(struct cage *c, const struct plan_op *op, int tree, struct err *e);

cage_step cage_mount_tmpfs, cage_mount_image, cage_mount_bind, cage_mount_device, cage_mount_devpts,
	cage_enter;
cage_step cage_mount_proc;
cage_step cage_mount_project, cage_mount_part, cage_mount_git;

/* Waits for what a session brings, and from there on it is what is mounted. cage_session.c */
cage_step cage_await;

/* Puts one of its trees on a place of the finished root. */
int cage_attach_late(
	struct cage *c, const struct plan_op *op, unsigned which, const char *place, struct err *e);

/* The whole of a captured tree, as an overlay that is attached nowhere. A descriptor or -errno. */
int cage_capture(struct cage *c, const struct plan_op *op, struct err *e);

/* --- cage_member.c --- */

/* Holds the captured trees of a session for all of its runs, until the last one ends. */
noreturn void cage_member(struct cage *c);

/* --- cage_mount.c --- */

cage_step cage_load_overlay;

/* --- cage_protect.c --- */

/*
 * The project itself, seen through a layer in which every protected name that is missing is taken.
 * A descriptor or -errno.
 */
int cage_protect_project(
	struct cage *c, const struct plan_op *op, uint64_t attributes, struct err *e);

/* Holds a protected path where the cage sees it. */
cage_step cage_protect_path;

/* --- cage_terminal.c --- */

/* A terminal from the cage's own devpts: its far end becomes the command's, its near the keeper's.
 */
int cage_take_terminal(struct cage *c, int devpts, struct err *e);

/* --- cage_confine.c, cage_landlock.c --- */

cage_step cage_set_hostname, cage_set_network, cage_set_limit, cage_drop, cage_set_filter;

/* Late, when what building a cage takes is closed again. */
int cage_limit_files(const struct cage *c, struct err *e);

/* For one process alone, before all others are: no privileges, and the filter. 0 or -errno. */
int cage_confine_check(const struct cage *c);

cage_step cage_make_ruleset, cage_add_rule, cage_confine;

/* --- cage.c, cage_command.c --- */

/* Runs bawn's own questions in the cage; what fails ends it. */
void cage_preflight(struct cage *c);

/* Becomes the command, once the init has said a word at the latch. */
noreturn void cage_be_command(struct cage *c, int latch);

/* The same in the cage of its session, without an init to wait for, or startup commands. */
noreturn void cage_be_joined(struct cage *c);

/* Tells the keeper what went wrong, and ends the process. */
noreturn void cage_fail(const struct cage *c, const struct err *e);

pid_t cage_fork(const struct cage *c, const char *what);

/* The wait status of a child. */
int cage_wait_for(pid_t pid);
