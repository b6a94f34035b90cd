/* Destinations and ports: their grammar, and which one covers which. */
#include <stdlib.h>

#include "base/count.h"
#include "base/str.h"
#include "grammar_rows.h"
#include "spec/spec.h"

static void test_names(void)
{
	static const struct row rows[] = {
		{ "example.org:443", "example.org:443/tls", NULL },
		{ "example.org:80", "example.org:80/http", NULL },
		{ "example.org:22", "example.org:22/tcp", NULL },
		{ "example.org:443/tcp", "example.org:443/tcp", NULL },
		{ "example.org:8443/tls", "example.org:8443/tls", NULL },
		{ "EXAMPLE.Org.:443", "example.org:443/tls", NULL },
		{ "*.example.org:443", "*.example.org:443/tls", NULL },
		{ "localhost:1", "localhost:1/tcp", NULL },
		{ "xn--bcher-kva.example:443", "xn--bcher-kva.example:443/tls", NULL },
		{ "_dmarc.a-b.c9:65535", "_dmarc.a-b.c9:65535/tcp", NULL },
		{ "1.2.3.4.example:443", "1.2.3.4.example:443/tls", NULL },
		{ "example.org", NULL, "'example.org' has no port: write it as example.org:443" },
		{ "", NULL, "'' has no host: write HOST:PORT, such as example.org:443" },
		{ ":443", NULL, NULL },
		{ "example.org:", NULL,
			"'example.org:': the port '' is not a number from 1 to 65535" },
		{ "example.org:0", NULL,
			"'example.org:0': the port '0' is not a number from 1 to 65535" },
		{ "example.org:65536", NULL,
			"'example.org:65536': the port '65536' is not a number from 1 to 65535" },
		{ "example.org:0443", NULL,
			"'example.org:0443': the port '0443' is not a number from 1 to 65535" },
		{ "example.org:https", NULL,
			"'example.org:https': the port 'https' is not a number from 1 to 65535" },
		{ "example.org:443/udp", NULL,
			"'example.org:443/udp': the protocol 'udp' is not tls, http or tcp" },
		{ "example.org:443/TLS", NULL,
			"'example.org:443/TLS': the protocol 'TLS' is not tls, http or tcp" },
		{ "https://example.org", NULL,
			"'https://example.org' is a URL: write HOST:PORT, such as "
			"example.org:443" },
		{ "exa_mple..org:443", NULL,
			"host 'exa_mple..org' has an empty part between two points" },
		{ ".example.org:443", NULL,
			"host '.example.org' has an empty part between two points" },
		{ "-a.org:443", NULL, "host '-a.org' has a part that starts or ends with '-'" },
		{ "a-.org:443", NULL, "host 'a-.org' has a part that starts or ends with '-'" },
		{ "a b.org:443", NULL, "host 'a b.org' has a character that no host name has" },
		{ "b\xc3\xbc"
		  "cher.de:443",
			NULL,
			"host 'b\xc3\xbc"
			"cher.de': write international names in their xn-- form" },
		{ "*:443", NULL,
			"'*' would allow every host; name the hosts, or use network.mode host" },
		{ "*.:443", NULL, NULL },
		{ "*.org:443", NULL,
			"'*.org' would allow a whole top-level domain; name a domain below it" },
		{ "a.*.org:443", NULL,
			"host 'a.*.org': * stands alone at the front only, as in *.example.org" },
		{ "*a.org:443", NULL,
			"host '*a.org': * stands alone at the front only, as in *.example.org" },
		{ "*.*.org:443", NULL, NULL },
		{ "1.2.3:443", NULL, "'1.2.3' is neither a host name nor an address" },
		{ "256.1.1.1:443", NULL, "'256.1.1.1' is neither a host name nor an address" },
		{ "2130706433:443", NULL, "'2130706433' is neither a host name nor an address" },
	};

	CHECK_ROWS(SPEC_GRAMMAR_EGRESS, rows);
}

/* Labels have at most 63 characters, names at most 253. */
static void test_long_names(void)
{
	char label[80], name[300];
	struct spec_item item = { 0 };
	struct err e = { 0 };
	size_t n = 0;

	memset(label, 'a', sizeof(label));
	memcpy(label + 63, ".org:443", 9);
	CHECK(spec_parse(SPEC_GRAMMAR_EGRESS, &arena, label, &item, &e) == 0);
	memset(label, 'a', sizeof(label));
	memcpy(label + 64, ".org:443", 9);
	CHECK(spec_parse(SPEC_GRAMMAR_EGRESS, &arena, label, &item, &e) < 0);
	CHECK(str_ends(e.text, "has a part longer than 63 characters"));
	for (; n < 252; n += 2)
		memcpy(name + n, "a.", 2);
	memcpy(name + n, "a:443", 6);
	CHECK(spec_parse(SPEC_GRAMMAR_EGRESS, &arena, name, &item, &e) == 0); /* 253 */
	memcpy(name + n, "aa:443", 7);
	CHECK(spec_parse(SPEC_GRAMMAR_EGRESS, &arena, name, &item, &e) < 0);
	CHECK(str_ends(e.text, "is longer than 253 characters"));
}

