/*
 * gate_publish - connections from the host into the cage, at ports that the operator opened.
 *
 * Runs as:     the gate.
 * Enters with: listening sockets of the host's network, made by the keeper.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gate/gate_inside.h"

#define MAX_AT_ONCE 64
#define CONNECT_NS  (10 * GATE_SECOND_NS)

/* Begins to connect to the port in the cage: 0 or -errno. */
static int connect_inside(struct gate *g, struct gate_conn *c)
{
	int fd = gate_usher_connect(g, c->published, c->is_v6);

	if (fd < 0)
		return fd;
	c->inside = fd;
	gate_hurry(fd);
	return gate_add_conn(g, c, true);
}

/* Nobody listens at 127.0.0.1: maybe at ::1, as servers do that were told "localhost". */
static void try_other(struct gate *g, struct gate_conn *c, int num)
{
	bool is_last = !g->net.has_v6 || c->is_v6;

	if (c->inside >= 0)
		close(c->inside);
	c->inside = -1;
	if (!is_last) {
		int r;

		c->is_v6 = true;
		r = connect_inside(g, c);
		if (r == 0)
			return;
		num = -r;
	}
	gate_rows_add(&g->rows, WIRE_PUBLISHED, WIRE_BECAUSE_UNREACHABLE, WIRE_TCP, c->name,
		c->port,
		num == ECONNREFUSED ? "nobody listens at that port in the cage" : strerror(num));
	gate_conn_end(g, c, false);
}

void gate_hear_inside(struct gate *g, struct gate_conn *c)
{
	struct sockaddr_storage peer;
	socklen_t size = sizeof(peer), error_size = sizeof(int);
	int error = 0;

	if (getsockopt(c->inside, SOL_SOCKET, SO_ERROR, &error, &error_size) < 0)
		error = errno;
	if (error)
		try_other(g, c, error);
	else if (getpeername(c->inside, (struct sockaddr *)&peer, &size) == 0)
		gate_conn_open(g, c, WIRE_PUBLISHED, "");
}

static void publish_take(struct gate *g, int fd, uint32_t index)
{
	const struct wire_publish *p = &g->rules->publish[index];
	struct gate_conn *c = gate_conn_take(g);
	int r;

	if (!c) {
		gate_rows_add(&g->rows, WIRE_PUBLISHED, WIRE_BECAUSE_MANY, WIRE_TCP, p->address,
			p->host_port, "");
		gate_reset(fd);
		return;
	}
	c->is_published = true;
	c->published = index;
	c->protocol = WIRE_TCP;
	c->outside = fd;
	c->port = p->host_port;
	memcpy(c->name, p->address, sizeof(p->address));
	c->state = GATE_CONN_CALLING;
	c->deadline_ns = g->now_ns + CONNECT_NS;
	gate_hurry(fd);
	r = gate_add_conn(g, c, false);
	if (r == 0)
		r = connect_inside(g, c);
	if (r < 0)
		try_other(g, c, -r);
}

void gate_take_published(struct gate *g, uint32_t index)
{
	int fd = 0;

	for (int i = 0; fd >= 0 && i < MAX_AT_ONCE; i++) {
		fd = gate_accept(GATE_FD_PUBLISH + (int)index);
		if (fd >= 0)
			publish_take(g, fd, index);
	}
}
