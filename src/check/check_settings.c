#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/num.h"
#include "base/str.h"
#include "check/check.h"
#include "plan/plan_guarantees.h"
#include "spec/spec_grammar.h"

/* --- paths that are one operator's --- */

/* The part of a path behind somebody's home, "" for the home itself; NULL without a home. */
static const char *below_home(const char *path)
{
	static const char *const parents[] = { "/home/", "/Users/" };

	if (str_path_within(path, "/root"))
		return path + strlen("/root");
	for (size_t i = 0; i < COUNT_OF(parents); i++)
		if (str_starts(path, parents[i]))
			return strchrnul(path + strlen(parents[i]), '/');
	return str_eq(path, "/Users") ? "" : NULL;
}

/* "C:\…", which can only stand behind the slash that every target starts with. */
static bool is_windows(const char *path)
{
	return str_is_letter(path[1]) && path[2] == ':' && (!path[3] || strchr("\\/", path[3]));
}

static bool mirrors_host(const char *to)
{
	return !str_path_within(to, "/home/agent") && (is_windows(to) || below_home(to));
}

/* The canonical place for a target that mirrors a host. */
static const char *hint_place(struct spec *s, const char *to)
{
	const char *rest = below_home(to);

	if (!rest || !*rest)
		return "choose a place below /home/agent, /srv, /opt or /data";
	return arena_printf(&s->arena, "write /home/agent%s", rest);
}

static void check_target(struct spec *s, const struct spec_item *item)
{
	const char *to = item->bind.to;
	bool is_strict = spec_bool(s, SPEC_AUDIT_STRICT_BINDS);

	if (mirrors_host(to) && !str_path_within(to, spec_text(s, SPEC_PROJECT_AT)))
		diags_say(&s->diags, is_strict ? DIAG_ERROR : DIAG_WARNING, item->at,
			hint_place(s, to),
			"binds: target %.200s mirrors a host: the same spec would not mean the "
			"same for another operator",
			to);
}

/* Writing to a bind of the project goes past what project.mode says. */
static void check_bypass(struct spec *s, const struct spec_item *item)
{
	unsigned mode = spec_choice(s, SPEC_PROJECT_MODE);

	if (item->bind.is_writable && mode != SPEC_MODE_WRITABLE &&
		spec_is_inside_project(item->bind.from))
		diags_warn(&s->diags, item->at, "bind it read-only, or set project.mode: writable",
			"binds: writing to %.200s here reaches the project itself, although "
			"project.mode is %s",
			item->bind.from, spec_keys[SPEC_PROJECT_MODE].choices[mode]);
}

static void places_check_source(
	struct spec *s, enum spec_key key, const char *from, struct diag_pos at)
{
	const char *rest = below_home(from);

	if (rest)
		diags_warn(&s->diags, at, arena_printf(&s->arena, "write ~%s", rest),
			"%s: %.200s is in one operator's home: the spec works for nobody else",
			spec_keys[key].path, from);
}

/*
 * Paths of the host as the spec's own file writes them. The shell writes ~ out on the command
 * line, and a policy belongs to one machine: neither is meant for another operator.
 */
static void check_sources(struct spec *s)
{
	static const enum spec_key keys[] = { SPEC_ROOT_IMAGE, SPEC_ROOT_OVERLAY, SPEC_PROJECT_PATH,
		SPEC_SYSCALLS };
	const struct spec_value *binds = spec_list(s, SPEC_BINDS);

	for (size_t i = 0; i < COUNT_OF(keys); i++) {
		const char *text = spec_text(s, keys[i]), *path = strchr(text, '/');

		if (path && s->set_by[keys[i]] == SPEC_LAYER_FILE &&
			(path == text || path[-1] == ':'))
			places_check_source(s, keys[i], path, spec_where(s, keys[i]));
	}
	for (size_t i = 0; i < binds->count && s->set_by[SPEC_BINDS] == SPEC_LAYER_FILE; i++)
		places_check_source(s, SPEC_BINDS, binds->items[i].bind.from, binds->items[i].at);
}

