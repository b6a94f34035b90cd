/* Digests of whole trees, in a directory made for the test and removed after it. */
#include <sys/stat.h>

#include "tree_place.h"

static void digest_of(int dir, const char *name, char ret[static SHA256_HEX_SIZE])
{
	own_fd int fd = tree_open_folder(dir, name);
	struct err e = { 0 };

	CHECK(tree_digest(fd, NULL, ret, &e) == 0);
}

/* By hand, from what the header says. */
static void test_digest(int dir)
{
	own_fd int in = make_folder(dir, "d");
	char file[SHA256_HEX_SIZE], link[SHA256_HEX_SIZE], attributes[SHA256_HEX_SIZE];
	char folder[SHA256_HEX_SIZE], wanted[SHA256_HEX_SIZE], got[SHA256_HEX_SIZE];
	char lines[1024];
	int n;

	write_file(in, "b", "hello", 0640);
	set_attribute(in, "b", "user.a", "xy");
	CHECK(symlinkat("b", in, "a") == 0 && mknodat(in, "c", S_IFCHR, 0) == 0);
	sha256_hex("0 hello", 7, file);
	sha256_hex("b", 1, link);
	sha256_hex("user.a\0002 xy", 11, attributes);
	n = snprintf(lines, sizeof(lines), "l 0777 1 %s - a%cf 0640 5 %s %s b%cw 0000 0 - - c%c",
		link, 0, file, attributes, 0, 0);
	sha256_hex(lines, (size_t)n, folder);
	n = snprintf(lines, sizeof(lines), "d 0755 0 %s - .%c", folder, 0);
	sha256_hex(lines, (size_t)n, wanted);
	digest_of(dir, "d", got);
	CHECK_STR(got, wanted);
}

/* Zeros that are there and zeros that are not are the same, and none takes time. */
static void test_digest_holes(int dir)
{
	own_fd int one = make_folder(dir, "one"), two = make_folder(dir, "two");
	own_fd int sparse = openat(one, "f", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	own_fd int dense = openat(two, "f", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	static const char zeros[3 * 65536];
	char a[SHA256_HEX_SIZE], b[SHA256_HEX_SIZE];

	CHECK(file_write_all(dense, zeros, sizeof(zeros)) == 0);
	CHECK(pwrite(sparse, "x", 1, 70000) == 1 && pwrite(dense, "x", 1, 70000) == 1);
	CHECK(ftruncate(sparse, sizeof(zeros)) == 0);
	digest_of(dir, "one", a);
	digest_of(dir, "two", b);
	CHECK_STR(a, b);
	/* The same bytes elsewhere are others, and so is a longer hole. */
	CHECK(pwrite(dense, "\0", 1, 70000) == 1 && pwrite(dense, "x", 1, 70000 - 4096) == 1);
	digest_of(dir, "two", b);
	CHECK(strcmp(a, b) != 0);
	CHECK(ftruncate(sparse, (off_t)8 << 40) == 0);
	digest_of(dir, "one", b);
	CHECK(strcmp(a, b) != 0);
}

/* A copy has the digest of its source, and loses it with every change. */
static void test_digest_changes(int dir)
{
	char before[SHA256_HEX_SIZE], now[SHA256_HEX_SIZE];
	own_fd int to = tree_open_folder(dir, "to"), file = file_open_name(to, "file", O_RDWR);

	CHECK(unlinkat(dir, "from/socket", 0) == 0);
	digest_of(dir, "from", before);
	digest_of(dir, "to", now);
	CHECK_STR(now, before);
#define CHANGES(change)                                                                            \
	do {                                                                                       \
		memcpy(before, now, sizeof(before));                                               \
		CHECK((change) == 0);                                                              \
		digest_of(dir, "to", now);                                                         \
		CHECK(strcmp(before, now) != 0);                                                   \
	} while (0)
	CHANGES(fchmodat(to, "sub/linked", 0600, 0));
	/* Only what is above 0777: a program that runs as its owner is another one. */
	CHANGES(fchmodat(to, "sub/linked", 04600, 0));
	CHANGES(fchmodat(to, "sub/linked", 02600, 0));
	CHANGES(fchmodat(to, "sub/linked", 01600, 0));
	CHANGES(fchmodat(to, "sub/linked", 0600, 0));
	CHANGES(fchmodat(to, "sub", 02755, 0));
	CHANGES(fchmodat(to, "sub", 01755, 0));
	CHANGES(renameat(to, "sub/linked", to, "sub/other"));
	CHANGES(unlinkat(to, "whiteout", 0));
	CHANGES(unlinkat(to, "out", 0) < 0 || symlinkat("/etc/shadow", to, "out") < 0);
	CHANGES(fchmod(to, 0700));
	CHANGES(fremovexattr(file, "user.colour"));
	CHANGES(fsetxattr(file, "user.size", "", 0, 0));
	CHANGES(pwrite(file, "C", 1, 0) - 1);
	CHANGES(ftruncate(file, 3));
#undef CHANGES
}

static int count_down(void *of)
{
	unsigned *left = of;

	return (*left)-- ? 0 : -EINTR;
}

/* It is told how far it is, also within a file, and ends when it is to. */
static void test_digest_told(int dir)
{
	own_fd int top = make_folder(dir, "told"),
		   file = openat(top, "long", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	char before[SHA256_HEX_SIZE], now[SHA256_HEX_SIZE], block[4096];
	struct tree_counts counts = { 0 };
	unsigned left = 10000;
	struct tree_options o = { .counts = &counts, .step = count_down, .of = &left };

	memset(block, 'x', sizeof(block));
	for (size_t i = 0; i < 256; i++)
		CHECK(write(file, block, sizeof(block)) == (ssize_t)sizeof(block));
	CHECK(symlinkat("long", top, "link") == 0 && mkdirat(top, "sub", 0700) == 0);
	CHECK(tree_digest(top, NULL, before, NULL) == 0);
	CHECK(tree_digest(top, &o, now, NULL) == 0);
	CHECK_STR(now, before);
	CHECK(counts.files == 1 && counts.folders == 2 && counts.links == 1);
	CHECK(counts.bytes == (uint64_t)256 * sizeof(block));
	CHECK(left <= 10000 - 256 * sizeof(block) / 65536);
	left = 3;
	CHECK(tree_digest(top, &o, now, NULL) == -EINTR);
}

int main(void)
{
	char path[64];
	own_fd int dir = find_place(path);
	struct tree_options o = { 0 };
	own_fd int from = -1, to = -1;

	if (dir < 0) {
		printf("skipped: no file system here has user attributes and whiteouts\n");
		return 77;
	}
	umask(022);
	make_tree(dir);
	from = tree_open_folder(dir, "from");
	to = make_folder(dir, "to");
	CHECK(tree_copy(from, to, &o, NULL) == 0);
	test_digest(dir);
	test_digest_holes(dir);
	test_digest_changes(dir);
	test_digest_told(dir);
	CHECK(tree_remove(AT_FDCWD, path, NULL) == 0 && !is_there(AT_FDCWD, path));
	return check_report();
}
