/*
 * gate_take - takes a connection that somebody in the cage has begun, and finds out where to.
 *
 * Runs as:  the gate.
 * Must not: believe anything but the address that the kernel says it went to.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "gate/dns/gate_address.h"
#include "gate/gate_inside.h"

#define MAX_AT_ONCE 64

enum wire_reason gate_judge(const struct gate *g, const uint8_t address[static 16], uint16_t port,
	const char **ret_name, const struct wire_rule **ret_rule)
{
	const char *name = gate_book_find(&g->book, address);

	*ret_name = name;
	*ret_rule = name ? wire_find_name(g->rules, name, port)
			 : wire_find_address(g->rules, address, port);
	if (*ret_rule)
		return WIRE_BECAUSE_ALLOWED;
	return name ? WIRE_BECAUSE_PORT : WIRE_BECAUSE_ADDRESS;
}

static void take_begin(struct gate *g, struct gate_conn *c)
{
	const struct wire_rule *rule;
	const char *name;

	c->denied = gate_judge(g, c->address, c->port, &name, &rule);
	c->is_address = !name;
	c->protocol = rule ? (enum wire_protocol)rule->protocol : WIRE_TCP;
	if (name)
		snprintf(c->name, sizeof(c->name), "%s", name);
	else
		gate_address_print(c->address, c->name);
	c->state = GATE_CONN_HEAD;
	c->deadline_ns = g->now_ns + (rule ? GATE_HEAD_NS : GATE_DENY_NS);
	if (!rule)
		c->row = gate_rows_add(
			&g->rows, WIRE_NET_DENIED, c->denied, WIRE_TCP, c->name, c->port, "");
	if (rule && rule->is_vault) {
		gate_vault_pass(g, c);
		return;
	}
	c->is_request_read = rule && rule->protocol == WIRE_HTTP;
	if (c->is_request_read)
		gate_http_init(&c->http, c->name, c->port);
	if (gate_add_conn(g, c, true) < 0)
		gate_conn_end(g, c, false);
	else if (rule && rule->protocol == WIRE_TCP)
		gate_conn_call(g, c);
	else
		gate_hear_head(g, c);
}

static void do_take(struct gate *g, int fd)
{
	struct sockaddr_storage to = { 0 };
	socklen_t size = sizeof(to);
	const struct wire_rule *rule;
	struct gate_conn *c;
	uint8_t address[16];
	const char *name;
	uint16_t port;

	if (getsockname(fd, (struct sockaddr *)&to, &size) < 0 ||
		!gate_address_read(&to, address, &port)) {
		gate_reset(fd);
		return;
	}
	gate_judge(g, address, port, &name, &rule);
	if (port == GATE_PORT_OF_NAMES && !rule) {
		gate_take_asker(g, fd);
		return;
	}
	/* The cage's own loopback, where nobody of the cage listens at this port. */
	if (gate_address_is_here(address)) {
		gate_reset(fd);
		return;
	}
	c = gate_conn_take(g);
	if (!c) {
		char text[GATE_ADDRESS_TEXT];

		gate_address_print(address, text);
		gate_rows_add(&g->rows, WIRE_NET_DENIED, WIRE_BECAUSE_MANY, WIRE_TCP,
			name ? name : text, port, "");
		gate_reset(fd);
		return;
	}
	c->inside = fd;
	c->port = port;
	memcpy(c->address, address, sizeof(address));
	gate_hurry(fd);
	take_begin(g, c);
}

int gate_accept(int listener)
{
	static const struct timespec moment = { .tv_nsec = 1000000 };
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	/* The machine has no more descriptors or memory: not all the time. */
	if (fd < 0 && errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
	return fd;
}

void gate_take_conns(struct gate *g, uint32_t listener)
{
	int fd = 0;

	for (int i = 0; fd >= 0 && i < MAX_AT_ONCE; i++) {
		fd = gate_accept(g->net.listeners[listener].fd);
		if (fd >= 0)
			do_take(g, fd);
	}
}