/* --- where the project is in the cage --- */

static void check_project_at(struct spec *s)
{
	const char *at = spec_text(s, SPEC_PROJECT_AT);

	/* With cage: project it is not used; check_pointless says so. */
	if (spec_choice(s, SPEC_PROJECT_CAGE) == SPEC_CAGE_FULL && !s->is_at_own_path &&
		mirrors_host(at))
		diags_warn(&s->diags, spec_where(s, SPEC_PROJECT_AT), hint_place(s, at),
			"project.at: %.200s mirrors a host: the same spec would not mean the same "
			"for another operator",
			at);
}

/* Checks paths: bind targets, bind sources, project.at (S-08). */
static void check_places(struct spec *s)
{
	const struct spec_value *binds = spec_list(s, SPEC_BINDS);

	for (size_t i = 0; i < binds->count; i++) {
		check_target(s, &binds->items[i]);
		check_bypass(s, &binds->items[i]);
	}
	check_sources(s);
	check_project_at(s);
}

/* --- settings --- */

/* --- lists --- */

/*
 * Every list is sorted once and looked through once, so that ten thousand entries cost little
 * more than reading them.
 */

/* Pointers to the entries of a list, for sorting, in s->arena; NULL, and says so, if it is full. */
static const struct spec_item **check_list_items(struct spec *s, enum spec_key key)
{
	const struct spec_value *v = spec_list(s, key);
	const struct spec_item **items =
		arena_array(&s->arena, v->count, sizeof(const struct spec_item *));

	if (!items)
		diags_error(&s->diags, v->at, NULL, "%s: not enough memory to check it",
			spec_keys[key].path);
	for (size_t i = 0; items && i < v->count; i++)
		items[i] = &v->items[i];
	return items;
}

/* --- entries that stand for the same thing --- */

typedef int compare_entries(const struct spec_item *x, const struct spec_item *y);

static int lists_compare_texts(const struct spec_item *x, const struct spec_item *y)
{
	return strcmp(x->text, y->text);
}

static int lists_compare_names(const struct spec_item *x, const struct spec_item *y)
{
	return strcmp(x->var.name, y->var.name);
}

static int compare_opened(const struct spec_item *x, const struct spec_item *y)
{
	int order = strcmp(x->publish.address, y->publish.address);

	return order ? order : (int)x->publish.host_port - (int)y->publish.host_port;
}

/* Names before networks, each with its port; the protocol does not count. */
static int compare_destinations(const struct spec_item *x, const struct spec_item *y)
{
	const struct spec_egress *a = &x->egress, *b = &y->egress;
	int order;

	if (a->port != b->port)
		return (int)a->port - (int)b->port;
	if (!a->port)
		return strcmp(a->client, b->client);
	if (!a->host != !b->host)
		return a->host ? -1 : 1;
	if (a->is_wildcard != b->is_wildcard)
		return a->is_wildcard ? 1 : -1;
	if (a->host)
		return strcmp(a->host, b->host);
	order = memcmp(a->address, b->address, sizeof(a->address));
	return order ? order : (int)a->prefix - (int)b->prefix;
}

/* Keys whose entries can contradict each other without being the same text. */
static const struct clash {
	enum spec_key key;
	compare_entries *compare;
	enum diag_level level;
	const char *text;
} clashes[] = {
	{ SPEC_ENV_SET, lists_compare_names, DIAG_WARNING, "is set to something else at" },
	{ SPEC_NETWORK_ALLOW, compare_destinations, DIAG_WARNING,
		"has another protocol than the same destination at" },
	{ SPEC_NETWORK_PUBLISH, compare_opened, DIAG_ERROR,
		"opens the same port of the host as the entry at" },
};

static const struct clash same_text = { .compare = lists_compare_texts };

