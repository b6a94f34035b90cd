/*
 * dialer - connects to the world for the gate and the vault, and hands the sockets over.
 *
 * Runs as:     a process of its own, in the host's network.
 * Enters with: GATE_FD_OTHER to the gate, GATE_FD_VAULT where there are secrets, GATE_FD_RULES, the
 *              keeper's rights.
 * Leaves:      nothing; it ends with the gate's channel, or with its parent.
 * Must not:    believe the gate: every call is held to the rules once more. The vault can only ask
 *              for the hosts of secrets, and the gate cannot ask for these. Connect to an address
 *              that was not judged right before.
 *
 * A name may lead anywhere, also to another place than a moment ago. So the address is judged, not
 * the name, and the judged address is connected to: one that is not public, or is this machine,
 * must be in the rules itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "gate/dialer/dialer.h"
#include "gate/http/gate_host.h"
#include "wire/wire.h"

/* --- attempts --- */

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

	/*
	 * Ports of the loopback are declared one by one; no network that holds it stands for them.
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

/* Closes all attempts. */
static void dialer_stop(struct dialer_call *call)
{
	for (size_t i = 0; i < DIALER_MAX_ATTEMPTS; i++)
		if (call->attempts[i].fd >= 0)
			close(take_fd(&call->attempts[i].fd));
}

static bool is_trying(const struct dialer_call *call)
{
	for (size_t i = 0; i < DIALER_MAX_ATTEMPTS; i++)
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
	/* The receiver has the same socket open, so closing ours does not end the connection. */
	epoll_ctl(c->epoll, EPOLL_CTL_DEL, attempt->fd, NULL);
	dialer_answer(c, call, WIRE_NET_ALLOWED, WIRE_BECAUSE_ALLOWED, text, take_fd(&attempt->fd));
}

/* --- attempts --- */

