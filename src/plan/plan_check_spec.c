#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "plan/plan_builder.h"

/*
 * Where the operator's keys, tokens and sessions live; a bind of one, or of what holds it, leaks.
 */
static const char *const credentials[] = { "~/.aws", "~/.azure", "~/.bash_history", "~/.claude",
	"~/.claude.json", "~/.codex", "~/.config/anthropic", "~/.config/gcloud", "~/.config/gh",
	"~/.config/git/credentials", "~/.docker", "~/.gemini", "~/.git-credentials", "~/.gitconfig",
	"~/.gnupg", "~/.kube", "~/.local/share/keyrings", "~/.local/state/bawn", "~/.config/bawn",
	"~/.mozilla", "~/.netrc", "~/.npmrc", "~/.password-store", "~/.pgpass", "~/.pypirc",
	"~/.ssh", "~/.vault-token", "/etc/bawn", "/etc/shadow", "/etc/ssh", "/run/docker.sock",
	"/run/user", "/var/lib/bawn", "/var/run/docker.sock" };

static bool check_spec_is_acknowledged(const struct spec *s, const char *path)
{
	const struct spec_value *allowed = spec_list(s, SPEC_PREFLIGHT_ALLOW);

	for (size_t i = 0; i < allowed->count; i++)
		if (str_eq(allowed->items[i].text, path))
			return true;
	return false;
}

/*
 * Directories that hold homes, sockets or the kernel's own files: to bind one is to bind the host.
 */
static bool is_host_itself(const char *from)
{
	static const char *const whole[] = { "/", "~", "/dev", "/etc", "/home", "/run", "/var",
		"/var/lib", "/var/run" };

	for (size_t i = 0; i < COUNT_OF(whole); i++)
		if (str_eq(from, whole[i]))
			return true;
	return str_path_within(from, "/proc") || str_path_within(from, "/sys");
}

/* The credentials that a bind shows: what it is, is in, or holds. NULL: none that are known. */
static const char *credentials_of(const char *from)
{
	for (size_t i = 0; i < COUNT_OF(credentials); i++)
		if (str_path_within(from, credentials[i]) || str_path_within(credentials[i], from))
			return credentials[i];
	return NULL;
}

/* Places the cage makes itself, or that belong to the read-only system; NULL where `to` is free. */
static const char *reserved(const char *to)
{
	static const char *const trees[] = { "/boot", "/dev", "/etc", "/proc", "/run/bawn",
		"/sys" };
	static const char *const places[] = { "/home", "/home/agent", "/tmp", "/var", "/var/tmp",
		"/run", "/run/shm" };

	for (size_t i = 0; i < COUNT_OF(trees); i++)
		if (str_path_within(to, trees[i]))
			return trees[i];
	for (size_t i = 0; i < HOST_SYSTEM_COUNT; i++)
		if (str_path_within(to, host_system_paths[i]))
			return host_system_paths[i];
	for (size_t i = 0; i < COUNT_OF(places); i++)
		if (str_eq(to, places[i]))
			return places[i];
	return NULL;
}

/* Somebody's home by its usual path is a home all the same: /home/NAME/x and /root/x as ~/x. */
static const char *home_form(struct spec *s, const char *from)
{
	size_t n = str_path_within(from, "/root") ? strlen("/root")
		   : str_starts(from, "/home/")   ? strlen("/home/") + strcspn(from + 6, "/")
						  : 0;

	return n ? arena_printf(&s->arena, "~%s", from + n) : from;
}

const char *plan_leak_of(struct spec *s, const char *from)
{
	const char *home = home_form(s, from), *leak = credentials_of(home ? home : from);

	if (is_host_itself(from))
		return "would show the host itself";
	if (!leak)
		return NULL;
	if (str_path_within(home ? home : from, leak))
		return "holds credentials";
	return arena_printf(&s->arena, "would show the credentials in %s", leak);
}

/* Would a path of the host, seen in the cage, show more than anyone means to show? */
static void check_leak(struct spec *s, enum spec_key key, const char *from, struct diag_pos at)
{
	const char *leak = plan_leak_of(s, from);

	if (leak && !check_spec_is_acknowledged(s, from))
		diags_error(&s->diags, at,
			arena_printf(&s->arena,
				"if it is meant: --preflight-allow %s, or preflight_allow: [%s]",
				from, from),
			"%s: %s %s", spec_keys[key].path, from, leak);
}

