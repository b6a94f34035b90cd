/* A plan as text for people, and as the line of JSON that digests are made of. */
#include "plan/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "spec/spec_grammar.h"

/* --- operands: their texts are never stored, but printed from their parts --- */

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
	/* The root alone is not printed for the project, as it is for git. */
	if (def->a == PLAN_OPERAND_TREE && op->a_root == PLAN_ROOT_PROJECT)
		return "";
	return print_path(def->prefix, op->a_root, plan_str(p, op->a), scratch);
}

const char *plan_text_b(const struct plan *p, const struct plan_op *op, struct buf *scratch)
{
	scratch->len = 0;
	return print_path(NULL, op->b_root, plan_str(p, op->b), scratch);
}

/* --- as JSON --- */

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
	sha256_hex(plan_preflight_text, strlen(plan_preflight_text), ret);
}

/* --- as text --- */

/* One table of output sections; every kind of operation belongs to one. */
enum section {
	IDENTITY,
	TREE,
	ENVIRONMENT,
	NETWORK,
	LIMITS,
	FILTERS,
	COMMAND,
};

static const char *const titles[] = {
	[IDENTITY] = "Identity",
	[TREE] = "Tree",
	[ENVIRONMENT] = "Environment",
	[NETWORK] = "Network",
	[LIMITS] = "Limits",
	[FILTERS] = "Filters",
	[COMMAND] = "Command",
};

static const enum section sections[PLAN_OP_KIND_COUNT] = {
	[PLAN_ENGINE_ARGUMENT] = IDENTITY,
	[PLAN_NAMESPACE] = IDENTITY,
	[PLAN_IDS] = IDENTITY,
	[PLAN_SHARE] = IDENTITY,
	[PLAN_HOSTNAME] = IDENTITY,
	[PLAN_IMAGE] = TREE,
	[PLAN_IMAGE_OCI] = TREE,
	[PLAN_IMAGE_SIF] = TREE,
	[PLAN_IMAGE_NAMED] = TREE,
	[PLAN_OVERLAY] = TREE,
	[PLAN_TMPFS] = TREE,
	[PLAN_DIR] = TREE,
	[PLAN_BIND] = TREE,
	[PLAN_SYMLINK] = TREE,
	[PLAN_FILE] = TREE,
	[PLAN_DESCRIBE] = TREE,
	[PLAN_PROC] = TREE,
	[PLAN_PROC_FILE] = TREE,
	[PLAN_DEVICE] = TREE,
	[PLAN_DEVPTS] = TREE,
	[PLAN_GIT] = TREE,
	[PLAN_PROJECT] = TREE,
	[PLAN_PART] = TREE,
	[PLAN_PROTECT] = TREE,
	[PLAN_ENTER] = TREE,
	[PLAN_AWAIT] = TREE,
	[PLAN_ENV] = ENVIRONMENT,
	[PLAN_ENV_PASS] = ENVIRONMENT,
	[PLAN_NETWORK] = NETWORK,
	[PLAN_ALLOW] = NETWORK,
	[PLAN_HOST_PORT] = NETWORK,
	[PLAN_PUBLISH] = NETWORK,
	[PLAN_SECRET] = NETWORK,
	[PLAN_LIMIT] = LIMITS,
	[PLAN_DROP] = FILTERS,
	[PLAN_LANDLOCK] = FILTERS,
	[PLAN_RULE] = FILTERS,
	[PLAN_CONFINE] = FILTERS,
	[PLAN_SYSCALLS] = FILTERS,
	[PLAN_TELL] = FILTERS,
	[PLAN_PREFLIGHT] = COMMAND,
	[PLAN_STARTUP] = COMMAND,
	[PLAN_WORKDIR] = COMMAND,
	[PLAN_ARGUMENT] = COMMAND,
};

static void print_put(struct buf *out, const char *text)
{
	buf_add_visible(out, text, strlen(text));
}

static void put_padded(struct buf *out, const char *text, size_t width)
{
	size_t before = out->len, used;

	print_put(out, text);
	used = out->len - before;
	buf_repeat(out, ' ', used < width ? width - used : 1);
}

/* "ro", "rw" or "cow" for what a mount lets be written. */
static const char *rights(const struct plan_op *op)
{
	bool is_own = op->kind == PLAN_PROC || op->kind == PLAN_SYMLINK || op->kind == PLAN_FILE ||
		      op->kind == PLAN_DESCRIBE;

	if (op->flags & PLAN_CAPTURED && !(op->flags & PLAN_READ_ONLY))
		return "cow";
	return op->flags & PLAN_READ_ONLY ? "ro" : is_own ? "-" : "rw";
}

static void plan_print_print_overlay(const struct plan_op *op, struct buf *out)
{
	char size[NUM_TEXT_SIZE];

	num_print_size(op->n, size);
	buf_printf(out, "  (kept%s%s%s)", op->n ? ", at most " : "", op->n ? size : "",
		op->n && op->flags & PLAN_CREATE ? ", made if missing" : "");
}

