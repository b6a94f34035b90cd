/* Makes cards, from a plan or from the record of a run, and signs them (JWS). Pure. */
#include "proof/card/card.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/count.h"
#include "base/own.h"
#include "base/str.h"

/* --- from a plan, from a record --- */

void card_from_plan(
	const struct spec *s, const struct plan *p, const char *digest, struct card *ret)
{
	const struct plan_op *landlock = plan_find(p, PLAN_LANDLOCK, NULL);
	const struct plan_op *preflight = plan_find(p, PLAN_PREFLIGHT, NULL);

	*ret = (struct card){
		.spec = s,
		.url = CARD_URL,
		.engine = (enum spec_engine)p->engine,
		.is_hardened = p->is_hardened,
		.landlock_abi = landlock ? (int64_t)landlock->n : 0,
		.spec_digest = p->spec_digest,
		.plan_digest = digest,
		.preflight_digest = preflight ? plan_str(p, preflight->a) : NULL,
	};
	for (uint32_t i = 0; i < p->promise_count; i++) {
		const struct plan_promise *promise = &plan_promises(p)[i];

		ret->promises[promise->guarantee] = (struct card_promise){
			.need = (enum plan_need)promise->need,
			.holds = promise->is_given,
		};
	}
}

static const char *const vantages[] = {
	[RECORD_INSIDE] = "inside",
	[RECORD_KEEPER] = "keeper",
	[RECORD_OUTSIDE] = "outside",
};

static const char *const outcomes[] = {
	[RECORD_REFUSED] = "refused",
	[RECORD_EXITED] = "exited",
	[RECORD_SIGNALED] = "signaled",
	[RECORD_TIMED_OUT] = "timed_out",
	[RECORD_CUT_OFF] = "cut_off",
	[RECORD_BROKEN] = "broken",
	[RECORD_INTERRUPTED] = "interrupted",
};

static int wrong(struct err *e, const char *what)
{
	return err_set(e, ERR_SPEC, EBADMSG, "%s", what);
}

/* True if the record names this spec, and the spec gives the level that the record has. */
static int record_check_spec(const struct spec *s, const struct record_read *r, struct err *e)
{
	own(buf) struct buf form = { .max = PLAN_MAX_SIZE };
	char digest[SHA256_HEX_SIZE];
	bool is_hardened = true;

	spec_print_canonical(s, &form);
	if (form.failed)
		return err_set(e, ERR_SYS, ENOMEM, "cannot make the card: out of memory");
	sha256_hex(form.data, form.len, digest);
	if (!r->spec_sha256 || !str_eq(digest, r->spec_sha256))
		return wrong(e, "the spec is not the one that the record names");
	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++)
		is_hardened = is_hardened && !plan_ends_hardened(s, k);
	if (is_hardened != r->is_hardened)
		return wrong(e, "the record has another level than its spec");
	return 0;
}

static int find_engine(const char *name, enum spec_engine *ret, struct err *e)
{
	for (enum spec_engine i = SPEC_ENGINE_AUTO + 1; i < PLAN_ENGINE_COUNT; i++) {
		if (!name || !str_eq(name, spec_keys[SPEC_ENGINE].choices[i]))
			continue;
		*ret = i;
		return 0;
	}
	return wrong(e, "the record names no engine that is known here");
}

static void take_promises(const struct record_read *r, struct card *ret)
{
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
		const struct record_read_guarantee *x =
			record_read_find(r, plan_guarantee_defs[g].name);

		if (x)
			ret->promises[g] = (struct card_promise){
				.need = x->is_must ? PLAN_MUST : PLAN_MAY,
				.holds = x->holds && x->vantage != RECORD_UNSEEN,
				.vantage = vantages[x->vantage],
			};
	}
}

int card_from_record(const struct spec *s, const struct record_read *r, const char *digest,
	const char *key, struct card *ret, struct err *e)
{
	struct card_run run = {
		.is_known = true,
		.record = digest,
		.key = key,
		.id = r->run,
		.outcome = outcomes[r->outcome],
		.effects = r->effects.sha256,
		.is_preflight_passed = r->preflight_passed,
		.is_in_chain = r->in_chain,
	};
	int failure = s ? record_check_spec(s, r, e) : 0;

	*ret = (struct card){
		.spec = s,
		.url = CARD_URL,
		.is_hardened = r->is_hardened,
		.landlock_abi = r->landlock_abi,
		.spec_digest = r->spec_sha256,
		.plan_digest = r->plan_sha256,
		.preflight_digest = r->preflight_sha256,
		.run = run,
	};
	if (failure == 0)
		failure = find_engine(r->engine, &ret->engine, e);
	if (failure == 0 && (!r->run || !r->spec_sha256 || !r->plan_sha256))
		failure = wrong(e, "the record does not say which run, spec or plan it is about");
	take_promises(r, ret);
	return failure;
}

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

/* Prints the limits that hold; `degraded` names the others. */
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

static void card_print_legacy(const struct card *c, struct json *j)
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

/* --- signatures --- */

