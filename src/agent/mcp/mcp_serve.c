/*
 * mcp_serve - waits for everything at once: lines, the ends of calls, room for answers.
 *
 * Runs as:  the operator, for as long as its standard input is open.
 * Must not: wait for a client that does not read, or for a call, while there is something to hear;
 *           print anything on standard output but the protocol's lines.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/mcp/mcp_server.h"
#include "base/clock.h"
#include "base/own.h"
#include "run/run_sessions.h"

#define READ_SIZE    65536
#define WRITE_SIZE   4096              /* what a pipe that has room takes without waiting */
#define MOST_WAITING ((size_t)4 << 20) /* of answers: then there are no more */
#define CANCEL_MS    2000              /* for a cancelled call to end by itself */
#define KILL_LATE_MS 50                /* how exactly that is kept */
#define END_MS       1000 /* for all of them, at the end, and for each piece of an answer to be read */
#define TOUCH_MS     60000 /* how often the session is said to be in use, at least */

enum {
	AT_INPUT,
	AT_OUTPUT,
	AT_SIGNALS,
	AT_HOLD,
	AT_CALLS,
	POLL_COUNT = AT_CALLS + MCP_MOST_CALLS
};

/* --- the session is in use --- */

/* A session that nobody uses for long is removed; how long may be short. */
static int touch_ms(const struct mcp_server *s)
{
	int64_t third = s->serving->session->ttl_ms / 3;

	return third > 0 && third < TOUCH_MS ? (int)third : TOUCH_MS;
}

static void touch(struct mcp_server *s)
{
	struct store *store = NULL;
	struct err e = { 0 };
	uint64_t now = clock_ns();

	if (now - s->touched_ns < (uint64_t)touch_ms(s) * 1000000)
		return;
	s->touched_ns = now;
	/* Opened each time: calls begin as copies of this process, and shall have none of it. */
	if (run_open_store(false, &store, &e) == 0)
		(void)store_touch_session(store, s->serving->session->id, &e);
	if (store)
		store_close(store);
}

/* --- lines --- */

static void cancel(struct mcp_server *s, const struct mcp_slice *id)
{
	struct mcp_call *c = mcp_calls_find(s, id);

	if (!c)
		return;
	c->is_cancelled = true;
	mcp_calls_stop(c, CANCEL_MS);
}

static void mcp_serve_hear(struct mcp_server *s, const char *line, size_t n)
{
	struct mcp_request q;

	switch (mcp_read(&s->mcp, line, n, &q, &s->out)) {
	case MCP_DO_CALL:
		mcp_calls_start(s, &q);
		break;
	case MCP_DO_CANCEL:
		cancel(s, &q.id);
		break;
	case MCP_DO_NOTHING:
		break;
	}
}

static void mcp_serve_read_input(struct mcp_server *s)
{
	char bytes[READ_SIZE];
	ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));
	const char *line;
	enum mcp_line kind;
	size_t size;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	s->is_over = n <= 0;
	/* The end of input ends a line, too. */
	mcp_lines_add(&s->lines, n > 0 ? bytes : "\n", n > 0 ? (size_t)n : 1);
	while ((kind = mcp_lines_next(&s->lines, &line, &size)) != MCP_LINE_NONE) {
		if (kind == MCP_LINE_WHOLE)
			mcp_serve_hear(s, line, size);
		else
			mcp_answer_too_long(&s->out);
	}
}

/* --- answers --- */

/* Moves what is left to the front, once that is the smaller part. */
static void forget_written(struct mcp_server *s)
{
	size_t left = s->out.len - s->out_at;

	if (left > s->out_at)
		return;
	memmove(s->out.data, s->out.data + s->out_at, left);
	s->out.len = left;
	s->out_at = 0;
}

static void write_output(struct mcp_server *s)
{
	const char *bytes = buf_text(&s->out) + s->out_at;
	size_t left = s->out.len - s->out_at;
	/* Who reads may share it with others, so it stays blocking. */
	ssize_t n = send(STDOUT_FILENO, bytes, left, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && errno == ENOTSOCK)
		n = write(STDOUT_FILENO, bytes, left < WRITE_SIZE ? left : WRITE_SIZE);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n < 0) {
		s->is_over = s->is_mute = true;
		return;
	}
	s->written_ns = clock_ns();
	s->out_at += (size_t)n;
	forget_written(s);
}

/* --- waiting --- */

static void kill_late(struct mcp_server *s)
{
	for (size_t i = 0; i < MCP_MOST_CALLS; i++)
		if (s->calls[i].pid)
			mcp_calls_kill_late(&s->calls[i]);
}

