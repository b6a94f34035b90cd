/*
 * A folder with HEAD, objects and refs is a repository to git, whatever its name: whoever enters it
 * and asks for the status runs what its config names. So its files are marked like those of .git.
 */
#include <fcntl.h>
#include <string.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "work/work_marks.h"
#include "work/work_open.h"
#include "work/work_scanner.h"

/* Is it there once the effects are applied? */
static bool will_be(const struct work_scan *q, const struct work_effects *x, const char *folder,
	size_t n, const char *name)
{
	own(buf) struct buf path = { .max = WORK_MAX_PATH };
	const struct work_effect *effect;
	const char *below;
	own_fd int fd = -1;
	int top;

	buf_add(&path, folder, n);
	if (n)
		buf_putc(&path, '/');
	buf_puts(&path, name);
	if (path.failed)
		return false;
	effect = work_effect_find(x, buf_text(&path), path.len);
	if (effect)
		return effect->after.type != WORK_NOTHING;
	below = buf_text(&path);
	top = work_below_of(q->git, q->below, &below);
	fd = file_open_beneath(top, below, O_PATH | O_NOFOLLOW, 0);
	return fd >= 0;
}

static bool is_repository(
	const struct work_scan *q, const struct work_effects *x, const char *folder, size_t n)
{
	return will_be(q, x, folder, n, "HEAD") && will_be(q, x, folder, n, "objects") &&
	       will_be(q, x, folder, n, "refs");
}

/* Could a rule of git's folder begin with this name? Saves most looks at the tree. */
static bool is_of_git(const char *rest)
{
	static const char *const names[] = { "config", "config.worktree", "hooks", "commondir",
		"gitdir", "info", "objects", "remotes", "branches", "modules", "worktrees" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_path_within(rest, names[i]))
			return true;
	return false;
}

static void mark_one(
	const struct work_scan *q, const struct work_effects *x, struct work_effect *one)
{
	for (const char *rest = one->path; rest; rest = strchr(rest, '/')) {
		size_t n = (size_t)(rest - one->path);
		enum work_mark mark;

		rest += *rest == '/';
		mark = is_of_git(rest) || one->after.type == WORK_LINK
			       ? work_mark_in_git(rest, one->after.type)
			       : WORK_PLAIN;
		if (mark <= one->mark || !is_repository(q, x, one->path, n))
			continue;
		one->mark = mark;
		one->note = one->note ? one->note : "git takes its folder for a repository";
	}
}

void work_mark_bare(const struct work_scan *q, struct work_effects *x)
{
	for (size_t i = 0; i < x->count; i++)
		if (x->items[i].mark < WORK_HELD)
			mark_one(q, x, &x->items[i]);
}