/* Sorts by meaning, then by place in the source. */
static int lists_compare_items(const void *a, const void *b, void *clash)
{
	const struct spec_item *x = *(const struct spec_item *const *)a;
	const struct spec_item *y = *(const struct spec_item *const *)b;
	int order = ((const struct clash *)clash)->compare(x, y);

	if (order)
		return order;
	if (x->at.source != y->at.source)
		return x->at.source < y->at.source ? -1 : 1;
	return x < y ? -1 : x > y;
}

static void say_twin(struct spec *s, enum spec_key key, const struct clash *clash,
	const struct spec_item *first, const struct spec_item *item)
{
	/* A variable's value may be a secret. */
	const char *text = key == SPEC_ENV_SET ? item->var.name : item->text;
	const char *path = spec_keys[key].path, *where = diags_where(&s->diags, first->at);

	if (str_eq(item->text, first->text))
		diags_warn(&s->diags, item->at, "remove one of them",
			"%s: '%.200s' stands here a second time; the first is at %s", path, text,
			where);
	else
		diags_say(&s->diags, clash->level, item->at, "keep one of them",
			"%s: '%.200s' %s %s", path, text, clash->text, where);
}

static void check_twins(struct spec *s, enum spec_key key)
{
	size_t count = spec_list(s, key)->count, first = 0;
	const struct spec_item **items = check_list_items(s, key);
	const struct clash *clash = &same_text;
	struct clash copy;

	for (size_t i = 0; i < COUNT_OF(clashes); i++)
		if (clashes[i].key == key)
			clash = &clashes[i];
	if (!items)
		return;
	copy = *clash;
	qsort_r(items, count, sizeof(items[0]), lists_compare_items, &copy);
	for (size_t i = 1; i < count; i++) {
		/* Lists add up over the layers, so two layers may say the same. */
		bool is_apart = spec_keys[key].tighten == SPEC_ADD &&
				items[i]->at.source != items[first]->at.source;

		if (is_apart || clash->compare(items[first], items[i]) != 0)
			first = i;
		else
			say_twin(s, key, clash, items[first], items[i]);
	}
}

/* --- destinations that a wider one covers --- */

/* Sorted by what must be equal, then so that a network stands before those inside it. */
static int compare_covers(const void *a, const void *b)
{
	const struct spec_item *x = *(const struct spec_item *const *)a;
	const struct spec_item *y = *(const struct spec_item *const *)b;

	if (x->egress.protocol != y->egress.protocol)
		return x->egress.protocol < y->egress.protocol ? -1 : 1;
	return compare_destinations(x, y);
}

/* The entry "*.domain" for a domain that the name is below; NULL where there is none. */
static const struct spec_item *find_wildcard(
	const struct spec_item **items, size_t count, const struct spec_item *name)
{
	struct spec_item wanted = *name;
	const struct spec_item *key = &wanted, **found = NULL;
	const char *point = name->egress.host;

	wanted.egress.is_wildcard = true;
	while (!found && (point = strchr(point, '.')) != NULL) {
		wanted.egress.host = ++point;
		found = bsearch(&key, items, count, sizeof(items[0]), compare_covers);
	}
	return found ? *found : NULL;
}

/* The network that holds this one. Networks are nested or apart: only the last wide one can. */
static const struct spec_item *find_network(
	const struct spec_item **wide, const struct spec_item *network)
{
	const struct spec_item *w = *wide;

	if (w && w->egress.protocol == network->egress.protocol &&
		spec_covers(SPEC_NETWORK_ALLOW, w, network))
		return w->egress.prefix < network->egress.prefix ? w : NULL;
	*wide = network;
	return NULL;
}