/* False, and said, where the place is taken. */
static bool check_spec_check_place(
	struct spec *s, enum spec_key key, const char *what, const char *to, struct diag_pos at)
{
	const char *taken = reserved(to);
	bool is_pattern = key == SPEC_PROJECT_READ;

	if (taken)
		diags_error(&s->diags, at,
			is_pattern ? "name what you need below it"
				   : "choose a place below /home/agent, /srv, /opt or /data",
			str_eq(taken, to) ? "%s: %s %s would cover what the cage makes itself"
					  : "%s: %s %s lies in what the cage makes itself",
			spec_keys[key].path, what, to);
	return !taken;
}

static void check_spec_check_binds(struct spec *s)
{
	const struct spec_value *binds = spec_list(s, SPEC_BINDS);
	const char *project = spec_text(s, SPEC_PROJECT_AT);
	bool is_full = spec_choice(s, SPEC_PROJECT_CAGE) == SPEC_CAGE_FULL;

	for (size_t i = 0; i < binds->count; i++) {
		const struct spec_item *item = &binds->items[i];

		check_spec_check_place(s, SPEC_BINDS, "target", item->bind.to, item->at);
		if (is_full && str_path_within(project, item->bind.to) && !reserved(item->bind.to))
			diags_error(&s->diags, item->at, "choose another place",
				"binds: target %s would cover the project at %s", item->bind.to,
				project);
		check_leak(s, SPEC_BINDS, item->bind.from, item->at);
	}
}

/* The other paths of the host that a cage would be made of. */
static void check_other_paths(struct spec *s)
{
	const char *image = spec_text(s, SPEC_ROOT_IMAGE), *colon = strchr(image, ':');
	const char *project = spec_text(s, SPEC_PROJECT_PATH);

	if (colon)
		check_leak(s, SPEC_ROOT_IMAGE, colon + 1, spec_where(s, SPEC_ROOT_IMAGE));
	if (project[0] == '/' || project[0] == '~')
		check_leak(s, SPEC_PROJECT_PATH, project, spec_where(s, SPEC_PROJECT_PATH));
	check_spec_check_place(s, SPEC_PROJECT_AT, "the project at", spec_text(s, SPEC_PROJECT_AT),
		spec_where(s, SPEC_PROJECT_AT));
}

static void check_spec_check_targets(struct spec *s)
{
	size_t n = 0;
	own_free const struct spec_item **sorted = plan_sorted_binds(s, &n);

	if (!sorted)
		diags_error(&s->diags, spec_where(s, SPEC_BINDS), NULL,
			"binds: not enough memory to check them");
	for (size_t i = 1; sorted && i < n; i++)
		if (str_eq(sorted[i]->bind.to, sorted[i - 1]->bind.to))
			diags_error(&s->diags, sorted[i]->at, NULL,
				"binds: target %s is already taken at %s", sorted[i]->bind.to,
				diags_where(&s->diags, sorted[i - 1]->at));
}

/* A path must not be protected and writable at once. */
static void check_writable_parts(struct spec *s)
{
	const struct spec_value *patterns = spec_list(s, SPEC_PROJECT_WRITE);

	for (size_t i = 0; i < patterns->count; i++) {
		const struct spec_item *item = &patterns->items[i];
		const char *base = plan_pattern_base(s, item->text);
		const char *path = base ? plan_path_in_project(base) : NULL;

		if (path && *path && plan_is_in_protected(s, NULL, path))
			diags_error(&s->diags, item->at,
				"mode: captured lets it be written, and shows it before it counts",
				"project.write_allowlist: %s is protected in mode writable",
				item->text);
	}
}

/* A writable way around what mode: writable protects would make fs.protect a lie. */
static void check_protected(struct spec *s)
{
	const struct spec_value *binds = spec_list(s, SPEC_BINDS);

	for (size_t i = 0; i < binds->count; i++) {
		const struct spec_item *item = &binds->items[i];
		const char *path = plan_path_in_project(item->bind.from);

		if (item->bind.is_writable && path && plan_is_protected(s, NULL, path))
			diags_error(&s->diags, item->at, "make it :ro",
				"binds: writing to %s would go around what project.protect protects",
				item->bind.from);
	}
}

