#pragma once

#include <sys/types.h>

#include "change/change.h"

/*
 * What a run leaves in its layer is ours, whatever mode it has: a file nobody may read is read by
 * giving its owner the right, for as long as it is looked at.
 */
struct change_right {
	int fd;      /* what it was given on, O_PATH; -1: nothing had to be given */
	mode_t mode; /* to be put back */
};

#define CHANGE_NO_RIGHT ((struct change_right){ .fd = -1 })

/*
 * file_open_beneath a folder of the layer, for reading only. Where a mode forbids that, the owner's
 * rights are added on the way, and put back before it returns; those of the last part stay in
 * `right` (whose state before does not matter) until change_right_done. A descriptor or -errno.
 */
int change_open(int folder, const char *path, int flags, struct change_right *right);

void change_right_done(struct change_right *right);

/*
 * The top that a path is below, layer or tree: `top`, or git's where the path is in it, and then it
 * is cut to what it is below that.
 */
int change_layer_of(const struct change_git_tops *git, int top, const char **path);
int change_below_of(const struct change_git_tops *git, int top, const char **path);
