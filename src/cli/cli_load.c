/*
 * cli_load - from files and arguments to one settled spec.
 *
 * Runs as:  the operator.
 * Reads:    /etc/bawn/policy.yaml, the user's policy.yaml, the spec file.
 * Must not: let a file inside the project speak as the operator; run without a policy that is
 *           there and cannot be read.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"

#define SYSTEM_POLICY "/etc/bawn/policy.yaml"
#define SPEC_FILE     "bawn.yaml"

static int fail_reading(const char *what, const char *path, int num)
{
	if (num == EFBIG)
		cli_complain("cannot use %s '%s': it is larger than 256 kB", what, path);
	else
		cli_complain("cannot read %s '%s': %s", what, path, strerror(num));
	return CLI_FAILED;
}

/* Reads a file into the spec's arena, where it stays as long as the diagnostics may quote it. */
static int read_into(struct spec *s, int fd, const char **ret, size_t *ret_size)
{
	own_free char *bytes = NULL;
	int r = file_read_all(fd, YAML_MAX_SIZE, &bytes, ret_size);

	if (r < 0)
		return r;
	*ret = arena_copy(&s->arena, bytes, *ret_size);
	return *ret ? 0 : -ENOMEM;
}

/* A policy that others can write is not the operator's. */
static bool is_operators(int fd, const char *path)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		cli_complain("policy '%s' is not a regular file", path);
		return false;
	}
	if (st.st_uid != 0 && st.st_uid != geteuid()) {
		cli_complain(
			"policy '%s' belongs to another user; it must be yours or root's", path);
		return false;
	}
	if (st.st_mode & (S_IWGRP | S_IWOTH)) {
		cli_complain(
			"policy '%s' can be written by others; run: chmod go-w '%s'", path, path);
		return false;
	}
	return true;
}

static int load_policy(struct spec *s, enum spec_layer layer, const char *path)
{
	own_fd int fd = file_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	const char *bytes = NULL;
	size_t n = 0;
	int r;

	if (fd == -ENOENT || fd == -ENOTDIR)
		return CLI_OK;
	if (fd < 0)
		return fail_reading("policy", path, -fd);
	if (!is_operators(fd, path))
		return CLI_FAILED;
	r = read_into(s, fd, &bytes, &n);
	if (r < 0)
		return fail_reading("policy", path, -r);
	spec_add_policy(s, layer, arena_copy(&s->arena, path, strlen(path)), bytes, n);
	return CLI_OK;
}

static int load_policies(struct spec *s, const char *home)
{
	const char *config = getenv("XDG_CONFIG_HOME");
	char path[PATH_MAX];
	int status = load_policy(s, SPEC_LAYER_SYSTEM, SYSTEM_POLICY);

	if (status != CLI_OK)
		return status;
	if (config && config[0] == '/')
		snprintf(path, sizeof(path), "%s/bawn/policy.yaml", config);
	else if (home)
		snprintf(path, sizeof(path), "%s/.config/bawn/policy.yaml", home);
	else
		return CLI_OK;
	return load_policy(s, SPEC_LAYER_USER, path);
}

/* "~/x" of a policy against the operator's home; false where it cannot be resolved. */
static bool resolve_operators(const char *path, const char *home, char ret[static PATH_MAX])
{
	char whole[PATH_MAX];

	if (path[0] == '~' && !home)
		return false;
	if (path[0] == '~')
		snprintf(whole, sizeof(whole), "%s%s", home, path + 1);
	else
		snprintf(whole, sizeof(whole), "%s", path);
	return realpath(whole, ret) != NULL;
}

static bool is_trusted_project(const struct spec *s, const char *here, const char *home)
{
	for (enum spec_layer layer = SPEC_LAYER_SYSTEM; layer <= SPEC_LAYER_USER; layer++) {
		const struct spec_value *v = &s->layers[layer].v[SPEC_TRUSTED_PROJECTS];
		char trusted[PATH_MAX];

		for (size_t i = 0; i < v->count; i++)
			if (resolve_operators(v->items[i].text, home, trusted) &&
				str_path_within(here, trusted))
				return true;
	}
	return false;
}

/* Could whoever wrote the project have written a file in this folder? Ours is `home`'s owner. */
static bool is_projects_folder(const char *folder, const char *project, const char *home)
{
	if (str_path_within(folder, project))
		return true;
	/* A folder above the project belongs to it, unless it is so far up that it is ours. */
	return str_path_within(project, folder) && !str_eq(folder, "/") &&
	       !(home && str_path_within(home, folder));
}

