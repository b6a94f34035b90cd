/*
 * keeper_stdio - standard input, output and error: the cage gets pipes of bawn's or a terminal of
 * its own, and nothing else. The keeper passes the bytes on, hashes what is printed, and with
 * `record.output: keep` writes it to RUN/stdout and RUN/stderr.
 *
 * Runs as:  the keeper.
 * Must not: let a descriptor of the operator's in. A terminal can be typed into; a file emptied,
 *           read, or given another mode; a socket connected anew, past the cage's network; a pipe
 *           read by its writer; a folder walked out of; a device can be anything.
 *           Wait for a stream: time limits and signals go on while a terminal is stopped. Show a
 *           terminal escape sequences with effects outside of its screen, unless the operator asked
 *           for that. Hash what a filter left: the hash would depend on the operator's terminal.
 *
 * /dev/null and its like are harmless, and pass as they are. What the keeper read from a file and
 * the command did not is given back at the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "cage/cage_break.h"
#include "keeper/keeper_inside.h"
#include "wire/wire.h"

/* --- what is kept of the output --- */

static void keeper_output_begin(struct keeper_stdio *s, const struct keeper_request *q)
{
	s->request = q;
	for (int i = 0; i < 2; i++) {
		s->hashed[i] = (struct keeper_hashed){ .fd = -1 };
		sha256_init(&s->hashed[i].sha256);
	}
}

static void output_print_digest(struct sha256 sha256, char ret[static SHA256_HEX_SIZE])
{
	uint8_t digest[SHA256_SIZE];

	sha256_finish(&sha256, digest);
	sha256_print(digest, ret);
}

