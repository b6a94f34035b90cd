/*
 * toolchain_apply - from the name of a toolchain to binds and variables of a spec.
 *
 * Runs as:  the operator, before anything is planned.
 * Reads:    nothing: it looks which files there are.
 * Must not: show a part that is not below the home, or follow $PATH into the project.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "spec/spec_grammar.h"
#include "toolchain/toolchain.h"

#define SYSTEM_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* The folder that a variable or the home gives; only one below the home is shown. */
static bool find_root(const char *variable, const char *folder, const struct agent_search *where,
	char ret[static PATH_MAX])
{
	const char *set = variable ? getenv(variable) : NULL;

	if (!where->home || str_eq(where->home, "/"))
		return false;
	if (set && str_path_within(set, where->home) && !spec_climbs(set) &&
		!str_eq(set, where->home))
		return snprintf(ret, PATH_MAX, "%s", set) < PATH_MAX;
	return snprintf(ret, PATH_MAX, "%s/%s", where->home, folder) < PATH_MAX;
}

/* True if the path belongs to the manager. */
static bool is_of(const struct toolchain_def *t, const char *path, const struct agent_search *where)
{
	char root[PATH_MAX];

	if (!where->home || !str_path_within(path, where->home))
		return false;
	return !t->root ||
	       (find_root(t->root_variable, t->root, where, root) && str_path_within(path, root));
}

/* True if the manager's program is the first of its name on the operator's PATH. */
static bool toolchain_is_used(const struct toolchain_def *t, const struct agent_search *where)
{
	char named[PATH_MAX], real[PATH_MAX];

	return agent_search(t->program, where, named, real) && is_of(t, named, where);
}

/* True if the path is in one of the manager's fixed folders. */
static bool is_in_part(
	const struct toolchain_def *t, const char *path, const struct agent_search *where)
{
	char root[PATH_MAX];

	for (size_t i = 0; i < COUNT_OF(t->parts) && t->parts[i].inside; i++)
		if (t->parts[i].folder &&
			find_root(t->parts[i].variable, t->parts[i].folder, where, root) &&
			str_path_within(path, root))
			return true;
	return false;
}

const struct toolchain_def *toolchain_of(const char *path, const struct agent_search *where)
{
	const char *slash = strrchr(path, '/');

	for (const struct toolchain_def *t = toolchain_defs; t->name; t++)
		if (is_in_part(t, path, where) || (t->root && is_of(t, path, where)) ||
			(!t->root && slash && str_eq(slash + 1, t->program)))
			return t;
	return NULL;
}

/* Writes a path of the home as the spec does, the same for every operator. */
static const char *apply_source(struct spec *s, const struct agent_search *where, const char *path)
{
	return str_path_within(path, where->home)
		       ? arena_printf(&s->arena, "~%s", path + strlen(where->home))
		       : NULL;
}

/* The folder of a version: two above its program, whose links are followed. */
static bool find_version(
	const struct toolchain_def *t, const struct agent_search *where, char ret[static PATH_MAX])
{
	char named[PATH_MAX], real[PATH_MAX];

	if (!agent_search(t->program, where, named, real) || !str_path_within(real, where->home))
		return false;
	for (int i = 0; i < 2; i++)
		*strrchr(real, '/') = '\0';
	if (!str_path_within(real, where->home) || str_eq(real, where->home))
		return false;
	return snprintf(ret, PATH_MAX, "%s", real) < PATH_MAX;
}

