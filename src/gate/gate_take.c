/*
 * gate_take - how connections reach the gate: from the cage, from the host at published ports; and
 * attempts at ports where nobody listens.
 *
 * Runs as:     the gate.
 * Enters with: listening sockets of the host's network, made by the keeper; a raw socket, opened
 *              before the gate's wall, that shows the cage's network only.
 * Must not:    believe anything but the address that the kernel says a connection went to; read
 *              what is said on connections to the vault, or wait for the vault: whoever reads an
 *              agent's words has no key, and whoever has one reads them in a process of its own.
 *
 * The kernel has refused an attempt at a closed port already. It is noted so that the operator
 * learns of it, and from whom the agent hears what to ask for.
 */
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/count.h"
#include "base/own.h"
#include "gate/dns/gate_address.h"
#include "gate/gate_inside.h"
#include "wire/wire.h"

#define MAX_AT_ONCE 64 /* so that no source keeps the others waiting */

/* --- to the vault --- */

int gate_vault_await(struct gate *g, struct err *e)
{
	struct wire_vault_message m = { 0 };
	int r = wire_receive_message(GATE_FD_VAULT, &m, sizeof(m), NULL);

	err_end_texts(&m.err);
	if (r < 0 || (m.kind != WIRE_VAULT_READY && !m.err.text[0]))
		return err_set(e, ERR_SYS, EPIPE,
			"cannot start the vault, which holds the keys of secrets");
	if (m.kind != WIRE_VAULT_READY) {
		*e = m.err;
		e->kind = m.err.kind == ERR_REFUSED ? ERR_REFUSED : ERR_SYS;
		return -EPIPE;
	}
	g->has_vault = true;
	for (uint32_t i = 0; i < WIRE_MAX_SECRETS; i++)
		g->vault_rows[i] = -1;
	return 0;
}

static void gate_vault_pass(struct gate *g, struct gate_conn *c)
{
	struct wire_visit visit = { 0 };
	int r = g->has_vault ? wire_send_message(GATE_FD_VAULT, &visit, sizeof(visit), c->inside)
			     : -EPIPE;

	if (r == 0) {
		gate_conn_end(g, c, true);
		return;
	}
	/* It is asked for what it wants, so that it can be told in its own words why not. */
	c->denied = r == -EPIPE ? WIRE_BECAUSE_NO_VAULT : WIRE_BECAUSE_MANY;
	c->row = gate_rows_add(&g->rows, r == -EPIPE ? WIRE_NET_FAILED : WIRE_NET_DENIED, c->denied,
		WIRE_HTTP, c->name, c->port, "");
	c->deadline_ns = g->now_ns + GATE_DENY_NS;
	if (gate_add_conn(g, c, true) < 0)
		gate_conn_end(g, c, false);
	else
		gate_hear_head(g, c);
}

static void take_decided(struct gate *g, const struct wire_vault_message *m)
{
	enum wire_decision_kind kind = (enum wire_decision_kind)m->decided;
	enum wire_reason reason = (enum wire_reason)m->reason;

	if (m->decided > WIRE_NET_FAILED || m->reason >= WIRE_REASON_COUNT)
		return;
	if (m->secret >= g->rules->secret_count) {
		gate_rows_add(&g->rows, kind, reason, WIRE_HTTP, WIRE_HOST_NAME, WIRE_VAULT_PORT,
			m->other);
		return;
	}
	reason = m->decided == WIRE_NET_ALLOWED ? WIRE_BECAUSE_ALLOWED : reason;
	if (kind == WIRE_NET_ALLOWED)
		g->vault_rows[m->secret] = gate_rows_add_secret(
			&g->rows, kind, reason, &g->rules->secrets[m->secret], m->other);
	else
		gate_rows_add_secret(
			&g->rows, kind, reason, &g->rules->secrets[m->secret], m->other);
}

/* The keys are gone with it, and nobody else has them. */
static void lose(struct gate *g)
{
	g->has_vault = false;
	close(GATE_FD_VAULT);
	if (!g->is_ending)
		gate_rows_add(&g->rows, WIRE_NET_FAILED, WIRE_BECAUSE_NO_VAULT, WIRE_HTTP,
			WIRE_HOST_NAME, WIRE_VAULT_PORT, "");
}

