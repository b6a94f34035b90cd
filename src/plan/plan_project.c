/*
 * The project in a plan: where it is, how its writes are kept, which parts of it are seen and
 * written, what of it is protected, and what a session brings.
 *
 * In the common case the workspace of a session is all that differs between the cages of two
 * sessions with the same spec. Then it comes last (plan_awaits_session), so that a cage can be made
 * ready before its session is known.
 */
#include "plan/plan_builder.h"

#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"

/* --- protected paths --- */

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

/* Protected paths in git's folder outside of the project; they begin with ".git/". */
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

/* True if anything is protected and can be held: in a writable project, by an engine that can. */
static bool holds_protected(const struct plan_builder *b)
{
	return spec_choice(b->spec, SPEC_PROJECT_MODE) == SPEC_MODE_WRITABLE &&
	       path_at(b->spec, b->host, 0) &&
	       plan_engine_gives(b->engine, PLAN_FS_PROTECT, b->host).can;
}

/* True if something protected is where the project may be written. */
static bool can_reach_protected(const struct plan_builder *b)
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

static const char *protected_path_at(const struct plan_builder *b, enum plan_root tree, size_t i)
{
	const char *path;

	if (tree == PLAN_ROOT_PROJECT)
		return path_at(b->spec, b->host, i);
	path = git_path_at(b->host, i);
	return path ? path + strlen(".git/") : NULL;
}

/* Adds what is protected in the project, or in its git; sorted: a folder before what is in it. */
static void add_protected(struct plan_builder *b, enum plan_root tree)
{
	own_free const char **paths = NULL;
	size_t n = 0;

	while (protected_path_at(b, tree, n))
		n++;
	paths = calloc(n + 1, sizeof(const char *));
	if (!paths) {
		b->ops.failed = true;
		return;
	}
	for (size_t i = 0; i < n; i++)
		paths[i] = protected_path_at(b, tree, i);
	qsort(paths, n, sizeof(const char *), build_protect_compare_paths);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || !str_eq(paths[i], paths[i - 1]))
			plan_add(b, PLAN_PROTECT, "", paths[i],
				PLAN_OP(.a_root = (uint8_t)tree, .flags = PLAN_READ_ONLY));
}

/* --- the whole project, or parts of it --- */

const char *plan_project_place(const struct spec *s, enum spec_engine engine)
{
	bool has_own_tree = engine != SPEC_ENGINE_LANDLOCK && engine != SPEC_ENGINE_LOGICAL;

	if (!has_own_tree || spec_choice(s, SPEC_PROJECT_CAGE) == SPEC_CAGE_PROJECT)
		return plan_roots[PLAN_ROOT_PROJECT].name;
	return spec_text(s, SPEC_PROJECT_AT);
}

bool plan_has_whole_project(const struct spec *s, enum spec_key key)
{
	const struct spec_value *patterns = spec_list(s, key);

	for (size_t i = 0; i < patterns->count; i++) {
		const char *path = plan_path_in_project(patterns->items[i].text);

		if (path && str_eq(path, "**"))
			return true;
	}
	return false;
}

enum host_capture plan_capture(const struct spec *s, const struct host *h)
{
	bool has_quota = spec_is_declared(s, SPEC_LIMITS_DISK);
	unsigned no_capture = h->no_capture | (h->in_session ? HOST_CAPTURE_IN_POOL : 0U);
	enum host_capture first = has_quota ? HOST_CAPTURE_IN_POOL : HOST_CAPTURE_ON_DISK;
	enum host_capture second = has_quota ? HOST_CAPTURE_ON_DISK : HOST_CAPTURE_IN_POOL;

	if (!host_can(h, HOST_OVERLAY) || (no_capture & first && no_capture & second))
		return HOST_CAPTURE_BY_COPY;
	return no_capture & first ? second : first;
}

static uint16_t capture_flags(const struct plan_builder *b)
{
	switch (plan_capture(b->spec, b->host)) {
	case HOST_CAPTURE_BY_COPY:
		return PLAN_CAPTURED | PLAN_COPIED;
	case HOST_CAPTURE_IN_POOL:
		return PLAN_CAPTURED | PLAN_IN_POOL;
	case HOST_CAPTURE_ON_DISK:
		break;
	}
	return b->host->in_session ? PLAN_CAPTURED | PLAN_SHARED : PLAN_CAPTURED;
}

