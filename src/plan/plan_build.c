/*
 * Makes a plan of a settled spec: the tree (plan_build_files.c, plan_project.c), and here identity,
 * environment, network, limits, filters, the command, the promises and the level; then packs it all
 * into one block.
 */
#include "plan/plan_builder.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"

static_assert(sizeof(struct plan) % 8 == 0, "operations follow the head without a gap");
static_assert(sizeof(struct plan_op) == 24, "an operation has no padding");
static_assert(PLAN_OP_KIND_COUNT <= UINT8_MAX, "a kind has one byte");
static_assert(sizeof(struct plan_promise) == 12, "a promise has no padding");
static_assert(sizeof(struct plan_rule) == 52, "a rule has no padding");

/* --- operations --- */

/* Adds a string and returns its place; the empty one is at 0. */
static uint32_t add_string(struct plan_builder *b, const char *text)
{
	size_t at = b->strings.len;

	if (!*text && at)
		return 0;
	buf_add(&b->strings, text, strlen(text) + 1);
	return (uint32_t)at;
}

/* A path of the spec is taken apart; one that is at another root was never a text. */
static uint32_t add_operand(
	struct plan_builder *b, enum plan_operand operand, const char *text, uint8_t *root)
{
	bool is_path = operand == PLAN_OPERAND_SOURCE || operand == PLAN_OPERAND_PLACE;

	if (is_path && *root == PLAN_ROOT_NONE)
		*root = (uint8_t)plan_root_of(text, &text);
	return add_string(b, text);
}

void plan_add(struct plan_builder *b, enum plan_op_kind kind, const char *from, const char *to,
	struct plan_op like)
{
	like.kind = (uint8_t)kind;
	like.a = add_operand(b, plan_op_defs[kind].a, from, &like.a_root);
	like.b = add_operand(b, plan_op_defs[kind].b, to, &like.b_root);
	buf_add(&b->ops, &like, sizeof(like));
}

/* Adds an operation of the network and its rule; a text that is NULL is empty. */
static void add_rule_op(struct plan_builder *b, enum plan_op_kind kind, struct plan_rule rule,
	const char *const texts[static PLAN_RULE_TEXTS], const char *note)
{
	uint64_t number = b->rules.len / sizeof(rule);

	for (size_t i = 0; i < PLAN_RULE_TEXTS; i++)
		rule.texts[i] = add_string(b, texts[i] ? texts[i] : "");
	buf_add(&b->rules, &rule, sizeof(rule));
	plan_add(b, kind, "", note, PLAN_OP(.n = number));
}

/* One operation for each entry of a list, its text as the first operand; sets in their order. */
static void add_entries(
	struct plan_builder *b, enum spec_key key, enum plan_op_kind kind, struct plan_op like)
{
	size_t n = 0;
	own_free const struct spec_item **items = spec_ordered(key, spec_list(b->spec, key), &n);

	if (!items)
		b->ops.failed = true;
	for (size_t i = 0; items && i < n; i++)
		plan_add(b, kind, items[i]->text, "", like);
}

/* --- identity --- */

static void add_namespaces(struct plan_builder *b)
{
	static const struct {
		const char *name;
		enum host_ability ability;
	} namespaces[] = {
		{ "user", HOST_NS_USER },
		{ "mount", HOST_NS_MOUNT },
		{ "pid", HOST_NS_PID },
		{ "net", HOST_NS_NET },
		{ "ipc", HOST_NS_IPC },
		{ "uts", HOST_NS_UTS },
		{ "cgroup", HOST_NS_CGROUP },
	};

	if (b->engine == SPEC_ENGINE_LANDLOCK || b->engine == SPEC_ENGINE_LOGICAL)
		return;
	for (size_t i = 0; i < COUNT_OF(namespaces); i++) {
		bool shares_net = namespaces[i].ability == HOST_NS_NET &&
				  spec_choice(b->spec, SPEC_NETWORK_MODE) == SPEC_NET_HOST;
		bool is_there =
			b->engine != SPEC_ENGINE_NATIVE || host_can(b->host, namespaces[i].ability);

		if (!shares_net && is_there)
			plan_add(b, PLAN_NAMESPACE, namespaces[i].name, "", PLAN_OP());
	}
}

