/* spec_hint - what to write instead of a value that is refused. */
#include <string.h>

#include "base/str.h"
#include "spec/spec_value.h"

const char *spec_hint_choice(struct arena *arena, const struct spec_key_def *def, const char *text)
{
	size_t n = 0;
	const char *near;

	while (def->choices[n])
		n++;
	near = str_nearest(text, def->choices, n);
	return near ? arena_printf(arena, "did you mean '%s'?", near) : NULL;
}

const char *spec_hint_list(
	struct arena *arena, const struct spec_key_def *def, const struct yaml_node *node)
{
	bool is_host = def == &spec_keys[SPEC_NETWORK_ALLOW];

	if (node->kind != YAML_SCALAR || node->type == YAML_NULL || def->type == SPEC_TYPE_SECRETS)
		return NULL;
	if (def == &spec_keys[SPEC_COMMAND] && strchr(node->text, ' '))
		return "write one entry per word, or [sh, -c, \"…\"] for a line of shell";
	return arena_printf(arena, "write it as a list: [%.60s%s]", node->text,
		is_host && !strchr(node->text, ':') ? ":443" : "");
}