/* Adds one part where it is there; its place in the cage, NULL where it is not. */
static const char *apply_add_part(struct spec *s, const struct toolchain_def *t,
	const struct toolchain_part *part, const struct agent_search *where, struct diag_pos at)
{
	char root[PATH_MAX], path[2 * PATH_MAX];
	struct spec_item from = { 0 }, to = { 0 }, bind = { .at = at };
	struct stat st;

	if (part->folder ? !find_root(part->variable, part->folder, where, root)
			 : !find_version(t, where, root))
		return NULL;
	snprintf(path, sizeof(path), "%s%s%s", root, *part->inside ? "/" : "", part->inside);
	if (stat(path, &st) < 0)
		return NULL;
	from.text = apply_source(s, where, path);
	to.text = part->at ? arena_printf(&s->arena, TOOLCHAIN_PLACE "/%s", part->at)
			   : arena_copy(&s->arena, path, strlen(path));
	if (!from.text || !to.text || !spec_join_bind(&s->arena, &from, &to, false, &bind)) {
		diags_error(&s->diags, at, NULL, "toolchains: cannot show '%s'", path);
		return NULL;
	}
	agent_add_item(s, SPEC_BINDS, &bind);
	return to.text;
}

static void add_toolchain(struct spec *s, const struct toolchain_def *t,
	const struct agent_search *where, struct diag_pos at, struct buf *path)
{
	char root[PATH_MAX] = "";
	const char *own = NULL;

	if (t->root)
		find_root(t->root_variable, t->root, where, root);
	for (size_t i = 0; i < COUNT_OF(t->parts) && t->parts[i].inside; i++) {
		const char *place = apply_add_part(s, t, &t->parts[i], where, at);

		if (place && !t->parts[i].at && !*t->parts[i].inside)
			own = place;
	}
	if (!own && root[0])
		own = arena_copy(&s->arena, root, strlen(root));
	if (t->variable && (t->value || own))
		agent_add_var(s, SPEC_ENV_SET, t->variable, t->value ? t->value : own, at);
	for (size_t i = 0; i < COUNT_OF(t->paths) && t->paths[i]; i++) {
		if (t->paths[i][0] == '~')
			buf_printf(path, "%s/%s:", root, t->paths[i] + 1);
		else
			buf_printf(path, TOOLCHAIN_PLACE "/%s:", t->paths[i]);
	}
}

/* Adds to PATH before the system's programs and behind the agent's; keeps a declared PATH. */
static void apply_add_path(struct spec *s, const char *more, struct diag_pos at)
{
	struct spec_value *v = &s->settled.v[SPEC_ENV_SET];
	static const char agents[] = AGENT_PLACE "/bin:";
	const char *value = NULL;

	for (size_t i = 0; i < v->count; i++)
		if (str_eq(v->items[i].var.name, "PATH"))
			value = v->items[i].var.value;
	if (!value) {
		agent_add_var(s, SPEC_ENV_SET, "PATH",
			arena_printf(&s->arena, "%s" SYSTEM_PATH, more), at);
		return;
	}
	if (!str_starts(value, agents))
		return;
	for (size_t i = 0; i < v->count; i++) {
		struct spec_var *var = &v->items[i].var;

		if (!str_eq(var->name, "PATH"))
			continue;
		/* The list is our own: the agent's entry was added to it. */
		var->value =
			arena_printf(&s->arena, "%s%s%s", agents, more, value + strlen(agents));
		v->items[i].text = arena_printf(&s->arena, "PATH=%s", var->value ? var->value : "");
	}
}

void toolchain_apply(struct spec *s, const struct agent_search *where)
{
	const struct spec_value *names = spec_list(s, SPEC_TOOLCHAINS);
	own(buf) struct buf path = { .max = PATH_MAX };
	bool is_auto = false;

	for (size_t i = 0; i < names->count; i++)
		is_auto |= str_eq(names->items[i].text, "auto");
	for (const struct toolchain_def *t = toolchain_defs; names->count && t->name; t++) {
		const struct spec_item *named = NULL;

		for (size_t i = 0; i < names->count; i++)
			if (str_eq(names->items[i].text, t->name))
				named = &names->items[i];
		if (toolchain_is_used(t, where) && (named || is_auto))
			add_toolchain(s, t, where, named ? named->at : names->at, &path);
		else if (named)
			diags_error(&s->diags, named->at,
				"open a shell in which it is, or show its folder with -v",
				"toolchains: cannot find %s: no '%s' on your PATH is of it",
				t->name, t->program);
	}
	if (path.len && !path.failed)
		apply_add_path(s, buf_text(&path), names->at);
}
