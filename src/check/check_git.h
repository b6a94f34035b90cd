#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Finds the settings of a git configuration that redirect git: to another remote, a program or
 * another file. Pure. Parses just enough of the format to miss none; it may take the second line of
 * a long value for a setting, but never a setting for a value.
 */
struct check_git {
	const char *at, *end; /* what is left of the bytes; borrowed */
	unsigned line;        /* of the setting found last */
	char section[16];
};

struct check_git_setting {
	const char *section, *key; /* in small letters */
	const char *name;          /* as git's manual writes it */
	const char *does;          /* the rest of the message, "…, which …" */
};

void check_git_init(struct check_git *g, const char *bytes, size_t n);

/* Returns the next such setting, or NULL. Never its value, which may be a password. */
const struct check_git_setting *check_git_next(struct check_git *g);

/*
 * Reads the values of a git configuration exactly as git does: quotes, escapes, comments, continued
 * lines. Pure. Stops at what git would refuse.
 */
struct check_git_values {
	const char *at, *end; /* what is left of the bytes; borrowed */
	char section[32];     /* in lower case; "" if it is too long */
	bool has_subsection;
	char key[32]; /* of the setting read last, in the same form */
};

void check_git_values_init(struct check_git_values *v, const char *bytes, size_t n);

/*
 * Reads the next setting; v->section and v->key say which it is. Skips values that do not fit into
 * `ret`. False at the end.
 */
bool check_git_values_any(struct check_git_values *v, char *ret, size_t size);

/*
 * Reads the next value of `section.key`, both in lower case, without a subsection. Skips values
 * that do not fit into `ret`. False at the end.
 */
bool check_git_values_next(
	struct check_git_values *v, const char *section, const char *key, char *ret, size_t size);
