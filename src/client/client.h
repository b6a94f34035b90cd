#pragma once

#include <stddef.h>

#include "agent/profile/agent.h"

/*
 * Registries by the name of their client: `npm` in an allow-list becomes the hosts that the
 * operator's npm is configured to use. bawn runs the client outside of the project and asks it,
 * because only the client knows all of its files, variables and defaults.
 */

#define CLIENT_MAX_HOSTS 64

/* A client's answer. */
struct client_found {
	const char *hosts[CLIENT_MAX_HOSTS]; /* as an allow-list has them */
	size_t host_count;
	struct client_setting {
		const char *key, *value; /* NULL: it contains a password, and is not passed on */
	} settings[CLIENT_MAX_HOSTS];    /* settings for the client in the cage */
	size_t setting_count;
};

/* The format of an answer. */
enum client_answer {
	CLIENT_LINES,   /* text; every address in it counts */
	CLIENT_PAIRS,   /* KEY=VALUE, or JSON with one "KEY": "VALUE" a line */
	CLIENT_DEFAULT, /* the default address, then addresses that belong to it */
	CLIENT_TOML,    /* TOML; addresses in the tables source.* and registries.* */
	CLIENT_REMOTES, /* a configuration of git */
};

#define CLIENT_MAX_WORDS 5

struct client_question {
	const char *words[CLIENT_MAX_WORDS + 1]; /* a program and its arguments … */
	/* … or a file of a folder: the variable's, that of the home, or the repository's. */
	const char *file, *folder, *variable;
	enum client_answer answer;
	const char *key; /* keys with this ending count; NULL: all do; of a default its own key */
};

struct client_def {
	const char *name;
	struct client_question questions[2];
	/* The file in the cage that the settings are written to; NULL: they are variables, or the
	 * cage has the same files. */
	const char *file, *head, *between;
	bool says_variables;        /* the settings are variables */
	const char *nothing, *hint; /* the error if no host was found */
};

extern const struct client_def client_defs[];

/* --- client_read.c, pure --- */

/*
 * Reads "https://user:key@host:8443/path", or a git remote in its short form, as
 * HOST:PORT/PROTOCOL, which lives in the arena. Returns 0, or -ENOENT if the text is not a network
 * address.
 */
int client_read_address(struct arena *arena, const char *text, size_t n, const char **ret);

/* Adds the hosts and settings of an answer. False: no memory. */
bool client_read(struct arena *arena, const struct client_question *q, const char *text,
	struct client_found *ret);

/* --- client_apply.c --- */

/*
 * Replaces the names of clients in a list of destinations by their hosts, and adds the settings for
 * the clients in the cage. Errors go to s->diags.
 */
void client_apply(struct spec *s, struct spec_value *allow, const struct agent_search *where,
	const char *git);
