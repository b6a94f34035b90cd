#pragma once

#include "cli/cli_kept.h"
#include "cli/cli_show.h"

#define CLI_PATCH_LINE (8 * CHANGE_MAX_PATH) /* bytes, at most, of one that tells of a path */

/*
 * One effect as git writes a change, so that `git apply` and `patch -p1` accept it. What they do
 * not know is told in lines that begin with #, which both skip.
 */
void cli_patch_show(const struct cli_kept *k, const struct change_effect *x, struct cli_show *out);

/* A line about a path: "# " before, the path as git quotes it, after. */
void cli_patch_note(struct cli_show *out, enum cli_ink ink, const char *before, const char *path,
	const char *after);

/* All such lines that an effect needs beside its diff. cli_patch_notes.c */
void cli_patch_notes(const struct change_effect *x, struct cli_show *out);

/* --- cli_git.c --- */

/* Does the path belong to git's own bookkeeping, which nobody reads as a diff? */
bool cli_git_owns(const struct change_effect *x);

/*
 * The effects from `i` on that are the bookkeeping of one repository, in a few lines. How many
 * effects that were.
 */
size_t cli_git_show(const struct cli_kept *k, size_t i, struct cli_show *out);

/* How many they are, and how many bytes of their paths are the repository's folder. */
size_t cli_git_count(const struct change_effects *x, size_t i);
size_t cli_git_folder(const struct change_effect *x);
