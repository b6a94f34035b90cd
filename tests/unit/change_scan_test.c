/* What a layer means for the tree below, kind by kind; as root and as a user. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/count.h"
#include "change/scan/change_scanner.h"
#include "change_layer.h"

static void test_kinds(void)
{
	own(change_effects) struct change_effects x;

	start_layer("kinds");
	put_text("layer/added", "new\n");
	put_both("changed", "old\n", "new!\n");
	put_both("same", "same\n", "same\n");
	put_both("same size", "1234\n", "1235\n");
	put_both("mode", "x", "x");
	CHECK(chmod("layer/mode", 04755) == 0);
	put_text("below/deleted", "of this size\n");
	whiteout("layer/deleted");
	whiteout("layer/never was there");
	put_text("below/untouched", "x");
	folder("layer/empty");
	folder_both("passed through");
	put_text("layer/passed through/inside", "x");
	folder_both("folder mode");
	CHECK(chmod("layer/folder mode", 0700) == 0);
	CHECK(symlink("target", "layer/link") == 0);
	CHECK(symlink("same", "layer/same link") == 0 && symlink("same", "below/same link") == 0);
	CHECK(symlink("one", "layer/other link") == 0 && symlink("two", "below/other link") == 0);
	scan(&x);
	CHECK_STR(list(&x), "added added, changed changed, deleted deleted, added empty, "
			    "changed folder mode, added link, changed mode, changed other link, "
			    "added passed through/inside, changed same size");
	CHECK(find(&x, "added")->after.type == CHANGE_FILE && find(&x, "added")->after.size == 4);
	CHECK(find(&x, "added")->before.type == CHANGE_NOTHING &&
		find(&x, "added")->below.changed_ns == 0);
	CHECK(find(&x, "mode")->before.mode == 0644 && find(&x, "mode")->after.mode == 04755);
	CHECK(find(&x, "changed")->before.size == 4 && find(&x, "changed")->after.size == 5);
	CHECK(find(&x, "changed")->below.size == 4 && find(&x, "changed")->below.inode);
	CHECK(find(&x, "deleted")->before.size == 13 &&
		find(&x, "deleted")->after.type == CHANGE_NOTHING);
	CHECK(!find(&x, "deleted")->before.has_hash); /* nothing needs it */
	CHECK(find(&x, "link")->after.type == CHANGE_LINK && find(&x, "link")->after.has_hash);
	end_layer();
}

