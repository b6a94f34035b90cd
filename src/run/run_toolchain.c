#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "run/run_spec.h"
#include "toolchain/toolchain.h"

/* Where the operator's programs are looked for; `here` is filled. */
static struct agent_search search_of(const struct run_place *place, char here[static PATH_MAX])
{
	return (struct agent_search){ .path = getenv("PATH"),
		.home = place->home,
		.only_path = true,
		.project = place->project,
		.here = getcwd(here, PATH_MAX) };
}

void run_add_toolchains(struct spec *s, const struct run_place *place)
{
	char here[PATH_MAX];
	struct agent_search where;

	if (!spec_list(s, SPEC_TOOLCHAINS)->count)
		return;
	where = search_of(place, here);
	toolchain_apply(s, &where);
}

/* The first `program` of PATH, if the project has it: as of a virtual environment. */
static bool find_in_project(
	const struct agent_search *where, const char *program, char ret[static PATH_MAX])
{
	size_t n = strlen(where->project);

	for (const char *p = where->path ? where->path : ""; *p;) {
		size_t size = strcspn(p, ":");

		if (snprintf(ret, PATH_MAX, "%.*s/%s", (int)size, p, program) < PATH_MAX &&
			access(ret, X_OK) == 0) {
			if (ret[0] != '/' || !str_path_within(ret, where->project) || !ret[n])
				return false;
			memmove(ret, ret + n + 1, strlen(ret + n + 1) + 1);
			return true;
		}
		p += size + (p[size] == ':');
	}
	return false;
}

/* Of a program that the operator has in the home. */
static const char *hint_home(
	struct arena *arena, const struct agent_search *where, const char *named, bool is_session)
{
	const struct toolchain_def *t = toolchain_of(named, where);
	const char *below = named + strlen(where->home), *program = strrchr(named, '/') + 1;
	const char *how = is_session ? "create the session with" : t ? "add" : "show it with";

	if (t)
		return arena_printf(
			arena, "your '%s' is ~%s; %s --toolchain %s", program, below, how, t->name);
	return arena_printf(arena, "your '%s' is ~%s; %s -v ~%s:/opt/bin/%s and run /opt/bin/%s",
		program, below, how, below, program, program);
}

/* A line of shell, or a variable, in the place of a program. */
static const char *hint_words(
	struct arena *arena, const char *program, size_t count, bool is_session)
{
	size_t name =
		strspn(program, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");

	/* What stands behind it may be a key. */
	if (name && program[name] == '=')
		return arena_printf(arena, "-e %.*s=… sets a variable", (int)name, program);
	if (count == 1 && strchr(program, ' ') && !strpbrk(program, "='"))
		return arena_printf(arena, "without quotes, or: %ssh -c '%s'",
			is_session ? "" : "bawn run -- ", program);
	return NULL;
}

const char *run_hint_command(struct spec *s, const struct run_place *place, bool is_session)
{
	const struct spec_value *command = spec_list(s, SPEC_COMMAND);
	const char *program = command->count ? command->items[0].text : "", *hint;
	char here[PATH_MAX], named[PATH_MAX], real[PATH_MAX];
	struct agent_search where = search_of(place, here);
	bool is_path = strchr(program, '/') != NULL;

	hint = hint_words(&s->arena, program, command->count, is_session);
	if (hint || !*program)
		return hint;
	if (!is_path && find_in_project(&where, program, named))
		return arena_printf(&s->arena, "your '%s' is %s; run that", program, named);
	if (is_path ? !realpath(program, real) ||
				snprintf(named, sizeof(named), "%s", program) >= PATH_MAX
		    : !agent_search(program, &where, named, real))
		return NULL;
	if (!place->home || !str_path_within(named, place->home) ||
		str_path_within(named, place->project))
		return NULL;
	return hint_home(&s->arena, &where, named, is_session);
}

const char *run_missing_toolchain(
	const struct spec *s, const struct run_place *place, const char *path)
{
	const struct spec_value *binds = spec_list(s, SPEC_BINDS);
	char here[PATH_MAX];
	struct agent_search where = search_of(place, here);
	const struct toolchain_def *t = toolchain_of(path, &where);

	for (size_t i = 0; i < binds->count; i++)
		if (str_path_within(path, binds->items[i].bind.to))
			return NULL;
	return t ? t->name : NULL;
}
