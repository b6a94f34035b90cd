/* Copies of projects, what a run does to them, and what is made of that afterwards. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/xattr.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"
#include "change/copy/change_copy.h"
#include "change_place.h"

static int layer = -1;

static void sh(const char *script)
{
	if (system(script) != 0) /* NOLINT(cert-env33-c) */
		printf("failed: %s\n", script), check_failed++;
}

/* --- a copy, from the project to the layer --- */

static void begin(const char *project)
{
	const struct tree_options options = { .is_plain = true };
	own_fd int from = -1, to = -1, list = -1;
	struct err e = { 0 };

	sh("chmod -fR u+rwX project layer; rm -rf project layer && mkdir project layer "
	   "layer/copy");
	sh(project);
	layer = open("layer", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	from = open("project", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	to = open("layer/copy", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	list = open("layer/list", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	CHECK(tree_copy(from, to, &options, &e) == 0 && change_copy_list(to, list, &e) == 0 &&
		change_copy_settle(list, &e) == 0);
	CHECK_STR(e.text, "");
}

static void finish(void)
{
	struct err e = { 0 };

	CHECK(change_copy_finish(layer, NULL, &e) == 0);
	CHECK_STR(e.text, "");
	CHECK(faccessat(layer, "copy", F_OK, 0) < 0 && faccessat(layer, "list", F_OK, 0) < 0 &&
		faccessat(layer, "marked", F_OK, 0) < 0);
	close(layer);
}

/* Every entry of a tree as a line; a name's bytes beyond ASCII and blanks as ?. */
static void print_tree(int folder, const char *path, struct buf *out)
{
	own(tree_names) struct tree_names names = { 0 };

	CHECK(tree_names_read(folder, TREE_MAX_NAMES, &names) == 0);
	for (size_t i = 0; i < names.count; i++) {
		own_fd int inner = -1;
		char inside[8192], text[64] = "", value[8] = "";
		struct stat st;

		fstatat(folder, names.sorted[i], &st, AT_SYMLINK_NOFOLLOW);
		snprintf(inside, sizeof(inside), "%s%s", path, names.sorted[i]);
		for (char *c = inside; *c; c++)
			*c = *c > ' ' && *c < 127 ? *c : '?';
		if (S_ISCHR(st.st_mode)) {
			buf_printf(out, "gone %s\n", inside);
			continue;
		}
		buf_printf(out, "%o %s", (unsigned)st.st_mode & 07777, inside);
		if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) {
			CHECK(fchmodat(folder, names.sorted[i], 0700, 0) == 0);
			inner = file_open_name(folder, names.sorted[i], O_RDONLY);
			CHECK(fchmod(inner, S_ISDIR(st.st_mode) ? 0700 : st.st_mode & 07777) == 0);
		}
		if (S_ISLNK(st.st_mode) && readlinkat(folder, names.sorted[i], text, 63) > 0)
			buf_printf(out, " -> %s", text);
		else if (S_ISREG(st.st_mode) && file_read_text(inner, text, sizeof(text)) >= 0)
			buf_printf(out, " '%s'", text);
		else if (S_ISDIR(st.st_mode))
			buf_puts(out, "/");
		else
			buf_puts(out, S_ISFIFO(st.st_mode) ? " pipe" : " socket");
		if (inner >= 0 && fgetxattr(inner, "user.overlay.opaque", value, 7) > 0)
			buf_printf(out, " opaque=%s", value);
		buf_puts(out, "\n");
		strcat(inside, "/");
		if (S_ISDIR(st.st_mode))
			print_tree(inner, inside, out);
	}
}

static void check_upper(const char *wanted)
{
	own(buf) struct buf out = { .max = (size_t)1 << 20 };
	own_fd int upper = open("layer/upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK(upper >= 0);
	if (upper >= 0)
		print_tree(upper, "", &out);
	CHECK_STR(buf_text(&out), wanted);
}

/* One run: what the project is, what is done to its copy, what is kept of that. */
static void check(const char *project, const char *run, const char *wanted)
{
	char script[2048];

	begin(project);
	snprintf(script, sizeof(script), "cd layer/copy && { %s; }", run);
	sh(script);
	finish();
	check_upper(wanted);
}

/* --- what a run does --- */

#define TREE                                                                                       \
	"cd project && mkdir -p a/b c && echo 1 >f && echo 2 >a/g && echo 3 >a/b/h && ln -s f l "  \
	"&& echo 4 >c/i && chmod 755 . a a/b c && chmod 644 f a/g a/b/h c/i"

static void test_files(void)
{
	check(TREE, "true", "");
	check(TREE, "cat f a/b/h >/dev/null; find . >/dev/null", "");
	check(TREE, "printf new >n; chmod 600 n", "600 n 'new'\n");
	check(TREE, "printf x >>a/b/h", "755 a/\n755 a/b/\n644 a/b/h '3\nx'\n");
	check(TREE, "chmod 700 a/g", "755 a/\n700 a/g '2\n'\n");
	check(TREE, "touch f", "644 f '1\n'\n");
	check(TREE, "rm f a/g", "755 a/\ngone a/g\ngone f\n");
	check(TREE, "rm f; printf x >f; chmod 644 f", "644 f 'x'\n");
	check(TREE, "ln -sfn c l", "777 l -> c\n");
	check(TREE, "mv f a/f", "755 a/\n644 a/f '1\n'\ngone f\n");
	check(TREE, "mv f t; mv c/i f; mv t c/i", "755 c/\n644 c/i '1\n'\n644 f '4\n'\n");
	check(TREE, "ln f n", "644 f '1\n'\n644 n '1\n'\n");
	check(TREE, "mkfifo -m 600 p", "600 p pipe\n");
	check(TREE, "rm l; mkfifo -m 600 l", "600 l pipe\n");
	check(TREE, "mv a/g x; mv x a/g", "755 a/\n644 a/g '2\n'\n");
}

static void test_folders(void)
{
	check(TREE, "mkdir -m 750 n; mkdir -m 755 n/m", "750 n/\n755 n/m/\n");
	check(TREE, "chmod 700 a", "700 a/\n");
	check(TREE, "rm -r a", "gone a\n");
	check(TREE, "rm -r a; mkdir -m 755 x a; printf y >a/g; chmod 644 a/g; rmdir x",
		"755 a/ opaque=y\n644 a/g 'y'\n");
	check(TREE, "rm a/b/h", "755 a/\n755 a/b/\ngone a/b/h\n");
	check(TREE, "mv a d", "gone a\n755 d/\n755 d/b/\n644 d/b/h '3\n'\n644 d/g '2\n'\n");
	check(TREE, "mv c x; mv a c; mv x a",
		"755 a/ opaque=y\n644 a/i '4\n'\n755 c/ opaque=y\n755 c/b/\n644 c/b/h '3\n'\n"
		"644 c/g '2\n'\n");
	check(TREE, "rm f; mkdir -m 755 f; printf y >f/x; chmod 644 f/x",
		"755 f/ opaque=y\n644 f/x 'y'\n");
	check(TREE, "rm -r a; printf y >a; chmod 644 a", "644 a 'y'\n");
	check(TREE, "rm -r a; ln -s c a", "777 a -> c\n");
	/* There and back again: the same folder, and only its own times have changed. */
	check(TREE, "mv a x; mv x a", "755 a/\n");
	/* What was in it before is of no use where the folder is another one. */
	check(TREE, "mv a/b x; rm -r a; mkdir t; mkdir -m 755 a; mv x a/b; rmdir t",
		"755 a/ opaque=y\n755 a/b/\n644 a/b/h '3\n'\n");
	check("cd project && mkdir e && chmod 755 e", "true", "");
	check("cd project && mkdir e && chmod 755 e", "rmdir e", "gone e\n");
}

/* The number of a folder that is gone is soon another one's. */
static void test_numbers(void)
{
	struct stat was, is;

	begin(TREE);
	CHECK(stat("layer/copy/c", &was) == 0);
	sh("rm -r layer/copy/c && mkdir -m 755 layer/copy/c && printf x >layer/copy/c/n && "
	   "chmod 644 layer/copy/c/n");
	CHECK(stat("layer/copy/c", &is) == 0);
	finish();
	check_upper(was.st_ino == is.st_ino ? "755 c/\ngone c/i\n644 c/n 'x'\n"
					    : "755 c/ opaque=y\n644 c/n 'x'\n");
}

static void test_modes(void)
{
	check(TREE, "chmod 0 a/g; chmod 0 a", "0 a/\n0 a/g '2\n'\n");
	check(TREE, "mkdir n; printf x >n/m; chmod 0 n/m n", "0 n/\n0 n/m 'x'\n");
	check(TREE, "rm a/b/h; chmod 100 a/b; chmod 555 a", "555 a/\n100 a/b/\ngone a/b/h\n");
	check(TREE, "chmod 0 .", "");
	check(TREE "; chmod 555 a/b a", "true", "");
	check(TREE "; chmod 444 f; chmod 555 a/b a", "chmod 755 a; rm a/g; chmod 555 a",
		"555 a/\ngone a/g\n");
	check(TREE "; chmod 555 a/b a", "chmod 755 a/b; touch a/b/h; chmod 555 a/b",
		"555 a/\n555 a/b/\n644 a/b/h '3\n'\n");
	check(TREE "; chmod 2755 c; chmod 1777 a", "printf x >c/n; chmod 644 c/n; touch a/g",
		"1777 a/\n644 a/g '2\n'\n2755 c/\n644 c/n 'x'\n");
}

#define ZEROS                                                                                       \
	"00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000" \
	"000000000000000000000000000000000000"

static void test_names(void)
{
	check("cd project && mkdir 'd\nx' && touch ' ' '  a' 'd\nx/\xff\xfe' -- -r \"$(printf "
	      "'%0255d' 7)\" && chmod 755 d* && chmod 644 ' ' '  a' d*/* ./-r 0*",
		"rm ' ' 'd\nx/\xff\xfe' ./-r 0*; printf y >'  a'; mkdir -m 755 'd\nx/\t'",
		"gone ?\n644 ??a 'y'\ngone -r\ngone 0" ZEROS ZEROS "0007\n755 d?x/\n755 d?x/?/\n"
		"gone d?x/??\n");
	/* The order of names is that of their bytes, in the list and in the folder. */
	check("cd project && mkdir a a.b && touch a/x a.b/x a-b a0 'a b' A Z && chmod 755 a a.b && "
	      "chmod 644 a/x a.b/x a-b a0 A Z 'a b'",
		"rm a/x a-b Z", "gone Z\n755 a/\ngone a/x\ngone a-b\n");
}

/* Folders in folders, or the way down them; the last one. */
static int dig(const char *top, unsigned depth, bool makes)
{
	int at = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (unsigned i = 0; i < depth && at >= 0; i++) {
		int next;

		CHECK(!makes || mkdirat(at, "d", 0755) == 0);
		next = tree_open_folder(at, "d");
		close(at);
		at = next;
	}
	CHECK(at >= 0);
	return at;
}

static void test_depth(void)
{
	struct err e = { 0 };

	begin(TREE);
	close(dig("layer/copy", 900, true));
	finish();
	close(dig("layer/upper", 900, false));
	begin(TREE);
	close(dig("layer/copy", 1100, true));
	CHECK(change_copy_finish(layer, NULL, &e) == -ENAMETOOLONG);
	CHECK(strstr(e.text, "cannot find out what the run changed"));
	CHECK(faccessat(layer, "copy/f", F_OK, 0) == 0);
	CHECK(tree_remove(layer, "copy", &e) == 0);
	close(layer);
}

/* --- what an overlay would not let a run do --- */

static void forge(const char *path, const char *name, const char *value)
{
	CHECK(setxattr(path, name, value, strlen(value), 0) == 0);
}

static void test_forged(void)
{
	begin(TREE);
	sh("cd layer/copy && mkdir -m 755 n && printf x >n/x && chmod 444 n/x f");
	forge("layer/copy", "user.overlay.opaque", "y");
	forge("layer/copy/a", "user.overlay.opaque", "y");
	forge("layer/copy/a", "user.overlay.redirect", "/etc");
	forge("layer/copy/n", "user.overlay.opaque", "x");
	sh("chmod 644 layer/copy/f layer/copy/n/x");
	forge("layer/copy/f", "user.overlay.metacopy", "");
	forge("layer/copy/n/x", "user.overlay.whiteout", "");
	forge("layer/copy/n/x", "user.kept", "1");
	sh("chmod 444 layer/copy/n/x layer/copy/f; chmod 555 layer/copy/n");
	CHECK(mknod("layer/copy/w", S_IFCHR, 0) == 0 && mknod("layer/copy/a/w", S_IFCHR, 0) == 0);
	/* This one says nothing that removing does not. */
	CHECK(unlink("layer/copy/c/i") == 0 && mknod("layer/copy/c/i", S_IFCHR, 0) == 0);
	finish();
	CHECK(getxattr("layer/upper", "user.overlay.opaque", NULL, 0) < 0 && errno == ENODATA);
	CHECK(getxattr("layer/upper/a", "user.overlay.redirect", NULL, 0) < 0 && errno == ENODATA);
	CHECK(getxattr("layer/upper/f", "user.overlay.metacopy", NULL, 0) < 0 && errno == ENODATA);
	CHECK(getxattr("layer/upper/n/x", "user.overlay.whiteout", NULL, 0) < 0 &&
		errno == ENODATA);
	CHECK(getxattr("layer/upper/n/x", "user.kept", NULL, 0) == 1);
	check_upper("755 a/\n755 c/\ngone c/i\n444 f '1\n'\n555 n/\n444 n/x 'x'\n");
}

static void test_attributes(void)
{
	begin(TREE);
	forge("layer/copy/a/b", "user.x", "1");
	forge("layer/copy/f", "user.x", "1");
	finish();
	CHECK(getxattr("layer/upper/a/b", "user.x", NULL, 0) == 1);
	check_upper("755 a/\n755 a/b/\n644 f '1\n'\n");
}

/* --- interrupted --- */

struct fuse {
	unsigned left;
};

static void burn(void *of, const char *what, uint64_t done, uint64_t total)
{
	struct fuse *fuse = of;

	(void)what;
	(void)done;
	(void)total;
	if (fuse->left-- == 0)
		_exit(3);
}

/* Ends a process in the middle, after `n` entries. */
static bool is_cut_after(unsigned n)
{
	struct fuse fuse = { n };
	const struct change_progress progress = { .tell = burn, .of = &fuse };
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		struct err e;

		_exit(change_copy_finish(layer, &progress, &e) == 0 ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) != 1);
	return WEXITSTATUS(status) == 3;
}

static void test_interrupted(void)
{
	bool is_cut = true;
	unsigned n;

	for (n = 0; is_cut && n < 1000; n++) {
		begin(TREE "; mkdir s; touch s/1 s/2; chmod 755 s");
		sh("cd layer/copy && rm f a/g && mkdir -m 755 n && printf x >n/x && chmod 600 n/x "
		   "&& mv c k && mkdir -m 755 c && printf y >>a/b/h");
		is_cut = is_cut_after(n);
		if (is_cut)
			is_cut_after(n / 2);
		finish();
		/* A folder that was half empty then stays, which changes nothing. */
		if (rmdir("layer/upper/s") < 0)
			CHECK(errno == ENOENT);
		check_upper("755 a/\n755 a/b/\n644 a/b/h '3\ny'\ngone a/g\n755 c/ opaque=y\n"
			    "gone f\n755 k/\n644 k/i '4\n'\n755 n/\n600 n/x 'x'\n");
	}
	CHECK(n > 20 && n < 100);
}

static void test_without_list(void)
{
	struct err e = { 0 };

	begin(TREE "; chmod 555 a");
	CHECK(unlinkat(layer, "list", 0) == 0);
	CHECK(change_copy_finish(layer, NULL, &e) == 0);
	CHECK(faccessat(layer, "copy", F_OK, 0) < 0 && faccessat(layer, "upper", F_OK, 0) < 0);
	CHECK(change_copy_finish(layer, NULL, &e) == 0);
	close(layer);
}

/* Nothing is lost where the list is not what it was. */
static void test_damaged(void)
{
	struct stat st;

	begin(TREE);
	CHECK(stat("layer/list", &st) == 0 && st.st_size > 100);
	close(layer);
	for (off_t size = 0; size < st.st_size; size++) {
		struct err e = { 0 };

		begin(TREE);
		sh("rm layer/copy/f; printf x >layer/copy/n");
		CHECK(truncate("layer/list", size) == 0);
		CHECK(change_copy_finish(layer, NULL, &e) == -EBADMSG);
		CHECK(strstr(e.text, "damaged"));
		CHECK(faccessat(layer, "copy/a/b/h", F_OK, 0) == 0 &&
			faccessat(layer, "copy/n", F_OK, 0) == 0);
		close(layer);
		size += 30;
	}
}

static void tests(void)
{
	test_files();
	test_folders();
	test_numbers();
	test_modes();
	test_names();
	test_depth();
	test_forged();
	test_attributes();
	test_interrupted();
	test_without_list();
	test_damaged();
}

int main(void)
{
	return work_place_run(tests);
}
