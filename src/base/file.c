#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"

#define SMALL_ANSWER 2048

static int open_how(int dir_fd, const char *path, int flags, mode_t mode, uint64_t resolve)
{
	struct open_how how = {
		.flags = (unsigned)(flags | O_CLOEXEC),
		.mode = mode,
		.resolve = resolve | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	/* EAGAIN means a rename raced with the look-up; it is over in a moment or is an attack. */
	for (int tries = 0; tries < 16; tries++) {
		fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
		if (fd >= 0)
			return (int)fd;
		if (errno != EAGAIN && errno != EINTR)
			break;
	}
	return -errno;
}

/* Returns the length of the longest part, up to a slash, that the kernel takes at once; or 0. */
static size_t first_part(const char *path)
{
	const char *slash = memrchr(path, '/', PATH_MAX - 1);

	return slash ? (size_t)(slash - path) : 0;
}

static int open_in_parts(int dir_fd, const char *path, int flags, mode_t mode, uint64_t resolve)
{
	own_fd int at = -1;
	char part[PATH_MAX] __attribute__((uninitialized));

	while (strnlen(path, PATH_MAX) == PATH_MAX) {
		size_t n = first_part(path);
		int next;

		if (n == 0)
			return -ENAMETOOLONG;
		memcpy(part, path, n);
		part[n] = '\0';
		next = open_how(at < 0 ? dir_fd : at, part, O_PATH | O_DIRECTORY, 0, resolve);
		if (next < 0)
			return next;
		if (at >= 0)
			close(at);
		at = next;
		path += n + 1;
	}
	return open_how(at < 0 ? dir_fd : at, path, flags, mode, resolve);
}

int file_open_beneath(int dir_fd, const char *path, int flags, mode_t mode)
{
	return open_in_parts(dir_fd, path, flags, mode, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

int file_open_same_mount(int dir_fd, const char *path, int flags)
{
	return open_in_parts(
		dir_fd, path, flags, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
}

int file_open_inside(int dir_fd, const char *path, int flags)
{
	return open_how(dir_fd, path, flags, 0, RESOLVE_BENEATH);
}

int file_open_real(const char *path, int flags)
{
	return open_how(AT_FDCWD, path, flags, 0, RESOLVE_NO_SYMLINKS);
}

int file_open_name(int dir_fd, const char *name, int flags)
{
	int fd;

	do
		fd = openat(dir_fd, name, flags | O_NOFOLLOW | O_CLOEXEC);
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

/* Absolute, and no part of it is empty, "." or ".."? */
static bool is_plain(const char *path)
{
	size_t n;

	if (path[0] != '/')
		return false;
	for (; *path; path += n) {
		path++;
		n = strcspn(path, "/");
		if (n == 0 || (n == 1 && path[0] == '.') ||
			(n == 2 && path[0] == '.' && path[1] == '.'))
			return false;
	}
	return true;
}

int file_open_told(const char *path, int flags, bool *ret_is_real)
{
	int fd = is_plain(path) ? file_open_real(path, flags) : -ELOOP;

	*ret_is_real = fd >= 0;
	/* A filter of system calls that does not know openat2 may say EPERM. */
	return fd == -ELOOP || fd == -ENOSYS || fd == -EPERM ? file_open(path, flags) : fd;
}

static void close_run(int first, int count)
{
	if (count > 1 &&
		syscall(SYS_close_range, (unsigned)first, (unsigned)(first + count - 1), 0) == 0)
		return;
	for (int i = 0; i < count; i++)
		close(first + i);
}

void file_close_all(int *fds, size_t count)
{
	int first = 0, run = 0;

	for (size_t i = 0; i < count; i++) {
		int fd = fds[i];

		fds[i] = -1;
		if (fd < 0 || (run && fd == first + run)) {
			run += fd >= 0;
			continue;
		}
		close_run(first, run);
		first = fd;
		run = 1;
	}
	close_run(first, run);
}

ssize_t file_path_of(int fd, char ret[static PATH_MAX])
{
	char link[32];
	ssize_t n;

	if (fd < 0)
		return -EBADF;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret, PATH_MAX - 1);
	if (n < 0)
		return -errno;
	ret[n] = '\0';
	return ret[0] == '/' ? n : -ENOENT;
}

int file_open(const char *path, int flags)
{
	int fd;

	do
		fd = open(path, flags | O_CLOEXEC);
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

/* Up to `size`, to the end, or to `whole` bytes, where the end is known to be: 0 is never. */
static ssize_t read_until(int fd, char *bytes, size_t size, size_t whole)
{
	size_t len = 0;

	while (len < size) {
		ssize_t n = read(fd, bytes + len, size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
		if (len == whole)
			break;
	}
	return (ssize_t)len;
}

ssize_t file_read_up_to(int fd, char *bytes, size_t size)
{
	return read_until(fd, bytes, size, 0);
}

static int read_all(int fd, bool is_regular, size_t max, char **ret, size_t *ret_size)
{
	size_t len = 0, cap = 16 * 1024, whole = 0;
	own_free char *bytes = NULL;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (is_regular && !S_ISREG(st.st_mode))
		return -EINVAL;
	if (S_ISREG(st.st_mode) && (uint64_t)st.st_size > max)
		return -EFBIG;
	/* Files of /proc say that they are empty, and are not. */
	if (S_ISREG(st.st_mode) && st.st_size > 0) {
		whole = (size_t)st.st_size;
		cap = whole + 2;
	}
	for (;;) {
		char *grown = realloc(bytes, cap);
		ssize_t n;

		if (!grown)
			return -ENOMEM;
		bytes = grown;
		n = read_until(fd, bytes + len, cap - 1 - len, len ? 0 : whole);
		if (n < 0)
			return (int)n;
		len += (size_t)n;
		if (len > max)
			return -EFBIG;
		if (len < cap - 1)
			break;
		cap *= 2;
	}
	bytes[len] = '\0';
	*ret = take_ptr(bytes);
	*ret_size = len;
	return 0;
}

int file_read_all(int fd, size_t max, char **ret, size_t *ret_size)
{
	return read_all(fd, false, max, ret, ret_size);
}

int file_read_regular(int fd, size_t max, char **ret, size_t *ret_size)
{
	return read_all(fd, true, max, ret, ret_size);
}

int file_read_path(const char *path, size_t max, char **ret, size_t *ret_size)
{
	own_fd int fd = file_open(path, O_RDONLY | O_NOCTTY);

	return fd < 0 ? fd : file_read_all(fd, max, ret, ret_size);
}

ssize_t file_read_text(int fd, char *ret, size_t size)
{
	ssize_t n = fd < 0 ? fd : file_read_up_to(fd, ret, size - 1);

	ret[n < 0 ? 0 : n] = '\0';
	return n;
}

ssize_t file_read_small(const char *path, char *ret, size_t size)
{
	own_fd int fd = file_open(path, O_RDONLY);
	ssize_t n;

	do
		n = fd < 0 ? fd : read(fd, ret, size - 1);
	while (fd >= 0 && n < 0 && errno == EINTR);
	if (fd >= 0 && n < 0)
		n = -errno;
	/* The kernel fills at least a page with lines before it answers: less is all. */
	if (n >= SMALL_ANSWER && (size_t)n < size - 1) {
		ssize_t more = file_read_up_to(fd, ret + n, size - 1 - (size_t)n);

		n = more < 0 ? more : n + more;
	}
	ret[n < 0 ? 0 : n] = '\0';
	return n;
}

int file_write_all(int fd, const void *bytes, size_t n)
{
	const char *p = bytes;

	while (n) {
		ssize_t wrote = write(fd, p, n);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0)
			return -errno;
		p += wrote;
		n -= (size_t)wrote;
	}
	return 0;
}

const struct file_entry *file_next_entry(struct file_entries *e)
{
	const struct file_entry *entry;

	if (e->at >= e->len) {
		e->at = 0;
		e->len = syscall(
			SYS_getdents64, e->fd, e->bytes, e->most ? e->most : sizeof(e->bytes));
		if (e->len < 0)
			e->failure = errno;
		if (e->len <= 0)
			return NULL;
	}
	entry = (const void *)(e->bytes + e->at);
	e->at += entry->size;
	return entry;
}

int file_keep_only(int first, int *const kept[], int count)
{
	for (int i = 0; i < count; i++) {
		*kept[i] = fcntl(*kept[i], F_DUPFD_CLOEXEC, first + count);
		if (*kept[i] < 0)
			return -errno;
	}
	for (int i = 0; i < count; i++) {
		*kept[i] = dup3(*kept[i], first + i, O_CLOEXEC);
		if (*kept[i] < 0)
			return -errno;
	}
	return syscall(SYS_close_range, (unsigned)(first + count), ~0U, 0) < 0 ? -errno : 0;
}
