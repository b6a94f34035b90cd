#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * Walks over a stranger's tree: no link is followed, /proc and /sys are not entered where they are
 * not the start, and neither are folders deeper than TREE_MAX_DEPTH, nor those called .git if that
 * is not asked for. In each folder what is no folder comes first, then the folders, in the order of
 * their names.
 */
struct tool_entry {
	int folder;       /* in which it is, open */
	const char *name; /* in it */
	const char *path; /* from the start */
	bool is_folder, is_file;
};

struct tool_walk {
	void *of;
	bool (*enters)(void *of, const char *path);              /* or NULL: every folder */
	bool (*visit)(void *of, const struct tool_entry *entry); /* false: that is enough */
	bool enters_git;
	uint64_t left_out; /* set: folders that were not entered for their name */
	uint64_t unread;   /* set: folders that could not be read to their end, or are too deep */
};

/* `fd` is an open folder, borrowed. 0, or -errno where not even that could be read. */
int tool_walk(int fd, struct tool_walk *w);
