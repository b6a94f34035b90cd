#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

/*
 * Where the project's repository is on this host. A project that is a linked worktree or a
 * submodule has a file .git that names a folder outside of it. That file may be a stranger's, and
 * the folder is believed only if it points back: by nothing that lies in the project.
 */
/*
 * The operator's own configuration of git: of the system, and two of the user. Read once for all
 * who need it; git follows links there, and so does this.
 */
struct check_own_config {
	struct {
		const char *folder; /* it is in */
		const char *text;   /* NULL: there is none, or it cannot be read */
		size_t size;
	} files[3];
	bool is_read;
};

/* Reads it, if that was not done. What is read is in `arena`; `home` may be NULL. */
void check_read_own_config(struct check_own_config *c, const char *home, struct arena *arena);

struct check_project {
	const char *path;             /* real */
	const char *home;             /* or NULL */
	const char *at;               /* where the cage has it … */
	bool is_at_own_path;          /* … or there */
	struct check_own_config *own; /* read where it is needed, and kept */
};

struct check_repository {
	char folder[PATH_MAX]; /* of git, outside the project and believed; "": there is none */
	bool holds_project;    /* and the project is in it */
	char named[PATH_MAX];  /* what .git names, believed or not; "": it is no file */
	/* Half a sentence: why git will not work in the cage. NULL: it will, or is not wanted. */
	const char *why;
	const char *hint;    /* what to do about that, or NULL */
	bool wants_own_path; /* it would work with the project at its own path */
	/* Paths of the project, beside .git, that its git has hooks, programs or settings from. */
	const char *const *hooks;
	size_t hook_count;
	bool has_more; /* … and more of them than anybody needs, which nothing would hold */
	/*
	 * Paths in git's folder, wherever that is, as ".git/…": other worktrees, hooks under a name
	 * of their own, and of a worktree what says where the rest is.
	 */
	const char *const *others;
	size_t other_count;
};

#define CHECK_MAX_HOOKS     256
#define CHECK_MAX_WORKTREES 1024 /* with more of them in a repository, all are others */

/* Looks, follows no link of the project's without asking where it led, writes nothing. */
void check_repository(
	const struct check_project *project, struct arena *arena, struct check_repository *ret);
