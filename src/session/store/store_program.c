/*
 * store_program - becomes the program that knows the store.
 *
 * Runs as: the operator, at the beginning of a command.
 *
 * libpq is not linked into bawn: it cannot be static, and what it takes along to be loaded would
 * cost every run milliseconds. bawn-pg is the same program with it.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/count.h"
#include "base/str.h"
#include "session/store/store_inside.h"

#define PROGRAM "bawn-pg"

/* From the folder of this program: in a build, and where they are installed, whatever the prefix.
 */
static const char *const places[] = { PROGRAM, "../libexec/bawn/" PROGRAM };

static bool program_is_elsewhere(const char *where)
{
	return where && (str_starts(where, "postgresql://") || str_starts(where, "postgres://"));
}

int store_prefer_program(const char *where, char *const argv[], struct err *e)
{
	char self[PATH_MAX], path[2 * PATH_MAX];
	ssize_t n;

	if (!program_is_elsewhere(where) || &store_postgres_driver)
		return 0;
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0)
		return err_sys(e, errno,
			"cannot open the store: /proc/self/exe does not say where bawn is");
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	for (size_t i = 0; i < COUNT_OF(places); i++) {
		snprintf(path, sizeof(path), "%s/%s", self, places[i]);
		execv(path, argv);
		if (errno != ENOENT && errno != ENOTDIR)
			return err_sys(e, errno,
				"cannot open the store: %s, which knows PostgreSQL, cannot be "
				"executed",
				path);
	}
	return err_set(e, ERR_REFUSED, ENOENT,
		"cannot open the store: PostgreSQL needs the program " PROGRAM
		", which is neither in %s nor in %s/../libexec/bawn",
		self, self);
}
