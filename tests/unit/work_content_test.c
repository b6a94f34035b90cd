/* What takes longer to read than it took to write; as root and as a user. */
#include <time.h>

#include "work_layer.h"

#define MIB ((size_t)1 << 20)

/* Seconds of the processor's, which others' work does not make more. */
static double used(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

/* A text of n bytes, of lines that are 16 bytes long. */
static void put_lines(const char *path, size_t n)
{
	own_free char *bytes = malloc(n);

	CHECK(bytes != NULL);
	for (size_t i = 0; bytes && i < n; i++)
		bytes[i] = i % 16 == 15 ? '\n' : (char)('a' + i / 16 % 26);
	put(path, bytes, n);
}

static void link_many(const char *from, const char *to, size_t count)
{
	char path[64];

	for (size_t i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s%04zu", to, i);
		CHECK(link(from, path) == 0);
	}
}

static void scan_within(uint64_t max_unstored, struct work_effects *ret)
{
	struct err e = { 0 };

	CHECK(scan_with((struct work_scan){ .max_unstored = max_unstored }, ret, &e) == 0);
}

static bool has_one_hash(const struct work_effects *x)
{
	for (size_t i = 0; i < x->count; i++)
		if (!x->items[i].after.has_hash ||
			memcmp(x->items[i].after.hash, x->items[0].after.hash, SHA256_SIZE) != 0)
			return false;
	return true;
}

/* One file under many names is read once. */
static void test_links(void)
{
	own(work_effects) struct work_effects x;
	double began;

	start_layer("links");
	put_lines("layer/large", 32 * MIB);
	link_many("layer/large", "layer/z", 1000);
	began = used();
	scan(&x);
	CHECK(used() - began < 3);
	CHECK(x.count == 1001 && has_one_hash(&x) && x.items[1000].after.size == 32 * MIB);
	end_layer();
}

/* So are the host's, where one of them may have been renamed. */
static void test_gone_links(void)
{
	own(work_effects) struct work_effects x;
	char path[64];
	double began;

	start_layer("gone links");
	put_lines("below/large", 32 * MIB);
	link_many("below/large", "below/z", 500);
	for (size_t i = 0; i < 500; i++) {
		snprintf(path, sizeof(path), "layer/z%04zu", i);
		whiteout(path);
	}
	put_lines("layer/new", 32 * MIB);
	began = used();
	scan(&x);
	CHECK(used() - began < 3);
	CHECK(x.count == 500 && find(&x, "new")->change == WORK_RENAMED);
	CHECK_STR(find(&x, "new")->from, "z0000");
	end_layer();
}

/* Texts are read again for their lines, but not without end; the digest does not depend on it. */
static void test_linked_texts(void)
{
	own(work_effects) struct work_effects x, whole;
	size_t counted = 0, told = 0;

	start_layer("texts");
	put_lines("layer/text", 2 * MIB);
	link_many("layer/text", "layer/z", 20);
	put_lines("layer/other", 2 * MIB);
	scan_within(10 * MIB, &x);
	for (size_t i = 0; i < x.count; i++) {
		counted += x.items[i].is_text && x.items[i].lines_added == 2 * MIB / 16;
		told += x.items[i].note != NULL && !x.items[i].is_text;
	}
	CHECK(x.count == 22 && has_one_hash(&x) && counted == 7 && told == 15);
	CHECK(find(&x, "z0004")->is_text && !find(&x, "z0005")->is_text);
	scan(&whole);
	CHECK(find(&whole, "z0019")->is_text && !find(&whole, "z0019")->note);
	CHECK_STR(whole.digest, x.digest);
	end_layer();
}

static void tests(void)
{
	test_links();
	test_gone_links();
	test_linked_texts();
}

int main(void)
{
	return work_place_run(tests);
}
