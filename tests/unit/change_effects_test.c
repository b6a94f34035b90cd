/* What a scan makes of its finds: renames, bases, marks; and what it cannot read, or refuses. */
#include <errno.h>

#include "base/count.h"
#include "change/scan/change_scanner.h"
#include "change_layer.h"

/* --- renames --- */

static void test_renames(void)
{
	own(change_effects) struct change_effects x;
	const struct change_effect *e;

	start_layer("renames");
	put_text("below/old", "content\n");
	whiteout("layer/old");
	put_text("layer/new", "content\n");
	CHECK(chmod("layer/new", 0755) == 0);
	attribute("below/old", "user.both", "1");
	attribute("layer/new", "user.both", "1");
	attribute("layer/new", "user.more", "1");
	put_text("below/empty", "");
	whiteout("layer/empty");
	put_text("layer/void", "");
	put_text("below/replaced", "moved over\n");
	whiteout("layer/replaced");
	put_both("target", "x", "moved over\n");
	put_text("below/same size", "1234567\n");
	whiteout("layer/same size");
	folder("below/away"); /* all that was in it has another name now */
	put_text("below/away/a", "moved away\n");
	whiteout("layer/away");
	put_text("layer/b", "moved away\n");
	scan(&x);
	CHECK_STR(list(&x), "deleted away, renamed b from away/a, deleted empty, "
			    "renamed new from old, deleted replaced, deleted same size, "
			    "changed target, added void");
	CHECK(find(&x, "away")->is_implied);
	e = find(&x, "new");
	CHECK(e->before.mode == 0644 && e->after.mode == 0755 && e->before.has_hash);
	CHECK(e->below.inode && e->below.size == 8);
	CHECK(e->attribute_count == 1 && str_eq(e->attributes[0].name, "user.more"));
	CHECK(e->is_text && !e->lines_added && !e->lines_removed);
	end_layer();
}

/* Several of the same content: same name first, then in their order. */
static void test_pairs(void)
{
	own(change_effects) struct change_effects x;

	start_layer("pairs");
	folder("below/from");
	put_text("below/from/z", "same");
	put_text("below/from/b", "same");
	put_text("below/from/a", "same");
	put_text("below/from/only", "same");
	whiteout("layer/from");
	folder("layer/to");
	put_text("layer/to/y", "same");
	put_text("layer/to/x", "same");
	put_text("layer/to/z", "same");
	scan(&x);
	CHECK_STR(list(&x), "deleted from, deleted from/only, added to, renamed to/x from from/a, "
			    "renamed to/y from from/b, renamed to/z from from/z");
	CHECK(find(&x, "from")->is_implied && find(&x, "to")->is_implied);
	end_layer();
}

/* --- the host --- */

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

static void set_time(const char *path, int64_t ns)
{
	struct timespec t[2] = { { ns / SECOND, ns % SECOND }, { ns / SECOND, ns % SECOND } };

	CHECK(utimensat(AT_FDCWD, path, t, AT_SYMLINK_NOFOLLOW) == 0);
}

static void test_moved(void)
{
	own(change_effects) struct change_effects x;
	struct err e = { 0 };
	int64_t began;

	start_layer("moved");
	put_both("before", "x", "y");
	put_both("written", "x", "y");
	put_both("chmod", "x", "y");
	put_text("below/deleted", "x");
	whiteout("layer/deleted");
	/* A time that is next year's was set, and says nothing. */
	set_time("below/before", now() + 31536000 * SECOND);
	began = now();
	usleep(20000);
	put_text("below/written", "z");
	CHECK(chmod("below/chmod", 0600) == 0);
	put_text("below/deleted", "z");
	CHECK(scan_with((struct change_scan){ .began = { began / SECOND, began % SECOND } }, &x,
		      &e) == 0);
	CHECK(!find(&x, "before")->has_moved && find(&x, "written")->has_moved);
	CHECK(find(&x, "chmod")->has_moved && find(&x, "deleted")->has_moved);
	end_layer();
}

