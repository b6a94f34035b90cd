/*
 * run_spec_file - the spec file, and whose word it is.
 *
 * Runs as:  the operator.
 * Reads:    the spec file; a file of variables.
 * Must not: let a file inside the project speak as the operator.
 *
 * Whose word it is follows from where the file really is, by its open descriptor, so that no link
 * and no rename comes in between. The file is the operator's in a folder of bawn's policies or of a
 * trusted project; and if the operator named it, it lies outside of the project, and nobody else
 * can write it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/own.h"
#include "base/str.h"
#include "run/run_spec.h"

#define SPEC_FILE "bawn.yaml"

/* --- whose it is --- */

static bool lies_in(const char *file, const char *folder, const char *home)
{
	char real[PATH_MAX];

	return run_resolve(folder, home, "/", real) == 0 && !str_eq(file, real) &&
	       str_path_within(file, real);
}

/* Does it lie in a folder of bawn's policies, or of a trusted project? */
static bool is_in_operators_folder(const struct spec *s, const char *file, const char *home)
{
	char config[PATH_MAX];

	if (lies_in(file, "/etc/bawn", home) ||
		(run_config_folder(home, config) == 0 && lies_in(file, config, home)))
		return true;
	for (enum spec_layer layer = SPEC_LAYER_SYSTEM; layer <= SPEC_LAYER_USER; layer++) {
		const struct spec_value *v = &s->layers[layer].v[SPEC_TRUSTED_PROJECTS];

		for (size_t i = 0; i < v->count; i++)
			if (lies_in(file, v->items[i].text, home))
				return true;
	}
	return false;
}

static bool can_others_write(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	       (st.st_uid != 0 && st.st_uid != ids_user()) || st.st_mode & (S_IWGRP | S_IWOTH);
}

/* Is it in the project, or does a link that is in there lead to it? */
static bool is_reached_within(const char *name, const char *file, const char *folder)
{
	char part[PATH_MAX], real[PATH_MAX];

	if (str_path_within(file, folder))
		return true;
	for (const char *slash = strchr(name + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - name), name);
		if (!realpath(part, real) || str_path_within(real, folder))
			return true;
	}
	return false;
}

/* The outermost repository that the project is in, but for one of the whole home; or the project.
 */
static void find_top(const char *project, const char *home, char ret[static PATH_MAX])
{
	char at[PATH_MAX], git[PATH_MAX + 8];
	struct stat st;

	snprintf(at, sizeof(at), "%s", project);
	snprintf(ret, PATH_MAX, "%s", project);
	for (char *slash; (slash = strrchr(at, '/')) != NULL && slash != at; *slash = '\0') {
		snprintf(git, sizeof(git), "%s/.git", at);
		if (!(home && str_eq(at, home)) && lstat(git, &st) == 0)
			snprintf(ret, PATH_MAX, "%s", at);
	}
}

/* "../x" from /a/b is /a/x, however one came to be there: it is not a way through the project. */
static bool make_absolute(const char *name, char ret[static PATH_MAX])
{
	char at[PATH_MAX];
	int n;

	if (name[0] == '/')
		return snprintf(ret, PATH_MAX, "%s", name) < PATH_MAX;
	if (!getcwd(at, sizeof(at)) || at[0] != '/')
		return false;
	while (str_starts(name, "./") || str_starts(name, "../")) {
		char *last = strrchr(at, '/');

		if (name[1] == '.' && last)
			*last = '\0';
		name += strcspn(name, "/");
		name += strspn(name, "/");
		if (!at[0])
			snprintf(at, sizeof(at), "/");
	}
	n = snprintf(ret, PATH_MAX, "%s/%s", str_eq(at, "/") ? "" : at, name);
	return n >= 0 && n < PATH_MAX;
}

/* Is the file outside of the project, as all layers name it, or all but the file itself? */
static bool is_outside(const struct spec *s, const struct run_place *place, const char *here,
	const char *name, bool asks_file)
{
	enum spec_layer layer = SPEC_LAYER_OPTIONS;
	char project[PATH_MAX], top[PATH_MAX];

	while (layer > SPEC_LAYER_BUILTIN && (!s->layers[layer].v[SPEC_PROJECT_PATH].is_set ||
						     (layer == SPEC_LAYER_FILE && !asks_file)))
		layer--;
	if (run_resolve(s->layers[layer].v[SPEC_PROJECT_PATH].text, place->home, here, project) < 0)
		return false;
	find_top(project, place->home, top);
	return !is_reached_within(name, place->own_spec, top);
}

void run_judge_file(struct spec *s, const struct run_place *place, const char *here)
{
	char name[PATH_MAX];

	if (s->is_file_trusted || !place->own_spec || !make_absolute(place->own_spec_name, name))
		return;
	/* What it says of the project cannot move it out of where it lies; it can move it in. */
	s->is_file_trusted =
		is_outside(s, place, here, name, false) && is_outside(s, place, here, name, true);
}

/* --- reading it --- */