void gate_hear_vault(struct gate *g)
{
	struct wire_vault_message m = { 0 };
	int r = 0;

	for (int i = 0; g->has_vault && r == 0 && i < MAX_AT_ONCE; i++) {
		r = wire_receive_message(GATE_FD_VAULT, &m, sizeof(m), NULL);
		m.other[sizeof(m.other) - 1] = '\0';
		if (r == 0 && m.kind == WIRE_VAULT_DECIDED)
			take_decided(g, &m);
		else if (r == 0 && m.kind == WIRE_VAULT_PASSED && m.secret < g->rules->secret_count)
			gate_rows_add_bytes(
				&g->rows, g->vault_rows[m.secret], m.bytes_out, m.bytes_in);
		else if (r < 0 && r != -EAGAIN)
			lose(g);
	}
}

void gate_vault_end(struct gate *g)
{
	if (g->has_vault)
		shutdown(GATE_FD_VAULT, SHUT_WR);
}

/* --- from the cage --- */

/*
 * What an address means: the name it stands for, or NULL, and the rule for it at this port. Without
 * a rule, the reason why there is none.
 */
static enum wire_reason gate_judge(const struct gate *g, const uint8_t address[static 16],
	uint16_t port, const char **ret_name, const struct wire_rule **ret_rule)
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

static int gate_accept(int listener)
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

/* --- from the host --- */

#define CONNECT_NS (10 * GATE_SECOND_NS)

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

/* No server listens at 127.0.0.1; one that was given "localhost" may listen at ::1. */
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

/* --- attempts that reach no socket --- */

#define SEEN  64 /* bytes: the headers */
#define RESET 0x04

/*
 * Raw sockets, not packet sockets: the kernel takes some milliseconds to close one of those, and a
 * run would end later by as much.
 *
 * A jump names how many lines it passes over. Offsets are those of the IP header, and without
 * options or extensions, which no ordinary client sends: other packets are passed over.
 */
#define AT(n)           ((uint32_t)SKF_NET_OFF + (n))
#define BYTE(at)        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, AT(at))
#define HALF(at)        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, AT(at))
#define WORD(at)        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, AT(at))
#define IS(v, yes, no)  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (v), (yes), (no))
#define HAS(v, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (v), (yes), (no))
#define RETURN(n)       BPF_STMT(BPF_RET | BPF_K, (n))

/*
 * Resets that answer a first packet, which have the number 0; and datagrams, but for questions to
 * the name server and its answers. Nothing of 127.0.0.0/8 and ::1: these are the cage's own.
 */
/* clang-format off */
static struct sock_filter v4_tcp[] = {
	BYTE(0),  IS(0x45, 0, 6),    /* header without options */
	BYTE(33), HAS(RESET, 0, 4),  /* flags */
	WORD(24), IS(0, 0, 2),       /* number */
	BYTE(12), IS(127, 0, 1),     /* from */
	RETURN(0), RETURN(SEEN),
};

static struct sock_filter v4_udp[] = {
	BYTE(0),  IS(0x45, 0, 6),
	HALF(20), IS(53, 4, 0),      /* port that it is from, … */
	HALF(22), IS(53, 2, 0),      /* … and to */
	BYTE(16), IS(127, 0, 1),     /* to */
	RETURN(0), RETURN(SEEN),
};

static struct sock_filter v6_tcp[] = {
	BYTE(6),  IS(IPPROTO_TCP, 0, 6),
	BYTE(53), HAS(RESET, 0, 4),
	WORD(44), IS(0, 0, 2),
	WORD(8),  IS(0, 0, 1),       /* how ::1 begins, and no address of the world */
	RETURN(0), RETURN(SEEN),
};

static struct sock_filter v6_udp[] = {
	BYTE(6),  IS(IPPROTO_UDP, 0, 6),
	HALF(40), IS(53, 4, 0),
	HALF(42), IS(53, 2, 0),
	WORD(24), IS(0, 0, 1),
	RETURN(0), RETURN(SEEN),
};
/* clang-format on */

#define PROGRAM(p) .program = (p), .count = COUNT_OF(p)

static const struct {
	int family, protocol;
	struct sock_filter *program;
	unsigned short count;
} kinds[GATE_WATCH_COUNT] = {
	{ AF_INET, IPPROTO_TCP, PROGRAM(v4_tcp) },
	{ AF_INET, IPPROTO_UDP, PROGRAM(v4_udp) },
	{ AF_INET6, IPPROTO_TCP, PROGRAM(v6_tcp) },
	{ AF_INET6, IPPROTO_UDP, PROGRAM(v6_udp) },
};

