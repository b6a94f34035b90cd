/*
 * cli_session_exec - runs a command in a session, here and now; and ends what runs in one.
 *
 * Runs as: the operator.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "cli/cli_run.h"
#include "cli/cli_session.h"
#include "cli/commands.h"
#include "keeper/keeper.h"
#include "proof/record/record.h"
#include "run/run_session.h"
#include "run/run_stay.h"
#include "session/folder/session.h"

#define PATIENCE_MS 10000 /* for what runs to end */

const struct cli_option session_exec_options[] = {
	{ "queue", 0, NULL, SPEC_KEY_COUNT, NULL,
		"leave the run to a worker, and print the run's id" },
	{ "wait", 0, NULL, SPEC_KEY_COUNT, NULL,
		"with --queue: wait for the run, and print its output" },
	CLI_RUN_OPTIONS,
	{ 0 },
};

/* A command of `session exec`, for what is said when it has ended. */
struct here {
	struct cli *cli;
	int root; /* the sessions' */
	const struct store_session *session;
	struct timespec began;
	struct cli_printer told;
	struct run_sink sink;
};

/* The effects are those of all commands of the session: said after one that had a part in them. */
static void session_exec_look(void *of, const struct record *record)
{
	const struct here *h = of;
	struct err e = { 0 };
	own_fd int workspace = -1;

	if (h->cli->is_quiet || !record->effects.is_known)
		return;
	workspace = session_open_present(h->root, h->session, &e);
	if (workspace >= 0 && session_was_written(workspace, &h->began))
		cli_say_session_effects(record, h->session);
}

static void session_exec_begin(void *of, int root, bool is_quiet)
{
	struct here *h = of;

	h->root = root;
	h->cli->is_quiet = is_quiet;
	h->sink = cli_sink(&h->told, h->cli);
	clock_gettime(CLOCK_REALTIME_COARSE, &h->began);
}

static int run_here(struct cli *cli, struct run_sessions *at, const struct store_session *s)
{
	struct here here = { .cli = cli, .session = s };
	const struct run_stay_begin begin = { session_exec_begin, &here };
	char identity[SHA256_HEX_SIZE];
	bool may_stay = run_stay_is_possible(&cli->request);
	int hold = -1;
	struct run_job job = { .session = s,
		.look = session_exec_look,
		.of = &here,
		.root = at->root,
		.request = &cli->request,
		.command_line = cli->command_line,
		.command_line_size = cli->command_line_size,
		.hold = may_stay ? &hold : NULL,
		.sink = &here.sink };
	struct run_result result;
	struct err e = { 0 };

	if (run_use_session(at, s, &e) < 0) {
		cli_complain_about(&e, "cannot use session %s: %s", s->id, e.text);
		return CLI_FAILED;
	}
	/* A cage begins as a copy of this process: it shall have nothing of the store. */
	store_close(at->store);
	at->store = NULL;
	if (may_stay)
		run_stay_identify(identity);
	session_exec_begin(&here, at->root, cli->is_quiet);
	run_in_session(&job, &result);
	buf_done(&result.record);
	cli_printer_done(&here.told);
	if (may_stay)
		run_stay_start(&job, &begin, at->state, identity);
	return result.status;
}

/* Has the process do it that stayed after the command before this one; -1: there is none. */
static int run_by_stay(struct cli *cli, int root, const char *id)
{
	int status, r;

	if (cli_value(cli, CLI_OPT_QUEUE) || cli_value(cli, CLI_OPT_WAIT) ||
		!run_stay_is_possible(&cli->request))
		return -1;
	r = run_stay_ask(root, id, &cli->request, cli->is_quiet, &status);
	if (r == 0)
		return status;
	if (r != -EPIPE)
		return -1;
	cli_complain("cannot tell how the command ended: the process that ran it was killed");
	return 128 + SIGKILL;
}

/* A whole id says where the session is; anything else is for the store to tell. */
static int run_by_stay_of_id(struct cli *cli, const char *id)
{
	struct err e = { 0 };
	own_fd int state = session_is_id(id, true) ? record_open_state(run_home(), false, &e) : -1;
	own_fd int root = state < 0 ? -1 : session_open_root(state, false, &e);

	return root < 0 ? -1 : run_by_stay(cli, root, id);
}