static int set_options(int fd, bool is_host)
{
	static const char plain[] = "reno";
	const int on = 1;

	/* reno, as in the cage (gate_main.c): needs no timer per packet. A failure does no harm. */
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
	size_t index = (size_t)(call - c->calls) * DIALER_MAX_ATTEMPTS +
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
	event.data.u64 = (uint64_t)(DIALER_FROM_ATTEMPT + index) << 32 | attempt->tag;
	if (r == -EINPROGRESS && epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		r = -errno;
	if (r == 0 || r == -EINPROGRESS)
		attempt->fd = take_fd(&fd);
	return r;
}

static struct dialer_attempt *dialer_connect_find_free(struct dialer_call *call)
{
	for (size_t i = 0; i < DIALER_MAX_ATTEMPTS; i++)
		if (call->attempts[i].fd < 0)
			return &call->attempts[i];
	return NULL;
}

/* Starts an attempt to the address at `index`. Returns -EACCES if the address is refused. */
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
static void dialer_try_next(struct dialer *c, struct dialer_call *call)
{
	call->next_ns = UINT64_MAX;
	while (call->next < call->to.count && call->tried < DIALER_MAX_ATTEMPTS) {
		int r = judge_and_begin(c, call, call->next++);

		if (r == -EINPROGRESS)
			call->next_ns = c->now_ns + DIALER_NEXT_NS;
		if (r == 0 || r == -EINPROGRESS)
			return;
	}
	if (!is_trying(call))
		dialer_connect_give_up(c, call);
}

void dialer_connect(struct dialer *c, struct dialer_call *call)
{
	call->state = DIALER_CONNECTING;
	dialer_try_next(c, call);
}

static void dialer_hear_attempt(struct dialer *c, unsigned index, uint32_t tag)
{
	struct dialer_call *call = &c->calls[index / DIALER_MAX_ATTEMPTS];
	struct dialer_attempt *attempt = &call->attempts[index % DIALER_MAX_ATTEMPTS];
	int failure = 0;
	socklen_t size = sizeof(failure);

	if (call->state != DIALER_CONNECTING || attempt->fd < 0 || attempt->tag != tag)
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

/* --- answers --- */

/* A full socket of one asker must not delay the other. */

static void free_place(struct dialer *c, struct dialer_call *call)
{
	if (call->passed >= 0)
		close(take_fd(&call->passed));
	call->state = DIALER_FREE;
	c->channels[call->asker].count--;
	c->count--;
	while (c->end && c->calls[c->end - 1].state == DIALER_FREE)
		c->end--;
}

/* True: it has gone, and the call's place is free. */
static bool dialer_answer_send_answer(struct dialer *c, struct dialer_call *call)
{
	int channel = c->channels[call->asker].fd;
	int r = channel < 0 ? -EPIPE
			    : wire_send_message(
				      channel, &call->answer, sizeof(call->answer), call->passed);

	if (r == -EAGAIN)
		return false;
	/* As where too many descriptors are on their way: the answer can still be told. */
	if (r < 0 && r != -EPIPE && call->passed >= 0) {
		close(take_fd(&call->passed));
		call->answer.kind = WIRE_NET_FAILED;
		call->answer.reason = WIRE_BECAUSE_UNREACHABLE;
		snprintf(call->answer.other, sizeof(call->answer.other),
			"the connection could not be handed over: %s", strerror(-r));
		return dialer_answer_send_answer(c, call);
	}
	free_place(c, call);
	return true;
}

void dialer_answer(struct dialer *c, struct dialer_call *call, enum wire_decision_kind kind,
	enum wire_reason reason, const char *other, int passed)
{
	struct dialer_channel *channel = &c->channels[call->asker];

	dialer_stop(call);
	call->answer = (struct wire_called){
		.id = call->asked.id, .kind = (uint8_t)kind, .reason = (uint8_t)reason
	};
	snprintf(call->answer.other, sizeof(call->answer.other), "%s", other);
	call->passed = passed;
	call->state = DIALER_ANSWERED;
	if (channel->unsent || !dialer_answer_send_answer(c, call))
		channel->unsent++;
}

/* Sends the answers that had to wait. */
static void dialer_send_answers(struct dialer *c, enum dialer_asker asker)
{
	struct dialer_channel *channel = &c->channels[asker];

	for (unsigned i = 0; i < c->end && channel->unsent; i++) {
		struct dialer_call *call = &c->calls[i];

		if (call->state != DIALER_ANSWERED || call->asker != asker)
			continue;
		if (!dialer_answer_send_answer(c, call))
			return;
		channel->unsent--;
	}
}

/* The call was withdrawn. */
static void dialer_cancel(struct dialer *c, enum dialer_asker asker, uint32_t id)
{
	for (unsigned i = 0; i < c->end; i++) {
		struct dialer_call *call = &c->calls[i];

		if (call->state == DIALER_FREE || call->asker != asker || call->asked.id != id)
			continue;
		c->channels[asker].unsent -= call->state == DIALER_ANSWERED;
		dialer_stop(call);
		free_place(c, call);
		return;
	}
}

#define CHANNEL    GATE_FD_OTHER
#define MAX_EVENTS 64
#define NAMES_PORT 53

/* --- calls --- */

/* True for a host name in the form that rules have. */
static bool is_host_name(const char name[static WIRE_NAME_SIZE])
{
	size_t n = strnlen(name, WIRE_NAME_SIZE);
	char read[WIRE_NAME_SIZE];

	return n < WIRE_NAME_SIZE && gate_host_read_name(name, n, read) && str_eq(read, name);
}

/* The host's own loopback, for a port of it that is declared. */
static void connect_to_host(struct dialer *c, struct dialer_call *call)
{
	static const struct dialer_addresses loopback = { 2,
		{ { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 }, { [15] = 1 } } };

	call->to = loopback;
	call->is_host = true;
	dialer_connect(c, call);
}

static void connect_to_address(struct dialer *c, struct dialer_call *call)
{
	if (!wire_find_address(c->rules, call->asked.address, call->asked.port)) {
		dialer_answer(c, call, WIRE_NET_DENIED, WIRE_BECAUSE_ADDRESS, "", -1);
		return;
	}
	call->to.count = 1;
	memcpy(call->to.items[0], call->asked.address, sizeof(call->asked.address));
	dialer_connect(c, call);
}

static void connect_to_name(struct dialer *c, struct dialer_call *call)
{
	const char *name = call->asked.name;
	uint16_t port = call->asked.port;
	bool is_odd = !is_host_name(name);
	const struct wire_rule *rule =
		is_odd || !port ? NULL : wire_find_name(c->rules, name, port);

	if (rule && rule->is_host)
		connect_to_host(c, call);
	else if (rule && !rule->is_vault)
		dialer_find(c, call);
	else if (is_odd)
		dialer_answer(c, call, WIRE_NET_DENIED, WIRE_BECAUSE_ODD_NAME, "", -1);
	else if (wire_find_name(c->rules, name, 0))
		dialer_answer(c, call, WIRE_NET_DENIED, WIRE_BECAUSE_PORT, "", -1);
	else
		dialer_answer(c, call, WIRE_NET_DENIED, WIRE_BECAUSE_NAME, "", -1);
}

/* Takes host and port from the rules; the request only says which rule. */
static void connect_to_secret(struct dialer *c, struct dialer_call *call, uint32_t index)
{
	const struct wire_secret *secret = &c->rules->secrets[index];

	if (index >= c->rules->secret_count) {
		dialer_answer(c, call, WIRE_NET_DENIED, WIRE_BECAUSE_NO_SECRET, "", -1);
		return;
	}
	memcpy(call->asked.name, secret->host, sizeof(call->asked.name));
	call->asked.port = secret->port;
	dialer_find(c, call);
}

/* The vault has one more than its part: to be told that there are too many, or that one ends. */
static bool dialer_has_place(const struct dialer *c, enum dialer_asker asker)
{
	return c->count < DIALER_MAX_CALLS &&
	       (asker != DIALER_FOR_VAULT || c->channels[asker].count <= DIALER_MAX_VAULTS);
}

static struct dialer_call *dialer_find_free(struct dialer *c, enum dialer_asker asker)
{
	for (unsigned i = 0; i < DIALER_MAX_CALLS && dialer_has_place(c, asker); i++)
		if (c->calls[i].state == DIALER_FREE)
			return &c->calls[i];
	return NULL;
}

static void dialer_take_place(struct dialer *c, struct dialer_call *call, enum dialer_asker asker)
{
	unsigned index = (unsigned)(call - c->calls);

	memset(call, 0, sizeof(*call));
	call->asker = asker;
	call->deadline_ns = c->now_ns + DIALER_LIMIT_NS;
	call->passed = -1;
	for (size_t i = 0; i < DIALER_MAX_ATTEMPTS; i++)
		call->attempts[i].fd = -1;
	c->channels[asker].count++;
	c->count++;
	if (c->end <= index)
		c->end = index + 1;
}

/* One each: 0; -EAGAIN: that was all; -EPIPE: who asked is gone; -EBADMSG: it speaks nonsense. */
static int read_gates(struct dialer *c, struct dialer_call *call)
{
	struct wire_call asked = { 0 };
	int r = wire_receive_message(CHANNEL, &asked, sizeof(asked), NULL);

	if (r < 0)
		return r;
	dialer_take_place(c, call, DIALER_FOR_GATE);
	call->asked = asked;
	if (asked.has_address)
		connect_to_address(c, call);
	else
		connect_to_name(c, call);
	return 0;
}

static int read_vaults(struct dialer *c, struct dialer_call *call)
{
	struct wire_vault_call asked = { 0 };
	int r = wire_receive_message(c->channels[DIALER_FOR_VAULT].fd, &asked, sizeof(asked), NULL);

	if (r < 0)
		return r;
	if (asked.secret == WIRE_NO_SECRET) {
		dialer_cancel(c, DIALER_FOR_VAULT, asked.id);
		return 0;
	}
	dialer_take_place(c, call, DIALER_FOR_VAULT);
	call->asked.id = asked.id;
	if (c->channels[DIALER_FOR_VAULT].count > DIALER_MAX_VAULTS)
		dialer_answer(c, call, WIRE_NET_DENIED, WIRE_BECAUSE_MANY, "", -1);
	else
		connect_to_secret(c, call, asked.secret);
	return 0;
}

/* Reads as many calls as there are free slots. */
static int read_calls(struct dialer *c, enum dialer_asker asker)
{
	struct dialer_call *call;
	int r = 0;

	while (r == 0 && (call = dialer_find_free(c, asker)) != NULL)
		r = asker == DIALER_FOR_GATE ? read_gates(c, call) : read_vaults(c, call);
	return r == -EAGAIN ? 0 : r;
}

/* --- waiting --- */

static void dialer_end_call(struct dialer *c, struct dialer_call *call)
{
	enum wire_reason reason =
		call->state == DIALER_NAMING ? WIRE_BECAUSE_RESOLVER : WIRE_BECAUSE_UNREACHABLE;

	dialer_answer(c, call, WIRE_NET_FAILED, reason, "no answer within 15 s", -1);
}

static bool is_under_way(const struct dialer_call *call)
{
	return call->state == DIALER_NAMING || call->state == DIALER_CONNECTING;
}

static void look_at_times(struct dialer *c)
{
	dialer_hear_names(c, -1, 0);
	for (unsigned i = 0; i < c->end; i++) {
		struct dialer_call *call = &c->calls[i];

		if (is_under_way(call) && call->deadline_ns <= c->now_ns)
			dialer_end_call(c, call);
		else if (call->state == DIALER_CONNECTING && call->next_ns <= c->now_ns)
			dialer_try_next(c, call);
	}
}

/* Returns the timeout in milliseconds, rounded up; -1: nothing is under way. */
static int next_time(const struct dialer *c)
{
	uint64_t ns = dialer_names_wait(c, UINT64_MAX);

	for (unsigned i = 0; i < c->end; i++) {
		const struct dialer_call *call = &c->calls[i];
		uint64_t at = call->deadline_ns;

		if (!is_under_way(call))
			continue;
		if (call->state == DIALER_CONNECTING && call->next_ns < at)
			at = call->next_ns;
		at = at > c->now_ns ? at - c->now_ns : 0;
		if (at < ns)
			ns = at;
	}
	return ns == UINT64_MAX ? -1 : (int)((ns + 999999) / 1000000);
}

/* Calls only while there is a place for one, and the way out while something waits for it. */
static int watch_channel(struct dialer *c, enum dialer_asker asker)
{
	struct dialer_channel *channel = &c->channels[asker];
	struct epoll_event event = { .data.u64 = (uint64_t)asker << 32 };

	if (dialer_has_place(c, asker))
		event.events |= EPOLLIN;
	if (channel->unsent)
		event.events |= EPOLLOUT;
	if (channel->fd < 0 || event.events == channel->interest)
		return 0;
	channel->interest = event.events;
	return epoll_ctl(c->epoll, EPOLL_CTL_MOD, channel->fd, &event) < 0 ? -errno : 0;
}

static int hear_asker(struct dialer *c, enum dialer_asker asker, uint32_t events)
{
	if (events & (EPOLLHUP | EPOLLERR))
		return -EPIPE;
	if (events & EPOLLOUT)
		dialer_send_answers(c, asker);
	return events & EPOLLIN ? read_calls(c, asker) : 0;
}

/* The network goes on without it; what it asked for is answered to nobody. */
static void lose_vault(struct dialer *c)
{
	if (c->channels[DIALER_FOR_VAULT].fd >= 0)
		close(take_fd(&c->channels[DIALER_FOR_VAULT].fd));
	dialer_send_answers(c, DIALER_FOR_VAULT);
}

static int dialer_hear(struct dialer *c, const struct epoll_event *event)
{
	unsigned source = (unsigned)(event->data.u64 >> 32);
	uint32_t rest = (uint32_t)event->data.u64;

	if (source >= DIALER_FROM_ATTEMPT)
		dialer_hear_attempt(c, source - DIALER_FROM_ATTEMPT, rest);
	else if (source == DIALER_FROM_NAMES)
		dialer_hear_names(c, (int)rest, event->events);
	else if (source == DIALER_FROM_GATE)
		return hear_asker(c, DIALER_FOR_GATE, event->events);
	else if (hear_asker(c, DIALER_FOR_VAULT, event->events) < 0)
		lose_vault(c);
	return 0;
}

/* Until the channel ends: -EPIPE. */
static int dialer_serve(struct dialer *c)
{
	struct epoll_event events[MAX_EVENTS];
	int r = 0;

	while (r == 0) {
		int n = epoll_wait(c->epoll, events, MAX_EVENTS, next_time(c));

		if (n < 0 && errno != EINTR)
			return -errno;
		c->now_ns = clock_ns();
		for (int i = 0; i < n && r == 0; i++)
			r = dialer_hear(c, &events[i]);
		if (r == 0) {
			look_at_times(c);
			r = watch_channel(c, DIALER_FOR_GATE);
		}
		if (r == 0)
			r = watch_channel(c, DIALER_FOR_VAULT);
	}
	return r;
}

/* --- the beginning --- */

/* Nothing of the keeper's but what was meant for us; not its terminal either. */
static int dialer_close_others(struct err *e)
{
	int nothing = file_open("/dev/null", O_RDWR);
	int r = nothing < 0 ? nothing : 0;

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && r == 0; fd++)
		r = dup2(nothing, fd) < 0 ? -errno : 0;
	/* `nothing` is among them. */
	if (r == 0 && (close_range(STDERR_FILENO + 1, CHANNEL - 1, 0) < 0 ||
			      close_range(GATE_FD_RULES + 1, GATE_FD_VAULT - 1, 0) < 0 ||
			      close_range(GATE_FD_VAULT + 1, ~0U, 0) < 0))
		r = -errno;
	return r < 0 ? err_sys(e, -r, "cannot close descriptors") : 0;
}

static int open_channel(struct dialer *c, enum dialer_asker asker, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = (uint64_t)asker << 32 };
	int flags = fcntl(fd, F_GETFL);

	c->channels[asker] = (struct dialer_channel){ .fd = fd, .interest = event.events };
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
		epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		return -errno;
	return 0;
}

