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

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "check/check_git_value.h"
#include "check/check_repository_inside.h"

/* A list that grows in the arena, to a known maximum. */
struct list {
	const char **items;
	size_t count, max;
	bool is_short; /* something is missing in it */
};

static void repository_parts_add(struct check_looking *l, struct list *list, const char *text)
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

/* A path in git's folder, as effects have it. */
static void repository_parts_add_other(
	struct check_looking *l, struct list *others, const char *path)
{
	char text[2 * PATH_MAX + 16];

	snprintf(text, sizeof(text), ".git/%s", path);
	repository_parts_add(l, others, text);
}

/* --- what git runs or obeys --- */

/* A path without "." and "..", by its letters; it is absolute. */
static void repository_parts_normalise(const char *path, char ret[static PATH_MAX])
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

/* By what it is called and by where it is: git finds it by either. */
static void repository_parts_add_part(struct check_looking *l, struct found *f, const char *path)
{
	const char *project = l->project->path;

	if (str_path_within(path, project) && !str_eq(path, project))
		repository_parts_add(l, &f->hooks, path + strlen(project) + 1);
	else if (l->ret->folder[0] && str_path_within(path, l->common) && !str_eq(path, l->common))
		repository_parts_add_other(l, &f->others, path + strlen(l->common) + 1);
}

/* A path in a configuration, made whole; `base` is where a relative one begins. */
static bool find_whole(const struct check_looking *l, const char *base, const char *value,
	char ret[static PATH_MAX])
{
	char whole[2 * PATH_MAX];

	if (value[0] == '~' && !l->project->home)
		return false;
	if (value[0] == '~')
		base = l->project->home;
	else if (value[0] == '/')
		base = "";
	snprintf(whole, sizeof(whole), "%s/%s", base, value + (value[0] == '~'));
	repository_parts_normalise(whole, ret);
	return true;
}

static void take_path(struct check_looking *l, struct found *f, const char *base, const char *value)
{
	char path[PATH_MAX], led_to[PATH_MAX];

	if (!find_whole(l, base, value, path))
		return;
	repository_parts_add_part(l, f, path);
	if (realpath(path, led_to))
		repository_parts_add_part(l, f, led_to);
}

/* Git changes there before it runs anything, or looks for it. */
static void take_from_top(struct check_looking *l, struct found *f, const char *folder, char *value)
{
	(void)folder;
	take_path(l, f, l->project->path, value);
}

static void take_from_config(
	struct check_looking *l, struct found *f, const char *folder, char *value)
{
	take_path(l, f, folder, value);
}

/*
 * A shell's line: any word of it may be the program, or what the program runs. A word without "/"
 * is one only if there is such a file at the top, and a folder is none: "status" is rather git's.
 */
static void take_command(struct check_looking *l, struct found *f, const char *folder, char *value)
{
	char *rest = value, path[PATH_MAX];
	const char *word;

	(void)folder;
	while ((word = strsep(&rest, " \t\n\"'`;&|()<>=!"))) {
		struct stat st;
		bool is_there;

		if (!*word || !find_whole(l, l->project->path, word, path))
			continue;
		is_there = stat(path, &st) == 0;
		if (is_there ? S_ISREG(st.st_mode) : strchr(word, '/') != NULL)
			take_path(l, f, l->project->path, word);
	}
}

/*
 * Settings that name what git runs or obeys. With or without a subsection: where git knows them
 * only without, they are held for nothing.
 */
