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

#include "gate/gate_address.h"
#include "gate/gate_inside.h"

#define MAX_AT_ONCE 64
#define CONNECT_NS  (10 * GATE_SECOND_NS)

static const uint8_t loopback_v6[16] = { [15] = 1 };
static const uint8_t loopback_v4[16] = { [10] = 0xff, 0xff, 127, [15] = 1 };

/* Begins to connect to the port in the cage: 0 or -errno. */
static int connect_to(struct gate *g, struct gate_conn *c, const uint8_t address[static 16])
{
	uint16_t port = g->rules->publish[c->published].cage_port;
	struct sockaddr_storage to = { 0 };
	unsigned size = gate_address_write(address, port, &to);

	memcpy(c->address, address, sizeof(c->address));
	c->inside = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->inside < 0)
		return -errno;
	gate_hurry(c->inside);
	if (connect(c->inside, (struct sockaddr *)&to, size) < 0 && errno != EINPROGRESS)
		return -errno;
	return gate_add_conn(g, c, true);
}

/* Nobody listens at 127.0.0.1: maybe at ::1, as servers do that were told "localhost". */
static void try_other(struct gate *g, struct gate_conn *c, int num)
{
	bool is_last = !g->net.has_v6 || memcmp(c->address, loopback_v6, sizeof(loopback_v6)) == 0;

	if (c->inside >= 0)
		close(c->inside);
	c->inside = -1;
	if (!is_last) {
		int r = connect_to(g, c, loopback_v6);

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

static void take(struct gate *g, int fd, uint32_t index)
{
	struct gate_conn *c = gate_conn_take(g);
	int r;

	if (!c) {
		gate_reset(fd);
		return;
	}
	c->is_published = true;
	c->published = index;
	c->protocol = WIRE_TCP;
	c->outside = fd;
	c->port = g->rules->publish[index].host_port;
	memcpy(c->name, g->rules->publish[index].address, sizeof(g->rules->publish[index].address));
	c->state = GATE_CONN_CALLING;
	c->deadline_ns = g->now_ns + CONNECT_NS;
	gate_hurry(fd);
	r = gate_add_conn(g, c, false);
	if (r == 0)
		r = connect_to(g, c, loopback_v4);
	if (r < 0)
		try_other(g, c, -r);
}

void gate_take_published(struct gate *g, uint32_t index)
{
	for (int i = 0; i < MAX_AT_ONCE; i++) {
		int fd = accept4(
			GATE_FD_PUBLISH + (int)index, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0)
			return;
		take(g, fd, index);
	}
}
