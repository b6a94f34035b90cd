#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "seccomp/filter.h"

/* Compiles rules about system calls to BPF, for the generator at build time and for profiles. */

enum filter_op {
	FILTER_EQ,
	FILTER_NE,
	FILTER_LT,
	FILTER_LE,
	FILTER_GT,
	FILTER_GE,
};

#define FILTER_MAX_ARGS 6
#define FILTER_LOW      0xffffffffU /* the mask of an argument of which the kernel reads an int */

/* Compares an argument masked with `mask` and `value`, both unsigned. */
struct filter_test {
	unsigned arg;
	enum filter_op op;
	uint64_t mask, value;
};

/* An action, one of SECCOMP_RET_… with its data, for a call for which all tests hold. */
struct filter_rule {
	uint32_t number, action;
	unsigned test_count;
	struct filter_test tests[FILTER_MAX_ARGS];
};

#define FILTER_MAX_RULES 4096

/* The first rule that matches a call answers; `action` answers if none does. */
struct filter_rules {
	uint32_t audit_arch, action;
	struct filter_rule *items; /* room for FILTER_MAX_RULES */
	size_t count;
};

/* Adds a copy of a rule. Returns 0 or -E2BIG. */
int filter_rules_add(struct filter_rules *rules, const struct filter_rule *rule);

/* Compiles the rules; the code lives in the arena. Returns 0, or -E2BIG beyond FILTER_MAX_CODE. */
int filter_compile(const struct filter_rules *rules, struct arena *arena, struct filter *ret);

/* An architecture by the names that the kernel, libseccomp and containers use for it. */
struct filter_arch {
	const char *name, *go_name;
	uint32_t scmp, audit;
};

/* Returns an architecture by its name, or NULL if bawn has no filters for it. */
const struct filter_arch *filter_arch_named(const char *name);

/* Returns the architecture that this program was built for. */
const struct filter_arch *filter_arch_native(void);

/*
 * Returns the number of a call; -ENOENT: the name is unknown; -ENOTSUP: not on this architecture.
 */
int filter_find_call(const struct filter_arch *arch, const char *name);

#define FILTER_MAX_ERRNO 4095 /* the kernel's */

/* Returns the number of an errno by its name, such as EPERM; 0: unknown. */
int filter_find_errno(const char *name);

/* Made by gen_filter from data/syscalls. */
struct filter_new_call {
	const char *name;
	uint32_t number;
};

extern const struct filter_new_call filter_new_calls[]; /* of its lines `number` */
extern const size_t filter_new_call_count;
extern const struct filter filter_default, filter_strict;
extern const struct filter_rule filter_always[];
extern const size_t filter_always_count;
