/* What takes longer to read than it took to write; as root and as a user. */
#include <time.h>

#include "change_layer.h"

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

static void scan_within(uint64_t max_unstored, struct change_effects *ret)
{
	struct err e = { 0 };

	CHECK(scan_with((struct change_scan){ .max_unstored = max_unstored }, ret, &e) == 0);
}

static bool has_one_hash(const struct change_effects *x)
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
	own(change_effects) struct change_effects x;
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
	own(change_effects) struct change_effects x;
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
	CHECK(x.count == 500 && find(&x, "new")->change == CHANGE_RENAMED);
	CHECK_STR(find(&x, "new")->from, "z0000");
	end_layer();
}

/* Texts are read again for their lines, but not without end; the digest does not depend on it. */
static void test_linked_texts(void)
{
	own(change_effects) struct change_effects x, whole;
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

/* --- holes --- */

#define HUGE ((off_t)4 << 40)

/* A file of this size with nothing in it but a word at its end. */
static void put_hole(const char *path, off_t size)
{
	own_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && ftruncate(fd, size) == 0 && fchmod(fd, 0644) == 0);
	CHECK(pwrite(fd, "end", 3, size - 3) == 3);
}

/* Told, with its size and why there is no hash. */
static bool is_told(const struct change_effect *x)
{
	return x->after.type == CHANGE_FILE && x->after.size == (uint64_t)HUGE &&
	       !x->after.has_hash && x->note && strstr(x->note, "holes") &&
	       strstr(x->note, "not applied");
}

/* What is longer than anybody can read, in all the ways in which it can be met. */
static void test_huge(void)
{
	own(change_effects) struct change_effects x, copy;
	const struct change_effect *was;
	struct err e = { 0 };
	double began;

	start_layer("huge");
	put_hole("layer/added", HUGE);
	CHECK(link("layer/added", "layer/again") == 0);
	put_hole("layer/both", HUGE);
	put_hole("below/both", HUGE);
	put_hole("below/gone", HUGE);
	put_hole("below/was", HUGE);
	put_text("layer/was", "small\n");
	began = used();
	CHECK(scan_with((struct change_scan){ .is_copy = true }, &copy, &e) == 0);
	whiteout("layer/gone");
	scan(&x);
	CHECK(used() - began < 3);
	CHECK_STR(list(&x), "added added, added again, changed both, deleted gone, changed was");
	CHECK(is_told(find(&x, "added")) && is_told(find(&x, "again")));
	CHECK(is_told(find(&x, "both")));
	was = find(&x, "was");
	CHECK(was->after.has_hash && !was->before.has_hash && was->note);
	CHECK(was->before.size == (uint64_t)HUGE);
	CHECK_STR(copy.digest, x.digest);
	end_layer();
}

/* Of what lasts for some, the first by path are hashed, in whatever order they were made. */
static void test_holes(void)
{
	own(change_effects) struct change_effects x, whole;
	own_free char *bytes = calloc(1, 4 * MIB);
	char hex[SHA256_HEX_SIZE], wanted[SHA256_HEX_SIZE];

	start_layer("holes");
	put_hole("layer/c", 4 * MIB);
	put_hole("layer/b", 4 * MIB);
	put_lines("layer/d", 4 * MIB);
	put_hole("layer/a", 4 * MIB);
	scan_within(9 * MIB, &x);
	CHECK(find(&x, "a")->after.has_hash && find(&x, "b")->after.has_hash);
	CHECK(!find(&x, "c")->after.has_hash && find(&x, "c")->note);
	CHECK(find(&x, "d")->after.has_hash && !find(&x, "a")->note);
	scan(&whole);
	CHECK(find(&whole, "c")->after.has_hash && !find(&whole, "c")->note);
	CHECK(bytes != NULL);
	memcpy(bytes + 4 * MIB - 3, "end", 3);
	sha256_hex(bytes, 4 * MIB, wanted);
	sha256_print(find(&whole, "c")->after.hash, hex);
	CHECK_STR(hex, wanted);
	end_layer();
}

/* The host's own: its size alone does not make the other one its new name. */
static void test_gone_hole(void)
{
	own(change_effects) struct change_effects x;

	start_layer("gone hole");
	put_hole("below/old", 4 * MIB);
	whiteout("layer/old");
	put_hole("layer/new", 4 * MIB);
	scan_within(5 * MIB, &x);
	CHECK_STR(list(&x), "added new, deleted old");
	CHECK(find(&x, "old")->note && strstr(find(&x, "old")->note, "renamed"));
	change_effects_done(&x);
	scan(&x);
	CHECK_STR(list(&x), "renamed new from old");
	end_layer();
}

static void tests(void)
{
	test_huge();
	test_holes();
	test_gone_hole();
	test_links();
	test_gone_links();
	test_linked_texts();
}

int main(void)
{
	return work_place_run(tests);
}
