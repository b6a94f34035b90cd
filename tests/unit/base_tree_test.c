/* Whole trees, in a directory made for the test and removed after it. */
#include <sys/stat.h>

#include "tree_place.h"

#define SOMEBODY 65534 /* any id but root's */

static int copy(int dir, const char *to, struct tree_options o, struct tree_counts *ret)
{
	own_fd int from = tree_open_folder(dir, "from"), target = make_folder(dir, to);
	own_fd int links = make_folder(dir, "links");
	struct err e = { 0 };
	int r;

	o.counts = ret;
	if (o.links)
		o.links = links;
	r = tree_copy(from, target, &o, &e);
	/* The folder of links is empty again. */
	CHECK(unlinkat(dir, "links", AT_REMOVEDIR) == 0);
	return r;
}

static void test_copy(int dir)
{
	struct tree_counts counts = { 0 };
	own_fd int to = -1;
	struct stat st;

	CHECK(copy(dir, "to", (struct tree_options){ .links = 1 }, &counts) == 0);
	to = tree_open_folder(dir, "to");
	CHECK(counts.files == 5 && counts.folders == 1 && counts.links == 2 && counts.others == 2);
	CHECK(counts.skipped == 1 && !is_there(to, "socket"));
	CHECK(counts.bytes > 0 && counts.bytes < 1 << 20);
	st = look(to, ".");
	CHECK((st.st_mode & 07777) == 0711 && st.st_mtim.tv_sec == 2000);
	st = look(to, "file");
	CHECK((st.st_mode & 07777) == 04751);
	CHECK(st.st_mtim.tv_sec == 2000 && st.st_mtim.tv_nsec == 2 && st.st_atim.tv_sec == 1000);
	CHECK(look(to, "sub").st_mtim.tv_sec == 2000);
	check_text(to, "file", "content");
	check_text(to, "name\nwith \xff", "odd");
	check_link(to, "out", "/etc/passwd");
	check_link(to, "up", "..");
	CHECK(look(to, "pipe").st_mode == (S_IFIFO | 0620));
	st = look(to, "whiteout");
	CHECK(S_ISCHR(st.st_mode) && st.st_rdev == 0);
	check_attribute(to, "file", "user.colour", "red");
	check_attribute(to, "sub", "user.overlay.opaque", "y");
	CHECK(look(to, "again").st_ino == look(to, "sub/linked").st_ino);
	CHECK(look(to, "again").st_nlink == 2);
	st = look(to, "holes");
	CHECK(st.st_size == 1 << 30 && st.st_blocks < 1024);
}

static void test_copy_plain(int dir)
{
	struct tree_counts counts = { 0 };
	own_fd int to = -1;

	CHECK(copy(dir, "plain", (struct tree_options){ .is_plain = true, .drops = S_ISUID },
		      &counts) == 0);
	to = tree_open_folder(dir, "plain");
	CHECK(counts.skipped == 2 && !is_there(to, "whiteout"));
	CHECK((look(to, "file").st_mode & 07777) == 0751);
	check_attribute(to, "file", "user.colour", "red");
	check_attribute(to, "sub", "user.overlay.opaque", "");
	/* Nobody asked for the links. */
	CHECK(look(to, "again").st_ino != look(to, "sub/linked").st_ino);
	check_text(to, "again", "one file");
	CHECK(look(to, "sub/linked").st_nlink == 1);
}

/* --- an older copy --- */

static uint64_t copy_again(int dir, const char *to)
{
	own_fd int from = tree_open_folder(dir, "from"), older = tree_open_folder(dir, "older");
	own_fd int target = make_folder(dir, to);
	struct tree_counts counts = { 0 };
	struct tree_options o = { .older = older, .counts = &counts };
	char a[SHA256_HEX_SIZE], b[SHA256_HEX_SIZE];

	CHECK(tree_copy(from, target, &o, NULL) == 0 && counts.files == 6);
	CHECK(tree_digest(from, NULL, a, NULL) == 0 && tree_digest(target, NULL, b, NULL) == 0);
	CHECK_STR(b, a);
	CHECK(tree_remove(dir, to, NULL) == 0);
	return counts.reused;
}

static void set_mtime(int dir, const char *name, time_t seconds)
{
	const struct timespec times[] = { { 1000, 1 }, { seconds, 2 } };

	CHECK(utimensat(dir, name, times, 0) == 0);
}

