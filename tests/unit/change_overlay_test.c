/* Overlays on disk, in a directory made for the test and removed after it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/tree.h"
#include "change/overlay/change_overlay.h"
#include "check.h"

static char top[64]; /* where everything is */
static int dir;

static const char *at(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	return path;
}

static void write_file(const char *path, const char *text)
{
	own_fd int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && file_write_all(fd, text, strlen(text)) == 0);
}

static void check_file(const char *path, const char *wanted)
{
	own_fd int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	char text[512];

	CHECK(file_read_text(fd, text, sizeof(text)) >= 0);
	CHECK_STR(text, wanted);
}

static bool is_there(const char *path)
{
	struct stat st;

	return fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Finds, opens and takes one. */
static int use(struct change_overlay *o, const char *name, struct err *e)
{
	int r;

	change_overlay_init(o);
	r = change_overlay_find(o, at(name), e);
	if (r == 0)
		r = change_overlay_open(o, e);
	return r == 0 ? change_overlay_take(o, "run 20261115-120000-01234567", e) : r;
}

/* Puts `value` where a text has '@'. */
static const char *fill(const char *text, const char *value)
{
	static char filled[ERR_TEXT_SIZE];
	int n = (int)strcspn(text, "@");

	snprintf(filled, sizeof(filled), "%.*s%s%s", n, text, text[n] ? value : "",
		text[n] ? text + n + 1 : "");
	return filled;
}

static void check_refused(const char *name, const char *wanted)
{
	own(change_overlay) struct change_overlay o;
	struct err e = { 0 };

	CHECK(use(&o, name, &e) < 0);
	CHECK(e.kind == ERR_REFUSED);
	CHECK_STR(e.text, fill(wanted, at(name)));
}

static int save(struct change_overlay *o, const char *from, struct err *e)
{
	own_fd int fd = openat(dir, from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct change_progress progress = { 0 };
	uint64_t skipped = 0;

	return change_overlay_save(o, fd, &progress, &skipped, e);
}

static void test_making(void)
{
	own(change_overlay) struct change_overlay o;
	char json[256];
	struct stat st;
	struct err e = { 0 };

	change_overlay_init(&o);
	CHECK(change_overlay_find(&o, at("o"), &e) == 0 && o.folder < 0);
	CHECK_STR(o.path, at("o"));
	CHECK(change_overlay_open(&o, &e) == -ENOENT);
	CHECK(change_overlay_create(&o, 64 << 20, &e) == 0);
	CHECK(fstat(o.folder, &st) == 0 && (st.st_mode & 0777) == 0700);
	snprintf(json, sizeof(json),
		"{\"version\":1,\"size\":67108864,\"created\":\"%s\",\"sha256\":\"%s\"}\n",
		o.created, o.digest);
	check_file("o/overlay.json", json);
	CHECK(strlen(o.created) == strlen("2026-11-15T22:45:01.123456789Z"));
}

static void test_places(void)
{
	own(change_overlay) struct change_overlay o;
	struct err e = { 0 };

	change_overlay_init(&o);
	CHECK(change_overlay_find(&o, at("none/o"), &e) == -ENOENT && e.kind == ERR_REFUSED);
	CHECK(strstr(e.text, "/none/' it is in cannot be opened: No such file") != NULL);
	CHECK(change_overlay_find(&o, at("o/"), &e) == -EINVAL && e.kind == ERR_USE);
	CHECK(change_overlay_find(&o, at(".."), &e) == -EINVAL);
	CHECK(change_overlay_find(&o, "", &e) == -EINVAL);
	CHECK(symlinkat(".", dir, "way") == 0);
	CHECK(change_overlay_find(&o, at("way/way/o"), &e) == 0);
	CHECK_STR(o.path, at("o"));
	change_overlay_done(&o);
	CHECK(change_overlay_find(&o, "/bawn-none", &e) == 0);
	CHECK_STR(o.path, "/bawn-none");
}

static void test_refusals(void)
{
	CHECK(mkdirat(dir, "plain", 0700) == 0 && symlinkat("o", dir, "link") == 0);
	write_file("file", "");
	check_refused("plain", "cannot use '@' as an overlay: it has no overlay.json");
	check_refused("file", "cannot use '@' as an overlay: it is not a folder");
	check_refused("link", "cannot use '@' as an overlay: it is not a folder");
	CHECK(fchmodat(dir, "o", 0770, 0) == 0);
	check_refused("o", "cannot use the overlay '@': others can write to it");
	CHECK(fchmodat(dir, "o", 0700, 0) == 0);
	if (geteuid() == 0) {
		CHECK(fchownat(dir, "o", 65534, 65534, 0) == 0);
		check_refused(
			"o", "cannot use the overlay '@': it belongs to user 65534, not to you");
		CHECK(fchownat(dir, "o", 0, 0, 0) == 0);
	}
}

/* What another program may have made of overlay.json. */
static void test_damage(void)
{
	static const char good[] =
		"{\"version\":1,\"size\":4096,\"created\":\"then\",\"sha256\":\"@\"}\n";
	static const char zeros[] =
		"0000000000000000000000000000000000000000000000000000000000000000";
	static const char damaged[] =
		"cannot use '@' as an overlay: its overlay.json is damaged or of "
		"another program";
	static const char *const bad[] = { "", "{}", "{\"version\":1}",
		"{\"version\":1,\"size\":-1,\"created\":\"\",\"sha256\":\"@\"}\n",
		"{\"version\":1,\"size\":0,\"created\":\"\",\"sha256\":\"@\"}\n",
		"{\"version\":1,\"size\":99999999999999999999,\"created\":\"\",\"sha256\":\"@\"}\n",
		"{\"version\":1,\"size\":9223372036854775808,\"created\":\"\",\"sha256\":\"@\"}\n",
		("{\"version\":1,\"size\":1,\"created\":\"0123456789012345678901234567890123\","
		 "\"sha256\":\"@\"}\n"),
		"{\"version\":1,\"size\":1,\"created\":\"\\\"\",\"sha256\":\"@\"}\n",
		"{\"version\":1,\"size\":1,\"created\":\"\",\"sha256\":\"abc\"}\n",
		"{\"version\":1,\"size\":1,\"created\":\"\",\"sha256\":\"@\"}\n\n" };
	own(change_overlay) struct change_overlay o;
	struct err e = { 0 };

	CHECK(mkdirat(dir, "damaged", 0700) == 0);
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		write_file("damaged/overlay.json", fill(bad[i], zeros));
		check_refused("damaged", damaged);
	}
	write_file("damaged/overlay.json", "{\"version\":2,\"anything\":[]}\n");
	check_refused(
		"damaged", "cannot use the overlay '@': it is of version 2, and this bawn knows 1");
	write_file("damaged/overlay.json", fill(good, zeros));
	CHECK(use(&o, "damaged", &e) == 0 && o.size == 4096);
	/* Complete, and yet without what it keeps. */
	CHECK(change_overlay_tree(&o, &e) == -ENOENT);
}

static void test_saving(void)
{
	own(change_overlay) struct change_overlay o;
	char before[SHA256_HEX_SIZE], after[SHA256_HEX_SIZE];
	struct stat st;
	struct err e = { 0 };

	CHECK(use(&o, "o", &e) == 0);
	CHECK(change_overlay_digest(&o, before, &e) == 0);
	CHECK_STR(before, o.digest);
	CHECK(mkdirat(dir, "from", 0755) == 0);
	write_file("from/file", "kept");
	CHECK(fchmodat(dir, "from/file", 06755, 0) == 0);
	o.size = 32 << 20;
	CHECK(save(&o, "from", &e) == 0);
	check_file("o/tree/file", "kept");
	CHECK(fstatat(dir, "o/tree/file", &st, 0) == 0 && (st.st_mode & 07777) == 0755);
	CHECK(!is_there("o/tree.new") && !is_there("o/tree.old") && !is_there("o/links.new"));
	CHECK(change_overlay_digest(&o, after, &e) == 0);
	CHECK_STR(after, o.digest);
	CHECK(strcmp(before, after) != 0);
	change_overlay_done(&o);
	CHECK(use(&o, "o", &e) == 0 && o.size == 32 << 20);
	CHECK_STR(o.digest, after);
	CHECK(change_overlay_reset(&o, &e) == 0 && !is_there("o/tree/file"));
	CHECK(change_overlay_digest(&o, after, &e) == 0);
	CHECK_STR(after, before);
}

/* A save that fails changes nothing. */
static void test_failing(void)
{
	own(change_overlay) struct change_overlay o;
	char before[SHA256_HEX_SIZE], after[SHA256_HEX_SIZE], sentence[ERR_TEXT_SIZE];
	struct err e = { 0 };
	int deepest;

	CHECK(use(&o, "o", &e) == 0 && save(&o, "from", &e) == 0);
	CHECK(change_overlay_digest(&o, before, &e) == 0);
	CHECK(mkdirat(dir, "deep", 0755) == 0);
	deepest = openat(dir, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < TREE_MAX_DEPTH; i++) {
		int next = mkdirat(deepest, "d", 0755) < 0 ? -1 : tree_open_folder(deepest, "d");

		close(deepest);
		deepest = next;
	}
	close(deepest);
	CHECK(save(&o, "deep", &e) == -ELOOP);
	snprintf(sentence, sizeof(sentence),
		"cannot save the overlay '%s', which is as it was before: cannot copy ", at("o"));
	CHECK(strncmp(e.text, sentence, strlen(sentence)) == 0);
	CHECK(change_overlay_digest(&o, after, &e) == 0);
	CHECK_STR(after, before);
	check_file("o/tree/file", "kept");
	CHECK(!is_there("o/tree.new"));
}

static void test_lock(void)
{
	own(change_overlay) struct change_overlay o;
	char sentence[256];
	struct err e = { 0 };

	/* What somebody wrote who is gone does not count. */
	write_file(
		"o/lock", "run 20200101-000000-00000000, process 1, and more text than needed\n");
	CHECK(use(&o, "o", &e) == 0);
	snprintf(
		sentence, sizeof(sentence), "run 20261115-120000-01234567, process %d\n", getpid());
	check_file("o/lock", sentence);
	snprintf(sentence, sizeof(sentence),
		"cannot use the overlay '@': run 20261115-120000-01234567, process %d uses it",
		getpid());
	check_refused("o", sentence);
	change_overlay_done(&o);
	CHECK(use(&o, "o", &e) == 0);
	CHECK(ftruncate(o.lock, 0) == 0);
	check_refused("o", "cannot use the overlay '@': somebody else uses it");
}

static void test_leftovers(void)
{
	own(change_overlay) struct change_overlay o;
	struct err e = { 0 };
	unsigned count = 0;

	/* Killed while it was writing. */
	CHECK(mkdirat(dir, "o/tree.new", 0700) == 0 && mkdirat(dir, "o/links.new", 0700) == 0);
	write_file("o/tree.new/half", "half");
	CHECK(use(&o, "o", &e) == 0);
	check_file("o/tree/file", "kept");
	CHECK(change_overlay_prune(&o, &count, &e) == 0 && count == 1);
	CHECK(!is_there("o/tree.new") && !is_there("o/links.new"));
	CHECK(change_overlay_prune(&o, &count, &e) == 0 && count == 0);
	/* Killed between two renames, where exchanging is impossible. */
	CHECK(renameat(dir, "o/tree", dir, "o/tree.old") == 0);
	CHECK(mkdirat(dir, "o/tree.new", 0700) == 0);
	change_overlay_done(&o);
	CHECK(use(&o, "o", &e) == 0);
	check_file("o/tree/file", "kept");
	/* And after them. */
	CHECK(mkdirat(dir, "o/tree.old", 0700) == 0);
	CHECK(change_overlay_prune(&o, &count, &e) == 0 && count == 2);
	check_file("o/tree/file", "kept");
	CHECK(!is_there("o/tree.old") && save(&o, "from", &e) == 0);
}

int main(void)
{
	snprintf(top, sizeof(top), "/tmp/bawn-overlay-XXXXXX");
	dir = mkdtemp(top) ? file_open(top, O_RDONLY | O_DIRECTORY) : -1;
	if (dir < 0)
		return 1;
	umask(022);
	test_making();
	test_places();
	test_refusals();
	test_damage();
	test_saving();
	test_failing();
	test_lock();
	test_leftovers();
	CHECK(tree_remove(AT_FDCWD, top, NULL) == 0);
	close(dir);
	return check_report();
}