static void test_hashes(void)
{
	own(change_effects) struct change_effects x;
	char hex[SHA256_HEX_SIZE];

	start_layer("hashes");
	put_both("file", "old", "abc");
	CHECK(symlink("abc", "layer/link") == 0);
	scan(&x);
	for (size_t i = 0; i < 2; i++) {
		sha256_print(x.items[i].after.hash, hex);
		CHECK_STR(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	}
	CHECK(find(&x, "file")->before.has_hash);
	end_layer();
}

/* Types that take each other's place; nothing is found behind a link. */
static void test_types(void)
{
	own(change_effects) struct change_effects x;

	start_layer("types");
	put_text("below/file to folder", "x");
	folder("layer/file to folder");
	put_text("layer/file to folder/a", "x");
	folder("below/folder to file");
	folder("below/folder to file/sub");
	put_text("below/folder to file/sub/a", "gone");
	put_text("layer/folder to file", "x");
	folder("below/real");
	put_text("below/real/a", "x");
	CHECK(symlink("real", "below/link to folder") == 0);
	folder("layer/link to folder");
	put_text("layer/link to folder/a", "x");
	folder("below/folder to link");
	put_text("below/folder to link/b", "gone");
	CHECK(symlink("/etc", "layer/folder to link") == 0);
	scan(&x);
	CHECK_STR(list(&x), "changed file to folder, added file to folder/a, "
			    "changed folder to file, deleted folder to file/sub, "
			    "deleted folder to file/sub/a, changed folder to link, "
			    "deleted folder to link/b, changed link to folder, "
			    "added link to folder/a");
	CHECK(find(&x, "link to folder")->before.type == CHANGE_LINK);
	CHECK(find(&x, "link to folder")->after.type == CHANGE_FOLDER);
	CHECK(find(&x, "folder to file/sub")->is_implied);
	CHECK(!find(&x, "folder to file")->is_implied);
	end_layer();
}

static void test_gone_folders(void)
{
	own(change_effects) struct change_effects x;

	start_layer("gone");
	folder("below/whole");
	folder("below/whole/deep");
	put_text("below/whole/deep/a", "x");
	CHECK(symlink("/", "below/whole/link") == 0);
	folder("below/empty");
	whiteout("layer/whole");
	whiteout("layer/empty");
	folder_both("again"); /* deleted and made again: hides what is below */
	put_both("again/same", "same\n", "same\n");
	put_both("again/other", "old\n", "new\n");
	put_text("below/again/left", "x");
	folder_both("again/sub"); /* nothing is seen through it either */
	put_text("below/again/sub/left", "x");
	put_text("below/again/white", "x");
	whiteout("layer/again/white");
	attribute("layer/again", "user.overlay.opaque", "y");
	scan(&x);
	CHECK_STR(list(&x), "deleted again/left, changed again/other, deleted again/sub/left, "
			    "deleted again/white, deleted empty, deleted whole, "
			    "deleted whole/deep, deleted whole/deep/a, deleted whole/link");
	CHECK(find(&x, "whole")->is_implied && find(&x, "whole/deep")->is_implied);
	CHECK(!find(&x, "empty")->is_implied && !find(&x, "whole/link")->is_implied);
	end_layer();
}

/* The newer whiteouts: empty files, where their folder says that there are some. */
static void test_attribute_whiteouts(void)
{
	own(change_effects) struct change_effects x;

	start_layer("x");
	folder_both("with");
	put_both("with/gone", "x", "");
	put_both("with/emptied", "x", "");
	put_both("with/seen", "x", "x");
	put_text("below/with/below", "x"); /* and the folder hides nothing */
	attribute("layer/with", "user.overlay.opaque", "x");
	attribute("layer/with/gone", "user.overlay.whiteout", "");
	folder_both("without");
	put_both("without/kept", "x", "");
	attribute("layer/without/kept", "user.overlay.whiteout", "");
	scan(&x);
	CHECK_STR(list(&x), "changed with/emptied, deleted with/gone, changed without/kept");
	end_layer();
}

/* Attributes that no run can set are not obeyed, and not passed over. */
static void test_forged(void)
{
	static const char *const rows[][2] = { { "user.overlay.redirect", "/etc" },
		{ "user.overlay.metacopy", "" }, { "user.overlay.opaque", "z" },
		{ "user.overlay.opaque", "yy" }, { "user.overlay.opaque", "" },
		{ "user.overlay.opaque", "a long value" } };

	start_layer("forged");
	folder_both("folder");
	put_text("below/folder/a", "x");
	put_both("file", "x", "x");
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		attribute("layer/folder", rows[i][0], rows[i][1]);
		CHECK_REFUSED("somebody changed the layer");
		CHECK(removexattr("layer/folder", rows[i][0]) == 0);
	}
	attribute("layer/file", "user.overlay.metacopy", "");
	CHECK_REFUSED("'file' of its layer has 'user.overlay.metacopy'");
	CHECK(removexattr("layer/file", "user.overlay.metacopy") == 0);
	/* Overlays' own notes, and what a cage makes of forgeries. */
	attribute("layer/file", "user.overlay.origin", "x");
	attribute("layer/folder", "user.overlay.impure", "y");
	attribute("layer/folder", "user.overlay.overlay.opaque", "y");
	{
		own(change_effects) struct change_effects x;

		scan(&x);
		CHECK_STR(list(&x), "");
	}
	end_layer();
}

/* The same signs in a copy are a run's own, and mean nothing. */
static void test_copy(void)
{
	own(change_effects) struct change_effects x;
	struct err e = { 0 };

	start_layer("copy");
	put_both("same", "x", "x");
	put_both("changed", "x", "y");
	put_text("below/deleted", "x");
	folder("below/folder");
	put_text("below/folder/a", "x");
	folder_both("sub");
	put_text("below/sub/deleted", "x");
	attribute("layer/sub", "user.overlay.opaque", "nonsense");
	attribute("layer/same", "user.overlay.redirect", "/");
	put_text("below/device", "x");
	whiteout("layer/device");
	CHECK(scan_with((struct change_scan){ .is_copy = true }, &x, &e) == 0);
	CHECK_STR(list(&x), "changed changed, deleted deleted, changed device, deleted folder, "
			    "deleted folder/a, deleted sub/deleted");
	CHECK(find(&x, "device")->after.type == CHANGE_SPECIAL);
	end_layer();
}

static void test_special(void)
{
	own(change_effects) struct change_effects x;
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "layer/socket" };
	own_fd int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	start_layer("special");
	CHECK(mkfifo("layer/pipe", 0600) == 0);
	CHECK(mkfifo("layer/same pipe", 0600) == 0 && mkfifo("below/same pipe", 0600) == 0);
	CHECK(mkfifo("below/read by nobody", 0600) == 0);
	put_text("layer/read by nobody", "x");
	CHECK(mkfifo("below/gone", 0600) == 0);
	whiteout("layer/gone");
	CHECK(bind(sock, (struct sockaddr *)&address, sizeof(address)) == 0);
	scan(&x); /* which does not wait for a writer */
	CHECK_STR(list(&x), "deleted gone, added pipe, changed read by nobody, added socket");
	CHECK(find(&x, "pipe")->after.type == CHANGE_SPECIAL);
	CHECK(find(&x, "gone")->before.type == CHANGE_SPECIAL);
	end_layer();
}

