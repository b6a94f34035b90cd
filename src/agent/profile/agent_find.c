/*
 * agent_find - the program of an agent, wherever it was installed.
 *
 * Runs as:  the operator, before anything is planned.
 * Reads:    the folders of $PATH and those in which npm and installers put programs; of the
 *           program itself its first line.
 * Must not: run anything; choose what a relative entry of $PATH leads to, or one in the project:
 *           whoever wrote that would choose a program, and by a link what else is shown.
 *
 * In the cage a program of the host's /usr is where it always is. Others are shown below
 * AGENT_PLACE, because a path of the operator's home would tell whose it is: a script of npm's with
 * the folder of its package, or all of node_modules where the profile names none; anything else as
 * the one file that it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/profile/agent.h"
#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "host/host.h"

/* Folders that installers use in addition to $PATH. */
static const char *const usual[] = { "~/.local/bin", "~/.npm-global/bin", "~/.bun/bin",
	"~/.opencode/bin", "~/.volta/bin" };

static bool find_is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/*
 * The part of a path that one repository holds: up to the outermost folder with a .git, below the
 * home. Who wrote a part of it may have written all of it.
 */
static size_t repository_part(const char *folder, const char *home)
{
	char path[PATH_MAX], git[PATH_MAX + 8];
	size_t ret = strlen(folder);

	for (size_t n = ret; n > 0 && n < sizeof(path);) {
		struct stat st;

		snprintf(path, sizeof(path), "%.*s", (int)n, folder);
		snprintf(git, sizeof(git), "%s/.git", path);
		if (home && str_path_within(home, path))
			break;
		if (lstat(git, &st) == 0)
			ret = n;
		while (n > 0 && folder[--n] != '/')
			;
	}
	return ret;
}

/*
 * Is a real path the project's, or of the repository that it or the current folder is in? Shells
 * that were prepared for a project have its node_modules/.bin, or the bin of its venv, in $PATH.
 * Where the home itself is the project, the programs in it are meant.
 */
static bool is_projects(const char *real, const struct agent_search *where)
{
	const char *const folders[] = { where->project, where->here };

	for (size_t i = 0; i < COUNT_OF(folders); i++) {
		char top[PATH_MAX];

		if (!folders[i] || (where->home && str_path_within(where->home, folders[i])))
			continue;
		snprintf(top, sizeof(top), "%.*s", (int)repository_part(folders[i], where->home),
			folders[i]);
		if (str_path_within(real, top))
			return true;
	}
	return false;
}

/* A program in a folder, by its name there and really; false: it is not there. */
static bool look_in(const char *folder, size_t n, const char *program,
	const struct agent_search *where, char path[static PATH_MAX], char ret[static PATH_MAX])
{
	char dir[PATH_MAX], real[PATH_MAX];

	/*
	 * A relative one means another folder wherever one stands, and in a project the project's.
	 */
	if (n == 0 || folder[0] != '/' || n >= sizeof(dir))
		return false;
	snprintf(dir, sizeof(dir), "%.*s", (int)n, folder);
	return snprintf(path, PATH_MAX, "%s/%s", dir, program) < PATH_MAX &&
	       find_is_program(path) && realpath(dir, real) && !is_projects(real, where) &&
	       realpath(path, ret) && !is_projects(ret, where);
}

bool agent_search(const char *program, const struct agent_search *where,
	char ret_named[static PATH_MAX], char ret[static PATH_MAX])
{
	char folder[PATH_MAX];

	for (const char *p = where->path ? where->path : ""; *p;) {
		size_t n = strcspn(p, ":");

		if (look_in(p, n, program, where, ret_named, ret))
			return true;
		p += n + (p[n] == ':');
	}
	for (size_t i = 0; i < COUNT_OF(usual); i++) {
		if (!where->home || where->only_path)
			break;
		snprintf(folder, sizeof(folder), "%s%s", where->home, usual[i] + 1);
		if (look_in(folder, strlen(folder), program, where, ret_named, ret))
			return true;
	}
	return false;
}

static bool find_is_shown(const struct agent_search *where, const char *path)
{
	for (size_t i = 0; where->shows_system && i < HOST_SYSTEM_COUNT; i++)
		if (str_path_within(path, host_system_paths[i]))
			return true;
	return false;
}

/* Writes the path as a spec does, so that it is the same for every operator. */
static const char *agent_find_source(
	struct arena *arena, const struct agent_search *where, const char *path)
{
	if (where->home && !str_eq(where->home, "/") && str_path_within(path, where->home))
		return arena_printf(arena, "~%s", path + strlen(where->home));
	return arena_copy(arena, path, strlen(path));
}

