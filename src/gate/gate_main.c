/*
 * gate - the process between the cage and the world.
 *
 * Runs as:     a fresh start of bawn's program by the keeper; unprivileged, also where the keeper
 *              is root.
 * Enters with: the descriptors of enum gate_fd, and no memory of the keeper's.
 * Leaves:      what it decided, told to the keeper; no connection.
 * Must not:    read a byte of the cage's before its wall stands; allocate after that; outlive the
 *              keeper. When it ends, for whatever reason, its sockets end with it, and with them
 *              the network of the cage.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "gate/dns/gate_address.h"
#include "gate/gate_inside.h"
#include "wire/wire.h"

/* --- the cage's network --- */

/*
 * Furnished before the gate's wall, with rights over it: root's, or those of whoever made its user
 * namespace. In it loopback is all there is, every address of the world leads to this machine, and
 * the gate listens. Nobody in the cage can take a port below 1024: there the gate listens at every
 * address, and so sees attempts to reach any. At a port that the cage may want for itself it
 * listens only where a name stands for it, if the rules are such that these can be counted.
 */

#define FIRST_COMMON  1024
#define MAX_ADDRESSES 64 /* of one port, to listen at each */
#define BACKLOG       512

static int net_fail(struct err *e, const char *what)
{
	return err_sys(e, errno, "cannot make the cage's network: %s", what);
}

/* --- addresses and routes --- */

/* A request to the kernel's tables, with room for two addresses. */
struct request {
	struct nlmsghdr head;
	union {
		struct rtmsg route;
		struct ifaddrmsg address;
	};
	char attributes[64];
};

static void add_attribute(struct request *q, unsigned short type, const void *value, size_t n)
{
	struct rtattr *a = (struct rtattr *)((char *)q + NLMSG_ALIGN(q->head.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(n);
	memcpy(RTA_DATA(a), value, n);
	q->head.nlmsg_len = NLMSG_ALIGN(q->head.nlmsg_len) + (unsigned)RTA_ALIGN(a->rta_len);
}

static int net_ask(int tables, struct request *q, const char *what, struct err *e)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char rest[256];
	} reply;
	ssize_t n;

	q->head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
	if (send(tables, q, q->head.nlmsg_len, 0) < 0)
		return net_fail(e, what);
	n = recv(tables, &reply, sizeof(reply), 0);
	if (n < (ssize_t)(sizeof(reply.head) + sizeof(int)) || reply.head.nlmsg_type != NLMSG_ERROR)
		return net_fail(e, what);
	errno = -reply.error.error;
	return errno && errno != EEXIST ? net_fail(e, what) : 0;
}

/* An address beside 127.0.0.1 and ::1: without one libraries believe that there is no network. */
static int add_address(int tables, int family, const uint8_t *address, struct err *e)
{
	size_t size = family == AF_INET ? 4 : 16;
	struct request q = { .head = { .nlmsg_len = NLMSG_LENGTH(sizeof(q.address)),
				     .nlmsg_type = RTM_NEWADDR },
		.address = { .ifa_family = (uint8_t)family,
			.ifa_prefixlen = (uint8_t)(8 * size),
			.ifa_flags = IFA_F_NODAD,
			.ifa_index = GATE_LOOPBACK } };

	add_attribute(&q, IFA_LOCAL, address, size);
	add_attribute(&q, IFA_ADDRESS, address, size);
	return net_ask(tables, &q, "its address", e);
}

/* Everything is here. */
static int add_route(int tables, int family, struct err *e)
{
	struct request q = { .head = { .nlmsg_len = NLMSG_LENGTH(sizeof(q.route)),
				     .nlmsg_type = RTM_NEWROUTE },
		.route = { .rtm_family = (uint8_t)family,
			.rtm_table = RT_TABLE_LOCAL,
			.rtm_protocol = RTPROT_BOOT,
			.rtm_scope = RT_SCOPE_HOST,
			.rtm_type = RTN_LOCAL } };
	uint32_t out = GATE_LOOPBACK;

	add_attribute(&q, RTA_OIF, &out, sizeof(out));
	return net_ask(tables, &q, "its routes", e);
}

/*
 * Nothing is lost or shared on a loopback. A host that paces what it sends, as with bbr, would have
 * a timer run for every packet; reno is in every kernel and does not. It is no harm if this fails.
 */
static void hurry(void)
{
	own_fd int fd = file_open("/proc/sys/net/ipv4/tcp_congestion_control", O_WRONLY);

	if (fd >= 0)
		(void)file_write_all(fd, "reno", 4);
}