static int patience(const struct mcp_server *s)
{
	for (size_t i = 0; i < MCP_MOST_CALLS; i++)
		if (s->calls[i].kill_ns)
			return KILL_LATE_MS;
	return s->is_over ? KILL_LATE_MS : touch_ms(s);
}

/* Is any process left that does calls? */
static bool has_runners(const struct mcp_server *s)
{
	for (size_t i = 0; i < MCP_MOST_CALLS; i++)
		if (s->calls[i].pid)
			return true;
	return false;
}

/* So much waits to be read that no more is made. */
static bool is_full(const struct mcp_server *s)
{
	return s->out.len - s->out_at > MOST_WAITING && !s->is_mute;
}

static void wait_once(struct mcp_server *s, int signals)
{
	struct pollfd fds[POLL_COUNT];
	bool is_deaf = s->is_over || is_full(s);

	fds[AT_INPUT] = (struct pollfd){ is_deaf ? -1 : STDIN_FILENO, POLLIN, 0 };
	fds[AT_OUTPUT] =
		(struct pollfd){ s->out.len && !s->is_mute ? STDOUT_FILENO : -1, POLLOUT, 0 };
	fds[AT_SIGNALS] = (struct pollfd){ signals, POLLIN, 0 };
	fds[AT_HOLD] = (struct pollfd){ s->hold, POLLIN, 0 };
	for (size_t i = 0; i < MCP_MOST_CALLS; i++)
		fds[AT_CALLS + i] =
			(struct pollfd){ s->calls[i].pid && !is_full(s) ? s->calls[i].channel : -1,
				POLLIN, 0 };
	if (poll(fds, POLL_COUNT, patience(s)) < 0)
		return;
	/* The session was stopped, or somebody wants it for himself. */
	if (fds[AT_HOLD].revents)
		mcp_calls_drop_hold(s);
	/* Ends first: a place that is free now is not taken meanwhile. */
	for (size_t i = 0; i < MCP_MOST_CALLS; i++)
		if (fds[AT_CALLS + i].revents && !is_full(s))
			mcp_calls_hear(s, &s->calls[i]);
	if (fds[AT_OUTPUT].revents)
		write_output(s);
	if (fds[AT_SIGNALS].revents)
		s->is_over = true;
	if (fds[AT_INPUT].revents && !s->is_over)
		mcp_serve_read_input(s);
}

/* --- signals --- */

static sigset_t ends(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	return set;
}

void mcp_block_signals(void)
{
	sigset_t set = ends();

	sigprocmask(SIG_BLOCK, &set, NULL);
}

static int mcp_serve_open_signals(struct err *e)
{
	sigset_t set = ends();
	int fd = signalfd(-1, &set, SFD_CLOEXEC);

	return fd < 0 ? err_sys(e, errno, "cannot receive signals") : fd;
}

/* --- the end --- */

/* Who still runs is ended, and not answered; what had ended by then is. */
static void mcp_serve_end_call(struct mcp_call *c)
{
	struct pollfd said = { c->channel, POLLIN, 0 };

	if (!c->id[0]) {
		mcp_calls_dismiss(c, END_MS);
		return;
	}
	c->is_cancelled |= poll(&said, 1, 0) <= 0;
	mcp_calls_stop(c, END_MS);
}

/* Answers go out as long as somebody reads them, so that no line is cut. */
static void mcp_serve_end(struct mcp_server *s)
{
	s->written_ns = clock_ns();
	for (size_t i = 0; i < MCP_MOST_CALLS; i++)
		if (s->calls[i].pid)
			mcp_serve_end_call(&s->calls[i]);
	while (has_runners(s) || (s->out.len && !s->is_mute)) {
		wait_once(s, -1);
		kill_late(s);
		s->is_mute |= s->out.len && clock_ns() - s->written_ns > (uint64_t)END_MS * 1000000;
	}
}

static int serve(struct mcp_server *s, struct err *e)
{
	own_fd int signals = mcp_serve_open_signals(e);

	if (signals < 0)
		return signals;
	s->touched_ns = clock_ns();
	while (!s->is_over) {
		wait_once(s, signals);
		kill_late(s);
		touch(s);
		if (s->out.failed)
			return err_set(e, ERR_SYS, ENOMEM, "cannot answer: out of memory");
	}
	mcp_serve_end(s);
	mcp_calls_drop_hold(s);
	return 0;
}

/* --- what it serves in --- */

struct wall {
	char digest[SHA256_HEX_SIZE];
	const char *level;
	uint64_t most_ms;
	bool has_bash;
	bool is_seen_anew; /* the project, by each run */
	struct buf instructions;
};

