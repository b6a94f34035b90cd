#include "change/git/change_git.h"

#include <string.h>

#include "base/count.h"
#include "base/str.h"

struct rule {
	const char *text; /* with a slash or a star at its end: whatever begins like that */
	enum change_git_kind kind;
	unsigned order;
	bool is_locked;
};

/* Below a repository's own folder; the first that fits. */
static const struct rule rules[] = {
	{ "objects/info/alternates", CHANGE_GIT_REST, 0, false },
	{ "objects/info/http-alternates", CHANGE_GIT_REST, 0, false },
	{ "objects/info/*", CHANGE_GIT_CACHE, 0, false },
	{ "objects/pack/multi-pack-index*", CHANGE_GIT_CACHE, 0, false },
	{ "objects/pack/tmp_*", CHANGE_GIT_CACHE, 0, false },
	{ "objects/incoming-*", CHANGE_GIT_CACHE, 0, false },
	{ "objects/tmp_*", CHANGE_GIT_CACHE, 0, false },
	{ "objects/", CHANGE_GIT_OBJECT, 0, false },
	{ "reftable/tables.list", CHANGE_GIT_STATE, 1, true },
	{ "reftable/", CHANGE_GIT_STATE, 0, false },
	{ "sharedindex.*", CHANGE_GIT_STATE, 0, false },
	{ "packed-refs", CHANGE_GIT_STATE, 0, true },
	{ "shallow", CHANGE_GIT_STATE, 0, true },
	{ "refs/", CHANGE_GIT_STATE, 1, true },
	{ "HEAD", CHANGE_GIT_STATE, 2, true },
	{ "ORIG_HEAD", CHANGE_GIT_STATE, 2, true },
	{ "index", CHANGE_GIT_STATE, 3, true },
	/* Without these, refs and an index of the run's would be half of what it did. */
	{ "logs/", CHANGE_GIT_STATE, 0, false },
	{ "MERGE_*", CHANGE_GIT_STATE, 0, false },
	{ "CHERRY_PICK_HEAD", CHANGE_GIT_STATE, 0, false },
	{ "REVERT_HEAD", CHANGE_GIT_STATE, 0, false },
	{ "BISECT_*", CHANGE_GIT_STATE, 0, false },
	{ "rebase-merge/", CHANGE_GIT_STATE, 0, false },
	{ "rebase-apply/", CHANGE_GIT_STATE, 0, false },
	{ "sequencer/", CHANGE_GIT_STATE, 0, false },
	{ "config", CHANGE_GIT_REST, 0, true },
	{ "config.worktree", CHANGE_GIT_REST, 0, true },
	{ "*", CHANGE_GIT_REST, 0, false },
};

static bool fits(const char *pattern, const char *path)
{
	size_t n = strlen(pattern);

	if (pattern[n - 1] == '*')
		return strncmp(path, pattern, n - 1) == 0;
	if (pattern[n - 1] == '/')
		return strncmp(path, pattern, n) == 0;
	return str_eq(path, pattern);
}

/* Folders at the top of a repository's own: where one is, the name of a module has ended. */
static bool is_top_folder(const char *name, size_t n)
{
	static const char *const folders[] = { "objects", "refs", "logs", "info", "hooks",
		"branches", "modules", "worktrees", "reftable", "lfs" };

	for (size_t i = 0; i < COUNT_OF(folders); i++)
		if (strlen(folders[i]) == n && memcmp(folders[i], name, n) == 0)
			return true;
	return false;
}

static const char *git_skip_name(const char *path)
{
	const char *slash = strchr(path, '/');

	return slash ? slash + 1 : NULL;
}

/* From "modules/NAME/rest", whose name may have slashes, to the rest. */
static const char *skip_module(const char *path)
{
	const char *at = git_skip_name(path + strlen("modules/"));

	for (;;) {
		const char *next = at ? git_skip_name(at) : NULL;

		if (!next)
			return at ? at : path + strlen("modules/");
		if (is_top_folder(at, (size_t)(next - 1 - at)))
			return at;
		at = next;
	}
}

/* What follows the first ".git/", however it is written; NULL where there is none. */
static const char *enter_git(const char *path)
{
	for (; path; path = git_skip_name(path)) {
		const char *next = git_skip_name(path);

		if (next && next - path == 5 && path[0] == '.' && str_lower(path[1]) == 'g' &&
			str_lower(path[2]) == 'i' && str_lower(path[3]) == 't')
			return next;
	}
	return NULL;
}

struct change_git_place change_git_place_of(const char *path)
{
	struct change_git_place ret = { .kind = CHANGE_GIT_NOT };
	const char *rest = enter_git(path);
	size_t i = 0;

	if (!rest)
		return ret;
	while (str_starts(rest, "modules/"))
		rest = skip_module(rest);
	ret.folder = (size_t)(rest - path) - 1;
	/* A linked worktree shares the refs: its HEAD and its index belong to the same state. */
	if (str_starts(rest, "worktrees/") && git_skip_name(rest + strlen("worktrees/")))
		rest = git_skip_name(rest + strlen("worktrees/"));
	while (!fits(rules[i].text, rest))
		i++;
	ret.kind = rules[i].kind;
	ret.order = rules[i].order;
	ret.is_locked = rules[i].is_locked;
	ret.is_index = str_eq(rest, "index");
	ret.lists_paths = ret.is_index || str_starts(rest, "sharedindex.");
	if (ret.kind == CHANGE_GIT_OBJECT) {
		const char *name = strrchr(rest, '/') + 1;

		if (str_starts(name, "tmp_"))
			ret.kind = CHANGE_GIT_CACHE;
		/* By its index a pack is found. */
		ret.order = str_ends(name, ".idx");
	}
	return ret;
}
