#pragma once

#include "seccomp/filter_rules.h"
#include "spec/yaml.h"

/* A profile being read. The first error ends it: every function returns 0 or what went wrong. */
struct filter_reader {
	struct arena arena;
	struct diags *diags;
	struct err *e;
	const struct filter_arch *arch;
	struct filter_rules rules;
};

/* The sentence of an error, behind its place. Always -EINVAL. */
int filter_refuse(struct filter_reader *r, struct diag_pos at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Not there, or null: containers' tools write both. */
bool filter_is_absent(const struct yaml_node *n);

int filter_check_kind(struct filter_reader *r, const struct yaml_node *n, enum yaml_kind kind);
int filter_check_text(struct filter_reader *r, const struct yaml_node *n);

/* Is it a map, and are all its keys among these? */
int filter_check_map(struct filter_reader *r, const struct yaml_node *map, const char *const *keys,
	size_t count);

/* The value of a key that must be there. */
int filter_need(struct filter_reader *r, const struct yaml_node *map, const char *key,
	const struct yaml_node **ret);

int filter_read_number(
	struct filter_reader *r, const struct yaml_node *n, uint64_t max, uint64_t *ret);

/* The place of a text in a list of words; `what` they are is for the message. */
int filter_read_word(struct filter_reader *r, const struct yaml_node *n, const char *what,
	const char *const *words, size_t count, size_t *ret);
