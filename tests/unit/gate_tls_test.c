/* What a TLS client says first: real hellos in every cutting, and made ones with one lie each. */
#include <stdbool.h>
#include <stdlib.h>

#include "base/count.h"
#include "check.h"
#include "gate/tls/gate_tls.h"
#include "hellos.h"

static char name[WIRE_NAME_SIZE];

/* Not a byte more than n can be read: a sanitizer sees what reaches further. */
static enum gate_tls read_exactly(const uint8_t *bytes, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);
	enum gate_tls r;

	if (!copy)
		abort();
	memcpy(copy, bytes, n);
	memset(name, 'x', sizeof(name));
	r = gate_tls_read(copy, n, name);
	free(copy);
	return r;
}

/* Byte by byte: GATE_TLS_MORE up to an answer, and that one for good. Where it came, or n + 1. */
static size_t read_growing(const uint8_t *bytes, size_t n, enum gate_tls wanted)
{
	size_t at = n + 1;

	for (size_t i = 0; i <= n; i++) {
		enum gate_tls r = read_exactly(bytes, i);

		if (r != GATE_TLS_MORE && at > n)
			at = i;
		if (r != (at > n ? GATE_TLS_MORE : wanted)) {
			printf("%d after %zu bytes, not %d\n", r, i, wanted);
			return 0;
		}
		if (r != GATE_TLS_NAME && name[0] != '\0')
			return 0;
	}
	return at;
}

/* --- real ones --- */

/* The same hello in records of `step` bytes. */
static size_t cut_records(const uint8_t *hello, size_t n, size_t step, uint8_t *ret)
{
	size_t size = 0;

	for (size_t at = 5; at < n; at += step) {
		size_t piece = n - at < step ? n - at : step;
		const uint8_t head[] = { 22, 3, 1, (uint8_t)(piece >> 8), (uint8_t)piece };

		memcpy(ret + size, head, sizeof(head));
		memcpy(ret + size + sizeof(head), hello + at, piece);
		size += sizeof(head) + piece;
	}
	return size;
}

static void check_real(const uint8_t *hello, size_t n, enum gate_tls wanted)
{
	static const size_t steps[] = { 1, 2, 3, 4, 5, 7, 64, 100, 4096 };
	static uint8_t cut[8192];

	CHECK(read_growing(hello, n, wanted) == n);
	CHECK(read_exactly(hello, n) == wanted);
	CHECK_STR(name, wanted == GATE_TLS_NAME ? "www.example.org" : "");
	for (size_t i = 0; i < COUNT_OF(steps); i++) {
		size_t size = cut_records(hello, n, steps[i], cut);

		CHECK(read_growing(cut, size, wanted) == size);
		CHECK(read_exactly(cut, size) == wanted);
		CHECK_STR(name, wanted == GATE_TLS_NAME ? "www.example.org" : "");
	}
}

static void test_real(void)
{
	check_real(hello_openssl_13, sizeof(hello_openssl_13), GATE_TLS_NAME);
	check_real(hello_openssl_12, sizeof(hello_openssl_12), GATE_TLS_NAME);
	check_real(hello_java, sizeof(hello_java), GATE_TLS_NAME);
	check_real(hello_no_name, sizeof(hello_no_name), GATE_TLS_NO_NAME);
}

/* Data that is sent early follows in records of other types. */
static void test_followed(void)
{
	uint8_t more[sizeof(hello_openssl_13) + 12] = { 0 };

	memcpy(more, hello_openssl_13, sizeof(hello_openssl_13));
	more[sizeof(hello_openssl_13)] = 20;
	CHECK(read_growing(more, sizeof(more), GATE_TLS_NAME) == sizeof(hello_openssl_13));
}

/* --- made ones --- */

struct bytes {
	uint8_t at[32768];
	size_t n;
};

static void put(struct bytes *b, const void *from, size_t n)
{
	memcpy(b->at + b->n, from, n);
	b->n += n;
}

static void put_number(struct bytes *b, size_t value, unsigned width)
{
	while (width--)
		b->at[b->n++] = (uint8_t)(value >> (8 * width));
}

/* Size and content of a part; `lie` is added to the size. */
static void put_part(struct bytes *b, unsigned width, const struct bytes *part, int lie)
{
	put_number(b, part->n + (size_t)lie, width);
	put(b, part->at, part->n);
}

