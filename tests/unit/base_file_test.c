/* Files by descriptor, in a directory made for the test and removed after it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "check.h"

static void write_file(int dir, const char *name, const char *text, size_t n)
{
	own_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && file_write_all(fd, text, n) == 0);
}

/* dir/in/file, and the ways out of `in` and around. */
static void make_tree(int dir)
{
	CHECK(mkdirat(dir, "in", 0700) == 0 && mkdirat(dir, "in/deep", 0700) == 0);
	write_file(dir, "secret", "secret", 6);
	write_file(dir, "in/file", "inside", 6);
	write_file(dir, "in/deep/file", "deeper", 6);
	CHECK(symlinkat("../secret", dir, "in/out") == 0);
	CHECK(symlinkat("file", dir, "in/link") == 0);
	CHECK(symlinkat("deep", dir, "in/parent") == 0);
	CHECK(symlinkat("/", dir, "in/root") == 0);
}

static void remove_tree(int dir)
{
	static const char *const names[] = { "in/made", "in/root", "in/parent", "in/link", "in/out",
		"in/deep/file", "in/file", "secret", "data" };

	for (size_t i = 0; i < COUNT_OF(names); i++)
		unlinkat(dir, names[i], 0);
	CHECK(unlinkat(dir, "in/deep", AT_REMOVEDIR) == 0);
	CHECK(unlinkat(dir, "in", AT_REMOVEDIR) == 0);
}

static int try_open(int dir, const char *path, int flags)
{
	own_fd int fd = file_open_beneath(dir, path, flags, 0);

	return fd < 0 ? fd : 0;
}

/* A spelling is the real path only where no part of it is a link, or climbs. */
static void test_open_told(const char *base)
{
	static const struct {
		const char *path;
		int error;
		bool is_real;
	} rows[] = {
		{ "/in/file", 0, true },
		{ "/in", 0, true },
		{ "/in/link", 0, false },
		{ "/in/parent/file", 0, false },
		{ "/in/deep/../file", 0, false },
		{ "/in/./file", 0, false },
		{ "/in//file", 0, false },
		{ "/in/", 0, false },
		{ "/nothing", -ENOENT, false },
		{ "/in/file/more", -ENOTDIR, false },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char path[PATH_MAX], real[PATH_MAX];
		bool is_real = !rows[i].is_real;
		own_fd int fd = -1;

		snprintf(path, sizeof(path), "%s%s", base, rows[i].path);
		fd = file_open_told(path, O_PATH, &is_real);
		CHECK(rows[i].error ? fd == rows[i].error : fd >= 0);
		CHECK(is_real == rows[i].is_real);
		if (is_real && file_path_of(fd, real) > 0)
			CHECK_STR(real, path);
	}
}

static void test_close_all(int dir)
{
	int fds[7], ours;

	for (size_t i = 0; i < COUNT_OF(fds); i++)
		fds[i] = file_open_name(dir, "secret", O_RDONLY);
	/* One that is not there, and one that stays open between two that do not. */
	close(fds[1]);
	fds[1] = -1;
	ours = fds[4];
	fds[4] = -1;
	{
		int copies[7];

		memcpy(copies, fds, sizeof(fds));
		file_close_all(fds, COUNT_OF(fds));
		for (size_t i = 0; i < COUNT_OF(fds); i++) {
			CHECK(fds[i] == -1);
			CHECK(copies[i] < 0 || fcntl(copies[i], F_GETFD) < 0);
		}
	}
	CHECK(fcntl(ours, F_GETFD) >= 0 && close(ours) == 0);
	file_close_all(fds, COUNT_OF(fds));
	file_close_all(fds, 0);
}

static void test_read_regular(int dir)
{
	own_fd int fd = file_open_name(dir, "in/file", O_RDONLY);
	own_fd int folder = file_open_name(dir, "in", O_RDONLY);
	own_free char *text = NULL;
	size_t n = 0;

	CHECK(file_read_regular(fd, 100, &text, &n) == 0 && n == 6);
	CHECK_STR(text, "inside");
	CHECK(file_read_regular(folder, 100, &text, &n) == -EINVAL);
}

/* /proc is mounted wherever tests run. */
static void test_path_of(int dir)
{
	char top[PATH_MAX], path[PATH_MAX];
	own_fd int link = openat(dir, "in/link", O_RDONLY | O_CLOEXEC);
	int ends[2];

	CHECK(file_path_of(dir, top) == (ssize_t)strlen(top) && top[0] == '/');
	CHECK(file_path_of(link, path) == (ssize_t)(strlen(top) + strlen("/in/file")));
	CHECK(strncmp(path, top, strlen(top)) == 0 && strcmp(path + strlen(top), "/in/file") == 0);
	CHECK(pipe2(ends, O_CLOEXEC) == 0 && file_path_of(ends[0], path) == -ENOENT);
	close(ends[0]);
	close(ends[1]);
	CHECK(file_path_of(-1, path) == -EBADF);
}