static void test_names(void)
{
	static const char *const names[] = { "new\nline", "\x1b[31mred", "\xff\xfe", "\xc3\xa9",
		" ", "-rf", "a'b\"c\\d", "..." };
	own(change_effects) struct change_effects x;
	char path[300], longest[256];

	start_layer("names");
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		snprintf(path, sizeof(path), "layer/%s", names[i]);
		put_text(path, "x");
	}
	memset(longest, 'n', 255);
	longest[255] = '\0';
	snprintf(path, sizeof(path), "layer/%s", longest);
	put_text(path, "x");
	scan(&x);
	CHECK(x.count == 9 && find(&x, longest)->change == CHANGE_ADDED);
	for (size_t i = 0; i < COUNT_OF(names); i++)
		CHECK(find(&x, names[i])->change == CHANGE_ADDED);
	for (size_t i = 1; i < x.count; i++)
		CHECK(strcmp(x.items[i - 1].path, x.items[i].path) < 0);
	end_layer();
}

static void test_attributes(void)
{
	own(change_effects) struct change_effects x;
	const struct change_effect *e;

	start_layer("attributes");
	put_both("file", "x", "x");
	attribute("below/file", "user.same", "1");
	attribute("layer/file", "user.same", "1");
	attribute("below/file", "user.changed", "1");
	attribute("layer/file", "user.changed", "2");
	attribute("below/file", "user.gone", "1");
	attribute("layer/file", "user.added", "abc");
	folder_both("folder");
	attribute("layer/folder", "user.a", "1");
	put_both("same", "x", "x");
	attribute("below/same", "user.a", "1");
	attribute("layer/same", "user.a", "1");
	attribute("layer/same", "user.overlay.origin", "");
	put_text("layer/new", "x");
	attribute("layer/new", "user.b", "");
	scan(&x);
	CHECK_STR(list(&x), "changed file, changed folder, added new");
	e = find(&x, "file");
	CHECK(e->attribute_count == 3);
	if (e->attribute_count == 3) {
		CHECK_STR(e->attributes[0].name, "user.added");
		CHECK(e->attributes[0].change == CHANGE_ADDED && e->attributes[0].hash[0] == 0xba);
		CHECK_STR(e->attributes[1].name, "user.changed");
		CHECK(e->attributes[1].change == CHANGE_CHANGED);
		CHECK_STR(e->attributes[2].name, "user.gone");
		CHECK(e->attributes[2].change == CHANGE_DELETED && e->attributes[2].hash[0] == 0);
	}
	CHECK(find(&x, "folder")->attribute_count == 1 && find(&x, "new")->attribute_count == 1);
	end_layer();
}

