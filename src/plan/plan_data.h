#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/sha256.h"
#include "plan/plan_ops.h"
#include "plan/plan_root.h"

/*
 * A plan: the operations that make a cage and the guarantees that they give, as one block of bytes
 * without pointers, which can be copied, compared, printed and hashed. No process receives a plan
 * from another: a process that reads one built it with plan_build or was forked by the process that
 * did, so nobody checks it again. The same spec on the same host gives the same bytes for every
 * operator: what differs between operators and runs is a root (plan_root.h), which the keeper
 * resolves. Sources in the project are opened beneath it, so that no symlink leads out. The plan
 * never has the values of passed variables.
 */
#define PLAN_VERSION  1U /* of what plan_print_json prints */
#define PLAN_MAX_SIZE ((size_t)16 * 1024 * 1024)

enum plan_need {
	PLAN_NONE, /* a guarantee that nobody asked for */
	PLAN_MAY,  /* done if possible; the record says whether it was */
	PLAN_MUST, /* a failure ends the run before the command starts */
};

/* One small operation. plan_op_defs says which operands it uses. */
struct plan_op {
	uint64_t n;
	uint32_t a, b;          /* strings; for a path, the part behind its root */
	uint16_t flags;         /* PLAN_READ_ONLY … */
	uint16_t mode;          /* permission bits, or 0 */
	uint8_t kind;           /* enum plan_op_kind */
	uint8_t need;           /* PLAN_MAY or PLAN_MUST */
	uint8_t a_root, b_root; /* enum plan_root */
};

/* One guarantee of this plan. */
struct plan_promise {
	uint16_t guarantee; /* enum plan_guarantee; they stand in its order */
	uint8_t need;       /* enum plan_need */
	uint8_t is_given;
	uint32_t declared; /* string: the value asked for, such as "captured" or "2G" */
	uint16_t ability;  /* 1 + the enum host_ability that is missing; 0: none is */
	uint16_t pad;
};

/* What a rule of the network has of texts; "" where it has none. */
enum plan_rule_text {
	PLAN_RULE_HOST, /* lower case, without "*."; "": a network. Published: an address of the
			   host */
	PLAN_RULE_NAME, /* the rest is of secrets */
	PLAN_RULE_HEADER,
	PLAN_RULE_SCHEME,
	PLAN_RULE_SOURCE, /* a variable, or the path of a file */
	PLAN_RULE_CA,
	PLAN_RULE_TEXTS,
};

/* A rule of the network, as the spec had it: PLAN_ALLOW, PLAN_PUBLISH or PLAN_SECRET. */
struct plan_rule {
	uint32_t texts[PLAN_RULE_TEXTS]; /* strings */
	uint8_t address[16];             /* of a network; IPv4 as ::ffff:a.b.c.d */
	uint8_t prefix;                  /* bits of address that count, of 128 */
	uint8_t protocol;                /* enum spec_protocol */
	uint8_t is_wildcard;             /* any name below host, and not host itself */
	uint8_t is_file;                 /* a secret is kept in a file */
	uint16_t port;                   /* 0: the client has not been asked yet */
	uint16_t cage_port;              /* where a published one leads */
	uint8_t source_root, ca_root;    /* enum plan_root */
	uint16_t pad;
};

/* The head of the block; the arrays and the strings follow it, in this order and without gaps. */
struct plan {
	uint32_t size;
	uint32_t op_count, promise_count, rule_count, string_size;
	uint32_t name, level_reasons;          /* strings */
	uint16_t engine;                       /* enum spec_engine, never auto */
	uint16_t is_hardened;                  /* the level: hardened, or custom */
	char spec_digest[SHA256_HEX_SIZE + 7]; /* of the spec's canonical form */
};

static inline const struct plan_op *plan_ops(const struct plan *p)
{
	return (const struct plan_op *)(p + 1);
}

static inline const struct plan_promise *plan_promises(const struct plan *p)
{
	return (const struct plan_promise *)(plan_ops(p) + p->op_count);
}

static inline const struct plan_rule *plan_rules(const struct plan *p)
{
	return (const struct plan_rule *)(plan_promises(p) + p->promise_count);
}

static inline const char *plan_strings(const struct plan *p)
{
	return (const char *)(plan_rules(p) + p->rule_count);
}

/* Returns a string of the plan. */
static inline const char *plan_str(const struct plan *p, uint32_t at)
{
	return plan_strings(p) + at;
}

/* Return the rule of an operation that has one, and a text of it. */
static inline const struct plan_rule *plan_rule_of(const struct plan *p, const struct plan_op *op)
{
	return &plan_rules(p)[op->n];
}

static inline const char *plan_rule_text(
	const struct plan *p, const struct plan_rule *rule, enum plan_rule_text which)
{
	return plan_str(p, rule->texts[which]);
}

/* Returns the first operation of a kind, with the text `a` if that is not NULL; or NULL. */
static inline const struct plan_op *plan_find(
	const struct plan *p, enum plan_op_kind kind, const char *a)
{
	for (uint32_t i = 0; i < p->op_count; i++) {
		const struct plan_op *op = &plan_ops(p)[i];

		if (op->kind == kind && (!a || strcmp(plan_str(p, op->a), a) == 0))
			return op;
	}
	return NULL;
}

/* Returns the first operation of a kind whose operand `a` begins at a root, or NULL. */
static inline const struct plan_op *plan_find_from(
	const struct plan *p, enum plan_op_kind kind, enum plan_root root)
{
	for (uint32_t i = 0; i < p->op_count; i++)
		if (plan_ops(p)[i].kind == kind && plan_ops(p)[i].a_root == root)
			return &plan_ops(p)[i];
	return NULL;
}

/* True if the operation makes the root of an image, of any kind. */
static inline bool plan_is_image(const struct plan_op *op)
{
	return op->kind >= PLAN_IMAGE && op->kind <= PLAN_IMAGE_NAMED;
}

/* Returns the operation of the project if its writes are captured; NULL otherwise. */
static inline const struct plan_op *plan_find_captured(const struct plan *p)
{
	const struct plan_op *op = plan_find(p, PLAN_PROJECT, NULL);

	return op && op->flags & PLAN_CAPTURED ? op : NULL;
}

/* Returns the limit of files for a disk of so many bytes: an empty file takes memory too. */
static inline uint64_t plan_inodes(uint64_t bytes)
{
	return 1024 + bytes / 8192;
}

/* True if a name in /proc stays visible: a process, or a PLAN_PROC_FILE that follows `proc`. */
static inline bool plan_keeps_in_proc(
	const struct plan *p, const struct plan_op *proc, const char *name)
{
	const struct plan_op *end = plan_ops(p) + p->op_count;

	for (const struct plan_op *op = proc + 1; op < end && op->kind == PLAN_PROC_FILE; op++)
		if (strcmp(strrchr(plan_str(p, op->b), '/') + 1, name) == 0)
			return true;
	return (name[0] >= '0' && name[0] <= '9') || name[0] == '.';
}
