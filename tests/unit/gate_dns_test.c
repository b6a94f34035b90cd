/* Questions as the cage may ask them, and the replies, to the byte. */
#include <stdbool.h>
#include <stdlib.h>

#include "check.h"
#include "gate/dns/gate_dns.h"

/* --- messages --- */

struct message {
	uint8_t bytes[1024];
	size_t n;
};

static void add(struct message *m, const void *bytes, size_t n)
{
	memcpy(m->bytes + m->n, bytes, n);
	m->n += n;
}

#define ADD(m, literal) add((m), (literal), sizeof(literal) - 1)

#define ASKS  "\x12\x34\x01\x00\0\1\0\0\0\0\0\0"
#define ASKS2 "\x12\x34\x01\x00\0\1\0\0\0\0\0\1" /* with one record behind the question */
#define NAME  "\3www\7example\3org\0"
#define A_IN  "\0\1\0\1"
#define OPT   "\0\0\x29\x04\xd0\0\0\0\0\0\0"

/* Reads a copy of just its size, so that a sanitizer sees a byte too far. */
static bool reads(const struct message *m, size_t n, struct gate_question *ret)
{
	uint8_t *copy = malloc(n ? n : 1);
	bool is_due;

	if (!copy)
		abort();
	memcpy(copy, m->bytes, n);
	memset(ret, 0xaa, sizeof(*ret));
	is_due = gate_dns_read(copy, n, ret);
	free(copy);
	return is_due;
}

/* What a message is read as; it must be one that a reply is due for. */
static struct gate_question read_all(const struct message *m)
{
	struct gate_question q;

	CHECK(reads(m, m->n, &q));
	return q;
}

static bool is_unread(const struct gate_question *q, enum gate_dns_code code)
{
	return q->r == code && q->size == 12 && !q->name[0] && !q->is_host && !q->has_options &&
	       q->type == 0;
}

static bool is_reply(const struct message *m, const struct gate_question *q,
	const struct gate_answer *a, const struct message *wanted)
{
	uint8_t reply[GATE_DNS_MAX_REPLY];
	size_t n = gate_dns_write(m->bytes, q, a, reply);

	return n == wanted->n && memcmp(reply, wanted->bytes, n) == 0;
}

/* A question of one name, given as on the wire. */
static struct gate_question read_name(const void *name, size_t n)
{
	struct message m = { 0 };

	ADD(&m, ASKS);
	add(&m, name, n);
	ADD(&m, A_IN);
	return read_all(&m);
}

#define READ_NAME(literal) read_name((literal), sizeof(literal) - 1)

/* --- questions --- */

static void test_question(void)
{
	struct message m = { 0 };
	struct gate_question q;

	ADD(&m, ASKS "\3wWw\7EXAMPLE\3oRg\0\0\x1c\0\1");
	q = read_all(&m);
	CHECK_STR(q.name, "www.example.org");
	CHECK(q.is_host && q.type == GATE_DNS_AAAA && !q.has_options && q.r == GATE_DNS_OK);
	CHECK(q.size == m.n);
	m.bytes[m.n - 3] = GATE_DNS_HTTPS;
	q = read_all(&m);
	CHECK(q.r == GATE_DNS_OK && q.type == GATE_DNS_HTTPS);
}

static void test_no_reply_due(void)
{
	struct message m = { 0 };
	struct gate_question q;

	ADD(&m, ASKS NAME A_IN);
	for (size_t n = 0; n < 12; n++)
		CHECK(!reads(&m, n, &q));
	m.bytes[2] |= 0x80;
	CHECK(!reads(&m, m.n, &q));
}

static void test_opcodes(void)
{
	struct message m = { 0 };

	ADD(&m, ASKS NAME A_IN);
	for (uint8_t opcode = 1; opcode < 16; opcode++) {
		struct gate_question q;
		struct message wanted = { 0 };

		m.bytes[2] = (uint8_t)(opcode << 3);
		q = read_all(&m);
		CHECK(is_unread(&q, GATE_DNS_NOT_HERE));
		ADD(&wanted, "\x12\x34\x84\x84\0\0\0\0\0\0\0\0");
		wanted.bytes[2] |= m.bytes[2];
		CHECK(is_reply(&m, &q, &(struct gate_answer){ .code = q.r }, &wanted));
	}
}

