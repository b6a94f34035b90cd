#pragma once

#include <stddef.h>

#include "agent/profile/agent.h"

/*
 * Registries by the name of their client: `npm` in an allow-list becomes the hosts that the
 * operator's npm is set up to use. The client is asked, outside of the project; nobody else knows
 * its files, its variables and its default.
 */

#define CLIENT_MAX_HOSTS 64

/* A client's answer. */
struct client_found {
	const char *hosts[CLIENT_MAX_HOSTS]; /* as an allow-list has them */
	size_t host_count;
	struct client_setting {
		const char *key, *value; /* NULL: it has a password, and is not told */
	} settings[CLIENT_MAX_HOSTS];    /* what of it the client in the cage has to be told */
	size_t setting_count;
};

/* How an answer is read. */
enum client_answer {
	CLIENT_LINES,   /* every address in it */
	CLIENT_PAIRS,   /* KEY=VALUE, or JSON with one "KEY": "VALUE" a line */
	CLIENT_DEFAULT, /* the address where nothing is set up, then what belongs to that one */
	CLIENT_TOML,    /* addresses of the tables source.* and registries.* */
	CLIENT_REMOTES, /* a configuration of git */
};

#define CLIENT_MAX_WORDS 5

struct client_question {
	const char *words[CLIENT_MAX_WORDS + 1]; /* a program and its arguments … */
	/* … or a file of a folder: the variable's, that of the home, or the repository's. */
	const char *file, *folder, *variable;
	enum client_answer answer;
	const char *key; /* how keys end that count, or NULL: all do; of a default its own */
};

struct client_def {
	const char *name;
	struct client_question questions[2];
	/* Where the client in the cage reads what the operator's has been told; or NULL: what was
	 * said are variables, or the cage has the same files. */
	const char *file, *head, *between;
	bool says_variables;
	const char *nothing, *hint; /* what is said where nothing was found */
};

extern const struct client_def client_defs[];

/* --- client_read.c, pure --- */

/*
 * "https://user:key@host:8443/path" as HOST:PORT/PROTOCOL, and a remote of git in its short form
 * too. -ENOENT: nothing of the network. In the arena.
 */
int client_read_address(struct arena *arena, const char *text, size_t n, const char **ret);

/* Adds what an answer says. False without memory. */
bool client_read(struct arena *arena, const struct client_question *q, const char *text,
	struct client_found *ret);

/* --- client_apply.c --- */

/*
 * Puts the hosts in the place of the names of clients in one list of destinations, and tells the
 * clients in the cage. What is wrong is said in s->diags.
 */
void client_apply(struct spec *s, struct spec_value *allow, const struct agent_search *where,
	const char *git);
