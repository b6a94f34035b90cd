/*
 * keeper_points - places for mounts that bawn itself made in the layer of a captured project.
 *
 * Runs as:  the keeper: before the command may start, and when the cage has ended.
 * Leaves:   none of them in the layer, unless the command put something there.
 * Must not: remove anything that was not there before the command started.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "keeper/keeper_inside.h"

#define DEEPEST     64
#define MOST_MEMORY ((size_t)1 << 20)

struct keeper_point {
	struct keeper_point *next; /* what was found before: folders come before what is in them */
	const char *path;
	ino_t inode;
};

static int no_room(struct err *e)
{
	return err_hint(e,
		err_set(e, ERR_REFUSED, E2BIG,
			"cannot mount in the project: too many places would be made in it"),
		"create them first");
}

static int points_note(
	struct keeper_layer *l, const char *path, const struct stat *st, struct err *e)
{
	struct keeper_point *p = arena_alloc(&l->arena, sizeof(*p));

	if (!p)
		return no_room(e);
	*p = (struct keeper_point){ .next = l->points, .path = path, .inode = st->st_ino };
	l->points = p;
	return 0;
}

static int find_in(struct keeper_layer *l, int at, const char *name, const char *path, int depth,
	struct err *e)
{
	own_fd int folder = file_open_name(at, name, O_RDONLY | O_DIRECTORY);
	struct file_entries entries = { .fd = folder };
	const struct file_entry *entry;
	int r = 0;

	if (folder < 0 || depth == DEEPEST)
		return err_sys(
			e, folder < 0 ? -folder : ELOOP, "cannot inspect the layer of the project");
	while (r == 0 && (entry = file_next_entry(&entries))) {
		const char *below;
		struct stat st;

		if (str_eq(entry->name, ".") || str_eq(entry->name, ".."))
			continue;
		below = arena_printf(&l->arena, "%s%s%s", path, *path ? "/" : "", entry->name);
		if (!below)
			return no_room(e);
		if (fstatat(folder, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return err_sys(e, errno, "cannot inspect '%s'", below);
		r = points_note(l, below, &st, e);
		if (r == 0 && S_ISDIR(st.st_mode))
			r = find_in(l, folder, entry->name, below, depth + 1, e);
	}
	return r;
}

int keeper_points_find(struct keeper *k, struct err *e)
{
	struct keeper_layer *l = &k->layer;
	int top = l->trees[CAGE_LAYER_PROJECT].top;
	int r = keeper_copy_list(k, e);

	/* The list of a copy has them too. */
	if (r < 0 || l->trees[CAGE_LAYER_PROJECT].is_copied ||
		l->trees[CAGE_LAYER_PROJECT].is_filled)
		return r;
	/* A session keeps them: what is in its layer is of other runs too. */
	if (l->trees[CAGE_LAYER_PROJECT].below < 0 || keeper_layer_is_shared(k))
		return 0;
	arena_init(&l->arena, MOST_MEMORY);
	return find_in(l, top >= 0 ? top : k->disk, "upper", "", 0, e);
}

void keeper_points_remove(struct keeper_layer *l, int upper)
{
	for (const struct keeper_point *p = l->points; p; p = p->next) {
		const char *name = strrchr(p->path, '/');
		own_fd int folder = -1;
		struct stat st;

		if (name) {
			char parent[4096];

			if ((size_t)(name - p->path) >= sizeof(parent))
				continue;
			memcpy(parent, p->path, (size_t)(name - p->path));
			parent[name - p->path] = '\0';
			folder = file_open_beneath(upper, parent, O_RDONLY | O_DIRECTORY, 0);
			name++;
		} else {
			folder = fcntl(upper, F_DUPFD_CLOEXEC, 3);
			name = p->path;
		}
		if (folder < 0 || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			st.st_ino != p->inode)
			continue;
		/* A folder with something in it stays; a file that was mounted over is empty. */
		if (S_ISDIR(st.st_mode) || (S_ISREG(st.st_mode) && st.st_size == 0))
			unlinkat(folder, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
	}
}
