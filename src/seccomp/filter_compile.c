/*
 * filter_compile - rules by the names of an architecture, and from rules to a program.
 *
 * A program tests the architecture, then a tree that halves the numbers of calls, then the
 * arguments of one call. Neighbours with the same answer are one leaf, so the tree is low, and
 * arguments are looked at only below the leaf of their call; what needs none can be remembered by
 * the kernel, which then does not run the program at all.
 *
 * The code is put down from the end to the beginning: jumps only lead forward, so whatever one
 * leads to is already there.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "seccomp/filter_rules.h"

/* --- names of an architecture --- */

static const struct filter_arch arches[] = {
	{ "x86_64", "amd64", SCMP_ARCH_X86_64, AUDIT_ARCH_X86_64 },
	{ "aarch64", "arm64", SCMP_ARCH_AARCH64, AUDIT_ARCH_AARCH64 },
};

const struct filter_arch *filter_arch_named(const char *name)
{
	for (size_t i = 0; i < COUNT_OF(arches); i++)
		if (str_eq(arches[i].name, name))
			return &arches[i];
	return NULL;
}

const struct filter_arch *filter_arch_native(void)
{
#if defined(__aarch64__)
	return filter_arch_named("aarch64");
#else
	return filter_arch_named("x86_64"); /* gen_filter ends the build for any other */
#endif
}

int filter_find_call(const struct filter_arch *arch, const char *name)
{
	int number = seccomp_syscall_resolve_name_arch(arch->scmp, name);

	if (number == __NR_SCMP_ERROR)
		return -ENOENT;
	/* libseccomp gives calls of other architectures numbers below that. */
	return number < 0 ? -ENOTSUP : number;
}

int filter_find_errno(const char *name)
{
	for (int num = 1; num <= FILTER_MAX_ERRNO; num++) {
		const char *known = strerrorname_np(num);

		if (known && str_eq(known, name))
			return num;
	}
	return 0;
}

/* --- programs --- */

/* x86-64 takes numbers from here on for calls of x32; elsewhere there are none. */
#define X32_FIRST 0x40000000U
#define NO_CALL   (SECCOMP_RET_ERRNO | ENOSYS)

/* The calls from `first` to the next leaf: one action, or the rules of one call. */
struct leaf {
	uint32_t first, action;
	const struct filter_rule **rules;
	size_t rule_count;
};

struct compiler {
	const struct filter_rules *rules;
	struct leaf *leaves;
	size_t leaf_count;
	struct sock_filter *code; /* FILTER_MAX_CODE of them, filled from `at` on */
	size_t at;
	bool is_full;
};

int filter_rules_add(struct filter_rules *rules, const struct filter_rule *rule)
{
	if (rules->count == FILTER_MAX_RULES)
		return -E2BIG;
	rules->items[rules->count++] = *rule;
	return 0;
}

/* --- leaves --- */

static void add_leaf(struct compiler *c, struct leaf leaf)
{
	const struct leaf *last = c->leaf_count ? &c->leaves[c->leaf_count - 1] : NULL;

	if (last && !last->rule_count && !leaf.rule_count && last->action == leaf.action)
		return;
	c->leaves[c->leaf_count++] = leaf;
}