static int furnish(struct gate_net *net, struct err *e)
{
	own_fd int any = wire_socket(AF_INET, SOCK_DGRAM, 0);
	own_fd int tables = wire_socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	struct ifreq up = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	uint8_t v4[4], v6[16];
	int r;

	if (any < 0 || tables < 0 || ioctl(any, SIOCSIFFLAGS, &up) < 0)
		return net_fail(e, "loopback");
	hurry();
	gate_book_v4(-1, v4);
	gate_book_v6(-1, v6);
	r = add_address(tables, AF_INET, v4, e);
	if (r == 0)
		r = add_route(tables, AF_INET, e);
	if (r < 0 || !net->has_v6)
		return r;
	r = add_address(tables, AF_INET6, v6, e);
	/* Known to the kernel and switched off (disable_ipv6): then there is none. */
	net->has_v6 = r != -EACCES;
	if (!net->has_v6)
		return 0;
	return r == 0 ? add_route(tables, AF_INET6, e) : r;
}

/* --- listening --- */

/* Listens at an address, or with NULL at all of both families. Returns a descriptor or -errno. */
static int net_open_socket(
	const struct gate_net *net, int type, const uint8_t *address, uint16_t port, struct err *e)
{
	static const uint8_t any_v4[16] = { [10] = 0xff, 0xff };
	struct sockaddr_storage at = { 0 };
	own_fd int fd = -1;
	int on = 1, off = 0;

	if (address)
		gate_address_write(address, port, &at);
	else if (net->has_v6)
		*(struct sockaddr_in6 *)&at =
			(struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(port) };
	else
		gate_address_write(any_v4, port, &at);
	fd = wire_socket(at.ss_family, type | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return net_fail(e, "a socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (at.ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	/* A route makes an address ours, which is not enough to take it. */
	setsockopt(fd, at.ss_family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP,
		at.ss_family == AF_INET6 ? IPV6_FREEBIND : IP_FREEBIND, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&at,
		    at.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					     : sizeof(struct sockaddr_in)) < 0)
		return err_sys(e, errno, "cannot make the cage's network: port %u", port);
	if (type == SOCK_STREAM && listen(fd, BACKLOG) < 0)
		return net_fail(e, "listening");
	return take_fd(&fd);
}

static int listen_at(struct gate_net *net, const uint8_t *address, uint16_t port, struct err *e)
{
	int fd;

	if (net->listener_count == GATE_MAX_LISTENERS)
		return err_set(e, ERR_REFUSED, ENOSPC,
			"cannot listen for network.allow: it names more than %d ports",
			GATE_MAX_LISTENERS);
	fd = net_open_socket(net, SOCK_STREAM, address, port, e);
	if (fd < 0)
		return fd;
	net->listeners[net->listener_count++] = (struct gate_listener){ fd, port };
	return 0;
}

static int listen_at_name(
	struct gate_net *net, struct gate_book *book, const struct wire_rule *rule, struct err *e)
{
	uint8_t address[16] = { [10] = 0xff, 0xff };
	int index = gate_book_add(book, rule->name), r;

	if (index < 0)
		return err_set(e, ERR_REFUSED, ENOSPC,
			"cannot use network.allow: it has more than %d names", GATE_MAX_NAMES);
	gate_book_v4(index, address + 12);
	r = listen_at(net, address, rule->port, e);
	if (r < 0 || !net->has_v6)
		return r;
	gate_book_v6(index, address);
	return listen_at(net, address, rule->port, e);
}

/* True if the gate may listen at each address of a port and leave the others to the cage. */
static bool is_countable(const struct wire_rules *rules, uint16_t port)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < rules->rule_count; i++) {
		const struct wire_rule *rule = &rules->rules[i];

		if (rule->port == port && (!rule->name[0] || rule->is_wildcard))
			return false;
		n += rule->port == port;
	}
	return port >= FIRST_COMMON && n <= MAX_ADDRESSES;
}

static bool is_listening(const struct gate_net *net, uint16_t port)
{
	for (uint32_t i = 0; i < net->listener_count; i++)
		if (net->listeners[i].port == port)
			return true;
	return false;
}

static int listen_for(struct gate_net *net, struct gate_book *book, const struct wire_rules *rules,
	const struct wire_rule *rule, struct err *e)
{
	if (is_countable(rules, rule->port))
		return listen_at_name(net, book, rule, e);
	return is_listening(net, rule->port) ? 0 : listen_at(net, NULL, rule->port, e);
}

