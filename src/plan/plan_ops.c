#include "plan/plan_ops.h"

#include <string.h>

#include "base/str.h"
#include "plan/plan.h"

const struct plan_op_def plan_op_defs[PLAN_OP_KIND_COUNT] = {
	[PLAN_ENGINE_ARGUMENT] = { "engine-argument", PLAN_OPERAND_WORD },
	[PLAN_NAMESPACE] = { "namespace", PLAN_OPERAND_WORD },
	[PLAN_IDS] = { "ids", PLAN_OPERAND_WORD },
	[PLAN_SHARE] = { "share", PLAN_OPERAND_WORD },
	[PLAN_HOSTNAME] = { "hostname", PLAN_OPERAND_WORD },
	[PLAN_IMAGE] = { "image", PLAN_OPERAND_SOURCE, PLAN_OPERAND_TARGET, "dir:" },
	[PLAN_IMAGE_OCI] = { "image", PLAN_OPERAND_SOURCE, PLAN_OPERAND_TARGET, "oci:" },
	[PLAN_IMAGE_SIF] = { "image", PLAN_OPERAND_SOURCE, PLAN_OPERAND_TARGET, "sif:" },
	[PLAN_IMAGE_NAMED] = { "image", PLAN_OPERAND_WORD, PLAN_OPERAND_TARGET },
	[PLAN_OVERLAY] = { "overlay", PLAN_OPERAND_SOURCE, PLAN_OPERAND_TARGET },
	[PLAN_TMPFS] = { "tmpfs", PLAN_OPERAND_NONE, PLAN_OPERAND_TARGET },
	[PLAN_DIR] = { "dir", PLAN_OPERAND_NONE, PLAN_OPERAND_TARGET },
	[PLAN_BIND] = { "bind", PLAN_OPERAND_SOURCE, PLAN_OPERAND_TARGET },
	[PLAN_SYMLINK] = { "symlink", PLAN_OPERAND_WORD, PLAN_OPERAND_TARGET },
	[PLAN_FILE] = { "file", PLAN_OPERAND_TEXT, PLAN_OPERAND_TARGET },
	[PLAN_DESCRIBE] = { "describe", PLAN_OPERAND_WORD, PLAN_OPERAND_TARGET },
	[PLAN_PROC] = { "proc", PLAN_OPERAND_NONE, PLAN_OPERAND_TARGET },
	[PLAN_PROC_FILE] = { "proc-file", PLAN_OPERAND_NONE, PLAN_OPERAND_TARGET },
	[PLAN_DEVICE] = { "device", PLAN_OPERAND_NONE, PLAN_OPERAND_TARGET },
	[PLAN_DEVPTS] = { "devpts", PLAN_OPERAND_NONE, PLAN_OPERAND_TARGET },
	[PLAN_GIT] = { "git", PLAN_OPERAND_SOURCE, PLAN_OPERAND_PLACE },
	[PLAN_PROJECT] = { "project", PLAN_OPERAND_SOURCE, PLAN_OPERAND_PLACE },
	[PLAN_PART] = { "part", PLAN_OPERAND_NONE, PLAN_OPERAND_INSIDE },
	[PLAN_PROTECT] = { "protect", PLAN_OPERAND_TREE, PLAN_OPERAND_INSIDE },
	[PLAN_ENTER] = { "enter" },
	[PLAN_AWAIT] = { "await", PLAN_OPERAND_WORD },
	[PLAN_ENV] = { "env", PLAN_OPERAND_WORD, PLAN_OPERAND_TEXT },
	[PLAN_ENV_PASS] = { "env-pass", PLAN_OPERAND_WORD },
	[PLAN_NETWORK] = { "network", PLAN_OPERAND_WORD },
	[PLAN_ALLOW] = { "allow", PLAN_OPERAND_RULE, PLAN_OPERAND_NOTE },
	[PLAN_HOST_PORT] = { "host-port" },
	[PLAN_PUBLISH] = { "publish", PLAN_OPERAND_RULE },
	[PLAN_SECRET] = { "secret", PLAN_OPERAND_RULE },
	[PLAN_LIMIT] = { "limit", PLAN_OPERAND_WORD, PLAN_OPERAND_WORD },
	[PLAN_DROP] = { "drop", PLAN_OPERAND_WORD },
	[PLAN_LANDLOCK] = { "landlock" },
	[PLAN_RULE] = { "rule", PLAN_OPERAND_NONE, PLAN_OPERAND_SOURCE },
	[PLAN_CONFINE] = { "confine" },
	[PLAN_SYSCALLS] = { "syscalls", PLAN_OPERAND_WORD },
	[PLAN_TELL] = { "tell", PLAN_OPERAND_WORD },
	[PLAN_PREFLIGHT] = { "preflight", PLAN_OPERAND_WORD },
	[PLAN_STARTUP] = { "startup", PLAN_OPERAND_WORD },
	[PLAN_WORKDIR] = { "workdir", PLAN_OPERAND_NONE, PLAN_OPERAND_PLACE },
	[PLAN_ARGUMENT] = { "argument", PLAN_OPERAND_TEXT },
};

/* --- comparing operations of two plans --- */

/*
 * What an operation says, wherever its plan has put the strings: numbers, and texts. Two say the
 * same if all of both is the same.
 */
struct said {
	uint64_t numbers[8];
	const void *rule; /* what a rule of the network has beside texts, or NULL */
	const char *texts[2 + PLAN_RULE_TEXTS];
	size_t text_count;
};

#define RULE_OFFSET offsetof(struct plan_rule, address)
#define RULE_SIZE   (sizeof(struct plan_rule) - RULE_OFFSET)

static bool has_rule(const struct plan_op *op)
{
	return plan_op_defs[op->kind].a == PLAN_OPERAND_RULE;
}

static struct said take_apart(const struct plan *p, const struct plan_op *op)
{
	const struct plan_rule *rule = has_rule(op) ? plan_rule_of(p, op) : NULL;
	struct said ret = {
		.numbers = { op->kind, op->flags, op->mode, op->need, op->a_root, op->b_root,
			op->n },
		.rule = rule ? (const char *)rule + RULE_OFFSET : NULL,
		.texts = { plan_str(p, op->a), plan_str(p, op->b) },
		.text_count = 2,
	};

	for (int i = 0; rule && i < PLAN_RULE_TEXTS; i++)
		ret.texts[ret.text_count++] = plan_rule_text(p, rule, (enum plan_rule_text)i);
	return ret;
}

bool plan_is_same_op(const struct plan *a, const struct plan_op *x, const struct plan *b,
	const struct plan_op *y)
{
	const struct said one = take_apart(a, x), other = take_apart(b, y);

	/* Both are of the same kind, so both have a rule or neither. */
	if (memcmp(one.numbers, other.numbers, sizeof(one.numbers)) != 0 ||
		(one.rule && memcmp(one.rule, other.rule, RULE_SIZE) != 0))
		return false;
	for (size_t i = 0; i < one.text_count; i++)
		if (!str_eq(one.texts[i], other.texts[i]))
			return false;
	return true;
}

void plan_digest_op(const struct plan *p, const struct plan_op *op, struct sha256 *s)
{
	const struct said said = take_apart(p, op);

	sha256_add(s, said.numbers, sizeof(said.numbers));
	if (said.rule)
		sha256_add(s, said.rule, RULE_SIZE);
	for (size_t i = 0; i < said.text_count; i++)
		sha256_add(s, said.texts[i], strlen(said.texts[i]) + 1);
}
