#pragma once

#include <sys/types.h>

/*
 * What a run leaves in its layer is ours, whatever mode it has: a file nobody may read is read by
 * giving its owner the right, for as long as it is looked at.
 */
struct work_right {
	int fd;      /* what it was given on, O_PATH; -1: nothing had to be given */
	mode_t mode; /* to be put back */
};

#define WORK_NO_RIGHT ((struct work_right){ .fd = -1 })

/*
 * file_open_beneath a folder of the layer, for reading only. Where a mode forbids that, the owner's
 * rights are added on the way, and put back before it returns; those of the last part stay in
 * `right` (whose state before does not matter) until work_right_done. A descriptor or -errno.
 */
int work_open(int folder, const char *path, int flags, struct work_right *right);

void work_right_done(struct work_right *right);