/* Port 80 and 443 are where a client says what it wants, and so hears why it does not get it. */
static int net_listen_to_all(
	struct gate_net *net, struct gate_book *book, const struct wire_rules *rules, struct err *e)
{
	static const uint16_t always[] = { GATE_PORT_OF_NAMES, 80, 443 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < COUNT_OF(always); i++)
		r = listen_at(net, NULL, always[i], e);
	for (uint32_t i = 0; r == 0 && i < rules->rule_count; i++)
		r = listen_for(net, book, rules, &rules->rules[i], e);
	return r;
}

/* The reply has to come from the address that was asked, which may be any. */
static int open_names(struct gate_net *net, struct err *e)
{
	int on = 1;

	net->names = net_open_socket(net, SOCK_DGRAM, NULL, GATE_PORT_OF_NAMES, e);
	if (net->names < 0)
		return net->names;
	if (setsockopt(net->names, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on)) < 0 ||
		(net->has_v6 && setsockopt(net->names, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on,
					sizeof(on)) < 0))
		return net_fail(e, "the name server");
	return 0;
}

static bool has_v6(void)
{
	own_fd int fd = wire_socket(AF_INET6, SOCK_STREAM, 0);

	return fd >= 0;
}

/* Root has its rights over every network; others get theirs in the user namespace they made. */
static int net_join(int cage, struct err *e)
{
	int spaces = geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET;

	if (setns(cage, spaces) < 0)
		return err_sys(e, errno, "cannot enter the cage's network");
	return 0;
}

/* Joins the network of the cage, makes every address in it lead to us, and listens. */
static int gate_net_open(struct gate_net *net, struct gate_book *book,
	const struct wire_rules *rules, int cage, struct err *e)
{
	int r = net_join(cage, e);

	net->has_v6 = has_v6();
	if (r == 0)
		r = furnish(net, e);
	if (r == 0)
		r = open_names(net, e);
	if (r == 0)
		r = net_listen_to_all(net, book, rules, e);
	if (r == 0)
		r = gate_watch_open(net, e);
	return r;
}

#define MAX_EVENTS   256
#define SWEEP_NS     (GATE_SECOND_NS / 4)
#define TELL_NS      (GATE_SECOND_NS / 50) /* between two tellings: a flood is one row, not many */
#define LAST_NS      (2 * GATE_SECOND_NS)
#define RESERVED     64 /* descriptors for all that is not a connection */
#define PER_CONN     6  /* two sockets, and a pipe for each way */
#define WANTED_FILES (PER_CONN * GATE_MAX_CONNS + GATE_MAX_LISTENERS + GATE_MAX_ASKERS + RESERVED)

/* --- events --- */

