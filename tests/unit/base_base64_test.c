/* RFC 4648: its vectors, both alphabets, and all that is not base64. */
#include <stdint.h>

#include "base/base64.h"
#include "base/count.h"
#include "base/own.h"
#include "check.h"

static void test_vectors(void)
{
	static const char *const rows[][2] = { { "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" },
		{ "foo", "Zm9v" }, { "foob", "Zm9vYg==" }, { "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" }, { "\xfb\xff\xbf", "+/+/" }, { "\xff\xff", "//8=" } };

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		own(buf) struct buf out = { .max = 100 };
		size_t n = strlen(rows[i][0]);
		uint8_t bytes[16];

		base64_add(&out, rows[i][0], n, false);
		CHECK_STR(buf_text(&out), rows[i][1]);
		CHECK(base64_read(rows[i][1], strlen(rows[i][1]), bytes) == (ssize_t)n);
		CHECK(memcmp(bytes, rows[i][0], n) == 0);
	}
}

static void test_url(void)
{
	static const char *const rows[][2] = { { "f", "Zg" }, { "fo", "Zm8" }, { "foo", "Zm9v" },
		{ "\xfb\xff\xbf", "-_-_" }, { "\xff\xff", "__8" } };
	uint8_t bytes[16];

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		own(buf) struct buf out = { .max = 100 };
		size_t n = strlen(rows[i][0]);

		base64_add(&out, rows[i][0], n, true);
		CHECK_STR(buf_text(&out), rows[i][1]);
		CHECK(base64_read(rows[i][1], strlen(rows[i][1]), bytes) == (ssize_t)n);
		CHECK(memcmp(bytes, rows[i][0], n) == 0);
	}
	CHECK(base64_read("__8=", 4, bytes) == 2 && bytes[0] == 0xff && bytes[1] == 0xff);
}

static void test_bad(void)
{
	static const char *const bad[] = { "Z", "Zg=", "Z===", "====", "=",
		"==", "Zg==Zg==", "Zg==\n", " Zg==", "Zm9v\n", "Zm9v Zm9v", "Zm9vY",
		"Zh==", "Zm9=", "Zh", "Zm9", "+/-_", "+/8", "//8",
		"Zm9v=", "Zm9v==", "Zm9v====", "Zm9!", "Zm\xc3\xa9", "Zg=A",
		"Z=g=", "=Zg=", "_/8=" };
	uint8_t bytes[16];

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		if (base64_read(bad[i], strlen(bad[i]), bytes) >= 0)
			printf("read: '%s'\n", bad[i]);
		CHECK(base64_read(bad[i], strlen(bad[i]), bytes) < 0);
	}
	CHECK(base64_read("Zm\0v", 4, bytes) < 0);
}

/* What is read comes from one text only: with it another decoder gives the same bytes. */
static void test_every_size(void)
{
	uint8_t bytes[9000], back[9003];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 167 + i / 256);
	for (size_t n = 0; n <= sizeof(bytes); n += n < 10 ? 1 : 997)
		for (int is_url = 0; is_url < 2; is_url++) {
			own(buf) struct buf out = { .max = 20000 };

			base64_add(&out, bytes, n, is_url);
			CHECK(out.len == (is_url ? (n * 4 + 2) / 3 : (n + 2) / 3 * 4));
			CHECK(base64_read(buf_text(&out), out.len, back) == (ssize_t)n);
			CHECK(memcmp(back, bytes, n) == 0);
		}
}

int main(void)
{
	test_vectors();
	test_url();
	test_bad();
	test_every_size();
	return check_report();
}