static const struct setting {
	const char *section, *key; /* in small letters; NULL: any */
	void (*take)(struct check_looking *l, struct found *f, const char *folder, char *value);
} settings[] = {
	{ "alias", NULL, take_command },
	{ "core", "alternaterefscommand", take_command },
	{ "core", "askpass", take_command },
	{ "core", "attributesfile", take_from_top },
	{ "core", "editor", take_command },
	{ "core", "fsmonitor", take_command },
	{ "core", "gitproxy", take_command },
	{ "core", "hookspath", take_from_top },
	{ "core", "pager", take_command },
	{ "core", "sshcommand", take_command },
	{ "credential", "helper", take_command },
	{ "diff", "command", take_command },
	{ "diff", "external", take_command },
	{ "diff", "textconv", take_command },
	{ "difftool", "cmd", take_command },
	{ "difftool", "path", take_command },
	{ "filter", "clean", take_command },
	{ "filter", "process", take_command },
	{ "filter", "smudge", take_command },
	{ "gpg", "program", take_command },
	{ "include", "path", take_from_config },
	{ "includeif", "path", take_from_config },
	{ "interactive", "difffilter", take_command },
	{ "merge", "driver", take_command },
	{ "mergetool", "cmd", take_command },
	{ "mergetool", "path", take_command },
	{ "pager", NULL, take_command },
	{ "remote", "receivepack", take_command },
	{ "remote", "uploadpack", take_command },
	{ "sequence", "editor", take_command },
	{ "submodule", "update", take_command },
};

static void repository_parts_take_setting(struct check_looking *l, struct found *f,
	const struct check_git_values *v, const char *folder, char *value)
{
	for (size_t i = 0; i < COUNT_OF(settings); i++)
		if (str_eq(settings[i].section, v->section) &&
			(!settings[i].key || str_eq(settings[i].key, v->key))) {
			settings[i].take(l, f, folder, value);
			return;
		}
}

static void repository_parts_read_config(
	struct check_looking *l, struct found *f, const char *folder, const char *name)
{
	own_fd int fd = *folder ? file_open(folder, O_RDONLY | O_DIRECTORY) : -ENOENT;
	char value[PATH_MAX];
	struct check_git_values values;
	size_t n = 0;
	own_free char *config = fd < 0 ? NULL : check_read_config(fd, name, &n);

	check_git_values_init(&values, config ? config : "", n);
	while (check_git_values_any(&values, value, sizeof(value)))
		if (*value)
			repository_parts_take_setting(l, f, &values, folder, value);
}

static void find_obeyed(struct check_looking *l, struct found *f)
{
	const char *home = l->project->home, *config = getenv("XDG_CONFIG_HOME");
	char folder[PATH_MAX];

	repository_parts_read_config(l, f, "/etc", "gitconfig");
	if (config && config[0] == '/')
		snprintf(folder, sizeof(folder), "%s/git", config);
	else
		snprintf(folder, sizeof(folder), "%s/.config/git", home ? home : "");
	repository_parts_read_config(l, f, folder, "config");
	repository_parts_read_config(l, f, home ? home : "", ".gitconfig");
	/* Also of a repository that is not believed: git on the host may believe it. */
	repository_parts_read_config(l, f, l->common, "config");
	repository_parts_read_config(l, f, l->common, "config.worktree");
	repository_parts_read_config(l, f, l->ret->named, "config.worktree");
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
		repository_parts_add_other(l, others, path);
	}
	/* What cannot be told apart is all of it. */
	if (folder < 0 || entries.failure || others->is_short) {
		others->count = 0;
		repository_parts_add_other(l, others, "worktrees");
	}
}

/* What in the worktree's own folder says where the rest is, or how git works. */
static void find_own(struct check_looking *l, struct list *others)
{
	static const char *const names[] = { "commondir", "config.worktree", "gitdir" };
	size_t n = strlen(l->common);
	char path[2 * PATH_MAX];

	for (size_t i = 0; i < COUNT_OF(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", l->ret->named + n + 1, names[i]);
		if (!str_eq(l->ret->named, l->common))
			repository_parts_add_other(l, others, path);
	}
}

void check_find_parts(struct check_looking *l)
{
	struct found f = { .hooks.max = CHECK_MAX_HOOKS, .others.max = CHECK_MAX_WORKTREES };

	if (l->is_common_in_project || l->ret->folder[0])
		find_worktrees(l, &f.others);
	if (l->ret->folder[0])
		find_own(l, &f.others);
	find_obeyed(l, &f);
	l->ret->hooks = f.hooks.items;
	l->ret->hook_count = f.hooks.count;
	l->ret->has_more = f.hooks.is_short;
	l->ret->others = f.others.items;
	l->ret->other_count = f.others.count;
}
