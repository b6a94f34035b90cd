/*
 * cli_load - from files and arguments to one settled spec.
 *
 * Runs as:  the operator.
 * Reads:    /etc/bawn/policy.yaml, the user's policy.yaml.
 * Must not: run without a policy that is there and cannot be read.
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
#include "spec/spec_layers.h"
#include "store/store.h"

#define SYSTEM_POLICY "/etc/bawn/policy.yaml"

int cli_fail_reading(const char *what, const char *path, int num)
{
	if (num == EFBIG)
		cli_complain("cannot use %s '%s': it is larger than 256 kB", what, path);
	else
		cli_complain("cannot read %s '%s': %s", what, path, strerror(num));
	return CLI_FAILED;
}

int cli_read_into(struct spec *s, int fd, const char **ret, size_t *ret_size)
{
	own_free char *bytes = NULL;
	int r = file_read_all(fd, YAML_MAX_SIZE, &bytes, ret_size);

	if (r < 0)
		return r;
	*ret = arena_copy(&s->arena, bytes, *ret_size);
	return *ret ? 0 : -ENOMEM;
}

/* Who can write the folder can put another file there. */
static bool is_operators_folder(const char *what, const char *path)
{
	char folder[PATH_MAX];
	struct stat st;

	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
	if (stat(folder, &st) < 0 || (st.st_uid != 0 && st.st_uid != geteuid()) ||
		st.st_mode & (S_IWGRP | S_IWOTH)) {
		cli_complain(
			"cannot use a %s in '%s': others can write to the folder", what, folder);
		cli_hint("chmod go-w '%s'", folder);
		return false;
	}
	return true;
}

/* What others can write is not the operator's. */
static bool is_operators(int fd, const char *what, const char *path)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		cli_complain("cannot use the %s '%s': it is not a regular file", what, path);
		return false;
	}
	if (st.st_uid != 0 && st.st_uid != geteuid()) {
		cli_complain("cannot use the %s '%s': it belongs to another user", what, path);
		cli_hint("it must be yours or root's");
		return false;
	}
	if (st.st_mode & (S_IWGRP | S_IWOTH)) {
		cli_complain("cannot use the %s '%s': others can write to it", what, path);
		cli_hint("chmod go-w '%s'", path);
		return false;
	}
	return is_operators_folder(what, path);
}

int cli_read_own(
	struct spec *s, const char *what, const char *path, const char **ret, size_t *ret_size)
{
	own_fd int fd = file_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int r;

	*ret = NULL;
	/* A link that leads nowhere is a file that cannot be read, not the lack of one. */
	if ((fd == -ENOENT || fd == -ENOTDIR) && lstat(path, &st) < 0)
		return CLI_OK;
	if (fd < 0)
		return cli_fail_reading(what, path, -fd);
	if (!is_operators(fd, what, path))
		return CLI_FAILED;
	r = cli_read_into(s, fd, ret, ret_size);
	return r < 0 ? cli_fail_reading(what, path, -r) : CLI_OK;
}

static int load_policy(struct spec *s, enum spec_layer layer, const char *path)
{
	const char *bytes;
	size_t n = 0;
	int status = cli_read_own(s, "policy", path, &bytes, &n);

	if (status == CLI_OK && bytes)
		spec_add_policy(s, layer, arena_copy(&s->arena, path, strlen(path)), bytes, n);
	return status;
}

int cli_config_folder(const char *home, char ret[static PATH_MAX])
{
	const char *config = getenv("XDG_CONFIG_HOME");
	int n;

	if (config && config[0] == '/')
		n = snprintf(ret, PATH_MAX, "%s/bawn", config);
	else if (home)
		n = snprintf(ret, PATH_MAX, "%s/.config/bawn", home);
	else
		return -ENOENT;
	return n >= 0 && n < PATH_MAX - (int)sizeof("/policy.yaml") ? 0 : -ENAMETOOLONG;
}

static int load_policies(struct spec *s, const char *home)
{
	char folder[PATH_MAX], path[PATH_MAX + 16];
	int status = load_policy(s, SPEC_LAYER_SYSTEM, SYSTEM_POLICY);
	int r = cli_config_folder(home, folder);

	if (status != CLI_OK || r == -ENOENT)
		return status;
	if (r < 0) {
		cli_complain("cannot read your policy: its path is longer than %d bytes", PATH_MAX);
		return CLI_FAILED;
	}
	snprintf(path, sizeof(path), "%s/policy.yaml", folder);
	return load_policy(s, SPEC_LAYER_USER, path);
}

