/*
 * gate_pump - passes bytes from one side of a connection to the other.
 *
 * Runs as:  the gate.
 * Leaves:   bytes of a stream where they are: the kernel moves its pages from socket to pipe to
 *           socket. Only requests of HTTP go through our memory, to be read.
 *
 * Pipes are borrowed while bytes are on their way, so an idle connection has none.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gate/gate_inside.h"

#define LARGE_PIPE  ((size_t)1 << 20)
#define LARGE_COUNT 16 /* the kernel counts what one user has in pipes */
#define COMMON_PIPE ((size_t)1 << 16)
#define UPGRADE_NS  (60 * GATE_SECOND_NS) /* for a server to agree */
#define MAX_ROUNDS  16                    /* in one turn, so that others have theirs */

/* --- pipes --- */

static int make_pipe(struct gate_pipes *p)
{
	struct gate_pipe *made = &p->pipes[p->made];
	int ends[2];

	if (p->made == p->max || pipe2(ends, O_NONBLOCK | O_CLOEXEC) < 0)
		return -1;
	*made = (struct gate_pipe){ .in = ends[1], .out = ends[0], .size = COMMON_PIPE };
	if (p->made < LARGE_COUNT && fcntl(ends[1], F_SETPIPE_SZ, (int)LARGE_PIPE) > 0)
		made->size = LARGE_PIPE;
	return (int)p->made++;
}

static bool take_pipe(struct gate_pipes *p, struct gate_way *w)
{
	if (w->pipe < 0)
		w->pipe = p->free_count ? p->free[--p->free_count] : make_pipe(p);
	return w->pipe >= 0;
}

static void pump_give_back(struct gate_pipes *p, struct gate_way *w)
{
	p->free[p->free_count++] = (uint16_t)w->pipe;
	w->pipe = -1;
}

/* What is left in it is for nobody any more. */
static void empty_pipe(const struct gate_pipe *p)
{
	char nobody[4096];

	while (read(p->out, nobody, sizeof(nobody)) > 0)
		;
}

void gate_pump_stop(struct gate *g, struct gate_conn *c)
{
	for (int i = 0; i < GATE_WAY_COUNT; i++) {
		struct gate_way *w = &c->ways[i];

		if (w->pipe < 0)
			continue;
		if (w->held)
			empty_pipe(&g->pipes.pipes[w->pipe]);
		w->held = 0;
		pump_give_back(&g->pipes, w);
	}
}

/* --- streams --- */

