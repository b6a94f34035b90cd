/*
 * dialer_connect - from addresses to a connection.
 *
 * Runs as:  the dialer, confined.
 * Must not: connect to an address that was not judged right before.
 *
 * A name may lead anywhere, also to another place than a moment ago. So it is the address that is
 * judged, not the name, and it is the one that was judged that is connected to: what is not public,
 * and what is this machine, must be in the rules itself.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/own.h"
#include "gate/dialer/dialer.h"

/* --- judging --- */

/*
 * Would a datagram to this address come from it? Asks the routes; nothing is sent. 1, 0 or -errno:
 * where there is no route for datagrams, there is none for a connection.
 */
static int dialer_connect_is_own(const uint8_t address[static 16])
{
	struct sockaddr_storage to, from = { 0 };
	socklen_t size = gate_address_write(address, 9, &to);
	own_fd int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint8_t source[16];
	uint16_t port;

	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, size) < 0)
		return -errno;
	size = sizeof(from);
	if (getsockname(fd, (struct sockaddr *)&from, &size) < 0)
		return -errno;
	return !gate_address_read(&from, source, &port) || memcmp(source, address, 16) == 0;
}

/* An enum wire_reason; -errno: it cannot be told. */
static int dialer_connect_judge(
	const struct dialer *c, const struct dialer_call *call, const uint8_t address[static 16])
{
	int r;

	/* Ports of the loopback are declared one by one; no network that holds it stands for them.
	 */
	if (call->is_host)
		return WIRE_BECAUSE_ALLOWED;
	if (gate_address_is_here(address))
		return WIRE_BECAUSE_OWN_ADDRESS;
	if (wire_find_address(c->rules, address, call->asked.port))
		return WIRE_BECAUSE_ALLOWED;
	if (gate_address_reserved(address))
		return WIRE_BECAUSE_RESERVED;
	r = dialer_connect_is_own(address);
	return r > 0 ? WIRE_BECAUSE_OWN_ADDRESS : r;
}

/* --- the end of it --- */

void dialer_stop(struct dialer_call *call)
{
	for (size_t i = 0; i < CALLER_MAX_ATTEMPTS; i++)
		if (call->attempts[i].fd >= 0)
			close(take_fd(&call->attempts[i].fd));
}

static bool is_trying(const struct dialer_call *call)
{
	for (size_t i = 0; i < CALLER_MAX_ATTEMPTS; i++)
		if (call->attempts[i].fd >= 0)
			return true;
	return false;
}

static void dialer_connect_give_up(struct dialer *c, struct dialer_call *call)
{
	const char *why = gate_address_reserved(call->refused);
	char address[GATE_ADDRESS_TEXT], text[2 * GATE_ADDRESS_TEXT];

	if (call->tried || !call->refusal) {
		dialer_answer(c, call, WIRE_NET_FAILED, WIRE_BECAUSE_UNREACHABLE,
			strerror(call->failure), -1);
		return;
	}
	gate_address_print(call->refused, address);
	snprintf(text, sizeof(text), why ? "%s (%s)" : "%s", address, why);
	dialer_answer(c, call, WIRE_NET_DENIED, call->refusal, text, -1);
}

static void succeed(struct dialer *c, struct dialer_call *call, struct dialer_attempt *attempt)
{
	char text[GATE_ADDRESS_TEXT];

	gate_address_print(call->to.items[attempt->address], text);
	/* Who gets it has the same file open, so closing ours does not end this. */
	epoll_ctl(c->epoll, EPOLL_CTL_DEL, attempt->fd, NULL);
	dialer_answer(c, call, WIRE_NET_ALLOWED, WIRE_BECAUSE_ALLOWED, text, take_fd(&attempt->fd));
}

/* --- attempts --- */

static int set_options(int fd, bool is_host)
{
	static const char plain[] = "reno";
	const int on = 1;

	/* As in the cage's network (gate_net.c), and no harm either if it fails. */
	if (is_host)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, plain, sizeof(plain) - 1);
	return setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) < 0 ||
			       setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0
		       ? -errno
		       : 0;
}