static void check_covered(struct spec *s)
{
	size_t count = spec_list(s, SPEC_NETWORK_ALLOW)->count;
	const struct spec_item **items = check_list_items(s, SPEC_NETWORK_ALLOW);
	const struct spec_item *wide = NULL;

	if (!items)
		return;
	qsort(items, count, sizeof(items[0]), compare_covers);
	for (size_t i = 0; i < count; i++) {
		const struct spec_item *cover = items[i]->egress.host
							? find_wildcard(items, count, items[i])
							: find_network(&wide, items[i]);

		if (cover)
			diags_warn(&s->diags, items[i]->at, "remove it, or the wider one",
				"network.allow: '%.200s' is already allowed by '%.200s' at %s",
				items[i]->text, cover->text, diags_where(&s->diags, cover->at));
	}
}

/* Entries that stand twice, contradict each other, or are covered by a wider one. */
static void check_lists(struct spec *s)
{
	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++) {
		enum spec_type type = spec_keys[k].type;

		/* Two binds for one target are refused where the plan is made. */
		if (spec_is_list(type) && type != SPEC_TYPE_LIST && type != SPEC_TYPE_BINDS)
			check_twins(s, k);
	}
	check_covered(s);
}

/* --- env --- */

/* Variables by name, sorted, and why they should not come from the operator. */
static const struct variable {
	const char *name;
	enum reason {
		REASON_PATHS,
		REASON_DOOR,
	} reason;
} variables[] = {
	{ "BASH_ENV", REASON_PATHS },
	{ "CARGO_HOME", REASON_PATHS },
	{ "CLASSPATH", REASON_PATHS },
	{ "CONDA_PREFIX", REASON_PATHS },
	{ "DBUS_SESSION_BUS_ADDRESS", REASON_DOOR },
	{ "DBUS_SYSTEM_BUS_ADDRESS", REASON_DOOR },
	{ "DISPLAY", REASON_DOOR },
	{ "DOCKER_HOST", REASON_DOOR },
	{ "ENV", REASON_PATHS },
	{ "GIT_CONFIG_GLOBAL", REASON_PATHS },
	{ "GIT_SSH_COMMAND", REASON_PATHS },
	{ "GOPATH", REASON_PATHS },
	{ "GPG_AGENT_INFO", REASON_DOOR },
	{ "JAVA_HOME", REASON_PATHS },
	{ "JAVA_TOOL_OPTIONS", REASON_PATHS },
	{ "KUBECONFIG", REASON_DOOR },
	{ "LD_AUDIT", REASON_PATHS },
	{ "LD_LIBRARY_PATH", REASON_PATHS },
	{ "LD_PRELOAD", REASON_PATHS },
	{ "NODE_OPTIONS", REASON_PATHS },
	{ "NODE_PATH", REASON_PATHS },
	{ "OLDPWD", REASON_PATHS },
	{ "PATH", REASON_PATHS },
	{ "PERL5LIB", REASON_PATHS },
	{ "PERL5OPT", REASON_PATHS },
	{ "PWD", REASON_PATHS },
	{ "PYTHONHOME", REASON_PATHS },
	{ "PYTHONPATH", REASON_PATHS },
	{ "PYTHONSTARTUP", REASON_PATHS },
	{ "RUBYLIB", REASON_PATHS },
	{ "RUBYOPT", REASON_PATHS },
	{ "SSH_AUTH_SOCK", REASON_DOOR },
	{ "VIRTUAL_ENV", REASON_PATHS },
	{ "WAYLAND_DISPLAY", REASON_DOOR },
	{ "XAUTHORITY", REASON_DOOR },
	{ "XDG_CONFIG_HOME", REASON_PATHS },
	{ "XDG_RUNTIME_DIR", REASON_DOOR },
};

static int env_compare_names(const void *name, const void *row)
{
	return strcmp(name, ((const struct variable *)row)->name);
}

/* True if a part of NAME_OF_IT ends with the word, also in the plural. */
static bool env_has_word(const char *name, const char *word)
{
	size_t m = strlen(word);

	for (const char *part = name; *part; part += strspn(part, "_")) {
		size_t n = strcspn(part, "_");
		bool is_plural = n > m && str_lower(part[n - 1]) == 's';

		if ((n >= m && strncasecmp(part + n - m, word, m) == 0) ||
			(is_plural && strncasecmp(part + n - 1 - m, word, m) == 0))
			return true;
		part += n;
	}
	return false;
}