/* The id outside: the operator's own, or for root one of a reserved range, never 0. */
static void add_ids(struct plan_builder *b)
{
	/* The kernel counts these for who made the user namespace too: without a share of its own,
	 * a cage could leave the operator none. */
	static const struct {
		const char *what;
		uint64_t n;
	} shares[] = {
		{ "fanotify_groups", 32 },
		{ "inotify_instances", 64 },
		{ "inotify_watches", 65536 },
	};
	bool is_root_inside = spec_bool(b->spec, SPEC_FAKEROOT);
	/* An overlay above the project has to know its group. */
	bool is_team = b->host->has_team && !b->host->in_session &&
		       spec_choice(b->spec, SPEC_PROJECT_MODE) == SPEC_MODE_CAPTURED &&
		       plan_capture(b->spec, b->host) == HOST_CAPTURE_ON_DISK;

	plan_add(b, PLAN_IDS,
		b->host->is_root ? "reserved"
		: is_team        ? "team"
				 : "operator",
		"", PLAN_OP(.n = is_root_inside ? 0 : 1000));
	for (size_t i = 0; b->engine == SPEC_ENGINE_NATIVE && i < COUNT_OF(shares); i++)
		plan_add(b, PLAN_SHARE, shares[i].what, "",
			PLAN_OP_NEED(PLAN_MAY, .n = shares[i].n));
	plan_add(b, PLAN_HOSTNAME, "bawn", "", PLAN_OP());
}

/* --- environment: built from nothing --- */

static void add_env(struct plan_builder *b, const char *name, const char *value, uint16_t flags)
{
	plan_add(b, PLAN_ENV, name, value, PLAN_OP(.flags = flags));
}

/* Adds the variables with the project's path and the run's id, which differ for each run. */
static void add_own_names(struct plan_builder *b)
{
	const char *path;
	enum plan_root root = plan_root_of(plan_project_place(b->spec, b->engine), &path);

	plan_add(b, PLAN_ENV, "BAWN_PROJECT_DIR", path,
		PLAN_OP(.b_root = (uint8_t)root, .flags = PLAN_OWN));
	add_env(b, "BAWN_SANDBOX", "1", PLAN_OWN);
	add_env(b, "BAWN_SANDBOX_ROOT", "/", PLAN_OWN);
	plan_add(b, PLAN_ENV, "BAWN_SESSION_ID", "",
		PLAN_OP(.b_root = PLAN_ROOT_RUN, .flags = PLAN_OWN));
}

/* S-09: sources bound for reading have one well-known place. */
static bool has_sources(const struct spec *s)
{
	const struct spec_value *binds = spec_list(s, SPEC_BINDS);

	for (size_t i = 0; i < binds->count; i++)
		if (str_path_within(binds->items[i].bind.to, "/srv/sources"))
			return true;
	return false;
}

static void add_settings(struct plan_builder *b)
{
	size_t n = 0;
	own_free const struct spec_item **set =
		spec_ordered(SPEC_ENV_SET, spec_list(b->spec, SPEC_ENV_SET), &n);

	if (!set)
		b->ops.failed = true;
	for (size_t i = 0; set && i < n; i++)
		add_env(b, set[i]->var.name, set[i]->var.value, 0);
}

/*
 * Package managers try again whatever the answer was, npm for 70 seconds. Without a network the
 * first answer is the last; and npm does not look for newer versions of itself.
 */
static void add_impatience(struct plan_builder *b)
{
	static const char *const settings[][2] = { { "CARGO_NET_RETRY", "0" },
		{ "PIP_RETRIES", "0" }, { "npm_config_fetch_retries", "0" },
		{ "npm_config_update_notifier", "false" } };

	for (size_t i = 0; i < COUNT_OF(settings); i++)
		add_env(b, settings[i][0], settings[i][1], PLAN_OWN);
}

