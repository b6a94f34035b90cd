/* run_settings - what a request asks of a spec, as its last layer. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "run/run_spec.h"

/*
 * "-v ./x:/y" means x of where one stands. That is the project's x, and is written so, unless the
 * project is elsewhere.
 */
static const char *from_here(struct spec *s, const char *value, const char *here)
{
	size_t n = strcspn(value, ":");
	char path[PATH_MAX], real[PATH_MAX];

	if (value[0] == '/' || value[0] == '~' || n + 1 > sizeof(path))
		return value;
	snprintf(path, sizeof(path), "%.*s", (int)n, value);
	if (realpath(path, real))
		return arena_printf(&s->arena, "%s%s", real, value + n);
	return arena_printf(&s->arena, "%s/%s", here, value);
}

/* Does anyone but the built-in default say where the project is? */
static bool is_project_elsewhere(const struct run_request *q, const struct spec *s)
{
	for (enum spec_layer i = SPEC_LAYER_SYSTEM; i < SPEC_LAYER_OPTIONS; i++)
		if (s->layers[i].v[SPEC_PROJECT_PATH].is_set)
			return true;
	return run_request_find(q, SPEC_PROJECT_PATH) != NULL;
}

void run_warn_unset(struct spec *s, const char *where, const char *variable)
{
	if (!getenv(variable))
		diags_warn(&s->diags,
			(struct diag_pos){ .source = diags_add_source(&s->diags, where, NULL, 0) },
			NULL, "env.pass: %s is not set here, and will not be in the cage",
			variable);
}

static bool is_for_network(enum spec_key key)
{
	return key == SPEC_NETWORK_ALLOW || key == SPEC_NETWORK_HOST_PORTS ||
	       key == SPEC_NETWORK_PUBLISH || key == SPEC_SECRETS;
}

/* The mode that an option names; not the environment. */
static const char *find_mode(const struct run_request *q)
{
	for (size_t i = q->setting_count; i-- > 0;)
		if (q->settings[i].key == SPEC_NETWORK_MODE &&
			str_starts(q->settings[i].from, "--"))
			return q->settings[i].value;
	return NULL;
}

/* What opens a way means the network that has ways, unless another one was named. */
static void settings_add_network(const struct run_request *q, struct spec *s, const char *name)
{
	const char *mode = find_mode(q);

	if (!mode)
		spec_add_option(s, SPEC_NETWORK_MODE, name, "allowlist");
	else if (str_eq(mode, "none"))
		diags_error(&s->diags,
			(struct diag_pos){ .source = diags_add_source(&s->diags, name, NULL, 0) },
			"leave out --network none", "--network none and %s contradict each other",
			name);
}

void run_add_settings(const struct run_request *q, struct spec *s, const char *here)
{
	bool is_elsewhere = is_project_elsewhere(q, s);

	for (size_t i = 0; i < q->setting_count; i++) {
		const char *name = q->settings[i].from, *value = q->settings[i].value;
		enum spec_key key = q->settings[i].key;

		if (key == SPEC_KEY_COUNT) {
			run_add_env_file(s, value, !q->here.host);
			continue;
		}
		if (key == SPEC_ENV_SET && !strchr(value, '='))
			key = SPEC_ENV_PASS;
		if (key == SPEC_ENV_PASS && !q->here.host)
			run_warn_unset(s, name, value);
		if (key == SPEC_BINDS && is_elsewhere)
			value = from_here(s, value, here);
		if (is_for_network(key))
			settings_add_network(q, s, name);
		if (value)
			spec_add_option(s, key, name, value);
	}
	if (q->command_count)
		spec_add_option_list(s, SPEC_COMMAND, "the command", q->command, q->command_count);
}
