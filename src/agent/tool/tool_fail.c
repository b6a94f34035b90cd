/*
 * tool_fail - why something did not work, in the words of the cage.
 *
 * Runs as:  a command in a cage, or anywhere.
 * Must not: decide anything: the kernel has.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "agent/tool/tool_cage.h"
#include "base/file.h"
#include "base/own.h"

static bool load_cage(struct tool_cage *ret)
{
	own_fd int fd = file_open(TOOL_CAGE_FILE, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	own_free char *bytes = NULL;
	size_t n;

	*ret = (struct tool_cage){ 0 };
	return fd >= 0 && file_read_all(fd, TOOL_CAGE_MAX, &bytes, &n) == 0 &&
	       tool_cage_read(bytes, n, ret);
}

/* What a link says, as seen from where it lies; false: it is none. */
static bool fail_read_link(const char *full, char ret[static PATH_MAX])
{
	char target[PATH_MAX], folder[PATH_MAX];
	ssize_t n = readlink(full, target, sizeof(target) - 1);

	if (n <= 0)
		return false;
	target[n] = '\0';
	return tool_full_path(full, "..", folder, sizeof(folder)) &&
	       tool_full_path(folder, target, ret, PATH_MAX);
}

int tool_fail(const char *verb, bool writes, const char *path, int num, struct err *e)
{
	char from[PATH_MAX], full[PATH_MAX], link[PATH_MAX];
	struct tool_attempt attempt = { verb, path, path, NULL, writes };
	own(tool_cage) struct tool_cage cage = { 0 };
	bool is_known = load_cage(&cage);

	if (!getcwd(from, sizeof(from)) || !tool_full_path(from, path, full, sizeof(full)))
		is_known = false;
	else {
		attempt.full = full;
		attempt.link = fail_read_link(full, link) ? link : NULL;
	}
	return tool_cage_explain(is_known ? &cage : NULL, &attempt, num, e);
}