static void add_environment(struct plan_builder *b)
{
	const struct spec *s = b->spec;
	const char *user = spec_bool(s, SPEC_FAKEROOT) ? "root" : "agent";
	const struct {
		const char *name, *value;
	} own[] = {
		{ "HOME", "/home/agent" },
		{ "LANG", "C.UTF-8" },
		{ "LOGNAME", user },
		{ "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" },
		{ "SHELL", b->host->has_bash ? "/bin/bash" : "/bin/sh" },
		{ "TERM", "xterm-256color" },
		{ "TMPDIR", "/tmp" },
		{ "USER", user },
	};

	/* Before the declared variables, which may replace them. */
	add_own_names(b);
	for (size_t i = 0; i < COUNT_OF(own); i++)
		add_env(b, own[i].name, own[i].value, PLAN_OWN);
	if (has_sources(s))
		add_env(b, "BAWN_WORKDIR", "/srv/sources", PLAN_OWN);
	if (spec_choice(s, SPEC_NETWORK_MODE) == SPEC_NET_NONE)
		add_impatience(b);
	add_settings(b);
	add_entries(b, SPEC_ENV_PASS, PLAN_ENV_PASS, PLAN_OP_NEED(PLAN_MAY));
}

/* --- network --- */

/* The items of a list in their order. The caller frees; an empty list where there is no memory. */
static const struct spec_item **ordered(struct plan_builder *b, enum spec_key key, size_t *ret_n)
{
	const struct spec_item **items = spec_ordered(key, spec_list(b->spec, key), ret_n);

	if (!items)
		b->ops.failed = true;
	return items;
}

static void add_host_ports(struct plan_builder *b)
{
	size_t n = 0;
	own_free const struct spec_item **ports = ordered(b, SPEC_NETWORK_HOST_PORTS, &n);

	for (size_t i = 0; ports && i < n; i++)
		plan_add(b, PLAN_HOST_PORT, "", "", PLAN_OP(.n = ports[i]->port));
}

static void add_allowed(struct plan_builder *b)
{
	size_t n = 0;
	own_free const struct spec_item **items = ordered(b, SPEC_NETWORK_ALLOW, &n);

	for (size_t i = 0; items && i < n; i++) {
		const struct spec_egress *to = &items[i]->egress;
		/* One that has not been asked is all that is known of it. */
		const char *const texts[PLAN_RULE_TEXTS] = {
			[PLAN_RULE_HOST] = to->port ? to->host : to->client,
		};
		struct plan_rule rule = {
			.prefix = to->prefix,
			.protocol = (uint8_t)to->protocol,
			.is_wildcard = to->is_wildcard,
			.port = to->port,
		};

		memcpy(rule.address, to->address, sizeof(rule.address));
		add_rule_op(b, PLAN_ALLOW, rule, texts, to->port && to->client ? to->client : "");
	}
}

static void add_published(struct plan_builder *b)
{
	size_t n = 0;
	own_free const struct spec_item **items = ordered(b, SPEC_NETWORK_PUBLISH, &n);

	for (size_t i = 0; items && i < n; i++) {
		const struct spec_publish *p = &items[i]->publish;
		const char *const texts[PLAN_RULE_TEXTS] = { [PLAN_RULE_HOST] = p->address };

		add_rule_op(b, PLAN_PUBLISH,
			(struct plan_rule){ .port = p->host_port, .cage_port = p->cage_port },
			texts, "");
	}
}

static void add_secrets(struct plan_builder *b)
{
	size_t n = 0;
	own_free const struct spec_item **items = ordered(b, SPEC_SECRETS, &n);

	for (size_t i = 0; items && i < n; i++) {
		const struct spec_secret *s = &items[i]->secret;
		const char *source = s->source, *ca = s->ca;
		struct plan_rule rule = { .port = s->port, .is_file = s->is_file };

		if (s->is_file)
			rule.source_root = (uint8_t)plan_root_of(s->source, &source);
		if (s->ca)
			rule.ca_root = (uint8_t)plan_root_of(s->ca, &ca);
		add_rule_op(b, PLAN_SECRET, rule,
			(const char *const[PLAN_RULE_TEXTS]){
				[PLAN_RULE_HOST] = s->host,
				[PLAN_RULE_NAME] = s->name,
				[PLAN_RULE_HEADER] = s->header,
				[PLAN_RULE_SCHEME] = s->scheme,
				[PLAN_RULE_SOURCE] = source,
				[PLAN_RULE_CA] = ca,
			},
			"");
	}
}

