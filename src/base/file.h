#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * Files by descriptor. Below a trusted directory descriptor nothing is resolved that leaves it:
 * no symlink is followed, no ".." climbs out, no mount of /proc is crossed by magic links.
 */

/*
 * openat2 with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | O_CLOEXEC; a path longer than PATH_MAX is
 * opened in parts, out of none of which ".." may lead. A descriptor or -errno.
 */
int file_open_beneath(int dir_fd, const char *path, int flags, mode_t mode);

/* The same for what is there already, and no mount is entered: -EXDEV where one is on the way. */
int file_open_same_mount(int dir_fd, const char *path, int flags);

/* As the first, but links are followed as long as they stay below `dir_fd`; -EXDEV: one leads out.
 */
int file_open_inside(int dir_fd, const char *path, int flags);

/* A whole path in which no part is a symlink: -ELOOP where one is. */
int file_open_real(const char *path, int flags);

/* One name in an open folder, not followed if it is a link; for kernels without openat2 too. */
int file_open_name(int dir_fd, const char *name, int flags);

/* open(2) by ordinary rules, O_CLOEXEC. For paths the operator named. A descriptor or -errno. */
int file_open(const char *path, int flags);

/*
 * file_open, and *ret_is_real: the path has no link in it, nor ".." or the like, so that it is what
 * file_path_of would return. False where nobody knows.
 */
int file_open_told(const char *path, int flags, bool *ret_is_real);

/* Closes those that are not negative, neighbours by one call, and makes all of them -1. */
void file_close_all(int *fds, size_t count);

/* The path of an open file, without links; its length, or -errno where it has no path. */
ssize_t file_path_of(int fd, char ret[static PATH_MAX]);

/*
 * Reads all of `fd`, which may be a pipe, into new memory that ends with a NUL: at most `max`
 * bytes, -EFBIG beyond. A regular file larger than that is not read at all. The caller owns
 * *ret.
 */
int file_read_all(int fd, size_t max, char **ret, size_t *ret_size);

/* file_read_all of a named file. */
int file_read_path(const char *path, size_t max, char **ret, size_t *ret_size);

/* Fills `bytes` up to `size` or the file's end; how many, or -errno. */
ssize_t file_read_up_to(int fd, char *bytes, size_t size);

/*
 * Closes every descriptor from `first` on but those of `kept`, which get new numbers: `first`, and
 * so on. Where it fails, nothing may go on. 0 or -errno.
 */
int file_keep_only(int first, int *const kept[], int count);

/* Reads a small file, such as one of /proc, into `ret` and ends it with a NUL; size or -errno. */
ssize_t file_read_small(const char *path, char *ret, size_t size);

/* The same of an open file; a descriptor that is an error is that error. */
ssize_t file_read_text(int fd, char *ret, size_t size);

/* A folder's entries one by one, without memory of its own. */
struct file_entry {
	uint64_t inode;
	int64_t next;
	uint16_t size;
	uint8_t type; /* DT_DIR … */
	char name[];
};

struct file_entries {
	int fd;       /* the folder, borrowed */
	int failure;  /* errno that ended it, or 0 */
	long at, len; /* in bytes */
	_Alignas(8) char bytes[4096];
};

/* The next entry, valid until the one after it is asked for; NULL at the end. */
const struct file_entry *file_next_entry(struct file_entries *e);

/* Writes all n bytes. 0 or -errno. */
int file_write_all(int fd, const void *bytes, size_t n);
