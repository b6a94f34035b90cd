/* What apply decides without looking at a disk: what is chosen, in which order, what git guards. */
#include <stdlib.h>
#include <time.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "change/apply/change_put.h"
#include "check.h"

/* --- git's files --- */

static void test_places(void)
{
	static const struct {
		const char *path;
		enum change_git_kind kind;
		unsigned order;
		bool is_locked;
		size_t folder;
	} rows[] = {
		{ "src/main.c", CHANGE_GIT_NOT, 0, false, 0 },
		{ ".git", CHANGE_GIT_NOT, 0, false, 0 },
		{ "a/.git", CHANGE_GIT_NOT, 0, false, 0 },
		{ ".gitignore", CHANGE_GIT_NOT, 0, false, 0 },
		{ "x.git/HEAD", CHANGE_GIT_NOT, 0, false, 0 },
		{ ".git/HEAD", CHANGE_GIT_STATE, 2, true, 4 },
		{ ".GIT/HEAD", CHANGE_GIT_STATE, 2, true, 4 },
		{ "a/b/.git/HEAD", CHANGE_GIT_STATE, 2, true, 8 },
		{ ".git/ORIG_HEAD", CHANGE_GIT_STATE, 2, true, 4 },
		{ ".git/index", CHANGE_GIT_STATE, 3, true, 4 },
		{ ".git/sharedindex.abc", CHANGE_GIT_STATE, 0, false, 4 },
		{ ".git/packed-refs", CHANGE_GIT_STATE, 0, true, 4 },
		{ ".git/shallow", CHANGE_GIT_STATE, 0, true, 4 },
		{ ".git/refs/heads/main", CHANGE_GIT_STATE, 1, true, 4 },
		{ ".git/refs/heads/objects/x", CHANGE_GIT_STATE, 1, true, 4 },
		{ ".git/reftable/tables.list", CHANGE_GIT_STATE, 1, true, 4 },
		{ ".git/reftable/0x1-0x2.ref", CHANGE_GIT_STATE, 0, false, 4 },
		{ ".git/config", CHANGE_GIT_REST, 0, true, 4 },
		{ ".git/logs/refs/heads/main", CHANGE_GIT_STATE, 0, false, 4 },
		{ ".git/logs/HEAD", CHANGE_GIT_STATE, 0, false, 4 },
		{ ".git/rebase-merge/git-rebase-todo", CHANGE_GIT_STATE, 0, false, 4 },
		{ ".git/COMMIT_EDITMSG", CHANGE_GIT_REST, 0, false, 4 },
		{ ".git/FETCH_HEAD", CHANGE_GIT_REST, 0, false, 4 },
		{ ".git/hooks/index", CHANGE_GIT_REST, 0, false, 4 },
		{ ".git/objects/ab/cdef", CHANGE_GIT_OBJECT, 0, false, 4 },
		{ ".git/objects/ab/tmp_obj_x", CHANGE_GIT_CACHE, 0, false, 4 },
		{ ".git/objects/pack/pack-1.pack", CHANGE_GIT_OBJECT, 0, false, 4 },
		{ ".git/objects/pack/pack-1.idx", CHANGE_GIT_OBJECT, 1, false, 4 },
		{ ".git/objects/pack/multi-pack-index", CHANGE_GIT_CACHE, 0, false, 4 },
		{ ".git/objects/pack/tmp_pack_x", CHANGE_GIT_CACHE, 0, false, 4 },
		{ ".git/objects/info/commit-graph", CHANGE_GIT_CACHE, 0, false, 4 },
		{ ".git/objects/info/alternates", CHANGE_GIT_REST, 0, false, 4 },
		{ ".git/worktrees/w/HEAD", CHANGE_GIT_STATE, 2, true, 4 },
		{ ".git/worktrees/w/index", CHANGE_GIT_STATE, 3, true, 4 },
		{ ".git/worktrees/w/logs/HEAD", CHANGE_GIT_STATE, 0, false, 4 },
		{ ".git/worktrees/w", CHANGE_GIT_REST, 0, false, 4 },
		{ ".git/modules/m/HEAD", CHANGE_GIT_STATE, 2, true, 14 },
		{ ".git/modules/m/objects/ab/cd", CHANGE_GIT_OBJECT, 0, false, 14 },
		{ ".git/modules/lib/m/refs/heads/x", CHANGE_GIT_STATE, 1, true, 18 },
		{ ".git/modules/lib/m/index", CHANGE_GIT_STATE, 3, true, 18 },
		{ ".git/modules/m/modules/n/index", CHANGE_GIT_STATE, 3, true, 24 },
		{ ".git/modules/m", CHANGE_GIT_REST, 0, false, 12 },
		{ ".git/modules", CHANGE_GIT_REST, 0, false, 4 },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct change_git_place p = change_git_place_of(rows[i].path);

		if (p.kind != rows[i].kind || p.order != rows[i].order ||
			p.is_locked != rows[i].is_locked || p.folder != rows[i].folder)
			printf("%s: kind %d order %u locked %d folder %zu\n", rows[i].path, p.kind,
				p.order, p.is_locked, p.folder);
		CHECK(p.kind == rows[i].kind && p.order == rows[i].order &&
			p.is_locked == rows[i].is_locked && p.folder == rows[i].folder);
	}
}

