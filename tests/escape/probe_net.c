/* The network. Addresses that are not ours are only asked for a route, which sends nothing. */
#include "probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/vm_sockets.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FAMILY_MAX       64
#define NETLINK_MAX_TRY  32
#define PROTOCOL_MPTCP   262
#define PROTOCOL_UDPLITE 136

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t parse(const char *text, const char *port, union address *ret)
{
	*ret = (union address){ 0 };
	if (inet_pton(AF_INET, text, &ret->v4.sin_addr) == 1) {
		ret->v4.sin_family = AF_INET;
		ret->v4.sin_port = htons((uint16_t)atoi(port));
		return sizeof(ret->v4);
	}
	ret->v6.sin6_family = AF_INET6;
	ret->v6.sin6_port = htons((uint16_t)atoi(port));
	return inet_pton(AF_INET6, text, &ret->v6.sin6_addr) == 1 ? sizeof(ret->v6) : 0;
}

static bool is_greeted(int fd, const char *end)
{
	struct pollfd wait = { fd, POLLIN, 0 };

	return poll(&wait, 1, 2000) == 1 && fd_has_canary(fd, end);
}

/* The ways to begin a stream; the server greets with the canary. */
enum stream {
	STREAM_PLAIN,
	STREAM_FASTOPEN_MESSAGE,
	STREAM_FASTOPEN_CONNECT
};

static bool can_stream(
	const char *address, const char *port, const char *end, int protocol, enum stream way)
{
	union address to;
	socklen_t length = parse(address, port, &to);
	int fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, protocol), on = 1;
	bool is_begun = false;

	if (fd < 0)
		return false;
	if (way == STREAM_FASTOPEN_MESSAGE)
		is_begun = sendto(fd, "x", 1, MSG_FASTOPEN, &to.any, length) >= 0;
	else if (way == STREAM_PLAIN ||
		 setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof(on)) == 0)
		is_begun = connect(fd, &to.any, length) == 0 && send(fd, "x", 1, MSG_NOSIGNAL) == 1;
	bool is_there = is_begun && is_greeted(fd, end);
	int error = errno;

	close(fd);
	errno = error;
	return is_there;
}

static int attack_tcp(char **args)
{
	if (can_stream(args[1], args[2], args[0], 0, STREAM_PLAIN))
		return worked("connect");
	int error = errno;

	if (can_stream(args[1], args[2], args[0], 0, STREAM_FASTOPEN_MESSAGE))
		return worked("MSG_FASTOPEN");
	if (can_stream(args[1], args[2], args[0], 0, STREAM_FASTOPEN_CONNECT))
		return worked("TCP_FASTOPEN_CONNECT");
	return refused("%s", error_name(error));
}

static int attack_mptcp(char **args)
{
	return outcome(
		can_stream(args[1], args[2], args[0], PROTOCOL_MPTCP, STREAM_PLAIN), "MPTCP");
}

static int send_datagram(char **args, int protocol, const char *what)
{
	union address to;
	socklen_t length = parse(args[1], args[2], &to);
	int fd = socket(to.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, protocol);
	bool is_sent = fd >= 0 && sendto(fd, args[0], strlen(args[0]), 0, &to.any, length) > 0;

	return outcome(is_sent && is_greeted(fd, args[0]), what);
}

static int attack_udp(char **args)
{
	return send_datagram(args, 0, "UDP");
}

static int attack_udplite(char **args)
{
	return send_datagram(args, PROTOCOL_UDPLITE, "UDP-Lite");
}

/* A datagram socket that connects asks for a route and sends nothing. */
static int attack_route(char **args)
{
	union address to;
	int error = ENETUNREACH;

	for (char **address = args; *address; address++) {
		socklen_t length = parse(*address, "9", &to);
		int fd = socket(to.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

		if (fd >= 0 && connect(fd, &to.any, length) == 0)
			return worked("there is a route to %s", *address);
		error = errno;
		close(fd);
	}
	return refused("%s", error_name(error));
}

static int attack_listen(char **args)
{
	union address here;
	socklen_t length = parse("0.0.0.0", args[0], &here);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	struct pollfd wait = { fd, POLLIN, 0 };

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, &here.any, length) || listen(fd, 1))
		return refused("listen: %s", error_name(errno));
	puts("listening");
	fflush(stdout);
	return poll(&wait, 1, atoi(args[1])) == 1 ? worked("the host came in")
						  : refused("nobody came");
}

