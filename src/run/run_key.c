/*
 * run_key - the operator's signing key for whoever needs it.
 *
 * Runs as: the operator.
 * Leaves:  a key in the operator's state where there was none, and in the state's log that it was
 *          made.
 */
#include <errno.h>

#include "base/own.h"
#include "proof/log/log.h"
#include "run/run.h"

int run_note_key(int state, const struct sign_key *key, const char *former, struct err *e)
{
	own(log) struct log log;
	struct json *j;

	log_init(&log, state, NULL, NULL);
	log.is_synced = true;
	j = log_begin(&log, "key_made");
	json_text(j, "key", key->public.id);
	json_text(j, "former", former);
	log_end(&log);
	if (log_write(&log) == 0)
		return 0;
	*e = log.failure;
	err_prefix(e, "a signing key was made, and the log does not say so");
	return -e->num;
}

int run_take_key(int state, struct sign_key *ret, struct err *ret_unlogged, struct err *e)
{
	int r = sign_load_key(state, ret, e);

	if (r != -ENOENT)
		return r;
	r = sign_make_key(state, false, ret, e);
	if (r == 0)
		(void)run_note_key(state, ret, NULL, ret_unlogged);
	/* Somebody else was faster, and that one is it. */
	return r == -EEXIST ? 0 : r;
}