/* --- git's index --- */

struct entry {
	const char *name;
	unsigned mode, flags, more_flags;
	char object;
};

static void put_32(struct buf *b, uint32_t n)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		buf_putc(b, (char)(n >> shift));
}

static void put_16(struct buf *b, unsigned n)
{
	buf_putc(b, (char)(n >> 8));
	buf_putc(b, (char)n);
}

static void put_entry(struct buf *b, uint32_t version, const struct entry *e, uint32_t times)
{
	size_t start = b->len, n = strlen(e->name);
	unsigned flags = e->flags | (n < 0xfff ? (unsigned)n : 0xfff);

	for (int i = 0; i < 6; i++)
		put_32(b, times);
	put_32(b, e->mode);
	for (int i = 0; i < 3; i++)
		put_32(b, times);
	buf_repeat(b, e->object, 20);
	put_16(b, flags | (e->more_flags ? 0x4000 : 0));
	if (e->more_flags)
		put_16(b, e->more_flags);
	buf_puts(b, e->name);
	buf_putc(b, '\0');
	while (version < 4 && (b->len - start) % 8)
		buf_putc(b, '\0');
}

/* Names are a, ab, abc …: version 4 takes nothing off, or says so. */
static struct buf make_index(
	uint32_t version, const struct entry *e, uint32_t count, uint32_t times)
{
	struct buf b;

	buf_init(&b, 1 << 20);
	buf_puts(&b, "DIRC");
	put_32(&b, version);
	put_32(&b, count);
	for (uint32_t i = 0; i < count; i++)
		put_entry(&b, version, &e[i], times);
	return b;
}

static bool is_same(const struct buf *a, const struct buf *b)
{
	return change_git_index_is_same(a->data, a->len, b->data, b->len);
}

static void end_index(struct buf *b)
{
	buf_repeat(b, 'c', 20);
}

static void compare_changed(const struct entry *now, bool wanted)
{
	static const struct entry was[] = { { "a", 0100644, 0, 0, 'x' },
		{ "b", 0100755, 0, 0, 'y' } };
	struct entry both[] = { was[0], *now };
	own(buf) struct buf a = make_index(2, was, 2, 1), b = make_index(2, both, 2, 99);

	if (now->more_flags) {
		buf_done(&b);
		b = make_index(3, both, 2, 99);
	}
	end_index(&a);
	end_index(&b);
	CHECK(is_same(&a, &b) == wanted);
}

