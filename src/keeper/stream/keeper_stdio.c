/*
 * keeper_stdio - standard input, output and error: the cage has pipes of bawn's or a terminal of
 * its own, and nothing else.
 *
 * Runs as:  the keeper.
 * Must not: let a descriptor of the operator's in. A terminal can be typed into; a file emptied,
 *           read, or given another mode; a socket connected anew, past the cage's network; a pipe
 *           read by whom it was to be written by; a folder walked out of; a device can be anything.
 *
 * /dev/null and its like are harmless, and pass as they are. What the keeper took from a file and
 * the command did not read is given back at the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "cage/cage_break.h"
#include "keeper/stream/keeper_streams.h"

/* What can be written without waiting once poll says so. */
#define TERMINAL_CHUNK 256
#define PIPE_CHUNK     4096

const char *const keeper_stream_names[3] = { "input", "output", "error" };

/* The devices of memory's major that are streams: null 3, zero 5, full 7, random 8, urandom 9. */
static bool is_harmless_device(const struct stat *st)
{
	unsigned n = minor(st->st_rdev);

	return S_ISCHR(st->st_mode) && major(st->st_rdev) == 1 &&
	       (n == 3 || n == 5 || n == 7 || n == 8 || n == 9);
}

static int stdio_no_memory(struct err *e)
{
	return err_set(e, ERR_SYS, ENOMEM, "cannot pass standard input and output: out of memory");
}

/* Room for what is passed on, and a filter where a terminal of the operator's is written to. */
static int stdio_make_room(
	struct keeper_stdio *all, int i, const struct keeper_request *q, struct err *e)
{
	struct keeper_stream *s = &all->streams[i];
	bool is_shown = i > 0 && s->kind == KEEPER_TERMINAL;

	s->bytes = arena_alloc(&all->arena, KEEPER_STREAM_SIZE + TERM_FILTER_HELD);
	if (i > 0)
		all->hashed[i - 1].is_seen = true;
	if (is_shown) {
		s->unfiltered = arena_alloc(&all->arena, KEEPER_STREAM_SIZE);
		s->filter.is_raw = q->is_unfiltered;
	}
	return s->bytes && (s->unfiltered || !is_shown) ? 0 : stdio_no_memory(e);
}

/* By whichever name they were opened. */
static bool are_one_terminal(int a, int b)
{
	unsigned first = 0, second = 0;

	return ioctl(a, TIOCGDEV, &first) == 0 && ioctl(b, TIOCGDEV, &second) == 0 &&
	       first == second;
}

/*
 * Opened anew, a terminal takes what it can at once and no more; the operator's own descriptor is
 * shared with others, who would not expect that of it.
 */
static void open_for_ourselves(struct keeper_stream *s, int i)
{
	char path[32];
	int fd;

	if (i == 0 || s->kind != KEEPER_TERMINAL)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", i);
	fd = file_open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY);
	/* Another's, as after su: our own terminal has a name that everybody may open. */
	if (fd < 0)
		fd = file_open("/dev/tty", O_WRONLY | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && !are_one_terminal(fd, i)) {
		close(fd);
		fd = -1;
	}
	if (fd < 0)
		return;
	s->outside = fd;
	s->chunk = KEEPER_STREAM_SIZE;
}

static int open_pipe(struct keeper_stdio *all, int i, const struct cage_ids *ids, struct err *e)
{
	struct keeper_stream *s = &all->streams[i];
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(
			e, errno, "cannot make a pipe for standard %s", keeper_stream_names[i]);
	s->inside = ends[i == 0 ? 0 : 1];
	s->near = ends[i == 0 ? 1 : 0];
	/* Root's cage must be able to open it again, as /dev/stdout. */
	if (fcntl(s->near, F_SETFL, O_NONBLOCK) < 0 ||
		(ids->is_given && fchown(s->near, ids->uid, ids->gid) < 0))
		return err_sys(
			e, errno, "cannot make a pipe for standard %s", keeper_stream_names[i]);
	return 0;
}

static bool is_stream_socket(int fd)
{
	int type = 0;
	socklen_t size = sizeof(type);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

/* Finds out how a descriptor is passed on; says why it is not, or NULL. */
static const char *classify(struct keeper_stream *s, int i, const struct stat *st)
{
	s->chunk = KEEPER_STREAM_SIZE;
	if (fcntl(i, F_GETFL) & O_PATH)
		return "a path and not open";
	if (S_ISDIR(st->st_mode))
		return "a folder";
	if (S_ISREG(st->st_mode) && i > 0 && st->st_mode & (S_ISUID | S_ISGID))
		return "a file with a set-user-id or set-group-id bit";
	if (isatty(i)) {
		s->kind = KEEPER_TERMINAL;
		s->chunk = TERMINAL_CHUNK;
	} else if (S_ISREG(st->st_mode)) {
		s->kind = KEEPER_FILE;
	} else if (S_ISFIFO(st->st_mode)) {
		s->kind = KEEPER_PIPE;
		s->chunk = PIPE_CHUNK;
	} else if (S_ISSOCK(st->st_mode) && is_stream_socket(i)) {
		s->kind = KEEPER_SOCKET;
	} else if (!is_harmless_device(st)) {
		return S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode) ? "a device"
								    : "no stream of bytes";
	}
	return NULL;
}

/* Output and error that go to one place go through one pipe, or their order would be lost. */
static bool shares_output(int i, const struct stat *st)
{
	struct stat other;

	return i == 2 && fstat(1, &other) == 0 && other.st_dev == st->st_dev &&
	       other.st_ino == st->st_ino && other.st_rdev == st->st_rdev;
}