static void add_network(struct plan_builder *b)
{
	unsigned mode = spec_choice(b->spec, SPEC_NETWORK_MODE);

	plan_add(b, PLAN_NETWORK, spec_keys[SPEC_NETWORK_MODE].choices[mode], "", PLAN_OP());
	if (mode != SPEC_NET_ALLOWLIST)
		return;
	add_allowed(b);
	add_host_ports(b);
	add_published(b);
	add_secrets(b);
}

/* --- limits --- */

static const char *cgroup_or(
	const struct plan_builder *b, enum host_ability ability, const char *otherwise)
{
	if (b->engine == SPEC_ENGINE_MICROVM)
		return "virtual machine";
	if (!host_can(b->host, ability))
		return otherwise;
	return b->host->cgroup_version == 2 ? "cgroup v2" : "cgroup v1";
}

/* Returns what enforces a limit; NULL: nothing on this host. */
static const char *limit_by(const struct plan_builder *b, enum plan_guarantee g)
{
	if (g == PLAN_LIMITS_MEMORY)
		return cgroup_or(b, HOST_CGROUP_MEMORY, NULL);
	if (g == PLAN_LIMITS_CPU)
		return cgroup_or(b, HOST_CGROUP_CPU, NULL);
	if (g == PLAN_LIMITS_PIDS)
		return cgroup_or(b, HOST_CGROUP_PIDS, "user namespace");
	if (g == PLAN_LIMITS_DISK)
		return spec_choice(b->spec, SPEC_PROJECT_MODE) != SPEC_MODE_CAPTURED ||
				       plan_capture(b->spec, b->host) == HOST_CAPTURE_IN_POOL
			       ? "file system"
			       : "file system, keeper";
	return g == PLAN_LIMITS_FILES ? "rlimit" : "keeper";
}

static void add_limits(struct plan_builder *b)
{
	bool ends = spec_choice(b->spec, SPEC_LIMITS_OUTPUT_THEN) == SPEC_OUTPUT_END;

	for (size_t i = 0; i < PLAN_LIMIT_COUNT; i++) {
		enum plan_guarantee g = plan_limits[i].guarantee;
		uint64_t n = spec_number(b->spec, plan_limits[i].key);
		const char *by = limit_by(b, g);

		if (n && by && b->choice->engines[b->engine].verdicts[g].can)
			plan_add(b, PLAN_LIMIT, plan_guarantee_defs[g].name, by,
				PLAN_OP_NEED(b->choice->demands[g].need, .n = n,
					.flags = ends && g == PLAN_LIMITS_OUTPUT ? PLAN_ENDS : 0));
	}
}

/* --- what the processes lose, and what they are held to --- */

static bool gives(const struct plan_builder *b, enum plan_guarantee g)
{
	return b->choice->engines[b->engine].verdicts[g].can;
}

static void add_drops(struct plan_builder *b)
{
	static const char *const drops[] = { "capabilities", "keyring", "new-privileges" };

	if (gives(b, PLAN_GROUPS))
		plan_add(b, PLAN_DROP, "groups", "", PLAN_OP());
	for (size_t i = 0; i < COUNT_OF(drops); i++)
		plan_add(b, PLAN_DROP, drops[i], "", PLAN_OP());
}

static void add_rule(struct plan_builder *b, const char *path, uint16_t flags)
{
	plan_add(b, PLAN_RULE, "", path, PLAN_OP(.flags = flags));
}