static void test_open_same_mount(int dir)
{
	own_fd int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	own_fd int in = openat(dir, "in", O_PATH | O_DIRECTORY | O_CLOEXEC);
	own_fd int other = file_open_beneath(root, "proc/version", O_RDONLY, 0);
	own_fd int fd = file_open_same_mount(in, "deep/file", O_RDONLY);

	CHECK(fd >= 0);
	CHECK(file_open_same_mount(in, "link", O_RDONLY) == -ELOOP);
	CHECK(file_open_same_mount(in, "parent/file", O_RDONLY) == -ELOOP);
	CHECK(file_open_same_mount(in, "../secret", O_RDONLY) == -EXDEV);
	CHECK(file_open_same_mount(in, "nothing", O_RDONLY) == -ENOENT);
	CHECK(other >= 0);
	CHECK(file_open_same_mount(root, "proc/version", O_RDONLY) == -EXDEV);
	CHECK(file_open_same_mount(root, "proc", O_PATH) == -EXDEV);
}

static void test_open_beneath(int dir)
{
	own_fd int in = openat(dir, "in", O_PATH | O_DIRECTORY | O_CLOEXEC);
	own_fd int fd = file_open_beneath(in, "deep/../file", O_RDONLY, 0);
	own_fd int made = file_open_beneath(in, "made", O_WRONLY | O_CREAT | O_EXCL, 0640);
	char absolute[64];
	struct stat st;

	if (in < 0)
		return;
	CHECK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	CHECK(made >= 0 && fstat(made, &st) == 0 && (st.st_mode & 07137) == 0);
	CHECK(try_open(in, "file", O_RDONLY) == 0);
	CHECK(try_open(in, "deep/file", O_RDONLY) == 0);
	CHECK(try_open(in, ".", O_RDONLY | O_DIRECTORY) == 0);
	CHECK(try_open(in, "../secret", O_RDONLY) == -EXDEV);
	CHECK(try_open(in, "..", O_RDONLY) == -EXDEV);
	CHECK(try_open(in, "deep/../../secret", O_RDONLY) == -EXDEV);
	CHECK(try_open(in, "/etc/passwd", O_RDONLY) == -EXDEV);
	CHECK(try_open(in, "/", O_RDONLY) == -EXDEV);
	CHECK(try_open(in, "out", O_RDONLY) == -ELOOP);
	CHECK(try_open(in, "link", O_RDONLY) == -ELOOP); /* though it stays inside */
	CHECK(try_open(in, "parent/file", O_RDONLY) == -ELOOP);
	CHECK(try_open(in, "root/etc", O_RDONLY) == -ELOOP);
	CHECK(try_open(in, "none", O_RDONLY) == -ENOENT);
	CHECK(try_open(in, "file/x", O_RDONLY) == -ENOTDIR);
	CHECK(try_open(in, "", O_RDONLY) == -ENOENT);
	CHECK(try_open(in, "made", O_WRONLY | O_CREAT | O_EXCL) == -EEXIST);
	CHECK(try_open(-1, "file", O_RDONLY) == -EBADF);
	/* A magic link leads where no path does. */
	snprintf(absolute, sizeof(absolute), "self/fd/%d", in);
	{
		own_fd int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

		CHECK(proc < 0 || try_open(proc, absolute, O_PATH) == -ELOOP);
	}
}

/* deep/deep/…/end, longer than the kernel takes at once. */
static void test_open_long(int dir)
{
	enum {
		LEVELS = 40,
		WIDTH = 200
	};
	char path[LEVELS * (WIDTH + 1) + 8] = "";
	own_fd int at = openat(dir, "in", O_PATH | O_DIRECTORY | O_CLOEXEC);
	own_fd int in = dup(at);
	char name[WIDTH + 1];
	size_t n = 0;

	memset(name, 'd', WIDTH);
	name[WIDTH] = '\0';
	for (int i = 0; i < LEVELS; i++) {
		int next;

		CHECK(mkdirat(at, name, 0700) == 0);
		next = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(at);
		at = next;
		n += (size_t)sprintf(path + n, "%s/", name);
	}
	write_file(at, "end", "x", 1);
	CHECK(symlinkat("end", at, "link") == 0);
	strcpy(path + n, "end");
	CHECK(strlen(path) > 4096 && try_open(in, path, O_RDONLY) == 0);
	strcpy(path + n, "link");
	CHECK(try_open(in, path, O_RDONLY) == -ELOOP);
	strcpy(path + n, "none");
	CHECK(try_open(in, path, O_RDONLY) == -ENOENT);
	memset(path, 'x', sizeof(path) - 1);
	CHECK(try_open(in, path, O_RDONLY) == -ENAMETOOLONG);
	unlinkat(at, "end", 0);
	unlinkat(at, "link", 0);
	for (int i = LEVELS; i > 0; i--) {
		int up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

		CHECK(unlinkat(up, name, AT_REMOVEDIR) == 0);
		close(at);
		at = up;
	}
}

