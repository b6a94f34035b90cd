/* err, own, arena, buf and sha256. Texts, numbers and files have tests of their own. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/count.h"
#include "base/err.h"
#include "base/own.h"
#include "base/sha256.h"
#include "base/str.h"
#include "check.h"

/* --- err --- */

static void test_err_sys(void)
{
	char path[ERR_TEXT_SIZE * 2];
	struct err e = { .hint = "of before" };

	CHECK(err_sys(&e, ENOENT, "cannot open '%s'", "x") == -ENOENT);
	CHECK(e.kind == ERR_SYS && e.num == ENOENT && !e.hint[0]);
	CHECK(strcmp(e.text, "cannot open 'x': No such file or directory") == 0);
	CHECK(err_sys(NULL, EIO, "nobody listens") == -EIO);
	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	err_sys(&e, EACCES, "cannot open '%s'", path);
	CHECK(str_ends(e.text, "p: Permission denied"));
	CHECK(strlen(e.text) == sizeof(e.text) - 1);
}

static void test_err_set(void)
{
	struct err e = { 0 };

	CHECK(err_set(&e, ERR_SYS, ENOENT, "cannot open '%s'", "x") == -ENOENT);
	CHECK(e.kind == ERR_SYS && e.num == ENOENT);
	CHECK_STR(e.text, "cannot open 'x'");
	CHECK(err_set(&e, ERR_USE, 0, "no such option") == -EINVAL);
	CHECK(e.kind == ERR_USE && e.num == 0);
	CHECK(err_set(NULL, ERR_SPEC, EBADMSG, "nobody listens") == -EBADMSG);
	CHECK(err_set(NULL, ERR_SPEC, 0, "nobody listens") == -EINVAL);
}

static void test_err_hint(void)
{
	struct err e = { 0 };
	char filled[ERR_TEXT_SIZE];

	CHECK(err_hint(NULL, -EIO, "nobody listens") == -EIO);
	CHECK(err_hint(&e, err_set(&e, ERR_SYS, EIO, "cannot read"), "try %d", 2) == -EIO);
	CHECK_STR(e.text, "cannot read");
	CHECK_STR(e.hint, "try 2");
	err_prefix(&e, "cannot start");
	CHECK_STR(e.hint, "try 2");
	err_join_hint(&e);
	CHECK_STR(e.text, "cannot start: cannot read; try 2");
	CHECK_STR(e.hint, "");
	err_join_hint(&e);
	CHECK_STR(e.text, "cannot start: cannot read; try 2");
	/* An error that is set anew has none of the last one's. */
	err_hint(&e, 0, "old");
	err_set(&e, ERR_SYS, EIO, "cannot write");
	CHECK_STR(e.hint, "");
	memset(e.text, 'x', sizeof(e.text));
	memset(e.hint, 'x', sizeof(e.hint));
	err_end_texts(&e);
	CHECK(strlen(e.text) == ERR_TEXT_SIZE - 1 && strlen(e.hint) == ERR_HINT_SIZE - 1);
	memcpy(filled, e.text, sizeof(filled));
	err_join_hint(&e);
	CHECK_STR(e.text, filled);
}

