/*
 * run_load - from files and arguments to one settled spec.
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

#include "base/count.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/own.h"
#include "base/str.h"
#include "client/client.h"
#include "run/run_spec.h"
#include "session/store/store.h"
#include "spec/spec_grammar.h"

/*
 * run_own_path - a project whose files name where it is on the host.
 *
 * Runs as:  the operator.
 * Reads:    a few files of the project, below its folder and through no link.
 * Must not: believe them: what they say leads to a warning and to nothing else.
 */

#define MAX_LOOK ((size_t)64 << 10)

/* What programs write absolute paths into, where they are usually kept. */
static const struct {
	const char *path, *what;
	const char *settings; /* of a virtual environment: what says whose Python it has */
	enum run_name top;    /* the first name of the path */
} files[] = {
	{ ".venv/bin/activate", "the virtual environment .venv", ".venv/pyvenv.cfg",
		RUN_NAME_DOT_VENV },
	{ "venv/bin/activate", "the virtual environment venv", "venv/pyvenv.cfg", RUN_NAME_VENV },
	{ "env/bin/activate", "the virtual environment env", "env/pyvenv.cfg", RUN_NAME_ENV },
	{ "CMakeCache.txt", "CMakeCache.txt", NULL, RUN_NAME_CMAKE },
	{ "build/CMakeCache.txt", "build/CMakeCache.txt", NULL, RUN_NAME_BUILD },
	{ "build/meson-info/meson-info.json", "Meson's folder build", NULL, RUN_NAME_BUILD },
	{ "builddir/meson-info/meson-info.json", "Meson's folder builddir", NULL,
		RUN_NAME_BUILDDIR },
};

/* Puts the project's real path in the place of the word own; false: it was said what is wrong. */
static bool run_settle_place(struct spec *s, const struct run_place *place)
{
	struct spec_value *at = &s->settled.v[SPEC_PROJECT_AT];
	struct spec_item item = { 0 };
	struct err e = { 0 };

	if (!at->text || !str_eq(at->text, "own"))
		return true;
	/* The path tells whose the project is. */
	if (s->set_by[SPEC_PROJECT_AT] == SPEC_LAYER_FILE && !s->is_file_trusted) {
		diags_error(&s->diags, at->at, "say it yourself: --own-path, or --trust",
			"project.at: a project's own file cannot ask for its path on the host");
		return false;
	}
	if (spec_parse(SPEC_GRAMMAR_TARGET, &s->arena, place->project, &item, &e) < 0) {
		diags_error(&s->diags, at->at, NULL, "project.at: %s", e.text);
		return false;
	}
	at->text = item.text;
	s->is_at_own_path = true;
	return true;
}

/* Does the path stand there as a whole, and not as the beginning of another name? */
static bool names(const char *bytes, size_t n, const char *path)
{
	size_t size = strlen(path);

	for (const char *at = bytes; (at = memmem(at, n - (size_t)(at - bytes), path, size));
		at++) {
		char next = at + size < bytes + n ? at[size] : '\0';

		if (!str_is_letter(next) && !str_is_digit(next) && !strchr("._-", next))
			return true;
	}
	return false;
}