static uint16_t project_flags(const struct plan_builder *b)
{
	unsigned mode = spec_choice(b->spec, SPEC_PROJECT_MODE);
	uint16_t flags = PLAN_NO_DEV;

	if (mode == SPEC_MODE_READ_ONLY || !plan_has_whole_project(b->spec, SPEC_PROJECT_WRITE))
		flags |= PLAN_READ_ONLY;
	if (!plan_has_whole_project(b->spec, SPEC_PROJECT_READ))
		flags |= PLAN_PARTS;
	if (mode == SPEC_MODE_CAPTURED)
		flags |= capture_flags(b);
	if (mode == SPEC_MODE_READ_ONLY && host_can(b->host, HOST_OVERLAY))
		flags |= PLAN_VIEW;
	if (holds_protected(b) && can_reach_protected(b))
		flags |= PLAN_PROTECTS;
	if (b->host->is_root)
		flags |= PLAN_IDMAPPED;
	return flags;
}

/* A part of the host that the operator declared for reading. */
uint16_t plan_read_only_flags(const struct plan_builder *b)
{
	uint16_t flags = PLAN_READ_ONLY | PLAN_NO_DEV;

	if (b->host->is_root)
		flags |= PLAN_IDMAPPED;
	return host_can(b->host, HOST_OVERLAY) ? flags | PLAN_VIEW : flags;
}

const char *plan_pattern_base(struct spec *s, const char *pattern)
{
	size_t n = strlen(pattern);

	if (!str_ends(pattern, "/**"))
		return pattern;
	return n == 3 ? "/" : arena_copy(&s->arena, pattern, n - 3);
}

/* True if a readable path is writable too. Sets *ret_is_said if the other list names it. */
static bool is_writable_part(
	const struct spec *s, const struct spec_item *readable, bool *ret_is_said)
{
	const struct spec_value *patterns = spec_list(s, SPEC_PROJECT_WRITE);
	bool is_writable = false;

	*ret_is_said = false;
	for (size_t i = 0; i < patterns->count; i++) {
		is_writable |= spec_covers(SPEC_PROJECT_WRITE, &patterns->items[i], readable);
		*ret_is_said |= str_eq(patterns->items[i].text, readable->text);
	}
	return is_writable;
}

/* True if a part is protected: in a writable project it is read-only then. */
static bool is_protected_part(const struct plan_builder *b, const char *base)
{
	const char *path = plan_path_in_project(base);

	return spec_choice(b->spec, SPEC_PROJECT_MODE) == SPEC_MODE_WRITABLE && path && *path &&
	       plan_is_in_protected(b->spec, b->host, path);
}

static bool build_files_is_project(const char *base)
{
	const char *path = plan_path_in_project(base);

	return path && !*path;
}

void plan_walk_parts(struct plan_builder *b, enum spec_key key, bool is_writable, plan_part *emit,
	const char *place)
{
	size_t n = 0;
	own_free const struct spec_item **patterns = spec_ordered(key, spec_list(b->spec, key), &n);

	if (!patterns)
		b->ops.failed = true;
	for (size_t i = 0; patterns && i < n; i++) {
		const char *base = plan_pattern_base(b->spec, patterns[i]->text);
		bool is_said = false;
		bool can_write = is_writable;

		if (key == SPEC_PROJECT_READ)
			can_write &= is_writable_part(b->spec, patterns[i], &is_said);
		if (base && is_protected_part(b, base))
			can_write = false;
		if (!base)
			b->ops.failed = true;
		else if (!build_files_is_project(base) && !(can_write && is_said))
			emit(b, base, can_write ? 0 : PLAN_READ_ONLY, place);
	}
}

/*
 * In a writable project, is a part inside another that can be written? Then it has no mount of its
 * own: what is protected there is held by mounts that no others may be in the way of.
 */
static bool is_shown_anyway(const struct spec *s, const char *base)
{
	const struct spec_value *patterns = spec_list(s, SPEC_PROJECT_WRITE);
	bool is_whole = plan_has_whole_project(s, SPEC_PROJECT_READ);

	if (spec_choice(s, SPEC_PROJECT_MODE) != SPEC_MODE_WRITABLE)
		return false;
	for (size_t i = 0; i < patterns->count; i++) {
		const char *text = patterns->items[i].text;
		size_t n = strlen(text) - (str_ends(text, "/**") ? 3 : 0);
		bool is_all = n == strlen(plan_roots[PLAN_ROOT_PROJECT].name);

		if (strncmp(base, text, n) == 0 && base[n] == '/' && (is_whole || !is_all))
			return true;
	}
	return false;
}

/*
 * Patterns below the project become parts with rights of their own; patterns elsewhere, which
 * only cage: project has, become read-only binds at the same place.
 */
static void build_files_add_part(
	struct plan_builder *b, const char *base, uint16_t flags, const char *place)
{
	const char *path = plan_path_in_project(base);

	(void)place;
	if (is_shown_anyway(b->spec, base))
		return;
	if (path)
		plan_add(b, PLAN_PART, "", path, PLAN_OP(.flags = flags));
	else
		plan_add(b, PLAN_BIND, base, base, PLAN_OP(.flags = plan_read_only_flags(b)));
}

