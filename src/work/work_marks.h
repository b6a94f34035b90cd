#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "work/work.h"

/* Where a rule's patterns begin to be compared. */
enum work_rule_place {
	WORK_ANYWHERE,  /* at every folder of the path */
	WORK_IN_GIT,    /* at the top of a repository's own folder, .git or one of its modules */
	WORK_BELOW_GIT, /* anywhere in such a folder */
};

/*
 * One row: patterns with the same reason, NULL after the last. They are in lower case; '*' is any
 * part of a name, and a last part "**" the folder and everything in it. One that begins with '*'
 * is of a name alone.
 */
struct work_rule {
	enum work_mark mark;
	enum work_rule_place place;
	bool is_never_folder; /* a folder of that name is harmless */
	const char *reason;
	const char *const *patterns;
};

extern const struct work_rule work_rules[];
extern const size_t work_rule_count;

/* One for what is gone. */
extern const struct work_rule work_rule_gone;

/* Is it what that is for: the HEAD of a repository, or of a worktree? */
bool work_is_head(const char *path);

/* One for any link below a repository's own folder. */
extern const struct work_rule work_rule_link;

/* The mark of what is now at a path below a folder that is a repository's, whatever its name. */
enum work_mark work_mark_in_git(const char *path, enum work_type now);

/* Why a link at this path has a mark where a file has none; else NULL. */
const char *work_mark_link_reason(const char *path);