/* Compares by number; rules about one call keep their order. */
static int compare_rules(const void *a, const void *b)
{
	const struct filter_rule *x = *(const struct filter_rule *const *)a;
	const struct filter_rule *y = *(const struct filter_rule *const *)b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* A rule without tests ends the rules about its call: no later one is reached. */
static size_t count_reached(const struct filter_rule **rules, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (rules[i]->test_count == 0)
			return i + 1;
	return count;
}

static void add_leaves(struct compiler *c, const struct filter_rule **sorted)
{
	uint32_t action = c->rules->action, next = 0;

	for (size_t i = 0, end; i < c->rules->count; i = end) {
		struct leaf leaf = { sorted[i]->number, sorted[i]->action, &sorted[i], 0 };

		for (end = i; end < c->rules->count && sorted[end]->number == leaf.first; end++)
			continue;
		if (sorted[i]->test_count)
			leaf.rule_count = count_reached(&sorted[i], end - i);
		if (leaf.first > next)
			add_leaf(c, (struct leaf){ .first = next, .action = action });
		add_leaf(c, leaf);
		next = leaf.first + 1;
	}
	add_leaf(c, (struct leaf){ .first = next, .action = action });
	add_leaf(c, (struct leaf){ .first = X32_FIRST, .action = NO_CALL });
}

/* --- code; every function returns where what it put down begins --- */

static size_t compile_put(struct compiler *c, int code, uint32_t k, size_t yes, size_t no)
{
	if (c->at == 0) {
		c->is_full = true;
		return 0;
	}
	c->at--;
	c->code[c->at] = (struct sock_filter){ (uint16_t)code, (uint8_t)yes, (uint8_t)no, k };
	return c->at;
}

/* A place as far away as a test can jump, with one more instruction between. */
static size_t near(struct compiler *c, size_t to)
{
	return to - c->at < 250 ? to
				: compile_put(c, BPF_JMP | BPF_JA, (uint32_t)(to - c->at), 0, 0);
}

static size_t put_jump(struct compiler *c, int op, uint32_t k, size_t yes, size_t no)
{
	no = near(c, no);
	yes = near(c, yes);
	return compile_put(c, BPF_JMP | BPF_K | op, k, yes - c->at, no - c->at);
}

static size_t put_load(struct compiler *c, size_t offset, uint32_t mask)
{
	if (mask != FILTER_LOW)
		compile_put(c, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
	return compile_put(c, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* The accumulator has 32 bits: the high half decides, unless it is equal. */
static size_t put_test(struct compiler *c, const struct filter_test *t, size_t yes, size_t no)
{
	static const struct {
		int op;
		bool is_not;
	} ops[] = {
		[FILTER_EQ] = { BPF_JEQ, false },
		[FILTER_NE] = { BPF_JEQ, true },
		[FILTER_GT] = { BPF_JGT, false },
		[FILTER_LE] = { BPF_JGT, true },
		[FILTER_GE] = { BPF_JGE, false },
		[FILTER_LT] = { BPF_JGE, true },
	};
	size_t offset = offsetof(struct seccomp_data, args) + 8 * (size_t)t->arg;
	uint32_t high = (uint32_t)(t->value >> 32), high_mask = (uint32_t)(t->mask >> 32);
	size_t holds = ops[t->op].is_not ? no : yes, fails = ops[t->op].is_not ? yes : no;
	size_t low;

	put_jump(c, ops[t->op].op, (uint32_t)t->value, holds, fails);
	low = put_load(c, offset, (uint32_t)t->mask);
	if (high_mask == 0 && high == 0)
		return low;
	low = put_jump(c, BPF_JEQ, high, low, fails);
	if (ops[t->op].op != BPF_JEQ)
		put_jump(c, BPF_JGT, high, holds, low);
	return put_load(c, offset + 4, high_mask);
}

static size_t put_leaf(struct compiler *c, const struct leaf *leaf)
{
	size_t next = 0;

	if (leaf->rule_count == 0)
		return compile_put(c, BPF_RET | BPF_K, leaf->action, 0, 0);
	if (leaf->rules[leaf->rule_count - 1]->test_count)
		next = compile_put(c, BPF_RET | BPF_K, c->rules->action, 0, 0);
	for (size_t i = leaf->rule_count; i-- > 0;) {
		const struct filter_rule *rule = leaf->rules[i];
		size_t here = compile_put(c, BPF_RET | BPF_K, rule->action, 0, 0);

		for (unsigned k = rule->test_count; k-- > 0;)
			here = put_test(c, &rule->tests[k], here, next);
		next = here;
	}
	return next;
}

static size_t put_tree(struct compiler *c, const struct leaf *leaves, size_t count)
{
	size_t half = count / 2, low, high;

	if (count == 1)
		return put_leaf(c, leaves);
	high = put_tree(c, leaves + half, count - half);
	low = put_tree(c, leaves, half);
	return put_jump(c, BPF_JGE, leaves[half].first, high, low);
}

int filter_compile(const struct filter_rules *rules, struct arena *arena, struct filter *ret)
{
	struct compiler c = { .rules = rules, .at = FILTER_MAX_CODE };
	const struct filter_rule **sorted;
	size_t good;

	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "low halves come first");
	sorted = arena_array(arena, rules->count + 1, sizeof(const struct filter_rule *));
	c.leaves = arena_array(arena, 2 * rules->count + 2, sizeof(*c.leaves));
	c.code = arena_array(arena, FILTER_MAX_CODE, sizeof(*c.code));
	if (!sorted || !c.leaves || !c.code)
		return -ENOMEM;
	for (size_t i = 0; i < rules->count; i++)
		sorted[i] = &rules->items[i];
	qsort(sorted, rules->count, sizeof(const struct filter_rule *), compare_rules);
	add_leaves(&c, sorted);
	put_tree(&c, c.leaves, c.leaf_count);
	good = put_load(&c, offsetof(struct seccomp_data, nr), FILTER_LOW);
	compile_put(&c, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
	put_jump(&c, BPF_JEQ, rules->audit_arch, good, c.at);
	put_load(&c, offsetof(struct seccomp_data, arch), FILTER_LOW);
	if (c.is_full)
		return -E2BIG;
	*ret = (struct filter){ c.code + c.at, (unsigned short)(FILTER_MAX_CODE - c.at) };
	return 0;
}
