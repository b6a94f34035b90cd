/*
 * run_repository - what git has to do with the project, as the plan and the keeper are told.
 *
 * Runs as:  the operator.
 * Must not: show a folder that a bind of the same path would not be let to show.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "run/run_spec.h"

/* Has the operator put something there already? Then that is what git finds. */
static bool is_bound(const struct spec *s, const char *folder)
{
	const struct spec_value *binds = spec_list(s, SPEC_BINDS);

	for (size_t i = 0; i < binds->count; i++)
		if (str_path_within(folder, binds->items[i].bind.to))
			return true;
	return false;
}

/* What is not held would run on the host: better no run. */
static void repository_refuse(struct spec *s)
{
	struct diag_pos at = { .source = diags_add_source(&s->diags, ".git", NULL, 0) };

	diags_error(&s->diags, at, "look at the project's git configuration, and shorten it",
		"git's configuration names more than %d paths of the project that it has hooks, "
		"programs or settings from: they cannot all be protected",
		CHECK_MAX_HOOKS);
}

static void warn(struct spec *s, const char *hint, const char *why, const char *path)
{
	struct diag_pos at = { .source = diags_add_source(&s->diags, ".git", NULL, 0) };

	diags_warn(&s->diags, at, hint, "git will not work in the cage: %s%s%s", why,
		*path ? ": " : "", path);
}

/* Nothing of a folder that is not shown can be touched. */
static void repository_leave_out(struct check_repository *r)
{
	if (r->folder[0])
		r->other_count = 0;
	r->folder[0] = '\0';
}

static void repository_look(struct spec *s, struct run_place *place)
{
	const struct check_project project = {
		.path = place->project,
		.home = place->home,
		.at = spec_text(s, SPEC_PROJECT_AT),
		.is_at_own_path = spec_choice(s, SPEC_PROJECT_CAGE) == SPEC_CAGE_PROJECT,
		.own = &place->git_config,
	};

	check_repository(&project, &s->arena, &place->repository);
}

void run_choose_own_path(struct spec *s, struct run_place *place)
{
	static const enum spec_key keys[] = { SPEC_PROJECT_CAGE, SPEC_PROJECT_AT, SPEC_PROJECT_READ,
		SPEC_WORKDIR, SPEC_BINDS };
	char git[PATH_MAX + 8];
	struct stat st;

	snprintf(git, sizeof(git), "%s/.git", place->project);
	if (!(place->names & 1U << RUN_NAME_GIT_FILE) ||
		spec_choice(s, SPEC_PROJECT_GIT) == SPEC_GIT_NONE || lstat(git, &st) < 0 ||
		!S_ISREG(st.st_mode))
		return;
	/* Whoever says where something is has counted on the usual place. */
	for (size_t i = 0; i < COUNT_OF(keys); i++)
		if (spec_is_declared(s, keys[i]))
			return;
	repository_look(s, place);
	if (place->repository.wants_own_path)
		s->settled.v[SPEC_PROJECT_CAGE].choice = SPEC_CAGE_PROJECT;
}

void run_find_repository(struct spec *s, struct run_place *place)
{
	struct check_repository *r = &place->repository;
	const char *leak;

	repository_look(s, place);
	if (r->has_more)
		repository_refuse(s);
	leak = r->folder[0] ? run_leak_of(s, r->folder, place) : NULL;
	if (spec_choice(s, SPEC_PROJECT_GIT) == SPEC_GIT_NONE ||
		(r->named[0] && is_bound(s, r->named))) {
		repository_leave_out(r);
	} else if (r->why) {
		warn(s, r->hint, r->why, "");
	} else if (leak) {
		warn(s, "if it is meant: --preflight-allow PATH, or preflight_allow: [PATH]", leak,
			r->folder);
		repository_leave_out(r);
	}
}

void run_tell_host(const struct run_place *place, struct host *ret)
{
	const struct check_repository *r = &place->repository;

	ret->has_outer_git = r->folder[0];
	/* Two layers that are written to must not lie in each other. */
	ret->no_git_protect |= r->holds_project;
	ret->hooks = r->hooks;
	ret->hook_count = r->hook_count;
	ret->git_others = r->others;
	ret->git_other_count = r->other_count;
}

const char *const *run_held_paths(struct spec *s, const struct run_place *place, size_t *ret_count)
{
	const struct spec_value *more = spec_list(s, SPEC_PROJECT_PROTECT);
	const struct check_repository *r = &place->repository;
	const char **paths = arena_array(
		&s->arena, more->count + r->hook_count + r->other_count + 1, sizeof(const char *));
	size_t n = 0;

	*ret_count = 0;
	for (size_t i = 0; paths && i < more->count; i++)
		paths[n++] = more->items[i].text;
	for (size_t i = 0; paths && i < r->hook_count; i++)
		paths[n++] = r->hooks[i];
	for (size_t i = 0; paths && i < r->other_count; i++)
		paths[n++] = r->others[i];
	*ret_count = n;
	return paths;
}