static int open_channels(struct dialer *c, struct err *e)
{
	int r = 0;

	c->channels[DIALER_FOR_VAULT].fd = -1;
	/* Without a vault this descriptor is something else, if anything. */
	if (!c->rules->secret_count)
		close(GATE_FD_VAULT);
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (c->epoll < 0)
		r = -errno;
	if (r == 0)
		r = open_channel(c, DIALER_FOR_GATE, CHANNEL);
	if (r == 0 && c->rules->secret_count)
		r = open_channel(c, DIALER_FOR_VAULT, GATE_FD_VAULT);
	return r < 0 ? err_sys(e, -r, "cannot listen to the gate") : 0;
}

/* Every port of the rules once, and that of names. */
static size_t list_ports(const struct wire_rules *rules, uint16_t ret[static UINT16_MAX + 1])
{
	static bool is_listed[UINT16_MAX + 1];
	size_t count = 0;

	ret[count++] = NAMES_PORT;
	is_listed[NAMES_PORT] = true;
	for (uint32_t i = 0; i < rules->rule_count + rules->secret_count; i++) {
		const struct wire_rule *rule = i < rules->rule_count ? &rules->rules[i] : NULL;
		uint16_t port = rule ? rule->port : rules->secrets[i - rules->rule_count].port;

		if (!is_listed[port] && !(rule && rule->is_vault)) {
			ret[count++] = port;
			is_listed[port] = true;
		}
	}
	return count;
}