/* Patterns elsewhere are binds, and have rules as such. */
static void add_rule_of_part(
	struct plan_builder *b, const char *base, uint16_t flags, const char *place)
{
	const char *inside = plan_path_in_project(base);
	const char *path = inside ? arena_printf(&b->spec->arena, "%s/%s", place, inside) : NULL;

	if (path)
		add_rule(b, path, flags);
	else if (inside)
		b->ops.failed = true;
}

/*
 * What Landlock opens of the project, seen at `place`: all of it, or its parts. Rules only add
 * up, so what is less than the whole is opened piece by piece, and a protected path cannot be
 * taken out again: that rests on the mounts.
 */
static void add_rules_of_project(struct plan_builder *b, const char *place, bool is_writable)
{
	bool is_whole = is_writable && plan_has_whole_project(b->spec, SPEC_PROJECT_WRITE);

	if (!plan_has_whole_project(b->spec, SPEC_PROJECT_READ))
		add_rule(b, place, PLAN_LIST);
	else
		add_rule(b, place, is_whole ? 0 : PLAN_READ_ONLY);
	plan_walk_parts(b, SPEC_PROJECT_READ, is_writable, add_rule_of_part, place);
	if (is_writable)
		plan_walk_parts(b, SPEC_PROJECT_WRITE, true, add_rule_of_part, place);
}

/*
 * Without a tree of its own, the cage is the host's tree seen through Landlock: the system and
 * the binds' sources as they are, and the project, which only mode: writable lets be written.
 */
static void add_rules_of_host(struct plan_builder *b)
{
	static const char *const devices[] = { "/dev/full", "/dev/null", "/dev/random",
		"/dev/urandom", "/dev/zero" };
	const struct spec_value *binds = spec_list(b->spec, SPEC_BINDS);

	for (size_t i = 0; i < HOST_SYSTEM_COUNT; i++)
		if (b->host->system[i].kind == HOST_PATH_DIR ||
			b->host->system[i].kind == HOST_PATH_FILE)
			add_rule(b, host_system_paths[i], PLAN_READ_ONLY);
	for (size_t i = 0; i < COUNT_OF(devices); i++)
		add_rule(b, devices[i], PLAN_NO_EXEC);
	add_rules_of_project(b, plan_roots[PLAN_ROOT_PROJECT].name,
		spec_choice(b->spec, SPEC_PROJECT_MODE) == SPEC_MODE_WRITABLE);
	for (size_t i = 0; i < binds->count; i++)
		add_rule(b, binds->items[i].bind.from,
			binds->items[i].bind.is_writable ? 0 : PLAN_READ_ONLY);
}

/*
 * What the root itself opens: its names, or what an image has to be read and executed. An overlay
 * above an image is there to be written to anywhere; then that what is mounted in it stays
 * read-only rests on the mounts.
 */
static uint16_t root_flags(const struct plan_builder *b, const struct plan_op *op)
{
	if (!plan_is_image(op))
		return PLAN_LIST;
	return str_eq(spec_text(b->spec, SPEC_ROOT_OVERLAY), "ephemeral") ? PLAN_READ_ONLY : 0;
}

static size_t count_ops(const struct plan_builder *b)
{
	return b->ops.len / sizeof(struct plan_op);
}

/*
 * Has a rule for a folder above given the same already? Landlock adds up what the rules on the way
 * from the root to a file give, across mounts. A rule for the same path may be for the folder that
 * is mounted over, and that one is not on the way.
 */
static bool is_given_above(const struct plan_builder *b, const char *path, unsigned flags)
{
	const struct plan_op *ops = (const struct plan_op *)(const void *)b->ops.data;

	for (size_t i = 0; i < count_ops(b); i++) {
		const char *above = b->strings.data + ops[i].b;

		if (ops[i].kind == PLAN_RULE && ops[i].b_root == PLAN_ROOT_NONE &&
			ops[i].flags == flags && !str_eq(path, above) &&
			str_path_within(path, above))
			return true;
	}
	return false;
}

/*
 * Landlock says the same as the mounts, by another mechanism: made from them, so they agree. Each
 * mount opens itself, unless the one that it is in has.
 */
