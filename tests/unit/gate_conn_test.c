/*
 * Answers of the process that connects for the gate, by a channel of the test's own: each reaches
 * the connection that asked, and one that comes late reaches nobody.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "gate/gate_inside.h"
#include "wire/wire.h"

static struct gate *gate;
static int far; /* the other end of the channel */

/* The gate knows its channel by its number. */
static void make_channel(void)
{
	int ends[2];

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
	far = fcntl(ends[0], F_DUPFD_CLOEXEC, 20);
	close(ends[0]);
	if (ends[1] != GATE_FD_OTHER) {
		CHECK(dup3(ends[1], GATE_FD_OTHER, O_CLOEXEC) == GATE_FD_OTHER);
		close(ends[1]);
	}
}

/* A new connection of a client, which asks for another outside; *ret_client is the client's end. */
static struct gate_conn *ask(uint32_t *ret_id, int *ret_client)
{
	struct gate_conn *c = gate_conn_take(gate);
	struct wire_call call = { 0 };
	int ends[2];

	CHECK(c != NULL);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
	c->inside = ends[0];
	*ret_client = ends[1];
	gate_conn_call(gate, c);
	CHECK(wire_receive_message(far, &call, sizeof(call), NULL) == 0);
	*ret_id = call.id;
	return c;
}

/* The gate hears that a connection was made; the other end of that one. */
static int answer(uint32_t id)
{
	struct wire_called m = { .id = id, .reason = WIRE_BECAUSE_ALLOWED };
	int ends[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
	CHECK(wire_send_message(far, &m, sizeof(m), ends[0]) == 0);
	close(ends[0]);
	gate_hear_dialer(gate);
	return ends[1];
}

static bool is_closed(int fd)
{
	struct pollfd p = { .fd = fd };

	return poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
}

/* What was given to a connection passes bytes to its client. */
static void check_given(struct gate_conn *c, int server, int client)
{
	char text[8] = "";

	CHECK(c->state == GATE_CONN_OPEN && c->outside >= 0 && !is_closed(server));
	CHECK(send(server, "hello", 5, MSG_NOSIGNAL) == 5);
	gate_hear_conn(gate, (uint32_t)(c - gate->conns), false, EPOLLIN);
	CHECK(read(client, text, sizeof(text)) == 5);
	CHECK(memcmp(text, "hello", 5) == 0);
}

static void check_refused(struct gate_conn *c, uint32_t id)
{
	enum gate_conn_state state = c->state;
	int server = answer(id);

	CHECK(c->state == state && c->outside < 0 && is_closed(server));
	close(server);
}

static void test_answer(void)
{
	uint32_t id;
	int client, server;
	struct gate_conn *c = ask(&id, &client);

	server = answer(id);
	check_given(c, server, client);
	gate_conn_end(gate, c, true);
	close(server);
	close(client);
}

/* There is one place: the client that has it now is not the one that asked. */
static void test_late_answer(void)
{
	uint32_t old, new;
	int client, server;
	struct gate_conn *first = ask(&old, &client), *c;

	gate_conn_end(gate, first, true);
	CHECK(is_closed(client));
	close(client);
	c = ask(&new, &client);
	CHECK(c == first && new != old);
	check_refused(c, old);
	/* Nor does one that was never asked for reach it, or another place. */
	check_refused(c, new + (1U << 16));
	check_refused(c, new + 1);
	server = answer(new);
	check_given(c, server, client);
	/* And a second one comes too late. */
	{
		int second = answer(new);

		CHECK(is_closed(second) && !is_closed(server));
		close(second);
	}
	gate_conn_end(gate, c, true);
	close(server);
	close(client);
}

/* Connections that wait for something else are given none. */
static void test_others(void)
{
	uint32_t id;
	int client;
	struct gate_conn *c = ask(&id, &client);

	c->is_published = true;
	check_refused(c, id);
	c->is_published = false;
	c->state = GATE_CONN_HEAD;
	check_refused(c, id);
	gate_conn_end(gate, c, true);
	check_refused(c, id);
	close(client);
}

int main(void)
{
	gate = calloc(1, sizeof(*gate));
	if (!gate)
		return 1;
	make_channel();
	gate->epoll = epoll_create1(EPOLL_CLOEXEC);
	gate->conn_max = 1;
	gate->pipes.max = 4;
	gate->now_ns = 1;
	test_answer();
	test_late_answer();
	test_others();
	free(gate);
	return check_report();
}
