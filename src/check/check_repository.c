/*
 * check_repository - finds the folder of git that a project's .git names, and asks whether that is
 * true.
 *
 * Runs as:     the operator.
 * Enters with: a project, whose .git may be a stranger's.
 * Leaves:      the folder, if it says itself that the project is its working tree; otherwise why
 *              not, in half a sentence.
 * Must not:    believe the project; take what belongs to somebody else; follow includes of git's
 *              configuration, or run git, which runs what a configuration names; write; wait.
 *
 * A file in a project can name any folder. What it cannot do is write into one that it was not
 * unpacked into: so the pointer back counts, and what is pointed to must be of git's making by its
 * form, its name and its owner. The name matters because who unpacks an archive in his folder of
 * projects could get HEAD, objects and refs right there.
 */
#include "check/check_repository.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "check/check_git.h"

#define MAX_CONFIG ((size_t)1 << 20)

struct check_looking {
	const struct check_project *project;
	struct arena *arena;
	struct check_repository *ret;
	struct stat owner;         /* of the project */
	char pointer[PATH_MAX];    /* what .git says; "": it is a folder */
	char common[PATH_MAX];     /* what all worktrees share */
	bool is_common_in_project; /* and needs no place of its own in the cage */
};

/* --- files --- */

static int open_file(int folder, const char *name)
{
	own_fd int fd = file_open_name(folder, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)))
		return -EINVAL;
	return take_fd(&fd);
}

/* The one line of a small file in an open folder; not through a link. 0 or -errno. */
static int check_read_line(int folder, const char *name, char ret[static PATH_MAX])
{
	own_fd int fd = open_file(folder, name);
	ssize_t n = file_read_text(fd, ret, PATH_MAX);

	if (n < 0)
		return (int)n;
	while (n > 0 && (ret[n - 1] == '\n' || ret[n - 1] == '\r'))
		ret[--n] = '\0';
	/* Nothing, more than a path, or more than text. */
	return n == 0 || n == PATH_MAX - 1 || strlen(ret) != (size_t)n ? -EINVAL : 0;
}

/* Resolves a path that a file of `folder` names. 0 or -errno. */
static int check_resolve(const char *folder, const char *path, char ret[static PATH_MAX])
{
	char whole[2 * PATH_MAX];

	snprintf(whole, sizeof(whole), "%s/%s", folder, path);
	return realpath(path[0] == '/' ? path : whole, ret) ? 0 : -errno;
}

/*
 * All of a file of git's configuration, ended with a NUL; NULL where there is none. Caller frees.
 */
static char *check_read_config(int folder, const char *name, size_t *ret_size)
{
	own_fd int fd = file_open_name(folder, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	char *bytes = NULL;

	return fd >= 0 && file_read_regular(fd, MAX_CONFIG, &bytes, ret_size) == 0 ? bytes : NULL;
}

/* --- lists of what must not be taken for the project's own --- */

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

/* Adds a path by its spelling and by its real place: git finds it by either. */
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

static void repository_parts_take_config(
	struct check_looking *l, struct found *f, const char *folder, const char *config, size_t n)
{
	char value[PATH_MAX];
	struct check_git_values values;

	check_git_values_init(&values, config, n);
	while (check_git_values_any(&values, value, sizeof(value)))
		if (*value)
			repository_parts_take_setting(l, f, &values, folder, value);
}

static void repository_parts_read_config(
	struct check_looking *l, struct found *f, const char *folder, const char *name)
{
	char path[2 * PATH_MAX];
	size_t n = 0;
	own_free char *config = NULL;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (*folder)
		config = check_read_config(AT_FDCWD, path, &n);
	if (config)
		repository_parts_take_config(l, f, folder, config, n);
}

void check_read_own_config(struct check_own_config *c, const char *home, struct arena *arena)
{
	static const char *const names[] = { "gitconfig", "config", ".gitconfig" };
	const char *config = getenv("XDG_CONFIG_HOME");

	if (c->is_read)
		return;
	*c = (struct check_own_config){ .is_read = true, .files[0].folder = "/etc" };
	if (config && config[0] == '/')
		c->files[1].folder = arena_printf(arena, "%s/git", config);
	else if (home)
		c->files[1].folder = arena_printf(arena, "%s/.config/git", home);
	c->files[2].folder = home;
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		char path[PATH_MAX + 16];
		own_fd int fd = -1;
		own_free char *text = NULL;

		if (!c->files[i].folder)
			continue;
		snprintf(path, sizeof(path), "%s/%s", c->files[i].folder, names[i]);
		fd = file_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
		if (fd >= 0 && file_read_regular(fd, MAX_CONFIG, &text, &c->files[i].size) == 0)
			c->files[i].text = arena_copy(arena, text, c->files[i].size);
	}
}

