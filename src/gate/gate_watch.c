/*
 * gate_watch - sees what is tried at ports where nobody listens.
 *
 * Runs as:     the gate. The socket is opened before its wall, and shows the cage's network only.
 * Must not:    decide anything: the kernel has refused already. This is so that the operator learns
 *              of it, and from whom the agent hears what to ask for.
 */
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/count.h"
#include "base/own.h"
#include "gate/dns/gate_address.h"
#include "gate/gate_inside.h"
#include "wire/wire.h"

#define MAX_AT_ONCE 64
#define SEEN        64 /* bytes: the headers */
#define RESET       0x04

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

/* Where a packet went to, as the kernel tells beside it. */
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
