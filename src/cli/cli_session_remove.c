/*
 * cli_session_remove - takes sessions away, with all that is in them.
 *
 * Runs as:  the operator; a worker.
 * Leaves:   the records of the session's runs, and nothing else of it.
 * Must not: remove a row before its folder: what nobody knows of is removed by nobody.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/cli_session.h"

/* --- rm --- */

int session_remove(struct run_sessions *at, const struct store_session *s)
{
	struct err e = { 0 };
	int r = run_remove_session(at, s, &e);

	if (r < 0) {
		cli_complain_err(&e);
		return r == -EXDEV ? CLI_NO : CLI_FAILED;
	}
	if (run_sessions_log(at->state, "session_removed", s, "removed", &e) < 0)
		cli_complain_err(&e);
	return CLI_OK;
}

const struct cli_option session_rm_options[] = {
	CLI_YES,
	{ 0 },
};

struct removal {
	const struct cli *cli;
	struct run_sessions at;
	struct buf out;
	struct json json;
	bool is_json, is_quiet;
};

/* Removing a session loses what nobody applied: that is asked for, by --yes where nobody can be. */
static int session_remove_ask(
	const struct removal *x, const struct store_session *s, const struct buf *names)
{
	const char *more = names->failed ? " …" : "";

	if (cli_value(x->cli, CLI_OPT_YES) || cli_can_ask())
		return cli_confirm(x->cli, false,
			"remove session %.8s with changes that were not applied (%s%s)", s->id,
			buf_text(names), more);
	cli_complain("cannot remove session %.8s: it has changes that were not applied (%s%s)",
		s->id, buf_text(names), more);
	cli_hint("--yes removes it with them; bawn session diff %.8s shows them", s->id);
	return CLI_NO;
}

static int remove_word(struct removal *x, const char *word)
{
	own(store_session) struct store_session s = { 0 };
	own(buf) struct buf names = { .max = 200 };
	int status = cli_sessions_find(&x->at, word, &s), writes = 0;

	if (status == CLI_OK && x->at.root >= 0)
		writes = session_count_writes(x->at.root, s.id, &names);
	if (status == CLI_OK && writes > 0)
		status = session_remove_ask(x, &s, &names);
	if (status == CLI_OK)
		status = session_remove(&x->at, &s);
	if (status == CLI_OK && writes > 0 && !x->is_quiet)
		cli_complain("session %.8s is removed with changes that were not applied: %s%s",
			s.id, buf_text(&names), names.failed ? " …" : "");
	if (status == CLI_OK && x->is_json)
		json_text(&x->json, NULL, s.id);
	else if (status == CLI_OK)
		buf_printf(&x->out, "%s\n", s.id);
	return status;
}

int session_rm(struct cli *cli)
{
	struct removal x = { .cli = cli,
		.at = { .state = -1, .root = -1 },
		.out.max = (size_t)1 << 24,
		.is_json = cli->is_json,
		.is_quiet = cli->is_quiet };
	struct err e = { 0 };
	int status = CLI_OK;

	if (!cli->word_count) {
		cli_complain("session rm wants the sessions to remove");
		cli_hint("bawn session list");
		return CLI_MISUSE;
	}
	if (run_sessions_open(&x.at, false, &e) < 0) {
		cli_complain_err(&e);
		run_sessions_done(&x.at);
		return CLI_FAILED;
	}
	json_init(&x.json, &x.out, 0);
	if (cli->is_json) {
		json_open_map(&x.json, NULL);
		json_int(&x.json, "version", 1);
		json_open_list(&x.json, "removed");
	}
	for (size_t i = 0; i < cli->word_count; i++) {
		int one = remove_word(&x, cli->words[i]);

		status = one > status ? one : status;
	}
	if (cli->is_json) {
		json_close_list(&x.json);
		json_close_map(&x.json);
		buf_putc(&x.out, '\n');
	}
	status = cli_write(&x.out, status);
	run_sessions_done(&x.at);
	buf_done(&x.out);
	return status;
}
