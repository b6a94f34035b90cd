/* When all are found: their order, what one means for another, and the names of the bases. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "change/scan/change_marks.h"
#include "change/scan/change_open.h"
#include "change/scan/change_scanner.h"

/*
 * A folder without its HEAD is no repository to git: what else a run removed from it, or moved, is
 * held with it. Taken over without, it would leave the host a repository that cannot be used.
 */

/* The first bytes of a path. */
struct folder {
	const char *path;
	size_t n;
};

static int heads_compare(const void *a, const void *b)
{
	const struct folder *x = a, *y = b;
	size_t n = x->n < y->n ? x->n : y->n;
	int order = memcmp(x->path, y->path, n);

	return order ? order : (x->n > y->n) - (x->n < y->n);
}

/* Where something was that is not there any more; NULL: it still is. */
static const char *gone_path(const struct change_effect *x)
{
	return x->change == CHANGE_DELETED ? x->path : x->from;
}

static bool is_in_one_of(const char *path, const struct folder *folders, size_t count)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		const struct folder folder = { path, (size_t)(slash - path) };

		if (bsearch(&folder, folders, count, sizeof(folder), heads_compare))
			return true;
	}
	return false;
}

/* What was removed from a repository together with its HEAD is held. */
static int change_hold_headless(struct change_effects *x)
{
	struct folder *folders;
	size_t count = 0;

	for (size_t i = 0; i < x->count; i++)
		count += gone_path(&x->items[i]) && change_is_head(gone_path(&x->items[i]));
	if (count == 0)
		return 0;
	folders = arena_array(&x->arena, count, sizeof(*folders));
	if (!folders)
		return -ENOMEM;
	count = 0;
	for (size_t i = 0; i < x->count; i++) {
		const char *path = gone_path(&x->items[i]);

		if (path && change_is_head(path))
			folders[count++] =
				(struct folder){ path, (size_t)(strrchr(path, '/') - path) };
	}
	qsort(folders, count, sizeof(*folders), heads_compare);
	for (size_t i = 0; i < x->count; i++) {
		const char *path = gone_path(&x->items[i]);

		if (path && x->items[i].mark < CHANGE_HELD && is_in_one_of(path, folders, count))
			x->items[i].mark = CHANGE_HELD;
	}
	return 0;
}

/*
 * A folder with HEAD, objects and refs is a repository to git, whatever its name, and so is one
 * with HEAD and commondir, which says where the others are: whoever enters it and asks for the
 * status runs what its config names. So files in what is one, or lacks a HEAD only, are marked like
 * those of .git; and what makes a repository of a folder that has such files already is held.
 */

/* Repositories in each other, of which more are nobody's work. */
#define MOST_NESTED 8

/* What is asked about folders, with the answers for those of the last path. */
struct folders {
	const struct change_scan *q;
	const struct change_effects *x;
	const char *path;
	enum {
		UNKNOWN,
		ORDINARY,
		REPOSITORY
	} known[CHANGE_MAX_PATH + 1]; /* by their length */
};

/* Is a name in a folder there: on the host, or once the effects are applied? */
static bool bare_has(
	const struct folders *f, const char *folder, size_t n, const char *name, bool is_after)
{
	own(buf) struct buf path = { .max = CHANGE_MAX_PATH };
	const struct change_effect *effect = NULL;
	const char *below;
	own_fd int fd = -1;
	int top;

	buf_add(&path, folder, n);
	if (n)
		buf_putc(&path, '/');
	buf_puts(&path, name);
	if (path.failed)
		return false;
	if (is_after)
		effect = change_effect_find(f->x, buf_text(&path), path.len);
	if (effect)
		return effect->after.type != CHANGE_NOTHING;
	below = buf_text(&path);
	top = change_below_of(f->q->git, f->q->below, &below);
	fd = file_open_beneath(top, below, O_PATH | O_NOFOLLOW, 0);
	return fd >= 0;
}

