/* Paths that a cage names, as they are compared with what is protected. */
#include "base/count.h"
#include "check.h"
#include "keeper/keeper_inside.h"

static void test_join(void)
{
	static const struct {
		const char *folder, *path, *wanted;
	} rows[] = {
		{ "/p", "a", "/p/a" },
		{ "/p", "/a", "/a" },
		{ "/", "a", "/a" },
		{ "/p/q", "../a/./b//c/", "/p/a/b/c" },
		{ "/p", "../../../a", "/a" },
		{ "/p", "..", "/" },
		{ "/p", ".", "/p" },
		{ "/p", "...", "/p/..." },
		{ "/p", "..a/.b", "/p/..a/.b" },
		{ "", "//", "/" },
	};
	char made[PATH_MAX];

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		CHECK(keeper_join_path(rows[i].folder, rows[i].path, made));
		CHECK_STR(made, rows[i].wanted);
	}
}

static void test_too_long(void)
{
	char path[PATH_MAX], made[PATH_MAX];

	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	CHECK(!keeper_join_path("/p", path, made));
	path[sizeof(path) - 2] = '\0';
	CHECK(keeper_join_path("/", path, made) && strlen(made) == PATH_MAX - 1);
}

int main(void)
{
	test_join();
	test_too_long();
	return check_report();
}
