/*
 * gate_watch - sees what is tried at ports where nobody listens.
 *
 * Runs as:     the gate. The socket is opened before its wall, and shows the cage's network only.
 * Must not:    decide anything: the kernel has refused already. This is so that the operator learns
 *              of it, and from whom the agent hears what to ask for.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "gate/gate_address.h"
#include "gate/gate_inside.h"

#define MAX_AT_ONCE 64
#define SEEN        64 /* bytes: the headers */
#define TCP         6
#define UDP         17
#define RESET       0x04

/* What is shown of a packet begins at its IP header. A jump names how many lines it passes over. */
#define BYTE(at)        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, (at))
#define HALF(at)        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, (at))
#define WORD(at)        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (at))
#define IS(v, yes, no)  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (v), (yes), (no))
#define HAS(v, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (v), (yes), (no))
#define PASS_OVER(n)    BPF_STMT(BPF_JMP | BPF_JA, (n))
#define RETURN(n)       BPF_STMT(BPF_RET | BPF_K, (n))

/*
 * Resets that answer a first packet, which have the number 0; and datagrams, but for questions to
 * the name server, whatever address it was asked at, and its answers. Nothing of 127.0.0.0/8 and
 * ::1: these are the cage's own. Packets with options or extensions are passed over, which no
 * ordinary client sends.
 */
/* clang-format off */
static struct sock_filter v4_program[] = {
	BYTE(0),  IS(0x45, 0, 15),   /* header without options */
	BYTE(9),  IS(TCP, 0, 6),
	BYTE(33), HAS(RESET, 0, 11), /* flags */
	WORD(24), IS(0, 0, 9),       /* number */
	BYTE(12), PASS_OVER(6),      /* from */
	IS(UDP, 0, 6),
	HALF(20), IS(53, 4, 0),      /* ports: from, to */
	HALF(22), IS(53, 2, 0),
	BYTE(16),                    /* to */
	IS(127, 0, 1),
	RETURN(0), RETURN(SEEN),
};

static struct sock_filter v6_program[] = {
	BYTE(6),  IS(TCP, 0, 6),
	BYTE(53), HAS(RESET, 0, 11),
	WORD(44), IS(0, 0, 9),
	WORD(8),  PASS_OVER(6),
	IS(UDP, 0, 6),
	HALF(40), IS(53, 4, 0),
	HALF(42), IS(53, 2, 0),
	WORD(24),
	IS(0, 0, 1),                 /* how ::1 begins, and no address of the world */
	RETURN(0), RETURN(SEEN),
};
/* clang-format on */

static int open_socket(uint16_t protocol, struct sock_filter *program, size_t count, struct err *e)
{
	struct sock_fprog filter = { .len = (unsigned short)count, .filter = program };
	struct sockaddr_ll loopback = { .sll_family = AF_PACKET,
		.sll_protocol = htons(protocol),
		.sll_ifindex = GATE_LOOPBACK };
	/* Deaf until it has its filter. */
	own_fd int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) < 0 ||
		bind(fd, (struct sockaddr *)&loopback, sizeof(loopback)) < 0)
		return err_set(
			e, ERR_SYS, errno, "cannot watch the cage's network: %s", strerror(errno));
	return take_fd(&fd);
}

#define COUNT(program) (sizeof(program) / sizeof((program)[0]))

int gate_watch_open(struct gate_net *net, struct err *e)
{
	net->watches[0] = open_socket(ETH_P_IP, v4_program, COUNT(v4_program), e);
	if (net->watches[0] < 0 || !net->has_v6)
		return net->watches[0] < 0 ? net->watches[0] : 0;
	net->watches[1] = open_socket(ETH_P_IPV6, v6_program, COUNT(v6_program), e);
	return net->watches[1] < 0 ? net->watches[1] : 0;
}

/* Where an attempt went to, from the headers of what the kernel answered, or of a datagram. */
static bool read_packet(const uint8_t *bytes, size_t n, bool is_v4,
	enum wire_protocol *ret_protocol, uint8_t address[static 16], uint16_t *ret_port)
{
	size_t head = is_v4 ? 20 : 40, size = is_v4 ? 4 : 16;
	bool is_tcp, is_whole = n >= head + 4;
	const uint8_t *from, *port;

	if (!is_whole)
		return false;
	is_tcp = bytes[is_v4 ? 9 : 6] == TCP;
	/* The reset comes from where the connection was to go. */
	from = bytes + head - (is_tcp ? 2 : 1) * size;
	port = bytes + head + (is_tcp ? 0 : 2);
	memset(address, 0, 10);
	memset(address + 10, 0xff, 2);
	memcpy(address + 16 - size, from, size);
	*ret_protocol = is_tcp ? WIRE_TCP : WIRE_UDP;
	*ret_port = (uint16_t)(port[0] << 8 | port[1]);
	return true;
}

static void note(struct gate *g, enum wire_protocol protocol, const uint8_t address[static 16],
	uint16_t port)
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
	uint8_t bytes[SEEN], address[16];
	enum wire_protocol protocol;
	uint16_t port;

	for (int i = 0; i < MAX_AT_ONCE; i++) {
		ssize_t n = recv(g->net.watches[index], bytes, sizeof(bytes), 0);

		if (n < 0)
			return;
		if (read_packet(bytes, (size_t)n, index == 0, &protocol, address, &port))
			note(g, protocol, address, port);
	}
}
