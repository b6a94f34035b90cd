/* Effects as JSON and back; what could not have been written is not read. */
#include <errno.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "change/change.h"
#include "change/effects/change_json.h"
#include "check.h"

static void fill(uint8_t hash[static SHA256_SIZE], int c)
{
	memset(hash, c, SHA256_SIZE);
}

static struct change_state file(uint64_t size, int c)
{
	struct change_state s = { .type = CHANGE_FILE, .mode = 0644, .size = size, .has_hash = c };

	if (c)
		fill(s.hash, c);
	return s;
}

/* One of everything, sorted by path. */
static size_t make(struct change_effect items[static 16])
{
	static const struct change_attribute attributes[] = {
		{ .name = "user.a", .change = CHANGE_ADDED, .hash = { 1 } },
		{ .name = "user.b\n", .change = CHANGE_CHANGED, .hash = { 2 } },
		{ .name = "user.\xff", .change = CHANGE_DELETED },
	};
	struct change_effect all[] = {
		{ .path = "\x01\x1b[31m\n",
			.change = CHANGE_ADDED,
			.after = file(3, 7),
			.is_text = true,
			.lines_added = 3 },
		{ .path = ".git/hooks/x",
			.change = CHANGE_ADDED,
			.mark = CHANGE_HELD,
			.after = file(0, 9) },
		{ .path = ".git/index.lock",
			.change = CHANGE_DELETED,
			.mark = CHANGE_LOCK,
			.before = file(5, 0),
			.below = { 1, 5, 2, 3 } },
		{ .path = "Makefile",
			.change = CHANGE_CHANGED,
			.mark = CHANGE_RUNS,
			.has_base = true,
			.is_text = true,
			.lines_added = UINT32_MAX,
			.lines_removed = 1,
			.before = file(1, 1),
			.after = file(UINT64_MAX >> 1, 2),
			.below = { UINT64_MAX, UINT64_MAX >> 1, INT64_MIN, INT64_MAX },
			.has_moved = true },
		{ .path = "folder",
			.change = CHANGE_ADDED,
			.is_implied = true,
			.after = { .type = CHANGE_FOLDER, .mode = 07777 } },
		{ .path = "link",
			.change = CHANGE_CHANGED,
			.before = file(4, 0),
			.after = { .type = CHANGE_LINK, .mode = 0777, .size = 9, .has_hash = true },
			.note = "what it was cannot be read on the host" },
		{ .path = "new name",
			.from = "old \xfe name",
			.change = CHANGE_RENAMED,
			.before = file(8, 3),
			.after = file(8, 3),
			.attributes = attributes,
			.attribute_count = 3 },
		{ .path = "pipe", .change = CHANGE_DELETED, .before = { .type = CHANGE_SPECIAL } },
		{ .path = "\u00e9", .change = CHANGE_ADDED, .after = file(1, 1) },
		{ .path = "\xff\xfe/x", .change = CHANGE_ADDED, .after = file(1, 1) },
	};

	memcpy(items, all, sizeof(all));
	return COUNT_OF(all);
}

static bool is_same_state(const struct change_state *a, const struct change_state *b)
{
	return a->type == b->type && a->mode == b->mode && a->size == b->size &&
	       a->has_hash == b->has_hash && memcmp(a->hash, b->hash, SHA256_SIZE) == 0;
}

static void check_same(const struct change_effect *a, const struct change_effect *b)
{
	CHECK_STR(a->path, b->path);
	CHECK(!a->from == !b->from && !a->note == !b->note);
	if (a->from)
		CHECK_STR(a->from, b->from);
	if (a->note)
		CHECK_STR(a->note, b->note);
	CHECK(a->change == b->change && a->mark == b->mark);
	CHECK(is_same_state(&a->before, &b->before) && is_same_state(&a->after, &b->after));
	CHECK(memcmp(&a->below, &b->below, sizeof(a->below)) == 0);
	CHECK(a->has_moved == b->has_moved && a->has_base == b->has_base);
	CHECK(a->is_implied == b->is_implied && a->is_text == b->is_text);
	CHECK(a->lines_added == b->lines_added && a->lines_removed == b->lines_removed);
	CHECK(a->attribute_count == b->attribute_count);
	for (size_t i = 0; i < a->attribute_count && i < b->attribute_count; i++) {
		CHECK_STR(a->attributes[i].name, b->attributes[i].name);
		CHECK(a->attributes[i].change == b->attributes[i].change);
		CHECK(memcmp(a->attributes[i].hash, b->attributes[i].hash, SHA256_SIZE) == 0);
	}
}