/* What is still the same is not copied again, and what only looks the same is. */
static void test_older_copy(int dir)
{
	own_fd int from = tree_open_folder(dir, "from"), older = -1, file = -1;
	struct tree_options o = { 0 };

	CHECK(unlinkat(from, "socket", 0) == 0);
	write_file(from, "sub/plain", "12345678", 0644);
	set_mtime(from, "sub/plain", 5000);
	older = make_folder(dir, "older");
	CHECK(tree_copy(from, older, &o, NULL) == 0);
	/* Of six files one has attributes, and two are one. */
	CHECK(copy_again(dir, "new") == 3);
	CHECK(look(older, "sub/plain").st_nlink == 1);
	file = openat(from, "sub/plain", O_RDWR | O_CLOEXEC);
	CHECK(pwrite(file, "X", 1, 7) == 1);
	set_mtime(from, "sub/plain", 5000);
	CHECK(copy_again(dir, "new") == 2);
	check_text(older, "sub/plain", "12345678");
	CHECK(pwrite(file, "8", 1, 7) == 1);
	CHECK(copy_again(dir, "new") == 2);
	set_mtime(from, "sub/plain", 5000);
	CHECK(copy_again(dir, "new") == 3);
	CHECK(fchmod(file, 0640) == 0 && copy_again(dir, "new") == 2);
	CHECK(fchmod(file, 0644) == 0 && copy_again(dir, "new") == 3);
	CHECK(fsetxattr(file, "user.a", "", 0, 0) == 0 && copy_again(dir, "new") == 2);
	CHECK(fremovexattr(file, "user.a") == 0 && copy_again(dir, "new") == 3);
	/* A link in the older copy is not followed, and its folder neither. */
	CHECK(unlinkat(older, "sub/plain", 0) == 0);
	CHECK(symlinkat("../file", older, "sub/plain") == 0 && copy_again(dir, "new") == 2);
	CHECK(renameat(older, "sub", older, "moved") == 0 && symlinkat("moved", older, "sub") == 0);
	CHECK(copy_again(dir, "new") == 2);
	CHECK(unlinkat(from, "sub/plain", 0) == 0 && tree_remove(dir, "older", NULL) == 0);
}

/* What is there already is never written to. */
static void test_copy_over(int dir)
{
	own_fd int from = tree_open_folder(dir, "from"), to = make_folder(dir, "over");
	struct tree_options o = { 0 };
	struct err e = { 0 };

	write_file(dir, "outside", "mine", 0600);
	CHECK(symlinkat("../outside", to, "file") == 0);
	CHECK(tree_copy(from, to, &o, &e) == -EEXIST);
	CHECK_STR(e.text, "cannot copy 'file': File exists");
	check_text(dir, "outside", "mine");
}

static int stop_at_third(void *of)
{
	int *count = of;

	return ++*count == 3 ? -ECANCELED : 0;
}

static void test_copy_stopped(int dir)
{
	own_fd int from = tree_open_folder(dir, "from"), to = make_folder(dir, "stopped");
	int count = 0;
	struct tree_options o = { .step = stop_at_third, .of = &count };

	CHECK(tree_copy(from, to, &o, NULL) == -ECANCELED && count == 3);
}

/* --- permissions --- */

static void test_opening(int dir)
{
	own_fd int from = make_folder(dir, "from"), shut = make_folder(from, "shut");
	own_fd int to = make_folder(dir, "to"), refused = make_folder(dir, "refused");
	struct tree_options o = { 0 };
	struct err e = { 0 };

	write_file(from, "secret", "mine", 0200);
	write_file(shut, "below", "too", 0644);
	CHECK(fchmod(shut, 0) == 0);
	CHECK(tree_copy(from, refused, &o, &e) == -EACCES);
	CHECK((look(from, "shut").st_mode & 0777) == 0 &&
		(look(from, "secret").st_mode & 0777) == 0200);
	o.opens_up = true;
	CHECK(tree_copy(from, to, &o, &e) == 0);
	check_text(to, "secret", "mine");
	CHECK((look(to, "secret").st_mode & 0777) == 0600 &&
		(look(to, "shut").st_mode & 0777) == 0700);
	CHECK(fchmod(shut, 0) == 0 && fchmod(from, 0400) == 0);
	CHECK(tree_remove(dir, "from", &e) == 0 && !is_there(dir, "from"));
	CHECK(tree_remove(dir, "to", &e) == 0 && tree_remove(dir, "refused", &e) == 0);
}

