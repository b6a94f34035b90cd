/* Where a request ends: all that one server takes for its body, and another for a second request.
 */
#include "gate_feed.h"

#define LENGTH(value) POST "Content-Length: " value "\r\n"
#define CODING(value) POST "Transfer-Encoding: " value "\r\n"
#define CHUNKED       CODING("chunked") END

static void test_lengths(void)
{
	static const char number[] = "its Content-Length is not a number of bytes";
	static const char both[] = "it has both Content-Length and Transfer-Encoding";

	DENIES(LENGTH("6") "Transfer-Encoding: chunked\r\n" END "0\r\n\r\nG", BAD_HTTP, both);
	DENIES(CODING("chunked") "Content-Length: 4\r\n" END "5c\r\n", BAD_HTTP, both);
	DENIES(LENGTH("0") "Content-Length: 0\r\n", BAD_HTTP, "it has two Content-Length fields");
	DENIES(LENGTH("3") "content-length: 4\r\n", BAD_HTTP, "it has two Content-Length fields");
	DENIES(LENGTH("3, 3"), BAD_HTTP, number);
	DENIES(LENGTH("+3"), BAD_HTTP, number);
	DENIES(LENGTH("-1"), BAD_HTTP, number);
	DENIES(LENGTH("0x3"), BAD_HTTP, number);
	DENIES(LENGTH("3 0"), BAD_HTTP, number);
	DENIES(LENGTH(""), BAD_HTTP, number);
	DENIES(LENGTH("00000000000000000003"), BAD_HTTP, number);
	DENIES(LENGTH("9223372036854775808"), BAD_HTTP, "its Content-Length is too large");
	PASSES(LENGTH("9223372036854775807") END "and so on");
	PASSES(LENGTH("0000000000000000003") END "abc" GET END);
}

static void test_codings(void)
{
	static const char coding[] = "its Transfer-Encoding is not just 'chunked'";
	static const char two[] = "it has two Transfer-Encoding fields";

	PASSES(CODING("ChunkeD \t") END "0\r\n\r\n");
	DENIES(CODING("xchunked"), BAD_HTTP, coding);
	DENIES(CODING("chunked, identity"), BAD_HTTP, coding);
	DENIES(CODING("gzip, chunked"), BAD_HTTP, coding);
	DENIES(CODING("identity"), BAD_HTTP, coding);
	DENIES(CODING("chunked;q=1"), BAD_HTTP, coding);
	DENIES(CODING("\"chunked\""), BAD_HTTP, coding);
	DENIES(CODING("chunked,"), BAD_HTTP, coding);
	DENIES(CODING(""), BAD_HTTP, coding);
	DENIES(CODING("\vchunked"), BAD_HTTP, "a control byte is in a line");
	DENIES(CODING("chunked") "Transfer-encoding: cow\r\n", BAD_HTTP, two);
	DENIES(POST "X: y\r\n Transfer-Encoding: chunked\r\n", BAD_HTTP,
		"a field goes on in a second line");
	DENIES(POST "Transfer-Encoding : chunked\r\n", BAD_HTTP,
		"a line of its head is not NAME: VALUE");
	DENIES(POST "X: y\nTransfer-Encoding: chunked\r\n", BAD_HTTP,
		"a line does not end with CR LF");
	DENIES("POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n", BAD_HTTP,
		"HTTP/1.0 has no Transfer-Encoding");
	DENIES(GET "Connection: close, Host\r\n", BAD_HTTP,
		"its Connection field takes a needed field away");
	DENIES(GET "Connection: transfer-encoding\r\n", BAD_HTTP,
		"its Connection field takes a needed field away");
}

