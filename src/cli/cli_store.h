#pragma once

#include "cli/cli.h"
#include "session/session.h"
#include "store/store.h"

/* What the commands about sessions, and workers, begin with. cli_store.c */

/*
 * Opens the store: BAWN_STORE, or `store.db` in the operator's state. -ENOENT, with nothing in `e`,
 * where that is missing and `makes` is not set.
 */
int cli_open_store(bool makes, struct store **ret, struct err *e);

/* The store, and the root that has the folders. */
struct cli_sessions {
	int state;                 /* the operator's */
	int root;                  /* -1: there is none yet, and so there are no folders */
	char place[STORE_ID_SIZE]; /* which root it is; "": none */
	struct store *store;       /* NULL: there is none yet, and so there are no sessions */
};

/* Opens both; `ret` is the caller's in any case. What is wrong is in `e`. */
int cli_sessions_open(struct cli_sessions *ret, bool makes, struct err *e);
void cli_sessions_done(struct cli_sessions *x);

/*
 * The session of a word; CLI_NO, which is said, where there is none. `ret` is the caller's:
 * store_session_done.
 */
int cli_sessions_find(struct cli_sessions *x, const char *word, struct store_session *ret);

/* The same without a word said: 1, 0, or -errno with the reason in `e`. */
int cli_sessions_look_up(
	struct cli_sessions *x, const char *word, struct store_session *ret, struct err *e);

/* Is its folder one of this root's? */
bool cli_sessions_is_here(const struct cli_sessions *x, const struct store_session *s);

/*
 * Says in the state's log that a session was created, or removed and why: "removed" or "expired".
 * What goes wrong is said, and no more.
 */
void cli_sessions_log(
	int state, const char *type, const char *id, const char *name, const char *why);