/* Input and output are on the terminal; errors too unless the operator sent them elsewhere. */
static bool is_for_terminal(const struct keeper_terminal *t, int i, const struct stat *st)
{
	return t->is_wanted && (i < 2 || shares_output(i, st) || are_one_terminal(1, 2));
}

static int open_null(struct keeper_stdio *s, struct err *e)
{
	if (s->null < 0)
		s->null = file_open("/dev/null", O_RDWR);
	return s->null < 0 ? err_sys(e, -s->null, "cannot open '/dev/null'") : 0;
}

/* What is printed is kept: whatever is open here under the number is not touched. */
static int open_tail(struct keeper_stdio *s, int i, const struct keeper_request *q,
	const struct cage_ids *ids, struct err *e)
{
	struct keeper_stream *stream = &s->streams[i];
	int r = open_pipe(s, i, ids, e);

	stream->kind = KEEPER_TAIL;
	stream->tail = q->printed[i - 1];
	return r == 0 ? stdio_make_room(s, i, q, e) : r;
}

static int open_stream(struct keeper_stdio *s, int i, const struct keeper_request *q,
	const struct keeper_terminal *t, const struct cage_ids *ids, struct err *e)
{
	struct keeper_stream *stream = &s->streams[i];
	const char *refusal;
	struct stat st;
	int r;

	if (i > 0 && q->printed[i - 1])
		return open_tail(s, i, q, ids, e);
	if (fstat(i, &st) < 0)
		return err_set(e, ERR_SYS, errno, "cannot pass standard %s: it is not open",
			keeper_stream_names[i]);
	refusal = classify(stream, i, &st);
	if (refusal)
		return err_hint(e,
			err_set(e, ERR_REFUSED, EPERM,
				"cannot pass standard %s: it is %s, which would be a way out of "
				"the cage",
				keeper_stream_names[i], refusal),
			"pass a file or a pipe");
	if (cage_is_broken("tty"))
		return 0;
	stream->is_on_terminal = is_for_terminal(t, i, &st);
	if (stream->kind == KEEPER_HARMLESS && !stream->is_on_terminal)
		return 0;
	if (stream->is_on_terminal) {
		r = open_null(s, e);
		stream->inside = s->null;
	} else if (shares_output(i, &st) && s->streams[1].near >= 0) {
		stream->inside = s->streams[1].inside;
		s->is_together = true;
		return 0;
	} else {
		r = open_pipe(s, i, ids, e);
		stream->is_given_back = r == 0 && i == 0 && stream->kind == KEEPER_FILE;
	}
	/* On the terminal, errors come with the output. */
	if (r < 0 || (i == 2 && stream->is_on_terminal)) {
		s->is_together = true;
		return r;
	}
	open_for_ourselves(stream, i);
	return stdio_make_room(s, i, q, e);
}

void keeper_stdio_init(struct keeper_stdio *s)
{
	memset(s, 0, sizeof(*s));
	arena_init(&s->arena, 8UL * KEEPER_STREAM_SIZE);
	s->null = s->hashed[0].fd = s->hashed[1].fd = -1;
	s->max = UINT64_MAX;
	for (int i = 0; i < 3; i++) {
		s->streams[i].inside = s->streams[i].outside = i;
		s->streams[i].near = -1;
	}
}

int keeper_stdio_open(struct keeper_stdio *s, const struct keeper_request *q,
	const struct keeper_terminal *t, const struct cage_ids *ids, struct err *e)
{
	const struct plan_op *limit = plan_find(q->plan, PLAN_LIMIT, "limits.output");
	int r = 0;

	if (limit)
		s->max = limit->n;
	s->cast = q->cast;
	keeper_output_begin(s, q);
	for (int i = 0; r == 0 && i < 3; i++)
		r = open_stream(s, i, q, t, ids, e);
	return r;
}

unsigned keeper_stdio_on_terminal(const struct keeper_stdio *s)
{
	unsigned bits = 0;

	for (unsigned i = 0; i < 3; i++)
		bits |= s->streams[i].is_on_terminal ? 1U << i : 0;
	return bits;
}

int keeper_stdio_attach(
	struct keeper_stdio *s, const struct keeper_terminal *t, bool has_input, struct err *e)
{
	struct keeper_stream *stream = &s->streams[has_input ? 0 : 1];

	if (t->near < 0 || stream->near >= 0)
		return 0;
	stream->near = fcntl(t->near, F_DUPFD_CLOEXEC, 3);
	if (stream->near < 0)
		return err_sys(e, errno, "cannot use the cage's terminal");
	return 0;
}

void keeper_stream_close(struct keeper_stream *s)
{
	if (s->near >= 0)
		close(s->near);
	s->near = -1;
}

void keeper_stdio_close_inside(struct keeper_stdio *s)
{
	int output = s->streams[1].inside;

	for (int i = 0; i < 3; i++) {
		struct keeper_stream *stream = &s->streams[i];
		bool is_shared = i == 2 && stream->inside == output;

		/* How much of an input file was read will be asked there. */
		if (stream->is_given_back)
			continue;
		if (stream->inside > 2 && !is_shared && stream->inside != s->null)
			close(stream->inside);
		stream->inside = -1;
	}
	if (s->null >= 0)
		close(s->null);
	s->null = -1;
}

/* The offset of an input file, back to what the command has read of it. */
static void stdio_give_back(struct keeper_stream *s)
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

void keeper_stdio_done(struct keeper_stdio *s)
{
	stdio_give_back(&s->streams[0]);
	keeper_output_done(s);
	keeper_stdio_close_inside(s);
	for (int i = 0; i < 3; i++) {
		keeper_stream_close(&s->streams[i]);
		if (s->streams[i].outside > 2)
			close(s->streams[i].outside);
		s->streams[i].outside = i;
	}
	arena_done(&s->arena);
}