static void wall_done(struct wall *w)
{
	buf_done(&w->instructions);
}

static void instruct(const struct spec *s, struct buf *out)
{
	buf_printf(out,
		"These tools work in a sandbox that bawn keeps: %s is the project, and all six "
		"tools see the same files under the same rules. ",
		spec_text(s, SPEC_PROJECT_AT));
	if (spec_choice(s, SPEC_PROJECT_MODE) == SPEC_MODE_CAPTURED)
		buf_puts(out, "What is changed in the project is held back until its owner has "
			      "looked at it and applied it. ");
	if (spec_choice(s, SPEC_PROJECT_MODE) == SPEC_MODE_READ_ONLY)
		buf_puts(out, "The project cannot be written. ");
	if (spec_choice(s, SPEC_NETWORK_MODE) == SPEC_NET_NONE)
		buf_puts(out, "There is no network. ");
	buf_puts(out, "What is refused stays refused: read the reason, and go another way or ask.");
}

/* For a host that can do everything first, as when a session is made. */
static int mcp_build(
	struct spec *s, const struct run_place *place, struct plan **ret, struct err *e)
{
	struct plan_choice choice;
	struct err probing = { 0 };
	struct host host;
	int r;

	host_assume(&host, NULL);
	run_tell_host(place, &host);
	r = plan_build(s, &host, ret, &choice, e);
	if (r == 0 || e->kind != ERR_REFUSED || host_probe(&host, &probing) < 0)
		return r;
	*e = (struct err){ 0 };
	run_tell_host(place, &host);
	return plan_build(s, &host, ret, &choice, e);
}

/* The wall as the session's spec says it. */
static int describe_spec(const struct mcp_serving *w, struct spec *s, const struct run_place *place,
	struct wall *ret, struct err *e)
{
	own_free struct plan *plan = NULL;
	const char *id = w->session->id;
	int r;

	if (!spec_bool(s, SPEC_TOOLS))
		return err_hint(e,
			err_set(e, ERR_REFUSED, EINVAL,
				"cannot use session %.8s: it was made without 'tools: true' in its spec, "
				"and so the tools are not in its cages",
				id),
			"without --session one is made that has them");
	r = mcp_build(s, place, &plan, e);
	if (r < 0) {
		w->diags(w->of, s);
		err_prefix(e, "cannot use session %.8s", id);
		return r;
	}
	ret->most_ms = spec_number(s, SPEC_LIMITS_TIME);
	ret->is_seen_anew = spec_choice(s, SPEC_PROJECT_MODE) == SPEC_MODE_WRITABLE &&
			    !spec_bool(s, SPEC_SESSION_BACKGROUND);
	/* The system's programs are the host's; an image is asked when it is there. */
	ret->has_bash = !plan_find(plan, PLAN_IMAGE, NULL) && access("/usr/bin/bash", X_OK) == 0;
	ret->level = plan->is_hardened ? "hardened" : "custom";
	memcpy(ret->digest, plan->spec_digest, sizeof(ret->digest));
	instruct(s, &ret->instructions);
	return 0;
}

static int describe(const struct mcp_serving *w, struct wall *ret, struct err *e)
{
	const struct run_request nothing = { 0 };
	struct run_place place;
	struct spec s;
	int r = run_load_session_spec(&nothing, w->session, &s, &place, e);

	if (r < 0) {
		w->diags(w->of, &s);
		if (e->kind == ERR_SPEC)
			err_set(e, ERR_SPEC, EINVAL, "cannot use the spec of session %s",
				w->session->id);
	} else {
		r = describe_spec(w, &s, &place, ret, e);
	}
	spec_done(&s);
	return r;
}

int mcp_serve(const struct mcp_serving *w, struct err *e)
{
	own(wall) struct wall wall = { .instructions.max = 4096 };
	struct mcp_server s = { .serving = w, .root = w->root, .hold = -1 };
	int r = describe(w, &wall, e);

	if (r < 0)
		return r;
	s.most_ms = wall.most_ms;
	s.has_bash = wall.has_bash;
	s.takes_turns = wall.is_seen_anew;
	s.about = (struct mcp_about){ w->version, buf_text(&wall.instructions), w->session->id,
		wall.level, wall.digest };
	s.mcp.about = &s.about;
	mcp_lines_init(&s.lines);
	buf_init(&s.out, 2 * MCP_MAX_ANSWER);
	r = serve(&s, e);
	mcp_lines_done(&s.lines);
	buf_done(&s.out);
	return r;
}
