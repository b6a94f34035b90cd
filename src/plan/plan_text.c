#include "plan/plan.h"

/* The text of an operand is never stored: it is printed from what the operand is made of. */

static const char *print_path(
	const char *prefix, uint8_t root, const char *path, struct buf *scratch)
{
	if (!prefix && root == PLAN_ROOT_NONE)
		return path;
	scratch->len = 0;
	buf_printf(scratch, "%s%s%s", prefix ? prefix : "", plan_roots[root].name, path);
	return buf_text(scratch);
}

const char *plan_text_a(const struct plan *p, const struct plan_op *op, struct buf *scratch)
{
	const struct plan_op_def *def = &plan_op_defs[op->kind];

	/* Of the project is what is not said to be of anything else. */
	if (def->a == PLAN_OPERAND_TREE && op->a_root == PLAN_ROOT_PROJECT)
		return "";
	return print_path(def->prefix, op->a_root, plan_str(p, op->a), scratch);
}

const char *plan_text_b(const struct plan *p, const struct plan_op *op, struct buf *scratch)
{
	return print_path(NULL, op->b_root, plan_str(p, op->b), scratch);
}
