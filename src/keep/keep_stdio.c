/*
 * keep_stdio - standard input, output and error, without a terminal or a file in the cage.
 *
 * Runs as:  the keeper.
 * Must not: let a descriptor in that is more than a stream of bytes: a terminal can be typed into,
 *           a file can be emptied, read, or given another mode, a folder can be walked out of, a
 *           device can be anything.
 *
 * Pipes and sockets pass as they are. Terminals and whatever has a name stay outside, and the
 * keeper passes the bytes on. Folders and devices are refused. What the keeper took from a file and
 * the command did not read is given back at the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cage/cage_break.h"
#include "keep/keep_inside.h"

static const char *const names[] = { "input", "output", "error" };

/* The devices of memory's major that are streams: null 3, zero 5, full 7, random 8, urandom 9. */
static bool is_harmless_device(const struct stat *st)
{
	unsigned n = minor(st->st_rdev);

	return major(st->st_rdev) == 1 && (n == 3 || n == 5 || n == 7 || n == 8 || n == 9);
}

static int open_pipe(struct keep_stdio *s, int i, const struct cage_ids *ids, struct err *e)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0 ||
		(ids->is_given && fchown(ends[0], ids->uid, ids->gid) < 0))
		return err_set(e, ERR_SYS, errno, "cannot make a pipe for standard %s: %s",
			names[i], strerror(errno));
	s->streams[i].bytes = malloc(KEEP_STREAM_SIZE);
	s->streams[i].inside = ends[i == 0 ? 0 : 1];
	s->streams[i].near = ends[i == 0 ? 1 : 0];
	/* Ours is only ever touched when poll says so, but poll may be wrong. */
	fcntl(s->streams[i].near, F_SETFL, O_NONBLOCK);
	if (!s->streams[i].bytes)
		return err_set(e, ERR_SYS, ENOMEM, "not enough memory for standard %s", names[i]);
	return 0;
}

static bool has_name(int fd, const struct stat *st)
{
	struct statfs fs;

	return S_ISREG(st->st_mode) ||
	       (S_ISFIFO(st->st_mode) && (fstatfs(fd, &fs) < 0 || fs.f_type != PIPEFS_MAGIC));
}

/* Why a descriptor cannot be a stream of the cage's, or NULL. */
static const char *refusal(int fd, const struct stat *st)
{
	if (fcntl(fd, F_GETFL) & O_PATH)
		return "a path and not open";
	if (S_ISDIR(st->st_mode))
		return "a folder";
	if (S_ISBLK(st->st_mode) ||
		(S_ISCHR(st->st_mode) && !isatty(fd) && !is_harmless_device(st)))
		return "a device";
	return NULL;
}

static int open_stream(struct keep_stdio *s, int i, const struct cage_ids *ids, struct err *e)
{
	const char *what;
	struct stat st;

	if (fstat(i, &st) < 0)
		return err_set(e, ERR_SYS, errno, "standard %s is not open", names[i]);
	what = refusal(i, &st);
	if (what)
		return err_set(e, ERR_REFUSED, EPERM,
			"standard %s is %s, which would be a way out of the cage; pass a file or a "
			"pipe",
			names[i], what);
	if (cage_is_broken("tty"))
		return 0;
	if (isatty(i) || has_name(i, &st)) {
		s->streams[i].is_file = S_ISREG(st.st_mode);
		return open_pipe(s, i, ids, e);
	}
	/* The cage's user could not open root's pipe again, as /dev/stdout. */
	if (S_ISFIFO(st.st_mode) && ids->is_given && fchown(i, ids->uid, ids->gid) < 0)
		return err_set(e, ERR_SYS, errno, "cannot pass standard %s: %s", names[i],
			strerror(errno));
	return 0;
}

int keep_stdio_open(struct keep_stdio *ret, const struct cage_ids *ids, struct err *e)
{
	int r = 0;

	memset(ret, 0, sizeof(*ret));
	for (int i = 0; i < 3; i++) {
		ret->streams[i].inside = ret->streams[i].outside = i;
		ret->streams[i].near = -1;
	}
	for (int i = 0; r == 0 && i < 3; i++)
		r = open_stream(ret, i, ids, e);
	return r;
}

static void close_near(struct keep_stdio *s, int i)
{
	if (s->streams[i].near >= 0)
		close(s->streams[i].near);
	s->streams[i].near = -1;
}

