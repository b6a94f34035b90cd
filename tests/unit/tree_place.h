#pragma once

/* A tree with one of each kind, and what is looked for in its copies. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/tree.h"
#include "check.h"

static inline void write_file(int dir, const char *name, const char *text, mode_t mode)
{
	own_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && file_write_all(fd, text, strlen(text)) == 0 && fchmod(fd, mode) == 0);
}

static inline int make_folder(int dir, const char *name)
{
	CHECK(mkdirat(dir, name, 0755) == 0 && fchmodat(dir, name, 0755, 0) == 0);
	return tree_open_folder(dir, name);
}

static inline struct stat look(int dir, const char *name)
{
	struct stat st = { 0 };

	CHECK(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0);
	return st;
}

static inline bool is_there(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static inline void check_text(int dir, const char *name, const char *wanted)
{
	own_fd int fd = file_open_name(dir, name, O_RDONLY);
	char text[64];

	CHECK(file_read_text(fd, text, sizeof(text)) >= 0);
	CHECK_STR(text, wanted);
}

static inline void check_link(int dir, const char *name, const char *wanted)
{
	char target[128] = "";

	CHECK(readlinkat(dir, name, target, sizeof(target) - 1) > 0);
	CHECK_STR(target, wanted);
}

static inline void set_attribute(
	int dir, const char *name, const char *attribute, const char *value)
{
	own_fd int fd = file_open_name(dir, name, O_RDONLY);

	CHECK(fsetxattr(fd, attribute, value, strlen(value), 0) == 0);
}

/* What an attribute is, or "" where there is none. */
static inline void check_attribute(
	int dir, const char *name, const char *attribute, const char *wanted)
{
	own_fd int fd = file_open_name(dir, name, O_RDONLY);
	char value[64] = "";
	ssize_t n = fgetxattr(fd, attribute, value, sizeof(value) - 1);

	CHECK(n >= 0 || errno == ENODATA);
	CHECK_STR(value, wanted);
}

static inline void make_socket(int dir, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	own_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", dir, name);
	CHECK(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
}

/* One of each kind, and ways out of the tree. */
static inline void make_tree(int dir)
{
	const struct timespec times[] = { { 1000, 1 }, { 2000, 2 } };
	own_fd int in = make_folder(dir, "from"), sub = make_folder(in, "sub"), holes = -1;

	write_file(in, "file", "content", 04751);
	write_file(in, "name\nwith \xff", "odd", 0600);
	write_file(sub, "linked", "one file", 0644);
	CHECK(linkat(sub, "linked", in, "again", 0) == 0);
	CHECK(symlinkat("/etc/passwd", in, "out") == 0 && symlinkat("..", in, "up") == 0);
	CHECK(mkfifoat(in, "pipe", 0640) == 0 && fchmodat(in, "pipe", 0620, 0) == 0);
	CHECK(mknodat(in, "whiteout", S_IFCHR, 0) == 0);
	make_socket(in, "socket");
	set_attribute(in, "file", "user.colour", "red");
	set_attribute(in, "sub", "user.overlay.opaque", "y");
	holes = openat(in, "holes", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(pwrite(holes, "in", 2, 1 << 20) == 2 && ftruncate(holes, 1 << 30) == 0);
	CHECK(utimensat(in, "file", times, 0) == 0 && utimensat(in, "sub", times, 0) == 0);
	CHECK(fchmod(in, 0711) == 0 && futimens(in, times) == 0);
}

/* Where there are attributes and whiteouts: not on every tmpfs, and not in every container. */
static inline int find_place(char path[static 64])
{
	static const char *const places[] = { "/tmp", "/var/tmp", "/dev/shm" };

	for (size_t i = 0; i < COUNT_OF(places); i++) {
		own_fd int dir = -1;

		snprintf(path, 64, "%s/bawn-tree-XXXXXX", places[i]);
		dir = mkdtemp(path) ? file_open(path, O_RDONLY | O_DIRECTORY) : -1;
		if (dir >= 0 && fsetxattr(dir, "user.test", "", 0, 0) == 0 &&
			mknodat(dir, "whiteout", S_IFCHR, 0) == 0)
			return take_fd(&dir);
		tree_remove(AT_FDCWD, path, NULL);
	}
	return -1;
}