/* A question is read to its last byte: whatever is missing or too much, it is none. */
static void test_sizes(void)
{
	struct message m = { 0 }, wanted = { 0 };
	struct gate_question q;

	ADD(&m, ASKS2 NAME A_IN OPT);
	for (size_t n = 12; n < m.n; n++) {
		CHECK(reads(&m, n, &q));
		CHECK(is_unread(&q, GATE_DNS_FORMAT));
	}
	CHECK(read_all(&m).r == GATE_DNS_OK);
	ADD(&m, "\0");
	q = read_all(&m);
	CHECK(is_unread(&q, GATE_DNS_FORMAT));
	ADD(&wanted, "\x12\x34\x85\x81\0\0\0\0\0\0\0\0");
	CHECK(is_reply(&m, &q, &(struct gate_answer){ .code = q.r, .why = "no" }, &wanted));
}

static void test_counts(void)
{
	struct message m = { 0 };
	struct gate_question q;

	ADD(&m, ASKS NAME A_IN NAME A_IN);
	for (uint8_t count = 0; count < 4; count++) {
		m.bytes[5] = count;
		m.n = 12 + 21 * (size_t)count;
		if (count > 2)
			m.n = 12 + 42;
		q = read_all(&m);
		CHECK(count == 1 ? q.r == GATE_DNS_OK : is_unread(&q, GATE_DNS_FORMAT));
	}
	m.bytes[4] = m.bytes[5] = 1; /* 257 */
	m.n = 12 + 21;
	CHECK(read_all(&m).r == GATE_DNS_FORMAT);
	for (size_t i = 6; i < 12; i++) {
		memcpy(m.bytes, ASKS, 12);
		m.bytes[i] = 1; /* one more than there is */
		CHECK(read_all(&m).r == GATE_DNS_FORMAT);
	}
}

static void test_longest_query(void)
{
	struct message m = { 0 };

	ADD(&m, ASKS2 NAME A_IN OPT);
	m.bytes[m.n - 2] = 1;
	m.bytes[m.n - 1] = (uint8_t)(GATE_DNS_MAX_QUERY - m.n - 256);
	m.n = GATE_DNS_MAX_QUERY;
	CHECK(read_all(&m).r == GATE_DNS_OK);
	m.bytes[12 + 21 + 10]++;
	m.n++;
	CHECK(read_all(&m).r == GATE_DNS_FORMAT);
}

static void test_classes(void)
{
	struct message m = { 0 }, wanted = { 0 };
	struct gate_question q;

	ADD(&m, ASKS "\7version\4bind\0\0\x10\0\3");
	q = read_all(&m);
	CHECK(q.r == GATE_DNS_REFUSED && q.size == m.n && q.type == 16);
	CHECK_STR(q.name, "version.bind");
	ADD(&wanted, "\x12\x34\x85\x85\0\1\0\0\0\0\0\0\7version\4bind\0\0\x10\0\3");
	CHECK(is_reply(&m, &q, &(struct gate_answer){ .code = q.r }, &wanted));
	m.bytes[m.n - 1] = 255;
	CHECK(read_all(&m).r == GATE_DNS_REFUSED);
	m.bytes[m.n - 1] = 1;
	m.bytes[m.n - 2] = 0x80;
	CHECK(read_all(&m).r == GATE_DNS_REFUSED);
}

/* --- names --- */

static void check_name(struct gate_question q, const char *name, bool is_host)
{
	CHECK(q.r == GATE_DNS_OK);
	CHECK_STR(q.name, name);
	CHECK(q.is_host == is_host);
}

static void test_names(void)
{
	check_name(READ_NAME("\0"), ".", false);
	check_name(READ_NAME("\1a\0"), "a", true);
	check_name(READ_NAME("\1A\1-\1b\0"), "a.-.b", false);
	check_name(READ_NAME("\4_dmt\6x--y_z\0"), "_dmt.x--y_z", true);
	check_name(READ_NAME("\2-a\0"), "-a", false);
	check_name(READ_NAME("\1b\2a-\0"), "b.a-", false);
	check_name(READ_NAME("\2a-\1b\0"), "a-.b", false);
	check_name(READ_NAME("\012xn--bcher-\0"), "xn--bcher-", false);
	check_name(READ_NAME("\15xn--bcher-kva\2Ch\0"), "xn--bcher-kva.ch", true);
	/* No byte within a label can pass for the structure of a name, or for an escape. */
	check_name(READ_NAME("\7a.b\0c\\\n\3org\0"), "a\\046b\\000c\\092\\010.org", false);
	check_name(READ_NAME("\17example.org\0evi\0"), "example\\046org\\000evi", false);
	check_name(READ_NAME("\1*\3org\0"), "\\042.org", false);
	check_name(READ_NAME("\3b\xc3\xbc\0"), "b\\195\\188", false);
}