static void add_rules_of_tree(struct plan_builder *b, size_t first)
{
	size_t count = count_ops(b);

	for (size_t i = first; i < count && !b->ops.failed && !b->strings.failed; i++) {
		/* Copied: adding an operation may move them all, and their strings. */
		struct plan_op op = ((const struct plan_op *)(const void *)b->ops.data)[i];
		const char *path = arena_copy(
			&b->spec->arena, b->strings.data + op.b, strlen(b->strings.data + op.b));
		bool is_device = op.kind == PLAN_DEVICE || op.kind == PLAN_DEVPTS;
		uint16_t flags = op.flags & (PLAN_READ_ONLY | PLAN_NO_EXEC);
		bool is_tree = op.kind == PLAN_TMPFS || op.kind == PLAN_BIND ||
			       op.kind == PLAN_PROC || op.kind == PLAN_DIR || plan_is_image(&op) ||
			       op.kind == PLAN_GIT;

		if (!path)
			b->ops.failed = true;
		else if (op.kind == PLAN_PROJECT)
			add_rules_of_project(b, plan_project_place(b->spec, b->engine),
				spec_choice(b->spec, SPEC_PROJECT_MODE) != SPEC_MODE_READ_ONLY);
		else if (is_device)
			add_rule(b, path, PLAN_NO_EXEC);
		else if (is_tree && str_eq(path, "/"))
			add_rule(b, path, root_flags(b, &op));
		else if (is_tree &&
			 (op.b_root != PLAN_ROOT_NONE || !is_given_above(b, path, flags)))
			plan_add(b, PLAN_RULE, "", path,
				PLAN_OP(.b_root = op.b_root, .flags = flags));
	}
}

static void add_rules(struct plan_builder *b)
{
	bool is_background = b->host->in_session && spec_bool(b->spec, SPEC_SESSION_BACKGROUND);

	if (!gives(b, PLAN_LANDLOCKED))
		return;
	plan_add(b, PLAN_LANDLOCK, "", "",
		PLAN_OP(.n = (uint64_t)b->host->landlock_abi,
			.flags = is_background ? PLAN_SHARED : 0));
	if (b->engine == SPEC_ENGINE_LANDLOCK)
		add_rules_of_host(b);
	else
		add_rules_of_tree(b, 0);
}

/* Adds what a session brings, when everything else is mounted; and its rules. */
static void add_session(struct plan_builder *b)
{
	size_t first;

	plan_add(b, PLAN_AWAIT, "workspace", "", PLAN_OP());
	first = count_ops(b);
	plan_add_project(b);
	if (gives(b, PLAN_LANDLOCKED))
		add_rules_of_tree(b, first);
}

/* True if a writable project has protected paths. */
static bool holds_something(const struct plan_builder *b)
{
	const struct plan_op *ops = (const struct plan_op *)(const void *)b->ops.data;
	size_t count = b->ops.len / sizeof(*ops);

	for (size_t i = 0; i < count; i++)
		if (ops[i].kind == PLAN_PROTECT)
			return true;
	return false;
}

static void add_filter(struct plan_builder *b)
{
	if (!gives(b, PLAN_SYSTEM_CALLS))
		return;
	plan_add(b, PLAN_SYSCALLS, spec_text(b->spec, SPEC_SYSCALLS), "", PLAN_OP());
	/* What is denied is denied in any case; only the cage that is ours can hand a listener
	 * over.
	 */
	if (b->engine != SPEC_ENGINE_NATIVE)
		return;
	plan_add(b, PLAN_TELL, PLAN_TELL_DENIED, "", PLAN_OP_NEED(PLAN_MAY));
	if (spec_bool(b->spec, SPEC_AUDIT_WATCH_PROTECTED) && holds_something(b))
		plan_add(b, PLAN_TELL, PLAN_TELL_WRITES, "", PLAN_OP_NEED(PLAN_MAY));
}