static void test_back(void)
{
	struct change_effect items[16];
	struct change_effects x = { .items = items, .count = make(items) };
	own(change_effects) struct change_effects back = { 0 };
	own(buf) struct buf text = { .max = 1 << 20 }, again = text;
	struct err e = { 0 };

	change_effects_init(&back);
	change_digest(&x, x.digest);
	change_effects_print(&x, NULL, NULL, &text);
	CHECK(change_effects_read(text.data, text.len, &back, &e) == 0);
	CHECK_STR(e.text, "");
	CHECK(back.count == x.count);
	for (size_t i = 0; i < x.count && i < back.count; i++)
		check_same(&back.items[i], &x.items[i]);
	CHECK_STR(back.digest, x.digest);
	change_effects_print(&back, NULL, NULL, &again);
	CHECK_STR(buf_text(&again), buf_text(&text));
	/* The operator's terminal is safe from names in it. */
	for (size_t i = 0; i + 1 < text.len; i++)
		CHECK((unsigned char)text.data[i] >= ' ');
	CHECK(strstr(text.data, "\"why\":\"a git hook: git runs it\""));
	CHECK(strstr(text.data, "\"path_hex\":\"fffe2f78\""));
}

static bool is_renamed(void *of, const struct change_effect *x)
{
	++*(int *)of;
	return x->change == CHANGE_RENAMED;
}

static void test_only(void)
{
	struct change_effect items[16];
	struct change_effects x = { .items = items, .count = make(items) };
	own(buf) struct buf text = { .max = 1 << 20 };
	int asked = 0;

	change_effects_print(&x, is_renamed, &asked, &text);
	CHECK(asked == (int)x.count);
	CHECK(strstr(buf_text(&text), "new name") && !strstr(buf_text(&text), "Makefile"));
}

/* Every change of what counts is another digest, and nothing else is. */
static void test_digest(void)
{
	struct change_effect items[16];
	struct change_effects x = { .items = items, .count = make(items) };
	char first[SHA256_HEX_SIZE], other[SHA256_HEX_SIZE];

	change_digest(&x, first);
	items[3].has_moved = false;
	items[3].below.inode = 1;
	items[3].lines_added = 7;
	items[3].note = "x";
	items[3].mark = CHANGE_PLAIN;
	items[3].before.size = 99;
	change_digest(&x, other);
	CHECK_STR(other, first);
	items[3].after.size--;
	change_digest(&x, other);
	CHECK(!str_eq(other, first));
	make(items);
	items[4].after.mode ^= 01;
	change_digest(&x, other);
	CHECK(!str_eq(other, first));
	make(items);
	items[6].attribute_count--;
	change_digest(&x, other);
	CHECK(!str_eq(other, first));
	make(items);
	items[6].from = "old";
	change_digest(&x, other);
	CHECK(!str_eq(other, first));
	x.count = 0; /* of nothing: what anybody can compute */
	change_digest(&x, other);
	sha256_hex("bawn-effects-1", sizeof("bawn-effects-1"), first);
	CHECK_STR(other, first);
}

static int try_read(const char *text, size_t n, struct err *e)
{
	own(change_effects) struct change_effects x;

	change_effects_init(&x);
	return change_effects_parse(text, n, &x, e);
}

#define HASH            "0000000000000000000000000000000000000000000000000000000000000000"
#define AROUND(effects) "{\"version\":1,\"digest\":\"" HASH "\",\"effects\":[" effects "]}"
#define STATE           "{\"type\":\"file\",\"mode\":\"0644\",\"size\":1}"