static bool find_show(struct arena *arena, const struct agent_search *where, const char *from,
	const char *to, struct agent_found *ret)
{
	struct spec_bind *bind = &ret->binds[ret->bind_count++];

	bind->from = agent_find_source(arena, where, from);
	bind->to = arena_copy(arena, to, strlen(to));
	bind->is_writable = false;
	return bind->from && bind->to;
}

/*
 * What a script says after "#!": the program that runs it, by its name only, and without the env
 * that looks for it. "": it is no script.
 */
static int read_interpreter(const char *path, char ret[static 64], struct err *e)
{
	char line[256];
	own_fd int fd = file_open(path, O_RDONLY | O_NONBLOCK);
	ssize_t n = fd < 0 ? fd : file_read_text(fd, line, sizeof(line));
	char *rest = line + 2, *word;

	ret[0] = '\0';
	if (n < 0)
		return err_set(e, ERR_REFUSED, (int)-n, "cannot read the program '%s': %s", path,
			strerror((int)-n));
	if (!str_starts(line, "#!"))
		return 0;
	line[strcspn(line, "\n")] = '\0';
	for (word = strtok_r(rest, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
		const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;

		/* env, its options, and variables that it sets. */
		if (str_eq(name, "env") || name[0] == '-' || strchr(name, '='))
			continue;
		snprintf(ret, 64, "%s", name);
		return 0;
	}
	return 0;
}

/* Shows what runs a script, where it is not shown anyway; its path in the cage. */
static int show_interpreter(struct arena *arena, const char *name, const struct agent_search *where,
	char ret[static PATH_MAX], struct agent_found *found, struct err *e)
{
	char named[PATH_MAX], path[PATH_MAX];

	if (!agent_search(name, where, named, path))
		return err_hint(e,
			err_set(e, ERR_REFUSED, ENOENT,
				"cannot run '%s': '%s', its interpreter, is not installed",
				found->path, name),
			"install %s", name);
	if (find_is_shown(where, path)) {
		snprintf(ret, PATH_MAX, "%s", path);
		return 0;
	}
	snprintf(ret, PATH_MAX, AGENT_PLACE "/bin/%s", name);
	return find_show(arena, where, path, ret, found)
		       ? 0
		       : err_set(e, ERR_SYS, ENOMEM, "cannot look for '%s': out of memory", name);
}

/* The part of a path that has to be shown with a script: its package, or all of node_modules. */
static size_t outer_part(const char *path, const char *package)
{
	static const char modules[] = "/node_modules/";
	const char *first = strstr(path, modules);

	for (const char *at = first; package && at; at = strstr(at + 1, modules)) {
		const char *inside = at + strlen(modules);

		if (str_starts(inside, package) && inside[strlen(package)] == '/')
			return (size_t)(inside - path) + strlen(package);
	}
	return first ? (size_t)(first - path) + strlen(modules) - 1 : 0;
}

/* Binds a script, in its package or by itself, and sets `ret` to its path in the cage. */
static bool show_script(struct arena *arena, const struct agent_profile *p, const char *program,
	const struct agent_search *where, char ret[static PATH_MAX], struct agent_found *found)
{
	const char *path = found->path, *modules = strstr(path, "/node_modules/");
	size_t n = outer_part(path, p->package);
	char outer[PATH_MAX], inside[PATH_MAX];

	if (find_is_shown(where, path)) {
		snprintf(ret, PATH_MAX, "%s", path);
		return true;
	}
	if (!n) {
		snprintf(ret, PATH_MAX, AGENT_PLACE "/lib/%s", program);
		return find_show(arena, where, path, ret, found);
	}
	snprintf(outer, sizeof(outer), "%.*s", (int)n, path);
	return snprintf(inside, sizeof(inside), AGENT_PLACE "%s", outer + (modules - path)) <
		       (int)sizeof(inside) &&
	       snprintf(ret, PATH_MAX, AGENT_PLACE "%s", modules) < PATH_MAX &&
	       find_show(arena, where, outer, inside, found);
}

/* A word of a shell's line, whatever is in it. */
static const char *quote(struct arena *arena, const char *word)
{
	char *out = arena_alloc(arena, 4 * strlen(word) + 3), *at = out;

	if (!out)
		return NULL;
	*at++ = '\'';
	for (; *word; word++) {
		if (*word == '\'')
			at = stpcpy(at, "'\\'");
		*at++ = *word;
	}
	*at = '\'';
	return out;
}

/* A script that becomes a program of the cage, with another before it that runs it, or "". */
static int make_launcher(struct arena *arena, const char *runner, const char *program,
	struct agent_found *ret, struct err *e)
{
	const char *first = *runner ? quote(arena, runner) : "", *second = quote(arena, program);

	ret->words[0] =
		arena_copy(arena, *runner ? runner : program, strlen(*runner ? runner : program));
	ret->words[1] = *runner ? arena_copy(arena, program, strlen(program)) : NULL;
	if (first && second && ret->words[0] && (!*runner || ret->words[1]))
		ret->launcher = arena_printf(
			arena, "#!/bin/sh\nexec %s%s%s \"$@\"\n", first, *first ? " " : "", second);
	return ret->launcher ? 0
			     : err_set(e, ERR_SYS, ENOMEM, "cannot look for '%s': out of memory",
				       program);
}

static int find_script(struct arena *arena, const struct agent_profile *p, const char *program,
	const char *interpreter, const struct agent_search *where, struct agent_found *ret,
	struct err *e)
{
	char script[PATH_MAX], runner[PATH_MAX] = "";
	int r;

	if (!show_script(arena, p, program, where, script, ret))
		return err_set(e, ERR_REFUSED, ENAMETOOLONG, "cannot show '%s' in a cage: %s",
			ret->path, strerror(ENAMETOOLONG));
	r = show_interpreter(arena, interpreter, where, runner, ret, e);
	if (r < 0 || ret->bind_count == 0)
		return r;
	return make_launcher(arena, runner, script, ret, e);
}

/* --- what a package's script would start --- */

/*
 * npm puts a package's own dependencies beside it or below it. The folder of the native one, by its
 * real path, or false.
 */
static bool look_for_native(
	const char *path, const struct agent_profile *p, char ret[static PATH_MAX])
{
	char folder[PATH_MAX], file[PATH_MAX];
	const char *modules = "/node_modules/";

	for (const char *at = path; (at = strstr(at, modules)) != NULL; at++) {
		int outer = (int)(at - path) + (int)strlen(modules);
		const char *tries[] = { "", p->package ? p->package : "", "" };

		for (size_t i = 0; i < (p->package ? 2U : 1U); i++) {
			int n = snprintf(folder, sizeof(folder), "%.*s%s%s%s", outer, path,
				tries[i], i ? modules : "", p->native);

			if (n < (int)sizeof(folder) &&
				snprintf(file, sizeof(file), "%s/%s", folder, p->native_run) <
					(int)sizeof(file) &&
				find_is_program(file) && realpath(folder, ret))
				return true;
		}
	}
	return false;
}

/* 1 where it was found. */
static int find_native(struct arena *arena, const struct agent_profile *p,
	const struct agent_search *where, struct agent_found *ret, struct err *e)
{
	char folder[PATH_MAX], inside[PATH_MAX], file[2 * PATH_MAX];
	int r;

	if (!p->native || !p->native_run || !look_for_native(ret->path, p, folder))
		return 0;
	if (find_is_shown(where, folder)) {
		snprintf(inside, sizeof(inside), "%s", folder);
	} else {
		snprintf(inside, sizeof(inside), AGENT_PLACE "/lib/%s", p->program);
		if (!find_show(arena, where, folder, inside, ret))
			return err_set(
				e, ERR_SYS, ENOMEM, "cannot look for '%s': out of memory", folder);
	}
	snprintf(file, sizeof(file), "%s/%s", inside, p->native_run);
	r = make_launcher(arena, "", file, ret, e);
	return r < 0 ? r : 1;
}

int agent_find(struct arena *arena, const struct agent_profile *p, const char *program,
	const struct agent_search *where, struct agent_found *ret, struct err *e)
{
	char named[PATH_MAX], path[PATH_MAX], inside[PATH_MAX], interpreter[64];
	int r;

	*ret = (struct agent_found){ 0 };
	if (strchr(program, '/') || !agent_search(program, where, named, path))
		return -ENOENT;
	ret->path = arena_copy(arena, path, strlen(path));
	if (!ret->path)
		return err_set(e, ERR_SYS, ENOMEM, "cannot look for '%s': out of memory", program);
	r = find_native(arena, p, where, ret, e);
	if (r == 0)
		r = read_interpreter(path, interpreter, e);
	else if (r > 0)
		return 0;
	if (r < 0)
		return r;
	if (interpreter[0])
		return find_script(arena, p, program, interpreter, where, ret, e);
	if (find_is_shown(where, path))
		return 0;
	snprintf(inside, sizeof(inside), AGENT_PLACE "/bin/%s", program);
	return find_show(arena, where, path, inside, ret)
		       ? 0
		       : err_set(e, ERR_SYS, ENOMEM, "cannot look for '%s': out of memory",
				 program);
}
