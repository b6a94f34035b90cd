/*
 * check_repository_parts - what of a repository must not be taken for the project's own.
 *
 * Runs as:  the operator.
 * Reads:    git's configuration, of the repository and the operator's own; names of worktrees.
 * Must not: follow includes, or run git, which runs what a configuration names.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "check/check_git_value.h"
#include "check/check_repository_inside.h"

#define MAX_HOOKS 32

/* A list that grows in the arena, to a known maximum. */
struct list {
	const char **items;
	size_t count, max;
	bool is_short; /* something is missing in it */
};

static void add(struct check_looking *l, struct list *list, const char *text)
{
	const char *copy;

	if (!list->items)
		list->items = arena_array(l->arena, list->max, sizeof(list->items[0]));
	for (size_t i = 0; i < list->count; i++)
		if (str_eq(list->items[i], text))
			return;
	copy = list->items && list->count < list->max ? arena_copy(l->arena, text, strlen(text))
						      : NULL;
	if (copy)
		list->items[list->count++] = copy;
	else
		list->is_short = true;
}

/* --- hooks --- */

/* A path without "." and "..", by its letters; it is absolute. */
static void normalise(const char *path, char ret[static PATH_MAX])
{
	size_t n = 0;

	while (*path) {
		size_t part;

		path += strspn(path, "/");
		part = strcspn(path, "/");
		if (part == 2 && path[0] == '.' && path[1] == '.') {
			while (n > 0 && ret[--n] != '/')
				;
		} else if (part && !(part == 1 && path[0] == '.') && n + part + 2 < PATH_MAX) {
			ret[n++] = '/';
			memcpy(ret + n, path, part);
			n += part;
		}
		path += part;
	}
	ret[n] = '\0';
}

struct found {
	struct list hooks, others;
};

/* By what it is called and by where it is: hooks run from either. */
static void add_hooks(struct check_looking *l, struct found *f, const char *path)
{
	const char *project = l->project->path;

	if (str_path_within(path, project) && !str_eq(path, project))
		add(l, &f->hooks, path + strlen(project) + 1);
	else if (l->ret->folder[0] && str_path_within(path, l->common) && !str_eq(path, l->common))
		add(l, &f->others, path + strlen(l->common) + 1);
}

/* A relative one starts where git changes to before it runs them: at the top of the project. */
static void take_hooks_path(struct check_looking *l, struct found *f, const char *value)
{
	const char *base = value[0] == '~' && l->project->home ? l->project->home
			   : value[0] == '/'                   ? ""
							       : l->project->path;
	char whole[2 * PATH_MAX], path[PATH_MAX];

	snprintf(whole, sizeof(whole), "%s/%s", base, value + (value[0] == '~'));
	normalise(whole, path);
	if (value[0] == '~' && !l->project->home)
		return;
	add_hooks(l, f, path);
	if (realpath(path, whole))
		add_hooks(l, f, whole);
}

static void read_hooks(
	struct check_looking *l, struct found *f, const char *folder, const char *name)
{
	own_fd int fd = *folder ? file_open(folder, O_RDONLY | O_DIRECTORY) : -ENOENT;
	char value[PATH_MAX];
	struct check_git_values values;
	size_t n = 0;
	own_free char *config = fd < 0 ? NULL : check_read_config(fd, name, &n);

	check_git_values_init(&values, config ? config : "", n);
	while (check_git_values_next(&values, "core", "hookspath", value, sizeof(value)))
		if (*value)
			take_hooks_path(l, f, value);
}

static void find_hooks(struct check_looking *l, struct found *f)
{
	const char *home = l->project->home, *config = getenv("XDG_CONFIG_HOME");
	char folder[PATH_MAX];

	read_hooks(l, f, "/etc", "gitconfig");
	if (config && config[0] == '/')
		snprintf(folder, sizeof(folder), "%s/git", config);
	else
		snprintf(folder, sizeof(folder), "%s/.config/git", home ? home : "");
	read_hooks(l, f, folder, "config");
	read_hooks(l, f, home ? home : "", ".gitconfig");
	/* Also of a repository that is not believed: git on the host may believe it. */
	read_hooks(l, f, l->common, "config");
	read_hooks(l, f, l->common, "config.worktree");
	read_hooks(l, f, l->ret->named, "config.worktree");
}

/* --- other worktrees --- */

/* Can git in the cage find the working tree? One that it cannot find it may take for gone. */
static bool is_found_in_cage(const struct check_looking *l, int worktrees, const char *name)
{
	own_fd int folder = file_open_name(worktrees, name, O_RDONLY | O_DIRECTORY);
	char path[PATH_MAX + NAME_MAX], line[PATH_MAX], led_to[PATH_MAX];

	snprintf(path, sizeof(path), "%s/worktrees/%s", l->common, name);
	if (str_eq(path, l->ret->named))
		return true; /* the project itself */
	if (folder < 0 || check_read_line(folder, "gitdir", line) < 0 ||
		check_resolve(path, line, led_to) < 0)
		return false;
	return str_path_within(led_to, l->project->path) &&
	       (l->project->is_at_own_path || line[0] != '/');
}

static void find_worktrees(struct check_looking *l, struct list *others)
{
	char path[PATH_MAX + 16];
	own_fd int folder = -1;
	struct file_entries entries;
	const struct file_entry *entry;

	snprintf(path, sizeof(path), "%s/worktrees", l->common);
	folder = file_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	if (folder == -ENOENT)
		return;
	entries = (struct file_entries){ .fd = folder };
	while (folder >= 0 && (entry = file_next_entry(&entries))) {
		if (str_eq(entry->name, ".") || str_eq(entry->name, "..") ||
			is_found_in_cage(l, folder, entry->name))
			continue;
		snprintf(path, sizeof(path), "worktrees/%s", entry->name);
		add(l, others, path);
	}
	/* What cannot be told apart is all of it. */
	if (folder < 0 || entries.failure || others->is_short) {
		others->count = 0;
		add(l, others, "worktrees");
	}
}

void check_find_parts(struct check_looking *l)
{
	struct found f = { .hooks.max = MAX_HOOKS, .others.max = CHECK_MAX_WORKTREES };

	if (l->is_common_in_project || l->ret->folder[0])
		find_worktrees(l, &f.others);
	find_hooks(l, &f);
	l->ret->hooks = f.hooks.items;
	l->ret->hook_count = f.hooks.count;
	l->ret->others = f.others.items;
	l->ret->other_count = f.others.count;
}
