#include "gate/dns/gate_address.h"
#include "base/count.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define V4(a, b, c, d) { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d }, 96
#define BYTES(x)       (x) >> 8, (x)&0xff
#define V6(a, b, c, d, e, f, g, h)                                                                 \
	{ BYTES(a), BYTES(b), BYTES(c), BYTES(d), BYTES(e), BYTES(f), BYTES(g), BYTES(h) }, 0

/*
 * IANA's registries of special-purpose addresses, and the services of clouds that hand out a
 * machine's credentials. The first network that holds an address decides, so the smaller stand
 * before the larger; an address that none of them holds is reserved. Anycast services within
 * 192.0.0.0/24 and 2001::/23 count as reserved too: a host that is meant is declared.
 */
/* clang-format off */
static const struct {
	uint8_t address[16];
	uint8_t before, prefix; /* in bits: what makes it IPv4, and what follows that */
	const char *why;        /* NULL: public … */
	uint8_t inside;         /* … unless the IPv4 address that begins at this byte is not */
} networks[] = {
	{ V4(169, 254, 169, 254), 32, "metadata service" },   /* most clouds */
	{ V4(100, 100, 100, 200), 32, "metadata service" },   /* Alibaba */
	{ V4(168, 63, 129, 16),   32, "metadata service" },   /* Azure */
	{ V4(192, 0, 0, 192),     32, "metadata service" },   /* Oracle */
	{ V4(255, 255, 255, 255), 32, "broadcast" },
	{ V4(0, 0, 0, 0),          8, "unspecified" },        /* 0.0.0.0 leads to loopback */
	{ V4(10, 0, 0, 0),         8, "private" },
	{ V4(100, 64, 0, 0),      10, "private" },            /* of a provider */
	{ V4(127, 0, 0, 0),        8, "loopback" },
	{ V4(169, 254, 0, 0),     16, "link-local" },
	{ V4(172, 16, 0, 0),      12, "private" },
	{ V4(192, 0, 0, 0),       24, "reserved" },
	{ V4(192, 0, 2, 0),       24, "documentation" },
	{ V4(192, 88, 99, 0),     24, "reserved" },           /* once relays for 6to4 */
	{ V4(192, 168, 0, 0),     16, "private" },
	{ V4(198, 18, 0, 0),      15, "benchmarking" },
	{ V4(198, 51, 100, 0),    24, "documentation" },
	{ V4(203, 0, 113, 0),     24, "documentation" },
	{ V4(224, 0, 0, 0),        4, "multicast" },
	{ V4(240, 0, 0, 0),        4, "reserved" },
	{ V4(0, 0, 0, 0),          0, NULL },                 /* all other IPv4 */

	{ V6(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),  128, "metadata service" },  /* Amazon */
	{ V6(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),   128, "metadata service" },  /* Google */
	{ V6(0, 0, 0, 0, 0, 0, 0, 0),               128, "unspecified" },
	{ V6(0, 0, 0, 0, 0, 0, 0, 1),               128, "loopback" },
	{ V6(0, 0, 0, 0, 0, 0, 0, 0),                96, "reserved" },          /* once IPv4 */
	{ V6(0x64, 0xff9b, 0, 0, 0, 0, 0, 0),        96, NULL, 12 },            /* NAT64 */
	{ V6(0x64, 0xff9b, 1, 0, 0, 0, 0, 0),        48, "private" },           /* NAT64 at home */
	{ V6(0x100, 0, 0, 0, 0, 0, 0, 0),            64, "discarded" },
	{ V6(0x2001, 0, 0, 0, 0, 0, 0, 0),           32, "reserved" },          /* Teredo */
	{ V6(0x2001, 2, 0, 0, 0, 0, 0, 0),           48, "benchmarking" },
	{ V6(0x2001, 0, 0, 0, 0, 0, 0, 0),           23, "reserved" },
	{ V6(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0),       32, "documentation" },
	{ V6(0x2002, 0, 0, 0, 0, 0, 0, 0),           16, NULL, 2 },             /* 6to4 */
	{ V6(0x3fff, 0, 0, 0, 0, 0, 0, 0),           20, "documentation" },
	{ V6(0x5f00, 0, 0, 0, 0, 0, 0, 0),           16, "reserved" },          /* of routers */
	{ V6(0xfc00, 0, 0, 0, 0, 0, 0, 0),            7, "private" },
	{ V6(0xfe80, 0, 0, 0, 0, 0, 0, 0),           10, "link-local" },
	{ V6(0xfec0, 0, 0, 0, 0, 0, 0, 0),           10, "private" },           /* once of a site */
	{ V6(0xff00, 0, 0, 0, 0, 0, 0, 0),            8, "multicast" },
	{ V6(0x2000, 0, 0, 0, 0, 0, 0, 0),            3, NULL },                /* given out */
};
/* clang-format on */

