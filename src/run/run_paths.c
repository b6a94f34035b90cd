/*
 * run_paths - what the paths of a spec really lead to on this machine.
 *
 * Runs as:  the operator.
 * Reads:    names of files, through links; no file's content.
 * Must not: let a link say what the spec itself could not.
 *
 * The spec's own checks see spellings. A link in a cloned project can make a harmless spelling
 * lead to the operator's keys, so everything is looked at once more by what it leads to.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "run/run_spec.h"
#include "spec/spec_grammar.h"

int run_resolve(const char *path, const char *home, const char *base, char ret[static PATH_MAX])
{
	char whole[PATH_MAX], real[PATH_MAX];
	int n;

	if (path[0] == '~' && !home)
		return -ENOENT;
	if (path[0] == '~')
		n = snprintf(whole, sizeof(whole), "%s%s", home, path + 1);
	else if (path[0] == '/')
		n = snprintf(whole, sizeof(whole), "%s", path);
	else
		n = snprintf(whole, sizeof(whole), "%s/%s", base, path);
	if (n < 0 || (size_t)n >= sizeof(whole))
		return -ENAMETOOLONG;
	if (!realpath(whole, real))
		return -errno;
	memcpy(ret, real, strlen(real) + 1);
	return 0;
}

int run_find_home(struct spec *s, struct run_place *place, const char *here)
{
	char real[PATH_MAX];
	const char *home = place->home;

	/* What lies on the way to a real path has no link in it. */
	if (home && !str_path_within(here, home))
		home = realpath(home, real);
	place->real_home = home ? arena_copy(&s->arena, home, strlen(home)) : NULL;
	return home && !place->real_home ? -ENOMEM : 0;
}

/* A source as the plan writes it, as one absolute path; false where there is none. */
static bool paths_expand(
	const char *source, const struct run_place *place, char ret[static PATH_MAX])
{
	const char *rest;
	enum plan_root root = plan_root_of(source, &rest);
	const char *head = root == PLAN_ROOT_PROJECT ? place->project
			   : root == PLAN_ROOT_HOME  ? place->home
						     : "";
	int n = head ? snprintf(ret, PATH_MAX, "%s%s", head, rest) : -1;

	return n >= 0 && n < PATH_MAX;
}

/*
 * Does a path go into the project and come out of it again? However it is spelt: a link in the
 * project may be anybody's. One that climbs out says so itself.
 */
static bool leads_out(
	const char *source, const char *path, const char *real, const struct run_place *place)
{
	char part[PATH_MAX], real_part[PATH_MAX];

	/* A path that leads to itself has no link in it. */
	if (str_path_within(real, place->project) || str_eq(path, real) ||
		(plan_path_in_project(source) && spec_climbs(source)))
		return false;
	for (const char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
		size_t n = slash ? (size_t)(slash - path) : strlen(path);

		if (n >= sizeof(part))
			return true;
		memcpy(part, path, n);
		part[n] = '\0';
		if (realpath(part, real_part) && str_path_within(real_part, place->project))
			return true;
		if (!slash)
			return false;
	}
}

int run_resolve_source(const char *source, const struct run_place *place, char ret[static PATH_MAX])
{
	char path[PATH_MAX], real[PATH_MAX];

	if (!paths_expand(source, place, path))
		return -ENAMETOOLONG;
	if (!realpath(path, real))
		return -errno;
	if (leads_out(source, path, real, place))
		return -EXDEV;
	memcpy(ret, real, strlen(real) + 1);
	return 0;
}

/* The real path of a source as the plan writes it; false where it does not exist. */
static bool paths_resolve(
	const char *source, const struct run_place *place, char ret[static PATH_MAX])
{
	char path[PATH_MAX];

	if (!paths_expand(source, place, path))
		return false;
	if (!str_eq(path, place->project))
		return realpath(path, ret);
	memcpy(ret, path, strlen(path) + 1); /* resolved when the spec was read */
	return true;
}

static bool paths_is_acknowledged(const struct spec *s, const char *source, const char *real)
{
	const struct spec_value *allowed = spec_list(s, SPEC_PREFLIGHT_ALLOW);

	for (size_t i = 0; i < allowed->count; i++)
		if (str_eq(allowed->items[i].text, source) || str_eq(allowed->items[i].text, real))
			return true;
	return false;
}

static const char *leak_of_real(struct spec *s, const char *real, const struct run_place *place)
{
	const char *form = real, *leak, *home = place->real_home;

	if (home && str_path_within(real, home))
		form = arena_printf(&s->arena, "~%s", real + strlen(home));
	leak = form ? plan_leak_of(s, form) : "cannot be checked";
	if (!leak && home && str_path_within(home, real))
		leak = "holds your home";
	return leak;
}

const char *run_leak_of(struct spec *s, const char *real, const struct run_place *place)
{
	const char *leak = leak_of_real(s, real, place);

	return leak && !paths_is_acknowledged(s, real, real) ? leak : NULL;
}

/* What is wrong with showing what a source leads to and nobody acknowledged, or NULL. */
static const char *leak_at(
	struct spec *s, const char *source, const char *real, const struct run_place *place)
{
	const char *leak = leak_of_real(s, real, place);

