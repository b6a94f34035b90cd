#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "plan/plan_builder.h"

/*
 * What stays as it is in a writable project: things that run on the host later, whoever wrote
 * them. What they are is here; how they are held is for the cage.
 */
static const char *const protected_paths[] = { ".bash_profile", ".bashrc", ".claude", ".codex",
	".envrc", ".gemini", ".git/commondir", ".git/config", ".git/config.worktree", ".git/hooks",
	".git/info/attributes", ".gitmodules", ".idea", ".mcp.json", ".opencode", ".profile",
	".vscode", ".zshrc", "bawn.yaml" };

#define BUILT_IN COUNT_OF(protected_paths)

/*
 * All of them: what is built in, what the spec adds, where git takes hooks from, other worktrees of
 * a repository that is in the project. NULL: no more. A project that governs itself has its own
 * hooks and settings, and not what is others'.
 */
static const char *path_at(const struct spec *s, const struct host *h, size_t i)
{
	const struct spec_value *more = spec_list(s, SPEC_PROJECT_PROTECT);
	size_t built_in = s->is_self_governed ? 0 : BUILT_IN;
	size_t hooks = h && !s->is_self_governed ? h->hook_count : 0;

	if (i < built_in)
		return protected_paths[i];
	i -= built_in;
	if (i < more->count)
		return more->items[i].text;
	i -= more->count;
	if (!h)
		return NULL;
	if (i < hooks)
		return h->hooks[i];
	i -= hooks;
	return !h->has_outer_git && i < h->git_other_count ? h->git_others[i] : NULL;
}

/* The same for git's folder outside the project, as paths that begin with ".git/". */
static const char *git_path_at(const struct host *h, size_t i)
{
	for (size_t k = 0; k < BUILT_IN; k++)
		if (str_starts(protected_paths[k], ".git/") && i-- == 0)
			return protected_paths[k];
	return i < h->git_other_count ? h->git_others[i] : NULL;
}

bool plan_is_protected(const struct spec *s, const struct host *h, const char *path)
{
	const char *protected;

	if (!*path)
		return true;
	for (size_t i = 0; (protected = path_at(s, h, i)); i++)
		if (str_path_within(path, protected) || str_path_within(protected, path))
			return true;
	return false;
}

bool plan_is_in_protected(const struct spec *s, const struct host *h, const char *path)
{
	const char *protected;

	for (size_t i = 0; (protected = path_at(s, h, i)); i++)
		if (str_path_within(path, protected))
			return true;
	return false;
}

bool plan_holds_protected(const struct plan_builder *b)
{
	return spec_choice(b->spec, SPEC_PROJECT_MODE) == SPEC_MODE_WRITABLE &&
	       path_at(b->spec, b->host, 0) &&
	       plan_engine_gives(b->engine, PLAN_FS_PROTECT, b->host).can;
}

bool plan_can_reach_protected(const struct plan_builder *b)
{
	const struct spec_value *patterns = spec_list(b->spec, SPEC_PROJECT_WRITE);

	for (size_t i = 0; i < patterns->count; i++) {
		const char *base = plan_pattern_base(b->spec, patterns->items[i].text);
		const char *path = base ? plan_path_in_project(base) : "";

		/* "" is all of it. */
		if (path && plan_is_protected(b->spec, b->host, path))
			return true;
	}
	return false;
}

static int build_protect_compare_paths(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *any_path_at(const struct plan_builder *b, enum plan_root tree, size_t i)
{
	const char *path;

	if (tree == PLAN_ROOT_PROJECT)
		return path_at(b->spec, b->host, i);
	path = git_path_at(b->host, i);
	return path ? path + strlen(".git/") : NULL;
}

void plan_add_protected(struct plan_builder *b, enum plan_root tree)
{
	own_free const char **paths = NULL;
	size_t n = 0;

	while (any_path_at(b, tree, n))
		n++;
	paths = calloc(n + 1, sizeof(const char *));
	if (!paths) {
		b->ops.failed = true;
		return;
	}
	for (size_t i = 0; i < n; i++)
		paths[i] = any_path_at(b, tree, i);
	qsort(paths, n, sizeof(const char *), build_protect_compare_paths);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || !str_eq(paths[i], paths[i - 1]))
			plan_add(b, PLAN_PROTECT, "", paths[i],
				PLAN_OP(.a_root = (uint8_t)tree, .flags = PLAN_READ_ONLY));
}
