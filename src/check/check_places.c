#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "check/check_lints.h"
#include "spec/spec_grammar.h"

/* --- paths that are one operator's --- */

/* What follows somebody's home in a path, "" for the home itself; NULL where there is none. */
static const char *below_home(const char *path)
{
	static const char *const parents[] = { "/home/", "/Users/" };

	if (str_path_within(path, "/root"))
		return path + strlen("/root");
	for (size_t i = 0; i < COUNT_OF(parents); i++)
		if (str_starts(path, parents[i]))
			return strchrnul(path + strlen(parents[i]), '/');
	return str_eq(path, "/Users") ? "" : NULL;
}

/* "C:\…", which can only stand behind the slash that every target starts with. */
static bool is_windows(const char *path)
{
	return str_is_letter(path[1]) && path[2] == ':' && (!path[3] || strchr("\\/", path[3]));
}

static bool mirrors_host(const char *to)
{
	return !str_path_within(to, "/home/agent") && (is_windows(to) || below_home(to));
}

/* The canonical place for a target that mirrors a host. */
static const char *hint_place(struct spec *s, const char *to)
{
	const char *rest = below_home(to);

	if (!rest || !*rest)
		return "choose a place below /home/agent, /srv, /opt or /data";
	return arena_printf(&s->arena, "write /home/agent%s", rest);
}

static void check_target(struct spec *s, const struct spec_item *item)
{
	const char *to = item->bind.to;
	bool is_strict = spec_bool(s, SPEC_AUDIT_STRICT_BINDS);

	if (mirrors_host(to) && !str_path_within(to, spec_text(s, SPEC_PROJECT_AT)))
		diags_say(&s->diags, is_strict ? DIAG_ERROR : DIAG_WARNING, item->at,
			hint_place(s, to),
			"binds: target %.200s mirrors a host: the same spec would not mean the "
			"same for another operator",
			to);
}

/* Writing to a bind of the project goes past what project.mode says. */
static void check_bypass(struct spec *s, const struct spec_item *item)
{
	unsigned mode = spec_choice(s, SPEC_PROJECT_MODE);

	if (item->bind.is_writable && mode != SPEC_MODE_WRITABLE &&
		spec_is_inside_project(item->bind.from))
		diags_warn(&s->diags, item->at, "bind it read-only, or set project.mode: writable",
			"binds: writing to %.200s here reaches the project itself, although "
			"project.mode is %s",
			item->bind.from, spec_keys[SPEC_PROJECT_MODE].choices[mode]);
}

static void places_check_source(
	struct spec *s, enum spec_key key, const char *from, struct diag_pos at)
{
	const char *rest = below_home(from);

	if (rest)
		diags_warn(&s->diags, at, arena_printf(&s->arena, "write ~%s", rest),
			"%s: %.200s is in one operator's home: the spec works for nobody else",
			spec_keys[key].path, from);
}

/*
 * Paths of the host as the spec's own file writes them. The shell writes ~ out on the command
 * line, and a policy belongs to one machine: neither is meant for another operator.
 */
static void check_sources(struct spec *s)
{
	static const enum spec_key keys[] = { SPEC_ROOT_IMAGE, SPEC_ROOT_OVERLAY, SPEC_PROJECT_PATH,
		SPEC_SYSCALLS };
	const struct spec_value *binds = spec_list(s, SPEC_BINDS);

	for (size_t i = 0; i < COUNT_OF(keys); i++) {
		const char *text = spec_text(s, keys[i]), *path = strchr(text, '/');

		if (path && s->set_by[keys[i]] == SPEC_LAYER_FILE &&
			(path == text || path[-1] == ':'))
			places_check_source(s, keys[i], path, spec_where(s, keys[i]));
	}
	for (size_t i = 0; i < binds->count && s->set_by[SPEC_BINDS] == SPEC_LAYER_FILE; i++)
		places_check_source(s, SPEC_BINDS, binds->items[i].bind.from, binds->items[i].at);
}

/* --- where the project is in the cage --- */

static void check_project_at(struct spec *s)
{
	const char *at = spec_text(s, SPEC_PROJECT_AT);

	/* With cage: project it is not used; check_pointless says so. */
	if (spec_choice(s, SPEC_PROJECT_CAGE) == SPEC_CAGE_FULL && !s->is_at_own_path &&
		mirrors_host(at))
		diags_warn(&s->diags, spec_where(s, SPEC_PROJECT_AT), hint_place(s, at),
			"project.at: %.200s mirrors a host: the same spec would not mean the same "
			"for another operator",
			at);
}

void check_places(struct spec *s)
{
	const struct spec_value *binds = spec_list(s, SPEC_BINDS);

	for (size_t i = 0; i < binds->count; i++) {
		check_target(s, &binds->items[i]);
		check_bypass(s, &binds->items[i]);
	}
	check_sources(s);
	check_project_at(s);
}