/* The beginning of a file of the project's; 0 where it cannot be read. */
static size_t own_path_look_into(int folder, const char *file, char ret[static MAX_LOOK])
{
	own_fd int fd = file_open_beneath(folder, file, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	n = file_read_up_to(fd, ret, MAX_LOOK - 1);
	ret[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

/* The toolchain whose Python an environment has, where the cage does not; or NULL. */
static const char *missing_python(
	const struct spec *s, const struct run_place *place, int folder, const char *settings)
{
	static const char key[] = "home = /";
	char bytes[MAX_LOOK], *home, *rest;

	if (!settings || !own_path_look_into(folder, settings, bytes))
		return NULL;
	for (home = strtok_r(bytes, "\n", &rest); home; home = strtok_r(NULL, "\n", &rest))
		if (str_starts(home, key))
			return run_missing_toolchain(s, place, home + strlen(key) - 1);
	return NULL;
}

/* Says in s->diags which of the project's files name a path of it that the cage does not have. */
static void run_check_own_paths(struct spec *s, const struct run_place *place)
{
	const char *at = spec_text(s, SPEC_PROJECT_AT);
	own_fd int folder = -1;
	bool is_own = str_eq(at, place->project) ||
		      spec_choice(s, SPEC_PROJECT_CAGE) == SPEC_CAGE_PROJECT;

	for (size_t i = 0; i < COUNT_OF(files); i++) {
		struct diag_pos where = { 0 };
		char bytes[MAX_LOOK] __attribute__((uninitialized));
		const char *missing;
		size_t n;

		if (!(place->names & 1U << files[i].top))
			continue;
		if (folder < 0)
			folder = file_open(place->project, O_PATH | O_DIRECTORY);
		n = folder < 0 ? 0 : own_path_look_into(folder, files[i].path, bytes);
		/* One that was made in a cage is right there as it is. */
		if (!n || !names(bytes, n, place->project))
			continue;
		missing = missing_python(s, place, folder, files[i].settings);
		if (is_own && !missing)
			continue;
		where.source = diags_add_source(&s->diags, files[i].path, NULL, 0);
		diags_warn(&s->diags, where,
			arena_printf(&s->arena, "add%s%s%s", is_own ? "" : " --own-path",
				missing ? " --toolchain " : "", missing ? missing : ""),
			"%s was made for %s, and the cage has %s%s", files[i].what, place->project,
			is_own ? "no Python of " : "the project at ", is_own ? missing : at);
		return;
	}
}

#define SYSTEM_POLICY "/etc/bawn/policy.yaml"

const char *run_home(void)
{
	const char *home = getenv("HOME");

	return home && home[0] == '/' ? home : NULL;
}

bool run_is_in_cage(void)
{
	return getenv("BAWN_SANDBOX") != NULL;
}

int run_fail_spec(struct err *e)
{
	return err_set(e, ERR_SPEC, EINVAL, "cannot use the spec: it has errors");
}

int run_fail_reading(const char *what, const char *path, int num, struct err *e)
{
	if (num == EFBIG)
		return err_set(e, ERR_REFUSED, num, "cannot use %s '%s': it is larger than 256 kB",
			what, path);
	return err_set(e, ERR_REFUSED, num, "cannot read %s '%s': %s", what, path, strerror(num));
}

int run_read_into(struct spec *s, int fd, const char **ret, size_t *ret_size)
{
	own_free char *bytes = NULL;
	int r = file_read_all(fd, YAML_MAX_SIZE, &bytes, ret_size);

	if (r < 0)
		return r;
	*ret = arena_copy(&s->arena, bytes, *ret_size);
	return *ret ? 0 : -ENOMEM;
}

/* Who can write the folder can put another file there. */
static int load_check_folder(const char *what, const char *path, struct err *e)
{
	char folder[PATH_MAX];
	struct stat st;

	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
	if (stat(folder, &st) < 0 || (st.st_uid != 0 && st.st_uid != ids_user()) ||
		st.st_mode & (S_IWGRP | S_IWOTH))
		return err_hint(e,
			err_set(e, ERR_REFUSED, EPERM,
				"cannot use a %s in '%s': others can write to the folder", what,
				folder),
			"chmod go-w '%s'", folder);
	return 0;
}

/* What others can write is not the operator's. */
static int check_owner(int fd, const char *what, const char *path, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, ERR_REFUSED, EINVAL,
			"cannot use the %s '%s': it is not a regular file", what, path);
	if (st.st_uid != 0 && st.st_uid != ids_user())
		return err_hint(e,
			err_set(e, ERR_REFUSED, EPERM,
				"cannot use the %s '%s': it belongs to another user", what, path),
			"it must be yours or root's");
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_hint(e,
			err_set(e, ERR_REFUSED, EPERM,
				"cannot use the %s '%s': others can write to it", what, path),
			"chmod go-w '%s'", path);
	return load_check_folder(what, path, e);
}

int run_read_own(struct spec *s, const char *what, const char *path, const char **ret,
	size_t *ret_size, struct err *e)
{
	own_fd int fd = -1;
	struct stat st;
	int r;

	*ret = NULL;
	/* A link that leads nowhere is a file that cannot be read, not the lack of one. */
	if (lstat(path, &st) < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	fd = file_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return run_fail_reading(what, path, -fd, e);
	r = check_owner(fd, what, path, e);
	if (r < 0)
		return r;
	r = run_read_into(s, fd, ret, ret_size);
	return r < 0 ? run_fail_reading(what, path, -r, e) : 0;
}

static int load_policy(struct spec *s, enum spec_layer layer, const char *path, struct err *e)
{
	const char *bytes;
	size_t n = 0;
	int r = run_read_own(s, "policy", path, &bytes, &n, e);

	if (r == 0 && bytes)
		spec_add_policy(s, layer, arena_copy(&s->arena, path, strlen(path)), bytes, n);
	return r;
}

int run_config_folder(const char *home, char ret[static PATH_MAX])
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

static int load_policies(struct spec *s, const char *home, struct err *e)
{
	char folder[PATH_MAX], path[PATH_MAX + 16];
	int r = load_policy(s, SPEC_LAYER_SYSTEM, SYSTEM_POLICY, e);
	int found = run_config_folder(home, folder);

	if (r < 0 || found == -ENOENT)
		return r;
	if (found < 0)
		return err_set(e, ERR_REFUSED, -found,
			"cannot read your policy: its path is longer than %d bytes", PATH_MAX);
	snprintf(path, sizeof(path), "%s/policy.yaml", folder);
	return load_policy(s, SPEC_LAYER_USER, path, e);
}

int run_load_policies(struct spec *s, struct err *e)
{
	int r;

	spec_init(s);
	r = load_policies(s, run_home(), e);
	return r < 0 ? r : spec_settle(s) ? 0 : run_fail_spec(e);
}

/* Resolves where the project is; 0 or -errno. */
static int find_project(const struct spec *s, const char *here, struct run_place *place)
{
	const char *path = spec_text(s, SPEC_PROJECT_PATH);
	struct stat st;
	int r = 0;

	/* Where we are has been resolved. */
	if (str_eq(path, "."))
		memcpy(place->project, here, strlen(here) + 1);
	else
		r = run_resolve(path, place->home, here, place->project);
	if (r == 0 && stat(place->project, &st) < 0)
		r = -errno;
	return r == 0 && !S_ISDIR(st.st_mode) ? -ENOTDIR : r;
}

/* A session outlives the policy that it was made under: the exception is for runs. */
static bool load_is_of_session(const struct run_request *q, const struct spec *s)
{
	return s->is_narrowing || (q && q->purpose == RUN_TO_MAKE_SESSION);
}

/* Is the project really the folder that the policies let govern itself: not below it, not a name?
 */
static void judge_governance(
	const struct run_request *q, struct spec *s, const struct run_place *place)
{
	const char *named = spec_text(s, SPEC_SELF_GOVERNANCE);
	char real[PATH_MAX];

	if (named && !load_is_of_session(q, s) && run_resolve(named, place->home, "/", real) == 0 &&
		str_eq(real, place->project))
		spec_let_govern(s, named);
}

/* Where we are, and what the policies say. */
static int begin_spec(
	struct spec *s, struct run_place *place, char here[static PATH_MAX], struct err *e)
{
	*place = (struct run_place){ .home = run_home() };
	spec_init(s);
	here[0] = '\0';
	if (!getcwd(here, PATH_MAX) || here[0] != '/')
		return err_set(e, ERR_REFUSED, ENOENT, "cannot use the current directory: %s",
			strerror(here[0] != '/' ? ENOENT : errno));
	return load_policies(s, place->home, e);
}

static void add_clients(struct spec *s, const struct run_place *place, struct spec_value *allow)
{
	char here[PATH_MAX], git[PATH_MAX + 8];
	struct agent_search where = { .path = getenv("PATH"),
		.home = place->home,
		.only_path = true,
		.project = place->project };

	/* Without an allow-list nobody is reached; then the names say nothing. */
	if (!allow->count)
		return;
	if (allow == &s->settled.v[SPEC_NETWORK_ALLOW] &&
		spec_choice(s, SPEC_NETWORK_MODE) != SPEC_NET_ALLOWLIST)
		return;
	where.here = getcwd(here, sizeof(here));
	if (place->repository.folder[0])
		snprintf(git, sizeof(git), "%s", place->repository.folder);
	else
		snprintf(git, sizeof(git), "%s/.git", place->project);
	client_apply(s, allow, &where, git);
}

/* What was kept has all that a profile adds: then `q`, which may name an agent, is NULL. */
static int finish_spec(const struct run_request *q, struct spec *s, struct run_place *place,
	const char *here, struct err *e)
{
	int r;

	if (!spec_settle(s))
		return run_fail_spec(e);
	r = find_project(s, here, place);
	if (r < 0)
		return err_set(e, ERR_REFUSED, -r, "cannot use the project '%s' (%s): %s",
			spec_text(s, SPEC_PROJECT_PATH),
			diags_where(&s->diags, spec_where(s, SPEC_PROJECT_PATH)), strerror(-r));
	if (run_find_home(s, place, place->project) < 0)
		return err_set(e, ERR_SYS, ENOMEM, "cannot find your home: out of memory");
	if (!run_settle_place(s, place))
		return run_fail_spec(e);
	judge_governance(q, s, place);
	if (!place->has_names || !str_eq(place->project, here))
		place->names = q ? run_list_names(place->project) : RUN_NAMES_UNKNOWN;
	run_choose_own_path(s, place);
	r = q ? run_add_agent(q, s, place, e) : 0;
	if (r < 0)
		return r;
	/* What was kept has what they became. */
	if (q && !q->here.host)
		run_add_toolchains(s, place);
	r = run_find_state(s, place);
	if (r < 0)
		return err_sys(e, -r, "cannot protect bawn's own state");
	run_check_paths(s, here, place);
	run_find_repository(s, place);
	if (q)
		run_check_own_paths(s, place);
	/* On the host that a file describes, nobody can ask. */
	if (!q || !q->here.host)
		add_clients(s, place, &s->settled.v[SPEC_NETWORK_ALLOW]);
	return s->diags.errors ? run_fail_spec(e) : 0;
}

/* A file that was named with -f and is held to what a project's own may: says why it is. */
static void explain_file(const struct run_request *q, struct spec *s, const struct run_place *place,
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

int run_load_spec(
	const struct run_request *q, struct spec *s, struct run_place *ret_place, struct err *e)
{
	char here[PATH_MAX];
	int r = begin_spec(s, ret_place, here, e);

	if (r == 0)
		r = run_load_file(q, s, ret_place, e);
	if (r < 0)
		return r;
	run_add_settings(q, s, here);
	run_judge_file(s, ret_place, here);
	r = finish_spec(q, s, ret_place, here, e);
	if (r < 0 && e->kind == ERR_SPEC)
		explain_file(q, s, ret_place, here);
	return r;
}

int run_load_kept_spec(const struct run_request *q, const char *bytes, size_t n, struct spec *s,
	struct run_place *ret_place, struct err *e)
{
	const struct run_setting *asked = run_request_find(q, SPEC_PROJECT_PATH);
	const char *project = asked ? asked->value : NULL;
	char here[PATH_MAX], there[PATH_MAX];
	int r = begin_spec(s, ret_place, here, e);

	if (r < 0)
		return r;
	spec_add_canonical(s, "the record's spec", bytes, n, q->here.is_trusted);
	if (!project)
		return finish_spec(NULL, s, ret_place, here, e);
	if (!str_eq(s->layers[SPEC_LAYER_FILE].v[SPEC_PROJECT_PATH].text, "."))
		return err_set(e, ERR_USE, EINVAL,
			"cannot use --project: the recorded spec names its project itself");
	r = run_resolve(project, ret_place->home, here, there);
	if (r < 0)
		return err_set(e, ERR_REFUSED, -r, "cannot use the project '%s' (--project): %s",
			project, strerror(-r));
	return finish_spec(NULL, s, ret_place, there, e);
}

/* What the options say instead of being added: a list that narrows is a shorter one. */
static void load_narrow(struct spec *s)
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

int run_load_session_spec(const struct run_request *q, const struct store_session *x,
	struct spec *s, struct run_place *ret_place, struct err *e)
{
	const char *path;
	size_t n = strlen(x->spec);
	static char known[SHA256_HEX_SIZE]; /* to be a spec */
	char digest[SHA256_HEX_SIZE];
	struct spec kept;
	int r = 0;

	*ret_place = (struct run_place){ .home = run_home() };
	spec_init(s);
	sha256_hex(x->spec, n, digest);
	/* A worker reads the same one again and again. */
	if (!str_eq(digest, known)) {
		spec_init(&kept);
		r = spec_read_canonical(&kept, x->spec, n, e);
		spec_done(&kept);
	}
	if (r < 0) {
		err_prefix(e, "cannot use the spec of session %s", x->id);
		/* Not the run's fault: there are no diagnostics. */
		e->kind = ERR_REFUSED;
		return r;
	}
	memcpy(known, digest, sizeof(known));
	spec_add_canonical(s, "the session's spec", x->spec, n, true);
	/* As an operator's word, to which the options are held as a project's file is. */
	s->layers[SPEC_LAYER_USER] = s->layers[SPEC_LAYER_FILE];
	run_add_settings(q, s, x->project);
	snprintf(ret_place->project, sizeof(ret_place->project), "%s", x->project);
	add_clients(s, ret_place, &s->layers[SPEC_LAYER_OPTIONS].v[SPEC_NETWORK_ALLOW]);
	load_narrow(s);
	/* It was resolved when the session was created, and is called there what it was then. */
	path = s->layers[SPEC_LAYER_USER].v[SPEC_PROJECT_PATH].text;
	s->layers[SPEC_LAYER_USER].v[SPEC_PROJECT_PATH].text = x->project;
	r = finish_spec(NULL, s, ret_place, x->project, e);
	s->layers[SPEC_LAYER_USER].v[SPEC_PROJECT_PATH].text = path;
	s->settled.v[SPEC_PROJECT_PATH].text = path;
	return r;
}