static void card_sign(const struct sign_key *key, const struct buf *canonical, struct json *j)
{
	own(buf) struct buf head = { .max = 512 }, protected = { .max = 1024 },
			    to_sign = { .max = 2 * CARD_MAX_SIZE }, text = { .max = 512 };
	uint8_t signature[SIGN_SIGNATURE_SIZE];
	struct json h;

	json_init(&h, &head, 0);
	json_open_map(&h, NULL);
	json_text(&h, "alg", "EdDSA");
	json_text(&h, "kid", key->public.id);
	json_text(&h, "typ", "JOSE");
	json_close_map(&h);
	base64_add(&protected, buf_text(&head), head.len, true);
	card_add_signed(buf_text(&protected), buf_text(canonical), canonical->len, &to_sign);
	sign_bytes(key, buf_text(&to_sign), to_sign.len, signature);
	base64_add(&text, signature, sizeof(signature), true);
	if (head.failed || protected.failed || to_sign.failed || text.failed)
		j->out->failed = true;
	json_open_map(j, NULL);
	json_text(j, "protected", buf_text(&protected));
	json_text(j, "signature", buf_text(&text));
	json_close_map(j);
}

/* --- the card --- */

bool card_is_url(const char *url)
{
	const char *rest = str_starts(url, "https://")  ? url + strlen("https://")
			   : str_starts(url, "http://") ? url + strlen("http://")
							: "";

	if (!*rest || *rest == '/' || strlen(url) > 2048)
		return false;
	for (; *rest; rest++)
		if (*rest <= ' ' || *rest >= 0x7f || strchr("\"<>\\^`{|}", *rest))
			return false;
	return true;
}

static void print_list_of(struct json *j, const char *key, const char *const *texts, size_t n)
{
	json_open_list(j, key);
	for (size_t i = 0; i < n; i++)
		json_text(j, NULL, texts[i]);
	json_close_list(j);
}

static void print_skill(const struct card *c, struct json *j)
{
	static const char *const tags[] = { "sandbox", "commands" };
	const char *agent = spec_text(c->spec, SPEC_AGENT);

	json_open_list(j, "skills");
	json_open_map(j, NULL);
	json_text(j, "id", agent ? agent : "run");
	json_text(j, "name", agent ? agent : "Run a command");
	json_text(j, "description",
		agent ? "Hands a task to this agent, in a cage of its own."
		      : "Runs a command in a cage of its own, and answers with its output and what "
			"it did to the project.");
	print_list_of(j, "tags", tags, 2);
	json_close_map(j);
	json_close_list(j);
}

/* What A2A knows, and what is signed. Nothing is empty, null or a fraction: readers that leave
 * such out before they check a signature find what was signed. */
static void print_members(const struct card *c, struct json *j)
{
	static const char *const modes[] = { "text/plain", "application/json" };
	const char *name = spec_text(c->spec, SPEC_NAME);

	json_text(j, "name", name ? name : "bawn");
	json_text(j, "description",
		"Runs agents and commands in cages that the kernel enforces, and signs what was "
		"enforced.");
	json_text(j, "version", BAWN_VERSION);
	json_open_list(j, "supportedInterfaces");
	json_open_map(j, NULL);
	json_text(j, "url", c->url);
	json_text(j, "protocolBinding", "JSONRPC");
	json_text(j, "protocolVersion", "1.0");
	json_close_map(j);
	json_close_list(j);
	json_open_map(j, "capabilities");
	json_open_list(j, "extensions");
	json_open_map(j, NULL);
	json_text(j, "uri", CARD_EXTENSION);
	json_text(j, "description", "What every task is isolated by.");
	json_open_map(j, "params");
	card_print_isolation(c, j);
	json_close_map(j);
	json_close_map(j);
	json_close_list(j);
	json_close_map(j);
	print_list_of(j, "defaultInputModes", modes, 2);
	print_list_of(j, "defaultOutputModes", modes, 2);
	print_skill(c, j);
}

static int print_signatures(
	const struct card *c, const struct sign_key *key, struct json *j, struct err *e)
{
	own(buf) struct buf plain = { .max = CARD_MAX_SIZE }, canonical = { .max = CARD_MAX_SIZE };
	struct json to_sign;
	int r;

	json_init(&to_sign, &plain, 0);
	json_open_map(&to_sign, NULL);
	print_members(c, &to_sign);
	json_close_map(&to_sign);
	if (plain.failed)
		return err_set(e, ERR_SPEC, E2BIG,
			"cannot make the card: it would be larger than %zu MB",
			CARD_MAX_SIZE >> 20);
	r = card_canonicalize_signed(plain.data, plain.len, &canonical, e);
	if (r < 0)
		return r;
	json_open_list(j, "signatures");
	card_sign(key, &canonical, j);
	json_close_list(j);
	return 0;
}

int card_print(const struct card *c, const struct sign_key *key, int indent, struct buf *out,
	struct err *e)
{
	struct json j;
	int r;

	json_init(&j, out, indent);
	json_open_map(&j, NULL);
	print_members(c, &j);
	r = key ? print_signatures(c, key, &j, e) : 0;
	if (r < 0)
		return r;
	json_open_map(&j, CARD_LEGACY);
	card_print_legacy(c, &j);
	json_close_map(&j);
	json_close_map(&j);
	return out->failed ? err_set(e, ERR_SYS, ENOMEM, "cannot make the card: out of memory") : 0;
}