static int leave_to_worker(struct cli *cli, struct run_sessions *at, const struct store_session *s)
{
	struct err e = { 0 };

	if (run_use_session(at, s, &e) < 0) {
		cli_complain_about(&e, "cannot use session %s: %s", s->id, e.text);
		return CLI_FAILED;
	}
	return session_queue(cli, at->store, s);
}

static int exec_in(struct cli *cli, struct run_sessions *at, const char *name)
{
	own(store_session) struct store_session s = { 0 };
	int status;

	if (cli_sessions_find(at, name, &s) != CLI_OK)
		return CLI_FAILED;
	status =
		at->root >= 0 && !session_is_id(name, true) ? run_by_stay(cli, at->root, s.id) : -1;
	if (status >= 0)
		return status;
	if (cli_value(cli, CLI_OPT_QUEUE))
		return leave_to_worker(cli, at, &s);
	if (!cli_value(cli, CLI_OPT_WAIT))
		return run_here(cli, at, &s);
	cli_complain(
		"cannot use --wait without --queue: a run that is not queued is waited for anyway");
	return CLI_FAILED;
}

int session_exec(struct cli *cli)
{
	own(run_sessions) struct run_sessions at = { .state = -1, .root = -1 };
	struct err e = { 0 };
	const char *name;
	int status;

	/* A session stands before the "--". */
	if (cli->word_count < 1 || cli->has_dashes) {
		cli_complain("cannot run: no session %sis named",
			cli->has_dashes ? "" : "or no command ");
		cli_hint("bawn session exec SESSION -- %s; bawn session list",
			cli->word_count ? cli->words[0] : "make");
		return CLI_FAILED;
	}
	name = cli->words[0];
	if (cli_parse_rest(cli) != CLI_OK)
		return CLI_FAILED;
	if (cli_value(cli, CLI_OPT_HELP)) {
		cli_print_command_help(cli->command);
		return CLI_OK;
	}
	status = run_check_session(&cli->request, &e) == 0 ? run_by_stay_of_id(cli, name) : -1;
	if (status >= 0)
		return status;
	if (e.kind != ERR_NONE || run_sessions_open(&at, false, &e) < 0) {
		cli_complain_err(&e);
		return CLI_FAILED;
	}
	return exec_in(cli, &at, name);
}

/* --- stop --- */

static int session_exec_stop(struct run_sessions *at, const struct store_session *s)
{
	struct err e = { 0 };
	int r = store_set_state(at->store, s->id, STORE_STOPPED, &e);

	/* Where its files are elsewhere, so is what runs: the worker there hears of it. */
	if (r == 0 && at->root >= 0)
		r = run_stop_session(at->root, s->id, PATIENCE_MS, &e);
	if (r >= 0)
		return CLI_OK;
	cli_complain_about(&e, "cannot stop session %s: %s", s->id, e.text);
	return CLI_FAILED;
}

int session_stop(struct cli *cli)
{
	struct run_sessions at;
	struct store_session session = { 0 };
	own(buf) struct buf out = { .max = (size_t)1 << 20 };
	struct json j;
	struct err e = { 0 };
	int status = CLI_OK;

	if (cli->word_count < 1) {
		cli_complain("cannot stop: no session is named");
		cli_hint("bawn session stop SESSION; bawn session list");
		return CLI_MISUSE;
	}
	if (run_sessions_open(&at, false, &e) < 0) {
		cli_complain_err(&e);
		status = CLI_FAILED;
	}
	json_init(&j, &out, 0);
	json_open_map(&j, NULL);
	json_int(&j, "version", 1);
	json_open_list(&j, "stopped");
	for (size_t i = 0; status == CLI_OK && i < cli->word_count; i++) {
		status = cli_sessions_find(&at, cli->words[i], &session);
		if (status == CLI_OK)
			status = session_exec_stop(&at, &session);
		if (status == CLI_OK)
			json_text(&j, NULL, session.id);
		store_session_done(&session);
		session = (struct store_session){ 0 };
	}
	json_close_list(&j);
	json_close_map(&j);
	buf_putc(&out, '\n');
	run_sessions_done(&at);
	return cli->is_json ? cli_write(&out, status) : status;
}
