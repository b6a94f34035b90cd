/* What changed files were, in one file: written, read back, damaged in every way. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/file.h"
#include "base/own.h"
#include "change/effects/change_base.h"
#include "change_place.h"

static const char *const texts[] = { "one\n", "", "three\nlines\nlong\n" };
static const size_t indexes[] = { 2, 7, 300000 };

#define COUNT 3

static void hash_of(const char *bytes, size_t n, uint8_t ret[static SHA256_SIZE])
{
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, bytes, n);
	sha256_finish(&s, ret);
}

static int read_one(int folder, size_t index, const char *wanted, size_t max, char **ret)
{
	uint8_t hash[SHA256_SIZE];
	size_t n = 0;
	int r;

	hash_of(wanted, strlen(wanted), hash);
	r = change_base_read(folder, index, hash, max, ret, &n);
	CHECK(r < 0 || n == strlen(wanted));
	return r;
}

static int read_status(int folder, size_t index, const char *wanted)
{
	own_free char *bytes = NULL;

	return read_one(folder, index, wanted, 1 << 20, &bytes);
}

/* As a scan does: in any order, and named when the indexes are known. */
static int make_base(const char *name)
{
	int folder;
	uint64_t at[COUNT];
	struct change_base b;

	CHECK(mkdir(name, 0700) == 0);
	folder = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	change_base_init(&b, folder);
	for (size_t i = COUNT; i-- > 0;)
		CHECK(change_base_add(&b, texts[i], strlen(texts[i]), &at[i]) == 0);
	for (size_t i = 0; i < COUNT; i++)
		CHECK(change_base_name(&b, &(struct change_base_row){
						   indexes[i], at[i], strlen(texts[i]) }) == 0);
	CHECK(change_base_finish(&b, COUNT) == 0);
	change_base_done(&b);
	return folder;
}

static void test_read(void)
{
	own_fd int folder = make_base("base");
	own_free char *bytes = NULL;

	for (size_t i = 0; i < COUNT; i++) {
		own_free char *one = NULL;

		CHECK(read_one(folder, indexes[i], texts[i], 1 << 20, &one) == 0);
		CHECK_STR(one, texts[i]);
	}
	CHECK(read_status(folder, 0, "") == -ENOENT);
	CHECK(read_status(folder, 3, "") == -ENOENT);
	CHECK(read_status(folder, 300001, "") == -ENOENT);
	CHECK(read_status(folder, 2, "two\n") == -EBADMSG);
	CHECK(read_one(folder, 2, "one\n", 3, &bytes) == -EFBIG);
}

static void test_nothing(void)
{
	struct change_base b;
	own_fd int folder = -1;

	CHECK(mkdir("nothing", 0700) == 0);
	folder = open("nothing", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	change_base_init(&b, folder);
	CHECK(change_base_finish(&b, 0) == 0);
	change_base_done(&b);
	CHECK(faccessat(folder, "contents", F_OK, 0) < 0);
	CHECK(read_status(folder, 0, "") == -ENOENT);
}

/* One file for each, as bawn once wrote them. */
static void test_single(void)
{
	own_fd int folder = -1, file = -1;

	CHECK(mkdir("single", 0700) == 0);
	folder = open("single", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	file = openat(folder, "12", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(file >= 0 && file_write_all(file, "old\n", 4) == 0);
	CHECK(read_status(folder, 12, "old\n") == 0);
	CHECK(read_status(folder, 12, "new\n") == -EBADMSG);
	CHECK(read_status(folder, 1, "old\n") == -ENOENT);
}

/* Whatever byte is changed, and wherever it is cut: what is read is what was written, or refused.
 */
static void test_damaged(void)
{
	own_fd int folder = make_base("damaged");
	own_fd int file = openat(folder, "contents", O_RDWR | O_CLOEXEC);
	own_free char *bytes = NULL;
	size_t n = 0;

	CHECK(file_read_all(file, 1 << 20, &bytes, &n) == 0);
	for (size_t i = 0; i < n; i++) {
		char wrong = (char)(bytes[i] ^ 1);

		CHECK(pwrite(file, &wrong, 1, (off_t)i) == 1);
		for (size_t k = 0; k < COUNT; k++) {
			int r = read_status(folder, indexes[k], texts[k]);

			CHECK(r == 0 || r == -EBADMSG || r == -ENOENT || r == -EFBIG);
		}
		CHECK(pwrite(file, &bytes[i], 1, (off_t)i) == 1);
	}
	for (size_t i = 0; i < n; i++) {
		CHECK(ftruncate(file, (off_t)i) == 0);
		for (size_t k = 0; k < COUNT; k++)
			CHECK(read_status(folder, indexes[k], texts[k]) != 0);
	}
}

static void tests(void)
{
	test_read();
	test_nothing();
	test_single();
	test_damaged();
}

int main(void)
{
	return work_place_run(tests);
}
