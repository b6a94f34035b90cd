#include <errno.h>
#include <string.h>

#include "base/count.h"
#include "base/own.h"
#include "plan/plan.h"

static void print_flags(const struct plan_op *op, struct json *j)
{
	static const char *const names[] = { "read-only", "no-exec", "no-dev", "subset", "captured",
		"copied", "id-mapped", "create", "list", "parts", "own", "view", "ends", "in-pool",
		"held", "shared" };

	if (!op->flags)
		return;
	json_open_list(j, "flags");
	for (unsigned i = 0; i < COUNT_OF(names); i++)
		if (op->flags & 1U << i)
			json_text(j, NULL, names[i]);
	json_close_list(j);
}

static void json_print_op(
	const struct plan *p, const struct plan_op *op, struct buf *scratch, struct json *j)
{
	const struct plan_op_def *def = &plan_op_defs[op->kind];
	const char *text;

	json_open_map(j, NULL);
	json_text(j, "op", def->name);
	if (op->need == PLAN_MAY)
		json_text(j, "need", "may");
	text = plan_text_a(p, op, scratch);
	if (def->a != PLAN_OPERAND_NONE && (def->a != PLAN_OPERAND_TREE || *text))
		json_text(j, "a", text);
	text = plan_text_b(p, op, scratch);
	if (def->b != PLAN_OPERAND_NONE && (def->b != PLAN_OPERAND_NOTE || *text))
		json_text(j, "b", text);
	if (op->n && def->a != PLAN_OPERAND_RULE)
		json_int(j, "n", (int64_t)op->n);
	if (op->mode)
		json_int(j, "mode", op->mode);
	print_flags(op, j);
	json_close_map(j);
}

static void print_promise(const struct plan *p, const struct plan_promise *promise, struct json *j)
{
	static const char *const needs[] = { "none", "may", "must" };

	json_open_map(j, plan_guarantee_defs[promise->guarantee].name);
	json_text(j, "need", needs[promise->need]);
	json_bool(j, "given", promise->is_given);
	if (promise->need != PLAN_NONE)
		json_text(j, "declared", plan_str(p, promise->declared));
	if (promise->ability)
		json_text(j, "missing", host_ability_defs[promise->ability - 1].name);
	json_close_map(j);
}

void plan_print_json(const struct plan *p, struct buf *out)
{
	own(buf) struct buf scratch = { .max = PLAN_MAX_SIZE };
	struct json j;

	json_init(&j, out, 0);
	json_open_map(&j, NULL);
	json_int(&j, "version", PLAN_VERSION);
	json_text(&j, "name", plan_str(p, p->name));
	json_text(&j, "engine", spec_keys[SPEC_ENGINE].choices[p->engine]);
	json_text(&j, "level", p->is_hardened ? "hardened" : "custom");
	json_text(&j, "level_reasons", plan_str(p, p->level_reasons));
	json_text(&j, "spec_sha256", p->spec_digest);
	json_open_list(&j, "operations");
	for (uint32_t i = 0; i < p->op_count; i++)
		json_print_op(p, &plan_ops(p)[i], &scratch, &j);
	json_close_list(&j);
	json_open_map(&j, "guarantees");
	for (uint32_t i = 0; i < p->promise_count; i++)
		print_promise(p, &plan_promises(p)[i], &j);
	json_close_map(&j);
	json_close_map(&j);
	buf_putc(out, '\n');
	out->failed |= scratch.failed;
}

int plan_digest(const struct plan *p, char ret[static SHA256_HEX_SIZE])
{
	own(buf) struct buf text = { .max = 4 * PLAN_MAX_SIZE };

	plan_print_json(p, &text);
	if (text.failed)
		return -ENOMEM;
	sha256_hex(text.data, text.len, ret);
	return 0;
}

void plan_preflight_digest(char ret[static SHA256_HEX_SIZE])
{
	sha256_hex(plan_preflight_script, strlen(plan_preflight_script), ret);
}
