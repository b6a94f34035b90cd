/*
 * gate_conn - the life of a connection out of the cage.
 *
 * Runs as:     the gate.
 * Enters with: a connection to an address that stands for a name, is declared, or neither.
 * Leaves:      a connection to what was meant, or a reason: for the operator as a decision, and for
 *              the client in the words of what it speaks.
 * Must not:    ask for a connection outside before what the client said agrees with where it went;
 *              wait without a limit for a client's first words, or for the dialer.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "gate/dns/gate_address.h"
#include "gate/gate_inside.h"
#include "gate/tls/gate_tls.h"
#include "wire/wire.h"

/* --- passing bytes from one side to the other --- */

/*
 * The kernel moves the pages of a stream from socket to pipe to socket. Only requests of HTTP go
 * through our memory, to be read. Pipes are borrowed while bytes are on their way, so an idle
 * connection has none.
 */

enum gate_pump {
	GATE_PUMP_WAIT, /* nothing more can be done now */
	GATE_PUMP_MORE, /* others come first; call again */
	GATE_PUMP_OVER, /* both have said all and know it */
	GATE_PUMP_BROKEN,
	GATE_PUMP_DENY, /* a later request is not allowed */
};

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

/* Bytes that are left in it are dropped. */
static void empty_pipe(const struct gate_pipe *p)
{
	char nobody[4096];

	while (read(p->out, nobody, sizeof(nobody)) > 0)
		;
}

/* Gives its pipes back. */
static void gate_pump_stop(struct gate *g, struct gate_conn *c)
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

/* True if the other end has sent EOF, even if not all bytes are read yet. */
static bool pump_has_ended(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info);

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0 ||
	       info.tcpi_state != TCP_ESTABLISHED;
}

/*
 * Sends the bytes of the head that may go on. 1: all are sent, 0: the receiver is full, -1: gone.
 */
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

