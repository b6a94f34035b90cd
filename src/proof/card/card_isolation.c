#include <stdio.h>
#include <stdlib.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "proof/card/card.h"

/* --- mechanisms: each guarantee is a member of its own, some are several --- */

static const struct {
	const char *name;
	enum plan_guarantee guarantee;
	bool is_namespace; /* the guarantee can be given without one, by engines that have none */
} mechanisms[] = {
	{ "userNamespace", PLAN_IDS_UNPRIVILEGED, true },
	{ "mountNamespace", PLAN_FS_ROOT, true },
	{ "pidNamespace", PLAN_PROCESSES, true },
	{ "ipcNamespace", PLAN_IPC, true },
	{ "utsNamespace", PLAN_UTS, true },
	{ "cgroupNamespace", PLAN_CGROUP, true },
	{ "ownRoot", PLAN_FS_ROOT },
	{ "readsDeclaredOnly", PLAN_FS_READS },
	{ "writesDeclaredOnly", PLAN_FS_WRITES },
	{ "projectHeld", PLAN_FS_PROJECT },
	{ "protectedPathsHeld", PLAN_FS_PROTECT },
	{ "privateHome", PLAN_HOME },
	{ "cleanEnvironment", PLAN_ENVIRONMENT },
	{ "noCapabilities", PLAN_IDS_UNPRIVILEGED },
	{ "noNewPrivileges", PLAN_IDS_UNPRIVILEGED },
	{ "noSupplementaryGroups", PLAN_GROUPS },
	{ "ownProcessesOnly", PLAN_PROCESSES },
	{ "minimalDevices", PLAN_DEV },
	{ "ownTerminal", PLAN_TTY },
	{ "seccomp", PLAN_SYSTEM_CALLS },
	{ "landlock", PLAN_LANDLOCKED },
};

const char *card_mechanism(size_t i)
{
	return i < COUNT_OF(mechanisms) ? mechanisms[i].name : NULL;
}

static bool has_namespaces(const struct card *c)
{
	return c->engine == SPEC_ENGINE_NATIVE || c->engine == SPEC_ENGINE_BWRAP ||
	       c->engine == SPEC_ENGINE_CONTAINER;
}

static bool isolation_holds(const struct card *c, enum plan_guarantee g)
{
	return c->promises[g].need != PLAN_NONE && c->promises[g].holds;
}

static bool is_net_held(const struct card *c)
{
	return isolation_holds(c, PLAN_NET_NONE) || isolation_holds(c, PLAN_NET_ALLOWLIST);
}

static void print_mechanisms(const struct card *c, struct json *j)
{
	for (size_t i = 0; i < COUNT_OF(mechanisms); i++) {
		enum plan_guarantee g = mechanisms[i].guarantee;

		if (c->promises[g].need != PLAN_NONE)
			json_bool(j, mechanisms[i].name,
				isolation_holds(c, g) &&
					(!mechanisms[i].is_namespace || has_namespaces(c)));
	}
	json_bool(j, "networkNamespace", is_net_held(c) && has_namespaces(c));
	if (isolation_holds(c, PLAN_LANDLOCKED))
		json_int(j, "landlockAbi", c->landlock_abi);
}

/* --- values --- */

/* The entries of a list as a member; nothing where it is empty. */
static void isolation_print_list(
	const struct card *c, enum spec_key key, const char *name, struct json *j)
{
	size_t n = 0;
	own_free const struct spec_item **items = spec_ordered(key, spec_list(c->spec, key), &n);

	if (!items)
		j->out->failed = true;
	if (!items || !n)
		return;
	json_open_list(j, name);
	for (size_t i = 0; i < n; i++)
		json_text(j, NULL, items[i]->text);
	json_close_list(j);
}

static void print_differing(const struct card *c, enum spec_key key, struct json *j)
{
	const struct spec_key_def *def = &spec_keys[key];

	json_open_map(j, NULL);
	json_text(j, "key", def->path);
	if (spec_is_list(def->type))
		isolation_print_list(c, key, "value", j);
	else if (def->type == SPEC_TYPE_BOOL)
		json_bool(j, "value", spec_bool(c->spec, key));
	else if (def->type == SPEC_TYPE_CHOICE)
		json_text(j, "value", def->choices[spec_choice(c->spec, key)]);
	else
		json_text(j, "value", spec_text(c->spec, key));
	json_close_map(j);
}

static void print_differs(const struct card *c, struct json *j)
{
	if (c->is_hardened)
		return;
	json_open_list(j, "differs");
	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++)
		if (plan_ends_hardened(c->spec, k))
			print_differing(c, k, j);
	json_close_list(j);
}