/* The tree is made of these; the rest is made for the cage. */
static bool is_from_host(const struct plan_op *op)
{
	return op->kind == PLAN_IMAGE_NAMED || plan_op_defs[op->kind].a == PLAN_OPERAND_SOURCE;
}

static void print_tree_op(
	const struct plan_op *op, const char *from, const char *to, struct buf *out)
{
	bool is_inside = op->kind == PLAN_PART || op->kind == PLAN_PROTECT;

	buf_printf(out, "  %-4s%-10s", rights(op), plan_op_defs[op->kind].name);
	if (is_inside)
		buf_puts(out, *from ? "  in $GIT:        " : "  in the project: ");
	put_padded(out, to, is_inside ? 14 : 22);
	if (is_from_host(op)) {
		buf_puts(out, "from ");
		print_put(out, from);
	} else if (op->kind == PLAN_SYMLINK) {
		buf_puts(out, "to ");
		print_put(out, from);
	}
	if (op->kind == PLAN_OVERLAY)
		plan_print_print_overlay(op, out);
	if (op->flags & PLAN_PARTS)
		buf_puts(out, "  (only its parts)");
	if (op->flags & PLAN_COPIED)
		buf_puts(out, "  (by copying: no overlay here)");
	if (op->flags & PLAN_SHARED)
		buf_puts(out, "  (for all runs of the session)");
	if (op->flags & PLAN_PROTECTS)
		buf_puts(out, "  (protected paths stay as they are)");
	if (op->kind == PLAN_PROC)
		buf_puts(out,
			op->flags & PLAN_SUBSET ? "processes only" : "processes, and what follows");
	if (op->need == PLAN_MAY)
		buf_puts(out, "if it is there");
	while (out->len && out->data[out->len - 1] == ' ')
		out->data[--out->len] = '\0';
	buf_putc(out, '\n');
}

static void print_limit(const struct plan *p, const struct plan_op *op, struct buf *out)
{
	const char *name = plan_str(p, op->a);
	char value[NUM_TEXT_SIZE];

	if (str_ends(name, ".memory") || str_ends(name, ".disk") || str_ends(name, ".output"))
		num_print_size(op->n, value);
	else if (str_ends(name, ".time"))
		num_print_duration(op->n, value);
	else if (str_ends(name, ".cpu"))
		num_print_cpus(op->n, value);
	else
		snprintf(value, sizeof(value), "%" PRIu64, op->n);
	buf_puts(out, "  ");
	put_padded(out, name, 16);
	buf_printf(out, "%-10s by ", value);
	print_put(out, plan_str(p, op->b));
	if (op->flags & PLAN_ENDS)
		buf_puts(out, ", which then ends the command");
	buf_puts(out, op->need == PLAN_MAY ? ", where possible\n" : "\n");
}

static void print_word(const char *label, const char *text, const char *note, struct buf *out)
{
	buf_printf(out, "  %-12s", label);
	print_put(out, text);
	if (*note) {
		buf_puts(out, "  (");
		print_put(out, note);
		buf_putc(out, ')');
	}
	buf_putc(out, '\n');
}

static void plan_print_print_op(const struct plan *p, const struct plan_op *op, struct buf *out)
{
	own(buf) struct buf scratch = { .max = PLAN_MAX_SIZE }, other = scratch;
	const char *a = plan_text_a(p, op, &scratch), *b = plan_text_b(p, op, &other);

	if (sections[op->kind] == TREE) {
		print_tree_op(op, a, b, out);
	} else if (op->kind == PLAN_LIMIT) {
		print_limit(p, op, out);
	} else if (op->kind == PLAN_IDS) {
		buf_printf(out, "  ids         uid and gid %" PRIu64 " inside, %s outside\n", op->n,
			str_eq(a, "operator") ? "the operator's"
			: str_eq(a, "team")   ? "the operator's and the project's group"
					      : "an unprivileged one of its own");
	} else if (op->kind == PLAN_SHARE) {
		buf_printf(out, "  share       at most %" PRIu64 " ", op->n);
		print_put(out, a);
		buf_puts(out, " of the operator's\n");
	} else if (op->kind == PLAN_ENV) {
		buf_puts(out, "  ");
		print_put(out, a);
		buf_putc(out, '=');
		print_put(out, b);
		buf_putc(out, '\n');
	} else if (op->kind == PLAN_ENV_PASS) {
		buf_puts(out, "  ");
		print_put(out, a);
		buf_puts(out, " from the operator's, if it is set\n");
	} else if (op->kind == PLAN_HOST_PORT) {
		buf_printf(out, "  host-port   bawn-host:%" PRIu64 "\n", op->n);
	} else if (op->kind == PLAN_LANDLOCK) {
		buf_printf(out,
			"  landlock    ABI %" PRIu64 ", the tree above and nothing else%s\n", op->n,
			op->flags & PLAN_SHARED ? "; its session's commands reach each other" : "");
	} else {
		print_word(plan_op_defs[op->kind].name, *a ? a : b, *a ? b : "", out);
	}
	out->failed |= scratch.failed || other.failed;
}