/* Root may do everything, so that these need somebody else. */
static void test_as_somebody(int dir)
{
	bool is_root = geteuid() == 0;

	CHECK(!is_root || (fchown(dir, SOMEBODY, SOMEBODY) == 0 && seteuid(SOMEBODY) == 0));
	test_opening(dir);
	CHECK(!is_root || seteuid(0) == 0);
}

/* --- depth --- */

/* `count` folders in each other below `dir`. */
static void make_deep(int dir, const char *name, unsigned count)
{
	own_fd int at = make_folder(dir, name);

	for (unsigned i = 1; i < count; i++) {
		int next = make_folder(at, "d");

		close(at);
		at = next;
	}
	write_file(at, "bottom", "deep", 0644);
}

static int copy_deep(int dir, unsigned count, struct err *e)
{
	own_fd int from = -1, to = make_folder(dir, "copy");
	struct tree_options o = { 0 };
	char digest[SHA256_HEX_SIZE];
	int r;

	make_deep(dir, "deep", count);
	from = tree_open_folder(dir, "deep");
	r = tree_copy(from, to, &o, e);
	CHECK(tree_digest(from, NULL, digest, NULL) == r);
	CHECK(tree_remove(dir, "deep", e) == 0 && tree_remove(dir, "copy", e) == 0);
	return r;
}

static void test_depth(int dir)
{
	struct err e = { 0 };

	CHECK(copy_deep(dir, TREE_MAX_DEPTH, &e) == 0);
	CHECK(copy_deep(dir, TREE_MAX_DEPTH + 1, &e) == -ELOOP);
	CHECK(strstr(e.text, "folders are nested deeper than 256") != NULL);
	/* Removing has no such bound, and what stands in its way is not spared. */
	make_deep(dir, "deep", 3000);
	write_file(dir, "deep/moved-0", "in the way", 0600);
	CHECK(mkdirat(dir, "deep/moved-1", 0700) == 0);
	write_file(dir, "deep/moved-1/file", "in the way", 0600);
	CHECK(mkdirat(dir, "deep/moved-2", 0700) == 0);
	CHECK(tree_remove(dir, "deep", &e) == 0 && !is_there(dir, "deep"));
}

static void test_remove(int dir)
{
	own_fd int in = make_folder(dir, "gone"), beside = make_folder(dir, "beside");
	struct err e = { 0 };

	write_file(beside, "kept", "kept", 0600);
	CHECK(symlinkat("../beside", in, "link") == 0 && symlinkat("/", in, "root") == 0);
	for (int i = 0; i < 1000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "file-%d", i);
		write_file(in, name, "", 0600);
	}
	CHECK(tree_remove(dir, "gone", &e) == 0 && !is_there(dir, "gone"));
	check_text(beside, "kept", "kept");
	CHECK(tree_remove(dir, "gone", &e) == 0); /* there is nothing */
	CHECK(symlinkat("beside", dir, "link") == 0);
	CHECK(tree_remove(dir, "link", &e) == 0 && !is_there(dir, "link"));
	CHECK(tree_remove(dir, "beside/kept", &e) == 0 && !is_there(beside, "kept"));
	CHECK(tree_remove(dir, "beside/none/x", &e) == 0);
	CHECK(tree_remove(-1, "x", &e) == -EBADF);
	CHECK_STR(e.text, "cannot remove 'x': Bad file descriptor");
}

int main(void)
{
	char path[64];
	own_fd int dir = find_place(path);

	if (dir < 0) {
		printf("skipped: no file system here has user attributes and whiteouts\n");
		return 77;
	}
	umask(022);
	make_tree(dir);
	test_copy(dir);
	test_copy_plain(dir);
	test_copy_over(dir);
	test_copy_stopped(dir);
	test_older_copy(dir);
	test_remove(dir);
	test_depth(dir);
	CHECK(tree_remove(dir, "from", NULL) == 0 && tree_remove(dir, "to", NULL) == 0);
	test_as_somebody(dir);
	CHECK(tree_remove(AT_FDCWD, path, NULL) == 0 && !is_there(AT_FDCWD, path));
	return check_report();
}