static bool is_repository(const struct folders *f, const char *folder, size_t n, bool is_after)
{
	return (bare_has(f, folder, n, "objects", is_after) &&
		       bare_has(f, folder, n, "refs", is_after)) ||
	       (bare_has(f, folder, n, "commondir", is_after) &&
		       bare_has(f, folder, n, "HEAD", is_after));
}

/* Will the first n bytes of f->path be one? */
static bool will_be_repository(struct folders *f, size_t n)
{
	if (f->known[n] == UNKNOWN)
		f->known[n] = is_repository(f, f->path, n, true) ? REPOSITORY : ORDINARY;
	return f->known[n] == REPOSITORY;
}

/* The answers for folders that both paths are in stay. */
static void bare_go_to(struct folders *f, const char *path)
{
	size_t n = 0;

	while (path[n] && path[n] == f->path[n])
		n++;
	memset(f->known + n, 0, sizeof(f->known) - n * sizeof(f->known[0]));
	f->path = path;
}

static bool is_within_one_of(const char *path, const char *const *names)
{
	for (; *names; names++)
		if (str_path_within(path, *names))
			return true;
	return false;
}

/* With which a rule of git's folder begins. */
static const char *const ruled[] = { "config", "config.worktree", "hooks", "commondir", "gitdir",
	"info", "objects", "remotes", "branches", "modules", "worktrees", NULL };

/* By which git knows a repository. */
static const char *const telling[] = { "HEAD", "objects", "refs", "commondir", NULL };

/* Does the host have something in the folder that a repository would obey? */
static bool has_ruled(const struct folders *f, size_t n)
{
	for (const char *const *name = ruled; *name; name++)
		if (bare_has(f, f->path, n, *name, false))
			return true;
	return false;
}

/* The mark of what comes in a folder of n bytes that will be a repository. */
static enum change_mark mark_in(const struct folders *f, const struct change_effect *one, size_t n)
{
	const char *rest = one->path + n + (n > 0);
	enum change_mark mark = change_mark_in_git(rest, one->after.type);

	if (mark < CHANGE_HELD && one->after.type != CHANGE_NOTHING &&
		is_within_one_of(rest, telling) && !is_repository(f, f->path, n, false) &&
		has_ruled(f, n))
		mark = CHANGE_HELD;
	return mark;
}

/* The mark of the name it has now: what a renaming is held for may be the old one alone. */
static enum change_mark mark_of_new(const struct folders *f, const struct change_effect *one)
{
	struct change_effect now = *one;

	now.from = NULL;
	return one->from ? change_mark_effect(&now, f->q->held, f->q->held_count) : one->mark;
}

static void mark_one(struct folders *f, struct change_effect *one)
{
	enum change_mark gravest = mark_of_new(f, one);
	unsigned nested = 0;

	bare_go_to(f, one->path);
	for (const char *rest = one->path; rest && gravest < CHANGE_HELD;
		rest = strchr(rest, '/')) {
		size_t n = (size_t)(rest - one->path);
		enum change_mark mark;

		rest += *rest == '/';
		/* Saves most looks at the tree. */
		if (one->after.type != CHANGE_LINK && !is_within_one_of(rest, ruled) &&
			!is_within_one_of(rest, telling))
			continue;
		if (!will_be_repository(f, n))
			continue;
		mark = ++nested > MOST_NESTED ? CHANGE_HELD : mark_in(f, one, n);
		if (mark <= gravest)
			continue;
		gravest = mark;
		one->note = one->note ? one->note : "git takes its folder for a repository";
	}
	if (gravest > one->mark)
		one->mark = gravest;
}

/* Files of folders that git would take for repositories are marked like .git's. */
static int change_mark_bare(const struct change_scan *q, struct change_effects *x)
{
	struct folders *f = arena_alloc(&x->arena, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->q = q;
	f->x = x;
	f->path = "";
	for (size_t i = 0; i < x->count; i++)
		if (x->items[i].mark < CHANGE_HELD || x->items[i].from)
			mark_one(f, &x->items[i]);
	return 0;
}

static int compare_found(const void *a, const void *b)
{
	const struct change_found *x = a, *y = b;

	return strcmp(x->x.path, y->x.path);
}

struct change_effect *change_effect_find(const struct change_effects *x, const char *path, size_t n)
{
	size_t first = 0, last = x->count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;
		const char *other = x->items[middle].path;
		int order = strncmp(path, other, n);

		if (order == 0)
			order = other[n] ? -1 : 0;
		if (order == 0)
			return &x->items[middle];
		if (order < 0)
			last = middle;
		else
			first = middle + 1;
	}
	return NULL;
}

