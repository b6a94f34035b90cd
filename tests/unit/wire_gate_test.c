/* What a rule means, and what is said and believed of a decision. */
#include <stdlib.h>

#include "base/count.h"
#include "base/str.h"
#include "check.h"
#include "wire/wire_gate.h"

/* In an order that has nothing to do with how near they are. */
static const struct wire_rule some[] = {
	{ .name = "example.org", .is_wildcard = true, .port = 443 },
	{ .name = "a.example.org", .is_wildcard = true, .port = 443, .protocol = WIRE_TCP },
	{ .name = "b.a.example.org", .port = 443, .protocol = WIRE_HTTP },
	{ .name = "b.a.example.org", .port = 80 },
	{ .name = "a.example.org", .is_wildcard = true, .port = 8443 },
	{ .name = "example.net", .port = 443 },
	{ .name = "org", .is_wildcard = true, .port = 22 },
	{ .address = { [10] = 0xff, [11] = 0xff, 10 }, .prefix = 96 + 8, .port = 5432 },
	{ .address = { [10] = 0xff, [11] = 0xff, 10, 1, 2, 3 }, .prefix = 128, .port = 5432 },
	{ .address = { [10] = 0xff, [11] = 0xff, 10, 1 }, .prefix = 96 + 12, .port = 5432 },
	{ .address = { 0xfd, 0, 0x12 }, .prefix = 20, .port = 5432 },
	{ .address = { 0xfd }, .prefix = 129, .port = 1 },
};

#define COUNT COUNT_OF(some)

static struct wire_rules *rules;

/* Which of `some` it is; -1: none. */
static int find_name(const char *name, uint16_t port)
{
	const struct wire_rule *rule = wire_find_name(rules, name, port);

	return rule ? (int)(rule - rules->rules) : -1;
}

static int find_v4(uint8_t a, uint8_t b, uint8_t c, uint8_t d, uint16_t port)
{
	uint8_t address[16] = { [10] = 0xff, [11] = 0xff, a, b, c, d };
	const struct wire_rule *rule = wire_find_address(rules, address, port);

	return rule ? (int)(rule - rules->rules) : -1;
}

static int find_v6(uint8_t third, uint8_t last, uint16_t port)
{
	/* Behind its end stands what a bit too far would agree with. */
	uint8_t address[17] = { 0xfd, 0, third, [15] = last, [16] = 129 };
	const struct wire_rule *rule = wire_find_address(rules, address, port);

	return rule ? (int)(rule - rules->rules) : -1;
}

static void test_names(void)
{
	/* Every host below the name, at any depth, and neither the name nor one that ends alike. */
	CHECK(find_name("www.example.org", 443) == 0);
	CHECK(find_name("x.y.z.example.org", 443) == 0);
	CHECK(find_name("example.org", 443) == -1);
	CHECK(find_name(".example.org", 443) == -1);
	CHECK(find_name("notexample.org", 443) == -1);
	CHECK(find_name("example.org.evil.net", 443) == -1);
	CHECK(find_name("www.example.org.", 443) == -1);
	CHECK(find_name("", 443) == -1);
	CHECK(find_name("org", 22) == -1);
	CHECK(find_name("example.org", 22) == 6);

	/* A name without "*." is itself only. */
	CHECK(find_name("example.net", 443) == 5);
	CHECK(find_name("www.example.net", 443) == -1);
	CHECK(find_name("xample.net", 443) == -1);

	/* The nearest decides, wherever it stands. */
	CHECK(find_name("a.example.org", 443) == 0);
	CHECK(find_name("c.a.example.org", 443) == 1);
	CHECK(find_name("b.a.example.org", 443) == 2);
	CHECK(find_name("c.b.a.example.org", 443) == 1);

	/* Each port has its own. */
	CHECK(find_name("b.a.example.org", 80) == 3);
	CHECK(find_name("b.a.example.org", 8443) == 4);
	CHECK(find_name("b.a.example.org", 22) == 6);
	CHECK(find_name("b.a.example.org", 8080) == -1);
	CHECK(find_name("example.net", 80) == -1);

	/* Port 0 stands for any. */
	CHECK(find_name("example.net", 0) == 5);
	CHECK(find_name("b.a.example.org", 0) == 2);
	CHECK(find_name("www.example.net", 0) == -1);
}

static void test_addresses(void)
{
	CHECK(find_v4(10, 200, 0, 1, 5432) == 7);
	CHECK(find_v4(10, 1, 2, 4, 5432) == 9);
	CHECK(find_v4(10, 15, 255, 255, 5432) == 9);
	CHECK(find_v4(10, 16, 0, 0, 5432) == 7);
	CHECK(find_v4(10, 1, 2, 3, 5432) == 8);
	CHECK(find_v4(10, 1, 2, 3, 5433) == -1);
	CHECK(find_v4(10, 1, 2, 3, 0) == -1); /* 0 is no port of an address */
	CHECK(find_v4(11, 0, 0, 0, 5432) == -1);
	CHECK(find_v6(0x12, 7, 5432) == 10);
	CHECK(find_v6(0x1f, 7, 5432) == 10);
	CHECK(find_v6(0x20, 7, 5432) == -1);
	/* No address is one of a rule that has a name, and no prefix is longer than an address. */
	CHECK(find_v4(0, 0, 0, 0, 443) == -1);
	CHECK(find_v6(0, 0, 443) == -1);
	CHECK(find_v6(0, 0, 1) == -1);
}