static void test_networks(void)
{
	static const struct row rows[] = {
		{ "10.0.0.0/8:5432", "10.0.0.0/8:5432/tcp", NULL },
		{ "10.1.2.3:443", "10.1.2.3:443/tcp", NULL },
		{ "10.1.2.3/32:443", "10.1.2.3:443/tcp", NULL },
		{ "10.1.2.3:443/tls", "10.1.2.3:443/tls", NULL },
		{ "[2001:db8::1]:443", "[2001:db8::1]:443/tcp", NULL },
		{ "[2001:DB8:0:0::1]:443", "[2001:db8::1]:443/tcp", NULL },
		{ "[2001:db8::/32]:443", "[2001:db8::/32]:443/tcp", NULL },
		{ "[::ffff:10.0.0.1]:443", "10.0.0.1:443/tcp", NULL },
		{ "[::ffff:10.0.0.0/104]:443", "10.0.0.0/8:443/tcp", NULL },
		{ "10.0.0.1/8:443", NULL,
			"'10.0.0.1/8:443' has address bits behind its prefix: one of the two is "
			"wrong" },
		{ "[2001:db8::1/32]:443", NULL,
			"'[2001:db8::1/32]:443' has address bits behind its prefix: one of the two "
			"is wrong" },
		{ "10.0.0.0/33:443", NULL,
			"'10.0.0.0/33:443' is not a network: write it as 10.0.0.0/8:5432" },
		{ "10.0.0.0/:443", NULL,
			"'10.0.0.0/:443' is not a network: write it as 10.0.0.0/8:5432" },
		{ "0x7f000001:443", NULL, "'0x7f000001' is neither a host name nor an address" },
		{ "127.0.0.0x1:443", NULL, "'127.0.0.0x1' is neither a host name nor an address" },
		{ "[example.org]:443", NULL,
			"'[example.org]:443': brackets are for IPv6 addresses only" },
		{ "10.0.0.0/08:443", NULL,
			"'10.0.0.0/08:443' is not a network: write it as 10.0.0.0/8:5432" },
		{ "example.org/24:443", NULL,
			"'example.org/24:443' is not a network: write it as 10.0.0.0/8:5432" },
		{ "127.0.0.1:5432", NULL, "'127.0.0.1:5432' is this machine itself" },
		{ "127.0.0.0/8:80", NULL, "'127.0.0.0/8:80' is this machine itself" },
		{ "0.0.0.0:80", NULL, "'0.0.0.0:80' is this machine itself" },
		{ "[::1]:80", NULL, "'[::1]:80' is this machine itself" },
		{ "[::]:80", NULL, "'[::]:80' is this machine itself" },
		{ "[::ffff:127.0.0.1]:80", NULL, "'[::ffff:127.0.0.1]:80' is this machine itself" },
		{ "198.18.0.0/15:80", NULL,
			"'198.18.0.0/15:80' is where names are put in a cage: nothing else can be reached there" },
		{ "198.19.1.0/24:80", NULL,
			"'198.19.1.0/24:80' is where names are put in a cage: nothing else can be reached there" },
		{ "[fd62:6177:6e67::5]:80", NULL,
			"'[fd62:6177:6e67::5]:80' is where names are put in a cage: nothing else can be reached there" },
		{ "bawn-host:80", NULL, "'bawn-host:80' is this machine itself" },
		{ "10.0.0.0/8", NULL, "'10.0.0.0/8' has no port: write it as 10.0.0.0/8:443" },
		{ "010.0.0.1:443", NULL, "'010.0.0.1' is neither a host name nor an address" },
		{ "2001:db8::1:443", NULL,
			"'2001:db8::1:443': write an IPv6 address in brackets, as "
			"[2001:db8::1]:443" },
		{ "[2001:db8::1]", NULL, "'[2001:db8::1]' must be [ADDRESS]:PORT" },
		{ "[2001:db8::1:443", NULL, "'[2001:db8::1:443' must be [ADDRESS]:PORT" },
		{ "[]:443", NULL, NULL },
		{ "[fe80::1%eth0]:443", NULL, NULL },
	};

	CHECK_ROWS(SPEC_GRAMMAR_EGRESS, rows);
}