/* 0: connected. -EINPROGRESS: an event will tell. Anything else: this one failed. */
static int dialer_connect_begin(
	struct dialer *c, struct dialer_call *call, struct dialer_attempt *attempt)
{
	size_t index = (size_t)(call - c->calls) * CALLER_MAX_ATTEMPTS +
		       (size_t)(attempt - call->attempts);
	struct sockaddr_storage to;
	socklen_t size =
		gate_address_write(call->to.items[attempt->address], call->asked.port, &to);
	own_fd int fd =
		socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	struct epoll_event event = { .events = EPOLLOUT };
	int r = fd < 0 ? -errno : set_options(fd, call->is_host);

	if (r == 0 && connect(fd, (const struct sockaddr *)&to, size) < 0)
		r = -errno;
	attempt->tag = ++c->tag;
	event.data.u64 = (uint64_t)(CALLER_FROM_ATTEMPT + index) << 32 | attempt->tag;
	if (r == -EINPROGRESS && epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		r = -errno;
	if (r == 0 || r == -EINPROGRESS)
		attempt->fd = take_fd(&fd);
	return r;
}

static struct dialer_attempt *dialer_connect_find_free(struct dialer_call *call)
{
	for (size_t i = 0; i < CALLER_MAX_ATTEMPTS; i++)
		if (call->attempts[i].fd < 0)
			return &call->attempts[i];
	return NULL;
}

/* As dialer_connect_begin(), of the address at `index`; -EACCES: it was refused, and not tried. */
static int judge_and_begin(struct dialer *c, struct dialer_call *call, unsigned index)
{
	const uint8_t *address = call->to.items[index];
	struct dialer_attempt *attempt = dialer_connect_find_free(call);
	int r = dialer_connect_judge(c, call, address);

	if (r > WIRE_BECAUSE_ALLOWED && !call->refusal) {
		call->refusal = (uint8_t)r;
		memcpy(call->refused, address, sizeof(call->refused));
	}
	if (r > WIRE_BECAUSE_ALLOWED || !attempt)
		return -EACCES;
	call->tried++;
	attempt->address = index;
	if (r == 0)
		r = dialer_connect_begin(c, call, attempt);
	if (r == 0)
		succeed(c, call, attempt);
	else if (r != -EINPROGRESS)
		call->failure = -r;
	return r;
}

/* Begins with the next address that may be; if none is left and none is under way, that is all. */
void dialer_try_next(struct dialer *c, struct dialer_call *call)
{
	call->next_ns = UINT64_MAX;
	while (call->next < call->to.count && call->tried < CALLER_MAX_ATTEMPTS) {
		int r = judge_and_begin(c, call, call->next++);

		if (r == -EINPROGRESS)
			call->next_ns = c->now_ns + CALLER_NEXT_NS;
		if (r == 0 || r == -EINPROGRESS)
			return;
	}
	if (!is_trying(call))
		dialer_connect_give_up(c, call);
}

void dialer_connect(struct dialer *c, struct dialer_call *call)
{
	call->state = CALLER_CONNECTING;
	dialer_try_next(c, call);
}

void dialer_hear_attempt(struct dialer *c, unsigned index, uint32_t tag)
{
	struct dialer_call *call = &c->calls[index / CALLER_MAX_ATTEMPTS];
	struct dialer_attempt *attempt = &call->attempts[index % CALLER_MAX_ATTEMPTS];
	int failure = 0;
	socklen_t size = sizeof(failure);

	if (call->state != CALLER_CONNECTING || attempt->fd < 0 || attempt->tag != tag)
		return;
	if (getsockopt(attempt->fd, SOL_SOCKET, SO_ERROR, &failure, &size) < 0)
		failure = errno;
	if (failure == 0) {
		succeed(c, call, attempt);
		return;
	}
	close(take_fd(&attempt->fd));
	call->failure = failure;
	dialer_try_next(c, call);
}
