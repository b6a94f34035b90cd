/*
 * keeper_relay - passes on what the operator types and the command prints.
 *
 * Runs as:  the keeper, while the command runs.
 * Must not: wait for a stream: time limits and signals go on while a terminal is stopped. Show a
 *           terminal what reaches out of its screen, unless the operator asked for that.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "keeper/stream/keeper_streams.h"

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

void keeper_relay_await_answer(struct keeper_stdio *s)
{
	struct pollfd keys = { .fd = STDIN_FILENO, .events = POLLIN };
	char bytes[256];
	ssize_t n;

	/* Who types on meanwhile is not kept waiting. */
	for (int i = 0;
		i < ANSWER_TURNS && keeper_relay_awaits_answer(s) &&
		poll(&keys, 1, ANSWER_MS) > 0 && (n = read(STDIN_FILENO, bytes, sizeof(bytes))) > 0;
		i++)
		term_filter_answered(&s->streams[1].filter, bytes, (size_t)n);
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

bool keeper_relay_awaits_answer(const struct keeper_stdio *s)
{
	return s->streams[1].unfiltered && term_filter_expects_answer(&s->streams[1].filter);
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
