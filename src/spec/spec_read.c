#include "spec/spec_read.h"

#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "spec/spec_value.h"

/* Is there a key "name.…" in the schema? */
static bool is_section(const char *name)
{
	char section[32];

	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++)
		if (spec_key_section(k, section, sizeof(section)) && str_eq(section, name))
			return true;
	return false;
}

/* A key of that name in another place: exactly, or but for a slip. */
static const char *hint_elsewhere(
	struct spec *s, const char *section, const char *name, unsigned slips)
{
	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++)
		if (str_distance(name, spec_key_leaf(k)) <= slips &&
			spec_keys[k].tighten != SPEC_OPERATOR_ONLY &&
			(*section || strchr(spec_keys[k].path, '.')))
			return arena_printf(&s->arena, "did you mean '%s'?", spec_keys[k].path);
	return NULL;
}

static const char *hint_sibling(struct spec *s, const char *section, const char *name)
{
	const char *siblings[SPEC_KEY_COUNT];
	char sections[SPEC_KEY_COUNT][32];
	size_t n = 0;
	const char *near;

	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++) {
		bool is_nested = spec_key_section(k, sections[k], sizeof(sections[k]));

		if (spec_keys[k].tighten == SPEC_OPERATOR_ONLY)
			continue;
		if (*section ? is_nested && str_eq(sections[k], section) : !is_nested)
			siblings[n++] = spec_key_leaf(k);
		else if (!*section)
			siblings[n++] = sections[k];
	}
	near = str_nearest(name, siblings, n);
	return near ? arena_printf(&s->arena, "did you mean '%s'?", near) : NULL;
}

static bool is_policy_key(const char *name)
{
	enum spec_key key = spec_key_find(name);

	return (key < SPEC_KEY_COUNT && spec_keys[key].tighten == SPEC_OPERATOR_ONLY) ||
	       str_eq(name, "defaults") || str_eq(name, "project_may");
}

/* What people know from compose files and the like, and what it is here. */
static const char *hint_habit(const char *name)
{
	static const char *const habits[][2] = {
		{ "volumes", "write binds: [SOURCE:TARGET[:ro|:rw]]" },
		{ "mounts", "write binds: [SOURCE:TARGET[:ro|:rw]]" },
		{ "ports", "write network: { publish: [\"PORT:PORT\"] }" },
		{ "expose", "write network: { publish: [\"PORT:PORT\"] }" },
		{ "timeout", "write limits: { time: 30m }" },
		{ "image", "write root: { image: host }, or dir:PATH" },
		{ "environment", "write env: { set: { NAME: value } }" },
		{ "entrypoint", "write command: [program, argument]" },
		{ "cmd", "write command: [program, argument]" },
		{ "working_dir", "write workdir: DIR" },
		{ "mem_limit", "write limits: { memory: 2G }" },
		{ "pids_limit", "write limits: { pids: 256 }" },
		{ "cpus", "write limits: { cpu: 1.5 }" },
		{ "network_mode", "write network: { mode: none }" },
		{ "services", "a spec is of one cage: write its keys at the top" },
		{ "user", "the command has a user of its own; fakeroot: true makes it uid 0" },
		{ "privileged", "no cage has privileges" },
	};

	for (size_t i = 0; i < COUNT_OF(habits); i++)
		if (str_eq(name, habits[i][0]))
			return habits[i][1];
	return NULL;
}

/* What may have been meant by a key that is not there. */
static const char *hint_key(
	struct spec *s, const char *prefix, const char *section, const char *name, bool is_map)
{
	const char *point = strchr(name, '.');
	const char *hint = *section ? NULL : hint_habit(name);

	if (hint && !*prefix && !(str_eq(name, "environment") && !is_map))
		return hint;
	if (is_policy_key(name))
		return arena_printf(&s->arena,
			*prefix ? "'%s' stands at the top of a policy"
				: "'%s' belongs in the operator's policy.yaml",
			name);
	if (point && spec_key_find(name) < SPEC_KEY_COUNT)
		return arena_printf(
			&s->arena, "write %s below %.*s:", point + 1, (int)(point - name), name);
	hint = hint_elsewhere(s, section, name, 0);
	if (!hint)
		hint = hint_sibling(s, section, name);
	/* As compose files and the workflows of forges write them. */
	if (!hint && str_eq(section, "env"))
		return "write env: { set: { NAME: value } }, or pass: [NAME] for those set here";
	return hint || strlen(name) < 5 ? hint : hint_elsewhere(s, section, name, 1);
}

static void read_section(struct spec *s, struct spec_layer_values *values,
	const struct yaml_node *map, const char *prefix, const char *section)
{
	/* What will not be shown is not looked for: a file of slips costs no more than a hundred.
	 */
	for (const struct yaml_node *node = map->first; node && !diags_are_full(&s->diags);
		node = node->next) {
		const char *name = yaml_key(node);
		const char *path =
			*section ? arena_printf(&s->arena, "%s.%s", section, name) : name;
		enum spec_key key = path && !(!*section && strchr(name, '.')) ? spec_key_find(path)
									      : SPEC_KEY_COUNT;

		if (key < SPEC_KEY_COUNT && spec_keys[key].tighten != SPEC_OPERATOR_ONLY) {
			spec_value_from_yaml(s, values, key, node, prefix);
		} else if (!*section && is_section(name) && node->kind == YAML_MAP) {
			read_section(s, values, node, prefix, name);
		} else if (!*section && is_section(name)) {
			diags_error(&s->diags, node->at,
				str_eq(name, "network")
					? "write network: { mode: none }, or allowlist or host"
					: arena_printf(
						  &s->arena, "write the keys of %s below it", name),
				"%s%s: expected a map, not %s", prefix, name, yaml_describe(node));
		} else {
			diags_error(&s->diags, node->key->at,
				hint_key(s, prefix, section, name, node->kind != YAML_SCALAR),
				"unknown key '%s%s%s%s'", prefix, section, *section ? "." : "",
				name);
		}
	}
}

void spec_read_map(struct spec *s, struct spec_layer_values *values, const struct yaml_node *map,
	const char *prefix)
{
	read_section(s, values, map, prefix, "");
}

void spec_read_policy(struct spec *s, struct spec_layer_values *values, const struct yaml_node *map)
{
	static const char *const own[] = { "version", "environment", "trusted_projects",
		"self_governance", "defaults", "project_may" };

	for (const struct yaml_node *node = map->first; node; node = node->next) {
		const char *name = node->key->text;
		struct spec_layer_values *below = str_eq(name, "defaults")      ? values
						  : str_eq(name, "project_may") ? &s->may
										: NULL;

		if (below && node->kind != YAML_MAP) {
			diags_error(&s->diags, node->at, NULL,
				"%s: expected a map of spec keys, not %s", name,
				yaml_describe(node));
		} else if (below) {
			spec_read_map(
				s, below, node, below == values ? "defaults." : "project_may.");
		} else if (is_policy_key(name) || str_eq(name, "version")) {
			spec_value_from_yaml(s, values, spec_key_find(name), node, "");
		} else {
			const char *near = str_nearest(name, own, COUNT_OF(own));
			const char *hint =
				near ? arena_printf(&s->arena, "did you mean '%s'?", near)
				     : "keys of a spec stand below defaults: or project_may: in a "
				       "policy";

			diags_error(&s->diags, node->key->at, hint, "unknown key '%s' in a policy",
				name);
		}
	}
}
