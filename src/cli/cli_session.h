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
 * Finds the session that a word names. Returns a status: CLI_NO if there is none. The caller must
 * call store_session_done(ret).
 */
int cli_sessions_find(struct run_sessions *x, const char *word, struct store_session *ret);

/* --- cli_session_create.c --- */

struct session_wish {
	const char *name;     /* its name, or NULL */
	int64_t usual_ttl_ms; /* default time to live; 0: as the spec has it */
};

/*
 * Makes a session of the spec that options and files give, if a cage for its commands can be
 * planned. Opens the store and the root in `at`. The caller owns `at` and `ret` in any case.
 * Returns a status.
 */
int session_make(const struct cli *cli, const struct session_wish *wish, struct run_sessions *at,
	struct store_session *ret);

/* Removes a session with its folder and logs it: cli_session_remove.c. Returns a status. */
int session_remove(struct run_sessions *at, const struct store_session *s);

/* --- queued runs: cli_session_queue.c --- */

/* Queues a run and prints its id or, with --wait, waits for it. Returns a status. */
int session_queue(struct cli *cli, struct store *s, const struct store_session *x);

/* Returns the state of a session in a word: the store's, "expired", "no folder" or "elsewhere". */
const char *session_state_word(const struct run_sessions *x, const struct store_session *s);

/* Adds the members of a session to the open map. */
void session_print_json(
	const struct run_sessions *x, const struct store_session *s, struct json *j);
