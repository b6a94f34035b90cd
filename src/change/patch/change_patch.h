#pragma once

#include "change/change.h"

/*
 * Effects as a diff that `git apply` and `patch -p1` take: lines for whoever shows them. What those
 * two have no word for is in lines that begin with '#', which both skip. Reads single files of both
 * sides, and prints nothing itself.
 */

enum change_line {
	CHANGE_LINE_PLAIN,
	CHANGE_LINE_HEAD,
	CHANGE_LINE_HUNK,
	CHANGE_LINE_ADDED,
	CHANGE_LINE_REMOVED,
	CHANGE_LINE_NOTE,
	CHANGE_LINE_WARNING,
	CHANGE_LINE_KINDS,
};

/* Where lines go. All functions must be there. */
struct change_lines {
	/* One line without its newline; its bytes may be anybody's. */
	void (*line)(void *of, enum change_line kind, const char *bytes, size_t n);
	/* The hunks of one file, each line with its newline; the bytes may be anybody's. */
	void (*hunks)(void *of, const char *bytes, size_t n);
	/* Whole lines that are harmless to a terminal, and have their colours. */
	void (*raw)(void *of, const char *bytes, size_t n);
	void *of;
	bool has_color;
	bool is_aside; /* git would refuse the patch for these lines: all are comments */
};

/* What a diff is made of. All is borrowed. */
struct change_patch {
	const struct change_effects *effects;
	int layer, below;                  /* as in change_scan */
	int base;                          /* the folder with what text files were, or -1 */
	const struct change_git_tops *git; /* as in change_scan, or NULL */
	bool is_growing;                   /* the layer is still written to */
	const char *const *paths;          /* only effects of these; none: of all */
	size_t path_count;
	struct change_lines to;
};

/* Is the effect of one of the paths, or are there none? */
bool change_is_chosen(const struct change_effect *x, const char *const *paths, size_t count);

/* One effect, with notes about what a diff cannot say. */
void change_patch_show(struct change_patch *p, const struct change_effect *x);

#define CHANGE_PATCH_LINE (8 * CHANGE_MAX_PATH) /* bytes, at most, of one that tells of a path */

/* A line about a path: "# " before, the path as git quotes it, after. */
void change_patch_note(struct change_lines *out, enum change_line kind, const char *before,
	const char *path, const char *after);

/* --- git's own bookkeeping: change_patch_git.c --- */

/* Does the effect belong to git's own bookkeeping, which nobody reads as a diff? */
bool change_is_bookkeeping(const struct change_effect *x);

/*
 * The effects from `i` on that are the bookkeeping of one repository, in a few lines. Returns how
 * many effects that were.
 */
size_t change_patch_bookkeeping(struct change_patch *p, size_t i);

/* How many they are, and how many bytes of their paths are the repository's folder. */
size_t change_bookkeeping_count(const struct change_effects *x, size_t i);
size_t change_bookkeeping_folder(const struct change_effect *x);

/* --- change_stat.c --- */

/* Each effect in a line of so many columns, with how much it is; reads no file. */
void change_stat_show(struct change_patch *p, unsigned width);

/*
 * A path as git writes it: in double quotes where a byte of it is special, which then is \n or
 * \033 or the like. The result is harmless to a terminal, and one line.
 */
void change_add_quoted(struct buf *out, const char *prefix, const char *path);