/* What is made, and how it differs from a good one. */
struct made {
	const char *name;                                            /* NULL: no such extension */
	size_t n;                                                    /* of it; 0: up to its NUL */
	int names;                                                   /* in one extension; 0: one */
	int extensions;                                              /* of that type; 0: one */
	int kind;                                                    /* of the name */
	int in_name, in_list, in_extension, in_extensions, in_hello; /* lies */
	int session, suites, compressions;                           /* bytes more than usual */
	int version, record_version;                                 /* instead of the usual */
	int in_padding, after_list, after_extensions;
	int padding; /* bytes of another extension after it */
	bool has_none, is_trailed;
};

static void make_names(const struct made *m, struct bytes *ret)
{
	static struct bytes text;

	text.n = ret->n = 0;
	put(&text, m->name, m->n ? m->n : strlen(m->name));
	for (int i = 0; i < (m->names ? m->names : 1); i++) {
		put_number(ret, (size_t)m->kind, 1);
		put_part(ret, 2, &text, m->in_name);
	}
}

static void make_extensions(const struct made *m, struct bytes *ret)
{
	static struct bytes names, list;

	ret->n = list.n = 0;
	if (m->name) {
		make_names(m, &names);
		put_part(&list, 2, &names, m->in_list);
		put_number(&list, 0, (unsigned)m->after_list);
	}
	for (int i = 0; m->name && i < (m->extensions ? m->extensions : 1); i++) {
		put_number(ret, 0, 2);
		put_part(ret, 2, &list, m->in_extension);
	}
	if (m->padding) {
		put_number(ret, 21, 2);
		put_number(ret, (size_t)(m->padding + m->in_padding), 2);
		memset(ret->at + ret->n, 0, (size_t)m->padding);
		ret->n += (size_t)m->padding;
	}
}

static void make_hello(const struct made *m, struct bytes *ret)
{
	static struct bytes body, extensions;
	static const uint8_t zeros[256];

	body.n = ret->n = 0;
	put_number(&body, m->version ? (size_t)m->version : 0x0303, 2);
	put(&body, zeros, 32);
	put_number(&body, (size_t)m->session, 1);
	put(&body, zeros, (size_t)m->session);
	put_number(&body, 2 + (size_t)m->suites, 2);
	put(&body, zeros, 2 + (size_t)m->suites);
	put_number(&body, 1 + (size_t)m->compressions, 1);
	put(&body, zeros, 1 + (size_t)m->compressions);
	make_extensions(m, &extensions);
	if (!m->has_none)
		put_part(&body, 2, &extensions, m->in_extensions);
	put_number(&body, 0, (unsigned)m->after_extensions);
	put_number(ret, 22, 1);
	put_number(ret, m->record_version ? (size_t)m->record_version : 0x0301, 2);
	put_number(ret, body.n + 4 + m->is_trailed, 2);
	put_number(ret, 1, 1);
	put_part(ret, 3, &body, m->in_hello);
	put(ret, zeros, m->is_trailed);
}

static void check_made(const struct made *m, enum gate_tls wanted, int line)
{
	static struct bytes hello;

	make_hello(m, &hello);
	check_that(read_exactly(hello.at, hello.n) == wanted, "made hello", __FILE__, line);
	if (hello.n < 1024)
		check_that(read_growing(hello.at, hello.n, wanted) > 0, "made, growing", __FILE__,
			line);
	read_exactly(hello.at, hello.n);
}

#define CHECK_MADE(wanted, ...) check_made(&(struct made){ __VA_ARGS__ }, (wanted), __LINE__)