static void test_index(void)
{
	static const struct entry e[] = { { "a", 0100644, 0, 0, 'x' },
		{ "b", 0100755, 0, 0, 'y' } };
	own(buf) struct buf a = make_index(2, e, 2, 1), b = make_index(2, e, 1, 1);
	own(buf) struct buf with = make_index(3, e, 2, 2), split = make_index(2, e, 2, 1);

	compare_changed(&(struct entry){ "b", 0100755, 0, 0, 'y' }, true);
	compare_changed(&(struct entry){ "b", 0100644, 0, 0, 'y' }, false);
	compare_changed(&(struct entry){ "b", 0100755, 0, 0, 'z' }, false);
	compare_changed(&(struct entry){ "c", 0100755, 0, 0, 'y' }, false);
	compare_changed(&(struct entry){ "b", 0100755, 0x1000, 0, 'y' }, false); /* a stage */
	compare_changed(&(struct entry){ "b", 0100755, 0x8000, 0, 'y' }, false);
	compare_changed(&(struct entry){ "b", 0100755, 0, 0x2000, 'y' }, false);

	buf_puts(&with, "TREE");
	put_32(&with, 3);
	buf_puts(&with, "abc");
	buf_puts(&split, "link");
	put_32(&split, 3);
	buf_puts(&split, "abc");
	end_index(&a);
	end_index(&b);
	end_index(&with);
	end_index(&split);
	CHECK(is_same(&a, &a) && is_same(&a, &with) && is_same(&with, &a));
	CHECK(!is_same(&a, &b) && !is_same(&a, &split) && !is_same(&split, &split));
	for (size_t n = 0; n < with.len; n++)
		CHECK(!change_git_index_is_same(a.data, a.len, with.data, n) || n == with.len - 11);
	CHECK(!change_git_index_is_same("", 0, "", 0));
}

/* "a", then one more letter each: of the name before, nothing or all is taken off. */
static void test_index_4(void)
{
	static const struct entry whole[] = { { "ab", 0100644, 0, 0, 'x' },
		{ "abc", 0100644, 0, 0, 'y' } };
	own(buf) struct buf two = make_index(2, whole, 2, 1), four;
	size_t first;

	end_index(&two);
	buf_init(&four, 1 << 16);
	buf_puts(&four, "DIRC");
	put_32(&four, 4);
	put_32(&four, 2);
	for (int i = 0; i < 2; i++) {
		buf_repeat(&four, 7, 24);
		put_32(&four, 0100644);
		buf_repeat(&four, 7, 12);
		buf_repeat(&four, i ? 'y' : 'x', 20);
		put_16(&four, i ? 3 : 2);
		buf_putc(&four, 0);
		first = four.len;
		buf_add(&four, i ? "c" : "ab", i ? 2 : 3);
	}
	end_index(&four);
	CHECK(is_same(&two, &four) && is_same(&four, &two));
	four.data[first - 1] = 3; /* more than there is */
	CHECK(!is_same(&two, &four));
	four.data[first - 1] = (char)0xff;
	CHECK(!is_same(&two, &four));
}

static bool is_safe(const char *name, const char *extension, const char *content)
{
	const struct entry e[] = { { "a", 0100644, 0, 0, 'x' }, { name, 0100755, 0, 0, 'y' } };
	own(buf) struct buf b = make_index(2, e, 2, 1);

	if (extension) {
		buf_puts(&b, extension);
		put_32(&b, (uint32_t)strlen(content));
		buf_puts(&b, content);
	}
	end_index(&b);
	return change_git_index_is_safe(b.data, b.len);
}

