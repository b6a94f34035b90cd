/*
 * cli_state - keeps the operator's state, and the signing key in it, out of every cage.
 *
 * Runs as: the operator, before a cage is made.
 * Reads:   names of files, and which mounts there are; no file's content.
 *
 * A mount may show the state, or a part of it, under a second path. So it is found once under which
 * paths it can be seen, and whatever is to be shown in a cage is compared with all of them. One
 * that is covered by another mount counts too: then something harmless may be refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"
#include "keep/keep_view.h"
#include "record/record.h"

/* Where the state really is. It may not be there yet: then `there` is what of it is. */
struct own_state {
	char path[PATH_MAX], there[PATH_MAX];
};

static int find_state(const char *home, struct own_state *ret)
{
	char path[PATH_MAX], *slash;
	size_t n;
	int r = record_find_state(home, path);

	if (r < 0)
		return r;
	for (n = strlen(path); !realpath(path, ret->there); path[n] = '\0') {
		slash = strrchr(path, '/');
		if (errno != ENOENT || !slash || slash == path)
			return -errno;
		n = (size_t)(slash - path);
	}
	record_find_state(home, path);
	if (snprintf(ret->path, PATH_MAX, "%s%s", str_eq(ret->there, "/") ? "" : ret->there,
		    path + n) >= PATH_MAX)
		return -ENAMETOOLONG;
	return 0;
}

/* The mount that a path is in, or NULL. */
static const struct keep_mount *find_mount(const struct keep_view *v, const char *path)
{
	struct statx st;

	if (statx(AT_FDCWD, path, 0, STATX_MNT_ID, &st) < 0 || !(st.stx_mask & STATX_MNT_ID))
		return NULL;
	for (size_t i = 0; i < v->mount_count; i++)
		if ((uint64_t)v->mounts[i].id == st.stx_mnt_id &&
			str_path_within(path, v->mounts[i].place))
			return &v->mounts[i];
	return NULL;
}

/* The path `from`/… as `to`/…; `path` is within `from`. */
static const char *move(struct arena *arena, const char *path, const char *from, const char *to)
{
	const char *below = path + (str_eq(from, "/") ? 0 : strlen(from));

	if (str_eq(path, from))
		return arena_copy(arena, to, strlen(to));
	return arena_printf(arena, "%s%s", str_eq(to, "/") ? "" : to, below);
}

/* Under which path a mount shows the state or a part of it; NULL: under none. */
static const char *find_alias(const struct keep_mount *m, const char *state, struct arena *arena)
{
	if (str_path_within(state, m->root))
		return move(arena, state, m->root, m->place);
	return str_path_within(m->root, state) ? m->place : NULL;
}

/* All other paths under which the state can be seen. */
static int add_aliases(struct spec *s, const struct keep_view *v, const struct own_state *own,
	struct cli_place *place)
{
	const struct keep_mount *home = find_mount(v, own->there);
	const char *state = home ? move(&s->arena, own->path, home->place, home->root) : NULL;

	place->state_paths = arena_array(&s->arena, v->mount_count + 1, sizeof(char *));
	if (!place->state_paths || (home && !state))
		return -ENOMEM;
	for (size_t i = 0; home && i < v->mount_count; i++) {
		const struct keep_mount *m = &v->mounts[i];
		const char *alias =
			str_eq(m->device, home->device) ? find_alias(m, state, &s->arena) : NULL;

		if (alias)
			alias = arena_copy(&s->arena, alias, strlen(alias));
		if (alias)
			place->state_paths[place->state_count++] = alias;
	}
	return 0;
}

int cli_find_state(struct spec *s, struct cli_place *place)
{
	own(arena) struct arena arena;
	own_free char *text = NULL;
	struct keep_view v = { 0 };
	struct own_state own;
	const char *path;
	size_t n;
	int r = find_state(place->home, &own);

	/* Without a place for it there is none, and no run either. */
	if (r < 0)
		return 0;
	arena_init(&arena, KEEP_MAX_VIEW);
	r = file_read_path("/proc/self/mountinfo", KEEP_MAX_VIEW, &text, &n);
	if (r == 0)
		r = keep_view_parse_mounts(&v, text, &arena);
	if (r == 0)
		r = add_aliases(s, &v, &own, place);
	if (r < 0)
		return r;
	path = arena_copy(&s->arena, own.path, strlen(own.path));
	if (!path)
		return -ENOMEM;
	place->state_paths[place->state_count++] = path;
	return 0;
}

const char *cli_state_of(struct spec *s, const char *real, const struct cli_place *place)
{
	for (size_t i = 0; i < place->state_count; i++) {
		const char *path = place->state_paths[i], *text;
		bool is_above = str_path_within(path, real);

		if (!is_above && !str_path_within(real, path))
			continue;
		text = arena_printf(&s->arena,
			"%s bawn's own state in %s, where the signing key is",
			is_above ? "would show" : "is in", path);
		return text ? text : "is too close to bawn's own state";
	}
	return NULL;
}
