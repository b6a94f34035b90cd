#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

/*
 * Finds the project's repository on this host. A linked worktree or a submodule has a file .git
 * that names a folder outside of the project. A stranger may have written that file, so the folder
 * is trusted only if a file outside of the project points back to it.
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
	char folder[PATH_MAX]; /* git's folder outside of the project, if it is trusted; or "" */
	bool holds_project;    /* the project is in that folder */
	char named[PATH_MAX]; /* the folder that .git names, trusted or not; "": it is not a file */
	/* Why git will not work in the cage, half a sentence. NULL: it will, or is not wanted. */
	const char *why;
	const char *hint;    /* what to do about that, or NULL */
	bool wants_own_path; /* git would work if the project kept its own path */
	/* Paths of the project, outside of .git, that its git takes hooks, programs or settings
	 * from. */
	const char *const *hooks;
	size_t hook_count;
	bool has_more; /* there are more than CHECK_MAX_HOOKS, which would not be protected */
	/*
	 * Paths in git's folder as ".git/…" that belong to other worktrees, hold hooks under
	 * another name, or tell a worktree where the rest of its repository is.
	 */
	const char *const *others;
	size_t other_count;
};

#define CHECK_MAX_HOOKS     256
#define CHECK_MAX_WORKTREES 1024 /* with more worktrees, all of them count as others */

/* Only reads; checks where a symlink of the project leads before it follows it. */
void check_repository(
	const struct check_project *project, struct arena *arena, struct check_repository *ret);