static void test_open(int dir, const char *base)
{
	char path[256];
	own_fd int fd = -1;

	snprintf(path, sizeof(path), "%s/in/link", base);
	fd = file_open(path, O_RDONLY);
	CHECK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC); /* the operator's links do lead on */
	snprintf(path, sizeof(path), "%s/none", base);
	CHECK(file_open(path, O_RDONLY) == -ENOENT);
	CHECK(dir >= 0);
}

/* Reads `size` bytes with a maximum of `max`, from a file or through a pipe. */
static void check_read(int dir, bool is_pipe, size_t size, size_t max, int wanted)
{
	own_free char *text = malloc(size + 1), *got = NULL;
	size_t n = SIZE_MAX;
	int fds[2] = { -1, -1 };
	pid_t child = 0;
	int r;

	if (!text)
		return;
	for (size_t i = 0; i < size; i++)
		text[i] = (char)('a' + i % 26);
	if (is_pipe) {
		CHECK(pipe2(fds, O_CLOEXEC) == 0);
		child = fork();
		if (child == 0) {
			signal(SIGPIPE, SIG_DFL);
			_exit(file_write_all(fds[1], text, size) < 0);
		}
		close(fds[1]);
	} else {
		write_file(dir, "data", text, size);
		fds[0] = openat(dir, "data", O_RDONLY | O_CLOEXEC);
	}
	r = file_read_all(fds[0], max, &got, &n);
	close(fds[0]);
	if (child > 0)
		waitpid(child, NULL, 0);
	CHECK(r == wanted);
	if (wanted < 0)
		CHECK(!got && n == SIZE_MAX); /* nothing is written on failure */
	else
		CHECK(got && n == size && memcmp(got, text, size) == 0 && got[size] == '\0');
}

static void test_read_all(int dir)
{
	static const size_t sizes[] = { 0, 1, 100, 4096, 16 * 1024 - 1, 16 * 1024, 16 * 1024 + 1,
		100 * 1000 };

	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		for (int is_pipe = 0; is_pipe < 2; is_pipe++) {
			check_read(dir, is_pipe, sizes[i], sizes[i], 0);
			check_read(dir, is_pipe, sizes[i], sizes[i] + 1, 0);
			if (sizes[i])
				check_read(dir, is_pipe, sizes[i], sizes[i] - 1, -EFBIG);
		}
	}
}

static void test_read_odd(int dir, const char *base)
{
	own_free char *got = NULL;
	own_fd int folder = openat(dir, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t n = 0;
	char path[256];

	CHECK(file_read_all(-1, 10, &got, &n) == -EBADF);
	CHECK(file_read_all(folder, 10, &got, &n) == -EISDIR || got == NULL);
	snprintf(path, sizeof(path), "%s/secret", base);
	CHECK(file_read_path(path, 5, &got, &n) == -EFBIG && !got);
	CHECK(file_read_path(path, 6, &got, &n) == 0 && n == 6);
	CHECK_STR(got, "secret");
	free(take_ptr(got));
	snprintf(path, sizeof(path), "%s/none", base);
	CHECK(file_read_path(path, 5, &got, &n) == -ENOENT);
	/* Files of /proc say that they have no size. */
	CHECK(file_read_path("/proc/self/status", 100000, &got, &n) == 0 && n > 100);
	CHECK(got && strstr(got, "\nPid:"));
}

static void test_read_small(const char *base)
{
	char path[256], text[7];

	snprintf(path, sizeof(path), "%s/secret", base);
	CHECK(file_read_small(path, text, sizeof(text)) == 6);
	CHECK_STR(text, "secret");
	CHECK(file_read_small(path, text, 4) == 3);
	CHECK_STR(text, "sec");
	snprintf(path, sizeof(path), "%s/none", base);
	CHECK(file_read_small(path, text, sizeof(text)) == -ENOENT);
	CHECK_STR(text, "");
}

static void test_write_all(int dir)
{
	own_fd int reader = openat(dir, "secret", O_RDONLY | O_CLOEXEC);
	int fds[2];

	CHECK(file_write_all(reader, "x", 1) == -EBADF);
	CHECK(file_write_all(reader, NULL, 0) == 0);
	CHECK(file_write_all(-1, "x", 1) == -EBADF);
	signal(SIGPIPE, SIG_IGN);
	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	close(fds[0]);
	CHECK(file_write_all(fds[1], "x", 1) == -EPIPE);
	close(fds[1]);
}

int main(void)
{
	char base[] = "/tmp/bawn-file-test-XXXXXX";
	own_fd int dir = -1;

	if (!mkdtemp(base)) {
		printf("cannot make a directory in /tmp: %s\n", strerror(errno));
		return 77;
	}
	dir = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
	make_tree(dir);
	test_open_beneath(dir);
	test_path_of(dir);
	test_open_told(base);
	test_close_all(dir);
	test_read_regular(dir);
	test_open_same_mount(dir);
	test_open_long(dir);
	test_open(dir, base);
	test_read_all(dir);
	test_read_odd(dir, base);
	test_read_small(base);
	test_write_all(dir);
	remove_tree(dir);
	CHECK(rmdir(base) == 0);
	return check_report();
}
