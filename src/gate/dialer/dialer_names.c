/*
 * dialer_names - from a name to addresses, as this system finds them.
 *
 * Runs as:  the dialer; dialer_names_open before it is confined, for it reads /etc, the rest after.
 * Must not: believe an address: dialer_connect judges every one.
 *
 * A name is looked up once for all calls that wait for it, and remembered for as long as its
 * records say, within limits. One that may not be remembered is asked for each time.
 */
#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/str.h"
#include "gate/dialer/dialer.h"

/*
 * c-ares would ask these for the number of a service, and is never given its name. Taken from libc
 * they would bring its loader of modules along, into a program that is whole by itself.
 */
struct servent *getservbyname(const char *name, const char *protocol)
{
	(void)name;
	(void)protocol;
	return NULL;
}

int getservbyport_r(int port, const char *protocol, struct servent *ret, char *room, size_t size,
	struct servent **ret_found)
{
	(void)port;
	(void)protocol;
	(void)ret;
	(void)room;
	(void)size;
	*ret_found = NULL;
	return ENOENT;
}

#define ANSWER_MS 2000 /* that a server has, the first time */
#define TRIES     2

/* --- remembered --- */

static const struct dialer_known *find_known(const struct dialer *c, const char *name)
{
	for (size_t i = 0; i < DIALER_MAX_KNOWN; i++)
		if (str_eq(c->known[i].name, name) && c->known[i].until_ns > c->now_ns)
			return &c->known[i];
	return NULL;
}

/* In the place of the same name, or of the one that ends first: those that have ended are among
 * them. */
static void dialer_names_remember(struct dialer *c, const char *name,
	const struct dialer_addresses *addresses, uint64_t seconds)
{
	struct dialer_known *place = &c->known[0];

	if (seconds == 0 || addresses->count == 0)
		return;
	for (size_t i = 0; i < DIALER_MAX_KNOWN; i++) {
		if (c->known[i].until_ns < place->until_ns)
			place = &c->known[i];
		if (str_eq(c->known[i].name, name)) {
			place = &c->known[i];
			break;
		}
	}
	memcpy(place->name, name, strlen(name) + 1);
	place->addresses = *addresses;
	place->until_ns = c->now_ns + DIALER_KNOWN_NS;
	if (seconds < DIALER_KNOWN_NS / DIALER_SECOND_NS)
		place->until_ns = c->now_ns + seconds * DIALER_SECOND_NS;
}

/* --- answers --- */

/* IPv6 and IPv4 in turns, as long as there are both. */
static void interleave(
	const struct dialer_addresses families[static 2], struct dialer_addresses *ret)
{
	ret->count = 0;
	for (unsigned i = 0; i < DIALER_MAX_ADDRESSES; i++)
		for (unsigned f = 0; f < 2; f++)
			if (i < families[f].count)
				memcpy(ret->items[ret->count++], families[f].items[i], 16);
}

static void dialer_names_collect(const struct ares_addrinfo *found, struct dialer_addresses *ret)
{
	struct dialer_addresses families[2] = { 0 }; /* IPv6, IPv4 */

	for (const struct ares_addrinfo_node *n = found->nodes; n; n = n->ai_next) {
		struct dialer_addresses *family = &families[n->ai_family == AF_INET];
		struct sockaddr_storage from = { 0 };
		uint16_t port;

		if (n->ai_addrlen > sizeof(from) || family->count == DIALER_MAX_ADDRESSES)
			continue;
		memcpy(&from, n->ai_addr, n->ai_addrlen);
		if (gate_address_read(&from, family->items[family->count], &port))
			family->count++;
	}
	interleave(families, ret);
}

/* Returns how long the addresses may be cached: the smallest TTL on the way to them. */
static uint64_t shortest_seconds(const struct ares_addrinfo *found)
{
	int64_t seconds = INT32_MAX;

	for (const struct ares_addrinfo_node *n = found->nodes; n; n = n->ai_next)
		if (n->ai_ttl < seconds)
			seconds = n->ai_ttl;
	for (const struct ares_addrinfo_cname *n = found->cnames; n; n = n->next)
		if (n->ttl < seconds)
			seconds = n->ttl;
	return seconds < 0 ? 0 : (uint64_t)seconds;
}

/* c-ares has one error for servers that fail and for servers that are not there. */
static const char *dialer_names_explain(int status)
{
	if (status == ARES_ETIMEOUT)
		return "the name servers of this machine did not answer";
	if (status == ARES_ECONNREFUSED || status == ARES_ESERVFAIL || status == ARES_EREFUSED)
		return "the name servers of this machine failed";
	return ares_strerror(status);
}

static void dialer_names_hand_out(struct dialer *c, struct dialer_call *call, int status,
	const struct dialer_addresses *addresses)
{
	if (addresses->count) {
		call->to = *addresses;
		dialer_connect(c, call);
	} else if (status == ARES_ENOTFOUND || status == ARES_ENODATA || status == ARES_SUCCESS) {
		dialer_answer(c, call, WIRE_NET_FAILED, WIRE_BECAUSE_UNKNOWN_NAME, "", -1);
	} else {
		dialer_answer(c, call, WIRE_NET_FAILED, WIRE_BECAUSE_RESOLVER,
			dialer_names_explain(status), -1);
	}
}