/* Hosts that are reached with a key of the operator's; where that is kept is nobody's business. */
static void print_secrets(const struct card *c, struct json *j)
{
	size_t n = 0;
	own_free const struct spec_item **items =
		spec_ordered(SPEC_SECRETS, spec_list(c->spec, SPEC_SECRETS), &n);
	char host[300];

	if (!items)
		j->out->failed = true;
	if (!items || !n)
		return;
	json_open_list(j, "withSecret");
	for (size_t i = 0; i < n; i++) {
		snprintf(host, sizeof(host), "%s:%u", items[i]->secret.host, items[i]->secret.port);
		json_text(j, NULL, host);
	}
	json_close_list(j);
}

static void print_egress(const struct card *c, struct json *j)
{
	unsigned mode = spec_choice(c->spec, SPEC_NETWORK_MODE);

	json_open_map(j, "egress");
	json_text(j, "mode", spec_keys[SPEC_NETWORK_MODE].choices[mode]);
	json_bool(j, "held", is_net_held(c));
	if (mode == SPEC_NET_ALLOWLIST) {
		isolation_print_list(c, SPEC_NETWORK_ALLOW, "allow", j);
		isolation_print_list(c, SPEC_NETWORK_HOST_PORTS, "hostPorts", j);
		isolation_print_list(c, SPEC_NETWORK_PUBLISH, "publish", j);
		print_secrets(c, j);
	}
	json_close_map(j);
}

/* Those that hold; of those that do not, `degraded` has the names. */
static void print_limits(const struct card *c, struct json *j)
{
	bool is_open = false;

	for (size_t i = 0; i < PLAN_LIMIT_COUNT; i++) {
		enum spec_key key = plan_limits[i].key;
		own(buf) struct buf value = { .max = 64 };

		if (!isolation_holds(c, plan_limits[i].guarantee))
			continue;
		if (!is_open)
			json_open_map(j, "limits");
		is_open = true;
		spec_print_value(key, spec_list(c->spec, key), &value);
		json_text(j, spec_key_leaf(key), buf_text(&value));
	}
	if (is_open)
		json_close_map(j);
}

static void count_binds(const struct card *c, int64_t *ret_count, int64_t *ret_writable)
{
	const struct spec_value *v = spec_list(c->spec, SPEC_BINDS);

	*ret_count = (int64_t)v->count;
	*ret_writable = 0;
	for (size_t i = 0; i < v->count; i++)
		*ret_writable += v->items[i].bind.is_writable;
}

static void print_openings(const struct card *c, struct json *j)
{
	const char *overlay = spec_text(c->spec, SPEC_ROOT_OVERLAY);
	unsigned mode = spec_choice(c->spec, SPEC_PROJECT_MODE),
		 cage = spec_choice(c->spec, SPEC_PROJECT_CAGE);
	int64_t count, writable;

	count_binds(c, &count, &writable);
	json_text(j, "home", CARD_HOME);
	json_bool(j, "fakeroot", spec_bool(c->spec, SPEC_FAKEROOT));
	json_open_map(j, "root");
	json_text(j, "image", spec_text(c->spec, SPEC_ROOT_IMAGE));
	json_text(j, "overlay", str_eq(overlay, "ephemeral") ? "ephemeral" : "kept");
	json_close_map(j);
	json_open_map(j, "project");
	json_text(j, "mode", spec_keys[SPEC_PROJECT_MODE].choices[mode]);
	json_text(j, "cage", spec_keys[SPEC_PROJECT_CAGE].choices[cage]);
	json_close_map(j);
	json_open_map(j, "binds");
	json_int(j, "count", count);
	json_int(j, "writable", writable);
	json_close_map(j);
	if (isolation_holds(c, PLAN_SYSTEM_CALLS))
		json_text(j, "seccompProfile", spec_text(c->spec, SPEC_SYSCALLS));
	json_int(j, "variablesPassed", (int64_t)spec_list(c->spec, SPEC_ENV_PASS)->count);
}

/* --- what was seen --- */

static void print_preflight(const struct card *c, struct json *j)
{
	bool has_allowed = c->spec && spec_list(c->spec, SPEC_PREFLIGHT_ALLOW)->count > 0;

	if (!c->preflight_digest && !c->run.is_known && !has_allowed)
		return;
	json_open_map(j, "preflight");
	if (c->preflight_digest)
		json_text(j, "sha256", c->preflight_digest);
	if (c->run.is_known)
		json_bool(j, "passed", c->run.is_preflight_passed);
	if (has_allowed)
		isolation_print_list(c, SPEC_PREFLIGHT_ALLOW, "allowed", j);
	json_close_map(j);
}