/* Files that the cage makes itself, and those it needs to be what they are. */
static void check_files(struct spec *s, enum spec_key key)
{
	static const char *const own[] = { "/etc/bawn", "/etc/group", "/etc/hostname", "/etc/hosts",
		"/etc/ld.so.preload", "/etc/localtime", "/etc/mtab", "/etc/nsswitch.conf",
		"/etc/os-release", "/etc/passwd", "/etc/resolv.conf", "/run/bawn", "/run/shm" };
	const struct spec_value *files = spec_list(s, key);

	for (size_t i = 0; i < files->count; i++)
		for (size_t j = 0; j < COUNT_OF(own); j++)
			if (str_path_within(files->items[i].var.name, own[j]))
				diags_error(&s->diags, files->items[i].at, "choose another place",
					"%s: %s is made by the cage itself", spec_keys[key].path,
					files->items[i].var.name);
}

/* A bind at or above a kept folder would hide it. */
static void check_kept(struct spec *s, enum spec_key key, const char *what, const char *to,
	const char *kept, struct diag_pos at)
{
	if (str_eq(to, kept) || str_path_within(kept, to))
		diags_error(&s->diags, at, "choose another place",
			"%s: %s %s would cover %s, which is kept (state)", spec_keys[key].path,
			what, to, kept);
}

/* One folder for the private home must not lie in another: the outer one would hide its name. */
static void check_spec_check_state(struct spec *s)
{
	const struct spec_value *kept = spec_list(s, SPEC_STATE);
	const struct spec_value *binds = spec_list(s, SPEC_BINDS);

	for (size_t i = 0; i < kept->count; i++)
		for (size_t j = 0; j < kept->count; j++)
			if (!str_eq(kept->items[i].text, kept->items[j].text) &&
				str_path_within(kept->items[i].text, kept->items[j].text))
				diags_error(&s->diags, kept->items[i].at, "remove it",
					"state: %s is kept already, with %s", kept->items[i].text,
					kept->items[j].text);
	for (size_t i = 0; i < kept->count; i++) {
		const char *place = kept->items[i].text;

		for (size_t j = 0; j < binds->count; j++)
			check_kept(s, SPEC_BINDS, "target", binds->items[j].bind.to, place,
				binds->items[j].at);
		if (spec_choice(s, SPEC_PROJECT_CAGE) == SPEC_CAGE_FULL)
			check_kept(s, SPEC_PROJECT_AT, "the project at",
				spec_text(s, SPEC_PROJECT_AT), place,
				spec_where(s, SPEC_PROJECT_AT));
	}
}

/* Patterns below the project are its own; others only cage: project has, for reading. */
static void check_patterns(struct spec *s, enum spec_key key)
{
	const struct spec_value *patterns = spec_list(s, key);
	bool may_leave =
		key == SPEC_PROJECT_READ && spec_choice(s, SPEC_PROJECT_CAGE) == SPEC_CAGE_PROJECT;

	for (size_t i = 0; i < patterns->count && !diags_are_full(&s->diags); i++) {
		const struct spec_item *item = &patterns->items[i];
		const char *base = plan_pattern_base(s, item->text);

		if (!base || plan_path_in_project(item->text))
			continue;
		if (!may_leave) {
			diags_error(&s->diags, item->at, "use a bind",
				"%s: '%s' is outside the project", spec_keys[key].path, item->text);
		} else if (str_eq(base, "/")) {
			diags_error(&s->diags, item->at, "name the directories, such as /opt/**",
				"%s: '%s' would show the whole host", spec_keys[key].path,
				item->text);
		} else if (check_spec_check_place(s, key, "the pattern", base, item->at)) {
			check_leak(s, key, base, item->at);
		}
	}
}

static void check_degraded_names(struct spec *s)
{
	const struct spec_value *names = spec_list(s, SPEC_ALLOW_DEGRADED);
	const char *all[PLAN_GUARANTEE_COUNT];

	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++)
		all[g] = plan_guarantee_defs[g].name;
	for (size_t i = 0; i < names->count && !diags_are_full(&s->diags); i++) {
		const struct spec_item *item = &names->items[i];
		const char *near = str_nearest(item->text, all, PLAN_GUARANTEE_COUNT);

		if (plan_guarantee_find(item->text) == PLAN_GUARANTEE_COUNT)
			diags_error(&s->diags, item->at,
				near ? arena_printf(&s->arena, "did you mean '%s'?", near)
				     : "bawn doctor lists them",
				"allow_degraded: there is no guarantee '%s'", item->text);
	}
}

