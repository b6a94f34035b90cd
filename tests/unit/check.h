#pragma once

/*
 * The smallest test frame that says where: CHECK(condition), CHECK_STR(got, wanted), and
 * `return check_report();` at the end of main.
 */
#include <stdio.h>
#include <string.h>

static int check_passed, check_failed;

static inline void check_that(int is_true, const char *what, const char *file, int line)
{
	if (is_true) {
		check_passed++;
		return;
	}
	check_failed++;
	printf("%s:%d: not so: %s\n", file, line, what);
}

static inline void check_equal(const char *got, const char *wanted, const char *file, int line)
{
	if (got && wanted && strcmp(got, wanted) == 0) {
		check_passed++;
		return;
	}
	check_failed++;
	printf("%s:%d:\n   got: %s\nwanted: %s\n", file, line, got ? got : "(null)",
		wanted ? wanted : "(null)");
}

#define CHECK(condition)       check_that((condition) ? 1 : 0, #condition, __FILE__, __LINE__)
#define CHECK_STR(got, wanted) check_equal((got), (wanted), __FILE__, __LINE__)

static inline int check_report(void)
{
	printf("%d passed, %d failed\n", check_passed, check_failed);
	return check_failed ? 1 : 0;
}