/* Does the path, or what it leads to through links, lie where the project's author writes? */
static bool is_projects(const char *path, const char *project, const char *home)
{
	char real[PATH_MAX], folder[PATH_MAX], named[PATH_MAX];
	const char *slash = strrchr(path, '/');
	char *end;

	if (!slash || (size_t)(slash - path) + 2 > sizeof(named))
		return true;
	snprintf(named, sizeof(named), "%.*s", (int)(slash - path + 1), path);
	if (!realpath(path, real) || !realpath(named, folder))
		return true;
	end = strrchr(real, '/');
	*(end == real ? end + 1 : end) = '\0';
	return is_projects_folder(real, project, home) || is_projects_folder(folder, project, home);
}

/*
 * Whose word the file is: the operator's if it was named and lies away from the project and from
 * the current directory, or if it is trusted; the project's otherwise.
 */
static bool is_operators_word(const struct cli *cli, const struct spec *s, const char *here,
	const struct cli_place *place)
{
	const char *path = cli_value(cli, "file");

	if (cli_value(cli, "trust") ||
		(*place->project && is_trusted_project(s, place->project, place->home)))
		return true;
	if (!path)
		return false;
	/* What comes through a pipe comes from whoever typed the command. */
	return str_eq(path, "-") || (!is_projects(path, here, place->home) &&
					    !is_projects(path, place->project, place->home));
}

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
	/* A link that leads nowhere is a spec that cannot be read, not the lack of one. */
	if (fd == -ENOENT && lstat(SPEC_FILE, &st) == 0)
		return -EINVAL;
	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)))
		return -EINVAL;
	return take_fd(&fd);
}

static int load_file(const struct cli *cli, struct spec *s)
{
	const char *named = cli_value(cli, "file"), *path = named ? named : SPEC_FILE,
		   *bytes = NULL;
	own_fd int fd = open_spec(named);
	size_t n = 0;
	int r;

	if (fd == -ENOENT && !named)
		return CLI_OK;
	if (fd == -EINVAL) {
		cli_complain("cannot use the spec '%s': it is not a regular file", path);
		return CLI_FAILED;
	}
	if (fd < 0)
		return fail_reading("spec", path, -fd);
	r = read_into(s, fd, &bytes, &n);
	if (r < 0)
		return fail_reading("spec", path, -r);
	spec_add_file(s, str_eq(path, "-") ? "standard input" : path, bytes, n, false);
	return CLI_OK;
}

/*
 * "-v ./x:/y" means x of where one stands. That is the project's x, and is written so, unless the
 * project is elsewhere.
 */
static const char *from_here(struct spec *s, const char *value, const char *here)
{
	size_t n = strcspn(value, ":");
	char path[PATH_MAX], real[PATH_MAX];

	if (value[0] == '/' || value[0] == '~' || n + 1 > sizeof(path))
		return value;
	snprintf(path, sizeof(path), "%.*s", (int)n, value);
	if (realpath(path, real))
		return arena_printf(&s->arena, "%s%s", real, value + n);
	return arena_printf(&s->arena, "%s/%s", here, value);
}

/* Does anyone but the built-in default say where the project is? */
static bool is_project_elsewhere(const struct cli *cli, const struct spec *s)
{
	for (enum spec_layer i = SPEC_LAYER_SYSTEM; i < SPEC_LAYER_OPTIONS; i++)
		if (s->layers[i].v[SPEC_PROJECT_PATH].is_set)
			return true;
	return cli_value(cli, "project") != NULL;
}

static void add_options(const struct cli *cli, struct spec *s, const char *here)
{
	bool is_elsewhere = is_project_elsewhere(cli, s);

	for (size_t i = 0; i < cli->given_count; i++) {
		const struct cli_option *o = cli->given[i].option;
		const char *value = o->fixed ? o->fixed : cli->given[i].value;
		const char *name = arena_printf(&s->arena, "--%s", o->name);
		enum spec_key key = o->key;

		if (key == SPEC_KEY_COUNT)
			continue;
		if (key == SPEC_ENV_SET && !strchr(value, '='))
			key = SPEC_ENV_PASS;
		if (key == SPEC_BINDS && is_elsewhere)
			value = from_here(s, value, here);
		if (key == SPEC_NETWORK_ALLOW && !cli_value(cli, "network"))
			spec_add_option(s, SPEC_NETWORK_MODE, name, "allowlist");
		if (name && value)
			spec_add_option(s, key, name, value);
	}
	if (cli->word_count)
		spec_add_option_list(s, SPEC_COMMAND, "the command",
			(const char *const *)cli->words, cli->word_count);
}