static const uint8_t v4_front[12] = { [10] = 0xff, [11] = 0xff };

static bool is_v4(const uint8_t address[static 16])
{
	return memcmp(address, v4_front, sizeof(v4_front)) == 0;
}

static bool address_is_within(
	const uint8_t address[static 16], const uint8_t network[static 16], unsigned prefix)
{
	unsigned whole = prefix / 8, rest = prefix % 8;

	if (memcmp(address, network, whole) != 0)
		return false;
	return !rest || (address[whole] ^ network[whole]) >> (8 - rest) == 0;
}

const char *gate_address_reserved(const uint8_t address[static 16])
{
	for (size_t i = 0; i < COUNT_OF(networks); i++) {
		uint8_t v4[16];

		if (!address_is_within(
			    address, networks[i].address, networks[i].before + networks[i].prefix))
			continue;
		if (!networks[i].inside)
			return networks[i].why;
		memcpy(v4, v4_front, sizeof(v4_front));
		memcpy(v4 + sizeof(v4_front), address + networks[i].inside, 4);
		return gate_address_reserved(v4); /* once: IPv4 carries nothing */
	}
	return "reserved";
}

bool gate_address_is_here(const uint8_t address[static 16])
{
	static const uint8_t none[15] = { 0 };

	if (is_v4(address))
		return address[12] == 127 || address[12] == 0;
	return memcmp(address, none, sizeof(none)) == 0 && address[15] <= 1;
}

void gate_address_print(const uint8_t address[static 16], char ret[static GATE_ADDRESS_TEXT])
{
	static_assert(GATE_ADDRESS_TEXT >= INET6_ADDRSTRLEN, "room for any address");

	if (is_v4(address))
		inet_ntop(AF_INET, address + sizeof(v4_front), ret, GATE_ADDRESS_TEXT);
	else
		inet_ntop(AF_INET6, address, ret, GATE_ADDRESS_TEXT);
}

bool gate_address_read(
	const struct sockaddr_storage *from, uint8_t ret[static 16], uint16_t *ret_port)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	if (from->ss_family == AF_INET) {
		memcpy(&v4, from, sizeof(v4));
		memcpy(ret, v4_front, sizeof(v4_front));
		memcpy(ret + sizeof(v4_front), &v4.sin_addr, 4);
		*ret_port = ntohs(v4.sin_port);
	} else if (from->ss_family == AF_INET6) {
		memcpy(&v6, from, sizeof(v6));
		memcpy(ret, &v6.sin6_addr, 16);
		*ret_port = ntohs(v6.sin6_port);
	}
	return from->ss_family == AF_INET || from->ss_family == AF_INET6;
}

unsigned gate_address_write(
	const uint8_t address[static 16], uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	memset(ret, 0, sizeof(*ret));
	if (is_v4(address)) {
		memcpy(&v4.sin_addr, address + sizeof(v4_front), 4);
		memcpy(ret, &v4, sizeof(v4));
		return sizeof(v4);
	}
	memcpy(&v6.sin6_addr, address, 16);
	memcpy(ret, &v6, sizeof(v6));
	return sizeof(v6);
}