/* Opened when there is something to write: a cage that waits has no run yet. */
static int output_open_kept(const struct keeper_stdio *s, int i, int *ret)
{
	if (*ret >= 0)
		return 0;
	*ret = openat(s->request->folder, record_stream_names[i],
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return *ret < 0 ? -errno : 0;
}

static void keeper_bytes(struct keeper_stdio *s, int i, const char *bytes, size_t n)
{
	struct keeper_hashed *h = &s->hashed[i];
	int r = output_open_kept(s, i, &h->fd);

	if (r == 0)
		r = file_write_all(h->fd, bytes, n);
	if (r == 0)
		h->kept += n;
	else
		s->keeper_failure = -r;
}

static void keeper_output_add(struct keeper_stdio *s, int i, const char *bytes, size_t n)
{
	struct keeper_hashed *h = &s->hashed[i];
	bool is_kept = s->request->output == RECORD_OUTPUT_KEEP && !s->keeper_failure;
	size_t part = is_kept && h->kept == h->bytes ? RECORD_MAX_OUTPUT - h->kept : 0;

	if (s->request->output == RECORD_OUTPUT_NO)
		return;
	part = part < n ? part : n;
	if (part)
		keeper_bytes(s, i, bytes, part);
	sha256_add(&h->sha256, bytes, part);
	if (part < n && h->kept == h->bytes + part)
		output_print_digest(h->sha256, h->kept_sha256);
	sha256_add(&h->sha256, bytes + part, n - part);
	h->bytes += n;
}

void keeper_output_end(const struct keeper_stdio *s, struct record_output *ret)
{
	ret->is_told = s->request->output != RECORD_OUTPUT_NO;
	ret->is_together = s->is_together;
	for (int i = 0; ret->is_told && i < 2; i++) {
		const struct keeper_hashed *h = &s->hashed[i];
		struct record_stream *to = &ret->streams[i];

		to->is_known = h->is_seen;
		to->bytes = h->bytes;
		output_print_digest(h->sha256, to->sha256);
		to->is_kept = h->fd >= 0 && !s->keeper_failure;
		to->kept = h->kept;
		memcpy(to->kept_sha256, h->kept < h->bytes ? h->kept_sha256 : to->sha256,
			sizeof(to->kept_sha256));
	}
	if (s->keeper_failure)
		err_sys(&ret->error, s->keeper_failure, "cannot keep what the command printed");
}

static void keeper_output_done(struct keeper_stdio *s)
{
	for (int i = 0; i < 2; i++) {
		if (s->hashed[i].fd >= 0)
			close(s->hashed[i].fd);
		s->hashed[i].fd = -1;
	}
}

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
	if (S_ISCHR(st->st_mode) && !is_harmless_device(st) && isatty(i)) {
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
	} else if (s->streams[1].near >= 0 && shares_output(i, &st)) {
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

static int keeper_stdio_open(struct keeper_stdio *s, const struct keeper_request *q,
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

/* The streams that a terminal of the cage stands for, as bits. */
static unsigned keeper_stdio_on_terminal(const struct keeper_stdio *s)
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

static void keeper_stdio_done(struct keeper_stdio *s)
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

/* --- passing bytes on --- */

#define CATCH_UP_MS    200 /* for a terminal to show what was printed before a stop */
#define CATCH_UP_TURNS 128 /* of which each takes 4 kB of a terminal, which holds 64 */
#define ANSWER_MS      200 /* for a terminal to answer */
#define ANSWER_TURNS   8
#define END_OF_INPUT   4 /* ^D, which ends the input of a terminal that reads lines */

static bool has_bytes(const struct keeper_stream *s)
{
	return s->len > s->at;
}

/* --- what to wait for --- */

/* What is typed is not for who is in the background. */
static bool must_wait(const struct keeper_stream *s, int i, const struct keeper_terminal *t)
{
	if (i > 0 || s->kind != KEEPER_TERMINAL)
		return false;
	return (s->is_on_terminal && !keeper_terminal_is_ready(t)) ||
	       !keeper_is_in_foreground(s->outside);
}

int keeper_relay_want(
	const struct keeper_stdio *s, const struct keeper_terminal *t, struct pollfd *ret)
{
	int timeout = -1;

	for (int i = 0; i < 3; i++) {
		const struct keeper_stream *stream = &s->streams[i];
		bool is_in = (i == 0) != has_bytes(stream); /* towards or from the operator's */

		ret[i] = (struct pollfd){ .fd = -1 };
		if (stream->near < 0 || (stream->has_ended && !has_bytes(stream)))
			continue;
		ret[i].fd = is_in ? stream->outside : stream->near;
		ret[i].events = has_bytes(stream) ? POLLOUT : POLLIN;
		if (!has_bytes(stream) && must_wait(stream, i, t)) {
			ret[i].fd = -1;
			timeout = KEEPER_FOREGROUND_MS;
		}
	}
	return timeout;
}

/* --- reading --- */

static bool is_for_later(void)
{
	return errno == EINTR || errno == EAGAIN;
}

/* How much may still be printed; none, and more is there: that is the end of it. */
static size_t allowance(struct keeper_stdio *all, int i)
{
	uint64_t left = all->max - all->printed;

	if (i == 0 || left >= KEEPER_STREAM_SIZE)
		return KEEPER_STREAM_SIZE;
	return (size_t)left;
}

static void cut(struct keeper_stdio *all)
{
	all->is_cut = true;
	keeper_stream_close(&all->streams[1]);
	keeper_stream_close(&all->streams[2]);
}

static void take_output(struct keeper_stdio *all, struct keeper_stream *s, size_t n)
{
	all->printed += n;
	keeper_output_add(
		all, (int)(s - all->streams) - 1, s->unfiltered ? s->unfiltered : s->bytes, n);
	if (s->unfiltered)
		s->len = term_filter_pass(&s->filter, s->unfiltered, n, s->bytes);
	if (all->cast)
		keeper_cast_output(all->cast, s->bytes, s->len, s->is_on_terminal);
}

/* The input has ended: a terminal is told by a character, a pipe by its end. */
static void end_input(struct keeper_stdio *all, struct keeper_stream *s)
{
	bool is_in_line = s->len && s->bytes[s->len - 1] != '\n';

	/* A terminal that passes every key has no end but its own: the window was closed. */
	all->is_hung_up = s->is_on_terminal && s->kind == KEEPER_TERMINAL;
	if (!s->is_on_terminal || all->is_hung_up) {
		keeper_stream_close(s);
		return;
	}
	s->has_ended = true;
	s->at = 0;
	s->len = 0;
	s->bytes[s->len++] = END_OF_INPUT;
	/* In the middle of a line the first one only hands that over. */
	if (is_in_line)
		s->bytes[s->len++] = END_OF_INPUT;
}

/* Reads what is there; false when that was nothing. */
static bool relay_fill(struct keeper_stdio *all, int i)
{
	struct keeper_stream *s = &all->streams[i];
	size_t room = allowance(all, i);
	char *to = s->unfiltered ? s->unfiltered : s->bytes;
	char probe;
	ssize_t n = read(i == 0 ? s->outside : s->near, room ? to : &probe, room ? room : 1);

	if (n < 0 && is_for_later())
		return false;
	if (n < 0 && i == 0 && s->kind == KEEPER_TERMINAL && !keeper_is_in_foreground(s->outside))
		return false;
	/* The end, or a terminal that is gone. */
	if (n <= 0) {
		if (i == 0)
			end_input(all, s);
		else
			keeper_stream_close(s);
		return false;
	}
	if (room == 0) {
		cut(all);
		return false;
	}
	s->at = 0;
	s->len = (size_t)n;
	if (i > 0)
		take_output(all, s, (size_t)n);
	else
		term_filter_answered(&all->streams[1].filter, s->bytes, s->len);
	return true;
}

/* --- writing --- */

static ssize_t relay_write_some(const struct keeper_stream *s, int i)
{
	const char *bytes = s->bytes + s->at;
	size_t left = s->len - s->at;

	if (i == 0)
		return write(s->near, bytes, left);
	if (s->kind == KEEPER_TAIL) {
		tail_add(s->tail, bytes, left);
		return (ssize_t)left;
	}
	if (s->kind == KEEPER_SOCKET)
		return send(s->outside, bytes, left, MSG_DONTWAIT | MSG_NOSIGNAL);
	return write(s->outside, bytes, left < s->chunk ? left : s->chunk);
}

static void relay_empty(struct keeper_stream *s, int i)
{
	ssize_t n = relay_write_some(s, i);

	if (n < 0 && is_for_later())
		return;
	if (n < 0) {
		s->failure = errno;
		s->len = s->at;
		keeper_stream_close(s);
	} else {
		s->at += (size_t)n;
	}
}

/* Can be written to without asking first: what does not fit is refused. */
static bool never_waits(const struct keeper_stream *s, int i)
{
	return i == 0 || s->outside > 2 || s->kind == KEEPER_SOCKET || s->kind == KEEPER_FILE ||
	       s->kind == KEEPER_TAIL;
}

void keeper_relay_move(struct keeper_stdio *s, const struct pollfd *seen)
{
	for (int i = 0; i < 3; i++) {
		struct keeper_stream *stream = &s->streams[i];

		if (seen[i].fd < 0 || !seen[i].revents || stream->near < 0)
			continue;
		if (seen[i].events == POLLIN && !(relay_fill(s, i) && never_waits(stream, i)))
			continue;
		if (has_bytes(stream))
			relay_empty(stream, i);
	}
}

void keeper_relay_catch_up(struct keeper_stdio *s)
{
	/* No more than was printed by then: who goes on printing must not keep the keeper here. */
	for (int i = 1, turns = 0; i < 3; i++, turns = 0) {
		struct keeper_stream *stream = &s->streams[i];
		struct pollfd reader = { .fd = stream->outside, .events = POLLOUT };

		while (turns++ < CATCH_UP_TURNS &&
			(has_bytes(stream) || (stream->near >= 0 && relay_fill(s, i)))) {
			if (has_bytes(stream) && poll(&reader, 1, CATCH_UP_MS) <= 0)
				break;
			if (has_bytes(stream))
				relay_empty(stream, i);
		}
	}
}

/* --- the end --- */

static bool relay_expects_answer(const struct keeper_stdio *s)
{
	return s->streams[1].unfiltered && term_filter_expects_answer(&s->streams[1].filter);
}

bool keeper_relay_await_answer(struct keeper_stdio *s, bool is_raw)
{
	struct pollfd keys = { .fd = STDIN_FILENO, .events = POLLIN };
	char bytes[256];
	ssize_t n;

	/* Who types on meanwhile is not kept waiting. */
	for (int i = 0;
		i < ANSWER_TURNS && is_raw && relay_expects_answer(s) &&
		poll(&keys, 1, ANSWER_MS) > 0 && (n = read(STDIN_FILENO, bytes, sizeof(bytes))) > 0;
		i++)
		term_filter_answered(&s->streams[1].filter, bytes, (size_t)n);
	return relay_expects_answer(s);
}

/* A window that changes, or a stop, is no reason to give up. */
static bool is_told_to_end(int signals)
{
	struct signalfd_siginfo got;

	return read(signals, &got, sizeof(got)) == (ssize_t)sizeof(got) &&
	       got.ssi_signo != SIGWINCH && got.ssi_signo != SIGCONT && got.ssi_signo != SIGTSTP;
}

/* Waits for a reader that is slow, until a signal says not to. */
static bool wait_for_reader(const struct keeper_stream *s, int signals)
{
	struct pollfd fds[2] = { { .fd = s->outside, .events = POLLOUT },
		{ .fd = signals, .events = POLLIN } };

	do {
		while (poll(fds, 2, -1) < 0)
			if (errno != EINTR)
				return false;
		if (fds[1].revents && is_told_to_end(signals))
			return false;
	} while (!fds[0].revents);
	return true;
}

/* Writes what is held; false when a signal ended the waiting. */
static bool relay_write_out(struct keeper_stream *s, int i, int signals)
{
	while (has_bytes(s)) {
		if (s->kind != KEEPER_TAIL && !wait_for_reader(s, signals))
			return false;
		relay_empty(s, i);
	}
	return true;
}

/* Modes that a full-screen program set and did not live to take back. */
static bool undo(struct keeper_stream *s, int i, int signals)
{
	if (!s->unfiltered || s->failure)
		return true;
	s->at = 0;
	s->len = term_filter_undo(&s->filter, s->bytes);
	return relay_write_out(s, i, signals);
}

void keeper_relay_drain(struct keeper_stdio *s, int signals)
{
	keeper_stream_close(&s->streams[0]);
	for (int i = 1; i < 3; i++) {
		struct keeper_stream *stream = &s->streams[i];

		do {
			if (!relay_write_out(stream, i, signals))
				return;
		} while (stream->near >= 0 && relay_fill(s, i));
		keeper_stream_close(stream); /* nobody is left to write */
		if (!relay_write_out(stream, i, signals) || !undo(stream, i, signals))
			return;
	}
}

int keeper_relay_judge(const struct keeper_stdio *s, struct err *e)
{
	for (int i = 1; i < 3; i++) {
		int num = s->streams[i].failure;

		/* A reader that has seen enough is no failure. */
		if (num && num != EPIPE)
			return err_sys(e, num, "cannot write standard %s", keeper_stream_names[i]);
	}
	if (s->keeper_failure)
		return err_sys(e, s->keeper_failure, "cannot keep what the command printed");
	return 0;
}

/* --- as a part of the keeper --- */

static void stdio_init(struct keeper *k)
{
	keeper_stdio_init(&k->stdio);
}

/* A cage that waits has the streams of no run: they come with its session. */
static int stdio_open_none(struct keeper_stdio *s, struct err *e)
{
	int r = open_null(s, e);

	for (int i = 0; r == 0 && i < 3; i++)
		s->streams[i].inside = s->null;
	return r;
}

int keeper_stdio_send(struct keeper_stdio *s, int channel)
{
	int r = 0;

	for (int i = 0; r == 0 && i < 3; i++) {
		struct wire_message m = { .kind = WIRE_STDIO, .n = i };

		r = wire_send_message(channel, &m, sizeof(m), s->streams[i].inside);
	}
	keeper_stdio_close_inside(s);
	return r;
}

static int stdio_open(struct keeper *k, struct err *e)
{
	int r;

	if (k->mode == KEEPER_WARMING)
		return stdio_open_none(&k->stdio, e);
	r = keeper_stdio_open(&k->stdio, k->q, &k->terminal, &k->start.ids, e);
	k->start.terminal_streams = keeper_stdio_on_terminal(&k->stdio);
	return r;
}

static void stdio_done(struct keeper *k)
{
	keeper_stdio_done(&k->stdio);
}

const struct keeper_part keeper_stdio_part = {
	.init = stdio_init,
	.take = { [KEEPER_PREPARE] = stdio_open },
	.done = stdio_done,
};
