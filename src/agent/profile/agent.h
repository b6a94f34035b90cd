#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "spec/spec.h"

/*
 * Profiles of agents: data, by which an agent's name in a spec becomes ordinary keys of it. After
 * that nobody needs to know that there was an agent: plan, record, card and sessions see the keys.
 */

/* A key that the agent needs for its model, as its maker calls it. */
struct agent_key {
	const char *name;     /* of the secret that it becomes: anthropic */
	const char *variable; /* ANTHROPIC_API_KEY */
	const char *host;     /* whom it is for: HOST:PORT */
	const char *header;   /* how it is sent … */
	const char *scheme;   /* … and what stands before it there; or NULL */
	const char *base_url; /* the variable that says where the model is; or NULL */
	const char *path;     /* what follows the host in that address: "", "/v1" */
	struct diag_pos at;
};

#define AGENT_MAX_KEYS 4

struct agent_profile {
	const char *name, *title;
	const char *program; /* the name it is found by; NULL: there is none to find */
	const char *package; /* npm's, to be installed; or NULL */
	/* Beside a script of npm's, the folder in node_modules of what it starts, with all that
	 * this needs, and the program in it; or NULL. */
	const char *native, *native_run;
	bool takes_any;      /* the program is the first word of the command */
	const char *prompts; /* the file that startup_prompts are written to; or NULL */
	struct agent_key keys[AGENT_MAX_KEYS];
	size_t key_count;
	struct spec_layer_values values; /* what it adds to a spec */
	unsigned source;                 /* of its diagnostics */
};

/* --- reading: agent_read.c, pure --- */

/* The built-in profiles, by name; NULL at the end. */
struct agent_builtin {
	const char *name, *text;
};

extern const struct agent_builtin agent_builtins[];

/* NULL: there is none of that name. */
const char *agent_builtin_text(const char *name);

/*
 * Reads a profile; what is wrong is said in s->diags. False: it cannot be used. The bytes, which
 * end with a NUL that is not counted, and `from`, their name, are borrowed as long as the spec is.
 */
bool agent_read(
	struct spec *s, const char *from, const char *bytes, size_t n, struct agent_profile *ret);

/* --- the program: agent_find.c, looks at the host --- */

#define AGENT_PLACE SPEC_AGENT_PLACE

/* What of the host has to be shown so that the program runs in a cage. */
struct agent_found {
	const char *path; /* of the host, all links followed */
	struct spec_bind binds[2];
	size_t bind_count;
	const char *launcher; /* a script for AGENT_PLACE/bin that runs it; or NULL */
	const char *words[2]; /* what that runs: a program, or an interpreter and a script */
};

/* Where to look. */
struct agent_search {
	const char *path, *home; /* $PATH and ~; either may be NULL */
	bool shows_system;       /* the cage has the host's /usr */
	/* Real paths, in whose repositories nothing is looked for; either may be NULL. */
	const char *project, *here;
	bool only_path; /* not in the folders of installers, where agents are looked for too */
};

/*
 * The first program of a name in the folders of $PATH, then (unless only_path) in those of
 * installers: as it is called there, and its real path. False: there is none outside of the
 * project's repository.
 */
bool agent_search(const char *program, const struct agent_search *where,
	char ret_named[static 4096], char ret[static 4096]);

/*
 * The program of a profile; `program` is its name, which for a profile that takes any is not its
 * own. -ENOENT: it is not installed; else -errno with a sentence. All in the arena.
 */
int agent_find(struct arena *arena, const struct agent_profile *p, const char *program,
	const struct agent_search *where, struct agent_found *ret, struct err *e);

/* --- adding it to a spec: agent_apply.c, pure --- */

/* Adds an entry to what is settled, unless there is one for the same. */
void agent_add_item(struct spec *s, enum spec_key key, const struct spec_item *item);
void agent_add_var(
	struct spec *s, enum spec_key key, const char *name, const char *value, struct diag_pos at);

/* What stands in the cage for a key that is not there. */
#define AGENT_NO_KEY "bawn"

/*
 * Adds what the profile says to a spec that is settled, and in which the operator named the agent,
 * or let it be named: lists grow, and what nobody has declared is set. The words of the command
 * line are for the agent. A project's file that says something of the agent's own is wrong, which
 * is said in s->diags.
 */
void agent_apply(struct spec *s, const struct agent_profile *p, const struct agent_found *found);

/* Declares one of its keys as a secret: it stays outside of the cage. False: it has no such key. */
bool agent_add_secret(struct spec *s, const struct agent_profile *p, const char *variable);

/* The program that is wanted: the profile's, or what the command begins with; NULL: none. */
const char *agent_program(const struct spec *s, const struct agent_profile *p);

/*
 * Then: prompts, addresses of models whose keys stay outside, and the places that texts of the
 * profile name. `project` is where the project is in the cage.
 */
void agent_finish(struct spec *s, const struct agent_profile *p, const char *project);

/* Makes the item of `secrets` that a key of a profile stands for. Returns 0, or -errno with `e`. */
int agent_make_secret(
	struct spec *s, const struct agent_key *key, struct spec_item *ret, struct err *e);