static void test_every_byte(void)
{
	for (unsigned c = 0; c < 256; c++) {
		uint8_t name[] = { 3, 'a', (uint8_t)c, 'b', 0 };
		bool is_upper = c >= 'A' && c <= 'Z';
		bool is_good = is_upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
			       c == '-' || c == '_';
		char wanted[16];

		snprintf(wanted, sizeof(wanted), is_good ? "a%cb" : "a\\%03ub",
			is_upper ? c + 32 : c);
		check_name(read_name(name, sizeof(name)), wanted, is_good);
	}
}

/* The longest label, the longest name, and one byte more of each. */
static void test_lengths(void)
{
	uint8_t name[300];
	struct gate_question q;

	memset(name, 'x', sizeof(name));
	name[0] = name[64] = name[128] = 63;
	name[192] = 61;
	name[254] = 0;
	q = read_name(name, 255);
	CHECK(q.r == GATE_DNS_OK && q.is_host && strlen(q.name) == 253 && q.size == 12 + 259);
	name[192] = 62;
	name[254] = 'x';
	name[255] = 0;
	q = read_name(name, 256);
	CHECK(is_unread(&q, GATE_DNS_FORMAT));
	name[192] = 60;
	name[253] = 1; /* a label too many, of the shortest kind */
	q = read_name(name, 256);
	CHECK(is_unread(&q, GATE_DNS_FORMAT));
	name[0] = 64;
	name[65] = 0;
	q = read_name(name, 66);
	CHECK(is_unread(&q, GATE_DNS_FORMAT));
}

/* Pointers have no place in a question, and the other two kinds of label in no name at all. */
static void test_pointers(void)
{
	static const uint8_t firsts[] = { 0x40, 0x41, 0x80, 0xc0, 0xff };

	for (size_t i = 0; i < sizeof(firsts); i++) {
		uint8_t name[] = { 1, 'a', firsts[i], 12, 0 };
		struct gate_question q = read_name(name, sizeof(name));

		CHECK(is_unread(&q, GATE_DNS_FORMAT));
		q = read_name(name, sizeof(name) - 1);
		CHECK(is_unread(&q, GATE_DNS_FORMAT));
		q = read_name(name + 2, 3);
		CHECK(is_unread(&q, GATE_DNS_FORMAT));
	}
}

/* What is too long once it is escaped ends with a whole escape, and nothing short slips in. */
static void test_cut_names(void)
{
	uint8_t name[255] = { 63, [64] = 63, [128] = 63, [192] = 61 };
	struct gate_question q = read_name(name, sizeof(name));

	CHECK(q.r == GATE_DNS_OK && !q.is_host && strlen(q.name) == 253);
	CHECK_STR(q.name + 244, "\\000\\000.");
	name[64] = 4;
	memcpy(name + 65, "abcd", 5);
	q = read_name(name, 70);
	CHECK(q.r == GATE_DNS_OK && !q.is_host && q.size == 12 + 70 + 4);
	CHECK_STR(q.name + 248, "\\000.ab");
	memcpy(name + 65, "a\0bc", 5);
	q = read_name(name, 70);
	CHECK_STR(q.name + 248, "\\000.a");
}

/* --- records behind the question --- */

static struct gate_question read_records(
	const char *counts, const void *records, size_t n, bool *ret_is_unread)
{
	struct message m = { 0 };
	struct gate_question q;

	ADD(&m, ASKS NAME A_IN);
	memcpy(m.bytes + 6, counts, 6);
	add(&m, records, n);
	q = read_all(&m);
	*ret_is_unread = is_unread(&q, GATE_DNS_FORMAT);
	return q;
}

#define READ_RECORDS(counts, literal)                                                              \
	read_records((counts), (literal), sizeof(literal) - 1, &is_bad)