static void test_index_paths(void)
{
	static const char *const good[] = { "b", "b/c", ".gitignore", "x/.github/y", "x.git/HEAD",
		"...", "..b/c", ".git-x/y", "HEAD", "b/HEAD" };
	static const char *const bad[] = { ".git/hooks/post-checkout", ".git", "b/.git/config",
		"b/.git", ".GIT/x", "b/.gIt/x", "git~1/x", ".git /x", ".git./x", ".git::$DATA/x",
		".g\xe2\x80\x8cit/x", "../x", "b/../x", "b/..", "./x", "b/./c", "b//c", "/b",
		"b/" };

	for (size_t i = 0; i < COUNT_OF(good); i++)
		CHECK(is_safe(good[i], NULL, NULL));
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		CHECK(!is_safe(bad[i], NULL, NULL));
	CHECK(is_safe("b", "TREE", "abc") && !is_safe("b", "link", "abc"));
	/* Also in another one: git looks only at how far from the end it is. */
	CHECK(!is_safe("b", "EOIE", "oooochecksumchecksumchec"));
	CHECK(!is_safe("b", "TREE", "abcEOIEnnnnoooochecksumchecksumchec"));
	CHECK(!change_git_index_is_safe("", 0) && !change_git_index_is_safe("DIRC", 4));
}

/* --- choosing, and the order --- */

static struct change_effects effects_of(struct change_effect *items, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (items[i].after.type == CHANGE_NOTHING && items[i].change != CHANGE_DELETED)
			items[i].after.type = CHANGE_FILE;
	return (struct change_effects){ .items = items, .count = count };
}

static void test_within(void)
{
	const struct change_effect x = { .path = "a/b", .from = "c/d" };

	CHECK(change_effect_is_within(&x, ".") && change_effect_is_within(&x, "a"));
	CHECK(change_effect_is_within(&x, "a/b") && change_effect_is_within(&x, "c"));
	CHECK(!change_effect_is_within(&x, "a/bb") && !change_effect_is_within(&x, "a/b/c"));
	CHECK(!change_effect_is_within(&x, "b") && !change_effect_is_within(&x, ".."));
}

static void test_paths(void)
{
	CHECK(change_is_path("a") && change_is_path("a/b") && change_is_path("...") &&
		change_is_path(".a"));
	CHECK(change_is_path("..a/b..") && change_is_path("\n") && change_is_path("a/.../b"));
	CHECK(!change_is_path("") && !change_is_path("/") && !change_is_path("/a") &&
		!change_is_path("a/"));
	CHECK(!change_is_path("a//b") && !change_is_path(".") && !change_is_path("..") &&
		!change_is_path("a/..") && !change_is_path("../a") && !change_is_path("a/./b"));
}

static enum change_choice choose(const struct change_effect *x, const char *path, bool takes_held)
{
	static const char *const held[] = { "mine/deep" };
	struct change_apply q = { .paths = &path,
		.path_count = path ? 1 : 0,
		.held = held,
		.held_count = 1,
		.takes_held = takes_held };

	return change_choose_one(&q, x);
}

