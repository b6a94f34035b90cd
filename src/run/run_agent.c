/*
 * run_agent - from the name of an agent in a spec to the keys that its profile adds.
 *
 * Runs as:  the operator.
 * Reads:    the operator's profiles, /etc/bawn/agents and ~/.config/bawn/agents; where the program
 *           of the agent is.
 *
 * The spec is settled: who may name an agent has been judged, as for any other key.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/profile/agent.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"
#include "run/run_spec.h"
#include "spec/spec_grammar.h"

#define SYSTEM_AGENTS "/etc/bawn/agents"

/* --- the profile --- */

/* The operator's own, where they have written one: theirs before the system's. */
static int agent_read_own(struct spec *s, const char *name, const char *home, const char **ret_from,
	const char **ret, size_t *ret_size, struct err *e)
{
	char config[PATH_MAX], path[PATH_MAX + 128];
	int r = 0;

	*ret = NULL;
	if (run_config_folder(home, config) == 0) {
		snprintf(path, sizeof(path), "%s/agents/%s.yaml", config, name);
		r = run_read_own(s, "profile", path, ret, ret_size, e);
	}
	if (r == 0 && !*ret) {
		snprintf(path, sizeof(path), SYSTEM_AGENTS "/%s.yaml", name);
		r = run_read_own(s, "profile", path, ret, ret_size, e);
	}
	*ret_from = *ret ? arena_copy(&s->arena, path, strlen(path)) : NULL;
	return r;
}

int run_load_agent(struct spec *s, const char *name, const char *home, struct agent_profile **ret,
	struct err *e)
{
	struct agent_profile *p = arena_alloc(&s->arena, sizeof(*p));
	struct spec_item unused = { 0 };
	struct err unfit = { 0 };
	const char *from, *text;
	size_t n = 0;
	int r;

	*ret = NULL;
	/* It becomes a part of a path. */
	if (spec_parse(SPEC_GRAMMAR_NAME, &s->arena, name, &unused, &unfit) < 0)
		return 0;
	r = agent_read_own(s, name, home, &from, &text, &n, e);
	if (r < 0)
		return r;
	if (!text) {
		text = agent_builtin_text(name);
		n = text ? strlen(text) : 0;
		from = arena_printf(&s->arena, "the profile %s", name);
	}
	if (!text)
		return 0;
	if (!p || !from)
		return err_set(
			e, ERR_SYS, ENOMEM, "cannot read the profile '%s': out of memory", name);
	if (!agent_read(s, from, text, n, p))
		return run_fail_spec(e);
	if (!str_eq(p->name, name))
		return err_hint(e,
			err_set(e, ERR_REFUSED, EINVAL, "%s is of '%s', not of '%s'", from, p->name,
				name),
			"rename the file or change its name");
	*ret = p;
	return 0;
}

#define MOST_NAMES 65536 /* bytes of the names in a folder */

static void agent_add_name(struct run_agents *ret, const char *name)
{
	for (size_t i = 0; i < ret->count; i++)
		if (str_eq(ret->names[i], name))
			return;
	if (ret->count < RUN_MOST_AGENTS)
		ret->names[ret->count++] = name;
}

static void agent_add_folder(struct run_agents *ret, struct arena *arena, const char *path)
{
	own_fd int folder = file_open(path, O_RDONLY | O_DIRECTORY);
	struct tree_names names = { 0 };
	int r = folder < 0 ? folder : tree_names_read(folder, MOST_NAMES, &names);

	for (size_t i = 0; r == 0 && i < names.count; i++) {
		const char *name = names.sorted[i];

		if (!str_ends(name, ".yaml") || name[0] == '.')
			continue;
		name = arena_copy(arena, name, strlen(name) - strlen(".yaml"));
		if (name)
			agent_add_name(ret, name);
	}
	tree_names_done(&names);
}

static int agent_compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void run_list_agents(const char *home, struct arena *arena, struct run_agents *ret)
{
	char config[PATH_MAX], path[PATH_MAX + 16];

	ret->count = 0;
	for (const struct agent_builtin *b = agent_builtins; b->name; b++)
		agent_add_name(ret, b->name);
	agent_add_folder(ret, arena, SYSTEM_AGENTS);
	if (run_config_folder(home, config) == 0) {
		snprintf(path, sizeof(path), "%s/agents", config);
		agent_add_folder(ret, arena, path);
	}
	qsort(ret->names, ret->count, sizeof(ret->names[0]), agent_compare_names);
}

/* --- its program --- */

/* A command that only shows what would be is of use without the program. */
static bool needs_program(const struct run_request *q)
{
	return q->purpose != RUN_TO_SHOW;
}

