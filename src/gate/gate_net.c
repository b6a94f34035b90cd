/*
 * gate_net - the network of the cage, as the gate finds and furnishes it.
 *
 * Runs as:     the gate, before its wall.
 * Enters with: the host's network, and rights over the cage's: root's, or those of whoever made its
 *              user namespace.
 * Leaves:      the cage's network and no way back. In it loopback is all there is, every address
 *              of the world leads to this machine, and the gate listens.
 *
 * A port below 1024 is one that nobody in the cage can take: there the gate listens at every
 * address, and so sees attempts to reach any. At a port that the cage may want for itself it
 * listens only where a name stands for it, if the rules are such that these can be counted.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "gate/dns/gate_address.h"
#include "gate/gate_inside.h"
#include "wire/wire.h"

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

/* At an address, or with NULL at all of both families. A descriptor or -errno. */
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

/* May the gate listen at each of a port's addresses, and leave the others to the cage? */
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

int gate_net_open(struct gate_net *net, struct gate_book *book, const struct wire_rules *rules,
	int cage, struct err *e)
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