/* Resolves where the project is; 0 or -errno, with place->project left empty. */
static int find_project(const struct spec *s, const char *here, struct cli_place *place)
{
	const char *path = spec_text(s, SPEC_PROJECT_PATH);
	char whole[PATH_MAX * 2];
	struct stat st;
	int r = 0;

	if (path[0] == '~' && !place->home)
		return -ENOENT;
	if (path[0] == '~')
		snprintf(whole, sizeof(whole), "%s%s", place->home, path + 1);
	else if (path[0] == '/')
		snprintf(whole, sizeof(whole), "%s", path);
	else
		snprintf(whole, sizeof(whole), "%s/%s", here, path);
	if (!realpath(whole, place->project) || stat(place->project, &st) < 0)
		r = -errno;
	else if (!S_ISDIR(st.st_mode))
		r = -ENOTDIR;
	if (r < 0)
		place->project[0] = '\0';
	return r;
}

/* The home itself, or what holds it, is no project: every key and token would be in the cage. */
static int check_project(struct spec *s, const struct cli_place *place)
{
	const struct spec_value *allowed = spec_list(s, SPEC_PREFLIGHT_ALLOW);
	char home[PATH_MAX];

	if (!place->home || !realpath(place->home, home) || !str_path_within(home, place->project))
		return CLI_OK;
	for (size_t i = 0; i < allowed->count; i++)
		if (str_eq(allowed->items[i].text, "~") ||
			str_eq(allowed->items[i].text, place->project))
			return CLI_OK;
	diags_error(&s->diags, spec_where(s, SPEC_PROJECT_PATH),
		"start bawn in the project's own directory; if it is meant: preflight_allow: "
		"[\"~\"]",
		"project.path: %s would show your home with its credentials", place->project);
	return CLI_NO;
}

static void print_diags(const struct spec *s, bool color)
{
	own(buf) struct buf out = { .max = (size_t)1 << 20 };

	diags_print(&s->diags, &out, color);
	file_write_all(STDERR_FILENO, buf_text(&out), out.len);
}

void cli_print_diags(const struct cli *cli, const struct spec *s)
{
	if (!cli->is_json && !(cli->is_quiet && !s->diags.errors))
		print_diags(s, cli->has_color);
}

int cli_load_spec(const struct cli *cli, struct spec *s, struct cli_place *ret_place)
{
	const char *home = getenv("HOME");
	char here[PATH_MAX];
	int status, found;

	*ret_place = (struct cli_place){ .home = home && home[0] == '/' ? home : NULL };
	spec_init(s);
	if (!getcwd(here, sizeof(here)) || here[0] != '/') {
		cli_complain("the current directory cannot be named: %s",
			strerror(here[0] != '/' ? ENOENT : errno));
		return CLI_FAILED;
	}
	status = load_policies(s, ret_place->home);
	if (status == CLI_OK)
		status = load_file(cli, s);
	if (status != CLI_OK)
		return status;
	add_options(cli, s, here);
	/* The project is needed to say whose word the file is, and the word to settle the rest. */
	spec_merge(s);
	found = find_project(s, here, ret_place);
	s->is_file_trusted = is_operators_word(cli, s, here, ret_place);
	if (!spec_settle(s))
		return CLI_NO;
	if (found < 0) {
		cli_complain("cannot use the project '%s' (%s): %s",
			spec_text(s, SPEC_PROJECT_PATH),
			diags_where(&s->diags, spec_where(s, SPEC_PROJECT_PATH)), strerror(-found));
		return CLI_FAILED;
	}
	return check_project(s, ret_place);
}

int cli_probe(const struct cli *cli, struct host *ret)
{
	const char *path = cli_value(cli, "host");
	own_free char *bytes = NULL;
	const struct yaml_node *map, *host;
	struct spec s;
	size_t n = 0;
	struct err e = { 0 };
	int r;

	if (!path) {
		if (host_probe(ret, &e) == 0)
			return CLI_OK;
		cli_complain("cannot look at this host: %s", e.text);
		return CLI_FAILED;
	}
	r = file_read_path(path, YAML_MAX_SIZE, &bytes, &n);
	if (r < 0)
		return fail_reading("host", path, -r);
	spec_init(&s);
	map = yaml_read(&s.arena, &s.diags, diags_add_source(&s.diags, path, bytes, n), bytes, n);
	/* Either the whole of `bawn doctor --json`, or its member "host" by itself. */
	host = map ? yaml_get(map, "host") : NULL;
	r = map && host_from_yaml(ret, host ? host : map, &s.diags) == 0 ? CLI_OK : CLI_NO;
	print_diags(&s, cli->has_color);
	spec_done(&s);
	return r;
}
