/*
 * cli_agent - from the name of an agent in a spec to the keys that its profile adds.
 *
 * Runs as:  the operator.
 * Reads:    the operator's profiles, /etc/bawn/agents and ~/.config/bawn/agents; where the program
 *           of the agent is.
 * Must not: let a project's own file name an agent that the operator has not: its profile asks for
 *           hosts and programs.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "base/str.h"
#include "cli/cli.h"

#define SYSTEM_AGENTS "/etc/bawn/agents"

/* --- the profile --- */

/* The operator's own, where they have written one: theirs before the system's. */
static int read_own(struct spec *s, const char *name, const char *home, const char **ret_from,
	const char **ret, size_t *ret_size)
{
	char config[PATH_MAX], path[PATH_MAX + 128];
	int status = CLI_OK;

	*ret = NULL;
	if (cli_config_folder(home, config) == 0) {
		snprintf(path, sizeof(path), "%s/agents/%s.yaml", config, name);
		status = cli_read_own(s, "profile", path, ret, ret_size);
	}
	if (status == CLI_OK && !*ret) {
		snprintf(path, sizeof(path), SYSTEM_AGENTS "/%s.yaml", name);
		status = cli_read_own(s, "profile", path, ret, ret_size);
	}
	*ret_from = *ret ? arena_copy(&s->arena, path, strlen(path)) : NULL;
	return status;
}

int cli_load_agent(struct spec *s, const char *name, const char *home, struct agent_profile **ret)
{
	struct agent_profile *p = arena_alloc(&s->arena, sizeof(*p));
	const char *from, *text;
	size_t n = 0;
	int status = read_own(s, name, home, &from, &text, &n);

	*ret = NULL;
	if (status != CLI_OK)
		return status;
	if (!text) {
		text = agent_builtin_text(name);
		n = text ? strlen(text) : 0;
		from = arena_printf(&s->arena, "the profile %s", name);
	}
	if (!text)
		return CLI_OK;
	if (!p || !from) {
		cli_complain("not enough memory for the profile '%s'", name);
		return CLI_FAILED;
	}
	if (!agent_read(s, from, text, n, p))
		return CLI_NO;
	if (!str_eq(p->name, name)) {
		cli_complain("%s is of '%s', not of '%s'; rename the file or change its name", from,
			p->name, name);
		return CLI_FAILED;
	}
	*ret = p;
	return CLI_OK;
}

/* --- who names it --- */

/* False: nobody who may has. A file that is not the operator's is held to what they said. */
static bool find_layer(const struct spec *s, enum spec_layer *ret)
{
	static const enum spec_layer order[] = { SPEC_LAYER_OPTIONS, SPEC_LAYER_FILE,
		SPEC_LAYER_USER, SPEC_LAYER_SYSTEM };
	const struct spec_value *may = &s->may.v[SPEC_AGENT];

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		const struct spec_value *v = &s->layers[order[i]].v[SPEC_AGENT];

		if (!v->is_set)
			continue;
		*ret = order[i];
		if (order[i] != SPEC_LAYER_FILE || s->is_file_trusted)
			return true;
		/* It adds as the operator, who lets projects have this agent. */
		*ret = SPEC_LAYER_USER;
		if (may->is_set)
			return str_eq(may->text, v->text);
		for (enum spec_layer l = SPEC_LAYER_USER; l > SPEC_LAYER_BUILTIN; l--)
			if (s->layers[l].v[SPEC_AGENT].is_set)
				return str_eq(s->layers[l].v[SPEC_AGENT].text, v->text);
		return false;
	}
	return false;
}

static const char *name_of(const struct spec *s)
{
	for (int i = SPEC_LAYER_OPTIONS; i > SPEC_LAYER_BUILTIN; i--)
		if (s->layers[i].v[SPEC_AGENT].is_set)
			return s->layers[i].v[SPEC_AGENT].text;
	return NULL;
}

/* --- its program --- */

/* A command that only shows what would be is of use without the program. */
static bool needs_program(const struct cli *cli)
{
	static const char *const shows[] = { "plan", "check", "card" };

	for (size_t i = 0; i < sizeof(shows) / sizeof(shows[0]); i++)
		if (str_eq(cli->command->name, shows[i]))
			return false;
	return true;
}

static bool has_host_image(const struct spec *s)
{
	for (int i = SPEC_LAYER_OPTIONS; i > SPEC_LAYER_BUILTIN; i--)
		if (s->layers[i].v[SPEC_ROOT_IMAGE].is_set)
			return str_eq(s->layers[i].v[SPEC_ROOT_IMAGE].text, "host");
	return true;
}

static void say_missing(const struct cli *cli, struct spec *s, const struct agent_profile *p,
	const char *program, struct diag_pos at)
{
	const char *hint =
		p->package ? arena_printf(&s->arena, "npm install -g %s", p->package) : NULL;

	diags_say(&s->diags, needs_program(cli) ? DIAG_ERROR : DIAG_WARNING, at, hint,
		"agent: '%s' is not installed here: no folder of PATH has it", program);
}