	return leak && !plan_leak_of(s, source) && !paths_is_acknowledged(s, source, real) ? leak
											   : NULL;
}

/*
 * The operator's own state is for no cage, whatever is acknowledged. Where something else is wrong
 * with the source by its letters, which says the same everywhere, that is left to be said.
 */
static bool paths_check_state(struct spec *s, enum spec_key key, const char *source,
	const char *real, struct diag_pos at, const struct run_place *place)
{
	const char *wrong = run_state_of(s, real, place);

	if (!wrong || (plan_leak_of(s, source) && !paths_is_acknowledged(s, source, real)))
		return true;
	diags_error(&s->diags, at,
		"show what is needed beside it; XDG_STATE_HOME can move the state", "%s: %s %s",
		spec_keys[key].path, source, wrong);
	return false;
}

/* Is what a source leads to something the spec would not be let to name? */
static void paths_check_source(struct spec *s, enum spec_key key, const char *source,
	struct diag_pos at, const struct run_place *place)
{
	char path[PATH_MAX], real[PATH_MAX];
	const char *leak;

	if (!paths_resolve(source, place, real))
		return;
	if (paths_expand(source, place, path) && leads_out(source, path, real, place)) {
		diags_error(&s->diags, at, "write where it leads to, if that is meant",
			"%s: %s leads out of the project, to %s", spec_keys[key].path, source,
			real);
		return;
	}
	if (!paths_check_state(s, key, str_eq(source, "$PROJECT") ? real : source, real, at, place))
		return;
	leak = leak_at(s, source, real, place);
	if (leak)
		diags_error(&s->diags, at,
			arena_printf(&s->arena,
				"if it is meant: --preflight-allow %s, or preflight_allow: [%s]",
				source, source),
			"%s: %s leads to %s, which %s", spec_keys[key].path, source, real, leak);
}

int run_approve_source(struct spec *s, const struct run_place *place, enum plan_root root,
	const char *rest, const char *real, struct err *e)
{
	char path[PATH_MAX], text[PLAN_TEXT_SIZE];
	const char *source = plan_root_text(root, rest, text);
	const char *leak = run_state_of(s, real, place);

	if (leak)
		return err_set(e, ERR_REFUSED, EPERM, "cannot show %s: %s %s", source, real, leak);
	if (root == PLAN_ROOT_GIT)
		leak = str_eq(real, place->repository.folder) ? run_leak_of(s, real, place)
							      : "is not the project's";
	else if (!paths_expand(source, place, path) || leads_out(source, path, real, place))
		leak = "is out of the project";
	/* The project itself was judged when it was resolved, and is opened as that. */
	else if (root != PLAN_ROOT_PROJECT || *rest)
		leak = leak_at(s, source, real, place);
	if (leak)
		return err_set(e, ERR_REFUSED, EPERM, "cannot show %s: it leads to %s, which %s",
			source, real, leak);
	return 0;
}

/* The home itself, or what holds it, is no project: every key and token would be in the cage. */
static void check_home(struct spec *s, const struct run_place *place)
{
	if (paths_is_acknowledged(s, "~", place->project)) {
		paths_check_state(s, SPEC_PROJECT_PATH, place->project, place->project,
			spec_where(s, SPEC_PROJECT_PATH), place);
		return;
	}
	diags_error(&s->diags, spec_where(s, SPEC_PROJECT_PATH),
		"start bawn in the project's own directory; if it is meant: --preflight-allow '~', or preflight_allow: [\"~\"]",
		"project.path: %s would show your home with its credentials", place->project);
}

/* A project's own file may choose a folder of the project, and not a link out of it. */
static void check_project(struct spec *s, const char *here, const struct run_place *place)
{
	struct diag_pos at = spec_where(s, SPEC_PROJECT_PATH);
	char real[PATH_MAX];

	if (s->set_by[SPEC_PROJECT_PATH] == SPEC_LAYER_FILE && !s->is_file_trusted &&
		(!realpath(here, real) || !str_path_within(place->project, real)))
		diags_error(&s->diags, at, NULL, "project.path: %s leads out of the project, to %s",
			spec_text(s, SPEC_PROJECT_PATH), place->project);
	else if (place->real_home && str_path_within(place->real_home, place->project))
		check_home(s, place);
	else
		paths_check_source(s, SPEC_PROJECT_PATH, "$PROJECT", at, place);
}

void run_check_paths(struct spec *s, const char *here, const struct run_place *place)
{
	const struct spec_value *binds = spec_list(s, SPEC_BINDS);
	const char *image = strchr(spec_text(s, SPEC_ROOT_IMAGE), ':');

	check_project(s, here, place);
	if (image)
		paths_check_source(
			s, SPEC_ROOT_IMAGE, image + 1, spec_where(s, SPEC_ROOT_IMAGE), place);
	for (size_t i = 0; i < binds->count && !diags_are_full(&s->diags); i++)
		paths_check_source(
			s, SPEC_BINDS, binds->items[i].bind.from, binds->items[i].at, place);
}
