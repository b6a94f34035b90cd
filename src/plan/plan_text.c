#include "plan/plan.h"
#include "spec/spec_grammar.h"

/* The text of an operand is never stored: it is printed from what the operand is made of. */

static const char *print_path(
	const char *prefix, uint8_t root, const char *path, struct buf *scratch)
{
	if (!prefix && root == PLAN_ROOT_NONE)
		return path;
	if (prefix)
		buf_puts(scratch, prefix);
	buf_puts(scratch, plan_roots[root].name);
	buf_puts(scratch, path);
	return buf_text(scratch);
}

static const char *text_or_null(
	const struct plan *p, const struct plan_rule *rule, enum plan_rule_text which)
{
	const char *text = plan_rule_text(p, rule, which);

	return *text ? text : NULL;
}

static void print_allowed(const struct plan *p, const struct plan_rule *rule, struct buf *out)
{
	char text[SPEC_NET_SIZE];
	struct spec_egress to = {
		.client = plan_rule_text(p, rule, PLAN_RULE_HOST),
		.host = text_or_null(p, rule, PLAN_RULE_HOST),
		.is_wildcard = rule->is_wildcard,
		.prefix = rule->prefix,
		.port = rule->port,
		.protocol = (enum spec_protocol)rule->protocol,
	};

	memcpy(to.address, rule->address, sizeof(to.address));
	spec_print_egress(&to, text);
	buf_puts(out, text);
}

static void print_published(const struct plan *p, const struct plan_rule *rule, struct buf *out)
{
	char text[SPEC_NET_SIZE];
	const struct spec_publish port = {
		.address = plan_rule_text(p, rule, PLAN_RULE_HOST),
		.host_port = rule->port,
		.cage_port = rule->cage_port,
	};

	spec_print_publish(&port, text);
	buf_puts(out, text);
}

static void text_print_secret(const struct plan *p, const struct plan_rule *rule, struct buf *out)
{
	char source[PLAN_TEXT_SIZE], ca[PLAN_TEXT_SIZE];
	const char *ca_path = text_or_null(p, rule, PLAN_RULE_CA);
	const struct spec_secret secret = {
		.name = plan_rule_text(p, rule, PLAN_RULE_NAME),
		.host = plan_rule_text(p, rule, PLAN_RULE_HOST),
		.header = plan_rule_text(p, rule, PLAN_RULE_HEADER),
		.scheme = text_or_null(p, rule, PLAN_RULE_SCHEME),
		.source = plan_root_text(
			rule->source_root, plan_rule_text(p, rule, PLAN_RULE_SOURCE), source),
		.ca = ca_path || rule->ca_root != PLAN_ROOT_NONE
			      ? plan_root_text(rule->ca_root, ca_path ? ca_path : "", ca)
			      : NULL,
		.port = rule->port,
		.is_file = rule->is_file,
	};

	spec_print_secret(&secret, out);
}

static const char *print_rule(const struct plan *p, const struct plan_op *op, struct buf *scratch)
{
	const struct plan_rule *rule = plan_rule_of(p, op);

	if (op->kind == PLAN_ALLOW)
		print_allowed(p, rule, scratch);
	else if (op->kind == PLAN_PUBLISH)
		print_published(p, rule, scratch);
	else
		text_print_secret(p, rule, scratch);
	return buf_text(scratch);
}

const char *plan_text_a(const struct plan *p, const struct plan_op *op, struct buf *scratch)
{
	const struct plan_op_def *def = &plan_op_defs[op->kind];

	scratch->len = 0;
	if (def->a == PLAN_OPERAND_RULE)
		return print_rule(p, op, scratch);
	/* Of the project is what is not said to be of anything else. */
	if (def->a == PLAN_OPERAND_TREE && op->a_root == PLAN_ROOT_PROJECT)
		return "";
	return print_path(def->prefix, op->a_root, plan_str(p, op->a), scratch);
}

const char *plan_text_b(const struct plan *p, const struct plan_op *op, struct buf *scratch)
{
	scratch->len = 0;
	return print_path(NULL, op->b_root, plan_str(p, op->b), scratch);
}