static int attack_interfaces(char **args)
{
	struct if_nameindex *all = if_nameindex();

	(void)args;
	for (struct if_nameindex *one = all; one && one->if_index; one++)
		if (strcmp(one->if_name, "lo") != 0)
			return worked("there is %s", one->if_name);
	return all ? refused("only loopback") : refused("%s", error_name(errno));
}

static int attack_raw(char **args)
{
	static const struct {
		const char *kind;
		int family, type, protocol;
		const char *name;
	} sockets[] = {
		{ "icmp", AF_INET, SOCK_RAW, IPPROTO_ICMP, "raw ICMP" },
		{ "icmp", AF_INET6, SOCK_RAW, IPPROTO_ICMPV6, "raw ICMPv6" },
		{ "ip", AF_INET, SOCK_RAW, IPPROTO_RAW, "raw IP" },
		{ "ip", AF_INET6, SOCK_RAW, IPPROTO_RAW, "raw IPv6" },
		{ "packet", AF_PACKET, SOCK_RAW, 0x0300, "packets" },
		{ "packet", AF_PACKET, SOCK_DGRAM, 0x0300, "packets without heads" },
		{ "packet", AF_INET, SOCK_PACKET, 0x0300, "packets, by their old name" },
	};

	for (size_t i = 0; i < ELEMENTS(sockets); i++)
		if (strcmp(args[0], sockets[i].kind) == 0 &&
			socket(sockets[i].family, sockets[i].type | SOCK_CLOEXEC,
				sockets[i].protocol) >= 0)
			return worked("%s", sockets[i].name);
	return refused("%s", error_name(errno));
}

/* --- families --- */

static bool can_have(int family)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET, SOCK_RDM };

	for (size_t i = 0; i < ELEMENTS(types); i++) {
		int fd = socket(family, types[i] | SOCK_CLOEXEC, 0), ends[2];

		if (fd >= 0 || socketpair(family, types[i] | SOCK_CLOEXEC, 0, ends) == 0)
			return true;
		/* Refused by the kernel, which a filter would not have asked. */
		if (errno != EPERM && errno != EACCES && errno != EAFNOSUPPORT && errno != ENOSYS)
			return true;
	}
	return false;
}

static int attack_families(char **args)
{
	char names[TEXT_MAX] = "";

	(void)args;
	for (int family = 0; family < FAMILY_MAX; family++) {
		bool is_usual = family == AF_UNIX || family == AF_INET || family == AF_INET6 ||
				family == AF_NETLINK;

		if (!is_usual && can_have(family))
			snprintf(names + strlen(names), sizeof(names) - strlen(names), " %d",
				family);
	}
	return names[0] ? worked("families%s", names)
			: refused("none but unix, inet, inet6, netlink");
}

static int attack_netlink(char **args)
{
	char names[TEXT_MAX] = "";

	(void)args;
	for (int protocol = 0; protocol < NETLINK_MAX_TRY; protocol++)
		if (protocol != NETLINK_ROUTE &&
			socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol) >= 0)
			snprintf(names + strlen(names), sizeof(names) - strlen(names), " %d",
				protocol);
	return names[0] ? worked("protocols%s", names) : refused("none but route");
}

/* Only a port of our own; nobody is called. */
static int attack_vsock(char **args)
{
	struct sockaddr_vm here = {
		.svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_ANY, .svm_port = VMADDR_PORT_ANY
	};
	int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)args;
	return outcome(fd >= 0 && bind(fd, (struct sockaddr *)&here, sizeof(here)) == 0,
		"a socket to the hypervisor");
}

const struct attack attacks_net[] = {
	{ "tcp", "END ADDRESS PORT", attack_tcp, "connects, also with fast open" },
	{ "mptcp", "END ADDRESS PORT", attack_mptcp, "connects by several paths" },
	{ "udp", "END ADDRESS PORT", attack_udp, "asks and is answered" },
	{ "udplite", "END ADDRESS PORT", attack_udplite, "the same by UDP-Lite" },
	{ "route", "ADDRESS …", attack_route, "finds a route; nothing is sent" },
	{ "listen", "PORT MS", attack_listen, "waits for the host to come in" },
	{ "interfaces", "", attack_interfaces, "finds an interface that is not loopback" },
	{ "raw", "icmp|ip|packet", attack_raw, "raw and packet sockets" },
	{ "families", "", attack_families, "sockets of every other family" },
	{ "netlink", "", attack_netlink, "netlink protocols other than route" },
	{ "vsock", "", attack_vsock, "a socket to the hypervisor" },
	{ 0 },
};
