/*
 * run_state - keeps the operator's state, the signing key in it, and the folders of sessions, out
 * of every cage.
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
#include "keeper/inspect/keeper_snapshot.h"
#include "proof/record/record.h"
#include "run/run_spec.h"

/* Where the state really is. It may not be there yet: then `there` is what of it is. */
struct own_state {
	char path[PATH_MAX], there[PATH_MAX];
	uint64_t mount; /* that `there` is in; 0: the kernel does not tell */
};

/* The real path of what is there, and its mount. 0 or -errno. */
static int find_there(const char *path, struct own_state *ret)
{
	bool is_real;
	own_fd int fd = file_open_told(path, O_PATH, &is_real);
	struct statx st;
	ssize_t n = fd;

	if (fd >= 0 && is_real)
		memcpy(ret->there, path, strlen(path) + 1);
	else if (fd >= 0)
		n = file_path_of(fd, ret->there);
	if (n < 0)
		return (int)n;
	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) == 0 && st.stx_mask & STATX_MNT_ID)
		ret->mount = st.stx_mnt_id;
	return 0;
}

static int find_real(const char *given, struct own_state *ret)
{
	char path[PATH_MAX], *slash;
	size_t n;
	int r;

	snprintf(path, sizeof(path), "%s", given);
	for (n = strlen(path); (r = find_there(path, ret)) < 0; path[n] = '\0') {
		slash = strrchr(path, '/');
		if (r != -ENOENT || !slash || slash == path)
			return r;
		n = (size_t)(slash - path);
	}
	if (snprintf(ret->path, PATH_MAX, "%s%s", str_eq(ret->there, "/") ? "" : ret->there,
		    given + n) >= PATH_MAX)
		return -ENAMETOOLONG;
	return 0;
}

/* The mount that it is in, or NULL. */
static const struct keeper_mount *find_mount(
	const struct keeper_snapshot *v, const struct own_state *own)
{
	for (size_t i = 0; own->mount && i < v->mount_count; i++)
		if ((uint64_t)v->mounts[i].id == own->mount &&
			str_path_within(own->there, v->mounts[i].place))
			return &v->mounts[i];
	return NULL;
}

/* The path `from`/… as `to`/…; `path` is within `from`. */
static const char *state_move(
	struct arena *arena, const char *path, const char *from, const char *to)
{
	const char *below = path + (str_eq(from, "/") ? 0 : strlen(from));

	if (str_eq(path, from))
		return arena_copy(arena, to, strlen(to));
	return arena_printf(arena, "%s%s", str_eq(to, "/") ? "" : to, below);
}

/* Under which path a mount shows the state or a part of it; NULL: under none. */
static const char *find_alias(const struct keeper_mount *m, const char *state, struct arena *arena)
{
	if (str_path_within(state, m->root))
		return state_move(arena, state, m->root, m->place);
	return str_path_within(m->root, state) ? m->place : NULL;
}

static int state_add_path(struct spec *s, const char *path, bool is_root, struct run_place *place)
{
	path = arena_copy(&s->arena, path, strlen(path));
	if (!path)
		return -ENOMEM;
	place->state_paths[place->state_count++] = (struct run_hidden){ path, is_root };
	return 0;
}

/* All other paths under which it can be seen. */
static int add_aliases(struct spec *s, const struct keeper_snapshot *v, const struct own_state *own,
	bool is_root, struct run_place *place)
{
	const struct keeper_mount *home = find_mount(v, own);
	const char *state = home ? state_move(&s->arena, own->path, home->place, home->root) : NULL;
	int r = home && !state ? -ENOMEM : 0;

	for (size_t i = 0; home && r == 0 && i < v->mount_count; i++) {
		const struct keeper_mount *m = &v->mounts[i];
		const char *alias =
			str_eq(m->device, home->device) ? find_alias(m, state, &s->arena) : NULL;

		if (alias)
			r = state_add_path(s, alias, is_root, place);
	}
	return r == 0 ? state_add_path(s, own->path, is_root, place) : r;
}

/* What is nowhere yet cannot be seen. */
static int hide(struct spec *s, const struct keeper_snapshot *v, const char *path, bool is_root,
	struct run_place *place)
{
	struct own_state own = { .mount = 0 };

	return find_real(path, &own) < 0 ? 0 : add_aliases(s, v, &own, is_root, place);
}

int run_find_state(struct spec *s, struct run_place *place)
{
	const char *root = getenv("BAWN_SANDBOX_ROOT");
	own(arena) struct arena arena;
	own_free char *text = NULL;
	struct keeper_snapshot v = { 0 };
	char state[PATH_MAX];
	size_t n;
	int r;

	arena_init(&arena, KEEPER_MAX_VIEW);
	r = file_read_path("/proc/self/mountinfo", KEEPER_MAX_VIEW, &text, &n);
	/* The parser cuts it up. */
	if (r == 0)
		place->mounts = arena_copy(&s->arena, text, n);
	if (r == 0)
		r = keeper_snapshot_parse_mounts(&v, text, &arena);
	if (r == 0)
		place->state_paths = arena_array(
			&s->arena, 2 * (v.mount_count + 1), sizeof(*place->state_paths));
	if (r == 0 && !place->state_paths)
		r = -ENOMEM;
	/* Without a place for it there is none, and no run either. */
	if (r == 0 && record_find_state(place->home, state) == 0)
		r = hide(s, &v, state, false, place);
	if (r == 0 && root && root[0] == '/')
		r = hide(s, &v, root, true, place);
	return r;
}

const char *run_state_of(struct spec *s, const char *real, const struct run_place *place)
{
	for (size_t i = 0; i < place->state_count; i++) {
		const char *path = place->state_paths[i].path, *text;
		bool is_above = str_path_within(path, real);

		if (!is_above && !str_path_within(real, path))
			continue;
		text = arena_printf(&s->arena, "%s %s in %s%s", is_above ? "would show" : "is in",
			place->state_paths[i].is_root ? "the folders of all sessions"
						      : "bawn's own state",
			path, place->state_paths[i].is_root ? "" : ", where the signing key is");
		return text ? text : "is too close to bawn's own state";
	}
	return NULL;
}