static void test_refused(void)
{
	static const char *const bad[] = { "", "{}", "[]", "null", "{\"version\":1}",
		"{\"version\":2,\"digest\":\"" HASH "\",\"effects\":[]}",
		"{\"version\":1,\"effects\":[]}", "{\"version\":1,\"digest\":\"x\",\"effects\":[]}",
		"{\"version\":1,\"version\":1,\"digest\":\"" HASH "\",\"effects\":[]}", AROUND("1"),
		AROUND("{}"), AROUND("{\"path\":\"a\"}"),
		AROUND("{\"path\":\"a\",\"change\":\"added\"}"),
		AROUND("{\"path\":\"a\",\"change\":\"grown\",\"after\":" STATE "}"),
		AROUND("{\"path\":\"a\",\"change\":\"changed\",\"after\":" STATE "}"),
		AROUND("{\"path\":\"a\",\"change\":\"renamed\",\"before\":" STATE
		       ",\"after\":" STATE "}"),
		AROUND("{\"path\":\"\",\"change\":\"added\",\"after\":" STATE "}"),
		AROUND("{\"path\":\"/etc\",\"change\":\"added\",\"after\":" STATE "}"),
		AROUND("{\"path\":\"..\",\"change\":\"added\",\"after\":" STATE "}"),
		AROUND("{\"path\":\"a/../b\",\"change\":\"added\",\"after\":" STATE "}"),
		AROUND("{\"path\":\"a//b\",\"change\":\"added\",\"after\":" STATE "}"),
		AROUND("{\"path\":\"a/\",\"change\":\"added\",\"after\":" STATE "}"),
		AROUND("{\"path\":\"./a\",\"change\":\"added\",\"after\":" STATE "}"),
		AROUND("{\"path_hex\":\"2e2e\",\"change\":\"added\",\"after\":" STATE "}"),
		AROUND("{\"path_hex\":\"6100\",\"change\":\"added\",\"after\":" STATE "}"),
		AROUND("{\"path_hex\":\"6\",\"change\":\"added\",\"after\":" STATE "}"),
		AROUND("{\"path\":\"a\",\"path_hex\":\"61\",\"change\":\"added\",\"after\":" STATE
		       "}"),
		AROUND("{\"path\":\"b\",\"change\":\"added\",\"after\":" STATE "},"
		       "{\"path\":\"a\",\"change\":\"added\",\"after\":" STATE "}"),
		AROUND("{\"path\":\"a\",\"change\":\"added\",\"after\":" STATE "},"
		       "{\"path\":\"a\",\"change\":\"added\",\"after\":" STATE "}"),
		AROUND("{\"path\":\"a\",\"change\":\"added\",\"after\":" STATE
		       ",\"attributes\":[{\"name\":\"user.overlay.opaque\",\"change\":\"added\","
		       "\"sha256\":\"" HASH "\"}]}"),
		AROUND("{\"path\":\"a\",\"change\":\"added\",\"after\":" STATE
		       ",\"attributes\":[{\"name\":\"security.capability\",\"change\":\"added\","
		       "\"sha256\":\"" HASH "\"}]}"),
		AROUND("{\"path\":\"a\",\"change\":\"added\",\"after\":{\"type\":\"file\","
		       "\"mode\":\"10644\",\"size\":1}}"),
		AROUND("{\"path\":\"a\",\"change\":\"added\",\"after\":{\"type\":\"file\","
		       "\"mode\":\"0644\",\"size\":-1}}"),
		AROUND("{\"path\":\"a\",\"change\":\"added\",\"after\":{\"type\":\"folder\","
		       "\"mode\":\"0644\",\"size\":1}}"),
		AROUND("{\"path\":\"a\",\"change\":\"added\",\"lines\":[1],\"after\":" STATE "}"),
		AROUND("{\"path\":\"a\",\"change\":\"added\",\"lines\":[1,4294967296],\"after\":" STATE
		       "}"),
		AROUND("{\"path\":\"a\",\"change\":\"added\",\"base\":true,\"after\":" STATE "}"),
		AROUND("{\"path\":\"a\",\"change\":\"added\",\"implied\":true,\"after\":" STATE
		       "}") };
	static const char good[] =
		AROUND("{\"path\":\"a\",\"change\":\"added\",\"after\":" STATE ",\"later\":[{}]}");
	struct err e = { 0 };

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		e = (struct err){ 0 };
		check_that(try_read(bad[i], strlen(bad[i]), &e) == -EBADMSG && e.text[0], bad[i],
			__FILE__, __LINE__);
	}
	CHECK(try_read(good, strlen(good), &e) == 0);
	{ /* and a digest of other effects is not believed */
		own(change_effects) struct change_effects x;

		change_effects_init(&x);
		CHECK(change_effects_read(good, strlen(good), &x, &e) == -EBADMSG && x.count == 0);
		CHECK(strstr(e.text, "digest"));
	}
}

/* No beginning and no single wrong byte is taken for the whole. */
static void test_mutations(void)
{
	struct change_effect items[16];
	struct change_effects x = { .items = items, .count = make(items) };
	own(buf) struct buf text = { .max = 1 << 20 };
	size_t refused = 0;

	change_digest(&x, x.digest);
	change_effects_print(&x, NULL, NULL, &text);
	for (size_t i = 0; i + 1 < text.len; i++) {
		own(change_effects) struct change_effects back;
		char was = text.data[i];

		change_effects_init(&back);
		CHECK(try_read(text.data, i, NULL) < 0);
		text.data[i] = (char)(was ^ 1);
		refused += change_effects_read(text.data, text.len, &back, NULL) < 0;
		text.data[i] = was;
	}
	CHECK(refused > text.len / 2);
}

int main(void)
{
	test_back();
	test_only();
	test_digest();
	test_refused();
	test_mutations();
	return check_report();
}