#define TXT "\0\x10\0\1\0\0\0\0\0\2\1x"

static void test_records(void)
{
	bool is_bad = false;

	CHECK(READ_RECORDS("\0\0\0\0\0\1", OPT).has_options && !is_bad);
	CHECK(READ_RECORDS("\0\0\0\0\0\1", "\0" TXT).r == GATE_DNS_OK && !is_bad);
	CHECK(!READ_RECORDS("\0\0\0\0\0\1", "\0" TXT).has_options);
	CHECK(READ_RECORDS("\0\0\0\0\0\2", "\0" TXT OPT).has_options && !is_bad);
	CHECK(READ_RECORDS("\0\0\0\0\0\3", OPT NAME TXT "\xc0\x0c" TXT).has_options);
	CHECK(READ_RECORDS("\0\1\0\1\0\1", "\0" TXT "\1a\xc0\x10" TXT OPT).has_options && !is_bad);
	/* Elsewhere it is a record like any other. */
	CHECK(!READ_RECORDS("\0\1\0\0\0\0", OPT).has_options && !is_bad);
	CHECK(!READ_RECORDS("\0\0\0\1\0\0", OPT).has_options && !is_bad);

	READ_RECORDS("\0\0\0\0\0\2", OPT OPT);
	CHECK(is_bad);
	READ_RECORDS("\0\0\0\0\0\1", "\1a" OPT);
	CHECK(is_bad);
	READ_RECORDS(
		"\0\0\0\0\0\1", "\xc0\x20\0\x29\x04\xd0\0\0\0\0\0\0"); /* the root, by pointer */
	CHECK(is_bad);
	READ_RECORDS(
		"\0\0\0\0\0\1", "\0\0\x29\x04\xd0\0\0\0\0\0\1"); /* options that are not there */
	CHECK(is_bad);
	READ_RECORDS("\0\0\0\0\0\1", "\xc0\x21" TXT); /* to itself */
	CHECK(is_bad);
	READ_RECORDS("\0\0\0\0\0\1", "\xc0\x22" TXT); /* ahead */
	CHECK(is_bad);
	READ_RECORDS("\0\0\0\0\0\1", "\xc0\x0b" TXT); /* into the header */
	CHECK(is_bad);
	READ_RECORDS("\0\0\0\0\0\1", "\x40" TXT);
	CHECK(is_bad);
	READ_RECORDS("\xff\xff\xff\xff\xff\xff", OPT);
	CHECK(is_bad);
}

/* RFC 6891: who speaks a later EDNS is told, in a code that takes more than the header. */
static void test_version(void)
{
	struct message m = { 0 }, wanted = { 0 };
	struct gate_question q;

	ADD(&m, ASKS2 "\1a\0" A_IN "\0\0\x29\x04\xd0\0\1\0\0\0\0");
	q = read_all(&m);
	CHECK(q.r == GATE_DNS_BAD_VERSION && q.has_options);
	ADD(&wanted, "\x12\x34\x85\x80\0\1\0\0\0\0\0\1\1a\0" A_IN "\0\0\x29\2\0\1\0\0\0\0\0");
	CHECK(is_reply(&m, &q, &(struct gate_answer){ .code = q.r }, &wanted));
}

/* --- replies --- */

static const uint8_t address[16] = { 0xfd, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };

#define REPLY(counts) "\x12\x34\x85\x80\0\1" counts "\3wWw\1x\0"