static void test_choice(void)
{
	const struct change_effect plain = { .path = "src/a.c", .from = "old/a.c" };
	const struct change_effect hook = { .path = ".git/hooks/x", .mark = CHANGE_HELD };
	const struct change_effect mine = { .path = "mine/deep/x/y", .mark = CHANGE_HELD };
	const struct change_effect in = { .path = ".git/hooks/x",
		.from = "set/up",
		.change = CHANGE_RENAMED,
		.mark = CHANGE_HELD };
	const struct change_effect out = { .path = "set/up",
		.from = ".git/hooks/x",
		.change = CHANGE_RENAMED,
		.mark = CHANGE_HELD };
	const struct change_effect both = { .path = ".git/hooks/y",
		.from = ".git/hooks/x",
		.change = CHANGE_RENAMED,
		.mark = CHANGE_HELD };

	CHECK(choose(&plain, NULL, false) == CHANGE_CHOSEN);
	CHECK(choose(&plain, "src", false) == CHANGE_CHOSEN);
	CHECK(choose(&plain, "old", false) == CHANGE_CHOSEN);
	CHECK(choose(&plain, "sr", false) == CHANGE_NOT_CHOSEN);
	CHECK(choose(&hook, NULL, false) == CHANGE_CHOSEN_HELD);
	CHECK(choose(&hook, NULL, true) == CHANGE_CHOSEN);
	CHECK(choose(&hook, ".", false) == CHANGE_CHOSEN_HELD);
	CHECK(choose(&hook, ".git", false) == CHANGE_CHOSEN_HELD);
	CHECK(choose(&hook, ".git", true) == CHANGE_CHOSEN);
	CHECK(choose(&hook, ".git/hooks", false) == CHANGE_CHOSEN);
	CHECK(choose(&hook, ".git/hooks/x", false) == CHANGE_CHOSEN);
	CHECK(choose(&in, "set/up", false) == CHANGE_CHOSEN_HELD);
	CHECK(choose(&in, "set", false) == CHANGE_CHOSEN_HELD);
	CHECK(choose(&in, "set/up", true) == CHANGE_CHOSEN);
	CHECK(choose(&in, ".git/hooks/x", false) == CHANGE_CHOSEN);
	CHECK(choose(&in, ".git/hooks", false) == CHANGE_CHOSEN);
	CHECK(choose(&out, ".git/hooks/x", false) == CHANGE_CHOSEN);
	CHECK(choose(&both, ".git/hooks/x", false) == CHANGE_CHOSEN_HELD);
	CHECK(choose(&both, ".git/hooks", false) == CHANGE_CHOSEN);
	CHECK(choose(&mine, "mine", false) == CHANGE_CHOSEN_HELD);
	CHECK(choose(&mine, "mine/deep", false) == CHANGE_CHOSEN);
	CHECK(choose(&mine, "mine/deep/x", false) == CHANGE_CHOSEN);
}

static void choose_all(
	const struct change_apply *q, const struct change_effects *x, uint8_t *choices)
{
	struct change_repositories repositories;

	CHECK(change_repositories_init(&repositories, x) == 0);
	change_choose(q, x, &repositories, choices);
	change_repositories_done(&repositories);
}

/* New folders above come along; and with a ref, the objects. */
static void test_taken_along(void)
{
	struct change_effect items[] = {
		{ .path = ".git/objects/ab", .after.type = CHANGE_FOLDER },
		{ .path = ".git/objects/ab/1" },
		{ .path = ".git/objects/cd/2", .change = CHANGE_DELETED },
		{ .path = ".git/refs/heads/x", .change = CHANGE_CHANGED },
		{ .path = "a", .after.type = CHANGE_FOLDER, .change = CHANGE_CHANGED },
		{ .path = "a/b", .after.type = CHANGE_FOLDER },
		{ .path = "a/b/c", .after.type = CHANGE_FOLDER },
		{ .path = "a/b/c/d" },
		{ .path = "a/b/e" },
		{ .path = "sub/.git/objects/ab/1" },
	};
	struct change_effects x = effects_of(items, COUNT_OF(items));
	const char *paths[] = { "a/b/c/d" };
	struct change_apply q = { .paths = paths, .path_count = 1 };
	uint8_t choices[COUNT_OF(items)];
	char got[sizeof(choices) + 1] = "";

	choose_all(&q, &x, choices);
	for (size_t i = 0; i < sizeof(choices); i++)
		got[i] = choices[i] ? '1' : '0';
	CHECK_STR(got, "0000011100");
	paths[0] = ".git/refs";
	choose_all(&q, &x, choices);
	for (size_t i = 0; i < sizeof(choices); i++)
		got[i] = choices[i] ? '1' : '0';
	CHECK_STR(got, "1101000000");
	/* But not what is held back, though it was in what was said. */
	items[1].mark = CHANGE_HELD;
	paths[0] = ".git";
	choose_all(&q, &x, choices);
	CHECK(choices[1] == CHANGE_CHOSEN_HELD && choices[3] == CHANGE_CHOSEN);
}