static bool looks_secret(const char *name)
{
	static const char *const prefixes[] = { "AWS_", "AZURE_", "GCP_", "GOOGLE_" };
	static const char *const words[] = { "TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD",
		"PASSPHRASE", "CREDENTIAL" };

	if (str_ends(name, "_REGION"))
		return false;
	for (size_t i = 0; i < COUNT_OF(prefixes); i++)
		if (str_starts(name, prefixes[i]))
			return true;
	for (size_t i = 0; i < COUNT_OF(words); i++)
		if (env_has_word(name, words[i]))
			return true;
	return false;
}

static void check_passed(struct spec *s, const struct spec_item *item)
{
	const char *name = item->text;
	const struct variable *v = bsearch(
		name, variables, COUNT_OF(variables), sizeof(variables[0]), env_compare_names);

	if (v && v->reason == REASON_DOOR)
		diags_warn(&s->diags, item->at, "remove it, unless the agent is meant to use it",
			"env.pass: %s tells the cage of a door into the operator's session", name);
	else if (v)
		diags_warn(&s->diags, item->at,
			"set it in env.set, with paths as they are in the cage",
			"env.pass: %s brings paths of the host, which are other places in the cage",
			name);
	else if (looks_secret(name))
		diags_warn(&s->diags, item->at,
			"keep it out of the cage with secrets:, or pass one made for this agent that "
			"can do little else",
			"env.pass: %.100s looks like a secret of the operator, and everything in "
			"the cage could read it",
			name);
}

static int compare_variables(const void *a, const void *b)
{
	const struct spec_item *x = *(const struct spec_item *const *)a;
	const struct spec_item *y = *(const struct spec_item *const *)b;

	return strcmp(x->var.name, y->var.name);
}

/* Set and passed: the operator's value is put after the set one and replaces it. */
static void check_both(struct spec *s)
{
	const struct spec_value *pass = spec_list(s, SPEC_ENV_PASS);
	size_t count = spec_list(s, SPEC_ENV_SET)->count;
	const struct spec_item **set = check_list_items(s, SPEC_ENV_SET);

	if (!set)
		return;
	qsort(set, count, sizeof(set[0]), compare_variables);
	for (size_t i = 0; i < pass->count; i++) {
		struct spec_item wanted = { .var.name = pass->items[i].text };
		const struct spec_item *key = &wanted;
		const struct spec_item **found =
			bsearch(&key, set, count, sizeof(set[0]), compare_variables);

		if (found)
			diags_warn(&s->diags, pass->items[i].at, "keep one of the two",
				"env.pass: %.100s is also set at %s; the operator's value wins "
				"where there is one",
				pass->items[i].text, diags_where(&s->diags, (*found)->at));
	}
}

/* Variables that bring the operator's secrets, doors or paths into the cage. */
static void check_env(struct spec *s)
{
	const struct spec_value *pass = spec_list(s, SPEC_ENV_PASS);

	for (size_t i = 0; i < pass->count; i++)
		check_passed(s, &pass->items[i]);
	check_both(s);
}

/* --- settings that another one leaves without effect --- */

struct pointless {
	enum spec_key key, because;
	unsigned value; /* of `because`: a choice, or true */
	const char *text, *hint;
};

static const char *const use_allowlist = "set network.mode: allowlist";