static int find_program(const struct cli *cli, struct spec *s, const char *home,
	const struct agent_profile *p, struct diag_pos at, struct agent_found *ret)
{
	struct agent_search where = { getenv("PATH"), home, has_host_image(s) };
	const char *program = agent_program(s, p);
	struct err e = { 0 };
	int r;

	*ret = (struct agent_found){ 0 };
	/* On the host that a file describes, nobody can look. A path needs no search. */
	if (!program || cli_value(cli, "host") || strchr(program, '/'))
		return CLI_OK;
	r = agent_find(&s->arena, p, program, &where, ret, &e);
	if (r == -ENOENT && !e.text[0])
		say_missing(cli, s, p, program, at);
	else if (r < 0)
		diags_error(&s->diags, at, NULL, "agent: %s", e.text);
	return CLI_OK;
}

/* --- adding it --- */

static void say_unknown(struct spec *s, const char *name, struct diag_pos at)
{
	const char *names[32];
	size_t n = 0;
	const char *near;

	for (const struct agent_builtin *b = agent_builtins; b->name && n < 32; b++)
		names[n++] = b->name;
	near = str_nearest(name, names, n);
	diags_error(&s->diags, at,
		near ? arena_printf(&s->arena, "did you mean '%s'?", near) : "see: bawn agent list",
		"agent: there is no profile '%s'", name);
}

/* --secret: the profile knows whom the key is for, and how it is sent. */
static int add_secrets(const struct cli *cli, struct spec *s, const struct agent_profile *p)
{
	for (size_t i = 0; i < cli->given_count; i++) {
		const char *variable = cli->given[i].value;

		if (!str_eq(cli->given[i].option->name, "secret") ||
			agent_add_secret(s, SPEC_LAYER_OPTIONS, p, variable))
			continue;
		cli_complain("--secret %s: the profile '%s' knows no such key; other secrets are "
			     "declared in a spec, by secrets:",
			variable, p->name);
		return CLI_FAILED;
	}
	return CLI_OK;
}

int cli_add_agent(
	const struct cli *cli, struct spec *s, const char *home, struct agent_profile **ret)
{
	const char *name = name_of(s);
	struct agent_found found;
	enum spec_layer layer;
	struct diag_pos at;
	int status;

	*ret = NULL;
	/* What a project's file may not say is told with all else that is wrong with it. */
	if (!name && cli_value(cli, "secret")) {
		cli_complain(
			"--secret is for a key of an agent; name that with --agent, or declare "
			"secrets: in a spec");
		return CLI_FAILED;
	}
	if (!name || !find_layer(s, &layer))
		return CLI_OK;
	at = s->layers[layer].v[SPEC_AGENT].at;
	status = cli_load_agent(s, name, home, ret);
	if (status == CLI_FAILED)
		return status;
	if (status == CLI_OK && !*ret)
		say_unknown(s, name, at);
	if (!*ret)
		return CLI_NO;
	status = find_program(cli, s, home, *ret, at, &found);
	if (status == CLI_OK)
		agent_apply(s, layer, *ret, &found);
	return status == CLI_OK ? add_secrets(cli, s, *ret) : status;
}

/* --- keys --- */

static bool is_declared(const struct spec *s, enum spec_key key, const char *variable)
{
	const struct spec_value *v = spec_list(s, key);

	for (size_t i = 0; i < v->count; i++)
		if (str_eq(key == SPEC_ENV_SET ? v->items[i].var.name : v->items[i].text, variable))
			return true;
	return false;
}

/* A key of the operator's that nobody declared stays outside: that is better said than wondered at.
 */
static void say_kept_out(struct spec *s, const struct agent_profile *p)
{
	for (size_t i = 0; i < p->key_count; i++) {
		const char *variable = p->keys[i].variable;

		if (!getenv(variable) || !*getenv(variable) ||
			is_declared(s, SPEC_ENV_PASS, variable) ||
			is_declared(s, SPEC_ENV_SET, variable))
			continue;
		diags_warn(&s->diags, spec_where(s, SPEC_AGENT),
			arena_printf(&s->arena,
				"--secret %s lets it be used without being seen; -e %s shows it",
				variable, variable),
			"agent: %s is set here, and stays outside of the cage", variable);
	}
}

int cli_finish_agent(const struct cli *cli, struct spec *s, const struct cli_place *place,
	const struct agent_profile *p)
{
	bool is_full = spec_choice(s, SPEC_PROJECT_CAGE) == SPEC_CAGE_FULL;

	agent_finish(s, p, is_full ? spec_text(s, SPEC_PROJECT_AT) : place->project);
	if (needs_program(cli))
		say_kept_out(s, p);
	return s->diags.errors ? CLI_NO : CLI_OK;
}
