#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"
#include "plan/plan.h"

#define BAD(e, ...) err_set((e), ERR_SPEC, EBADMSG, __VA_ARGS__)

/* No empty, "." or ".." component, no slash at the end: one spelling for one path. */
static bool is_normal(const char *path)
{
	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 0 || (n == 1 && path[0] == '.') ||
			(n == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		path += n;
		if (*path == '/' && !*++path)
			return false;
	}
	return true;
}

static bool is_target(const char *path)
{
	return path[0] == '/' && is_normal(path + 1);
}

/* A relative source may climb at its front, behind $PROJECT; nowhere else. */
static bool is_source(const char *path)
{
	size_t n = path[0] == '/' ? 0 : path[0] == '~' ? 1 : strlen("$PROJECT");

	if (path[0] == '/')
		return is_target(path);
	if (str_eq(path, "$GIT") || str_eq(path, "$BAWN") || str_eq(path, "$TOLD"))
		return true;
	if (str_starts(path, "$SESSION/"))
		return path[9] && is_normal(path + 9);
	if (str_starts(path, "$STATE/"))
		return path[7] && !strchr(path + 7, '/') && is_normal(path + 7);
	if (path[0] != '~' && !str_starts(path, "$PROJECT"))
		return false;
	path += n;
	while (n > 1 && str_starts(path, "/..") && (path[3] == '/' || path[3] == '\0'))
		path += 3;
	return !*path || (*path == '/' && path[1] && is_normal(path + 1));
}

static bool is_place(const char *path)
{
	if (str_eq(path, "$PROJECT") || str_eq(path, "$GIT"))
		return true;
	return str_starts(path, "$PROJECT/") ? path[9] && is_normal(path + 9) : is_target(path);
}

static bool fits(enum plan_operand operand, const char *text)
{
	switch (operand) {
	case PLAN_OPERAND_NONE:
		return !*text;
	case PLAN_OPERAND_TEXT:
	case PLAN_OPERAND_NOTE:
		return true;
	case PLAN_OPERAND_WORD:
		return *text;
	case PLAN_OPERAND_SOURCE:
		return is_source(text);
	case PLAN_OPERAND_TARGET:
		return is_target(text);
	case PLAN_OPERAND_PLACE:
		return is_place(text);
	case PLAN_OPERAND_TREE:
		return !*text || str_eq(text, "$GIT");
	case PLAN_OPERAND_INSIDE:
		return *text && *text != '/' && is_normal(text);
	}
	return false;
}

/*
 * A million operations that all point at one long string would take for ever to look at: what
 * they point at may not add up to much more than the strings there are.
 */
#define OPERANDS_MAX (4 * PLAN_MAX_SIZE)

static bool spend(size_t *budget, const char *text)
{
	size_t n = strnlen(text, *budget);

	*budget -= n;
	return *budget > 0;
}

static int check_op(const struct plan *p, uint32_t i, size_t *budget, struct err *e)
{
	const struct plan_op *op = &plan_ops(p)[i];
	const struct plan_op_def *def;

	if (op->kind >= PLAN_OP_KIND_COUNT)
		return BAD(e, "operation %u is of no known kind", i);
	def = &plan_op_defs[op->kind];
	if (op->need != PLAN_MUST && op->need != PLAN_MAY)
		return BAD(e, "operation %u (%s) is neither must nor may", i, def->name);
	if (op->flags & ~def->flags)
		return BAD(e, "operation %u (%s) has flags that mean nothing", i, def->name);
	if (op->mode & ~07777U || op->pad)
		return BAD(e, "operation %u (%s) has an impossible mode", i, def->name);
	if (op->n > INT64_MAX || (op->kind == PLAN_HOST_PORT && (op->n == 0 || op->n > 65535)))
		return BAD(e, "operation %u (%s) has an impossible number", i, def->name);
	if (op->a >= p->string_size || op->b >= p->string_size)
		return BAD(e, "operation %u (%s) points outside the strings", i, def->name);
	if (!spend(budget, plan_str(p, op->a)) || !spend(budget, plan_str(p, op->b)))
		return BAD(e, "the operands of the plan are longer than its strings");
	if (!fits(def->a, plan_str(p, op->a)) || !fits(def->b, plan_str(p, op->b)))
		return BAD(e, "operation %u (%s) has an operand of the wrong form", i, def->name);
	return 0;
}