/* One round; 1: bytes were moved, 0: none could be, -1: a side is gone. */
static int move_some(struct gate_way *w, const struct gate_pipe *p, int from, int to)
{
	int moved = 0;
	ssize_t n;

	if (!w->is_over) {
		n = splice(from, NULL, p->in, NULL, p->size, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -1;
		w->is_over = n == 0;
		if (n > 0) {
			w->held += (size_t)n;
			moved = 1;
		}
	}
	if (w->held) {
		n = splice(p->out, NULL, to, NULL, w->held, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return -1;
		if (n > 0) {
			w->held -= (size_t)n;
			w->bytes += (uint64_t)n;
			moved = 1;
		}
	}
	return moved;
}

static enum gate_pump pump_stream(struct gate *g, struct gate_way *w, int from, int to)
{
	int moved = 1;

	for (int i = 0; moved > 0; i++) {
		if (i == MAX_ROUNDS)
			return GATE_PUMP_MORE;
		if (w->is_over && !w->held)
			break;
		/* There is one for every way; but the machine may have none left. */
		if (!take_pipe(&g->pipes, w))
			return GATE_PUMP_BROKEN;
		moved = move_some(w, &g->pipes.pipes[w->pipe], from, to);
		if (!w->held)
			pump_give_back(&g->pipes, w);
	}
	return moved < 0 ? GATE_PUMP_BROKEN : GATE_PUMP_WAIT;
}

/* --- heads --- */

/* Has the other end said all? Also where some of it is not read yet. */
static bool pump_has_ended(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info);

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0 ||
	       info.tcpi_state != TCP_ESTABLISHED;
}

/* What may go on of a head goes on. 1: all of it, 0: the receiver is full, -1: it is gone. */
static int send_good(struct gate *g, struct gate_conn *c)
{
	uint8_t *head = gate_head(g, c);

	while (c->head_good) {
		ssize_t n = send(c->outside, head, c->head_good, MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -1;
		c->ways[GATE_OUT].bytes += (uint64_t)n;
		c->head_good -= (uint32_t)n;
		c->head_len -= (uint32_t)n;
		memmove(head, head + n, c->head_len);
	}
	return 1;
}

/* Reads on into the head. 1: there is more, 0: nothing now or no room, -1: the client is gone. */
static int pump_read_on(struct gate *g, struct gate_conn *c)
{
	size_t room = GATE_HEAD_SIZE - c->head_len;
	ssize_t n;

	if (!room || c->ways[GATE_OUT].is_over)
		return 0;
	n = recv(c->inside, gate_head(g, c) + c->head_len, room, 0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	c->ways[GATE_OUT].is_over = n == 0;
	c->head_len += (uint32_t)n;
	return n > 0;
}

/* Reads requests one by one, each before it goes on. */
static enum gate_pump pump_requests(struct gate *g, struct gate_conn *c, struct gate_refusal *ret)
{
	for (int i = 0; i < MAX_ROUNDS; i++) {
		enum gate_http_verdict seen = GATE_HTTP_MORE;
		int sent = send_good(g, c), more;
		size_t pass = 0;

		if (sent <= 0)
			return sent < 0 ? GATE_PUMP_BROKEN : GATE_PUMP_WAIT;
		if (c->head_len)
			seen = gate_http_read(&c->http, gate_head(g, c), c->head_len, &pass,
				&ret->reason, ret->other);
		if (seen == GATE_HTTP_DENY)
			return GATE_PUMP_DENY;
		c->head_good = (uint32_t)pass;
		if (pass)
			continue;
		if (c->http.state == GATE_HTTP_OPAQUE) {
			c->is_request_read = false;
			return GATE_PUMP_MORE;
		}
		more = pump_read_on(g, c);
		if (more <= 0)
			return more < 0 ? GATE_PUMP_BROKEN : GATE_PUMP_WAIT;
	}
	return GATE_PUMP_MORE;
}

/*
 * A websocket was asked for: does the server still have to say whether it agrees? Until then
 * nothing else passes. One that ends, or says too little in time, has not agreed.
 */
static bool awaits_upgrade(const struct gate *g, struct gate_conn *c)
{
	uint8_t first[64];
	ssize_t n;

	if (!c->is_request_read)
		return false;
	c->deadline_ns = 0;
	if (c->http.state != GATE_HTTP_UPGRADE)
		return false;
	n = recv(c->outside, first, sizeof(first), MSG_PEEK);
	if (n > 0 && gate_http_hear_server(&c->http, first, (size_t)n))
		return false;
	if (n == 0 || (n < 0 && errno != EAGAIN) || (n > 0 && pump_has_ended(c->outside))) {
		c->http.state = GATE_HTTP_HEAD;
		return false;
	}
	c->deadline_ns = g->now_ns + UPGRADE_NS;
	return true;
}

/* --- both --- */

static enum gate_pump pump_out(struct gate *g, struct gate_conn *c, struct gate_refusal *ret)
{
	int sent;

	if (c->is_request_read)
		return pump_requests(g, c, ret);
	sent = send_good(g, c);
	if (sent <= 0)
		return sent < 0 ? GATE_PUMP_BROKEN : GATE_PUMP_WAIT;
	return pump_stream(g, &c->ways[GATE_OUT], c->inside, c->outside);
}

static bool is_empty(const struct gate_conn *c, enum gate_way_kind kind)
{
	return !c->ways[kind].held && (kind == GATE_IN || !c->head_good);
}

/* The end of what one side says is told to the other, which may go on speaking. */
static void pass_end_on(struct gate_conn *c, enum gate_way_kind kind, int to)
{
	struct gate_way *w = &c->ways[kind];

	if (!w->is_over || w->is_shut || !is_empty(c, kind))
		return;
	shutdown(to, SHUT_WR);
	w->is_shut = true;
}

enum gate_pump gate_pump(
	struct gate *g, struct gate_conn *c, unsigned ways, struct gate_refusal *ret)
{
	enum gate_pump out = GATE_PUMP_WAIT, in = GATE_PUMP_WAIT;

	if (awaits_upgrade(g, c))
		ways &= ~(1U << GATE_IN);
	else if (c->is_request_read)
		ways = GATE_BOTH_WAYS;
	if (ways & 1U << GATE_OUT)
		out = pump_out(g, c, ret);
	if (out < GATE_PUMP_OVER && ways & 1U << GATE_IN)
		in = pump_stream(g, &c->ways[GATE_IN], c->outside, c->inside);
	if (out > GATE_PUMP_OVER)
		return out;
	if (in > GATE_PUMP_OVER)
		return in;
	pass_end_on(c, GATE_OUT, c->outside);
	pass_end_on(c, GATE_IN, c->inside);
	if (c->ways[GATE_OUT].is_shut && c->ways[GATE_IN].is_shut)
		return GATE_PUMP_OVER;
	return out == GATE_PUMP_MORE || in == GATE_PUMP_MORE ? GATE_PUMP_MORE : GATE_PUMP_WAIT;
}