static void test_ports(void)
{
	static const struct row ports[] = {
		{ "1", "1", NULL },
		{ "65535", "65535", NULL },
		{ "0", NULL,
			"a port is a number from 1 to 65535: 0 is out of range: from 1 to 65535" },
		{ "65536", NULL, NULL },
		{ "-1", NULL, NULL },
		{ "http", NULL,
			"a port is a number from 1 to 65535: 'http' is not a whole number" },
	};
	static const struct row publish[] = {
		{ "3000:80", "127.0.0.1:3000:80", NULL },
		{ "127.0.0.1:3000:80", "127.0.0.1:3000:80", NULL },
		{ "0.0.0.0:3000:80", "0.0.0.0:3000:80", NULL },
		{ "[::1]:3000:80", "[::1]:3000:80", NULL },
		{ "[0:0:0:0:0:0:0:1]:3000:80", "[::1]:3000:80", NULL }, /* one spelling */
		{ "", NULL, "'' must be [ADDRESS:]HOST_PORT:CAGE_PORT, such as 8000:8000" },
		{ "3000", NULL, "'3000' must be [ADDRESS:]HOST_PORT:CAGE_PORT, such as 8000:8000" },
		{ "3000:0", NULL,
			"'3000:0' must be [ADDRESS:]HOST_PORT:CAGE_PORT, such as 8000:8000" },
		{ "0:3000", NULL,
			"'0:3000' must be [ADDRESS:]HOST_PORT:CAGE_PORT, such as 8000:8000" },
		{ "localhost:3000:80", NULL,
			"'localhost:3000:80' must be [ADDRESS:]HOST_PORT:CAGE_PORT, such as 8000:8000" },
		{ "::1:3000:80", NULL,
			"'::1:3000:80' must be [ADDRESS:]HOST_PORT:CAGE_PORT, such as 8000:8000" },
		{ "127.0.0.1:3000:80:90", NULL, NULL },
	};

	CHECK_ROWS(SPEC_GRAMMAR_PORT, ports);
	CHECK_ROWS(SPEC_GRAMMAR_PUBLISH, publish);
}

/* --- what covers what --- */

static bool covers(enum spec_key key, const char *above, const char *below)
{
	struct spec_item x = { 0 }, y = { 0 };
	struct err e = { 0 };

	if (spec_parse(spec_keys[key].grammar, &arena, above, &x, &e) < 0 ||
		spec_parse(spec_keys[key].grammar, &arena, below, &y, &e) < 0) {
		CHECK_STR(e.text, ""); /* the test is wrong */
		return false;
	}
	return spec_covers(key, &x, &y);
}

struct pair {
	const char *above, *below;
	bool is_covered;
};

static void check_pairs(enum spec_key key, const struct pair *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char what[160];

		snprintf(what, sizeof(what), "'%s' %s '%s'", rows[i].above,
			rows[i].is_covered ? "covers" : "does not cover", rows[i].below);
		check_that(covers(key, rows[i].above, rows[i].below) == rows[i].is_covered, what,
			__FILE__, __LINE__);
	}
}

static void test_covered_hosts(void)
{
	static const struct pair rows[] = {
		{ "example.org:443", "example.org:443", true },
		{ "example.org:443", "example.org:80", false },
		{ "example.org:443", "www.example.org:443", false },
		{ "example.org:443", "*.example.org:443", false },
		{ "*.example.org:443", "*.example.org:443", true },
		{ "*.example.org:443", "www.example.org:443", true },
		{ "*.example.org:443", "a.b.example.org:443", true },
		{ "*.example.org:443", "*.b.example.org:443", true },
		{ "*.example.org:443", "example.org:443", false },
		{ "*.example.org:443", "evilexample.org:443", false },
		{ "*.example.org:443", "*.evilexample.org:443", false },
		{ "*.example.org:443", "www.example.org.evil.com:443", false },
		{ "*.b.example.org:443", "*.example.org:443", false },
		/* tcp lets through what tls and http are held to. */
		{ "example.org:443/tls", "example.org:443/tcp", false },
		{ "*.example.org:80/http", "a.example.org:80/tcp", false },
		/* Which hosts a client uses is not known before it is asked. */
		{ "npm", "npm", true },
		{ "npm", "pip", false },
		{ "npm", "example.org:443", false },
		{ "*.example.org:443", "npm", false },
		{ "128.0.0.0/1:1", "npm", false },
		{ "npm", "128.0.0.0/1:1", false },
	};

	check_pairs(SPEC_NETWORK_ALLOW, rows, COUNT_OF(rows));
}

