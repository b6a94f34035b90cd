/*
 * check_walk - goes through a tree that may be hostile, and comes back.
 *
 * Runs as:     the operator, in the process that asked.
 * Enters with: a descriptor of the tree's root.
 * Leaves:      nothing; holds one directory open at a time.
 * Must not:    follow a symlink, cross a mount, wake an automount, open what is not a directory,
 *              go on without end.
 *
 * Directories that were seen wait in a queue as paths below the root, and each is opened from the
 * root when its turn comes: a tree that is changed meanwhile can hide things, not lead out.
 */
#include "check/check_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"

#define ARENA_MAX ((size_t)16 * 1024 * 1024)

/* A directory to be looked at. */
struct place {
	struct place *next;
	const char *path;
	unsigned depth;
};

struct name {
	const char *text;
	unsigned char type; /* DT_… */
};

struct walk {
	int root_fd;
	uint64_t mount; /* of the root */
	size_t *left;
	check_visit *visit;
	void *visitor;
	struct arena arena; /* names and places */
	struct place *first, **last;
	struct name *names; /* of the directory that is open, and room for more */
	size_t count, room;
	bool is_cut;
};

static void walk_done(struct walk *w)
{
	arena_done(&w->arena);
	free(w->names);
}

/* What tells one mount from another: its id, or the file system where the kernel gives none. */
static uint64_t mount_of(const struct statx *st)
{
	if (st->stx_mask & STATX_MNT_ID)
		return st->stx_mnt_id;
	return (uint64_t)st->stx_dev_major << 32 | st->stx_dev_minor;
}

static bool walk_look_at(int dir_fd, const char *name, struct statx *ret)
{
	return statx(dir_fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH,
		       STATX_TYPE | STATX_MNT_ID, ret) == 0;
}

static void walk_add_place(struct walk *w, const char *dir, const char *name, unsigned depth)
{
	struct place *place = arena_alloc(&w->arena, sizeof(*place));

	if (place)
		place->path = arena_printf(&w->arena, "%s%s%s", dir, *dir ? "/" : "", name);
	if (!place || !place->path || depth > CHECK_MAX_DEPTH) {
		w->is_cut = true;
		return;
	}
	place->depth = depth;
	*w->last = place;
	w->last = &place->next;
}

static bool walk_add_name(struct walk *w, const struct dirent *d)
{
	struct name name = { arena_copy(&w->arena, d->d_name, strlen(d->d_name)), d->d_type };

	if (w->count == w->room) {
		size_t room = w->room ? w->room * 2 : 256;
		struct name *grown = reallocarray(w->names, room, sizeof(*grown));

		if (!grown)
			return false;
		w->names = grown;
		w->room = room;
	}
	if (!name.text)
		return false;
	w->names[w->count++] = name;
	return true;
}

static int walk_compare_names(const void *a, const void *b)
{
	return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

/* The names in a directory, as many as may still be visited, sorted. */
static void walk_read_names(struct walk *w, DIR *dir)
{
	const struct dirent *d;

	w->count = 0;
	/* cppcheck-suppress readdirCalled ; nobody else reads this directory */
	while ((d = readdir(dir)) != NULL) {
		if (str_eq(d->d_name, ".") || str_eq(d->d_name, ".."))
			continue;
		if (w->count == *w->left || !walk_add_name(w, d)) {
			w->is_cut = true;
			break;
		}
	}
	*w->left -= w->count;
	if (w->count)
		qsort(w->names, w->count, sizeof(w->names[0]), walk_compare_names);
}

static void visit_name(struct walk *w, const struct place *at, int dir_fd, const struct name *name)
{
	struct check_entry entry = { .dir_fd = dir_fd,
		.dir = at->path,
		.name = name->text,
		.depth = at->depth,
		.type = (mode_t)DTTOIF(name->type) };

	if (name->type == DT_UNKNOWN || name->type == DT_DIR) {
		struct statx st;

		if (!walk_look_at(dir_fd, name->text, &st))
			return;
		entry.type = st.stx_mode & S_IFMT;
		entry.is_mount =
			S_ISDIR(st.stx_mode) &&
			(mount_of(&st) != w->mount || (st.stx_attributes & STATX_ATTR_AUTOMOUNT));
	}
	if (w->visit(w->visitor, &entry) && S_ISDIR(entry.type) && !entry.is_mount)
		walk_add_place(w, at->path, name->text, at->depth + 1);
}

/* NULL for what the operator may not read: a cage may not either. */
static DIR *walk_open_place(struct walk *w, const struct place *at)
{
	int fd = file_open_beneath(
		w->root_fd, *at->path ? at->path : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (dir)
		return dir;
	if (fd >= 0)
		close(fd);
	if (fd >= 0 || fd == -ENAMETOOLONG || fd == -EMFILE || fd == -ENFILE)
		w->is_cut = true;
	return NULL;
}

static void walk_look_into(struct walk *w, const struct place *at)
{
	own_dir DIR *dir = walk_open_place(w, at);

	if (!dir)
		return;
	walk_read_names(w, dir);
	for (size_t i = 0; i < w->count; i++)
		visit_name(w, at, dirfd(dir), &w->names[i]);
}

bool check_walk(int root_fd, size_t *left, check_visit *visit, void *visitor)
{
	struct place root = { .path = "" };
	own(walk) struct walk w = { .root_fd = root_fd,
		.left = left,
		.visit = visit,
		.visitor = visitor,
		.first = &root,
		.last = &root.next };
	struct statx st;

	if (!walk_look_at(root_fd, "", &st))
		return false;
	w.mount = mount_of(&st);
	arena_init(&w.arena, ARENA_MAX);
	for (const struct place *at = w.first; at; at = at->next)
		walk_look_into(&w, at);
	return !w.is_cut;
}
