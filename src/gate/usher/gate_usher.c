/*
 * gate_usher - connects into the cage, for the gate.
 *
 * Runs as:     a child of the gate, if ports are published; confined, in the cage's network.
 * Enters with: one channel. It never holds a socket of the host's network.
 * Must not:    connect to anything but the published ports of the cage's loopback.
 *
 * The gate holds sockets of the host's network, and whoever may call connect can connect such a
 * one to another place. So the gate may not, and this process, which may, has none.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "gate/dns/gate_address.h"
#include "gate/gate_inside.h"
#include "wire/wire.h"

#define CHANNEL 3

struct request {
	uint32_t index; /* of what is published */
	bool is_v6;
};

struct reply {
	int32_t error; /* errno, or 0: a socket comes with this, connected or about to be */
};

static const uint8_t loopback_v6[16] = { [15] = 1 };
static const uint8_t loopback_v4[16] = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 };

/* --- as the usher --- */

static int connect_to(const struct wire_rules *rules, const struct request *q)
{
	struct sockaddr_storage to;
	own_fd int fd = -1;
	unsigned size;

	if (q->index >= rules->publish_count)
		return -EINVAL;
	size = gate_address_write(
		q->is_v6 ? loopback_v6 : loopback_v4, rules->publish[q->index].cage_port, &to);
	fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || (connect(fd, (const struct sockaddr *)&to, size) < 0 && errno != EINPROGRESS))
		return -errno;
	return take_fd(&fd);
}

static void be_usher(int channel, const struct wire_rules *rules, const struct gate_wall *wall)
{
	uint16_t ports[WIRE_MAX_PUBLISH];
	struct gate_wall own = *wall;
	struct reply ready = { 0 };
	struct request q = { 0 };
	struct err e;

	if (dup2(channel, CHANNEL) < 0 || syscall(SYS_close_range, CHANNEL + 1, ~0U, 0) < 0)
		_exit(1);
	own.filter = &filter_usher;
	own.channel = CHANNEL;
	own.ports = ports;
	for (; own.port_count < rules->publish_count; own.port_count++)
		ports[own.port_count] = rules->publish[own.port_count].cage_port;
	if (gate_confine(&own, rules, &e) < 0)
		_exit(1);
	wire_send_message(CHANNEL, &ready, sizeof(ready), -1);
	/* No descriptor is taken with a request: there is no room for one. */
	while (wire_receive_message(CHANNEL, &q, sizeof(q), NULL) == 0) {
		int fd = connect_to(rules, &q);
		struct reply reply = { .error = fd < 0 ? -fd : 0 };

		wire_send_message(CHANNEL, &reply, sizeof(reply), fd);
		if (fd >= 0)
			close(fd);
	}
	_exit(0);
}

/* --- as the gate --- */

int gate_usher_start(struct gate *g, const struct gate_wall *wall, struct err *e)
{
	struct reply ready = { .error = EPIPE };
	int ends[2], r = wire_pair(ends);

	if (r < 0)
		return err_sys(e, -r, "cannot make a channel to the usher");
	g->usher_pid = fork();
	if (g->usher_pid == 0)
		be_usher(ends[1], g->rules, wall);
	close(ends[1]);
	g->usher = ends[0];
	if (g->usher_pid < 0 || wire_receive_message(g->usher, &ready, sizeof(ready), NULL) < 0 ||
		ready.error)
		return err_set(e, ERR_SYS, EPIPE,
			"cannot start the usher, which connects to published ports");
	return 0;
}

int gate_usher_connect(const struct gate *g, uint32_t index, bool is_v6)
{
	struct request q = { .index = index, .is_v6 = is_v6 };
	struct reply reply = { 0 };
	int fd = -1, r = wire_send_message(g->usher, &q, sizeof(q), -1);

	/* It answers at once: what it makes is connected while others wait, and not by it. */
	if (r == 0)
		r = wire_receive_message(g->usher, &reply, sizeof(reply), &fd);
	if (r == 0 && fd < 0)
		r = -(reply.error > 0 ? reply.error : EPROTO);
	if (r < 0 && fd >= 0)
		close(fd);
	return r < 0 ? r : fd;
}

void gate_usher_end(struct gate *g)
{
	if (g->usher_pid <= 0)
		return;
	close(g->usher);
	while (waitpid(g->usher_pid, NULL, 0) < 0 && errno == EINTR)
		;
}