/* What has the very time of the start was there before it: the keeper lets a tick pass. */
static void test_since(void)
{
	const struct timespec began = { .tv_sec = 1000, .tv_nsec = 500 };
	static const struct {
		struct statx_timestamp changed;
		bool is_since;
	} rows[] = {
		{ { .tv_sec = 999, .tv_nsec = 501 }, false },
		{ { .tv_sec = 1000, .tv_nsec = 499 }, false },
		{ { .tv_sec = 1000, .tv_nsec = 500 }, false },
		{ { .tv_sec = 1000, .tv_nsec = 501 }, true },
		{ { .tv_sec = 1001, .tv_nsec = 1 }, true },
		/* Without fractions: any time of two seconds. */
		{ { .tv_sec = 998, .tv_nsec = 0 }, false },
		{ { .tv_sec = 999, .tv_nsec = 0 }, true },
		{ { .tv_sec = 1000, .tv_nsec = 0 }, true },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		CHECK(change_is_since(&rows[i].changed, &began) == rows[i].is_since);
}

/* --- texts --- */

static void check_base(const struct change_effects *x, const char *path, const char *wanted)
{
	const struct change_effect *e = find(x, path);
	own_free char *bytes = NULL;
	own_fd int folder = open("base", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t n = 0, index = (size_t)(e - x->items);

	CHECK(e->has_base == (wanted != NULL));
	CHECK(change_base_read(folder, index, e->before.hash, 1 << 22, &bytes, &n) ==
		(wanted ? 0 : -ENOENT));
	if (wanted)
		CHECK_STR(bytes, wanted);
}

static void put_size(const char *path, size_t n)
{
	own_free char *bytes = malloc(n);

	if (!bytes)
		return;
	memset(bytes, 'x', n);
	put(path, bytes, n);
}

static void test_texts(void)
{
	own(change_effects) struct change_effects x;

	start_layer("texts");
	put_both("a", "one\ntwo\n", "one\n2\nthree\n");
	put_both("b mode", "one\n", "one\n");
	CHECK(chmod("layer/b mode", 0755) == 0);
	put("below/binary", "\0\1", 2);
	put("layer/binary", "\0\2\3", 3);
	put_text("below/text to binary", "text");
	put("layer/text to binary", "\0", 1);
	put_text("layer/new", "1\n2\n");
	put_size("below/base", CHANGE_MAX_BASE);
	put_text("layer/base", "x");
	put_size("below/base+1", CHANGE_MAX_BASE + 1);
	put_text("layer/base+1", "x");
	put_size("below/text", CHANGE_MAX_TEXT);
	put_text("layer/text", "x");
	put_size("below/text+1", CHANGE_MAX_TEXT + 1);
	put_text("layer/text+1", "x");
	put_text("below/z deleted", "x\n");
	whiteout("layer/z deleted");
	scan(&x);
	CHECK(find(&x, "a")->is_text && find(&x, "a")->lines_added == 2);
	CHECK(find(&x, "a")->lines_removed == 1);
	check_base(&x, "a", "one\ntwo\n");
	check_base(&x, "b mode", "one\n");
	check_base(&x, "binary", NULL);
	check_base(&x, "text to binary", NULL);
	check_base(&x, "new", NULL);
	CHECK(find(&x, "new")->is_text && find(&x, "new")->lines_added == 2);
	CHECK(!find(&x, "binary")->is_text && !find(&x, "text to binary")->is_text);
	CHECK(find(&x, "base")->has_base && !find(&x, "base+1")->has_base);
	CHECK(find(&x, "base+1")->is_text && find(&x, "text")->is_text);
	CHECK(!find(&x, "text+1")->is_text && find(&x, "text+1")->before.has_hash);
	CHECK(!find(&x, "z deleted")->is_text);
	end_layer();
}

/* --- marks --- */

static void test_marks(void)
{
	static const char *const held[] = { "mine/secret", "other" };
	own(change_effects) struct change_effects x;
	struct change_sum sum;
	struct err e = { 0 };

	start_layer("marks");
	folder("below/repo");
	folder("below/repo/.git");
	folder("below/repo/.git/hooks");
	put_text("below/repo/.git/hooks/pre-commit", "x");
	put_text("below/repo/.git/index", "y");
	whiteout("layer/repo"); /* takes a hook with it */
	folder("below/mine");
	whiteout("layer/mine"); /* would take what is protected with it */
	put_text("below/plain", "moved\n");
	whiteout("layer/plain");
	put_text("layer/.envrc", "moved\n");
	put_text("layer/Makefile", "all:\n");
	put_text("layer/ordinary", "ordinary\n");
	CHECK(scan_with((struct change_scan){ .held = held, .held_count = 2 }, &x, &e) == 0);
	CHECK(find(&x, "repo")->mark == CHANGE_HELD && find(&x, "repo/.git")->mark == CHANGE_HELD);
	CHECK(find(&x, "repo/.git/index")->mark == CHANGE_PLAIN);
	CHECK(find(&x, "mine")->mark == CHANGE_HELD);
	CHECK(find(&x, ".envrc")->change == CHANGE_RENAMED &&
		find(&x, ".envrc")->mark == CHANGE_HELD);
	CHECK(find(&x, "Makefile")->mark == CHANGE_RUNS &&
		find(&x, "ordinary")->mark == CHANGE_PLAIN);
	change_sum_up(&x, &sum); /* without folders that only follow */
	CHECK(sum.added == 2 && sum.renamed == 1 && sum.deleted == 3 && sum.changed == 0);
	CHECK(sum.held == 3 && sum.runs == 1);
	end_layer();
}

/* --- what cannot be read --- */

static mode_t mode_of(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 ? st.st_mode & 07777 : 0xffff;
}

/* In the layer everything is: it is ours. */
static void test_locked_layer(void)
{
	own(change_effects) struct change_effects x;

	start_layer("locked");
	put_text("layer/nobody", "x");
	attribute("layer/nobody", "user.a", "1");
	CHECK(chmod("layer/nobody", 0) == 0);
	folder("layer/closed");
	folder("layer/closed/deep");
	put_text("layer/closed/deep/file", "y");
	CHECK(chmod("layer/closed/deep/file", 0200) == 0);
	CHECK(chmod("layer/closed/deep", 0400) == 0 && chmod("layer/closed", 0) == 0);
	scan(&x);
	CHECK_STR(list(&x), "added closed, added closed/deep, added closed/deep/file, "
			    "added nobody");
	CHECK(find(&x, "nobody")->after.mode == 0 && find(&x, "nobody")->after.has_hash);
	CHECK(find(&x, "nobody")->attribute_count == 1);
	CHECK(find(&x, "closed")->after.mode == 0 && find(&x, "closed/deep")->after.mode == 0400);
	CHECK(find(&x, "closed/deep/file")->after.mode == 0200);
	CHECK(mode_of("layer/nobody") == 0 && mode_of("layer/closed") == 0);
	CHECK(chmod("layer/closed", 0700) == 0 && mode_of("layer/closed/deep") == 0400);
	CHECK(chmod("layer/closed/deep", 0700) == 0 && mode_of("layer/closed/deep/file") == 0200);
	end_layer();
}

/* On the host it stays what it is, and the effect says so. Root reads everything. */
static void test_locked_below(void)
{
	own(change_effects) struct change_effects x;
	bool is_root = geteuid() == 0;

	start_layer("unread");
	put_both("file", "old", "new");
	CHECK(chmod("below/file", 0) == 0);
	folder("below/gone");
	put_text("below/gone/a", "x");
	CHECK(chmod("below/gone", 0100) == 0);
	whiteout("layer/gone");
	folder_both("closed");
	put_both("closed/a", "x", "x");
	put_text("below/closed/b", "of another size\n");
	whiteout("layer/closed/b");
	folder_both("closed/sub");
	put_text("below/closed/sub/c", "of a third size, too\n");
	whiteout("layer/closed/sub/c");
	CHECK(chmod("below/closed", 0) == 0 && chmod("layer/closed", 0) == 0);
	folder_both("remade");
	put_text("below/remade/a", "x");
	CHECK(chmod("below/remade", 0311) == 0 && chmod("layer/remade", 0311) == 0);
	CHECK(chmod("layer/remade", 0711) == 0);
	attribute("layer/remade", "user.overlay.opaque", "y");
	CHECK(chmod("layer/remade", 0311) == 0);
	scan(&x);
	if (is_root) {
		CHECK_STR(list(&x), "deleted closed/b, deleted closed/sub/c, changed file, "
				    "deleted gone, deleted gone/a, deleted remade/a");
	} else {
		CHECK_STR(list(&x), "changed closed, added closed/a, added closed/sub, "
				    "changed file, deleted gone, changed remade");
		CHECK(find(&x, "closed")->note && find(&x, "closed/sub")->note);
		CHECK(find(&x, "file")->note && !find(&x, "file")->before.has_hash);
		CHECK(find(&x, "gone")->note && find(&x, "closed/a")->note);
		CHECK(find(&x, "remade")->note && find(&x, "remade")->after.mode == 0311);
	}
	CHECK(mode_of("below/file") == 0 && mode_of("below/gone") == 0100);
	CHECK(mode_of("below/closed") == 0 && mode_of("below/remade") == 0311);
	end_layer();
}

/* --- what is too much --- */

/* `count` folders in each other below `top`; their names are `width` long. */
static void make_deep(const char *top, int count, size_t width)
{
	own_fd int at = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char name[256];

	memset(name, 'd', width);
	name[width] = '\0';
	for (int i = 0; i < count; i++) {
		int next;

		CHECK(mkdirat(at, name, 0755) == 0);
		next = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(at);
		at = next;
	}
	close(openat(at, "end", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
}

static void test_deep(void)
{
	own(change_effects) struct change_effects x;

	start_layer("deep");
	make_deep("layer", CHANGE_MAX_DEPTH, 1);
	make_deep("below", CHANGE_MAX_DEPTH / 2, 2);
	whiteout("layer/dd");
	scan(&x);
	CHECK(x.count == CHANGE_MAX_DEPTH + CHANGE_MAX_DEPTH / 2 + 2);
	end_layer();
	start_layer("too deep");
	make_deep("layer", CHANGE_MAX_DEPTH + 1, 1);
	CHECK_REFUSED("more than 1024 folders are nested");
	end_layer();
	start_layer("too deep below");
	make_deep("below", CHANGE_MAX_DEPTH + 1, 1);
	whiteout("layer/d");
	CHECK_REFUSED("more than 1024 folders are nested");
	end_layer();
	start_layer("long");
	make_deep("layer", 255, 255);
	change_effects_done(&x);
	scan(&x);
	CHECK(x.count == 256);
	end_layer();
	start_layer("too long");
	make_deep("layer", 257, 255);
	CHECK_REFUSED("longer than 65536 bytes");
	end_layer();
}

/* A hole is not read from the disk. */
static void test_sparse(void)
{
	own(change_effects) struct change_effects x;
	own_fd int fd = -1;

	start_layer("sparse");
	put_both("hole", "x", "");
	CHECK(truncate("layer/hole", 100 << 20) == 0);
	fd = open("layer/hole", O_WRONLY | O_CLOEXEC);
	CHECK(pwrite(fd, "end", 3, 50 << 20) == 3);
	scan(&x);
	CHECK(x.count == 1 && x.items[0].after.size == 100 << 20 && x.items[0].after.has_hash);
	end_layer();
}

static void count_progress(void *of, const char *what, uint64_t done, uint64_t total)
{
	uint64_t *last = of;

	CHECK(what[0] && done == *last + 1 && total == 0);
	*last = done;
}

/* The same effects elsewhere and later: the same digest. */
static void test_digest(void)
{
	char digests[2][SHA256_HEX_SIZE];

	for (int i = 0; i < 2; i++) {
		own(change_effects) struct change_effects x;
		struct err e = { 0 };
		uint64_t seen = 0;

		start_layer(i ? "elsewhere" : "here");
		for (int k = 0; k < 20; k++) { /* made in another order */
			char path[32];

			snprintf(path, sizeof(path), "layer/%d", i ? k : 19 - k);
			put_text(path, "x");
		}
		CHECK(scan_with((struct change_scan){ .base = -1,
					.progress = { count_progress, &seen } },
			      &x, &e) == 0);
		CHECK(seen == 20);
		memcpy(digests[i], x.digest, sizeof(digests[i]));
		end_layer();
	}
	CHECK_STR(digests[0], digests[1]);
}

static void tests(void)
{
	umask(022);
	test_renames();
	test_pairs();
	test_moved();
	test_since();
	test_texts();
	test_marks();
	test_locked_layer();
	test_locked_below();
	test_deep();
	test_sparse();
	test_digest();
}

int main(void)
{
	return work_place_run(tests);
}