static void add_limits_and_filters(struct plan_builder *b)
{
	add_environment(b);
	add_network(b);
	add_limits(b);
	if (b->engine == SPEC_ENGINE_LOGICAL)
		return;
	/*
	 * What is dropped first cannot be used by mistake; but what is awaited has to be mounted.
	 */
	if (!plan_awaits_session(b))
		add_drops(b);
	add_rules(b);
	if (plan_awaits_session(b)) {
		add_session(b);
		add_drops(b);
	}
	if (gives(b, PLAN_LANDLOCKED))
		plan_add(b, PLAN_CONFINE, "", "", PLAN_OP());
	add_filter(b);
}

static void add_command(struct plan_builder *b)
{
	const char *workdir = spec_text(b->spec, SPEC_WORKDIR);
	char digest[SHA256_HEX_SIZE];

	plan_preflight_digest(digest);
	plan_add(b, PLAN_PREFLIGHT, digest, "", PLAN_OP());
	add_entries(b, SPEC_STARTUP_COMMANDS, PLAN_STARTUP, PLAN_OP());
	plan_add(b, PLAN_WORKDIR, "", workdir ? workdir : plan_project_place(b->spec, b->engine),
		PLAN_OP());
	add_entries(b, SPEC_COMMAND, PLAN_ARGUMENT, PLAN_OP());
}

/* --- promises --- */

static void add_promises(struct plan_builder *b)
{
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
		const struct plan_verdict *v = &b->choice->engines[b->engine].verdicts[g];
		const struct plan_demand *d = &b->choice->demands[g];
		struct plan_promise promise = {
			.guarantee = (uint16_t)g,
			.need = d->need,
			.is_given = d->need != PLAN_NONE && v->can,
			.declared = add_string(b, d->value),
			.ability = (uint16_t)(v->is_possible && !v->can ? v->missing + 1 : 0),
		};

		buf_add(&b->promises, &promise, sizeof(promise));
	}
}

/* --- the level --- */

/* To accept that something is missing which is not required anyway takes nothing away. */
static bool degrades_required(const struct spec *s)
{
	struct plan_demand demand;
	bool ret = false;

	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT && !ret; g++) {
		plan_demand(s, g, &demand);
		ret = demand.is_degraded;
	}
	return ret;
}

bool plan_ends_hardened(const struct spec *s, enum spec_key key)
{
	const struct spec_key_def *def = &spec_keys[key];
	const struct spec_value *v = &s->settled.v[key];

	if (def->type == SPEC_TYPE_CHOICE && def->hardened_choices)
		return v->choice >= def->hardened_choices;
	if (key == SPEC_SELF_GOVERNANCE)
		return s->is_self_governed;
	if (key == SPEC_ALLOW_DEGRADED)
		return v->count && degrades_required(s);
	if (key == SPEC_SYSCALLS)
		return !str_eq(v->text, "default") && !str_eq(v->text, "strict");
	return def->makes_custom && (v->yes || v->count);
}

#define MANY 20 /* entries of a list that are not named one by one */

static void build_print_reason(enum spec_key key, const struct spec_value *v, struct buf *reasons)
{
	size_t n = 0;
	own_free const struct spec_item **items = spec_ordered(key, v, &n);

	if (!items)
		reasons->failed = true;
	if (n > MANY)
		buf_printf(reasons, "(%zu entries)", n);
	else
		spec_print_value(key, v, reasons);
}

/* Hardened, or the values that make it custom. */
static bool judge_level(const struct spec *s, struct buf *reasons)
{
	bool is_hardened = true;

	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++) {
		if (!plan_ends_hardened(s, k))
			continue;
		buf_printf(reasons, "%s%s ", is_hardened ? "" : ", ", spec_keys[k].path);
		build_print_reason(k, &s->settled.v[k], reasons);
		is_hardened = false;
	}
	return is_hardened;
}

/* --- packing --- */