/* Resolves where the project is; 0 or -errno. */
static int find_project(const struct spec *s, const char *here, struct cli_place *place)
{
	struct stat st;
	int r = cli_resolve(spec_text(s, SPEC_PROJECT_PATH), place->home, here, place->project);

	if (r == 0 && stat(place->project, &st) < 0)
		r = -errno;
	return r == 0 && !S_ISDIR(st.st_mode) ? -ENOTDIR : r;
}

/* A session outlives the policy that it was made under: the exception is for runs. */
static bool is_of_session(const struct run_request *q, const struct spec *s)
{
	return s->is_narrowing || (q && q->purpose == RUN_TO_MAKE_SESSION);
}

/* Is the project really the folder that the policies let govern itself: not below it, not a name?
 */
static void judge_governance(
	const struct run_request *q, struct spec *s, const struct cli_place *place)
{
	const char *named = spec_text(s, SPEC_SELF_GOVERNANCE);
	char real[PATH_MAX];

	if (named && !is_of_session(q, s) && cli_resolve(named, place->home, "/", real) == 0 &&
		str_eq(real, place->project))
		spec_let_govern(s, named);
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

/* Where we are, and what the policies say. */
static int begin_spec(struct spec *s, struct cli_place *place, char here[static PATH_MAX])
{
	const char *home = getenv("HOME");

	*place = (struct cli_place){ .home = home && home[0] == '/' ? home : NULL };
	spec_init(s);
	if (!getcwd(here, PATH_MAX) || here[0] != '/') {
		cli_complain("cannot use the current directory: %s",
			strerror(here[0] != '/' ? ENOENT : errno));
		return CLI_FAILED;
	}
	return load_policies(s, place->home);
}

/* What was kept has all that a profile adds: then `q`, which may name an agent, is NULL. */
static int finish_spec(
	const struct run_request *q, struct spec *s, struct cli_place *place, const char *here)
{
	int found, status;

	if (!spec_settle(s))
		return CLI_NO;
	found = find_project(s, here, place);
	if (found < 0) {
		cli_complain("cannot use the project '%s' (%s): %s",
			spec_text(s, SPEC_PROJECT_PATH),
			diags_where(&s->diags, spec_where(s, SPEC_PROJECT_PATH)), strerror(-found));
		return CLI_FAILED;
	}
	if (!cli_settle_place(s, place))
		return CLI_NO;
	judge_governance(q, s, place);
	cli_choose_own_path(s, place);
	status = q ? cli_add_agent(q, s, place) : CLI_OK;
	if (status != CLI_OK)
		return status;
	/* What was kept has what they became. */
	if (q && !q->here.host)
		cli_add_toolchains(s, place);
	found = cli_find_state(s, place);
	if (found < 0) {
		cli_complain("cannot protect bawn's own state: %s", strerror(-found));
		return CLI_FAILED;
	}
	cli_check_paths(s, here, place);
	cli_find_repository(s, place);
	if (q)
		cli_check_own_paths(s, place);
	/* On the host that a file describes, nobody can ask. */
	if (!q || !q->here.host)
		cli_add_clients(s, place, &s->settled.v[SPEC_NETWORK_ALLOW]);
	return s->diags.errors ? CLI_NO : CLI_OK;
}

/* A file that was named with -f and is held to what a project's own may: says why it is. */
static void explain_file(const struct run_request *q, struct spec *s, const struct cli_place *place,
	const char *here)
{
	const char *name = q->here.file, *why = NULL;
	struct diag_list *list = arena_alloc(&s->arena, sizeof(*list));
	char real[PATH_MAX];

	if (!name || !list || !realpath(name, real))
		return;
	if (place->own_spec || str_path_within(real, here))
		why = arena_printf(&s->arena,
			"'%s' counts as the project's own, because it lies in the project, in a "
			"repository around it, or behind a link in there; if you wrote it, say "
			"--trust, or keep it outside; else allow it below project_may: in your own "
			"policy.yaml",
			name);
	else
		why = arena_printf(&s->arena,
			"'%s' counts as the project's own, because others can write to it: chmod "
			"go-w '%s', and it must be yours or root's",
			name, name);
	for (size_t i = 0; why && i < s->diags.count; i++) {
		struct diag *d = &s->diags.items[i];

		if (!d->hint || !str_eq(d->hint, spec_loosen_hint))
			continue;
		d->hint = why;
		if (d->list) {
			*list = (struct diag_list){ d->list->heading, why };
			d->list = list;
		}
	}
}

int cli_load_spec(const struct cli *cli, struct spec *s, struct cli_place *ret_place)
{
	const struct run_request *q = &cli->request;
	char here[PATH_MAX];
	int status = begin_spec(s, ret_place, here);

	if (status == CLI_OK)
		status = cli_load_file(q, s, ret_place);
	if (status != CLI_OK)
		return status;
	cli_add_options(q, s, here);
	cli_judge_file(s, ret_place, here);
	status = finish_spec(q, s, ret_place, here);
	if (status == CLI_NO)
		explain_file(q, s, ret_place, here);
	return status;
}

int cli_load_kept_spec(const struct run_request *q, const char *bytes, size_t n, struct spec *s,
	struct cli_place *ret_place)
{
	const struct run_setting *asked = run_request_find(q, SPEC_PROJECT_PATH);
	const char *project = asked ? asked->value : NULL;
	char here[PATH_MAX], there[PATH_MAX];
	int status = begin_spec(s, ret_place, here), r;

	if (status != CLI_OK)
		return status;
	spec_add_canonical(s, "the record's spec", bytes, n, q->here.is_trusted);
	if (!project)
		return finish_spec(NULL, s, ret_place, here);
	if (!str_eq(s->layers[SPEC_LAYER_FILE].v[SPEC_PROJECT_PATH].text, ".")) {
		cli_complain("cannot use --project: the recorded spec names its project itself");
		return CLI_FAILED;
	}
	r = cli_resolve(project, ret_place->home, here, there);
	if (r < 0) {
		cli_complain("cannot use the project '%s' (--project): %s", project, strerror(-r));
		return CLI_FAILED;
	}
	return finish_spec(NULL, s, ret_place, there);
}

/* What the options say instead of being added: a list that narrows is a shorter one. */
static void narrow(struct spec *s)
{
	struct spec_layer_values *options = &s->layers[SPEC_LAYER_OPTIONS];

	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++)
		if (spec_keys[k].tighten == SPEC_SUBSET)
			options->v[k].adds = false;
	s->layers[SPEC_LAYER_FILE] = *options;
	*options = (struct spec_layer_values){ 0 };
	s->is_file_trusted = false;
	s->is_narrowing = true;
}

