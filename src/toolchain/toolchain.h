#pragma once

#include "agent/profile/agent.h"

/*
 * Tools that people install in their home: one row of a table per manager says which folders a cage
 * needs, where it has them, and which variables say so. A row names the parts that are needed, so
 * that what lies beside them, such as credentials.toml or npmrc, is not there.
 */

#define TOOLCHAIN_PLACE "/opt/toolchains"

/* A folder or file of the host that is shown, if it is there. */
struct toolchain_part {
	const char *variable; /* which names the folder of the manager … */
	const char *folder;   /* … or where that is in the home; NULL: that of the program */
	const char *inside;   /* what of it is shown */
	const char *at; /* below TOOLCHAIN_PLACE; NULL: at its own path, which files of it name */
};

struct toolchain_def {
	const char *name;
	const char *program;              /* by which it is found on PATH … */
	const char *root_variable, *root; /* … in this folder of the home; NULL: anywhere in it */
	struct toolchain_part parts[7];
	const char *variable,
		*value;       /* set in the cage; a value without / is the part's own path */
	const char *paths[3]; /* for PATH: below TOOLCHAIN_PLACE, or ~ROOT/… */
};

extern const struct toolchain_def toolchain_defs[];

/* Adds what the named toolchains need to a settled spec; what is wrong is said in s->diags. */
void toolchain_apply(struct spec *s, const struct agent_search *where);

/* The manager that has a program of the operator's PATH; NULL: none has. */
const struct toolchain_def *toolchain_of(const char *path, const struct agent_search *where);
