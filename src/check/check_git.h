#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Finds the settings of a git configuration that lead elsewhere: to another remote, a program or
 * another file. Pure; understands just enough of the format to miss none, and rather takes the
 * second line of a long value for a setting than the other way round.
 */
struct check_git {
	const char *at, *end; /* what is left of the bytes; borrowed */
	unsigned line;        /* of the setting that was found */
	char section[16];
};

struct check_git_setting {
	const char *section, *key; /* in small letters */
	const char *name;          /* as git's manual writes it */
	const char *does;          /* "name, which …" */
};

void check_git_init(struct check_git *g, const char *bytes, size_t n);

/* The next such setting, or NULL. Values are never shown: they may hold a password. */
const struct check_git_setting *check_git_next(struct check_git *g);

/*
 * Reads values of a git configuration exactly as git does: quotes, escapes, comments, lines that go
 * on. Pure. What git would refuse to read ends it.
 */
struct check_git_values {
	const char *at, *end; /* what is left of the bytes; borrowed */
	char section[32];     /* in small letters; "" for one that is too long */
	bool has_subsection;
	char key[32]; /* of what was read last; like the section */
};

void check_git_values_init(struct check_git_values *v, const char *bytes, size_t n);

/*
 * The next setting, whatever it is: v->section and v->key say which. False where there is none. A
 * value that does not fit is passed over.
 */
bool check_git_values_any(struct check_git_values *v, char *ret, size_t size);

/*
 * The next value of `section.key`, both in small letters and without a subsection; false where
 * there is none. A value that does not fit is passed over.
 */
bool check_git_values_next(
	struct check_git_values *v, const char *section, const char *key, char *ret, size_t size);