int cli_load_session_spec(const struct run_request *q, const struct store_session *x,
	struct spec *s, struct cli_place *ret_place)
{
	const char *home = getenv("HOME");
	const char *path;
	size_t n = strlen(x->spec);
	static char known[SHA256_HEX_SIZE]; /* to be a spec */
	char digest[SHA256_HEX_SIZE];
	struct err e = { 0 };
	struct spec kept;
	int r = 0;

	*ret_place = (struct cli_place){ .home = home && home[0] == '/' ? home : NULL };
	spec_init(s);
	sha256_hex(x->spec, n, digest);
	/* A worker reads the same one again and again. */
	if (!str_eq(digest, known)) {
		spec_init(&kept);
		r = spec_read_canonical(&kept, x->spec, n, &e);
		spec_done(&kept);
	}
	if (r < 0) {
		cli_complain_about(&e, "cannot use the spec of session %s: %s", x->id, e.text);
		return CLI_FAILED;
	}
	memcpy(known, digest, sizeof(known));
	spec_add_canonical(s, "the session's spec", x->spec, n, true);
	/* As an operator's word, to which the options are held as a project's file is. */
	s->layers[SPEC_LAYER_USER] = s->layers[SPEC_LAYER_FILE];
	cli_add_options(q, s, x->project);
	snprintf(ret_place->project, sizeof(ret_place->project), "%s", x->project);
	cli_add_clients(s, ret_place, &s->layers[SPEC_LAYER_OPTIONS].v[SPEC_NETWORK_ALLOW]);
	narrow(s);
	/* It was resolved when the session was created, and is called there what it was then. */
	path = s->layers[SPEC_LAYER_USER].v[SPEC_PROJECT_PATH].text;
	s->layers[SPEC_LAYER_USER].v[SPEC_PROJECT_PATH].text = x->project;
	r = finish_spec(NULL, s, ret_place, x->project);
	s->layers[SPEC_LAYER_USER].v[SPEC_PROJECT_PATH].text = path;
	s->settled.v[SPEC_PROJECT_PATH].text = path;
	return r;
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
		cli_complain_about(&e, "cannot inspect this host: %s", e.text);
		return CLI_FAILED;
	}
	r = file_read_path(path, YAML_MAX_SIZE, &bytes, &n);
	if (r < 0)
		return cli_fail_reading("host", path, -r);
	spec_init(&s);
	map = yaml_read(&s.arena, &s.diags, diags_add_source(&s.diags, path, bytes, n), bytes, n);
	/* Either the whole of `bawn doctor --json`, or its member "host" by itself. */
	host = map ? yaml_get(map, "host") : NULL;
	r = map && host_from_yaml(ret, host ? host : map, &s.diags) == 0 ? CLI_OK : CLI_NO;
	print_diags(&s, cli->has_color);
	spec_done(&s);
	return r;
}