/* Passes on what there is, in the directions whose bits are set. */
static enum gate_pump gate_pump(
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

#define CALL_NS       (30 * GATE_SECOND_NS) /* more than the dialer takes */
#define TLS_HANDSHAKE 22

/* --- places --- */

struct gate_conn *gate_conn_take(struct gate *g)
{
	for (uint32_t i = 0; g->conn_count < g->conn_max && i < g->conn_max; i++) {
		struct gate_conn *c = &g->conns[(g->conn_next + i) % g->conn_max];
		uint16_t generation = c->generation;

		if (c->state != GATE_CONN_FREE || c->is_ready)
			continue;
		*c = (struct gate_conn){ .generation = generation, .row = -1 };
		c->inside = c->outside = -1;
		c->ways[GATE_OUT].pipe = c->ways[GATE_IN].pipe = -1;
		g->conn_next = (g->conn_next + i + 1) % g->conn_max;
		g->conn_count++;
		return c;
	}
	return NULL;
}

/* Resets the connection: unread bytes are dropped on both sides, and the peer notices at once. */
void gate_reset(int fd)
{
	struct linger now = { .l_onoff = 1 };

	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

void gate_conn_end(struct gate *g, struct gate_conn *c, bool is_orderly)
{
	gate_rows_add_bytes(&g->rows, c->row, c->ways[GATE_OUT].bytes, c->ways[GATE_IN].bytes);
	gate_pump_stop(g, c);
	if (is_orderly) {
		if (c->inside >= 0)
			close(c->inside);
		if (c->outside >= 0)
			close(c->outside);
	} else {
		gate_reset(c->inside);
		gate_reset(c->outside);
	}
	c->inside = c->outside = -1;
	c->state = GATE_CONN_FREE;
	c->generation++;
	g->conn_count--;
}

static void gate_conn_add_ready(struct gate *g, struct gate_conn *c)
{
	if (c->is_ready)
		return;
	c->is_ready = true;
	g->ready[g->ready_count++] = (uint16_t)(c - g->conns);
}

void gate_hurry(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/* --- saying no --- */

/* Writes a refusal in the client's protocol. Returns its size; 0: no answer would be understood. */
static size_t gate_conn_write_answer(const struct gate *g, const struct gate_conn *c, int row,
	enum wire_decision_kind kind, enum wire_reason reason, char *ret, size_t size)
{
	const uint8_t *head = g->heads[c - g->conns];
	char sentence[ERR_TEXT_SIZE] = "this is not in network.allow";
	enum gate_tls_alert alert = kind == WIRE_NET_FAILED            ? GATE_TLS_INTERNAL_ERROR
				    : reason == WIRE_BECAUSE_OTHER_SNI ? GATE_TLS_UNRECOGNIZED_NAME
								       : GATE_TLS_ACCESS_DENIED;

	if (c->head_len && head[0] == TLS_HANDSHAKE) {
		gate_tls_write_alert(alert, (uint8_t *)ret);
		return GATE_TLS_ALERT_SIZE;
	}
	if (!c->head_len || !gate_http_is_request(head, c->head_len))
		return 0;
	if (row >= 0)
		wire_print_decision(&g->rows.rows[row], sentence, sizeof(sentence));
	return gate_http_write(kind == WIRE_NET_FAILED ? 502 : 403, sentence, ret, size);
}

/* Reads the first bytes of a refused client: they tell which protocol the answer has to use. */
static void hear_first(struct gate *g, struct gate_conn *c)
{
	ssize_t n = c->head_len ? 0 : recv(c->inside, gate_head(g, c), GATE_HEAD_SIZE, 0);

	if (n > 0)
		c->head_len = (uint32_t)n;
}

void gate_conn_leave(struct gate *g, struct gate_conn *c, int row, enum wire_decision_kind kind,
	enum wire_reason reason)
{
	char answer[1024];
	size_t n;

	hear_first(g, c);
	n = gate_conn_write_answer(g, c, row, kind, reason, answer, sizeof(answer));
	if (!n || c->ways[GATE_IN].bytes) {
		/* A stream that has begun cannot be answered in the middle. */
		gate_conn_end(g, c, false);
		return;
	}
	(void)send(c->inside, answer, n, MSG_NOSIGNAL);
	shutdown(c->inside, SHUT_WR);
	gate_reset(c->outside);
	c->outside = -1;
	c->state = GATE_CONN_LEAVING;
	c->deadline_ns = g->now_ns + GATE_LEAVE_NS;
}

void gate_conn_deny(struct gate *g, struct gate_conn *c, enum wire_decision_kind kind,
	enum wire_reason reason, const char *other)
{
	int row = gate_rows_add(&g->rows, kind, reason, c->protocol, c->name, c->port, other);

	gate_conn_leave(g, c, row, kind, reason);
}

/* --- asking the dialer --- */

static void ask_dialer(struct gate *g, struct gate_conn *c)
{
	struct wire_call call = { .id = (uint32_t)(c - g->conns) | (uint32_t)c->generation << 16,
		.port = c->port,
		.has_address = c->is_address };

	memcpy(call.address, c->address, sizeof(call.address));
	if (!c->is_address)
		memcpy(call.name, c->name, sizeof(call.name));
	c->is_asked = wire_send_message(GATE_FD_OTHER, &call, sizeof(call), -1) == 0;
	/* Otherwise it is busy, and asked again when it has read something. */
}

void gate_conn_call(struct gate *g, struct gate_conn *c)
{
	c->state = GATE_CONN_CALLING;
	c->deadline_ns = g->now_ns + CALL_NS;
	ask_dialer(g, c);
}

/* --- open connections --- */

static void pump(struct gate *g, struct gate_conn *c, unsigned ways)
{
	struct gate_refusal no = { .reason = WIRE_BECAUSE_BAD_HTTP };

	switch (gate_pump(g, c, ways, &no)) {
	case GATE_PUMP_WAIT:
		return;
	case GATE_PUMP_MORE:
		gate_conn_add_ready(g, c);
		return;
	case GATE_PUMP_OVER:
		gate_conn_end(g, c, true);
		return;
	case GATE_PUMP_BROKEN:
		gate_conn_end(g, c, false);
		return;
	case GATE_PUMP_DENY:
		gate_conn_deny(g, c, WIRE_NET_DENIED, no.reason, no.other);
		return;
	}
}

void gate_conn_open(
	struct gate *g, struct gate_conn *c, enum wire_decision_kind kind, const char *other)
{
	c->row = gate_rows_add(
		&g->rows, kind, WIRE_BECAUSE_ALLOWED, c->protocol, c->name, c->port, other);
	c->state = GATE_CONN_OPEN;
	c->deadline_ns = 0;
	pump(g, c, GATE_BOTH_WAYS);
}

static void take_called(struct gate *g, struct gate_conn *c, struct wire_called *m, int fd)
{
	m->other[sizeof(m->other) - 1] = '\0';
	if (m->reason != WIRE_BECAUSE_ALLOWED || fd < 0) {
		bool is_known = m->reason > WIRE_BECAUSE_ALLOWED && m->reason < WIRE_REASON_COUNT &&
				(m->kind == WIRE_NET_DENIED || m->kind == WIRE_NET_FAILED);

		gate_conn_deny(g, c, is_known ? (enum wire_decision_kind)m->kind : WIRE_NET_FAILED,
			is_known ? (enum wire_reason)m->reason : WIRE_BECAUSE_UNREACHABLE,
			m->other);
		return;
	}
	c->outside = fd;
	if (gate_add_conn(g, c, false) < 0)
		gate_conn_end(g, c, false);
	else
		gate_conn_open(g, c, WIRE_NET_ALLOWED, m->other);
}

void gate_hear_dialer(struct gate *g)
{
	struct wire_called m = { 0 };
	int fd = -1, r;

	while ((r = wire_receive_message(GATE_FD_OTHER, &m, sizeof(m), &fd)) == 0) {
		uint32_t place = m.id & 0xffff;
		struct gate_conn *c = place < g->conn_max ? &g->conns[place] : NULL;

		if (c && c->state == GATE_CONN_CALLING && !c->is_published &&
			c->generation == m.id >> 16)
			take_called(g, c, &m, fd);
		else if (fd >= 0)
			close(fd);
	}
	if (fd >= 0 && r == -EBADMSG)
		close(fd);
	g->has_dialer = r == -EAGAIN;
	for (uint32_t i = 0; g->has_dialer && i < g->conn_max; i++)
		if (g->conns[i].state == GATE_CONN_CALLING && !g->conns[i].is_published &&
			!g->conns[i].is_asked)
			ask_dialer(g, &g->conns[i]);
}

/* --- all of them --- */

/* Bounded drain: the deadline ends a sender that never stops. */
static void hear_leaving(struct gate *g, struct gate_conn *c)
{
	char nobody[4096];
	ssize_t n = 1;

	for (int i = 0; n > 0 && i < 16; i++)
		n = recv(c->inside, nobody, sizeof(nobody), 0);
	if (n > 0)
		gate_conn_add_ready(g, c);
	else if (n == 0 || errno != EAGAIN)
		gate_conn_end(g, c, true);
}

/* Which directions an event is about: what can be read, and what can be written. */
static unsigned ways_of(const struct gate_conn *c, bool is_inside, uint32_t events)
{
	enum gate_way_kind from = is_inside ? GATE_OUT : GATE_IN,
			   to = is_inside ? GATE_IN : GATE_OUT;
	unsigned ways = 0;

	if (events & ~(uint32_t)EPOLLOUT)
		ways |= 1U << from;
	if (events & EPOLLOUT && (c->ways[to].held || (to == GATE_OUT && c->head_len)))
		ways |= 1U << to;
	return ways;
}

/* True if the connection was reset after EOF. Nobody reads there, so only this check sees it. */
static bool is_broken(const struct gate_conn *c, bool is_inside, uint32_t events)
{
	const struct gate_way *from = &c->ways[is_inside ? GATE_OUT : GATE_IN];

	return events & EPOLLERR && from->is_shut;
}

void gate_hear_conn(struct gate *g, uint32_t index, bool is_inside, uint32_t events)
{
	struct gate_conn *c = &g->conns[index];
	unsigned ways;

	/* It would wait at its mark, and all that follows behind it. */
	if (events & EPOLLPRI && (c->state == GATE_CONN_HEAD || c->state == GATE_CONN_OPEN)) {
		gate_conn_deny(g, c, WIRE_NET_DENIED, WIRE_BECAUSE_URGENT, "");
		return;
	}
	switch (c->state) {
	case GATE_CONN_FREE:
		return;
	case GATE_CONN_HEAD:
		gate_hear_head(g, c);
		return;
	case GATE_CONN_CALLING:
		if (c->is_published)
			gate_hear_inside(g, c);
		else if (events & (EPOLLHUP | EPOLLERR))
			gate_conn_end(g, c, false);
		return;
	case GATE_CONN_OPEN:
		ways = ways_of(c, is_inside, events);
		if (is_broken(c, is_inside, events))
			gate_conn_end(g, c, false);
		else if (ways)
			pump(g, c, ways);
		return;
	case GATE_CONN_LEAVING:
		hear_leaving(g, c);
		return;
	}
}

void gate_go_on(struct gate *g)
{
	uint32_t count = g->ready_count;
	uint16_t ready[GATE_MAX_CONNS];

	memcpy(ready, g->ready, count * sizeof(ready[0]));
	g->ready_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct gate_conn *c = &g->conns[ready[i]];

		c->is_ready = false;
		if (c->state == GATE_CONN_OPEN)
			pump(g, c, GATE_BOTH_WAYS);
		else if (c->state == GATE_CONN_LEAVING)
			hear_leaving(g, c);
	}
}

static void gate_conn_end_in_time(struct gate *g, struct gate_conn *c)
{
	if (c->state == GATE_CONN_HEAD && c->denied == WIRE_BECAUSE_ALLOWED)
		gate_conn_deny(g, c, WIRE_NET_DENIED, WIRE_BECAUSE_SILENT, "");
	else if (c->state == GATE_CONN_CALLING && !c->is_published)
		gate_conn_deny(
			g, c, WIRE_NET_FAILED, WIRE_BECAUSE_UNREACHABLE, "no answer in time");
	else
		gate_conn_end(g, c, false);
}

void gate_drop_old_conns(struct gate *g)
{
	for (uint32_t i = 0; i < g->conn_max; i++) {
		struct gate_conn *c = &g->conns[i];

		if (c->state != GATE_CONN_FREE && c->deadline_ns && g->now_ns > c->deadline_ns)
			gate_conn_end_in_time(g, c);
	}
}

/* The cage is gone. Has it said something that still has to arrive? A hello alone is nothing. */
static bool has_more_to_say(const struct gate_conn *c)
{
	char any;

	if (c->state == GATE_CONN_OPEN)
		return !c->ways[GATE_OUT].is_shut;
	if (c->state != GATE_CONN_CALLING || c->is_published || c->protocol == WIRE_TLS)
		return false;
	return c->head_good || recv(c->inside, &any, 1, MSG_PEEK) > 0;
}

void gate_end_said(struct gate *g)
{
	for (uint32_t i = 0; i < g->conn_max; i++) {
		struct gate_conn *c = &g->conns[i];

		if (c->state != GATE_CONN_FREE && !has_more_to_say(c))
			gate_conn_end(g, c, true);
	}
}

void gate_close_all(struct gate *g)
{
	for (uint32_t i = 0; i < g->conn_max; i++)
		if (g->conns[i].state != GATE_CONN_FREE)
			gate_conn_end(g, &g->conns[i], false);
}