void keep_stdio_close_inside(struct keep_stdio *s)
{
	for (int i = 0; i < 3; i++) {
		/* How much of an input file was read will be asked there. */
		if (i == 0 && s->streams[i].is_file)
			continue;
		if (s->streams[i].inside > 2)
			close(s->streams[i].inside);
		s->streams[i].inside = -1;
	}
}

/* The offset of an input file, back to what the command has read of it. */
static void give_back(struct keep_stdio *s)
{
	off_t unread = (off_t)(s->streams[0].len - s->streams[0].at);
	int in_pipe = 0;

	if (!s->streams[0].is_file || s->streams[0].inside < 0)
		return;
	if (ioctl(s->streams[0].inside, FIONREAD, &in_pipe) == 0)
		unread += in_pipe;
	lseek(s->streams[0].outside, -unread, SEEK_CUR);
	close(s->streams[0].inside);
	s->streams[0].inside = -1;
}

void keep_stdio_done(struct keep_stdio *s)
{
	give_back(s);
	keep_stdio_close_inside(s);
	for (int i = 0; i < 3; i++) {
		close_near(s, i);
		free(s->streams[i].bytes);
		s->streams[i].bytes = NULL;
	}
}

/* Where bytes of stream i come from, and where they go. */
static int source_of(const struct keep_stdio *s, int i)
{
	return i == 0 ? s->streams[i].outside : s->streams[i].near;
}

static int target_of(const struct keep_stdio *s, int i)
{
	return i == 0 ? s->streams[i].near : s->streams[i].outside;
}

void keep_stdio_want(const struct keep_stdio *s, struct pollfd *ret)
{
	for (int i = 0; i < 3; i++) {
		bool has_bytes = s->streams[i].len > s->streams[i].at;

		ret[i] = (struct pollfd){ .fd = -1 };
		if (s->streams[i].near < 0)
			continue;
		ret[i].fd = has_bytes ? target_of(s, i) : source_of(s, i);
		ret[i].events = has_bytes ? POLLOUT : POLLIN;
	}
}

static bool is_for_later(void)
{
	return errno == EINTR || errno == EAGAIN;
}

static void fill(struct keep_stdio *s, int i)
{
	ssize_t n = read(source_of(s, i), s->streams[i].bytes, KEEP_STREAM_SIZE);

	if (n < 0 && is_for_later())
		return;
	/* The end, or a terminal that is gone. */
	if (n <= 0) {
		close_near(s, i);
		return;
	}
	s->streams[i].at = 0;
	s->streams[i].len = (size_t)n;
}

static void empty(struct keep_stdio *s, int i)
{
	size_t left = s->streams[i].len - s->streams[i].at;
	ssize_t n = write(target_of(s, i), s->streams[i].bytes + s->streams[i].at, left);

	if (n < 0 && is_for_later())
		return;
	if (n < 0) {
		s->streams[i].failure = errno;
		close_near(s, i); /* the writer hears of it as SIGPIPE, the reader as the end */
	} else
		s->streams[i].at += (size_t)n;
}

void keep_stdio_move(struct keep_stdio *s, const struct pollfd *seen)
{
	for (int i = 0; i < 3; i++) {
		if (seen[i].fd < 0 || !seen[i].revents || s->streams[i].near < 0)
			continue;
		if (seen[i].events == POLLOUT)
			empty(s, i);
		else
			fill(s, i);
	}
}

void keep_stdio_drain(struct keep_stdio *s)
{
	close_near(s, 0);
	for (int i = 1; i < 3; i++) {
		while (s->streams[i].near >= 0) {
			struct pollfd wait = { .fd = s->streams[i].outside, .events = POLLOUT };

			if (s->streams[i].len > s->streams[i].at) {
				poll(&wait, 1, -1);
				empty(s, i);
			} else {
				fill(s, i);
				if (s->streams[i].near >= 0 &&
					s->streams[i].len == s->streams[i].at)
					close_near(s, i); /* nobody is left to write */
			}
		}
	}
}

int keep_stdio_judge(const struct keep_stdio *s, struct err *e)
{
	for (int i = 1; i < 3; i++) {
		int num = s->streams[i].failure;

		/* A reader that has seen enough is no failure. */
		if (num && num != EPIPE)
			return err_set(e, ERR_SYS, num, "cannot write standard %s: %s", names[i],
				strerror(num));
	}
	return 0;
}
