#pragma once

#include "agent/profile/agent.h"

/*
 * Toolchains that people install in their home. One row per manager lists the folders that a cage
 * needs, their paths in the cage, and the variables that name them. A row lists the needed parts
 * one by one, so that files beside them, such as credentials.toml or npmrc, are not in the cage.
 */

#define TOOLCHAIN_PLACE "/opt/toolchains"

/* A folder or file of the host that is bound into the cage, if it exists. */
struct toolchain_part {
	const char *variable; /* the variable that names the manager's folder … */
	const char *folder;   /* … or its path in the home; NULL: the folder of the program */
	const char *inside;   /* the path in that folder to bind */
	const char *at; /* below TOOLCHAIN_PLACE; NULL: its own path, because its files name that */
};

struct toolchain_def {
	const char *name;
	const char *program;              /* the program that is searched for on PATH … */
	const char *root_variable, *root; /* … in this folder of the home; NULL: anywhere in it */
	struct toolchain_part parts[7];
	const char *variable,
		*value; /* a variable for the cage; a value without / is the part's own path */
	const char *paths[3]; /* entries for PATH: below TOOLCHAIN_PLACE, or ~ROOT/… */
};

extern const struct toolchain_def toolchain_defs[];

/* Adds what the named toolchains need to a settled spec. Errors go to s->diags. */
void toolchain_apply(struct spec *s, const struct agent_search *where);

/* Returns the manager that a program on the operator's PATH belongs to, or NULL. */
const struct toolchain_def *toolchain_of(const char *path, const struct agent_search *where);
