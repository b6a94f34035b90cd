/* Saved workspaces that were damaged, or never were any: each is refused, and by the right reason.
 */
#include "session/folder/session_piece.h"

#include <errno.h>

#include "base/count.h"
#include "base/own.h"
#include "base/sha256.h"
#include "base/str.h"
#include "check.h"

static struct piece_writer w;
static struct buf out = { .max = (size_t)1 << 20 };
static const struct stat no_time;

static void begin(void)
{
	buf_done(&out);
	out.max = (size_t)1 << 20;
	w = (struct piece_writer){ .out = &out };
	CHECK(piece_begin(&w) == 0);
}

static void head(enum piece_kind kind, const char *name)
{
	piece_put_head(&w, kind, name, &no_time);
}

/* Without attributes. */
static void folder(const char *name)
{
	head(PIECE_FOLDER, name);
	piece_put_number(&w, 0755, 2);
	piece_put_number(&w, 0, 2);
}

static void file(const char *name, uint64_t size)
{
	head(PIECE_FILE, name);
	piece_put_number(&w, 0644, 2);
	piece_put_number(&w, 0, 2);
	piece_put_number(&w, size, 8);
}

static void extent(uint64_t size, uint64_t offset, const char *content)
{
	piece_put_number(&w, size, 8);
	piece_put_number(&w, offset, 8);
	for (; *content; content++)
		piece_put_number(&w, (uint8_t)*content, 1);
}

static void ends(unsigned count)
{
	for (; count; count--)
		piece_put_number(&w, PIECE_END, 1);
}

/* A small one with all there is. */
static void make_whole(void)
{
	begin();
	w.left_out = 3;
	folder("home");
	head(PIECE_FILE, "file");
	piece_put_number(&w, 0600, 2);
	piece_put_number(&w, 1, 2);
	piece_put_text(&w, "user.a");
	piece_put_number(&w, 2, 4);
	piece_put_text(&w, "x"); /* the value is its length, of which it takes 2 bytes, … */
	out.len -= 2;            /* … and nothing else */
	piece_put_number(&w, 100, 8);
	extent(3, 0, "abc");
	extent(1, 99, "z");
	piece_put_number(&w, 0, 8);
	head(PIECE_WHITEOUT, "gone");
	ends(1);
	head(PIECE_LINK, "project");
	piece_put_text(&w, "/project");
	ends(1);
	CHECK(piece_finish(&w) == 0);
}

static void test_whole(void)
{
	struct piece_attribute attribute = { 0 };
	struct piece_extent part = { 0 };
	struct piece_entry x;
	struct piece p;
	struct err e = { 0 };

	make_whole();
	CHECK(piece_check(out.data, out.len, &p, &e) == 0);
	CHECK_STR(e.text, "");
	CHECK(p.left_out == 3);
	CHECK(piece_read_entry(&p, &x) && x.kind == PIECE_FOLDER && str_eq(x.name, "home"));
	CHECK(x.mode == 0755 && !piece_read_attribute(&x.attributes, &attribute));
	CHECK(piece_read_entry(&p, &x) && x.kind == PIECE_FILE && x.size == 100 && x.mode == 0600);
	CHECK(piece_read_attribute(&x.attributes, &attribute));
	CHECK(str_eq(attribute.name, "user.a") && attribute.size == 2);
	CHECK(!piece_read_attribute(&x.attributes, &attribute));
	CHECK(piece_read_extent(&x.extents, &part) && part.offset == 0 && part.size == 3);
	CHECK(piece_read_extent(&x.extents, &part) && part.offset == 99 && part.size == 1);
	CHECK(memcmp(part.bytes, "z", 1) == 0 && !piece_read_extent(&x.extents, &part));
	CHECK(!x.extents.fault && !x.attributes.fault);
	CHECK(piece_read_entry(&p, &x) && x.kind == PIECE_WHITEOUT && str_eq(x.name, "gone"));
	CHECK(piece_read_entry(&p, &x) && x.kind == PIECE_END);
	CHECK(piece_read_entry(&p, &x) && x.kind == PIECE_LINK && str_eq(x.target, "/project"));
	CHECK(piece_read_entry(&p, &x) && x.kind == PIECE_END && p.at == p.end);
	CHECK(!piece_read_entry(&p, &x) && p.fault);
}

/* Every bit changed once, and every length: all of it is noticed. */
static void test_damage(void)
{
	struct piece p;
	struct err e = { 0 };

	make_whole();
	for (size_t i = 0; i < out.len * 8; i++) {
		out.data[i / 8] = (char)(out.data[i / 8] ^ 1 << i % 8);
		if (piece_check(out.data, out.len, &p, &e) != -EBADMSG)
			CHECK_STR("a bit was changed", "and noticed");
		out.data[i / 8] = (char)(out.data[i / 8] ^ 1 << i % 8);
	}
	for (size_t n = 0; n < out.len; n++) {
		/* In memory of its own, so that the sanitizers see a byte too many. */
		own_free char *part = malloc(n + 1);

		memcpy(part, out.data, n);
		if (piece_check(part, n, &p, &e) != -EBADMSG)
			CHECK_STR("a piece of it", "and noticed");
	}
	CHECK(piece_check(out.data, out.len, &p, &e) == 0);
	CHECK(piece_check(out.data, (size_t)1 << 40, &p, &e) == -EFBIG);
}

