#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "seccomp/filter.h"

/* Rules about system calls and the program that obeys them: of the generator and of profiles. */

enum filter_op {
	FILTER_EQ,
	FILTER_NE,
	FILTER_LT,
	FILTER_LE,
	FILTER_GT,
	FILTER_GE,
};

#define FILTER_MAX_ARGS 6
#define FILTER_LOW      0xffffffffU /* the mask of what the kernel reads of an int */

/* The bits `mask` of an argument, compared with `value` as numbers without a sign. */
struct filter_test {
	unsigned arg;
	enum filter_op op;
	uint64_t mask, value;
};

/* If all tests hold, the action: one of SECCOMP_RET_…, with its data. */
struct filter_rule {
	uint32_t number, action;
	unsigned test_count;
	struct filter_test tests[FILTER_MAX_ARGS];
};

#define FILTER_MAX_RULES 4096

/* Of the rules about one call the first that holds answers; `action` where none does. */
struct filter_rules {
	uint32_t audit_arch, action;
	struct filter_rule *items; /* room for FILTER_MAX_RULES */
	size_t count;
};

/* Adds a copy; -E2BIG when there is no more room. */
int filter_rules_add(struct filter_rules *rules, const struct filter_rule *rule);

/* Makes the program, which lives in the arena. -E2BIG when the kernel would not take so long a one.
 */
int filter_compile(const struct filter_rules *rules, struct arena *arena, struct filter *ret);

/* An architecture by the names that the kernel, libseccomp and the containers have for it. */
struct filter_arch {
	const char *name, *go_name;
	uint32_t scmp, audit;
};

/* NULL where bawn has no filters for it. */
const struct filter_arch *filter_arch_named(const char *name);

/* Of this program itself. */
const struct filter_arch *filter_arch_native(void);

/* The number of a call; -ENOENT where nobody knows the name, -ENOTSUP on another architecture. */
int filter_find_call(const struct filter_arch *arch, const char *name);

#define FILTER_MAX_ERRNO 4095 /* the kernel's */

/* The number of an error by its name, EPERM; 0 where there is none. */
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
