/*
 * keep_stdio - standard input, output and error: the cage has pipes of bawn's, and nothing else.
 *
 * Runs as:  the keeper.
 * Must not: let a descriptor of the operator's in. A terminal can be typed into; a file emptied,
 *           read, or given another mode; a socket connected anew, past the cage's network; a pipe
 *           read by whom it was to be written by; a folder walked out of; a device can be anything.
 *           Nor wait for one: time limits and signals go on while a terminal is stopped.
 *
 * The keeper passes the bytes on. /dev/null and its like are harmless, and pass as they are. What
 * the keeper took from a file and the command did not read is given back at the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "cage/cage_break.h"
#include "keep/keep_inside.h"

/* What can be written without waiting once poll says so. */
#define TERMINAL_CHUNK 256
#define PIPE_CHUNK     4096
#define FOREGROUND_MS  300 /* between two looks whether we are in it again */

static const char *const names[] = { "input", "output", "error" };

/* The devices of memory's major that are streams: null 3, zero 5, full 7, random 8, urandom 9. */
static bool is_harmless_device(const struct stat *st)
{
	unsigned n = minor(st->st_rdev);

	return S_ISCHR(st->st_mode) && major(st->st_rdev) == 1 &&
	       (n == 3 || n == 5 || n == 7 || n == 8 || n == 9);
}

static int open_pipe(struct keep_stdio *all, int i, const struct cage_ids *ids, struct err *e)
{
	struct keep_stream *s = &all->streams[i];
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(e, ERR_SYS, errno, "cannot make a pipe for standard %s: %s",
			names[i], strerror(errno));
	s->inside = ends[i == 0 ? 0 : 1];
	s->near = ends[i == 0 ? 1 : 0];
	s->bytes = arena_alloc(&all->arena, KEEP_STREAM_SIZE);
	/* Root's cage must be able to open it again, as /dev/stdout. */
	if (!s->bytes || fcntl(s->near, F_SETFL, O_NONBLOCK) < 0 ||
		(ids->is_given && fchown(s->near, ids->uid, ids->gid) < 0))
		return err_set(e, ERR_SYS, errno, "cannot make a pipe for standard %s: %s",
			names[i], strerror(errno));
	return 0;
}

static bool is_stream_socket(int fd)
{
	int type = 0;
	socklen_t size = sizeof(type);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

/* Finds out how a descriptor is passed on; says why it is not, or NULL. */
static const char *classify(struct keep_stream *s, int i, const struct stat *st)
{
	s->chunk = KEEP_STREAM_SIZE;
	if (fcntl(i, F_GETFL) & O_PATH)
		return "a path and not open";
	if (S_ISDIR(st->st_mode))
		return "a folder";
	if (S_ISREG(st->st_mode) && i > 0 && st->st_mode & (S_ISUID | S_ISGID))
		return "a file with a set-user-id or set-group-id bit";
	if (isatty(i)) {
		s->kind = KEEP_TERMINAL;
		s->chunk = TERMINAL_CHUNK;
	} else if (S_ISREG(st->st_mode)) {
		s->kind = KEEP_FILE;
	} else if (S_ISFIFO(st->st_mode)) {
		s->kind = KEEP_PIPE;
		s->chunk = PIPE_CHUNK;
	} else if (S_ISSOCK(st->st_mode) && is_stream_socket(i)) {
		s->kind = KEEP_SOCKET;
	} else if (!is_harmless_device(st)) {
		return S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode) ? "a device"
								    : "no stream of bytes";
	}
	return NULL;
}

/* Output and error that go to one place go through one pipe, or their order would be lost. */
static bool shares_output(const struct keep_stdio *s, int i, const struct stat *st)
{
	struct stat other;

	return i == 2 && s->streams[1].near >= 0 && fstat(1, &other) == 0 &&
	       other.st_dev == st->st_dev && other.st_ino == st->st_ino &&
	       other.st_rdev == st->st_rdev;
}

static int open_stream(struct keep_stdio *s, int i, const struct cage_ids *ids, struct err *e)
{
	struct keep_stream *stream = &s->streams[i];
	const char *refusal;
	struct stat st;
	int r;

	if (fstat(i, &st) < 0)
		return err_set(e, ERR_SYS, errno, "standard %s is not open", names[i]);
	refusal = classify(stream, i, &st);
	if (refusal)
		return err_set(e, ERR_REFUSED, EPERM,
			"standard %s is %s, which would be a way out of the cage; pass a file or a "
			"pipe",
			names[i], refusal);
	if (stream->kind == KEEP_HARMLESS || cage_is_broken("tty"))
		return 0;
	if (shares_output(s, i, &st)) {
		stream->inside = s->streams[1].inside;
		return 0;
	}
	r = open_pipe(s, i, ids, e);
	stream->is_given_back = r == 0 && i == 0 && stream->kind == KEEP_FILE;
	return r;
}

int keep_stdio_open(struct keep_stdio *ret, const struct cage_ids *ids, struct err *e)
{
	int r = 0;

	memset(ret, 0, sizeof(*ret));
	arena_init(&ret->arena, 4UL * KEEP_STREAM_SIZE);
	for (int i = 0; i < 3; i++) {
		ret->streams[i].inside = ret->streams[i].outside = i;
		ret->streams[i].near = -1;
	}
	for (int i = 0; r == 0 && i < 3; i++)
		r = open_stream(ret, i, ids, e);
	return r;
}