static int check_promise(const struct plan *p, uint32_t i, struct err *e)
{
	const struct plan_promise *promise = &plan_promises(p)[i];

	if (promise->guarantee != i)
		return BAD(e, "promise %u is out of order", i);
	if (promise->need > PLAN_MUST || promise->is_given > 1 || promise->pad ||
		promise->ability > HOST_ABILITY_COUNT || promise->declared >= p->string_size)
		return BAD(e, "promise %u has an impossible value", i);
	if (promise->need == PLAN_MUST && !promise->is_given)
		return BAD(e, "the plan requires %s and does not give it",
			plan_guarantee_defs[i].name);
	if (promise->need == PLAN_NONE && promise->is_given)
		return BAD(e, "the plan gives %s, which nobody asked for",
			plan_guarantee_defs[i].name);
	return 0;
}

static bool is_digest(const char *text)
{
	return strspn(text, "0123456789abcdef") == SHA256_HEX_SIZE - 1 &&
	       !text[SHA256_HEX_SIZE - 1];
}

static int check_head(const struct plan *p, size_t n, struct err *e)
{
	uint64_t size = sizeof(*p);

	if (p->magic != PLAN_MAGIC)
		return BAD(e, "these bytes are not a plan");
	if (p->version != PLAN_VERSION)
		return BAD(e, "the plan has version %u; this bawn understands %u", p->version,
			PLAN_VERSION);
	if (p->promise_count != PLAN_GUARANTEE_COUNT || p->pad)
		return BAD(e, "the plan has a head that this bawn does not understand");
	size += (uint64_t)p->op_count * sizeof(struct plan_op);
	size += (uint64_t)p->promise_count * sizeof(struct plan_promise);
	size += p->string_size;
	if (p->size != n || size != n)
		return BAD(e, "the plan's parts do not add up to its size");
	if (p->string_size == 0 || plan_strings(p)[0] || plan_strings(p)[p->string_size - 1])
		return BAD(e, "the plan's strings are not ended");
	if (p->engine <= SPEC_ENGINE_AUTO || p->engine >= PLAN_ENGINE_COUNT || p->is_hardened > 1)
		return BAD(e, "the plan names no engine or level");
	if (p->name >= p->string_size || p->level_reasons >= p->string_size)
		return BAD(e, "the plan's head points outside the strings");
	if (!memchr(p->spec_digest, '\0', sizeof(p->spec_digest)) || !is_digest(p->spec_digest))
		return BAD(e, "the plan's spec digest is none");
	return 0;
}

int plan_check(const void *bytes, size_t n, struct err *e)
{
	const struct plan *p = bytes;
	size_t budget = OPERANDS_MAX;
	int r;

	if (n < sizeof(*p) || n > PLAN_MAX_SIZE || (uintptr_t)bytes % _Alignof(struct plan_op))
		return BAD(e, "these bytes are not a plan");
	r = check_head(p, n, e);
	for (uint32_t i = 0; r == 0 && i < p->op_count; i++) {
		r = check_op(p, i, &budget, e);
		if (r == 0 && i && plan_ops(p)[i].kind == PLAN_NAMESPACE &&
			plan_ops(p)[i - 1].kind > PLAN_NAMESPACE)
			r = BAD(e, "operation %u makes a namespace too late", i);
	}
	for (uint32_t i = 0; r == 0 && i < p->promise_count; i++)
		r = check_promise(p, i, e);
	return r;
}