static void test_names(void)
{
	static char label[70], longest[260];

	CHECK_MADE(GATE_TLS_NAME, .name = "a");
	CHECK_STR(name, "a");
	CHECK_MADE(GATE_TLS_NAME, .name = "WWW.Example.ORG.");
	CHECK_STR(name, "www.example.org");
	CHECK_MADE(GATE_TLS_NAME, .name = "_x-1.xn--bcher-kva.4chan.org");
	CHECK_STR(name, "_x-1.xn--bcher-kva.4chan.org");
	CHECK_MADE(GATE_TLS_BAD, .name = "");
	CHECK_MADE(GATE_TLS_BAD, .name = ".");
	CHECK_MADE(GATE_TLS_BAD, .name = "a..b");
	CHECK_MADE(GATE_TLS_BAD, .name = "a.b..");
	CHECK_MADE(GATE_TLS_BAD, .name = ".a");
	CHECK_MADE(GATE_TLS_BAD, .name = "a b");
	CHECK_MADE(GATE_TLS_BAD, .name = "a/b");
	CHECK_MADE(GATE_TLS_BAD, .name = "b\xc3\xbc"
					 "cher.example");
	CHECK_MADE(GATE_TLS_BAD, .name = "good.example\0.bad.example", .n = 25);
	CHECK_MADE(GATE_TLS_BAD, .name = "good.example\0", .n = 13);
	CHECK_MADE(GATE_TLS_BAD, .name = "*.example.org");
	CHECK_MADE(GATE_TLS_BAD, .name = "example.org:443");
	CHECK_MADE(GATE_TLS_BAD, .name = "10.0.0.5");
	CHECK_MADE(GATE_TLS_BAD, .name = "10.5");
	CHECK_MADE(GATE_TLS_BAD, .name = "2130706433");
	CHECK_MADE(GATE_TLS_BAD, .name = "a.0x7f");
	CHECK_MADE(GATE_TLS_BAD, .name = "2001:db8::1");
	CHECK_MADE(GATE_TLS_BAD, .name = "[2001:db8::1]");
	memset(label, 'a', 64);
	CHECK_MADE(GATE_TLS_BAD, .name = label);
	CHECK_MADE(GATE_TLS_NAME, .name = label + 1);
	for (size_t i = 0; i < 256; i++)
		longest[i] = i % 2 ? '.' : 'a';
	CHECK_MADE(GATE_TLS_BAD, .name = longest, .n = 255);
	CHECK_MADE(GATE_TLS_NAME, .name = longest, .n = 254); /* the last is the dot */
	CHECK(strlen(name) == 253);
}

/* Two names, or a name that is not a host's: servers would differ. */
static void test_one_name(void)
{
	CHECK_MADE(GATE_TLS_NAME, .name = "a.example", .padding = 5);
	CHECK_MADE(GATE_TLS_BAD, .name = "a.example", .names = 2);
	CHECK_MADE(GATE_TLS_BAD, .name = "a.example", .extensions = 2);
	CHECK_MADE(GATE_TLS_BAD, .name = "a.example", .kind = 1);
	CHECK_MADE(GATE_TLS_NO_NAME, .name = NULL);
	CHECK_MADE(GATE_TLS_NO_NAME, .name = NULL, .padding = 9);
	CHECK_MADE(GATE_TLS_NO_NAME, .name = NULL, .has_none = true);
}

static void test_lies(void)
{
	for (int lie = -1; lie <= 1; lie += 2) {
		CHECK_MADE(GATE_TLS_BAD, .name = "a.example", .in_name = lie);
		CHECK_MADE(GATE_TLS_BAD, .name = "a.example", .in_list = lie);
		CHECK_MADE(GATE_TLS_BAD, .name = "a.example", .in_extension = lie);
		CHECK_MADE(GATE_TLS_BAD, .name = "a.example", .in_extensions = lie);
		CHECK_MADE(GATE_TLS_BAD, .name = "a.example", .in_extension = lie, .padding = 1);
	}
	CHECK_MADE(GATE_TLS_BAD, .name = "a.example", .padding = 3, .in_padding = 1);
	CHECK_MADE(GATE_TLS_BAD, .name = "a.example", .padding = 3, .in_padding = 9999);
	CHECK_MADE(GATE_TLS_BAD, .name = "a.example", .after_list = 1);
	CHECK_MADE(GATE_TLS_BAD, .name = "a.example", .after_extensions = 1);
	CHECK_MADE(GATE_TLS_BAD, .name = "a.example", .in_hello = -1);
	CHECK_MADE(GATE_TLS_MORE, .name = "a.example", .in_hello = 1);
	CHECK_MADE(GATE_TLS_BAD, .name = "a.example", .in_hello = 16384);
	CHECK_MADE(GATE_TLS_BAD, .name = "a.example", .in_hello = 1 << 20);
	CHECK_MADE(GATE_TLS_BAD, .name = "a.example", .is_trailed = true);
	CHECK_MADE(GATE_TLS_NAME, .name = "a.example", .session = 32);
	CHECK_MADE(GATE_TLS_BAD, .name = "a.example", .session = 33);
	CHECK_MADE(GATE_TLS_BAD, .name = "a.example", .suites = 1);
	CHECK_MADE(GATE_TLS_BAD, .name = "a.example", .suites = -2);
	CHECK_MADE(GATE_TLS_BAD, .name = "a.example", .compressions = -1);
	CHECK_MADE(GATE_TLS_BAD, .name = "a.example", .version = 0x0300);
	CHECK_MADE(GATE_TLS_BAD, .name = "a.example", .version = 0x0304);
	CHECK_MADE(GATE_TLS_NAME, .name = "a.example", .record_version = 0x0304);
	CHECK_MADE(GATE_TLS_BAD, .name = "a.example", .record_version = 0x0300);
	CHECK_MADE(GATE_TLS_BAD, .name = "a.example", .record_version = 0x0305);
	CHECK_MADE(GATE_TLS_OTHER, .name = "a.example", .record_version = 0x0201);
}

