#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "plan/plan_builder.h"

static_assert(sizeof(struct plan) % 8 == 0, "operations follow the head without a gap");
static_assert(sizeof(struct plan_op) == 24, "an operation has no padding");
static_assert(PLAN_OP_KIND_COUNT <= UINT8_MAX, "a kind has one byte");
static_assert(sizeof(struct plan_promise) == 12, "a promise has no padding");
static_assert(sizeof(struct plan_rule) == 52, "a rule has no padding");

uint32_t plan_add_string(struct plan_builder *b, const char *text)
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
	return plan_add_string(b, text);
}

void plan_add(struct plan_builder *b, enum plan_op_kind kind, const char *from, const char *to,
	struct plan_op like)
{
	like.kind = (uint8_t)kind;
	like.a = add_operand(b, plan_op_defs[kind].a, from, &like.a_root);
	like.b = add_operand(b, plan_op_defs[kind].b, to, &like.b_root);
	buf_add(&b->ops, &like, sizeof(like));
}

void plan_add_rule(struct plan_builder *b, enum plan_op_kind kind, struct plan_rule rule,
	const char *const texts[static PLAN_RULE_TEXTS], const char *note)
{
	uint64_t number = b->rules.len / sizeof(rule);

	for (size_t i = 0; i < PLAN_RULE_TEXTS; i++)
		rule.texts[i] = plan_add_string(b, texts[i] ? texts[i] : "");
	buf_add(&b->rules, &rule, sizeof(rule));
	plan_add(b, kind, "", note, PLAN_OP(.n = number));
}

void plan_add_entries(
	struct plan_builder *b, enum spec_key key, enum plan_op_kind kind, struct plan_op like)
{
	size_t n = 0;
	own_free const struct spec_item **items = spec_ordered(key, spec_list(b->spec, key), &n);

	if (!items)
		b->ops.failed = true;
	for (size_t i = 0; items && i < n; i++)
		plan_add(b, kind, items[i]->text, "", like);
}

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

static void add_promises(struct plan_builder *b)
{
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
		const struct plan_verdict *v = &b->choice->engines[b->engine].verdicts[g];
		const struct plan_demand *d = &b->choice->demands[g];
		struct plan_promise promise = {
			.guarantee = (uint16_t)g,
			.need = d->need,
			.is_given = d->need != PLAN_NONE && v->can,
			.declared = plan_add_string(b, d->value),
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
	head.level_reasons = plan_add_string(b, buf_text(&reasons));
	head.name = plan_add_string(
		b, spec_text(b->spec, SPEC_NAME) ? spec_text(b->spec, SPEC_NAME) : "");
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

static int do_build(struct plan_builder *b, struct plan **ret, struct err *e)
{
	own(buf) struct buf canonical = { .max = PLAN_MAX_SIZE };
	char digest[SHA256_HEX_SIZE];

	spec_print_canonical(b->spec, &canonical);
	if (canonical.failed)
		return err_set(e, ERR_SYS, ENOMEM, "cannot make a plan: out of memory");
	sha256_hex(canonical.data, canonical.len, digest);
	plan_add_string(b, "");
	plan_add_entries(b, SPEC_ENGINE_ARGS, PLAN_ENGINE_ARGUMENT, PLAN_OP());
	add_namespaces(b);
	add_ids(b);
	plan_build_files(b);
	plan_build_limits(b);
	plan_build_command(b);
	add_promises(b);
	return pack(b, digest, ret, e);
}

int plan_build(struct spec *s, const struct host *h, struct plan **ret,
	struct plan_choice *ret_choice, struct err *e)
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
	r = do_build(&b, ret, e);
	buf_done(&b.ops);
	buf_done(&b.promises);
	buf_done(&b.rules);
	buf_done(&b.strings);
	return r;
}
