/*
 * gate_names - the cage's name server, and the book of addresses that stand for names.
 *
 * Runs as:  the gate.
 * Must not: ask anybody: an allowed name has an address of ours, and any other has none. So no
 *           question ever leaves the machine.
 *
 * A name that is not allowed does not exist (NXDOMAIN), which libraries tell their programs at
 * once. To REFUSED they say "temporary failure", and programs try again.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/count.h"
#include "base/str.h"
#include "gate/dns/gate_address.h"
#include "gate/gate_inside.h"

/* --- the book of names --- */

/* 198.18.0.0/15 is for tests of networks and leads nowhere; the other prefix is one of our own. */
static const uint8_t v4_prefix[14] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 18 };
static const uint8_t v6_prefix[14] = { 0xfd, 0x62, 0x61, 0x77, 0x6e, 0x67 };

#define FIRST 2 /* .0 and .1 stand for no name; .1 is the cage's own */

_Static_assert(GATE_MAX_NAMES + FIRST <= 65536, "two bytes tell the name");

uint32_t gate_hash(const char *text)
{
	uint32_t h = 2166136261U;

	while (*text)
		h = (h ^ (uint8_t)*text++) * 16777619U;
	return h;
}

int gate_book_add(struct gate_book *b, const char *name)
{
	size_t room = COUNT_OF(b->places), at = gate_hash(name) % room;

	/* Half of the places are never taken, so there is always an end. */
	for (; b->places[at]; at = (at + 1) % room)
		if (str_eq(b->names[b->places[at] - 1], name))
			return b->places[at] - 1;
	if (b->count == GATE_MAX_NAMES || strlen(name) >= WIRE_NAME_SIZE)
		return -1;
	memcpy(b->names[b->count], name, strlen(name) + 1);
	b->places[at] = (uint16_t)++b->count;
	return (int)b->count - 1;
}

void gate_book_v4(int index, uint8_t ret[static 4])
{
	memcpy(ret, v4_prefix + 12, 2);
	ret[2] = (uint8_t)((index + FIRST) >> 8);
	ret[3] = (uint8_t)(index + FIRST);
}

void gate_book_v6(int index, uint8_t ret[static 16])
{
	memcpy(ret, v6_prefix, sizeof(v6_prefix));
	ret[14] = (uint8_t)((index + FIRST) >> 8);
	ret[15] = (uint8_t)(index + FIRST);
}

const char *gate_book_find(const struct gate_book *b, const uint8_t address[static 16])
{
	unsigned n = (unsigned)address[14] << 8 | address[15];
	bool is_ours = memcmp(address, v4_prefix, sizeof(v4_prefix)) == 0 ||
		       memcmp(address, v6_prefix, sizeof(v6_prefix)) == 0;

	return is_ours && n >= FIRST && n - FIRST < b->count ? b->names[n - FIRST] : NULL;
}

/* --- the name server --- */

#define MAX_AT_ONCE  64
#define TTL_S        300 /* an address means the same to the end of the run */
#define ASKER_NS     (10 * 1000000000ULL)
#define LENGTH_BYTES 2

struct reply {
	uint8_t bytes[LENGTH_BYTES + GATE_DNS_MAX_REPLY];
	size_t size; /* without the length */
};

/* Names of the cage itself (RFC 6761), which need no rule. */
static bool is_localhost(const char *name)
{
	return str_eq(name, "localhost") || str_ends(name, ".localhost");
}

static enum wire_reason names_judge(const struct gate *g, const struct gate_question *q)
{
	if (!q->is_host)
		return WIRE_BECAUSE_ODD_NAME;
	return wire_find_name(g->rules, q->name, 0) ? WIRE_BECAUSE_ALLOWED : WIRE_BECAUSE_NAME;
}

/* Its address for the type that is asked for, or none. */
static void find_address(const struct gate *g, const struct gate_question *q, int index,
	uint8_t room[static 16], struct gate_answer *ret)
{
	static const uint8_t local_v4[4] = { 127, 0, 0, 1 }, local_v6[16] = { [15] = 1 };

	if (q->type == GATE_DNS_A && index < 0)
		memcpy(room, local_v4, sizeof(local_v4));
	else if (q->type == GATE_DNS_A)
		gate_book_v4(index, room);
	else if (q->type == GATE_DNS_AAAA && g->net.has_v6 && index < 0)
		memcpy(room, local_v6, sizeof(local_v6));
	else if (q->type == GATE_DNS_AAAA && g->net.has_v6)
		gate_book_v6(index, room);
	else
		return;
	ret->address = room;
}

static void deny(struct gate *g, const struct gate_question *q, enum wire_reason reason,
	char why[static ERR_TEXT_SIZE], struct gate_answer *ret)
{
	int row = gate_rows_add(&g->rows, WIRE_NAME_DENIED, reason, WIRE_UDP, q->name, 0, "");
	char sentence[ERR_TEXT_SIZE - sizeof("bawn: ")];

	ret->code = GATE_DNS_NO_NAME;
	ret->why = "bawn: not in network.allow";
	if (row < 0)
		return;
	wire_print_decision(&g->rows.rows[row], sentence, sizeof(sentence));
	snprintf(why, ERR_TEXT_SIZE, "bawn: %s", sentence);
	ret->why = why;
}

