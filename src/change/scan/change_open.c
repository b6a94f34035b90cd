/*
 * change_open - reads what a run left, whatever mode it has.
 *
 * Runs as:     the operator, who owns the layer; the run is over, nothing else writes to it.
 * Enters with: a folder of the layer.
 * Leaves:      every mode as it was, unless it is killed in between.
 * Must not:    follow a link; touch the tree below, whose modes are the host's.
 */
#include "change/scan/change_open.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"

#define FD_PATH_SIZE 40

/* The name of an open file: the only way to chmod or open what is open by O_PATH. */
static void print_fd_path(int fd, char ret[static FD_PATH_SIZE])
{
	snprintf(ret, FD_PATH_SIZE, "/proc/self/fd/%d", fd);
}

static int open_give(int fd, struct change_right *ret)
{
	char path[FD_PATH_SIZE];
	struct stat st;
	mode_t wanted;

	if (fstat(fd, &st) < 0)
		return -errno;
	wanted = S_ISDIR(st.st_mode) ? 0500 : 0400;
	if ((st.st_mode & wanted) == wanted)
		return 0;
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return -EACCES;
	ret->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (ret->fd < 0)
		return -errno;
	ret->mode = st.st_mode & 07777;
	print_fd_path(fd, path);
	if (chmod(path, ret->mode | wanted) == 0)
		return 0;
	close(take_fd(&ret->fd));
	return -EACCES;
}

void change_right_done(struct change_right *right)
{
	char path[FD_PATH_SIZE];

	if (right->fd < 0)
		return;
	print_fd_path(right->fd, path);
	/* Nothing can be done where it fails, and nothing is lost: what was read stays read. */
	(void)!chmod(path, right->mode);
	close(take_fd(&right->fd));
}

/* One name at a time, so that the way there can be opened where it is closed. */
static int open_step_by_step(int folder, const char *path, int flags, struct change_right *ret)
{
	own(change_right) struct change_right on_the_way = CHANGE_NO_RIGHT;
	char name[NAME_MAX + 1], again[FD_PATH_SIZE];
	own_fd int at = -1;
	int fd, r;

	for (;;) {
		const char *end = strchrnul(path, '/');
		own_fd int next = -1;

		if ((size_t)(end - path) > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, path, (size_t)(end - path));
		name[end - path] = '\0';
		next = file_open_beneath(at < 0 ? folder : at, name, O_PATH | O_NOFOLLOW, 0);
		change_right_done(&on_the_way);
		if (next < 0)
			return next;
		if (!*end) {
			own_fd int last = take_fd(&next);

			r = open_give(last, ret);
			print_fd_path(last, again);
			fd = r < 0 ? r : file_open(again, flags & ~O_NOFOLLOW);
			if (fd < 0)
				change_right_done(ret);
			return fd;
		}
		r = open_give(next, &on_the_way);
		if (r < 0)
			return r;
		if (at >= 0)
			close(at);
		at = take_fd(&next);
		path = end + 1;
	}
}

int change_open(int folder, const char *path, int flags, struct change_right *right)
{
	int fd = file_open_beneath(folder, path, flags, 0);
	int r;

	*right = CHANGE_NO_RIGHT;
	if (fd == -EACCES)
		return open_step_by_step(folder, path, flags, right);
	/* A folder may be listed, and what is in it not be reached. */
	r = fd >= 0 && flags & O_DIRECTORY ? open_give(fd, right) : 0;
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

#define GIT ".git/"

/* Is it in a folder of git that is outside the project? */
static bool open_is_in_git(const struct change_git_tops *git, const char *path)
{
	return git && str_starts(path, GIT);
}

int change_layer_of(const struct change_git_tops *git, int top, const char **path)
{
	if (!open_is_in_git(git, *path))
		return top;
	*path += strlen(GIT);
	return git->layer;
}

int change_below_of(const struct change_git_tops *git, int top, const char **path)
{
	if (!open_is_in_git(git, *path))
		return top;
	*path += strlen(GIT);
	return git->below;
}
