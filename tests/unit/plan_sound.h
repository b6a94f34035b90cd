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

/* A source may climb at its front, behind $PROJECT; nowhere else. */
static inline bool plan_sound_is_source(const char *path)
{
	static const char *const names[] = { "$PROJECT", "$GIT", "$SESSION", "$STATE", "$BAWN",
		"$TOLD", "~" };
	bool is_named = false;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !is_named; i++) {
		size_t n = strlen(names[i]);

		is_named = strncmp(path, names[i], n) == 0 && (path[n] == '/' || !path[n]);
		path += is_named ? n : 0;
		while (is_named && i == 0 && strncmp(path, "/..", 3) == 0 &&
			(path[3] == '/' || !path[3]))
			path += 3;
	}
	return (is_named && !*path) || (*path == '/' && plan_sound_is_normal(path + 1));
}

static inline bool plan_sound_fits(enum plan_operand operand, const char *text)
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
	case PLAN_OPERAND_PLACE:
		return plan_sound_is_source(text);
	case PLAN_OPERAND_TARGET:
		return *text == '/' && plan_sound_is_normal(text + 1);
	case PLAN_OPERAND_TREE:
		return !*text || strcmp(text, "$GIT") == 0;
	case PLAN_OPERAND_INSIDE:
		return *text && *text != '/' && plan_sound_is_normal(text);
	}
	return false;
}

static inline bool plan_sound_op(const struct plan *p, const struct plan_op *op)
{
	const struct plan_op_def *def = &plan_op_defs[op->kind];

	return op->kind < PLAN_OP_KIND_COUNT && (op->need == PLAN_MUST || op->need == PLAN_MAY) &&
	       !(op->flags & ~def->flags) && !(op->mode & ~07777U) && op->n <= INT64_MAX &&
	       op->a < p->string_size && op->b < p->string_size &&
	       plan_sound_fits(def->a, plan_str(p, op->a)) &&
	       plan_sound_fits(def->b, plan_str(p, op->b));
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
	for (uint32_t i = 0; is_sound && i < p->promise_count; i++) {
		const struct plan_promise *promise = &plan_promises(p)[i];

		is_sound = promise->guarantee == i && promise->declared < p->string_size &&
			   !(promise->need == PLAN_MUST && !promise->is_given) &&
			   !(promise->need == PLAN_NONE && promise->is_given);
	}
	return is_sound;
}