static const struct pointless pointless[] = {
	{ SPEC_NETWORK_ALLOW, SPEC_NETWORK_MODE, SPEC_NET_NONE,
		"nothing of it is reachable, because network.mode is none", use_allowlist },
	{ SPEC_NETWORK_HOST_PORTS, SPEC_NETWORK_MODE, SPEC_NET_NONE,
		"nothing of it is reachable, because network.mode is none", use_allowlist },
	{ SPEC_NETWORK_PUBLISH, SPEC_NETWORK_MODE, SPEC_NET_NONE,
		"nothing is published, because network.mode is none", use_allowlist },
	{ SPEC_NETWORK_ALLOW, SPEC_NETWORK_MODE, SPEC_NET_HOST,
		"it holds nothing back, because network.mode: host shares the whole network",
		use_allowlist },
	{ SPEC_NETWORK_HOST_PORTS, SPEC_NETWORK_MODE, SPEC_NET_HOST,
		"network.mode: host shares every port of the host, and has no name bawn-host",
		use_allowlist },
	{ SPEC_NETWORK_PUBLISH, SPEC_NETWORK_MODE, SPEC_NET_HOST,
		"nothing is published, because with network.mode: host the ports are the host's",
		use_allowlist },
	{ SPEC_PROJECT_WRITE, SPEC_PROJECT_MODE, SPEC_MODE_READ_ONLY,
		"nothing of it can be written, because project.mode is read_only",
		"remove it, or set project.mode: captured" },
	{ SPEC_PROJECT_AT, SPEC_PROJECT_CAGE, SPEC_CAGE_PROJECT,
		"the project is at its own path, because project.cage is project",
		"remove it, or set project.cage: full" },
	{ SPEC_ALLOW_DEGRADED, SPEC_RELAXED, true,
		"it allows nothing more, because relaxed lets every guarantee be missing",
		"remove relaxed: the named guarantees are enough" },
	{ SPEC_ENGINE_ARGS, SPEC_ENGINE, SPEC_ENGINE_AUTO,
		"which engine gets them depends on the host, because engine is auto",
		"name the engine they are for" },
	{ SPEC_ENGINE_ARGS, SPEC_ENGINE, SPEC_ENGINE_NATIVE,
		"the run is refused, because the engine native takes no arguments",
		"remove them, or name the engine they are for" },
};

/* Set by `key`'s author knowing `because`: an operator may well overrule a list and leave it. */
static bool is_said_under(const struct spec *s, enum spec_key key, enum spec_key because)
{
	return spec_is_declared(s, key) && s->set_by[key] >= s->set_by[because];
}

static bool has_value(const struct spec *s, enum spec_key key, unsigned value)
{
	if (spec_keys[key].type == SPEC_TYPE_BOOL)
		return spec_bool(s, key) == (value != 0);
	return spec_choice(s, key) == value;
}

void check_pointless(struct spec *s)
{
	for (size_t i = 0; i < COUNT_OF(pointless); i++) {
		const struct pointless *p = &pointless[i];
		bool is_empty =
			spec_is_list(spec_keys[p->key].type) && !spec_list(s, p->key)->count;

		if (has_value(s, p->because, p->value) && !is_empty &&
			is_said_under(s, p->key, p->because))
			diags_warn(&s->diags, spec_where(s, p->key), p->hint, "%s: %s",
				spec_keys[p->key].path, p->text);
	}
}

/* --- the network that allows nothing --- */

static void check_empty_network(struct spec *s)
{
	bool is_empty = !spec_list(s, SPEC_NETWORK_ALLOW)->count &&
			!spec_list(s, SPEC_NETWORK_HOST_PORTS)->count &&
			!spec_list(s, SPEC_NETWORK_PUBLISH)->count;

	/* An agent's profile brings its own hosts. */
	if (is_empty && spec_choice(s, SPEC_NETWORK_MODE) == SPEC_NET_ALLOWLIST &&
		!spec_text(s, SPEC_AGENT))
		diags_warn(&s->diags, spec_where(s, SPEC_NETWORK_MODE),
			"name hosts in network.allow, or set network.mode: none",
			"network.mode: allowlist allows nothing, because network.allow is empty");
}

/* --- overlays (S-16) --- */

