#include <string.h>

#include "agent/hook/hook.h"
#include "base/str.h"

static bool are_absolute(const struct tool_paths *paths)
{
	for (size_t i = 0; i < paths->count; i++)
		if (paths->at[i][0] != '/')
			return false;
	return true;
}

bool hook_wall_read(struct tool_cage *ret, const char *bytes, size_t n)
{
	return tool_cage_read(bytes, n, ret) && ret->project && ret->project[0] == '/' &&
	       ret->home && ret->home[0] == '/' && are_absolute(&ret->read) &&
	       are_absolute(&ret->write) && are_absolute(&ret->protect);
}

/* How long the nearest path is that covers this one; 0: none does. */
static size_t wall_cover(const struct tool_paths *paths, const char *real)
{
	size_t longest = 0;

	for (size_t i = 0; i < paths->count; i++) {
		size_t n = strlen(paths->at[i]);

		if (n > longest && str_path_within(real, paths->at[i]))
			longest = n;
	}
	return longest;
}

/* Is it on the way to something that is there? Then its names can be listed. */
static bool is_above(const struct tool_paths *paths, const char *real)
{
	for (size_t i = 0; i < paths->count; i++)
		if (str_path_within(paths->at[i], real))
			return true;
	return false;
}

enum hook_verdict hook_wall_judge(const struct tool_cage *w, const char *real, bool writes)
{
	size_t write = wall_cover(&w->write, real), protect = wall_cover(&w->protect, real);
	bool is_there = write || wall_cover(&w->read, real) || is_above(&w->read, real);

	if (!is_there)
		return HOOK_OUTSIDE;
	if (!writes || write > protect)
		return HOOK_FINE;
	return protect ? HOOK_PROTECTED : HOOK_READ_ONLY;
}