/* Up to what a reader keeps, and not a byte more. */
static void test_sizes(void)
{
	static struct bytes hello;
	struct made m = { .name = "a.example", .padding = 1 };

	make_hello(&m, &hello);
	m.padding += (int)(GATE_TLS_MAX_HELLO - hello.n);
	make_hello(&m, &hello);
	CHECK(hello.n == GATE_TLS_MAX_HELLO);
	CHECK(read_exactly(hello.at, hello.n - 1) == GATE_TLS_MORE);
	CHECK(read_exactly(hello.at, hello.n) == GATE_TLS_NAME);
	m.padding++;
	make_hello(&m, &hello);
	CHECK(read_exactly(hello.at, hello.n - 2) == GATE_TLS_MORE);
	CHECK(read_exactly(hello.at, hello.n - 1) == GATE_TLS_BAD);
	CHECK(read_exactly(hello.at, hello.n) == GATE_TLS_BAD);
}

/* --- what is no hello --- */

#define CHECK_BYTES(wanted, ...)                                                                   \
	do {                                                                                       \
		const uint8_t bytes[] = { __VA_ARGS__ };                                           \
                                                                                                   \
		CHECK(read_exactly(bytes, sizeof(bytes)) == (wanted));                             \
		CHECK(read_growing(bytes, sizeof(bytes), (wanted)) > 0);                           \
	} while (0)

static void test_others(void)
{
	CHECK(read_exactly((const uint8_t *)"", 0) == GATE_TLS_MORE);
	CHECK(read_exactly((const uint8_t *)"G", 1) == GATE_TLS_OTHER);
	CHECK(read_exactly((const uint8_t *)"SSH-2.0-x\r\n", 11) == GATE_TLS_OTHER);
	CHECK_BYTES(GATE_TLS_OTHER, 0x80, 0x2e, 0x01, 0x00, 0x02); /* SSL 2 */
	CHECK_BYTES(GATE_TLS_OTHER, 23, 3, 1, 0, 5);
	CHECK_BYTES(GATE_TLS_OTHER, 22, 2);
	CHECK_BYTES(GATE_TLS_BAD, 22, 3, 1, 0, 0); /* an empty record */
	CHECK_BYTES(GATE_TLS_BAD, 22, 3, 1, 0, 1, 1, 22, 3, 1, 0, 0);
	CHECK_BYTES(GATE_TLS_BAD, 22, 3, 1, 0x40, 1); /* a long one */
	CHECK_BYTES(GATE_TLS_MORE, 22, 3, 1, 0x40, 0);
	CHECK_BYTES(GATE_TLS_BAD, 22, 3, 1, 0, 4, 2);     /* the server's hello */
	CHECK_BYTES(GATE_TLS_BAD, 22, 3, 1, 0, 1, 1, 23); /* other data in between */
	CHECK_BYTES(GATE_TLS_BAD, 22, 3, 1, 0, 1, 1, 22, 3, 9, 0, 1);
	CHECK_BYTES(GATE_TLS_BAD, 22, 3, 1, 0, 4, 1, 0, 0, 0); /* an empty hello */
}

static void test_alert(void)
{
	uint8_t alert[GATE_TLS_ALERT_SIZE];
	const uint8_t wanted[] = { 21, 3, 3, 0, 2, 2, 112 };

	gate_tls_write_alert(GATE_TLS_UNRECOGNIZED_NAME, alert);
	CHECK(memcmp(alert, wanted, sizeof(wanted)) == 0);
}

int main(void)
{
	test_real();
	test_followed();
	test_names();
	test_one_name();
	test_lies();
	test_sizes();
	test_others();
	test_alert();
	return check_report();
}