/* A key that the cage is shown in another way is none that it does not know. */
static void check_spec_check_hidden(struct spec *s, const struct spec_item *item)
{
	const struct spec_value *pass = spec_list(s, SPEC_ENV_PASS);
	const struct spec_value *binds = spec_list(s, SPEC_BINDS);
	const struct spec_secret *secret = &item->secret;

	for (size_t i = 0; !secret->is_file && i < pass->count; i++)
		if (str_eq(pass->items[i].text, secret->source))
			diags_error(&s->diags, item->at, "remove it from env.pass",
				"secrets: %s is passed into the cage too, at %s", secret->source,
				diags_where(&s->diags, pass->items[i].at));
	for (size_t i = 0; secret->is_file && i < binds->count; i++)
		if (str_path_within(secret->source, binds->items[i].bind.from))
			diags_error(&s->diags, item->at, "keep it elsewhere",
				"secrets: %s is shown in the cage too, by the bind at %s",
				secret->source, diags_where(&s->diags, binds->items[i].at));
}

/* The gate is their way in, and each has a name of its own there. */
static void check_secrets(struct spec *s)
{
	const struct spec_value *secrets = spec_list(s, SPEC_SECRETS);
	const struct spec_value *ports = spec_list(s, SPEC_NETWORK_HOST_PORTS);

	if (secrets->count && spec_choice(s, SPEC_NETWORK_MODE) != SPEC_NET_ALLOWLIST)
		diags_error(&s->diags, secrets->items[0].at,
			"write network: { mode: allowlist }; its list may be empty",
			"secrets: they are used through bawn's gate, which network.mode %s does "
			"without",
			spec_keys[SPEC_NETWORK_MODE].choices[spec_choice(s, SPEC_NETWORK_MODE)]);
	for (size_t i = 0; secrets->count && i < ports->count; i++)
		if (ports->items[i].port == PLAN_SECRET_PORT)
			diags_error(&s->diags, ports->items[i].at, NULL,
				"network.host_ports: bawn-host:%d is where secrets are used",
				PLAN_SECRET_PORT);
	for (size_t i = 0; i < secrets->count && i < PLAN_MAX_SECRETS; i++)
		check_spec_check_hidden(s, &secrets->items[i]);
	if (secrets->count > PLAN_MAX_SECRETS)
		diags_error(&s->diags, secrets->items[PLAN_MAX_SECRETS].at, NULL,
			"secrets: a run may have %d of them", PLAN_MAX_SECRETS);
	for (size_t i = 1; i < secrets->count && i < PLAN_MAX_SECRETS; i++)
		for (size_t k = 0; k < i; k++)
			if (str_eq(secrets->items[i].secret.name, secrets->items[k].secret.name) &&
				!str_eq(secrets->items[i].text, secrets->items[k].text))
				diags_error(&s->diags, secrets->items[i].at, "give it another name",
					"secrets: '%s' is already taken at %s",
					secrets->items[i].secret.name,
					diags_where(&s->diags, secrets->items[k].at));
}

static void check_prompts(struct spec *s)
{
	if (spec_list(s, SPEC_STARTUP_PROMPTS)->count && !spec_text(s, SPEC_AGENT))
		diags_error(&s->diags, spec_where(s, SPEC_STARTUP_PROMPTS),
			"name the agent, such as agent: claude, or remove them",
			"startup_prompts: nobody is handed them, because no agent is named");
}

void plan_check_spec(struct spec *s)
{
	check_degraded_names(s);
	check_spec_check_binds(s);
	check_spec_check_targets(s);
	check_secrets(s);
	check_other_paths(s);
	check_files(s, SPEC_FILES);
	check_files(s, SPEC_INITIAL_FILES);
	check_spec_check_state(s);
	check_prompts(s);
	check_protected(s);
	if (spec_choice(s, SPEC_PROJECT_MODE) == SPEC_MODE_WRITABLE)
		check_writable_parts(s);
	check_patterns(s, SPEC_PROJECT_READ);
	check_patterns(s, SPEC_PROJECT_WRITE);
}
