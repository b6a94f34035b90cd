/* Folders that git would take for repositories, by whatever name; as root and as a user. */
#include "base/clock.h"
#include "change/apply/change_put.h"
#include "change_layer.h"

/* A folder that git would take for a repository. */
static void test_bare(void)
{
	own(change_effects) struct change_effects x;

	start_layer("bare");
	folder("layer/docs");
	folder("layer/docs/objects");
	folder("layer/docs/refs");
	put_text("layer/docs/HEAD", "ref: refs/heads/main\n");
	put_text("layer/docs/config", "[core]\n");
	folder_both("half"); /* the rest of it was there */
	folder("below/half/objects");
	folder("below/half/refs");
	put_text("below/half/HEAD", "x");
	put_text("layer/half/config", "[core]\n");
	folder("layer/plain");
	put_text("layer/plain/config", "[core]\n");
	folder_both("undone"); /* its refs are gone */
	folder("below/undone/objects");
	folder("below/undone/refs");
	whiteout("layer/undone/refs");
	put_text("below/undone/HEAD", "x");
	put_text("layer/undone/config", "x");
	scan(&x);
	CHECK(find(&x, "docs/config")->mark == CHANGE_HELD && find(&x, "docs/config")->note);
	CHECK(find(&x, "docs/HEAD")->mark == CHANGE_PLAIN);
	CHECK(find(&x, "half/config")->mark == CHANGE_HELD);
	CHECK(find(&x, "plain/config")->mark == CHANGE_PLAIN && !find(&x, "plain/config")->note);
	CHECK(find(&x, "undone/config")->mark == CHANGE_PLAIN);
	end_layer();
}

/* One that has its parts elsewhere, or gets them one after the other. */
static void test_parts_of_bare(void)
{
	own(change_effects) struct change_effects x;

	start_layer("parts");
	folder("layer/x");
	put_text("layer/x/HEAD", "ref: refs/heads/main\n");
	put_text("layer/x/commondir", "../y\n");
	put_text("layer/x/config.worktree", "[core]\n");
	folder("layer/y");
	folder("layer/y/objects");
	folder("layer/y/refs");
	put_text("layer/y/config", "[core]\n");
	CHECK(symlink("/etc/motd", "layer/y/FETCH_HEAD") == 0);
	folder("layer/alone");
	put_text("layer/alone/commondir", "../y\n"); /* beside no HEAD */
	CHECK(symlink("/etc/motd", "layer/alone/FETCH_HEAD") == 0);
	folder_both("two"); /* the first run left the others */
	put_text("below/two/config", "[core]\n");
	folder("below/two/objects");
	put_text("layer/two/HEAD", "ref: refs/heads/main\n");
	folder("layer/two/refs");
	put_text("layer/two/refs/a", "x");
	put_text("layer/two/readme", "x");
	folder_both("one"); /* nothing in it that git would obey */
	put_text("below/one/readme", "x");
	folder("layer/one/objects");
	folder("layer/one/refs");
	put_text("layer/one/HEAD", "ref: refs/heads/main\n");
	scan(&x);
	CHECK(find(&x, "x/commondir")->mark == CHANGE_HELD);
	CHECK(find(&x, "x/config.worktree")->mark == CHANGE_HELD);
	CHECK(find(&x, "y/config")->mark == CHANGE_HELD);
	CHECK(find(&x, "y/FETCH_HEAD")->mark == CHANGE_HELD);
	CHECK(find(&x, "alone/commondir")->mark == CHANGE_PLAIN);
	CHECK(find(&x, "alone/FETCH_HEAD")->mark == CHANGE_PLAIN);
	CHECK(find(&x, "two/HEAD")->mark == CHANGE_HELD &&
		find(&x, "two/refs")->mark == CHANGE_HELD);
	CHECK(find(&x, "two/refs/a")->mark == CHANGE_HELD);
	CHECK(find(&x, "two/readme")->mark == CHANGE_PLAIN);
	CHECK(find(&x, "one/HEAD")->mark == CHANGE_PLAIN &&
		find(&x, "one/refs")->mark == CHANGE_PLAIN);
	end_layer();
}

/* Names of git's in each other, with and without a repository in each: marked, and soon. */
static void test_nested_bare(void)
{
	own(change_effects) struct change_effects x;
	uint64_t began;
	char path[2048] = "layer";

	start_layer("nested");
	for (size_t i = 0; i < 160; i++) {
		strcat(path, i < 120 ? "/hooks" : "/objects");
		folder(path);
		if (i >= 120) {
			strcat(path, "/refs");
			folder(path);
			path[strlen(path) - 5] = '\0';
		}
	}
	began = clock_ns();
	scan(&x);
	CHECK(clock_ns() - began < SECOND);
	CHECK(x.count == 200 && x.items[100].mark == CHANGE_PLAIN);
	CHECK(x.items[160].mark == CHANGE_HELD && x.items[199].mark == CHANGE_PLAIN);
	end_layer();
}

/* What was held under its old name, and runs as a part of a repository under the new one. */
static void test_moved_into_bare(void)
{
	own(change_effects) struct change_effects x;
	const char *path = ".envrc";
	struct change_apply q = { .paths = &path, .path_count = 1 };
	const struct change_effect *hook, *plain;

	start_layer("moved");
	put_text("below/.envrc", "a program\n");
	whiteout("layer/.envrc");
	put_text("below/.bashrc", "another one\n");
	whiteout("layer/.bashrc");
	folder("layer/bare");
	folder("layer/bare/objects");
	folder("layer/bare/refs");
	folder("layer/bare/hooks");
	put_text("layer/bare/hooks/post-checkout", "a program\n");
	put_text("layer/plain", "another one\n");
	scan(&x);
	hook = find(&x, "bare/hooks/post-checkout");
	plain = find(&x, "plain");
	CHECK(hook->change == CHANGE_RENAMED && hook->mark == CHANGE_HELD && hook->note);
	CHECK(change_choose_one(&q, hook) == CHANGE_CHOSEN_HELD);
	path = "bare/hooks/post-checkout";
	CHECK(change_choose_one(&q, hook) == CHANGE_CHOSEN);
	path = ".bashrc";
	CHECK(plain->change == CHANGE_RENAMED && plain->mark == CHANGE_HELD && !plain->note);
	CHECK(change_choose_one(&q, plain) == CHANGE_CHOSEN);
	end_layer();
}

static void tests(void)
{
	test_bare();
	test_parts_of_bare();
	test_nested_bare();
	test_moved_into_bare();
}

int main(void)
{
	return work_place_run(tests);
}