/* Where git's folder is outside the project, what is in it is told of as .git/…. */
static void test_outer_git(void)
{
	static const char *const held[] = { ".git/worktrees/other" };
	own(change_effects) struct change_effects x, y, z;
	struct change_git_tops git;
	struct err e = { 0 };

	start_layer("outer git");
	folder("git-layer");
	folder("git-below");
	put_text("below/.git", "gitdir: elsewhere\n");
	put_both("file", "old", "new!");
	folder("git-layer/refs");
	folder("git-below/refs");
	put_text("git-below/refs/main", "1\n");
	put_text("git-layer/refs/main", "2\n");
	put_text("git-below/refs/gone", "1\n");
	whiteout("git-layer/refs/gone");
	folder("git-layer/hooks");
	put_text("git-layer/hooks/post-commit", "a hook\n");
	put_text("git-below/moved from", "moved, and not changed\n");
	whiteout("git-layer/moved from");
	put_text("git-layer/moved to", "moved, and not changed\n");
	folder("git-layer/worktrees");
	folder("git-below/worktrees");
	folder("git-below/worktrees/other");
	put_text("git-below/worktrees/other/HEAD", "x");
	whiteout("git-layer/worktrees/other");
	git = (struct change_git_tops){ open("git-layer", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		open("git-below", O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
	CHECK(scan_with((struct change_scan){ .git = &git, .held = held, .held_count = 1 }, &x,
		      &e) == 0);
	CHECK_STR(list(&x), "added .git/hooks, added .git/hooks/post-commit, "
			    "renamed .git/moved to from .git/moved from, deleted .git/refs/gone, "
			    "changed .git/refs/main, deleted .git/worktrees/other, "
			    "deleted .git/worktrees/other/HEAD, changed file");
	CHECK(find(&x, ".git/hooks/post-commit")->mark == CHANGE_HELD);
	CHECK(find(&x, ".git/worktrees/other/HEAD")->mark == CHANGE_HELD);
	CHECK(find(&x, ".git/refs/main")->mark == CHANGE_PLAIN);
	CHECK(find(&x, ".git/refs/main")->before.size == 2);
	/* A folder instead of the file is not another git folder, and neither is the host's. */
	folder("layer/.git");
	put_text("layer/.git/HEAD", "x");
	CHECK(scan_with((struct change_scan){ .git = &git, .base = -1 }, &y, &e) == 0);
	CHECK(y.count == x.count + 1 && find(&y, ".git")->after.type == CHANGE_SPECIAL);
	CHECK(find(&y, ".git")->mark == CHANGE_HELD && find(&y, ".git/HEAD")->change == 99);
	CHECK(unlink("below/.git") == 0);
	folder("below/.git");
	put_text("below/.git/config", "x");
	CHECK(unlink("layer/.git/HEAD") == 0 && rmdir("layer/.git") == 0);
	whiteout("layer/.git");
	CHECK(scan_with((struct change_scan){ .git = &git, .base = -1 }, &z, &e) == 0);
	CHECK(z.count == x.count + 1 && find(&z, ".git")->change == CHANGE_DELETED);
	close(git.layer);
	close(git.below);
	end_layer();
}

/* What goes with the HEAD of a repository is held like that, wherever it went. */
static void test_headless(void)
{
	own(change_effects) struct change_effects x;

	start_layer("headless");
	folder_both("a");
	folder("below/a/.git");
	folder("below/a/.git/refs");
	put_text("below/a/.git/refs/main", "1234\n");
	put_text("below/a/.git/HEAD", "ref\n");
	put_text("below/a/.git/index", "an index\n");
	whiteout("layer/a/.git");
	put_text("layer/moved", "1234\n");
	folder_both("b");
	folder_both("b/.git");
	put_text("below/b/.git/index", "another one\n");
	whiteout("layer/b/.git/index");
	put_text("below/a/file", "a file\n");
	whiteout("layer/a/file");
	scan(&x);
	CHECK_STR(list(&x), "deleted a/.git, deleted a/.git/HEAD, deleted a/.git/index, "
			    "deleted a/.git/refs, deleted a/file, deleted b/.git/index, "
			    "renamed moved from a/.git/refs/main");
	for (size_t i = 0; i < 4; i++)
		CHECK(x.items[i].mark == CHANGE_HELD);
	CHECK(find(&x, "moved")->mark == CHANGE_HELD);
	CHECK(find(&x, "a/file")->mark == CHANGE_PLAIN);
	CHECK(find(&x, "b/.git/index")->mark == CHANGE_PLAIN);
	end_layer();
}

/* All paths together, of effects and of folders that wait; one that is done counts no more. */
static void test_path_bytes(void)
{
	static const struct change_entry nothing, file = { .type = CHANGE_FILE };
	struct change_scan q = { 0 };
	own(change_effects) struct change_effects x;
	struct err e = { 0 };
	struct change_scanner *s = calloc(1, sizeof(*s));

	change_effects_init(&x);
	if (!s)
		exit(1); /* NOLINT(concurrency-mt-unsafe) */
	s->q = &q;
	s->ret = &x;
	s->e = &e;
	s->path_bytes = CHANGE_MAX_PATHS - 10;
	change_enter(s, "");
	CHECK(change_set_name(s, "12345") == 0);
	CHECK(change_place_add(s, &s->places, &(struct change_place){ 0 }) == 0);
	CHECK(change_place_add(s, &s->places, &(struct change_place){ 0 }) < 0 &&
		strstr(e.text, "256 MiB"));
	CHECK(!change_add(s, CHANGE_ADDED, &nothing, &file));
	free(change_place_take(s, &s->places));
	CHECK(change_add(s, CHANGE_ADDED, &nothing, &file) && !change_place_take(s, &s->places));
	CHECK(!change_add(s, CHANGE_ADDED, &nothing, &file) && s->count == 1);
	CHECK(change_set_name(s, "123") == 0 && change_add(s, CHANGE_ADDED, &nothing, &file));
	CHECK(s->path_bytes == CHANGE_MAX_PATHS);
	free(s->found);
	free(s);
}

static void tests(void)
{
	umask(022);
	test_kinds();
	test_hashes();
	test_types();
	test_gone_folders();
	test_attribute_whiteouts();
	test_forged();
	test_copy();
	test_special();
	test_names();
	test_attributes();
	test_outer_git();
	test_headless();
	test_path_bytes();
}

int main(void)
{
	return work_place_run(tests);
}