static int main_add(
	struct gate *g, int fd, enum gate_source source, uint32_t index, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u64 = (uint64_t)source << 32 | index };

	return epoll_ctl(g->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int gate_add_source(struct gate *g, int fd, enum gate_source source, uint32_t index)
{
	return main_add(g, fd, source, index, EPOLLIN);
}

int gate_add_conn(struct gate *g, const struct gate_conn *c, bool is_inside)
{
	return main_add(g, is_inside ? c->inside : c->outside,
		is_inside ? GATE_FROM_INSIDE : GATE_FROM_OUTSIDE, (uint32_t)(c - g->conns),
		EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET);
}

static void main_hear(struct gate *g, const struct epoll_event *event)
{
	uint32_t index = (uint32_t)event->data.u64;

	switch ((enum gate_source)(event->data.u64 >> 32)) {
	case GATE_FROM_KEEPER:
		/* It never says anything but that it is over. */
		g->is_ending = true;
		epoll_ctl(g->epoll, EPOLL_CTL_DEL, GATE_FD_KEEPER, NULL);
		return;
	case GATE_FROM_DIALER:
		gate_hear_dialer(g);
		return;
	case GATE_FROM_VAULT:
		gate_hear_vault(g);
		return;
	case GATE_FROM_NAMES:
		gate_answer_datagrams(g);
		return;
	case GATE_FROM_WATCH:
		gate_hear_watch(g, index);
		return;
	case GATE_FROM_LISTENER:
		gate_take_conns(g, index);
		return;
	case GATE_FROM_PUBLISH:
		gate_take_published(g, index);
		return;
	case GATE_FROM_ASKER:
		gate_hear_asker(g, index);
		return;
	case GATE_FROM_INSIDE:
	case GATE_FROM_OUTSIDE:
		gate_hear_conn(g, index, event->data.u64 >> 32 == GATE_FROM_INSIDE, event->events);
		return;
	}
}

static int main_listen_to_all(struct gate *g)
{
	int r = 0;

	g->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (g->epoll < 0)
		return -errno;
	r = main_add(g, GATE_FD_KEEPER, GATE_FROM_KEEPER, 0, EPOLLIN | EPOLLRDHUP);
	if (r == 0)
		r = main_add(g, GATE_FD_OTHER, GATE_FROM_DIALER, 0, EPOLLIN | EPOLLOUT | EPOLLET);
	if (r == 0 && g->rules->secret_count)
		r = gate_add_source(g, GATE_FD_VAULT, GATE_FROM_VAULT, 0);
	if (r == 0)
		r = gate_add_source(g, g->net.names, GATE_FROM_NAMES, 0);
	for (uint32_t i = 0; r == 0 && i < g->net.watch_count; i++)
		r = gate_add_source(g, g->net.watches[i], GATE_FROM_WATCH, i);
	for (uint32_t i = 0; r == 0 && i < g->net.listener_count; i++)
		r = gate_add_source(g, g->net.listeners[i].fd, GATE_FROM_LISTENER, i);
	for (uint32_t i = 0; r == 0 && i < g->rules->publish_count; i++)
		r = gate_add_source(g, GATE_FD_PUBLISH + (int)i, GATE_FROM_PUBLISH, i);
	return r;
}

/* --- the loop --- */

static int main_wait_ms(const struct gate *g)
{
	if (g->ready_count)
		return 0;
	if (g->rows.is_behind)
		return (int)(TELL_NS / 1000000);
	return g->is_ending ? 10 : g->conn_count || g->has_askers ? (int)(SWEEP_NS / 1000000) : -1;
}

/* Asked to end, the gate still passes on the bytes that it has, until a deadline. */
static bool goes_on(struct gate *g)
{
	if (!g->has_dialer || !g->is_ending)
		return g->has_dialer;
	if (!g->end_ns) {
		g->end_ns = g->now_ns + LAST_NS;
		gate_vault_end(g);
	}
	gate_end_said(g);
	return (g->conn_count || g->has_vault) && g->now_ns < g->end_ns;
}

/* Until the keeper says so or is gone, or the dialer is gone. */
static int main_serve(struct gate *g)
{
	struct epoll_event events[MAX_EVENTS];
	uint64_t swept_ns = 0, told_ns = 0;

	while (goes_on(g)) {
		int n = epoll_wait(g->epoll, events, MAX_EVENTS, main_wait_ms(g));

		if (n < 0 && errno != EINTR)
			return -errno;
		g->now_ns = clock_ns();
		for (int i = 0; i < n; i++)
			main_hear(g, &events[i]);
		gate_go_on(g);
		if (g->now_ns - swept_ns > SWEEP_NS) {
			swept_ns = g->now_ns;
			gate_drop_old_conns(g);
			gate_drop_old_askers(g);
		}
		if (g->rows.is_behind && g->now_ns - told_ns >= TELL_NS) {
			told_ns = g->now_ns;
			(void)gate_rows_tell(&g->rows, GATE_FD_KEEPER);
		}
	}
	return 0;
}

/* --- beginning and end --- */

static int tell_failure(const struct err *e)
{
	struct wire_gate_message m = { .kind = WIRE_GATE_FAILED, .err = *e };

	wire_send_message(GATE_FD_KEEPER, &m, sizeof(m), -1);
	return 1;
}

static int await_dialer(struct err *e)
{
	struct wire_called m = { 0 };
	int r = wire_receive_message(GATE_FD_OTHER, &m, sizeof(m), NULL);

	m.other[sizeof(m.other) - 1] = '\0';
	if (r == 0 && m.id == WIRE_DIALER_READY && m.kind == WIRE_NET_ALLOWED)
		return 0;
	return err_set(e, ERR_SYS, EPIPE,
		"cannot start the dialer, which connects for the gate%s%s",
		r == 0 && m.other[0] ? ": " : "", r == 0 ? m.other : "");
}

/* Sets the number of connections by the limit of descriptors. */
static void main_count_places(struct gate *g)
{
	uint64_t taken =
		g->net.listener_count + g->rules->publish_count + GATE_MAX_ASKERS + RESERVED;
	struct rlimit files = { 0 };

	getrlimit(RLIMIT_NOFILE, &files);
	g->conn_max = GATE_MAX_CONNS;
	if (files.rlim_cur < taken + (uint64_t)PER_CONN * GATE_MAX_CONNS)
		g->conn_max = files.rlim_cur > taken
				      ? (uint32_t)((files.rlim_cur - taken) / PER_CONN)
				      : 0;
	g->pipes.max = GATE_WAY_COUNT * g->conn_max;
}

/* The soft limit may be lower than what is wanted. */
static void raise_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

/* The keeper starts us before the cage. A pidfd of its first process, or an error. */
static int main_await_cage(struct err *e)
{
	int cage = -1, r;
	uint8_t entry;

	r = wire_receive_message(GATE_FD_KEEPER, &entry, sizeof(entry), &cage);
	if (r == 0 && cage < 0)
		r = -EBADMSG;
	return r < 0 ? err_sys(e, -r, "cannot learn which cage it belongs to") : cage;
}

static int main_start(struct gate *g, struct err *e)
{
	const struct gate_wall wall = { .filter = &filter_gate,
		.max_files = WANTED_FILES,
		.is_root = geteuid() == 0,
		.channel = GATE_FD_KEEPER };
	own_fd int cage = -1;
	int r;

	g->rules = gate_map_rules(GATE_FD_RULES, e);
	if (!g->rules)
		return -EINVAL;
	syscall(SYS_close_range, GATE_FD_PUBLISH + g->rules->publish_count, ~0U, 0);
	for (uint32_t i = 0; i < GATE_MAX_ASKERS; i++)
		g->askers[i].fd = -1;
	raise_files();
	cage = main_await_cage(e);
	r = cage < 0 ? cage : gate_net_open(&g->net, &g->book, g->rules, cage, e);
	if (r < 0)
		return r;
	close(take_fd(&cage));
	r = main_listen_to_all(g);
	if (r < 0)
		return err_sys(e, -r, "cannot listen in the cage's network");
	main_count_places(g);
	if (g->conn_max < 1)
		return err_hint(e,
			err_set(e, ERR_REFUSED, EMFILE,
				"cannot start the gate: it may not open enough descriptors"),
			"raise the limit: ulimit -n");
	if (g->rules->publish_count)
		r = gate_usher_start(g, &wall, e);
	if (r == 0)
		r = gate_confine(&wall, g->rules, e);
	g->has_dialer = true;
	if (r == 0)
		r = await_dialer(e);
	return r == 0 && g->rules->secret_count ? gate_vault_await(g, e) : r;
}

static int main_finish(struct gate *g)
{
	struct wire_gate_message m = { .kind = WIRE_GATE_END };
	struct err e;

	gate_close_all(g);
	gate_usher_end(g);
	fcntl(GATE_FD_KEEPER, F_SETFL, O_RDWR);
	(void)gate_rows_tell(&g->rows, GATE_FD_KEEPER);
	if (!g->has_dialer) {
		err_set(&e, ERR_SYS, ECHILD,
			"cannot connect any more: the dialer, which connects for the gate, has "
			"ended");
		return tell_failure(&e);
	}
	wire_send_message(GATE_FD_KEEPER, &m, sizeof(m), -1);
	return 0;
}

int gate_main(void)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	/* cppcheck-suppress invalidFunctionArg ; -1 is what mmap(2) asks for here */
	struct gate *g = mmap(NULL, sizeof(*g), PROT_READ | PROT_WRITE, flags, -1, 0);
	struct wire_gate_message ready = { .kind = WIRE_GATE_READY };
	struct err e = { 0 };

	if (g == MAP_FAILED) {
		err_set(&e, ERR_SYS, errno, "cannot start the gate: out of memory");
		return tell_failure(&e);
	}
	if (main_start(g, &e) < 0)
		return tell_failure(&e);
	fcntl(GATE_FD_OTHER, F_SETFL, O_RDWR | O_NONBLOCK);
	if (g->has_vault)
		fcntl(GATE_FD_VAULT, F_SETFL, O_RDWR | O_NONBLOCK);
	fcntl(GATE_FD_KEEPER, F_SETFL, O_RDWR | O_NONBLOCK);
	if (wire_send_message(GATE_FD_KEEPER, &ready, sizeof(ready), -1) < 0 || main_serve(g) < 0)
		return 1;
	return main_finish(g);
}