static void test_replies(void)
{
	const struct gate_answer a = { .address = address, .ttl = 0x01020304, .why = "no" };
	struct message m = { 0 }, v4 = { 0 }, v6 = { 0 }, none = { 0 };
	struct gate_question q;

	ADD(&m, ASKS "\3wWw\1x\0" A_IN);
	ADD(&v4, REPLY("\0\1\0\0\0\0") A_IN "\xc0\x0c" A_IN "\1\2\3\4\0\4\xfd\1\2\3");
	q = read_all(&m);
	CHECK(is_reply(&m, &q, &a, &v4));
	/* What was not asked for is not in the reply: the other bits, and recursion. */
	m.bytes[2] = 0x06;
	m.bytes[3] = 0xff;
	v4.bytes[2] = 0x84;
	q = read_all(&m);
	CHECK(is_reply(&m, &q, &a, &v4));

	memcpy(m.bytes, ASKS, 12);
	m.bytes[m.n - 3] = GATE_DNS_AAAA;
	ADD(&v6, REPLY("\0\1\0\0\0\0") "\0\x1c\0\1\xc0\x0c\0\x1c\0\1\1\2\3\4\0\x10");
	add(&v6, address, 16);
	q = read_all(&m);
	CHECK(is_reply(&m, &q, &a, &v6));

	ADD(&none, REPLY("\0\0\0\0\0\0") "\0\x1c\0\1");
	CHECK(is_reply(&m, &q, &(struct gate_answer){ .code = GATE_DNS_OK }, &none));
	none.bytes[3] = 0x83; /* an address has no place beside an error */
	CHECK(is_reply(&m, &q, &(struct gate_answer){ GATE_DNS_NO_NAME, address }, &none));
	m.bytes[m.n - 3] = none.bytes[none.n - 3] = GATE_DNS_HTTPS;
	none.bytes[3] = 0x80; /* nor in another type */
	q = read_all(&m);
	CHECK(is_reply(&m, &q, &a, &none));
}

#define REPLY2(counts) "\x12\x34\x85\x83\0\1" counts "\1a\0" A_IN

static void test_explanation(void)
{
	struct message m = { 0 }, why = { 0 }, plain = { 0 }, found = { 0 };
	struct gate_question q;

	ADD(&m, ASKS2 "\1a\0" A_IN OPT);
	q = read_all(&m);
	ADD(&why, REPLY2("\0\0\0\0\0\1") "\0\0\x29\2\0\0\0\0\0\0\x0d\0\x0f\0\x09\0\x0f"
					 "a is no");
	CHECK(is_reply(&m, &q, &(struct gate_answer){ GATE_DNS_NO_NAME, .why = "a is no" }, &why));
	ADD(&plain, REPLY2("\0\0\0\0\0\1") "\0\0\x29\2\0\0\0\0\0\0\0");
	CHECK(is_reply(&m, &q, &(struct gate_answer){ GATE_DNS_NO_NAME }, &plain));
	ADD(&found, REPLY2("\0\1\0\0\0\1") "\xc0\x0c" A_IN "\0\0\0\0\0\4\xfd\1\2\3"
					   "\0\0\x29\2\0\0\0\0\0\0\0");
	found.bytes[3] = 0x80;
	CHECK(is_reply(&m, &q, &(struct gate_answer){ .address = address }, &found));
}

/* The longest question and no end of reasons: cut to what every asker takes, between characters. */
static void test_longest_reply(void)
{
	static char why[4096], wide[4096];
	uint8_t reply[GATE_DNS_MAX_REPLY], name[255] = { 63, [64] = 63, [128] = 63, [192] = 61 };
	struct message m = { 0 };
	struct gate_question q;
	size_t n;

	memset(why, 'x', sizeof(why) - 1);
	for (size_t i = 0; i + 3 < sizeof(wide); i += 3)
		memcpy(wide + i, "…", 3);
	ADD(&m, ASKS2);
	add(&m, name, sizeof(name));
	ADD(&m, A_IN OPT);
	q = read_all(&m);
	n = gate_dns_write(
		m.bytes, &q, &(struct gate_answer){ .address = address, .why = why }, reply);
	CHECK(n == GATE_DNS_MAX_REPLY && reply[n - 1] == 'x');
	for (size_t shift = 0; shift < 3; shift++) {
		n = gate_dns_write(m.bytes, &q,
			&(struct gate_answer){ .address = address, .why = wide + 3 - shift },
			reply);
		/* Only whole ones, after the bytes of one that the sentence began within. */
		CHECK(n > GATE_DNS_MAX_REPLY - 3 && memcmp(reply + n - 3, "…", 3) == 0);
	}
	q.has_options = false;
	n = gate_dns_write(
		m.bytes, &q, &(struct gate_answer){ .address = address, .why = why }, reply);
	CHECK(n == 12 + 255 + 4 + 16);
}

int main(void)
{
	test_question();
	test_no_reply_due();
	test_opcodes();
	test_sizes();
	test_counts();
	test_longest_query();
	test_classes();
	test_names();
	test_every_byte();
	test_lengths();
	test_pointers();
	test_cut_names();
	test_records();
	test_version();
	test_replies();
	test_explanation();
	test_longest_reply();
	return check_report();
}