static void isolation_print_degraded(const struct card *c, struct json *j)
{
	bool is_open = false;

	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
		if (c->promises[g].need != PLAN_MAY || c->promises[g].holds)
			continue;
		if (!is_open)
			json_open_list(j, "degraded");
		is_open = true;
		json_text(j, NULL, plan_guarantee_defs[g].name);
	}
	if (is_open)
		json_close_list(j);
}

static void isolation_print_digest(struct json *j, const char *name, const char *digest)
{
	json_open_map(j, name);
	json_text(j, "sha256", digest);
	json_close_map(j);
}

static void isolation_print_run(const struct card_run *run, struct json *j)
{
	json_open_map(j, "run");
	json_text(j, "id", run->id);
	json_text(j, "outcome", run->outcome);
	json_bool(j, "inChain", run->is_in_chain);
	json_open_map(j, "record");
	json_text(j, "sha256", run->record);
	if (run->key)
		json_text(j, "key", run->key);
	json_close_map(j);
	if (run->effects)
		isolation_print_digest(j, "effects", run->effects);
	json_close_map(j);
}

static void print_observed(const struct card *c, struct json *j)
{
	bool is_open = false;

	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
		const struct card_promise *p = &c->promises[g];

		if (p->need == PLAN_NONE || !p->vantage)
			continue;
		if (!is_open)
			json_open_map(j, "observed");
		is_open = true;
		json_open_map(j, plan_guarantee_defs[g].name);
		json_bool(j, "holds", p->holds);
		json_text(j, "vantage", p->vantage);
		json_close_map(j);
	}
	if (is_open)
		json_close_map(j);
}

void card_print_isolation(const struct card *c, struct json *j)
{
	json_text(j, "basis", c->run.is_known ? "observed" : "declared");
	json_text(j, "level", c->is_hardened ? "hardened" : "custom");
	if (c->spec)
		print_differs(c, j);
	json_text(j, "engine", spec_keys[SPEC_ENGINE].choices[c->engine]);
	print_mechanisms(c, j);
	if (c->spec) {
		print_openings(c, j);
		print_egress(c, j);
		print_limits(c, j);
	}
	print_preflight(c, j);
	isolation_print_degraded(c, j);
	isolation_print_digest(j, "specDigest", c->spec_digest);
	isolation_print_digest(j, "planDigest", c->plan_digest);
	if (!c->run.is_known)
		return;
	isolation_print_run(&c->run, j);
	print_observed(c, j);
}

/* --- for older readers --- */

/* Everything of the host is out of sight that a container's "contain all" puts there. */
static bool contains_all(const struct card *c)
{
	static const enum plan_guarantee all[] = { PLAN_FS_ROOT, PLAN_FS_READS, PLAN_HOME,
		PLAN_ENVIRONMENT, PLAN_PROCESSES, PLAN_IPC, PLAN_DEV };
	bool is_so = true;

	for (size_t i = 0; i < COUNT_OF(all); i++)
		is_so = is_so && isolation_holds(c, all[i]);
	return is_so;
}

void card_print_legacy(const struct card *c, struct json *j)
{
	size_t n = 0;
	own_free const struct spec_item **allowed =
		spec_ordered(SPEC_PREFLIGHT_ALLOW, spec_list(c->spec, SPEC_PREFLIGHT_ALLOW), &n);
	bool has_passed = c->run.is_known && c->run.is_preflight_passed;
	int64_t count, writable;

	count_binds(c, &count, &writable);
	if (!allowed)
		j->out->failed = true;
	json_open_map(j, "isolation");
	json_text(j, "level", c->is_hardened ? "hardened" : "custom");
	json_bool(j, "containall", contains_all(c));
	json_bool(j, "cleanenv", isolation_holds(c, PLAN_ENVIRONMENT));
	json_bool(j, "writable_tmpfs", str_eq(spec_text(c->spec, SPEC_ROOT_OVERLAY), "ephemeral"));
	json_text(j, "home_canonical", CARD_HOME);
	json_bool(j, "fakeroot", spec_bool(c->spec, SPEC_FAKEROOT));
	json_open_list(j, "preflight_passed");
	/* Root in the cage is told from root outside, which is what the check is for. */
	if (has_passed && !spec_bool(c->spec, SPEC_FAKEROOT))
		json_text(j, NULL, "uid-nonzero");
	if (has_passed)
		json_text(j, NULL, "home-canonical");
	json_close_list(j);
	json_open_list(j, "preflight_allowed");
	for (size_t i = 0; allowed && i < n; i++)
		json_text(j, NULL, allowed[i]->text);
	json_close_list(j);
	json_int(j, "binds_count", count);
	json_int(j, "binds_writable_count", writable);
	json_close_map(j);
}