/* The effect of the folder that a path of n bytes is in; *ret_size is the length of its path. */
static struct change_effect *folder_of(
	const struct change_effects *x, const char *path, size_t n, size_t *ret_size)
{
	const char *slash = memrchr(path, '/', n);

	*ret_size = slash ? (size_t)(slash - path) : 0;
	return slash ? change_effect_find(x, path, *ret_size) : NULL;
}

/* Folders above that come, or go, with it: `is_old` for a path that is there no more. */
static void imply_folders(const struct change_effects *x, const char *path, bool is_old)
{
	size_t n = strlen(path);
	struct change_effect *folder;

	while ((folder = folder_of(x, path, n, &n))) {
		if (folder->change != (is_old ? CHANGE_DELETED : CHANGE_ADDED) ||
			folder->is_implied)
			break;
		folder->is_implied = true;
	}
}

/* A folder that is gone took with it what is held: then it is held itself. */
static void hold_folders(const struct change_effects *x, const char *path)
{
	size_t n = strlen(path);
	struct change_effect *folder;

	while ((folder = folder_of(x, path, n, &n))) {
		if (folder->before.type != CHANGE_FOLDER || folder->after.type == CHANGE_FOLDER)
			break;
		if (folder->mark < CHANGE_HELD)
			folder->mark = CHANGE_HELD;
	}
}

static int mark_all(const struct change_scan *q, struct change_effects *x)
{
	int r;

	for (size_t i = 0; i < x->count; i++) {
		struct change_effect *effect = &x->items[i];

		effect->mark = change_mark_effect(effect, q->held, q->held_count);
		if (effect->after.type == CHANGE_LINK && !effect->note)
			effect->note = change_mark_link_reason(effect->path);
	}
	r = change_mark_bare(q, x);
	if (r == 0)
		r = change_hold_headless(x);
	for (size_t i = 0; i < x->count; i++) {
		struct change_effect *effect = &x->items[i];
		const char *old = effect->from ? effect->from : effect->path;
		bool is_gone = effect->change == CHANGE_DELETED || effect->from;

		if (effect->mark >= CHANGE_HELD && is_gone)
			hold_folders(x, old);
		if (effect->from)
			imply_folders(x, effect->from, true);
		imply_folders(x, effect->path, effect->change == CHANGE_DELETED);
	}
	return r;
}

/* What the effects were made of is found by their index, which is known only now. */
static int name_base(struct change_scanner *s, const struct change_found *found, size_t *rows)
{
	const struct change_base_row row = {
		.index = s->ret->count - 1,
		.at = found->base_at,
		.size = found->x.before.size,
	};

	if (!found->x.has_base)
		return 0;
	++*rows;
	return change_base_name(&s->base, &row);
}

int change_finish(struct change_scanner *s)
{
	struct change_effects *x = s->ret;
	size_t rows = 0;
	int r;

	if (s->count)
		qsort(s->found, s->count, sizeof(*s->found), compare_found);
	r = change_find_renames(s);
	if (r < 0)
		return r;
	x->count = 0;
	x->items = arena_array(&x->arena, s->count, sizeof(*x->items));
	if (!x->items)
		return change_refuse_size(s);
	for (size_t i = 0; r == 0 && i < s->count; i++) {
		if (s->found[i].is_dropped)
			continue;
		x->items[x->count++] = s->found[i].x;
		r = name_base(s, &s->found[i], &rows);
	}
	if (r == 0)
		r = change_base_finish(&s->base, rows);
	if (r < 0)
		return err_sys(s->e, -r, "cannot keep what the changed files were");
	if (mark_all(s->q, x) < 0)
		return change_refuse_size(s);
	change_digest(x, x->digest);
	return 0;
}
