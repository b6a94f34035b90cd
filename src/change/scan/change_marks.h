#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "change/change.h"

/* Where a rule's patterns begin to be compared. */
enum change_rule_place {
	CHANGE_ANYWHERE,  /* at every folder of the path */
	CHANGE_IN_GIT,    /* at the top of a repository's own folder, .git or one of its modules */
	CHANGE_BELOW_GIT, /* anywhere in such a folder */
};

/*
 * One row: patterns with the same reason, NULL after the last. They are in lower case; '*' is any
 * part of a name, and a last part "**" the folder and everything in it. One that begins with '*'
 * is of a name alone.
 */
struct change_rule {
	enum change_mark mark;
	enum change_rule_place place;
	bool is_never_folder; /* a folder of that name is harmless */
	const char *reason;
	const char *const *patterns;
};

extern const struct change_rule change_rules[];
extern const size_t change_rule_count;

/* One for what is gone. */
extern const struct change_rule change_rule_gone;

/* Is it what that is for: the HEAD of a repository, or of a worktree? */
bool change_is_head(const char *path);

/* One for any link below a repository's own folder. */
extern const struct change_rule change_rule_link;

/* The mark of what is now at a path below a folder that is a repository's, whatever its name. */
enum change_mark change_mark_in_git(const char *path, enum change_type now);

/* Why a link at this path has a mark where a file has none; else NULL. */
const char *change_mark_link_reason(const char *path);
