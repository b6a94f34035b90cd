#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "spec/spec.h"

/*
 * Profiles of agents: data by which the name of an agent in a spec becomes ordinary keys. Plan,
 * record, card and sessions see only these keys.
 */

/* A key that the agent needs for its model. */
struct agent_key {
	const char *name;     /* the secret that it becomes: anthropic */
	const char *variable; /* ANTHROPIC_API_KEY */
	const char *host;     /* HOST:PORT that it is sent to */
	const char *header;   /* the request header that it is sent in … */
	const char *scheme;   /* … and the word before it there; or NULL */
	const char *base_url; /* the variable with the address of the model; or NULL */
	const char *path;     /* the path of that address: "", "/v1" */
	struct diag_pos at;
};

#define AGENT_MAX_KEYS 4

struct agent_profile {
	const char *name, *title;
	const char *program; /* the name to search for on PATH; NULL: no program */
	const char *package; /* the npm package to install; or NULL */
	/* If npm's script starts a native program: the folder of that in node_modules, which has
	 * all that it needs, and the program in it; or NULL. */
	const char *native, *native_run;
	bool takes_any;      /* the first word of the command is the program */
	const char *prompts; /* the file that startup_prompts are written to; or NULL */
	struct agent_key keys[AGENT_MAX_KEYS];
	size_t key_count;
	struct spec_layer_values values; /* keys that it adds to a spec */
	unsigned source;                 /* the source number for diagnostics */
};

/* --- reading: agent_read.c, pure --- */

/* The built-in profiles, by name; NULL at the end. */
struct agent_builtin {
	const char *name, *text;
};

extern const struct agent_builtin agent_builtins[];

/* Returns the text of a built-in profile, or NULL. */
const char *agent_builtin_text(const char *name);

/*
 * Reads a profile. Errors go to s->diags; false if the profile cannot be used. The bytes, behind
 * which there must be a NUL, and their name `from` are borrowed until spec_done.
 */
bool agent_read(
	struct spec *s, const char *from, const char *bytes, size_t n, struct agent_profile *ret);

/* --- finding the program on the host: agent_find.c --- */

#define AGENT_PLACE SPEC_AGENT_PLACE

/* The program of an agent, and the binds that it needs to run in a cage. */
struct agent_found {
	const char *path; /* on the host, without symlinks */
	struct spec_bind binds[2];
	size_t bind_count;
	const char *launcher; /* the text of a script for AGENT_PLACE/bin that runs it; or NULL */
	const char *
		words[2]; /* the words that the script runs: a program, or interpreter and script */
};

/* Where to search for programs. */
struct agent_search {
	const char *path, *home; /* $PATH and ~; either may be NULL */
	bool shows_system;       /* the cage has the host's /usr */
	/* Real paths. Programs in their repositories are ignored. Either may be NULL. */
	const char *project, *here;
	bool only_path; /* search PATH only, and not the folders of installers */
};

/*
 * Finds the first program of a name in the folders of $PATH and then (unless only_path) in those of
 * installers, but never in a repository that `where` names. Sets its path there and its real path.
 * False: not found.
 */
bool agent_search(const char *program, const struct agent_search *where,
	char ret_named[static 4096], char ret[static 4096]);

/*
 * Finds the program of a profile. `program` is its name, which for a profile with takes_any comes
 * from the command. Returns 0, -ENOENT if it is not installed, or -errno with `e`. The texts live
 * in the arena.
 */
int agent_find(struct arena *arena, const struct agent_profile *p, const char *program,
	const struct agent_search *where, struct agent_found *ret, struct err *e);

/* --- adding it to a spec: agent_apply.c, pure --- */

/* Add an entry to a settled list, unless there is one for the same target or variable. */
void agent_add_item(struct spec *s, enum spec_key key, const struct spec_item *item);
void agent_add_var(
	struct spec *s, enum spec_key key, const char *name, const char *value, struct diag_pos at);

/* The value in the cage of the variable of a key that stays outside. */
#define AGENT_NO_KEY "bawn"

/*
 * Adds a profile to a settled spec: adds entries to lists, and sets keys that no layer has set. The
 * words of the command become arguments of the agent. The operator must have named the agent or
 * allowed the project to. Errors go to s->diags: also a key in the project's file that belongs to
 * the agent.
 */
void agent_apply(struct spec *s, const struct agent_profile *p, const struct agent_found *found);

/*
 * Declares a key of the profile as a secret, which stays outside of the cage. False: no such key.
 */
bool agent_add_secret(struct spec *s, const struct agent_profile *p, const char *variable);

/* Returns the name of the program to find: the profile's, or the command's first word; or NULL. */
const char *agent_program(const struct spec *s, const struct agent_profile *p);

/*
 * Completes the spec: writes prompts, sets the addresses of models whose keys stay outside, and
 * fills in the paths that texts of the profile name. Must be called after agent_apply and
 * agent_add_secret. `project` is the project's path in the cage.
 */
void agent_finish(struct spec *s, const struct agent_profile *p, const char *project);

/* Makes the item of `secrets` that a key of a profile stands for. Returns 0, or -errno with `e`. */
int agent_make_secret(
	struct spec *s, const struct agent_key *key, struct spec_item *ret, struct err *e);
