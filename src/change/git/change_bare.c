/*
 * A folder with HEAD, objects and refs is a repository to git, whatever its name, and so is one
 * with HEAD and commondir, which says where the others are: whoever enters it and asks for the
 * status runs what its config names. So files in what is one, or lacks a HEAD only, are marked like
 * those of .git; and what makes a repository of a folder that has such files already is held.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "change/scan/change_marks.h"
#include "change/scan/change_open.h"
#include "change/scan/change_scanner.h"

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

int change_mark_bare(const struct change_scan *q, struct change_effects *x)
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
