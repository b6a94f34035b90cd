/* What a run left is read, whatever mode it has, and has its mode again afterwards. */
#include <errno.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "change/scan/change_open.h"
#include "change_place.h"

static mode_t mode_of(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 ? st.st_mode & 07777 : 0;
}

static void write_file(const char *path, const char *text)
{
	own_fd int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && file_write_all(fd, text, strlen(text)) == 0);
}

/* Opens, reads a few bytes, and lets go. */
static int read_at(int top, const char *path, char ret[static 8])
{
	own(change_right) struct change_right right = CHANGE_NO_RIGHT;
	own_fd int fd = change_open(top, path, O_RDONLY, &right);

	return fd < 0 ? fd : (int)file_read_text(fd, ret, 8);
}

static void test_files(int top)
{
	char text[8] = "";

	CHECK(read_at(top, "open", text) == 4);
	CHECK_STR(text, "open");
	CHECK(read_at(top, "shut", text) == 4 && mode_of("shut") == 0);
	CHECK(read_at(top, "a/b/c", text) == 1);
	CHECK_STR(text, "c");
	CHECK(mode_of("a") == 0);
	chmod("a", 0700);
	CHECK(mode_of("a/b") == 0100);
	chmod("a", 0);
	CHECK(read_at(top, "a/link", text) == -ELOOP);
	CHECK(read_at(top, "a/none", text) == -ENOENT);
	CHECK(read_at(top, "a/b/c/d", text) == -ENOTDIR);
	CHECK(read_at(top, "../x", text) == -EXDEV);
	CHECK(mode_of("a") == 0);
}

/* While a folder is open what is in it can be reached, though none of its rights were there. */
static void test_folder(int top)
{
	static const mode_t modes[] = { 0, 0100, 0400, 0200, 01000 };

	for (size_t i = 0; i < COUNT_OF(modes); i++) {
		struct change_right right;
		own_fd int fd = -1;
		struct stat st;

		CHECK(chmod("folder", modes[i]) == 0);
		fd = change_open(top, "folder", O_RDONLY | O_DIRECTORY, &right);
		CHECK(fd >= 0 && fstatat(fd, "inside", &st, AT_SYMLINK_NOFOLLOW) == 0);
		change_right_done(&right);
		change_right_done(&right); /* twice does no harm */
		CHECK(mode_of("folder") == modes[i]);
		if (geteuid() != 0) /* the twin: without the right it cannot be reached */
			CHECK(fstatat(fd, "inside", &st, 0) < 0 || modes[i] == 0100);
	}
}

static void tests(void)
{
	own_fd int top = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	write_file("open", "open");
	write_file("shut", "shut");
	mkdir("a", 0700);
	mkdir("a/b", 0700);
	mkdir("folder", 0700);
	write_file("folder/inside", "x");
	write_file("a/b/c", "c");
	CHECK(symlink("b/c", "a/link") == 0);
	CHECK(chmod("shut", 0) == 0 && chmod("a/b/c", 0200) == 0 && chmod("a/b", 0100) == 0);
	CHECK(chmod("a", 0) == 0);
	test_files(top);
	test_folder(top);
}

int main(void)
{
	return work_place_run(tests);
}