static int pack(struct plan_builder *b, const char *digest, struct plan **ret, struct err *e)
{
	own(buf) struct buf reasons = { .max = 1 << 20 };
	const struct buf *const parts[] = { &b->ops, &b->promises, &b->rules, &b->strings };
	struct plan head = { 0 };
	own_free struct plan *block = NULL;
	char *at;
	size_t size;

	head.engine = (uint16_t)b->engine;
	head.is_hardened = judge_level(b->spec, &reasons);
	head.level_reasons = add_string(b, buf_text(&reasons));
	head.name =
		add_string(b, spec_text(b->spec, SPEC_NAME) ? spec_text(b->spec, SPEC_NAME) : "");
	memcpy(head.spec_digest, digest, SHA256_HEX_SIZE);
	head.op_count = (uint32_t)(b->ops.len / sizeof(struct plan_op));
	head.promise_count = PLAN_GUARANTEE_COUNT;
	head.rule_count = (uint32_t)(b->rules.len / sizeof(struct plan_rule));
	head.string_size = (uint32_t)b->strings.len;
	size = sizeof(head) + b->ops.len + b->promises.len + b->rules.len + b->strings.len;
	if (b->ops.failed || b->promises.failed || b->rules.failed || b->strings.failed ||
		reasons.failed || size > PLAN_MAX_SIZE)
		return err_set(e, ERR_SPEC, E2BIG,
			"cannot make a plan: it would be larger than %zu MB", PLAN_MAX_SIZE >> 20);
	block = calloc(1, size);
	if (!block)
		return err_set(e, ERR_SYS, ENOMEM, "cannot make a plan: out of memory");
	head.size = (uint32_t)size;
	*block = head;
	at = (char *)(block + 1);
	for (size_t i = 0; i < COUNT_OF(parts); i++) {
		if (parts[i]->len)
			memcpy(at, parts[i]->data, parts[i]->len);
		at += parts[i]->len;
	}
	*ret = take_ptr(block);
	return 0; /* cppcheck-suppress memleak */
}

static int do_build(struct plan_builder *b, struct plan **ret, struct buf *ret_spec, struct err *e)
{
	char digest[SHA256_HEX_SIZE];

	ret_spec->len = 0;
	spec_print_canonical(b->spec, ret_spec);
	if (ret_spec->failed)
		return err_set(e, ERR_SYS, ENOMEM, "cannot make a plan: out of memory");
	sha256_hex(ret_spec->data, ret_spec->len, digest);
	add_string(b, "");
	add_entries(b, SPEC_ENGINE_ARGS, PLAN_ENGINE_ARGUMENT, PLAN_OP());
	add_namespaces(b);
	add_ids(b);
	plan_build_files(b);
	add_limits_and_filters(b);
	add_command(b);
	add_promises(b);
	return pack(b, digest, ret, e);
}

int plan_build(struct spec *s, const struct host *h, struct plan **ret,
	struct plan_choice *ret_choice, struct err *e)
{
	own(buf) struct buf canonical = { .max = PLAN_MAX_SIZE };

	return plan_build_with_spec(s, h, ret, &canonical, ret_choice, e);
}

int plan_build_with_spec(struct spec *s, const struct host *h, struct plan **ret,
	struct buf *ret_spec, struct plan_choice *ret_choice, struct err *e)
{
	struct plan_choice choice;
	struct plan_builder b = { .spec = s, .host = h, .choice = &choice };
	int r;

	plan_choose(s, h, &choice);
	plan_check_spec(s);
	if (ret_choice)
		*ret_choice = choice;
	if (s->diags.errors)
		return err_set(e, ERR_SPEC, 0, "cannot make a plan: the spec has errors");
	if (choice.engine == SPEC_ENGINE_AUTO)
		return err_set(e, ERR_REFUSED, EOPNOTSUPP,
			"cannot make a plan: this host cannot give every guarantee that is "
			"required");
	b.engine = choice.engine;
	b.ops.max = b.promises.max = b.rules.max = b.strings.max = PLAN_MAX_SIZE;
	r = do_build(&b, ret, ret_spec, e);
	buf_done(&b.ops);
	buf_done(&b.promises);
	buf_done(&b.rules);
	buf_done(&b.strings);
	return r;
}