static void test_chunks(void)
{
	static const char odd[] = "something odd follows a chunk's size";
	static const char number[] = "a chunk's size is not a number";

	PASSES(CHUNKED "5\r\nhello\r\n0\r\n\r\n" GET END);
	PASSES(CHUNKED "00a\r\n0123\r\n\n\n89\r\nB;a;b=c;d=\" e;\"\r\n0123456789a\r\n000\r\n\r\n");
	PASSES(CHUNKED "0\r\nX-Sum: 1\r\nY:\r\n\r\n" GET END);
	PASSES(CHUNKED "7fffffffffffffff\r\nand so on");
	DENIES_AFTER(CHUNKED, "8000000000000000\r\n", BAD_HTTP, "a chunk's size is too large");
	DENIES_AFTER(
		CHUNKED, "00000000000000005\r\n", BAD_HTTP, "a chunk's size has too many digits");
	DENIES_AFTER(CHUNKED, "\r\n", BAD_HTTP, number);
	DENIES_AFTER(CHUNKED, " 5\r\n", BAD_HTTP, number);
	DENIES_AFTER(CHUNKED, "-5\r\n", BAD_HTTP, number);
	DENIES_AFTER(CHUNKED, "0x5\r\n", BAD_HTTP, odd);
	DENIES_AFTER(CHUNKED, "5 \r\n", BAD_HTTP, odd);
	DENIES_AFTER(CHUNKED, "5;\r\n", BAD_HTTP, odd);
	DENIES_AFTER(CHUNKED, "5;a=\r\n", BAD_HTTP, odd);
	DENIES_AFTER(CHUNKED, "5;a=\"\r\n", BAD_HTTP, odd);
	DENIES_AFTER(CHUNKED, "5;a=\"\\\"\"\r\n", BAD_HTTP, odd);
	DENIES_AFTER(CHUNKED, "5;a=\"\\b\"\r\n", BAD_HTTP, odd);
	DENIES_AFTER(CHUNKED, "5;a b\r\n", BAD_HTTP, odd);
	DENIES_AFTER(CHUNKED, "5; a\r\n", BAD_HTTP, odd);
	DENIES_AFTER(CHUNKED, "5;\xc3\xbc\r\n", BAD_HTTP, odd);
	DENIES_AFTER(CHUNKED, "5\n", BAD_HTTP, "a line does not end with CR LF");
	DENIES_AFTER(CHUNKED, "5;a\nb\r\n", BAD_HTTP, "a line does not end with CR LF");
	DENIES_AFTER(CHUNKED, "5;a\rb\r\n", BAD_HTTP, "a control byte is in a line");
	DENIES_AFTER(CHUNKED "5\r\nhello", "x\r", BAD_HTTP, "a chunk is longer than its size");
	DENIES_AFTER(CHUNKED "5\r\nhello", "\n0\r\n", BAD_HTTP, "a line does not end with CR LF");
	DENIES_AFTER(CHUNKED "0\r\n\r\n", NAMES("bad.example"), OTHER_HOST, "bad.example");
}

static void test_trailers(void)
{
	static const char late[] = "a field after its body belongs into its head";
	static const char form[] = "a line of its head is not NAME: VALUE";

	DENIES_AFTER(CHUNKED "0\r\n", "Host: bad.example\r\n", BAD_HTTP, late);
	DENIES_AFTER(CHUNKED "0\r\nA: b\r\n", "Content-length: 3\r\n", BAD_HTTP, late);
	DENIES_AFTER(CHUNKED "0\r\n", "Transfer-Encoding: chunked\r\n", BAD_HTTP, late);
	DENIES_AFTER(CHUNKED "0\r\n", "GET / HTTP/1.1\r\n", BAD_HTTP, form);
	DENIES_AFTER(CHUNKED "0\r\n", " a\r\n", BAD_HTTP, "a field goes on in a second line");
	DENIES_AFTER(CHUNKED "0\r\n", "\n", BAD_HTTP, "a line does not end with CR LF");
}

/* --- limits --- */

/* `from`, then `n` times `c`, then `to`. */
static void check_long(const char *from, size_t n, const char *to, size_t passed, const char *other)
{
	static char text[2 * GATE_HTTP_MAX_HEAD];
	size_t first = strlen(from), last = strlen(to), whole = first + n + last;
	struct answer a, b;

	memcpy(text, from, first);
	memset(text + first, 'a', n);
	memcpy(text + first + n, to, last);
	a = feed(NAME, text, whole, whole, whole);
	b = feed(NAME, text, whole, 0, 1);
	CHECK(is_same(&a, &b));
	CHECK(a.last == (other ? GATE_HTTP_DENY : GATE_HTTP_PASS));
	CHECK(a.passed == (other ? passed : whole));
	CHECK_STR(a.other, other ? other : "");
}

static void test_limits(void)
{
	static const char head[] = "its head is too long";
	static const char line[] = "the line of a chunk's size is too long";
	static const char trailers[] = "the fields after its body are too long";
	const size_t most = GATE_HTTP_MAX_HEAD - strlen(GET "X: " END END);

	check_long(GET "X: ", most, END END, 0, NULL);
	check_long(GET "X: ", most + 1, END END, 0, head);
	check_long(GET "X: ", 20000, "", 0, head);
	check_long("GET /", 20000, "", 0, head);
	check_long(CHUNKED "1;", 252, "\r\na\r\n0\r\n\r\n", 0, NULL);
	check_long(CHUNKED "1;", 253, "\r\na\r\n0\r\n\r\n", strlen(CHUNKED), line);
	check_long(CHUNKED "1;", 4000, "", strlen(CHUNKED), line);
	check_long(CHUNKED "0\r\nA: b\r\nX:", 4096 - 12, END END, 0, NULL);
	check_long(CHUNKED "0\r\nA: b\r\nX:", 4096 - 11, END END,
		strlen(CHUNKED "0\r\nA: b\r\nX:") + 4096 - 11 + 2, trailers);
	check_long(CHUNKED "0\r\nA: b\r\nX:", 4096, END END, strlen(CHUNKED "0\r\nA: b\r\n"),
		trailers);
}

int main(void)
{
	test_lengths();
	test_codings();
	test_chunks();
	test_trailers();
	test_limits();
	return check_report();
}