/* The file a project brings along may be anything; one that is named may be a pipe. */
static int open_spec(const char *named)
{
	own_fd int fd = -1;
	struct stat st;

	if (named && str_eq(named, "-"))
		return fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	if (named)
		return file_open(named, O_RDONLY | O_NOCTTY);
	fd = file_open(SPEC_FILE, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)))
		return -EINVAL;
	return take_fd(&fd);
}

static bool is_there(const struct run_place *place, enum run_name name)
{
	struct stat st;

	return place->names & 1U << name && lstat(run_name(name), &st) == 0;
}

/* Who wrote one of these meant it to count. */
static void notice_near_misses(struct spec *s, const struct run_place *place)
{
	for (enum run_name i = RUN_NAME_YML; i <= RUN_NAME_CAPITAL_FILE; i++)
		if (is_there(place, i))
			diags_warn(&s->diags,
				(struct diag_pos){ .source = diags_add_source(
							   &s->diags, run_name(i), NULL, 0) },
				"rename it to " SPEC_FILE ", or name it with -f",
				"this file is not read: a project's spec is called " SPEC_FILE);
}

int run_load_file(
	const struct run_request *q, struct spec *s, struct run_place *place, struct err *e)
{
	const char *named = q->here.file, *path = named ? named : SPEC_FILE, *bytes = NULL;
	own_fd int fd = open_spec(named);
	bool is_absent = fd == -ENOENT && !named;
	bool is_trusted = q->here.is_trusted || str_eq(path, "-");
	char file[PATH_MAX];
	size_t n = 0;
	int r;

	if (is_absent) {
		place->names = run_list_names(".");
		place->has_names = true;
	}
	/* A link that leads nowhere is a spec that cannot be read, not the lack of one. */
	if (is_absent && !is_there(place, RUN_NAME_SPEC)) {
		notice_near_misses(s, place);
		return 0;
	}
	if (fd == -EINVAL || is_absent)
		return err_set(e, ERR_REFUSED, EINVAL,
			"cannot use the spec '%s': it is not a regular file", path);
	if (fd < 0)
		return run_fail_reading("spec", path, -fd, e);
	/* What comes through a pipe comes from whoever typed the command. */
	if (!is_trusted && file_path_of(fd, file) > 0) {
		is_trusted = is_in_operators_folder(s, file, place->home);
		if (named && !can_others_write(fd)) {
			place->own_spec = arena_copy(&s->arena, file, strlen(file));
			place->own_spec_name = named;
		}
	}
	r = run_read_into(s, fd, &bytes, &n);
	if (r == -EFBIG) {
		struct diag_pos top = { 1, 1, 1, diags_add_source(&s->diags, path, NULL, 0) };

		diags_error(&s->diags, top, NULL, "the file is larger than 256 kB");
		return 0;
	}
	if (r < 0)
		return run_fail_reading("spec", path, -r, e);
	spec_add_file(s, str_eq(path, "-") ? "standard input" : path, bytes, n, is_trusted);
	return 0;
}

/* --- a file of variables --- */

/* One line, without its end. What stands behind a name may be a key, and is not shown. */
static void spec_file_add_variable(
	struct spec *s, const char *where, const char *text, bool is_here)
{
	struct diag_pos at = { .source = diags_add_source(&s->diags, where, NULL, 0) };

	if (str_starts(text, "export ") || str_starts(text, "export\t"))
		diags_error(&s->diags, at, "leave out 'export': this is no shell script",
			"it is not NAME=VALUE");
	else if (strchr(text, '='))
		spec_add_option(s, SPEC_ENV_SET, where, text);
	else if (strpbrk(text, " \t"))
		diags_error(&s->diags, at, NULL, "it is not NAME=VALUE");
	else {
		/* A name alone is passed, as with -e. */
		spec_add_option(s, SPEC_ENV_PASS, where, text);
		if (is_here)
			run_warn_unset(s, where, text);
	}
}

void run_add_env_file(struct spec *s, const char *path, bool is_here)
{
	own_free char *bytes = NULL;
	size_t n = 0;
	int r = file_read_path(path, YAML_MAX_SIZE, &bytes, &n);
	char *text = r < 0 ? NULL : arena_copy(&s->arena, bytes, n);
	struct diag_pos at = { .source = diags_add_source(&s->diags, "--env-file", NULL, 0) };
	char shown[PATH_MAX];
	unsigned line = 0;

	/* Who mistook it for -e gave a key. */
	snprintf(shown, sizeof(shown), "'%s'", path);
	str_hide_value(shown, sizeof(shown), path);
	if (!text)
		diags_error(&s->diags, at, NULL, "cannot read %s: %s", shown,
			r == -EFBIG ? "it is larger than 256 kB" : strerror(r < 0 ? -r : ENOMEM));
	for (char *next; text; text = next) {
		size_t size = strcspn(text, "\n");
		const char *where = arena_printf(&s->arena, "%s:%u", path, ++line);

		next = text[size] ? text + size + 1 : NULL;
		text[size] = '\0';
		if (size && text[size - 1] == '\r')
			text[size - 1] = '\0';
		text += strspn(text, " \t");
		if (*text && *text != '#')
			spec_file_add_variable(s, where ? where : path, text, is_here);
	}
}
