#pragma once

#include "base/buf.h"
#include "base/tree.h"

/*
 * What a project is, wherever it lies and whoever has it: docs/format-project.md. A list with one
 * line for each entry of the work tree, and of each repository in it the commit and what is staged;
 * the digest is the SHA-256 of that list. Times, owners, inodes and what else git keeps are not in
 * it.
 */

#define CHANGE_PROJECT_FILE     "project.list"
#define CHANGE_PROJECT_HEAD     "bawn-project-1\n"
#define CHANGE_PROJECT_MAX_LIST ((size_t)16 << 20) /* bytes that are kept of a list */

struct change_project {
	int top; /* opened for reading; borrowed, as all of these */
	const char *
		path; /* the top's on this host, for files .git that name absolute paths; or NULL */
	int git;      /* the folder of its git, outside of it; or -1 */
	const char *git_path;
	const struct tree_options *options; /* as of tree_digest_with */
};

/* Adds to `list` (its max is set here) as much as is kept. 0 or -errno with a sentence. */
int change_project_digest(const struct change_project *p, struct buf *list,
	char ret[static SHA256_HEX_SIZE], struct err *e);

/* --- change_project.c --- */

/* Lines of a list are "TYPE SIZE HASH ATTRIBUTES PATH" and a NUL. */
struct change_project_git {
	char commit[SHA256_HEX_SIZE]; /* SHA-1 or SHA-256; "none"; "outside" */
	char index[SHA256_HEX_SIZE];  /* "-" where it is outside */
};

/* --- differences --- */

/* Told of each path that differs, at most `most` times; how many there are in all. */
size_t change_project_compare(const char *then, size_t then_size, const char *now, size_t now_size,
	size_t most, void (*tell)(void *of, const char *path, const char *what), void *of);