#define MANY_REPOSITORIES 2000
#define MANY_EFFECTS      (MANY_REPOSITORIES * 20)

/* A run can make as many as it likes: the time must not be that of all with all. */
static void test_many_repositories(void)
{
	struct change_effect *items = calloc(MANY_EFFECTS, sizeof(*items));
	char(*paths)[64] = calloc(MANY_EFFECTS, sizeof(*paths));
	uint8_t *choices = calloc(MANY_EFFECTS, 1);
	struct change_apply q = { .run = "x" };
	struct change_effects x;
	size_t chosen = 0;
	clock_t began;

	for (size_t i = 0; i < MANY_EFFECTS; i++) {
		snprintf(paths[i], sizeof(paths[i]), "r%05zu/.git/%s/%02zu", i / 20,
			i % 20 == 19 ? "refs/heads" : "objects/ab", i % 20);
		items[i].path = paths[i];
	}
	items[0].mark = CHANGE_HELD;
	x = effects_of(items, MANY_EFFECTS);
	began = clock();
	choose_all(&q, &x, choices);
	CHECK(clock() - began < CLOCKS_PER_SEC);
	for (size_t i = 0; i < MANY_EFFECTS; i++)
		chosen += choices[i] == CHANGE_CHOSEN;
	CHECK(chosen == MANY_EFFECTS - 1);
	free(items);
	free(paths);
	free(choices);
}

static void test_order(void)
{
	struct change_effect items[] = {
		{ .path = ".git/FETCH_HEAD", .change = CHANGE_CHANGED },
		{ .path = ".git/HEAD", .change = CHANGE_CHANGED },
		{ .path = ".git/index", .change = CHANGE_CHANGED },
		{ .path = ".git/logs/HEAD", .change = CHANGE_CHANGED },
		{ .path = ".git/objects/pack/pack-1.idx" },
		{ .path = ".git/objects/pack/pack-1.pack" },
		{ .path = ".git/packed-refs", .change = CHANGE_CHANGED },
		{ .path = ".git/refs/heads/main", .change = CHANGE_CHANGED },
		{ .path = ".git/refs/heads/new", .after.type = CHANGE_FOLDER },
		{ .path = "a" },
		{ .path = "sub/.git/HEAD", .change = CHANGE_CHANGED },
		{ .path = "sub/.git/refs/x", .change = CHANGE_CHANGED },
		{ .path = "sub/b", .from = ".git/refs/gone", .change = CHANGE_RENAMED },
	};
	static const char *const wanted[] = { "a", ".git/objects/pack/pack-1.pack",
		".git/refs/heads/new", ".git/objects/pack/pack-1.idx", "sub/b", ".git/logs/HEAD",
		".git/packed-refs", ".git/refs/heads/main", ".git/HEAD", ".git/index",
		"sub/.git/refs/x", "sub/.git/HEAD", ".git/FETCH_HEAD" };
	struct change_effects x = effects_of(items, COUNT_OF(items));
	struct change_turn turns[COUNT_OF(items)];

	for (size_t i = 0; i < x.count; i++)
		turns[i] = (struct change_turn){ .index = (uint32_t)i };
	change_turns_sort(&x, turns, x.count);
	for (size_t i = 0; i < x.count; i++)
		CHECK_STR(items[turns[i].index].path, wanted[i]);
	CHECK(change_turns_group(&x, turns, x.count) == 1);
	CHECK(change_turns_group(&x, turns + 1, x.count - 1) == 3);
	CHECK(change_turns_group(&x, turns + 5, x.count - 5) == 5);
}

int main(void)
{
	test_places();
	test_index();
	test_index_4();
	test_index_paths();
	test_within();
	test_paths();
	test_choice();
	test_taken_along();
	test_many_repositories();
	test_order();
	return check_report();
}
