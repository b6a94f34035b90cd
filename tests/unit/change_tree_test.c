/* Digests of trees from memory: what must be noticed. In a directory made for the test. */
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "change/project/change_tree.h"
#include "tree_place.h"

#define SETTLED_MS 100

static struct change_tree_digest find(int dir, int known)
{
	own_fd int fd = tree_open_folder(dir, "tree");
	struct change_tree q = { .fd = fd, .known = known, .settled_ms = SETTLED_MS };
	struct change_tree_digest ret;
	char plain[SHA256_HEX_SIZE];
	struct err e = { 0 };

	CHECK(change_tree_digest(&q, &ret, &e) == 0);
	/* Remembered or not, it is what it is. */
	CHECK(tree_digest(fd, NULL, plain, &e) == 0);
	CHECK_STR(ret.sha256, plain);
	return ret;
}

static void settle(void)
{
	struct timespec wait = { .tv_nsec = 2 * SETTLED_MS * 1000000L };

	nanosleep(&wait, NULL);
}

static void test_remembers(int dir, int known)
{
	struct change_tree_digest first, second;

	CHECK(!find(dir, known).is_remembered); /* too young */
	CHECK(!find(dir, known).is_remembered);
	settle();
	first = find(dir, known);
	CHECK(!first.is_remembered);
	second = find(dir, known);
	CHECK(second.is_remembered);
	CHECK(second.files == 2 && first.files == 2);
	CHECK(second.bytes == 10 && first.bytes == 10);
}

/* Each change is noticed, also one that hides: the same size, and the old time put back. */
static void test_notices(int dir, int known)
{
	own_fd int tree = tree_open_folder(dir, "tree"), file = file_open_name(tree, "a", O_RDWR);
	struct stat st;

#define NOTICES(change)                                                                            \
	do {                                                                                       \
		settle();                                                                          \
		find(dir, known);                                                                  \
		CHECK(find(dir, known).is_remembered);                                             \
		CHECK((change) >= 0);                                                              \
		CHECK(!find(dir, known).is_remembered);                                            \
	} while (0)
	CHECK(fstat(file, &st) == 0);
	NOTICES(pwrite(file, "X", 1, 0) == 1 &&
				futimens(file, (struct timespec[]){ st.st_atim, st.st_mtim }) == 0
			? 0
			: -1);
	NOTICES(futimens(file, NULL));
	NOTICES(fchmod(file, 0600));
	NOTICES(renameat(tree, "a", tree, "c"));
	NOTICES(symlinkat("c", tree, "sub/link"));
	NOTICES(unlinkat(tree, "sub/link", 0));
	NOTICES(fsetxattr(file, "user.a", "1", 1, 0));
	/* Another file of the same name, size and time. */
	write_file(tree, "new", "XXXXX", 0600);
	NOTICES(renameat(tree, "new", tree, "c"));
#undef NOTICES
}

/* Nothing that is not exactly what was written there counts. */
static void test_doubts(int dir, int known)
{
	struct file_entries entries = { .fd = known };
	const struct file_entry *entry;
	char name[64] = "";

	CHECK(lseek(known, 0, SEEK_SET) == 0);
	while ((entry = file_next_entry(&entries)))
		if (entry->name[0] != '.')
			snprintf(name, sizeof(name), "%.63s", entry->name);
	settle();
	find(dir, known);
	CHECK(find(dir, known).is_remembered);
	{
		own_fd int fd = file_open_name(known, name, O_RDWR);

		CHECK(pwrite(fd, "g", 1, 70) == 1);
		CHECK(!find(dir, known).is_remembered);
	}
	CHECK(find(dir, known).is_remembered);
	{
		own_fd int fd = file_open_name(known, name, O_RDWR);

		CHECK(ftruncate(fd, 100) == 0);
		CHECK(!find(dir, known).is_remembered);
	}
	CHECK(!find(dir, -1).is_remembered);
}

static int stop(void *of)
{
	unsigned *left = of;

	return (*left)-- ? 0 : -EINTR;
}

static void test_ends(int dir)
{
	own_fd int fd = tree_open_folder(dir, "tree");
	struct change_tree_digest ret;

	for (unsigned steps = 0; steps < 6; steps++) {
		unsigned left = steps;
		struct change_tree q = { .fd = fd, .known = -1, .step = stop, .of = &left };

		CHECK(change_tree_digest(&q, &ret, NULL) == -EINTR);
	}
}

int main(void)
{
	char path[64];
	own_fd int dir = find_place(path);
	own_fd int known = -1, tree = -1, sub = -1;
	struct statfs fs;

	if (dir < 0) {
		printf("skipped: no file system here has user attributes and whiteouts\n");
		return 77;
	}
	umask(022);
	known = make_folder(dir, "known");
	tree = make_folder(dir, "tree");
	sub = make_folder(tree, "sub");
	write_file(tree, "a", "hello", 0644);
	write_file(sub, "b", "world", 0644);
	test_ends(dir);
	/* ext4, where the tests run; elsewhere nothing may be remembered. */
	if (fstatfs(dir, &fs) == 0 && fs.f_type == 0xef53) {
		test_remembers(dir, known);
		test_notices(dir, known);
		test_doubts(dir, known);
	} else {
		settle();
		find(dir, known);
		CHECK(!find(dir, known).is_remembered);
	}
	CHECK(tree_remove(AT_FDCWD, path, NULL) == 0);
	return check_report();
}
