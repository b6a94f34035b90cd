#pragma once

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