static void check_overlay(struct spec *s)
{
	bool is_kept = !str_eq(spec_text(s, SPEC_ROOT_OVERLAY), "ephemeral");
	bool may_create = spec_bool(s, SPEC_ROOT_OVERLAY_CREATE);
	uint64_t size = spec_number(s, SPEC_ROOT_OVERLAY_SIZE);
	uint64_t memory = spec_number(s, SPEC_LIMITS_MEMORY);

	if (!is_kept && is_said_under(s, SPEC_ROOT_OVERLAY_SIZE, SPEC_ROOT_OVERLAY))
		diags_warn(&s->diags, spec_where(s, SPEC_ROOT_OVERLAY_SIZE),
			"name a path in root.overlay, or use limits.disk, which a run is held to",
			"root.overlay_size: it has no effect, because root.overlay is ephemeral");
	if (is_kept && size > memory &&
		is_said_under(s, SPEC_ROOT_OVERLAY_SIZE, SPEC_LIMITS_MEMORY))
		diags_warn(&s->diags, spec_where(s, SPEC_ROOT_OVERLAY_SIZE),
			"lower it, or raise limits.memory",
			"root.overlay_size: it cannot be filled, because an overlay is in memory while "
			"the run lasts, and limits.memory is smaller");
	if (is_kept && may_create && !size)
		diags_warn(&s->diags, spec_where(s, SPEC_ROOT_OVERLAY),
			"add root.overlay_size, such as 5G, or say that it must exist with "
			"root.overlay_create_if_missing: false",
			"root.overlay: the run would be refused if the overlay is missing, because "
			"a new one needs a size");
}

/* --- opting out --- */

static void check_opt_outs(struct spec *s)
{
	bool is_prod = spec_choice(s, SPEC_ENVIRONMENT) == SPEC_PROD;
	enum spec_engine engine = spec_choice(s, SPEC_ENGINE);

	if (spec_bool(s, SPEC_RELAXED))
		diags_warn(&s->diags, spec_where(s, SPEC_RELAXED),
			"name what may be missing in allow_degraded instead",
			"relaxed: guarantees may be missing, and the record is outside the chain "
			"of verification");
	if (s->is_self_governed)
		diags_warn(&s->diags, spec_where(s, SPEC_SELF_GOVERNANCE),
			"remove it from the policy where that is not meant",
			"self_governance: what runs in this project may change its hooks, settings "
			"and spec, which work on the host later");
	/* In production logical is an error already. */
	if (engine != SPEC_ENGINE_AUTO && !plan_engine_runs(engine) &&
		!(is_prod && engine == SPEC_ENGINE_LOGICAL))
		diags_warn(&s->diags, spec_where(s, SPEC_ENGINE), "leave engine out",
			"engine: this version has no engine %s, and a run with it is refused",
			spec_keys[SPEC_ENGINE].choices[engine]);
}

/* Only if a layer sets session.ttl: most runs belong to no session. */
static void check_times(struct spec *s)
{
	uint64_t run = spec_number(s, SPEC_LIMITS_TIME), kept = spec_number(s, SPEC_SESSION_TTL);
	char run_text[NUM_TEXT_SIZE], kept_text[NUM_TEXT_SIZE];

	if (!spec_is_declared(s, SPEC_SESSION_TTL) || run <= kept)
		return;
	num_print_duration(run, run_text);
	num_print_duration(kept, kept_text);
	diags_warn(&s->diags, spec_where(s, SPEC_LIMITS_TIME),
		"raise session.ttl, or lower limits.time",
		"limits.time: a run may take %s, longer than its session is kept (session.ttl: %s)",
		run_text, kept_text);
}

typedef void check_lint(struct spec *s);

static check_lint *const lints[] = {
	check_places,
	check_lists,
	check_env,
	check_pointless,
	check_empty_network,
	check_overlay,
	check_opt_outs,
	check_times,
};

void check_settings(struct spec *s)
{
	for (size_t i = 0; i < COUNT_OF(lints); i++)
		lints[i](s);
}