static void agent_say_missing(const struct run_request *q, struct spec *s,
	const struct agent_profile *p, const char *program, struct diag_pos at)
{
	const char *hint =
		p->package ? arena_printf(&s->arena, "npm install -g %s", p->package) : NULL;

	diags_say(&s->diags, needs_program(q) ? DIAG_ERROR : DIAG_WARNING, at, hint,
		"agent: '%s' is not installed here: no folder of PATH outside of the "
		"project's repository has it",
		program);
}

static void agent_find_program(const struct run_request *q, struct spec *s,
	const struct run_place *place, const struct agent_profile *p, struct diag_pos at,
	struct agent_found *ret)
{
	char here[PATH_MAX];
	struct agent_search where = { getenv("PATH"), place->home,
		str_eq(spec_text(s, SPEC_ROOT_IMAGE), "host"), place->project,
		getcwd(here, sizeof(here)) };
	const char *program = agent_program(s, p);
	struct err e = { 0 };
	int r;

	*ret = (struct agent_found){ 0 };
	/* On the host that a file describes, nobody can look. A path needs no search. */
	if (!program || q->here.host || strchr(program, '/'))
		return;
	r = agent_find(&s->arena, p, program, &where, ret, &e);
	if (r == -ENOENT && !e.text[0])
		agent_say_missing(q, s, p, program, at);
	else if (r < 0)
		diags_error(&s->diags, at, e.hint[0] ? e.hint : NULL, "agent: %s", e.text);
}

/* --- adding it --- */

static void agent_say_unknown(struct spec *s, const char *name, struct diag_pos at)
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

/* What was given is not shown: it may be the key itself. */
static int fail_key(const struct agent_profile *p, bool has_value, struct err *e)
{
	own(buf) struct buf names = { .max = 1024 };

	for (size_t i = 0; i < p->key_count; i++)
		buf_printf(&names, "%s%s", i ? ", " : "", p->keys[i].variable);
	if (has_value)
		return err_hint(e,
			err_set(e, ERR_USE, EINVAL,
				"cannot use --secret: it takes the name of a variable, without a "
				"value"),
			"export the variable, and write --secret and its name");
	return err_hint(e,
		err_set(e, ERR_USE, EINVAL,
			"cannot use --secret: the profile '%s' knows no such key", p->name),
		"it knows %s; other secrets are declared in a spec, by secrets:",
		names.len ? buf_text(&names) : "none");
}

/* --secret: the profile knows whom the key is for, and how it is sent. */
static int agent_add_secrets(
	const struct run_request *q, struct spec *s, const struct agent_profile *p, struct err *e)
{
	for (size_t i = 0; i < q->here.secrets.count; i++) {
		const char *variable = q->here.secrets.items[i];

		if (!agent_add_secret(s, p, variable))
			return fail_key(p, strchr(variable, '=') != NULL, e);
	}
	return 0;
}

/* --- keys --- */

static bool agent_is_declared(const struct spec *s, enum spec_key key, const char *variable)
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
		const char *variable = p->keys[i].variable, *value = getenv(variable);

		if (!value || !*value || agent_is_declared(s, SPEC_ENV_PASS, variable) ||
			agent_is_declared(s, SPEC_ENV_SET, variable))
			continue;
		diags_warn(&s->diags, spec_where(s, SPEC_AGENT),
			arena_printf(&s->arena,
				"--secret %s lets it be used without being seen; -e %s shows it",
				variable, variable),
			"agent: %s is set here, and stays outside of the cage", variable);
	}
}

int run_add_agent(
	const struct run_request *q, struct spec *s, const struct run_place *place, struct err *e)
{
	const char *name = spec_text(s, SPEC_AGENT);
	bool is_full = spec_choice(s, SPEC_PROJECT_CAGE) == SPEC_CAGE_FULL;
	struct diag_pos at = spec_where(s, SPEC_AGENT);
	struct agent_profile *p;
	struct agent_found found;
	int r;

	if (!name && q->here.secrets.count)
		return err_hint(e,
			err_set(e, ERR_USE, EINVAL,
				"cannot use --secret: it is for a key of an agent"),
			"name that with --agent, or declare secrets: in a spec");
	if (!name)
		return 0;
	r = run_load_agent(s, name, place->home, &p, e);
	if (r == 0 && !p)
		agent_say_unknown(s, name, at);
	if (r < 0 || !p)
		return r < 0 ? r : run_fail_spec(e);
	agent_find_program(q, s, place, p, at, &found);
	agent_apply(s, p, &found);
	r = agent_add_secrets(q, s, p, e);
	if (r < 0)
		return r;
	agent_finish(s, p, is_full ? spec_text(s, SPEC_PROJECT_AT) : place->project);
	if (needs_program(q))
		say_kept_out(s, p);
	return s->diags.errors ? run_fail_spec(e) : 0;
}