static void find_obeyed(struct check_looking *l, struct found *f)
{
	struct check_own_config *own = l->project->own;

	check_read_own_config(own, l->project->home, l->arena);
	for (size_t i = 0; i < COUNT_OF(own->files); i++)
		if (own->files[i].text)
			repository_parts_take_config(
				l, f, own->files[i].folder, own->files[i].text, own->files[i].size);
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
	/* Without names nothing can be told apart: all of it counts. */
	if (folder < 0 || entries.failure || others->is_short) {
		others->count = 0;
		repository_parts_add_other(l, others, "worktrees");
	}
}

/* Files of the worktree's own folder that say where the rest is, or how git works. */
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

/* Sets ret->hooks and ret->others. */
static void check_find_parts(struct check_looking *l)
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

static const char own_path[] = "project.cage: project has it there";

__attribute__((format(printf, 3, 4))) static void doubt(
	struct check_looking *l, const char *hint, const char *fmt, ...)
{
	char why[2 * PATH_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	l->ret->why = arena_copy(l->arena, why, strlen(why));
	if (!l->ret->why)
		l->ret->why = "there is no memory to look at it";
	l->ret->hint = hint;
}

/* --- what is git's by form and owner --- */

static bool is_of_type(int folder, const char *name, mode_t type)
{
	struct stat st;

	return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (st.st_mode & S_IFMT) == type;
}

/* The operator's, or for root whoever's the project is. */
static bool is_owner_right(const struct check_looking *l, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	return st.st_uid == geteuid() || (geteuid() == 0 && st.st_uid == l->owner.st_uid);
}

/* --- what .git says --- */

/* Takes the last part off; false where there is no other. */
static bool cut_name(char *path, const char **ret_name)
{
	char *slash = strrchr(path, '/');

	if (!slash || slash == path)
		return false;
	*slash = '\0';
	*ret_name = slash + 1;
	return true;
}

static bool read_pointer(struct check_looking *l, int project)
{
	static const char head[] = "gitdir: ";
	char line[PATH_MAX];

	if (check_read_line(project, ".git", line) < 0 || !str_starts(line, head)) {
		doubt(l, NULL, "the file .git is not one of git's");
		return false;
	}
	snprintf(l->pointer, sizeof(l->pointer), "%s", line + strlen(head));
	if (check_resolve(l->project->path, l->pointer, l->ret->named) == 0)
		return true;
	doubt(l, NULL, ".git names %s, which cannot be found", l->pointer);
	return false;
}

/* --- what it names --- */

/* NAME/gitdir is the .git of this project, and what is shared is two folders up. */
static bool is_worktree_of_ours(struct check_looking *l, int named)
{
	char line[PATH_MAX], led_to[PATH_MAX], own[PATH_MAX + 8];
	const char *name = "";

	snprintf(l->common, sizeof(l->common), "%s", l->ret->named);
	for (int i = 0; i < 2; i++)
		if (!cut_name(l->common, &name))
			return false;
	if (!str_eq(name, "worktrees"))
		return false;
	if (check_read_line(named, "commondir", line) < 0 ||
		check_resolve(l->ret->named, line, led_to) < 0 || !str_eq(led_to, l->common))
		return false;
	snprintf(own, sizeof(own), "%s/.git", l->project->path);
	return check_read_line(named, "gitdir", line) == 0 &&
	       check_resolve(l->ret->named, line, led_to) == 0 && str_eq(led_to, own);
}

/* core.worktree is this project: the last one counts. */
static bool is_module_of_ours(struct check_looking *l, int named)
{
	char value[PATH_MAX], led_to[PATH_MAX];
	struct check_git_values values;
	bool is_ours = false;
	size_t n = 0;
	own_free char *config = check_read_config(named, "config", &n);

	snprintf(l->common, sizeof(l->common), "%s", l->ret->named);
	check_git_values_init(&values, config ? config : "", n);
	while (check_git_values_next(&values, "core", "worktree", value, sizeof(value)))
		is_ours = check_resolve(l->ret->named, value, led_to) == 0 &&
			  str_eq(led_to, l->project->path);
	return is_ours;
}

/* True if the path is, or is below, a folder with the name of a git folder. */
static bool is_gits_by_name(const char *path)
{
	while (*path) {
		size_t n = strcspn(path, "/");

		if ((n >= 4 && memcmp(path + n - 4, ".git", 4) == 0) ||
			(n == 5 && memcmp(path, ".bare", 5) == 0))
			return true;
		path += n + (path[n] == '/');
	}
	return false;
}

static bool is_gits_by_form(int folder)
{
	return is_of_type(folder, "HEAD", S_IFREG) && is_of_type(folder, "objects", S_IFDIR) &&
	       is_of_type(folder, "refs", S_IFDIR);
}

static bool is_believed(struct check_looking *l, int named)
{
	bool is_worktree = is_of_type(named, "commondir", S_IFREG);
	bool points_back =
		is_worktree ? is_worktree_of_ours(l, named) : is_module_of_ours(l, named);
	own_fd int common = points_back ? file_open_real(l->common, O_RDONLY | O_DIRECTORY) : -1;
	own_fd int back = open_file(named, is_worktree ? "gitdir" : "config");

	if (!points_back)
		doubt(l, "if it is yours, bind it at its own path",
			".git names %s, where nothing says that this is its working tree",
			l->ret->named);
	else if (common < 0 || !is_of_type(named, "HEAD", S_IFREG) || !is_gits_by_form(common) ||
		 !is_gits_by_name(l->common))
		doubt(l, NULL, ".git names %s, which is not a folder of git's", l->ret->named);
	else if (back < 0 || !is_owner_right(l, named) || !is_owner_right(l, common) ||
		 !is_owner_right(l, back))
		doubt(l, NULL, ".git names %s, which belongs to somebody else", l->ret->named);
	else
		return true;
	return false;
}

/* --- where it would be in the cage --- */

static bool are_apart(const char *a, const char *b)
{
	return !str_path_within(a, b) && !str_path_within(b, a);
}

/* Paths of the host lead there in the cage as well, if nothing else is in the way. */
static bool repository_has_place(struct check_looking *l)
{
	static const char *const taken[] = { "/dev", "/proc", "/sys" };
	const struct check_project *p = l->project;
	bool is_module = str_eq(l->ret->named, l->common);

	for (size_t i = 0; i < COUNT_OF(taken); i++)
		if (str_path_within(l->common, taken[i])) {
			doubt(l, NULL, "its folder %s cannot be shown there", l->common);
			return false;
		}
	if (p->is_at_own_path)
		return true;
	if (is_module || l->pointer[0] != '/' || !are_apart(l->common, p->path))
		doubt(l, own_path,
			"its folder %s is found only from where the project is on the host",
			l->common);
	else if (!are_apart(l->common, p->at))
		doubt(l, "project.cage: project, or another project.at",
			"its folder %s is where the cage has the project", l->common);
	else
		return true;
	l->ret->wants_own_path = true;
	return false;
}

static void look_outside(struct check_looking *l)
{
	own_fd int named = file_open_real(l->ret->named, O_RDONLY | O_DIRECTORY);

	if (named < 0)
		doubt(l, NULL, ".git names %s, which cannot be opened", l->ret->named);
	else if (is_believed(l, named) && repository_has_place(l))
		memcpy(l->ret->folder, l->common, sizeof(l->common));
	l->ret->holds_project = l->ret->folder[0] && str_path_within(l->project->path, l->common);
}

/* .git is a file; with a path of the host the folder is somewhere else in the cage. */
static void look_behind_pointer(struct check_looking *l, int project)
{
	if (!read_pointer(l, project))
		return;
	if (!str_path_within(l->ret->named, l->project->path)) {
		look_outside(l);
		return;
	}
	snprintf(l->common, sizeof(l->common), "%s", l->ret->named);
	l->is_common_in_project = true;
	if (l->pointer[0] == '/' && !l->project->is_at_own_path)
		doubt(l, own_path, ".git names %s, a path of the host", l->pointer);
}

/* .git is a folder, or a link. */
static void repository_look_inside(struct check_looking *l, bool is_folder)
{
	/* The project's path has no links. */
	if (is_folder)
		snprintf(l->common, sizeof(l->common), "%.*s/.git", PATH_MAX - 8, l->project->path);
	else if (check_resolve(l->project->path, ".git", l->common) < 0)
		return;
	l->is_common_in_project = str_path_within(l->common, l->project->path);
	if (!l->is_common_in_project)
		doubt(l, NULL, ".git is a link out of the project, to %s", l->common);
}

void check_repository(
	const struct check_project *project, struct arena *arena, struct check_repository *ret)
{
	struct check_looking l = { .project = project, .arena = arena, .ret = ret };
	char path[PATH_MAX + 8];
	own_fd int top = -1;
	struct stat git;

	*ret = (struct check_repository){ 0 };
	snprintf(path, sizeof(path), "%s/.git", project->path);
	if (lstat(path, &git) < 0)
		return;
	if (S_ISREG(git.st_mode)) {
		top = file_open_real(project->path, O_RDONLY | O_DIRECTORY);
		if (top < 0 || fstat(top, &l.owner) < 0)
			return;
		look_behind_pointer(&l, top);
	} else {
		repository_look_inside(&l, S_ISDIR(git.st_mode));
	}
	check_find_parts(&l);
}