/*
 * The folder of its git, where that is outside, with the rights of the whole project: where only
 * parts of it may be read, their history is none of them. First, because the project may be in it.
 * Where nothing would hold its hooks, it is for reading.
 */
static void add_git(struct plan_builder *b)
{
	bool is_writable = spec_choice(b->spec, SPEC_PROJECT_MODE) == SPEC_MODE_WRITABLE;
	uint16_t flags = project_flags(b);

	if (!b->host->has_outer_git || spec_choice(b->spec, SPEC_PROJECT_GIT) != SPEC_GIT_AUTO ||
		!plan_has_whole_project(b->spec, SPEC_PROJECT_READ))
		return;
	if (is_writable &&
		(b->host->no_git_protect || flags & PLAN_READ_ONLY || !(flags & PLAN_PROTECTS)))
		flags = plan_read_only_flags(b);
	plan_add(b, PLAN_GIT, "", "",
		PLAN_OP(.a_root = PLAN_ROOT_GIT, .b_root = PLAN_ROOT_GIT, .flags = flags));
	if (flags & PLAN_PROTECTS)
		add_protected(b, PLAN_ROOT_GIT);
}

/* --- the workspace of a session --- */

/* The folders that a session keeps, and their paths in the cage. */
static const struct {
	enum plan_root from;
	const char *to;
} session_folders[] = { { PLAN_ROOT_SESSION_HOME, "/home/agent" },
	{ PLAN_ROOT_SESSION_TMP, "/tmp" } };

#define KEPT COUNT_OF(session_folders)

/* True if a place is in a folder that a session keeps. */
static bool build_session_is_kept(const char *place)
{
	for (size_t i = 0; i < KEPT; i++)
		if (str_path_within(place, session_folders[i].to))
			return true;
	return false;
}

/* True if something is mounted into a session's folders or bound from the project, and so after
 * them. */
static bool has_more_inside(const struct spec *s, const char *project)
{
	static const enum spec_key files[] = { SPEC_FILES, SPEC_INITIAL_FILES };
	const struct spec_value *binds = spec_list(s, SPEC_BINDS);

	for (size_t i = 0; i < binds->count; i++) {
		const struct spec_bind *bind = &binds->items[i].bind;

		if (str_path_within(bind->to, project) || plan_path_in_project(bind->from) ||
			build_session_is_kept(bind->to))
			return true;
	}
	for (size_t i = 0; i < 2; i++)
		for (size_t j = 0; j < spec_list(s, files[i])->count; j++)
			if (build_session_is_kept(spec_list(s, files[i])->items[j].var.name))
				return true;
	return false;
}

bool plan_awaits_session(const struct plan_builder *b)
{
	const char *place = plan_project_place(b->spec, b->engine);

	return b->host->in_session && b->engine == SPEC_ENGINE_NATIVE &&
	       !plan_path_in_project(place) && !b->host->has_outer_git &&
	       spec_choice(b->spec, SPEC_PROJECT_MODE) == SPEC_MODE_CAPTURED &&
	       plan_capture(b->spec, b->host) == HOST_CAPTURE_ON_DISK &&
	       plan_has_whole_project(b->spec, SPEC_PROJECT_READ) &&
	       plan_has_whole_project(b->spec, SPEC_PROJECT_WRITE) &&
	       spec_list(b->spec, SPEC_PROJECT_READ)->count == 1 &&
	       spec_list(b->spec, SPEC_PROJECT_WRITE)->count == 1 &&
	       str_eq(spec_text(b->spec, SPEC_ROOT_OVERLAY), "ephemeral") &&
	       !has_more_inside(b->spec, place);
}

/* Adds the folders that a session keeps from one run to the next. */
static void add_session_folders(struct plan_builder *b)
{
	uint16_t flags = PLAN_NO_DEV | (b->host->is_root ? PLAN_IDMAPPED : 0);

	for (size_t i = 0; b->host->in_session && i < KEPT; i++)
		plan_add(b, PLAN_BIND, "", session_folders[i].to,
			PLAN_OP(.a_root = (uint8_t)session_folders[i].from, .flags = flags));
}

void plan_add_project(struct plan_builder *b)
{
	bool is_writable = spec_choice(b->spec, SPEC_PROJECT_MODE) != SPEC_MODE_READ_ONLY;

	add_session_folders(b);
	add_git(b);
	plan_add(b, PLAN_PROJECT, "", plan_project_place(b->spec, b->engine),
		PLAN_OP(.a_root = PLAN_ROOT_PROJECT, .flags = project_flags(b)));
	plan_walk_parts(b, SPEC_PROJECT_READ, is_writable, build_files_add_part, NULL);
	if (is_writable)
		plan_walk_parts(b, SPEC_PROJECT_WRITE, true, build_files_add_part, NULL);
	if (holds_protected(b))
		add_protected(b, PLAN_ROOT_PROJECT);
}
