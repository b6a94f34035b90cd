#include "base/count.h"
#include "base/str.h"
#include "plan/plan_builder.h"

/*
 * What a run of a session has from it: the workspace, which outlives the run. In the common case it
 * is all that tells a cage of one session from that of another with the same spec, and comes last:
 * all else can be ready before anybody knows which session it will be for.
 */

/* Where it is in the cage, but for the project. */
static const struct {
	enum plan_root from;
	const char *to;
} kept[] = { { PLAN_ROOT_SESSION_HOME, "/home/agent" }, { PLAN_ROOT_SESSION_TMP, "/tmp" } };

#define KEPT COUNT_OF(kept)

/* Is a place in what comes later? */
static bool build_session_is_kept(const char *place)
{
	for (size_t i = 0; i < KEPT; i++)
		if (str_path_within(place, kept[i].to))
			return true;
	return false;
}

/* Is anything put into what comes later, or bound from the project? Then it has to wait for it. */
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

void plan_add_session(struct plan_builder *b)
{
	uint16_t flags = PLAN_NO_DEV | (b->host->is_root ? PLAN_IDMAPPED : 0);

	for (size_t i = 0; b->host->in_session && i < KEPT; i++)
		plan_add(b, PLAN_BIND, "", kept[i].to,
			PLAN_OP(.a_root = (uint8_t)kept[i].from, .flags = flags));
}
