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
 * Opens a path with openat2, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS and O_CLOEXEC. A path longer
 * than PATH_MAX is opened in parts, and ".." must not lead out of any of them. Returns a descriptor
 * or -errno, as all of these do.
 */
int file_open_beneath(int dir_fd, const char *path, int flags, mode_t mode);

/* Opens an existing path beneath `dir_fd`. Returns -EXDEV if a mount is on the way. */
int file_open_same_mount(int dir_fd, const char *path, int flags);

/* Opens an existing path and follows symlinks beneath `dir_fd`. Returns -EXDEV if one leads out. */
int file_open_inside(int dir_fd, const char *path, int flags);

/* Opens an absolute path. Returns -ELOOP if a part of it is a symlink. */
int file_open_real(const char *path, int flags);

/* Opens one name in a folder and follows no symlink. Works on kernels without openat2 too. */
int file_open_name(int dir_fd, const char *name, int flags);

/* Opens a path that the operator named, by the rules of open(2), with O_CLOEXEC. */
int file_open(const char *path, int flags);

/*
 * file_open, and *ret_is_real: true if the path has no symlink, "..", "." or double slash in it, so
 * that file_path_of would return the same path. False if that is unknown.
 */
int file_open_told(const char *path, int flags, bool *ret_is_real);

/* Closes the descriptors that are not negative, neighbours by one call, and sets all to -1. */
void file_close_all(int *fds, size_t count);

/*
 * Finds the path of an open file, without symlinks. Returns its length, or -errno if it has none.
 */
ssize_t file_path_of(int fd, char ret[static PATH_MAX]);

/*
 * Reads all of `fd`, which may be a pipe, into new memory that ends with a NUL. Returns -EFBIG for
 * more than `max` bytes; a regular file of that size is not read at all. The caller owns *ret.
 */
int file_read_all(int fd, size_t max, char **ret, size_t *ret_size);

/* The same for a regular file; -EINVAL if it is none. */
int file_read_regular(int fd, size_t max, char **ret, size_t *ret_size);

/* Opens a path with file_open and reads all of it with file_read_all. */
int file_read_path(const char *path, size_t max, char **ret, size_t *ret_size);

/* Reads up to `size` bytes, or to the end of the file. Returns how many, or -errno. */
ssize_t file_read_up_to(int fd, char *bytes, size_t size);

/*
 * Closes every descriptor from `first` on except those of `kept`, which are renumbered to `first`,
 * `first` + 1 and so on. Returns 0, or -errno: the caller must exit then, as numbers may be wrong.
 */
int file_keep_only(int first, int *const kept[], int count);

/*
 * Reads a small file with lines shorter than half a page, such as one of /proc, and adds a NUL.
 * Returns its size or -errno.
 */
ssize_t file_read_small(const char *path, char *ret, size_t size);

/* The same for an open file. A negative `fd` is an -errno, which is returned. */
ssize_t file_read_text(int fd, char *ret, size_t size);

/* The entries of a folder, read one by one without allocating. */
struct file_entry {
	uint64_t inode;
	int64_t next;
	uint16_t size;
	uint8_t type; /* DT_DIR … */
	char name[];
};

struct file_entries {
	int fd;       /* the folder, borrowed */
	int failure;  /* the errno that ended the reading, or 0 */
	long at, len; /* in bytes */
	/* Bytes asked for at one time, where not all entries are wanted; 0: as many as there is
	 * room for. */
	size_t most;
	_Alignas(8) char bytes[4096];
};

/* Returns the next entry, borrowed until the next call; NULL at the end or after a failure. */
const struct file_entry *file_next_entry(struct file_entries *e);

/* Writes all n bytes. Returns 0 or -errno. */
int file_write_all(int fd, const void *bytes, size_t n);
