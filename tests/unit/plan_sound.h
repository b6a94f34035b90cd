#pragma once

/*
 * What everybody who carries a plan out relies on, as one question: parts that add up, strings
 * that end, operands of the right form, namespaces first, no promise broken. Only plan_build makes
 * plans, so it is asked of what that made.
 */
#include <string.h>

#include "plan/plan.h"

/* No empty, "." or ".." component, no slash at the end: one spelling for one path. */
static inline bool plan_sound_is_normal(const char *path)
{
	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 0 || (n == 1 && path[0] == '.') || (n == 2 && memcmp(path, "..", 2) == 0))
			return false;
		path += n;
		if (*path == '/' && !*++path)
			return false;
	}
	return true;
}

/* Behind a root "", or a slash and a path, which in the project may climb at its front. */
static inline bool plan_sound_is_path(uint8_t root, const char *path)
{
	while (root == PLAN_ROOT_PROJECT && strncmp(path, "/..", 3) == 0 &&
		(path[3] == '/' || !path[3]))
		path += 3;
	if (!*path)
		return root != PLAN_ROOT_NONE && root != PLAN_ROOT_STATE;
	return *path == '/' && (path[1] || root == PLAN_ROOT_NONE) &&
	       plan_sound_is_normal(path + 1);
}

static inline bool plan_sound_fits(enum plan_operand operand, uint8_t root, const char *text)
{
	switch (operand) {
	case PLAN_OPERAND_NONE:
	case PLAN_OPERAND_RULE:
		return root == PLAN_ROOT_NONE && !*text;
	case PLAN_OPERAND_TEXT:
		return root == PLAN_ROOT_NONE || root == PLAN_ROOT_PROJECT || root == PLAN_ROOT_RUN;
	case PLAN_OPERAND_NOTE:
		return root == PLAN_ROOT_NONE;
	case PLAN_OPERAND_WORD:
		return root == PLAN_ROOT_NONE && *text;
	case PLAN_OPERAND_SOURCE:
		return root != PLAN_ROOT_RUN && plan_sound_is_path(root, text);
	case PLAN_OPERAND_PLACE:
		return (root == PLAN_ROOT_NONE || root == PLAN_ROOT_PROJECT ||
			       root == PLAN_ROOT_GIT) &&
		       plan_sound_is_path(root, text);
	case PLAN_OPERAND_TARGET:
		return root == PLAN_ROOT_NONE && plan_sound_is_path(root, text);
	case PLAN_OPERAND_TREE:
		return (root == PLAN_ROOT_PROJECT || root == PLAN_ROOT_GIT) && !*text;
	case PLAN_OPERAND_INSIDE:
		return root == PLAN_ROOT_NONE && *text && *text != '/' &&
		       plan_sound_is_normal(text);
	}
	return false;
}

static inline bool plan_sound_op(const struct plan *p, const struct plan_op *op)
{
	const struct plan_op_def *def = &plan_op_defs[op->kind];

	return op->kind < PLAN_OP_KIND_COUNT && (op->need == PLAN_MUST || op->need == PLAN_MAY) &&
	       !(op->mode & ~07777U) && op->n <= INT64_MAX && op->a < p->string_size &&
	       op->b < p->string_size && op->a_root < PLAN_ROOT_COUNT &&
	       op->b_root < PLAN_ROOT_COUNT &&
	       (def->a != PLAN_OPERAND_RULE || op->n < p->rule_count) &&
	       plan_sound_fits(def->a, op->a_root, plan_str(p, op->a)) &&
	       plan_sound_fits(def->b, op->b_root, plan_str(p, op->b));
}

/* Is this what an operand of the plan is called? */
static inline bool plan_says(
	const struct plan *p, const struct plan_op *op, const char *a, const char *b)
{
	struct buf scratch = { .max = PLAN_MAX_SIZE };
	bool is_so = (!a || strcmp(plan_text_a(p, op, &scratch), a) == 0) &&
		     (!b || strcmp(plan_text_b(p, op, &scratch), b) == 0);

	buf_done(&scratch);
	return is_so;
}

static inline bool plan_is_sound(const struct plan *p)
{
	const struct plan_op *ops = plan_ops(p);
	bool is_sound = p->promise_count == PLAN_GUARANTEE_COUNT && p->string_size &&
			plan_strings(p) + p->string_size == (const char *)p + p->size &&
			!plan_strings(p)[0] && !plan_strings(p)[p->string_size - 1];

	for (uint32_t i = 0; is_sound && i < p->op_count; i++)
		is_sound = plan_sound_op(p, &ops[i]) && (i == 0 || ops[i].kind != PLAN_NAMESPACE ||
								ops[i - 1].kind <= PLAN_NAMESPACE);
	for (uint32_t i = 0; is_sound && i < p->rule_count; i++)
		for (size_t k = 0; k < PLAN_RULE_TEXTS; k++)
			is_sound &= plan_rules(p)[i].texts[k] < p->string_size;
	for (uint32_t i = 0; is_sound && i < p->promise_count; i++) {
		const struct plan_promise *promise = &plan_promises(p)[i];

		is_sound = promise->guarantee == i && promise->declared < p->string_size &&
			   !(promise->need == PLAN_MUST && !promise->is_given) &&
			   !(promise->need == PLAN_NONE && promise->is_given);
	}
	return is_sound;
}