/* c-ares has found it, or gave up. */
static void hear_lookup(void *of, int status, int timeouts, struct ares_addrinfo *found)
{
	struct dialer_lookup *lookup = of;
	struct dialer *c = lookup->dialer;
	struct dialer_addresses addresses = { 0 };
	unsigned index = (unsigned)(lookup - c->lookups);

	(void)timeouts;
	lookup->dialer = NULL;
	if (status == ARES_SUCCESS && found) {
		dialer_names_collect(found, &addresses);
		dialer_names_remember(c, lookup->name, &addresses, shortest_seconds(found));
	}
	ares_freeaddrinfo(found);
	for (unsigned i = 0; i < c->end; i++)
		if (c->calls[i].state == DIALER_NAMING && c->calls[i].lookup == index)
			dialer_names_hand_out(c, &c->calls[i], status, &addresses);
}

/* --- questions --- */

static struct dialer_lookup *find_lookup(struct dialer *c, const char *name, bool *ret_is_new)
{
	struct dialer_lookup *free_one = NULL;

	*ret_is_new = false;
	for (size_t i = 0; i < DIALER_MAX_LOOKUPS; i++) {
		struct dialer_lookup *lookup = &c->lookups[i];

		if (lookup->dialer && str_eq(lookup->name, name))
			return lookup;
		if (!lookup->dialer && !free_one)
			free_one = lookup;
	}
	*ret_is_new = free_one != NULL;
	return free_one;
}

void dialer_find(struct dialer *c, struct dialer_call *call)
{
	static const struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC,
		.ai_flags = ARES_AI_NOSORT };
	const struct dialer_known *known = find_known(c, call->asked.name);
	struct dialer_lookup *lookup;
	bool is_new;

	call->state = DIALER_NAMING;
	if (known) {
		dialer_names_hand_out(c, call, ARES_SUCCESS, &known->addresses);
		return;
	}
	lookup = find_lookup(c, call->asked.name, &is_new);
	if (!lookup) {
		dialer_answer(c, call, WIRE_NET_FAILED, WIRE_BECAUSE_RESOLVER,
			"too many other names are being looked up", -1);
		return;
	}
	call->lookup = (unsigned)(lookup - c->lookups);
	if (!is_new)
		return;
	lookup->dialer = c;
	memcpy(lookup->name, call->asked.name, sizeof(lookup->name));
	ares_getaddrinfo(c->names, lookup->name, NULL, &hints, hear_lookup, lookup);
}

/* --- sockets --- */

static void watch_socket(void *of, ares_socket_t fd, int is_readable, int is_writable)
{
	const struct dialer *c = of;
	struct epoll_event event = { .data.u64 = (uint64_t)DIALER_FROM_NAMES << 32 | (uint32_t)fd };

	if (is_readable)
		event.events |= EPOLLIN;
	if (is_writable)
		event.events |= EPOLLOUT;
	if (!event.events)
		epoll_ctl(c->epoll, EPOLL_CTL_DEL, fd, NULL);
	else if (epoll_ctl(c->epoll, EPOLL_CTL_MOD, fd, &event) < 0 && errno == ENOENT)
		epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &event); /* otherwise it times out */
}

void dialer_hear_names(struct dialer *c, int fd, uint32_t events)
{
	ares_process_fd(c->names, events & (EPOLLIN | EPOLLERR | EPOLLHUP) ? fd : ARES_SOCKET_BAD,
		events & (EPOLLOUT | EPOLLERR | EPOLLHUP) ? fd : ARES_SOCKET_BAD);
}

uint64_t dialer_names_wait(const struct dialer *c, uint64_t max)
{
	struct timeval left;
	uint64_t ns;

	if (!ares_timeout(c->names, NULL, &left))
		return max;
	ns = (uint64_t)left.tv_sec * DIALER_SECOND_NS + (uint64_t)left.tv_usec * 1000;
	return ns < max ? ns : max;
}

int dialer_names_open(struct dialer *c, struct err *e)
{
	/* A rule means its name, and none below a domain that this system likes to add. */
	struct ares_options options = { .flags = ARES_FLAG_NOSEARCH,
		.ndomains = 0,
		.timeout = ANSWER_MS,
		.tries = TRIES,
		.sock_state_cb = watch_socket,
		.sock_state_cb_data = c };
	int status = ares_library_init(ARES_LIB_INIT_ALL);

	if (status == ARES_SUCCESS)
		status = ares_init_options(&c->names, &options,
			ARES_OPT_FLAGS | ARES_OPT_DOMAINS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
				ARES_OPT_SOCK_STATE_CB);
	if (status != ARES_SUCCESS)
		return err_set(e, ERR_SYS, EIO, "cannot read how this system looks up names: %s",
			ares_strerror(status));
	return 0;
}