static void test_err_size(void)
{
	char line[1000], wanted[sizeof(((struct err *)0)->text)];
	struct err e = { 0 };

	/* A child writes one down a pipe whole: it must fit where a write is never split. */
	CHECK(sizeof(struct err) <= PIPE_BUF);
	memset(line, 'a', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	err_set(&e, ERR_SYS, EIO, "%s", line);
	CHECK(strlen(e.text) == sizeof(e.text) - 1);
	err_prefix(&e, "while reading");
	memset(wanted, 'a', sizeof(wanted));
	memcpy(wanted, "while reading: ", strlen("while reading: "));
	wanted[sizeof(wanted) - 1] = '\0';
	CHECK_STR(e.text, wanted);
	err_prefix(&e, "%s", line);
	CHECK(strlen(e.text) == sizeof(e.text) - 1 && e.text[0] == 'a');
	err_prefix(&e, "%.*s", (int)sizeof(e.text) - 2, line);
	CHECK(strlen(e.text) == sizeof(e.text) - 1 && e.text[sizeof(e.text) - 2] == ':');
}

static void test_err_prefix(void)
{
	struct err e = { 0 };

	err_set(&e, ERR_NOT_FOUND, ENOENT, "no such program");
	err_prefix(&e, "run %d", 7);
	CHECK_STR(e.text, "run 7: no such program");
	err_prefix(&e, "cage");
	CHECK_STR(e.text, "cage: run 7: no such program");
	CHECK(e.kind == ERR_NOT_FOUND && e.num == ENOENT);
	err_prefix(NULL, "nobody listens");
}

static void test_err_table(void)
{
	static const struct {
		enum err_kind kind;
		int exit_status;
	} rows[] = {
		{ ERR_NONE, 0 },
		{ ERR_USE, 2 },
		{ ERR_SPEC, 125 },
		{ ERR_REFUSED, 125 },
		{ ERR_SYS, 125 },
		{ ERR_NOT_FOUND, 127 },
		{ ERR_NOT_EXEC, 126 },
		{ ERR_SIGNAL, 125 },
	};

	CHECK(COUNT_OF(rows) == ERR_KIND_COUNT);
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		CHECK(err_exit_status(rows[i].kind) == rows[i].exit_status);
}

/* --- own --- */

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static int freed;

struct thing {
	int unused;
};

static void thing_done(struct thing *t)
{
	t->unused = 0;
	freed++;
}

static void test_own(void)
{
	int kept, left;
	char *word;

	{
		own_fd int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		own_fd int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
		own_fd int none = -1;
		own_free char *text = malloc(8), *gone = malloc(8), *null = NULL;
		own_dir DIR *dir = opendir("/"), *no_dir = NULL;
		own(thing) struct thing thing = { 0 };

		left = fd;
		kept = take_fd(&other);
		word = take_ptr(text);
		CHECK(other == -1 && text == NULL);
		CHECK(is_open(left) && dir && gone && none == -1 && !null && !no_dir);
		CHECK(thing.unused == 0 && freed == 0);
	}
	CHECK(freed == 1);
	CHECK(!is_open(left));
	CHECK(is_open(kept));
	CHECK(word != NULL);
	close(kept);
	free(word);
}

/* --- arena --- */

static bool is_zero(const unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

static void test_arena_pieces(void)
{
	struct arena a;
	unsigned char *before = NULL;

	arena_init(&a, 1 << 20);
	for (size_t size = 0; size < 300; size++) {
		unsigned char *p = arena_alloc(&a, size);

		CHECK(p && (uintptr_t)p % alignof(max_align_t) == 0 && p != before);
		if (!p)
			break;
		CHECK(is_zero(p, size));
		memset(p, 0xff, size); /* so that the next piece shows an overlap */
		before = p;
	}
	CHECK_STR(arena_copy(&a, "abcdef", 3), "abc");
	CHECK_STR(arena_copy(&a, NULL, 0), "");
	CHECK_STR(arena_printf(&a, "%d-%s", 12, "x"), "12-x");
	arena_done(&a);
	CHECK(!a.blocks && a.used == 0 && a.max == 0);
	CHECK(!arena_alloc(&a, 1));
	arena_done(&a);
}

static void test_arena_blocks(void)
{
	enum {
		BIG = 100 * 1000
	};
	struct arena a;
	char *small, *big, *next;

	arena_init(&a, 1 << 20);
	small = arena_copy(&a, "small", 5);
	big = arena_alloc(&a, BIG);
	CHECK(big && is_zero((unsigned char *)big, BIG));
	if (big)
		memset(big, 'b', BIG);
	/* A big block stands beside the one that still has room, and does not use it up. */
	next = arena_copy(&a, "next", 4);
	CHECK(next == small + 16);
	CHECK_STR(small, "small");
	CHECK_STR(next, "next");
	for (int i = 0; i < 100; i++)
		CHECK(arena_alloc(&a, 9000) != NULL);
	CHECK(big && big[0] == 'b' && big[BIG - 1] == 'b');
	CHECK_STR(small, "small");
	arena_done(&a);
}

static void test_arena_max(void)
{
	struct arena a;

	arena_init(&a, 100);
	CHECK(!arena_alloc(&a, 101));
	CHECK(arena_alloc(&a, 96) && a.used == 96);
	CHECK(!arena_alloc(&a, 1));
	CHECK(!arena_copy(&a, "x", 1) && !arena_printf(&a, "x"));
	arena_done(&a);
	arena_init(&a, 64);
	CHECK(arena_alloc(&a, 64));
	CHECK(!arena_alloc(&a, 0));
	arena_done(&a);
	arena_init(&a, 0);
	CHECK(!arena_alloc(&a, 0) && !arena_alloc(&a, 1));
	arena_done(&a);
}

static void test_arena_overflow(void)
{
	struct arena a;
	int *p;

	arena_init(&a, 4096);
	CHECK(!arena_array(&a, SIZE_MAX / 2, 3));
	CHECK(!arena_array(&a, SIZE_MAX / 8 + 2, 8)); /* the product would be 8 */
	CHECK(!arena_array(&a, SIZE_MAX, SIZE_MAX));
	CHECK(!arena_copy(&a, "", SIZE_MAX));
	CHECK(!arena_alloc(&a, SIZE_MAX) && !arena_alloc(&a, SIZE_MAX - 14));
	CHECK(a.used == 0);
	p = arena_array(&a, 100, sizeof(int));
	CHECK(p && is_zero((unsigned char *)p, 100 * sizeof(int)));
	CHECK(arena_array(&a, 0, 8) != NULL && arena_array(&a, 8, 0) != NULL);
	arena_done(&a);
	/* An arena without a bound of its own must not turn a huge size into a small piece. */
	arena_init(&a, SIZE_MAX);
	CHECK(!arena_alloc(&a, SIZE_MAX));
	CHECK(!arena_alloc(&a, SIZE_MAX - 7));
	arena_done(&a);
}

/* --- buf --- */

static void test_buf_grows(void)
{
	own(buf) struct buf b;

	buf_init(&b, 10000);
	CHECK_STR(buf_text(&b), "");
	buf_puts(&b, "one");
	buf_putc(&b, ' ');
	buf_repeat(&b, '-', 3);
	buf_printf(&b, " %d", 42);
	buf_add(&b, "!?", 1);
	buf_add(&b, NULL, 0);
	buf_repeat(&b, 'x', 0);
	CHECK_STR(buf_text(&b), "one --- 42!");
	for (int i = 0; i < 900; i++)
		buf_printf(&b, "%010d", i);
	CHECK(!b.failed && b.len == 11 + 9000 && b.data[b.len] == '\0');
	CHECK(strncmp(b.data + 11 + 8990, "0000000899", 10) == 0);
}

static void test_buf_max(void)
{
	own(buf) struct buf b;

	buf_init(&b, 5);
	buf_puts(&b, "12345");
	CHECK(!b.failed && b.len == 5);
	CHECK_STR(buf_text(&b), "12345");
	buf_puts(&b, "");
	CHECK(!b.failed);
	buf_putc(&b, '6');
	CHECK(b.failed);
	CHECK_STR(buf_text(&b), "12345");
	b.max = 100;
	buf_puts(&b, "7");
	buf_printf(&b, "8");
	buf_repeat(&b, '9', 1);
	buf_add_visible(&b, "0", 1);
	CHECK_STR(buf_text(&b), "12345"); /* it sticks */
	buf_done(&b);
	CHECK(!b.data && !b.failed && b.len == 0);
	buf_init(&b, 3);
	buf_printf(&b, "%s", "1234");
	CHECK(b.failed && b.len == 0);
	CHECK_STR(buf_text(&b), "");
	buf_done(&b);
	buf_init(&b, 8);
	buf_add(&b, "x", SIZE_MAX);
	CHECK(b.failed && b.len == 0);
}

static void test_buf_visible(void)
{
	static const struct {
		const char *text;
		size_t n;
		const char *wanted;
	} rows[] = {
		{ "plain", 5, "plain" },
		{ "Gr\xc3\xbc\xc3\x9f"
		  "e",
			7,
			"Gr\xc3\xbc\xc3\x9f"
			"e" },
		{ "\xf0\x9f\xa6\x8a", 4, "\xf0\x9f\xa6\x8a" },
		{ "\x1b[31mred", 8, "\\x1b[31mred" },
		{ "a\0b", 3, "a\\x00b" },
		{ "a\nb\tc\rd", 7, "a\\x0ab\\x09c\\x0dd" },
		{ "\x7f", 1, "\\x7f" },
		{ "\xc2\x9b"
		  "2J",
			4, "\\u{009b}2J" },               /* CSI as one character */
		{ "\xe2\x80\xae", 3, "\\u{202e}" },       /* right to left */
		{ "\xe2\x80\x8b", 3, "\\u{200b}" },       /* no width */
		{ "\xf3\xa0\x80\x81", 4, "\\u{e0001}" },  /* a language tag */
		{ "\xff\xfe", 2, "\\xff\\xfe" },          /* not UTF-8 */
		{ "\xc0\xaf", 2, "\\xc0\\xaf" },          /* an overlong slash */
		{ "\xed\xa0\x80", 3, "\\xed\\xa0\\x80" }, /* a surrogate */
		{ "caf\xc3", 4, "caf\\xc3" },             /* ends too soon */
		{ "\xe2\x82 x", 4, "\\xe2\\x82 x" },      /* goes on too soon */
		{ "back\\slash", 10, "back\\slash" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		own(buf) struct buf b = { .max = 1000 };

		buf_add_visible(&b, rows[i].text, rows[i].n);
		CHECK_STR(buf_text(&b), rows[i].wanted);
	}
}

/* --- sha256 --- */

/* The vectors of FIPS 180-4 and NIST's example values. */
static void test_sha256(void)
{
	static const struct {
		const char *text, *digest;
	} rows[] = {
		{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
			"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
		{ "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopq"
		  "klmnopqrlmnopqrsmnopqrstnopqrstu",
			"cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
	};
	own_free char *million = malloc(1000000);
	char digest[SHA256_HEX_SIZE];

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		sha256_hex(rows[i].text, strlen(rows[i].text), digest);
		CHECK_STR(digest, rows[i].digest);
	}
	if (million)
		memset(million, 'a', 1000000);
	sha256_hex(million, 1000000, digest);
	CHECK_STR(digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	sha256_hex("\0", 1, digest);
	CHECK_STR(digest, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
}

int main(void)
{
	test_err_set();
	test_err_sys();
	test_err_hint();
	test_err_size();
	test_err_prefix();
	test_err_table();
	test_own();
	test_arena_pieces();
	test_arena_blocks();
	test_arena_max();
	test_arena_overflow();
	test_buf_grows();
	test_buf_max();
	test_buf_visible();
	test_sha256();
	return check_report();
}