static void test_covered_networks(void)
{
	static const struct pair rows[] = {
		{ "10.0.0.0/8:5432", "10.0.0.0/8:5432", true },
		{ "10.0.0.0/8:5432", "10.1.0.0/16:5432", true },
		{ "10.0.0.0/8:5432", "10.255.255.255:5432", true },
		{ "10.0.0.0/8:5432", "11.0.0.0:5432", false },
		{ "10.0.0.0/8:5432", "10.0.0.0/7:5432", false },
		{ "10.0.0.0/8:5432", "0.0.0.0/1:5432", false },
		{ "10.0.0.0/8:5432", "10.0.0.1:5433", false },
		{ "10.0.0.1:5432", "10.0.0.1:5432", true },
		{ "10.0.0.1:5432", "10.0.0.2:5432", false },
		{ "10.0.0.0/31:5432", "10.0.0.1:5432", true },
		{ "10.0.0.0/31:5432", "10.0.0.2:5432", false },
		{ "128.0.0.0/1:1", "192.168.0.1:1", true },
		{ "128.0.0.0/1:1", "[2001:db8::1]:1", false },
		{ "[2001:db8::/32]:443", "[2001:db8:ffff::/48]:443", true },
		{ "[2001:db8::/32]:443", "[2001:db9::/32]:443", false },
		{ "[2001:db8::/33]:443", "[2001:db8:8000::1]:443", false },
		{ "10.0.0.0/8:443", "example.org:443", false },
		{ "[::/1]:443", "[1::]:443", true },
		{ "[::/1]:443", "10.0.0.1:443", false },
		{ "example.org:443", "10.0.0.1:443", false },
	};

	check_pairs(SPEC_NETWORK_ALLOW, rows, COUNT_OF(rows));
}

static void test_covered_paths(void)
{
	static const struct pair patterns[] = {
		{ "$PROJECT/**", "$PROJECT/**", true },
		{ "$PROJECT/**", "$PROJECT/src/**", true },
		{ "$PROJECT/**", "$PROJECT/a.c", true },
		{ "$PROJECT/**", "$PROJECT", true },
		{ "$PROJECT/**", "/etc/**", false },
		{ "$PROJECT/src/**", "$PROJECT/**", false },
		{ "$PROJECT/src/**", "$PROJECT/srcs/**", false },
		{ "$PROJECT/src", "$PROJECT/src", true },
		{ "$PROJECT/src", "$PROJECT/src/a", false },
		{ "/opt/**", "/opt/x/**", true },
		{ "/opt/**", "/optional/**", false },
		{ "/**", "/opt/**", true },
	};
	static const struct pair binds[] = {
		{ "~/src:/x", "~/src:/y", true },
		{ "~/src:/x", "~/src/lib:/y", true },
		{ "~/src:/x", "~/srcs:/y", false },
		{ "~/src:/x", "~:/y", false },
		{ "~/src:/x:ro", "~/src:/x:rw", false },
		{ "~/src:/x:rw", "~/src:/x:ro", true },
		{ "~/src:/x:rw", "~/src:/x:rw", true },
		{ "/:/x", "/etc:/y", true },
		{ ".:/x", "lib:/y", true },
		{ "../beside:/x", "../beside/lib:/y", true },
		/* Climbing out is not going in. */
		{ ".:/x", "..:/y", false },
		{ ".:/x", "../../etc:/y", false },
		{ "..:/x", "../..:/y", false },
	};

	check_pairs(SPEC_PROJECT_READ, patterns, COUNT_OF(patterns));
	check_pairs(SPEC_BINDS, binds, COUNT_OF(binds));
	CHECK(covers(SPEC_ENV_PASS, "A", "A") && !covers(SPEC_ENV_PASS, "A", "AB"));
	CHECK(covers(SPEC_NETWORK_PUBLISH, "1:1", "127.0.0.1:1:1"));
	CHECK(!covers(SPEC_NETWORK_PUBLISH, "1:1", "0.0.0.0:1:1"));
	CHECK(!covers(SPEC_PREFLIGHT_ALLOW, "~", "~/.ssh"));
}

int main(void)
{
	arena_init(&arena, 1 << 24);
	test_names();
	test_long_names();
	test_networks();
	test_ports();
	test_covered_hosts();
	test_covered_networks();
	test_covered_paths();
	arena_done(&arena);
	return check_report();
}
