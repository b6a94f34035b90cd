#include <string.h>

#include "agent/profile/agent_inside.h"
#include "base/count.h"
#include "base/str.h"

/*
 * What a file that is the project's word cannot say once the operator has named an agent: the
 * settings that agree with the wall, the variables that name them and the key are the profile's,
 * and whoever wrote the project wrote none of them. What agents read beside their settings is in
 * the same folders. It is no wall inside of the cage: what a project starts there, by
 * startup_commands or when the agent runs its tests, may write what the agent may.
 */

bool agent_is_projects(const struct spec *s, enum spec_key key)
{
	return s->set_by[key] == SPEC_LAYER_FILE && !s->is_file_trusted && !s->is_narrowing;
}

bool agent_is_projects_item(const struct spec *s, enum spec_key key, const struct spec_item *item)
{
	const struct spec_value *said = &s->layers[SPEC_LAYER_FILE].v[key];

	return !s->is_file_trusted && !s->is_narrowing && said->is_set &&
	       item->at.source == said->at.source;
}

/* The part of a file's path that is the agent's: its folder, unless that is everybody's. */
static size_t own_part(const char *path)
{
	static const char *const shared[] = { "/etc", "/home/agent", "/opt", "/run" };
	size_t n = (size_t)(strrchr(path, '/') - path);

	for (size_t i = 0; i < COUNT_OF(shared); i++)
		if (strlen(shared[i]) == n && memcmp(path, shared[i], n) == 0)
			return strlen(path);
	return n;
}

/* Is one of the two in the other? `n` bytes of the second count. */
static bool meets(const char *path, const char *place, size_t n)
{
	size_t shorter = strlen(path) < n ? strlen(path) : n;

	return strncmp(path, place, shorter) == 0 && (path[shorter] == '/' || !path[shorter]) &&
	       (shorter == n || place[shorter] == '/');
}

/* Is a path the agent's own, in what is, or above it? */
static bool is_place(const struct agent_profile *p, const char *path)
{
	static const enum spec_key keys[] = { SPEC_FILES, SPEC_INITIAL_FILES };
	const struct spec_value *state = &p->values.v[SPEC_STATE];

	for (size_t k = 0; k < COUNT_OF(keys); k++) {
		for (size_t i = 0; i < p->values.v[keys[k]].count; i++) {
			const char *file = p->values.v[keys[k]].items[i].var.name;

			if (meets(path, file, own_part(file)))
				return true;
		}
	}
	for (size_t i = 0; i < state->count; i++)
		if (meets(path, state->items[i].text, strlen(state->items[i].text)))
			return true;
	return meets(path, AGENT_PLACE, strlen(AGENT_PLACE)) ||
	       (p->prompts && meets(path, p->prompts, own_part(p->prompts)));
}

static bool project_is_variable(const struct agent_profile *p, const char *name)
{
	const struct spec_value *set = &p->values.v[SPEC_ENV_SET];

	for (size_t i = 0; i < set->count; i++)
		if (str_eq(set->items[i].var.name, name))
			return true;
	for (size_t i = 0; i < p->key_count; i++)
		if (str_eq(p->keys[i].variable, name) ||
			(p->keys[i].base_url && str_eq(p->keys[i].base_url, name)))
			return true;
	return (p->program || p->takes_any) && str_eq(name, "PATH");
}

#define AGENTS_HINT "remove it, or run with --trust if the file is yours"

static const struct diag_list agents_list = {
	"this file says what only the agent's profile may say", AGENTS_HINT
};

static void say_agents(struct spec *s, const struct agent_profile *p, enum spec_key key,
	const char *what, struct diag_pos at)
{
	struct diag *said = diags_error(&s->diags, at, AGENTS_HINT,
		"%s: '%s' is for the profile '%s' to say, not for the project", spec_keys[key].path,
		what, p->name);

	if (!said)
		return;
	said->brief = arena_printf(&s->arena, "%s: '%s'", spec_keys[key].path, what);
	said->list = said->brief ? &agents_list : NULL;
}

/* What counts of one key, and was said by the project. */
static void project_check(struct spec *s, const struct agent_profile *p, enum spec_key key,
	bool (*is_agents)(const struct agent_profile *p, const char *name))
{
	const struct spec_value *v = spec_list(s, key);

	for (size_t i = 0; i < v->count; i++) {
		const struct spec_item *item = &v->items[i];
		const char *name = key == SPEC_BINDS ? item->bind.to : item->var.name;

		if (agent_is_projects_item(s, key, item) && is_agents(p, name))
			say_agents(s, p, key, name, item->at);
	}
}

void agent_check_project(struct spec *s, const struct agent_profile *p)
{
	const char *place = spec_text(s, SPEC_PROJECT_AT);

	project_check(s, p, SPEC_FILES, is_place);
	project_check(s, p, SPEC_INITIAL_FILES, is_place);
	project_check(s, p, SPEC_BINDS, is_place);
	project_check(s, p, SPEC_ENV_SET, project_is_variable);
	if (agent_is_projects(s, SPEC_PROJECT_AT) && is_place(p, place))
		say_agents(s, p, SPEC_PROJECT_AT, place, spec_where(s, SPEC_PROJECT_AT));
	/* Without them there are no hooks. */
	if (agent_is_projects(s, SPEC_TOOLS) && p->values.v[SPEC_TOOLS].yes &&
		!spec_bool(s, SPEC_TOOLS))
		say_agents(s, p, SPEC_TOOLS, "false", spec_where(s, SPEC_TOOLS));
}
