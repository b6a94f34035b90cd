#pragma once

#include "cli/cli.h"
#include "run/run_sessions.h"

/* The commands `bawn session …`: the table is in cmd_session.c. */

extern const struct cli_option session_create_options[], session_exec_options[],
	session_sweep_options[], session_rm_options[];

int session_create(struct cli *cli); /* cli_session_create.c */
int session_list(struct cli *cli);   /* cli_session_list.c */
int session_show(struct cli *cli);   /* cli_session_show.c */
int session_rm(struct cli *cli);     /* cli_session_remove.c */
int session_exec(struct cli *cli);   /* cli_session_exec.c */
int session_stop(struct cli *cli);
int session_wait(struct cli *cli); /* cli_session_queue.c */

/*
 * The session of a word; CLI_NO, which is said, where there is none. `ret` is the caller's:
 * store_session_done.
 */
int cli_sessions_find(struct run_sessions *x, const char *word, struct store_session *ret);

/* --- cli_session_create.c --- */

struct session_wish {
	const char *name;     /* what it may be called by, or NULL */
	int64_t usual_ttl_ms; /* how long it is kept where nobody says; 0: as the spec has it */
};

/*
 * Makes a session of the spec that the options and files say, if its commands could be caged so.
 * Opens the store and the root for that; `at` and `ret` are the caller's in any case. A status,
 * after it was said what is wrong.
 */
int session_make(const struct cli *cli, const struct session_wish *wish, struct run_sessions *at,
	struct store_session *ret);

/* Removes one that was found, with all that is in it, and says so in the log. A status.
 * cli_session_remove.c */
int session_remove(struct run_sessions *at, const struct store_session *s);

/* --- cli_session_queue.c: runs that a worker does --- */

/* `session exec --queue [--wait]`: prints the run's id, or waits. A status. */
int session_queue(struct cli *cli, struct store *s, const struct store_session *x);

/* In a word, for people and in JSON: the store's, "expired", "no folder" or "elsewhere". */
const char *session_state_word(const struct run_sessions *x, const struct store_session *s);

/* Its members, in an open map. */
void session_print_json(
	const struct run_sessions *x, const struct store_session *s, struct json *j);