static bool names_answer(struct gate *g, const uint8_t *query, size_t n, struct reply *ret)
{
	struct gate_answer a = { .ttl = TTL_S };
	struct gate_question q;
	char why[ERR_TEXT_SIZE];
	uint8_t room[16];
	enum wire_reason reason;
	int index = -1;

	if (!gate_dns_read(query, n, &q))
		return false;
	a.code = q.r;
	reason = q.r == GATE_DNS_OK && !is_localhost(q.name) ? names_judge(g, &q)
							     : WIRE_BECAUSE_ALLOWED;
	if (q.r == GATE_DNS_OK && reason == WIRE_BECAUSE_ALLOWED) {
		if (!is_localhost(q.name) && (index = gate_book_add(&g->book, q.name)) < 0)
			reason = WIRE_BECAUSE_MANY_NAMES;
		else
			find_address(g, &q, index, room, &a);
	}
	if (reason != WIRE_BECAUSE_ALLOWED)
		deny(g, &q, reason, why, &a);
	ret->size = gate_dns_write(query, &q, &a, ret->bytes + LENGTH_BYTES);
	ret->bytes[0] = (uint8_t)(ret->size >> 8);
	ret->bytes[1] = (uint8_t)ret->size;
	return true;
}

/* --- by datagram --- */

/* Room for the address that a question went to, from which the reply is sent. */
union destination {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(struct in_pktinfo))];
};

/* Turns the question's destination into the reply's source, without an interface to leave by. */
static void turn_round(struct msghdr *h)
{
	struct in6_pktinfo v6;
	struct in_pktinfo v4;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			memcpy(&v6, CMSG_DATA(c), sizeof(v6));
			v6.ipi6_ifindex = 0;
			memcpy(CMSG_DATA(c), &v6, sizeof(v6));
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			memcpy(&v4, CMSG_DATA(c), sizeof(v4));
			v4.ipi_ifindex = 0;
			v4.ipi_spec_dst = v4.ipi_addr;
			memcpy(CMSG_DATA(c), &v4, sizeof(v4));
		}
	}
}

void gate_answer_datagrams(struct gate *g)
{
	for (int i = 0; i < MAX_AT_ONCE; i++) {
		uint8_t query[GATE_DNS_MAX_QUERY];
		struct sockaddr_storage from;
		union destination to;
		struct iovec part = { query, sizeof(query) };
		struct msghdr h = { .msg_name = &from,
			.msg_namelen = sizeof(from),
			.msg_iov = &part,
			.msg_iovlen = 1,
			.msg_control = &to,
			.msg_controllen = sizeof(to) };
		ssize_t n = recvmsg(g->net.names, &h, 0);
		struct reply reply;

		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0 || h.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ||
			!names_answer(g, query, (size_t)n, &reply))
			continue;
		turn_round(&h);
		part = (struct iovec){ reply.bytes + LENGTH_BYTES, reply.size };
		/* A client that misses the reply asks again. */
		(void)sendmsg(g->net.names, &h, MSG_NOSIGNAL);
	}
}

/* --- by connection --- */

static void names_drop(struct gate_asker *a)
{
	close(a->fd);
	a->fd = -1;
}

void gate_take_asker(struct gate *g, int fd)
{
	for (uint32_t i = 0; i < GATE_MAX_ASKERS; i++) {
		struct gate_asker *a = &g->askers[i];

		if (a->fd >= 0)
			continue;
		a->fd = fd;
		a->len = 0;
		a->deadline_ns = g->now_ns + ASKER_NS;
		g->has_askers = true;
		if (gate_add_source(g, fd, GATE_FROM_ASKER, i) < 0)
			names_drop(a);
		return;
	}
	close(fd);
}

/* One whole question, if there is one; false: it is over. */
static bool gate_names_answer_one(struct gate *g, struct gate_asker *a, size_t *ret_used)
{
	size_t size = (size_t)a->bytes[0] << 8 | a->bytes[1];
	struct reply reply;

	*ret_used = 0;
	if (a->len < LENGTH_BYTES)
		return true;
	if (size > GATE_DNS_MAX_QUERY)
		return false;
	if (a->len < LENGTH_BYTES + size)
		return true;
	*ret_used = LENGTH_BYTES + size;
	if (!names_answer(g, a->bytes + LENGTH_BYTES, size, &reply))
		return false;
	/* A reply is small: who does not even take that has no right to another. */
	return send(a->fd, reply.bytes, LENGTH_BYTES + reply.size, MSG_NOSIGNAL) ==
	       (ssize_t)(LENGTH_BYTES + reply.size);
}

void gate_hear_asker(struct gate *g, uint32_t index)
{
	struct gate_asker *a = &g->askers[index];
	bool goes_on = true;
	size_t used = 1;
	ssize_t n;

	if (a->fd < 0)
		return;
	n = recv(a->fd, a->bytes + a->len, sizeof(a->bytes) - a->len, 0);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		names_drop(a);
		return;
	}
	a->len += (uint32_t)n;
	while (goes_on && used) {
		goes_on = gate_names_answer_one(g, a, &used);
		memmove(a->bytes, a->bytes + used, a->len - used);
		a->len -= (uint32_t)used;
		if (used)
			a->deadline_ns = g->now_ns + ASKER_NS;
	}
	if (!goes_on)
		names_drop(a);
}

void gate_drop_old_askers(struct gate *g)
{
	g->has_askers = false;
	for (uint32_t i = 0; i < GATE_MAX_ASKERS; i++) {
		if (g->askers[i].fd >= 0 && g->now_ns > g->askers[i].deadline_ns)
			names_drop(&g->askers[i]);
		g->has_askers |= g->askers[i].fd >= 0;
	}
}