static void check_said(struct wire_decision d, const char *name, const char *other, const char *all)
{
	char text[1024];

	snprintf(d.name, sizeof(d.name), "%s", name);
	snprintf(d.other, sizeof(d.other), "%s", other);
	CHECK(wire_is_decision(&d));
	wire_print_decision(&d, text, sizeof(text));
	CHECK_STR(text, all);
}

static void test_sentences(void)
{
	struct wire_decision d = { .kind = WIRE_NET_DENIED, .port = 443 };

	d.reason = WIRE_BECAUSE_NAME;
	check_said(d, "example.org", "", "example.org:443 is not in network.allow");
	check_said(d, "2001:db8::1", "", "[2001:db8::1]:443 is not in network.allow");
	d.port = 65535;
	check_said(d, "192.0.2.1", "", "192.0.2.1:65535 is not in network.allow");
	d.port = 0;
	check_said(d, "example.org", "", "example.org is not in network.allow");
	d.port = 443;
	d.reason = WIRE_BECAUSE_OTHER_SNI;
	check_said(d, "example.org", "evil.net",
		"example.org:443 was connected to, and the TLS hello names 'evil.net'");
	/* What others wrote is no format. */
	check_said(d, "%s%n", "%s%n", "%s%n:443 was connected to, and the TLS hello names '%s%n'");
	d.reason = WIRE_BECAUSE_RESERVED;
	check_said(d, "example.org", "10.0.0.1",
		"example.org:443 leads to 10.0.0.1, which is no public address and not declared itself");
}

/* There is a sentence for every reason, and `other` is in it or not: never the hole. */
static void test_every_reason(void)
{
	for (uint8_t i = 0; i < WIRE_REASON_COUNT; i++) {
		struct wire_decision d = { .reason = i, .port = 1, .name = "n", .other = "o" };
		char text[256] = "";

		wire_print_decision(&d, text, sizeof(text));
		CHECK(str_starts(text, i == WIRE_BECAUSE_UNKNOWN_NAME ? "n is " : "n:1 ") &&
			strlen(text) > 10);
		CHECK(!strchr(text, '%') && !strstr(text, "(null)"));
	}
	for (size_t i = 0; i < WIRE_DECISION_KIND_COUNT; i++)
		CHECK(wire_decision_names[i] && *wire_decision_names[i]);
}

/* The longest of everything has room, and less room is kept to. */
static void test_room(void)
{
	struct wire_decision d = { .reason = WIRE_BECAUSE_OTHER_SNI, .port = 65535 };
	char text[1024], small[8];

	memset(d.name, ':', sizeof(d.name) - 1);
	memset(d.other, 'o', sizeof(d.other) - 1);
	CHECK(wire_is_decision(&d));
	wire_print_decision(&d, text, sizeof(text));
	CHECK(strstr(text, ":]:65535 was") && text[0] == '[' && text[strlen(text) - 2] == 'o');
	wire_print_decision(&d, small, sizeof(small));
	CHECK_STR(small, "[::::::");
}

static void test_belief(void)
{
	const struct wire_decision good = { .kind = WIRE_PUBLISHED,
		.reason = WIRE_REASON_COUNT - 1,
		.protocol = WIRE_UDP,
		.name = "a ~",
		.other = "" };
	struct wire_decision d = good;

	CHECK(wire_is_decision(&d));
	d.kind = WIRE_DECISION_KIND_COUNT;
	CHECK(!wire_is_decision(&d));
	d = good;
	d.reason = WIRE_REASON_COUNT;
	CHECK(!wire_is_decision(&d));
	d = good;
	d.protocol = WIRE_UDP + 1;
	CHECK(!wire_is_decision(&d));
	for (int c = 1; c < 256; c++) {
		d = good;
		d.name[1] = (char)c;
		CHECK(wire_is_decision(&d) == (c >= 0x20 && c <= 0x7e));
		d = good;
		d.other[0] = (char)c;
		CHECK(wire_is_decision(&d) == (c >= 0x20 && c <= 0x7e));
	}
	d = good;
	memset(d.name, 'x', sizeof(d.name)); /* runs on into `other` */
	CHECK(!wire_is_decision(&d));
	d = good;
	memset(d.other, 'x', sizeof(d.other));
	CHECK(!wire_is_decision(&d));
}

int main(void)
{
	rules = calloc(1, sizeof(*rules) + sizeof(some));
	if (!rules)
		return 1;
	CHECK(!wire_find_name(rules, "example.net", 443));
	rules->rule_count = COUNT;
	memcpy(rules->rules, some, sizeof(some));
	test_names();
	test_addresses();
	test_sentences();
	test_every_reason();
	test_room();
	test_belief();
	free(rules);
	return check_report();
}