/* The same with a digest that fits: whatever is taken is as the header says. */
static void test_damage_with_digest(void)
{
	size_t taken = 0;

	make_whole();
	for (size_t i = PIECE_HEAD_SIZE; i < out.len - PIECE_DIGEST_SIZE; i++)
		for (int byte = 0; byte < 256; byte += 5) {
			own_free char *copy = malloc(out.len);
			struct err e = { 0 };
			struct sha256 s;
			struct piece p;

			memcpy(copy, out.data, out.len);
			copy[i] = (char)byte;
			sha256_init(&s);
			sha256_add(&s, copy, out.len - PIECE_DIGEST_SIZE);
			sha256_finish(&s, (uint8_t *)copy + out.len - PIECE_DIGEST_SIZE);
			if (piece_check(copy, out.len, &p, &e) == 0)
				taken++;
			else
				CHECK(str_starts(e.text, "cannot use the saved workspace: "));
		}
	CHECK(taken > 0); /* modes, times and content may be any */
}

/* --- one thing wrong --- */

static void climb(void)
{
	folder("home");
	folder("..");
	ends(3);
}

static void slash(void)
{
	folder("home");
	file("a/b", 0);
	piece_put_number(&w, 0, 8);
	ends(2);
}

static void stranger(void)
{
	folder("elsewhere");
	ends(2);
}

static void linked_home(void)
{
	head(PIECE_LINK, "home");
	piece_put_text(&w, "/home");
	ends(1);
}

static void twice(void)
{
	folder("home");
	head(PIECE_LINK, "a");
	piece_put_text(&w, "/tmp");
	folder("a");
	ends(3);
}

static void work(void)
{
	folder("layer");
	folder(PIECE_WORK);
	ends(3);
}

static void deep(void)
{
	folder("home");
	for (int i = 0; i < 256; i++)
		folder("d");
	ends(258);
}

static void beyond(void)
{
	folder("home");
	file("a", 5);
	extent(3, 3, "abc");
	piece_put_number(&w, 0, 8);
	ends(2);
}

static void wraps(void)
{
	folder("home");
	file("a", 5);
	extent(3, UINT64_MAX - 1, "abc");
	piece_put_number(&w, 0, 8);
	ends(2);
}

static void endless(void)
{
	folder("home");
	file("a", INT64_MAX);
	extent(UINT64_MAX, 0, "abc");
	ends(2);
}

static void privileged(void)
{
	head(PIECE_FOLDER, "home");
	piece_put_number(&w, 0755, 2);
	piece_put_number(&w, 1, 2);
	piece_put_text(&w, "security.capability");
	piece_put_number(&w, 0, 4);
	ends(2);
}

static void set_id(void)
{
	folder("home");
	head(PIECE_FILE, "a");
	piece_put_number(&w, 04755, 2);
	ends(2);
}

static void more(void)
{
	ends(1);
	head(PIECE_LINK, "project");
	piece_put_text(&w, "x");
}

static void device(void)
{
	head('c', "home");
	ends(1);
}

static void nothing(void)
{
}

static void test_hostile(void)
{
	static const struct {
		void (*put)(void);
		const char *fault;
	} rows[] = {
		{ climb, "a name is none that a folder can have" },
		{ slash, "a name is none that a folder can have" },
		{ stranger, "it has something that no workspace has" },
		{ linked_home, "it has something that no workspace has" },
		{ twice, "names are out of order" },
		{ work, "it has a layer's work, which is not kept" },
		{ deep, "its folders are nested too deep" },
		{ beyond, "content is out of order, or beyond its file" },
		{ wraps, "content is out of order, or beyond its file" },
		{ endless, "it ends in the middle of something" },
		{ privileged, "an attribute is not one of a user's" },
		{ set_id, "a mode is none that is kept" },
		{ more, "something follows its end" },
		{ device, "an entry is of no known kind" },
		{ nothing, "it ends in the middle of something" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct err e = { 0 };
		char wanted[128];
		struct piece p;

		begin();
		rows[i].put();
		CHECK(piece_finish(&w) == 0);
		CHECK(piece_check(out.data, out.len, &p, &e) == -EBADMSG);
		snprintf(wanted, sizeof(wanted), "cannot use the saved workspace: %s (at byte ",
			rows[i].fault);
		if (!str_starts(e.text, wanted))
			CHECK_STR(e.text, wanted);
	}
}

/* What is full stays so, and is told apart from a lack of memory. */
static void test_limit(void)
{
	static char content[4096];

	buf_done(&out);
	out.max = 200;
	w = (struct piece_writer){ .out = &out };
	CHECK(piece_begin(&w) == 0 && w.limit == 200 - PIECE_DIGEST_SIZE);
	memset(content, 'n', sizeof(content) - 1);
	piece_put_text(&w, content);
	CHECK(piece_how_it_went(&w) == -EFBIG && piece_finish(&w) == -EFBIG && out.len <= 200);
	buf_done(&out);
	out.max = 10;
	CHECK(piece_begin(&w) == -EINVAL);
}

int main(void)
{
	test_whole();
	test_damage();
	test_damage_with_digest();
	test_hostile();
	test_limit();
	buf_done(&out);
	return check_report();
}