static int watch_open_socket(size_t i)
{
	struct sock_fprog filter = { .len = kinds[i].count, .filter = kinds[i].program };
	bool is_v6 = kinds[i].family == AF_INET6;
	own_fd int fd = -1;
	int on = 1;

	fd = wire_socket(kinds[i].family, SOCK_RAW | SOCK_NONBLOCK, kinds[i].protocol);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) < 0 ||
		setsockopt(fd, is_v6 ? IPPROTO_IPV6 : IPPROTO_IP,
			is_v6 ? IPV6_RECVPKTINFO : IP_PKTINFO, &on, sizeof(on)) < 0)
		return -errno;
	return take_fd(&fd);
}

int gate_watch_open(struct gate_net *net, struct err *e)
{
	net->watch_count = net->has_v6 ? GATE_WATCH_COUNT : GATE_WATCH_COUNT / 2;
	for (size_t i = 0; i < net->watch_count; i++) {
		net->watches[i] = watch_open_socket(i);
		if (net->watches[i] < 0)
			return err_sys(e, -net->watches[i], "cannot watch the cage's network");
	}
	return 0;
}

/* --- what is seen --- */

/* The packet's destination, from the kernel's control message. */
static bool read_destination(struct msghdr *h, uint8_t ret[static 16])
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
		struct sockaddr_in v4 = { .sin_family = AF_INET };
		struct sockaddr_storage to = { 0 };
		struct in6_pktinfo v6_info;
		struct in_pktinfo v4_info;
		uint16_t port;

		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			memcpy(&v6_info, CMSG_DATA(c), sizeof(v6_info));
			v6.sin6_addr = v6_info.ipi6_addr;
			memcpy(&to, &v6, sizeof(v6));
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			memcpy(&v4_info, CMSG_DATA(c), sizeof(v4_info));
			v4.sin_addr = v4_info.ipi_addr;
			memcpy(&to, &v4, sizeof(v4));
		}
		if (gate_address_read(&to, ret, &port))
			return true;
	}
	return false;
}

/*
 * The address and the port that were tried. A reset comes from there; a datagram goes there. Of
 * IPv4 the header is shown too, and has 20 bytes.
 */
static bool read_attempt(size_t kind, struct msghdr *h, const uint8_t *bytes, size_t n,
	uint8_t address[static 16], uint16_t *ret_port)
{
	const struct sockaddr_storage *from = h->msg_name;
	bool is_tcp = kinds[kind].protocol == IPPROTO_TCP;
	size_t at = (kinds[kind].family == AF_INET ? 20U : 0U) + (is_tcp ? 0U : 2U);
	uint16_t unused;

	if (n < at + 2)
		return false;
	*ret_port = (uint16_t)(bytes[at] << 8 | bytes[at + 1]);
	return is_tcp ? gate_address_read(from, address, &unused) : read_destination(h, address);
}

static void watch_note(struct gate *g, enum wire_protocol protocol,
	const uint8_t address[static 16], uint16_t port)
{
	const struct wire_rule *rule;
	char text[GATE_ADDRESS_TEXT];
	const char *name;
	enum wire_reason reason = gate_judge(g, address, port, &name, &rule);

	if (protocol == WIRE_UDP)
		reason = WIRE_BECAUSE_UDP;
	else if (rule)
		return; /* allowed: the cage has taken the port for itself, and refused */
	gate_address_print(address, text);
	gate_rows_add(&g->rows, WIRE_NET_DENIED, reason, protocol, name ? name : text, port, "");
}

void gate_hear_watch(struct gate *g, uint32_t index)
{
	for (int i = 0; i < MAX_AT_ONCE; i++) {
		uint8_t bytes[SEEN], address[16];
		struct sockaddr_storage from = { 0 };
		char beside[CMSG_SPACE(sizeof(struct in6_pktinfo))];
		struct iovec part = { bytes, sizeof(bytes) };
		struct msghdr h = { .msg_name = &from,
			.msg_namelen = sizeof(from),
			.msg_iov = &part,
			.msg_iovlen = 1,
			.msg_control = beside,
			.msg_controllen = sizeof(beside) };
		ssize_t n = recvmsg(g->net.watches[index], &h, 0);
		uint16_t port;

		if (n < 0)
			return;
		if (read_attempt(index, &h, bytes, (size_t)n, address, &port))
			watch_note(g, kinds[index].protocol == IPPROTO_TCP ? WIRE_TCP : WIRE_UDP,
				address, port);
	}
}