static int dialer_confine(const struct dialer *c, struct err *e)
{
	/* c-ares reads the first one for each name; the others it has read. */
	static const char *const readable[] = { "/etc/hosts", "/etc/resolv.conf",
		"/etc/nsswitch.conf", "/etc/host.conf", NULL };
	static uint16_t ports[UINT16_MAX + 1];
	const struct gate_wall wall = { .filter = &filter_dialer,
		.is_root = geteuid() == 0,
		.readable = readable,
		.ports = ports,
		.port_count = list_ports(c->rules, ports),
		.max_files = DIALER_MAX_FILES,
		.channel = CHANNEL };

	return gate_confine(&wall, c->rules, e);
}

static int dialer_start(struct dialer *c, struct err *e)
{
	int r = dialer_close_others(e);

	if (r < 0)
		return r;
	c->rules = gate_map_rules(GATE_FD_RULES, e);
	close(GATE_FD_RULES);
	if (!c->rules)
		return -EINVAL;
	if ((r = open_channels(c, e)) < 0 || (r = dialer_names_open(c, e)) < 0)
		return r;
	return dialer_confine(c, e);
}

int dialer_main(void)
{
	static struct dialer c;
	struct err e = { 0 };
	struct wire_called ready = { .id = WIRE_DIALER_READY, .kind = WIRE_NET_ALLOWED };
	int r = dialer_start(&c, &e);

	if (r < 0) {
		ready.kind = WIRE_NET_FAILED;
		ready.reason = WIRE_BECAUSE_UNREACHABLE;
		snprintf(ready.other, sizeof(ready.other), "%.*s", WIRE_NAME_SIZE - 1, e.text);
	}
	if (wire_send_message(CHANNEL, &ready, sizeof(ready), -1) < 0 || r < 0)
		return EXIT_FAILURE;
	return dialer_serve(&c) == -EPIPE ? EXIT_SUCCESS : EXIT_FAILURE;
}
