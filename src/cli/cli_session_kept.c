/*
 * cli_session_kept - the workspace of a session, for diff, apply and discard.
 *
 * Runs as: the operator.
 * Reads:   the store, if there is one; makes none.
 */
#include <errno.h>
#include <sys/stat.h>

#include "base/own.h"
#include "base/str.h"
#include "cli/cli_kept.h"
#include "cli/cli_session.h"

/* A word that is a path here, and is of no more than seven digits if it is to be an id. */
static bool session_kept_is_path(const char *word)
{
	struct stat st;

	return lstat(word, &st) == 0 || (session_check_name(word) && !session_is_id(word, false));
}

static int open_workspace(
	struct cli_kept *k, const struct run_sessions *at, const struct store_session *s)
{
	struct err e = { 0 };
	own_fd int workspace = -1;

	if (!run_sessions_is_here(at, s)) {
		cli_complain("the files of session %s are in another root: set BAWN_SANDBOX_ROOT",
			s->id);
		return CLI_NO;
	}
	workspace = session_open_present(at->root, s, &e);
	if (workspace < 0) {
		cli_complain_err(&e);
		return workspace == -ENOENT ? CLI_NO : CLI_FAILED;
	}
	return cli_kept_take_workspace(k, &workspace, s->id);
}

int cli_kept_choose_session(struct cli_kept *k, const char *word, bool may_be_path)
{
	own(run_sessions) struct run_sessions at = { .state = -1, .root = -1 };
	own(store_session) struct store_session s = { 0 };
	struct err e = { 0 };
	int r;

	if (may_be_path && session_kept_is_path(word))
		return CLI_OK;
	if (run_sessions_open(&at, false, &e) < 0) {
		cli_complain_err(&e);
		return CLI_FAILED;
	}
	if (!may_be_path) {
		int status = cli_sessions_find(&at, word, &s);

		return status == CLI_OK ? open_workspace(k, &at, &s) : status;
	}
	r = run_sessions_look_up(&at, word, &s, &e);
	if (r == 1)
		return open_workspace(k, &at, &s);
	if (r == 0 || r == -ENOTUNIQ)
		return CLI_OK;
	cli_complain_err(&e);
	return CLI_FAILED;
}

struct hint {
	const struct run_sessions *at;
	const char *here;
};

static int hint_at(void *of, const struct store_session *s)
{
	const struct hint *h = of;
	const char *name = s->name[0] ? s->name : s->id;

	if (!str_path_within(h->here, s->project) || !run_sessions_is_here(h->at, s) ||
		session_count_writes(h->at->root, s->id, NULL) <= 0)
		return 0;
	cli_hint("session %s has changes: bawn session diff %s", name, name);
	return 1;
}

void cli_hint_session(const char *here)
{
	own(run_sessions) struct run_sessions at = { .state = -1, .root = -1 };
	struct hint h = { .at = &at, .here = here };
	struct err e = { 0 };

	/* What cannot be found out is no hint. */
	if (run_sessions_open(&at, false, &e) == 0 && at.store && at.root >= 0)
		(void)store_each_session(at.store, hint_at, &h, &e);
}
