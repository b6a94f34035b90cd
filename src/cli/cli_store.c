/*
 * cli_store - opens what is known of sessions, and where their folders are.
 *
 * Runs as:  the operator; a worker.
 * Leaves:   a store and a root where there were none, for who makes sessions.
 * Must not: print BAWN_STORE, which may have a password in it.
 */
#include "cli/cli_store.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "log/log.h"
#include "record/record.h"

int cli_open_store(bool makes, struct store **ret, struct err *e)
{
	const char *named = getenv("BAWN_STORE");
	char state[PATH_MAX], where[PATH_MAX + 32];
	struct stat st;
	int r;

	*ret = NULL;
	if (named && named[0]) {
		r = store_open(named, ret, e);
		if (r < 0 && !e->hint[0])
			err_hint(e, r, "the environment variable BAWN_STORE names this store");
		return r;
	}
	r = record_find_state(run_home(), state);
	if (r < 0)
		return err_hint(e,
			err_set(e, ERR_REFUSED, -r,
				"cannot keep sessions: HOME and XDG_STATE_HOME are not set"),
			"set one of them");
	snprintf(where, sizeof(where), "sqlite:%s/store.db", state);
	if (!makes && stat(where + strlen("sqlite:"), &st) < 0 && errno == ENOENT)
		return -ENOENT;
	return store_open(where, ret, e);
}

int cli_sessions_open(struct cli_sessions *ret, bool makes, struct err *e)
{
	int r;

	*ret = (struct cli_sessions){ .state = -1, .root = -1 };
	ret->state = record_open_state(run_home(), makes, e);
	if (ret->state < 0 && e->kind != ERR_NONE)
		return ret->state;
	r = cli_open_store(makes, &ret->store, e);
	if (r < 0 && e->kind != ERR_NONE)
		return r;
	ret->root = session_open_root(ret->state, makes, e);
	if (ret->root >= 0)
		return session_root_id(ret->root, ret->place, e);
	if (e->kind != ERR_NONE)
		return ret->root;
	ret->root = -1;
	return 0;
}

void cli_sessions_done(struct cli_sessions *x)
{
	if (x->store)
		store_close(x->store);
	if (x->root >= 0)
		close(x->root);
	if (x->state >= 0)
		close(x->state);
}

int cli_sessions_look_up(
	struct cli_sessions *x, const char *word, struct store_session *ret, struct err *e)
{
	int r;

	*ret = (struct store_session){ 0 };
	/* What is neither is in no store. */
	if (!x->store || (!session_is_id(word, false) && session_check_name(word)))
		return 0;
	r = store_find_session(x->store, word, ret, e);
	return r == 0 ? 1 : r == -ENOENT ? 0 : r;
}

int cli_sessions_find(struct cli_sessions *x, const char *word, struct store_session *ret)
{
	struct err e = { 0 };
	int r = cli_sessions_look_up(x, word, ret, &e);

	if (r == 1)
		return CLI_OK;
	if (r == 0)
		err_hint(&e, err_set(&e, ERR_USE, ENOENT, "cannot find session '%s'", word),
			"bawn session list");
	cli_complain_err(&e);
	return r == 0 || r == -ENOTUNIQ ? CLI_NO : CLI_FAILED;
}

bool cli_sessions_is_here(const struct cli_sessions *x, const struct store_session *s)
{
	return x->root >= 0 && strcmp(x->place, s->place) == 0;
}

void cli_sessions_log(
	int state, const char *type, const char *id, const char *name, const char *why)
{
	own(log) struct log log;
	struct json *j;

	log_init(&log, state, NULL, id);
	j = log_begin(&log, type);
	json_text(j, "name", name[0] ? name : NULL);
	if (why)
		json_text(j, "why", why);
	log_end(&log);
	if (log_write(&log) < 0)
		cli_complain_about(&log.failure, "what became of session %s is not in the log: %s",
			id, log.failure.text);
}