/* A word as a shell would need it. */
static void print_put_quoted(struct buf *out, const char *word)
{
	static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				   "_-+=./:,@%";

	if (*word && strspn(word, safe) == strlen(word)) {
		buf_puts(out, word);
		return;
	}
	buf_putc(out, '\'');
	while (*word) {
		size_t n = strcspn(word, "'");

		buf_add_visible(out, word, n);
		word += n;
		if (*word == '\'') {
			buf_puts(out, "'\\''");
			word++;
		}
	}
	buf_putc(out, '\'');
}

/* Words that belong on one line: namespaces, and the command. */
static uint32_t plan_print_print_run(const struct plan *p, uint32_t i, struct buf *out)
{
	uint16_t kind = plan_ops(p)[i].kind;

	buf_printf(out, "  %-12s", kind == PLAN_ARGUMENT ? "run" : "namespaces");
	for (; i < p->op_count && plan_ops(p)[i].kind == kind; i++) {
		print_put_quoted(out, plan_str(p, plan_ops(p)[i].a));
		buf_putc(out, ' ');
	}
	if (!out->failed)
		out->data[--out->len] = '\0';
	buf_putc(out, '\n');
	return i;
}

static void print_title(const char *title, struct buf *out, bool color)
{
	buf_printf(out, "\n%s%s%s\n", color ? "\x1b[1m" : "", title, color ? "\x1b[0m" : "");
}

static void print_promises(const struct plan *p, struct buf *out, bool color)
{
	print_title("Guarantees", out, color);
	for (uint32_t i = 0; i < p->promise_count; i++) {
		const struct plan_promise *promise = &plan_promises(p)[i];
		const struct plan_guarantee_def *def = &plan_guarantee_defs[promise->guarantee];

		if (promise->need == PLAN_NONE)
			continue;
		buf_printf(out, "  %-4s%-16s", promise->is_given ? "yes" : "no", def->name);
		put_padded(out, plan_str(p, promise->declared), 12);
		buf_puts(out, def->meaning);
		if (!promise->is_given && promise->ability)
			buf_printf(out, " Missing: %s.",
				host_ability_defs[promise->ability - 1].meaning);
		buf_putc(out, '\n');
	}
}

static void plan_print_print_head(const struct plan *p, struct buf *out, bool color)
{
	char digest[SHA256_HEX_SIZE] = "", preflight[SHA256_HEX_SIZE];

	plan_digest(p, digest);
	plan_preflight_digest(preflight);
	buf_puts(out, color ? "\x1b[1m" : "");
	print_put(out, *plan_str(p, p->name) ? plan_str(p, p->name) : "plan");
	buf_printf(out, "%s: %s, engine %s%s\n", color ? "\x1b[0m" : "",
		p->is_hardened ? "hardened" : "custom", spec_keys[SPEC_ENGINE].choices[p->engine],
		plan_engine_runs(p->engine) ? "" : ", which this version cannot run");
	if (!p->is_hardened)
		print_word("because of", plan_str(p, p->level_reasons), "", out);
	buf_printf(out, "  spec        sha256:%s\n", p->spec_digest);
	buf_printf(out, "  plan        sha256:%s\n", digest);
	buf_printf(out, "  preflight   sha256:%s\n", preflight);
}

/* Steps that say nothing new to people; the digest in the head covers them. */
static bool print_is_shown(const struct plan *p, const struct plan_op *op)
{
	if (op->kind == PLAN_RULE) /* they repeat the tree, where there is one */
		return p->engine == SPEC_ENGINE_LANDLOCK;
	return op->kind != PLAN_ENTER && op->kind != PLAN_CONFINE && op->kind != PLAN_PREFLIGHT;
}

void plan_print(const struct plan *p, struct buf *out, bool color)
{
	const char *title = NULL;

	plan_print_print_head(p, out, color);
	for (uint32_t i = 0; i < p->op_count;) {
		const struct plan_op *op = &plan_ops(p)[i];

		if (titles[sections[op->kind]] != title) {
			title = titles[sections[op->kind]];
			print_title(title, out, color);
		}
		if (op->kind == PLAN_NAMESPACE || op->kind == PLAN_ARGUMENT) {
			i = plan_print_print_run(p, i, out);
			continue;
		}
		if (print_is_shown(p, op))
			plan_print_print_op(p, op, out);
		i++;
	}
	print_promises(p, out, color);
}
