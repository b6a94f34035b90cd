/* Which addresses are of the public internet: the first and last of each network, and beside it. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/count.h"
#include "check.h"
#include "gate/dns/gate_address.h"

static const struct {
	const char *address, *why; /* NULL: public */
} rows[] = {
	{ "0.0.0.0", "unspecified" },
	{ "0.255.255.255", "unspecified" },
	{ "1.0.0.0", NULL },
	{ "1.1.1.1", NULL },
	{ "8.8.8.8", NULL },
	{ "9.255.255.255", NULL },
	{ "10.0.0.0", "private" },
	{ "10.255.255.255", "private" },
	{ "11.0.0.0", NULL },
	{ "100.63.255.255", NULL },
	{ "100.64.0.0", "private" },
	{ "100.100.100.199", "private" },
	{ "100.100.100.200", "metadata service" },
	{ "100.127.255.255", "private" },
	{ "100.128.0.0", NULL },
	{ "126.255.255.255", NULL },
	{ "127.0.0.1", "loopback" },
	{ "127.255.255.255", "loopback" },
	{ "128.0.0.0", NULL },
	{ "168.63.129.15", NULL },
	{ "168.63.129.16", "metadata service" },
	{ "168.63.129.17", NULL },
	{ "169.253.255.255", NULL },
	{ "169.254.0.0", "link-local" },
	{ "169.254.169.253", "link-local" },
	{ "169.254.169.254", "metadata service" },
	{ "169.254.170.2", "link-local" },
	{ "169.254.255.255", "link-local" },
	{ "169.255.0.0", NULL },
	{ "172.15.255.255", NULL },
	{ "172.16.0.0", "private" },
	{ "172.31.255.255", "private" },
	{ "172.32.0.0", NULL },
	{ "191.255.255.255", NULL },
	{ "192.0.0.0", "reserved" },
	{ "192.0.0.9", "reserved" },
	{ "192.0.0.192", "metadata service" },
	{ "192.0.0.255", "reserved" },
	{ "192.0.1.0", NULL },
	{ "192.0.2.0", "documentation" },
	{ "192.0.2.255", "documentation" },
	{ "192.0.3.0", NULL },
	{ "192.88.98.255", NULL },
	{ "192.88.99.1", "reserved" },
	{ "192.88.100.0", NULL },
	{ "192.167.255.255", NULL },
	{ "192.168.0.0", "private" },
	{ "192.168.255.255", "private" },
	{ "192.169.0.0", NULL },
	{ "198.17.255.255", NULL },
	{ "198.18.0.0", "benchmarking" },
	{ "198.19.255.255", "benchmarking" },
	{ "198.20.0.0", NULL },
	{ "198.51.99.255", NULL },
	{ "198.51.100.0", "documentation" },
	{ "198.51.101.0", NULL },
	{ "203.0.112.255", NULL },
	{ "203.0.113.255", "documentation" },
	{ "203.0.114.0", NULL },
	{ "223.255.255.255", NULL },
	{ "224.0.0.1", "multicast" },
	{ "239.255.255.255", "multicast" },
	{ "240.0.0.0", "reserved" },
	{ "255.255.255.254", "reserved" },
	{ "255.255.255.255", "broadcast" },

	{ "::", "unspecified" },
	{ "::1", "loopback" },
	{ "::2", "reserved" },
	{ "::7f00:1", "reserved" },
	{ "::8.8.8.8", "reserved" },
	{ "::fffe:8.8.8.8", "reserved" },
	{ "::1:0:0", "reserved" },
	{ "::ffff:0:8.8.8.8", "reserved" },
	{ "1::", "reserved" },
	{ "64:ff9a:ffff:ffff:ffff:ffff:808:808", "reserved" },
	{ "64:ff9b::8.8.8.8", NULL },
	{ "64:ff9b::10.1.2.3", "private" },
	{ "64:ff9b::127.0.0.1", "loopback" },
	{ "64:ff9b::0.0.0.0", "unspecified" },
	{ "64:ff9b::169.254.169.254", "metadata service" },
	{ "64:ff9b::1:808:808", "reserved" },
	{ "64:ff9b:1::808:808", "private" },
	{ "64:ff9b:2::808:808", "reserved" },
	{ "100::1", "discarded" },
	{ "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved" },
	{ "2000::", NULL },
	{ "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL },
	{ "2001::", "reserved" },
	{ "2001:0:4136:e378:8000:63bf:f7f7:f7f7", "reserved" },
	{ "2001:1::1", "reserved" },
	{ "2001:2::1", "benchmarking" },
	{ "2001:2:1::1", "reserved" },
	{ "2001:10::1", "reserved" },
	{ "2001:20::1", "reserved" },
	{ "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved" },
	{ "2001:200::", NULL },
	{ "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", NULL },
	{ "2001:db8::1", "documentation" },
	{ "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "documentation" },
	{ "2001:db9::", NULL },
	{ "2001:4860:4860::8888", NULL },
	{ "2002:808:808::1", NULL },
	{ "2002:a00:1::1", "private" },
	{ "2002:7f00:1::", "loopback" },
	{ "2002:a9fe:a9fe::", "metadata service" },
	{ "2002:e000:1::", "multicast" },
	{ "2003::", NULL },
	{ "2606:4700::1111", NULL },
	{ "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL },
	{ "3fff::1", "documentation" },
	{ "3fff:fff:ffff::", "documentation" },
	{ "3fff:1000::", NULL },
	{ "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL },
	{ "4000::", "reserved" },
	{ "5f00::1", "reserved" },
	{ "8000::", "reserved" },
	{ "fbff::", "reserved" },
	{ "fc00::", "private" },
	{ "fd00:ec2::23", "private" },
	{ "fd00:ec2::254", "metadata service" },
	{ "fd20:ce::254", "metadata service" },
	{ "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "private" },
	{ "fe00::", "reserved" },
	{ "fe80::1", "link-local" },
	{ "febf:ffff::", "link-local" },
	{ "fec0::1", "private" },
	{ "feff:ffff::", "private" },
	{ "ff02::1", "multicast" },
	{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "multicast" },
};

static void parse(const char *text, uint8_t ret[static 16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	memcpy(ret, mapped, sizeof(mapped));
	CHECK(inet_pton(AF_INET, text, ret + 12) == 1 || inet_pton(AF_INET6, text, ret) == 1);
}

static void test_reserved(void)
{
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const char *wanted = rows[i].why ? rows[i].why : "public", *why;
		uint8_t address[16];
		char got[64], all[64];

		parse(rows[i].address, address);
		why = gate_address_reserved(address);
		snprintf(got, sizeof(got), "%s %s", rows[i].address, why ? why : "public");
		snprintf(all, sizeof(all), "%s %s", rows[i].address, wanted);
		CHECK_STR(got, all);
	}
}

/* What is written as ::ffff:a.b.c.d is IPv4 in every respect. */
static void test_mapped(void)
{
	uint8_t address[16];
	char text[GATE_ADDRESS_TEXT];

	parse("::ffff:169.254.169.254", address);
	CHECK_STR(gate_address_reserved(address), "metadata service");
	gate_address_print(address, text);
	CHECK_STR(text, "169.254.169.254");
	parse("::ffff:808:808", address);
	CHECK(!gate_address_reserved(address));
	gate_address_print(address, text);
	CHECK_STR(text, "8.8.8.8");
}

static void test_print(void)
{
	static const char *const texts[] = { "0.0.0.0", "255.255.255.255", "10.0.0.1", "::", "::1",
		"2001:db8::1", "fe80::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		"2001:db8:0:1:1:1:1:1", "64:ff9b::a00:1" };

	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		uint8_t address[16];
		char text[GATE_ADDRESS_TEXT];

		parse(texts[i], address);
		gate_address_print(address, text);
		CHECK_STR(text, texts[i]);
	}
}

static void test_system_form(void)
{
	struct sockaddr_storage s;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	uint8_t address[16], again[16];
	uint16_t port = 0;

	parse("192.0.2.7", address);
	CHECK(gate_address_write(address, 443, &s) == sizeof(v4));
	memcpy(&v4, &s, sizeof(v4));
	CHECK(v4.sin_family == AF_INET && v4.sin_port == htons(443));
	CHECK(v4.sin_addr.s_addr == htonl(0xc0000207));
	CHECK(gate_address_read(&s, again, &port) && port == 443);
	CHECK(memcmp(address, again, 16) == 0);

	parse("2001:db8::7", address);
	CHECK(gate_address_write(address, 65535, &s) == sizeof(v6));
	memcpy(&v6, &s, sizeof(v6));
	CHECK(v6.sin6_family == AF_INET6 && v6.sin6_port == 0xffff && !v6.sin6_scope_id);
	CHECK(memcmp(&v6.sin6_addr, address, 16) == 0);
	CHECK(gate_address_read(&s, again, &port) && port == 65535);
	CHECK(memcmp(address, again, 16) == 0);

	/* A socket of IPv6 tells IPv4 as mapped; it is written as what it is. */
	parse("::ffff:192.0.2.7", v6.sin6_addr.s6_addr);
	memcpy(&s, &v6, sizeof(v6));
	CHECK(gate_address_read(&s, address, &port));
	CHECK(gate_address_write(address, 1, &s) == sizeof(v4) && s.ss_family == AF_INET);

	s.ss_family = AF_UNIX;
	CHECK(!gate_address_read(&s, address, &port));
	s.ss_family = AF_UNSPEC;
	CHECK(!gate_address_read(&s, address, &port));
}

int main(void)
{
	test_reserved();
	test_mapped();
	test_print();
	test_system_form();
	return check_report();
}