static void close_near(struct keep_stream *s)
{
	if (s->near >= 0)
		close(s->near);
	s->near = -1;
}

void keep_stdio_close_inside(struct keep_stdio *s)
{
	int output = s->streams[1].inside;

	for (int i = 0; i < 3; i++) {
		struct keep_stream *stream = &s->streams[i];
		bool is_shared = i == 2 && stream->inside == output;

		/* How much of an input file was read will be asked there. */
		if (stream->is_given_back)
			continue;
		if (stream->inside > 2 && !is_shared)
			close(stream->inside);
		stream->inside = -1;
	}
}

/* The offset of an input file, back to what the command has read of it. */
static void give_back(struct keep_stream *s)
{
	off_t unread = (off_t)(s->len - s->at);
	int in_pipe = 0;

	if (!s->is_given_back)
		return;
	if (ioctl(s->inside, FIONREAD, &in_pipe) == 0)
		unread += in_pipe;
	lseek(s->outside, -unread, SEEK_CUR);
	s->is_given_back = false;
}

void keep_stdio_done(struct keep_stdio *s)
{
	give_back(&s->streams[0]);
	keep_stdio_close_inside(s);
	for (int i = 0; i < 3; i++)
		close_near(&s->streams[i]);
	arena_done(&s->arena);
}

/* --- passing on --- */

static bool has_bytes(const struct keep_stream *s)
{
	return s->len > s->at;
}

/* Who reads a terminal from the background is stopped, and the run with it. */
static bool must_wait(const struct keep_stream *s, int i)
{
	pid_t group = i == 0 && s->kind == KEEP_TERMINAL ? tcgetpgrp(s->outside) : -1;

	/* -1: not our terminal, which then stops nobody. */
	return group >= 0 && group != getpgrp();
}

int keep_stdio_want(const struct keep_stdio *s, struct pollfd *ret)
{
	int timeout = -1;

	for (int i = 0; i < 3; i++) {
		const struct keep_stream *stream = &s->streams[i];
		bool is_in = (i == 0) != has_bytes(stream); /* towards or from the operator's */

		ret[i] = (struct pollfd){ .fd = -1 };
		if (stream->near < 0)
			continue;
		ret[i].fd = is_in ? stream->outside : stream->near;
		ret[i].events = has_bytes(stream) ? POLLOUT : POLLIN;
		if (!has_bytes(stream) && must_wait(stream, i)) {
			ret[i].fd = -1;
			timeout = FOREGROUND_MS;
		}
	}
	return timeout;
}

static bool is_for_later(void)
{
	return errno == EINTR || errno == EAGAIN;
}

static void fill(struct keep_stream *s, int i)
{
	ssize_t n = read(i == 0 ? s->outside : s->near, s->bytes, KEEP_STREAM_SIZE);

	if (n < 0 && is_for_later())
		return;
	/* The end, or a terminal that is gone. */
	if (n <= 0) {
		close_near(s);
		return;
	}
	s->at = 0;
	s->len = (size_t)n;
}

static ssize_t write_some(const struct keep_stream *s, int i)
{
	const char *bytes = s->bytes + s->at;
	size_t left = s->len - s->at;

	if (i == 0)
		return write(s->near, bytes, left);
	if (s->kind == KEEP_SOCKET)
		return send(s->outside, bytes, left, MSG_DONTWAIT | MSG_NOSIGNAL);
	return write(s->outside, bytes, left < s->chunk ? left : s->chunk);
}

static void empty(struct keep_stream *s, int i)
{
	ssize_t n = write_some(s, i);

	if (n < 0 && is_for_later())
		return;
	if (n < 0) {
		s->failure = errno;
		close_near(s); /* the writer hears of it as SIGPIPE, the reader as the end */
	} else {
		s->at += (size_t)n;
	}
}

void keep_stdio_move(struct keep_stdio *s, const struct pollfd *seen)
{
	for (int i = 0; i < 3; i++) {
		if (seen[i].fd < 0 || !seen[i].revents || s->streams[i].near < 0)
			continue;
		if (seen[i].events == POLLOUT)
			empty(&s->streams[i], i);
		else
			fill(&s->streams[i], i);
	}
}

/* Waits for a reader that is slow, until a signal says not to. */
static bool wait_for_reader(const struct keep_stream *s, int signals)
{
	struct pollfd fds[2] = { { .fd = s->outside, .events = POLLOUT },
		{ .fd = signals, .events = POLLIN } };

	while (poll(fds, 2, -1) < 0)
		if (errno != EINTR)
			return false;
	return !fds[1].revents;
}

void keep_stdio_drain(struct keep_stdio *s, int signals)
{
	close_near(&s->streams[0]);
	for (int i = 1; i < 3; i++) {
		struct keep_stream *stream = &s->streams[i];

		while (stream->near >= 0) {
			if (has_bytes(stream) && !wait_for_reader(stream, signals))
				return;
			if (has_bytes(stream)) {
				empty(stream, i);
				continue;
			}
			fill(stream, i);
			if (!has_bytes(stream))
				close_near(stream); /* nobody is left to write */
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
