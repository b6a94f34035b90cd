/*
 * cli_session_exec - runs a command in a session, here and now; and ends what runs in one.
 *
 * Runs as: the operator.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "cli/cli_exec.h"
#include "cli/cli_session.h"
#include "keep/keep.h"

#define PATIENCE_MS 10000 /* for what runs to end */

/*
 * All that was given for the run, as it would stand behind the session: options may come before it
 * too. The array is the caller's, what it points to is not.
 */
static char **list_arguments(const struct cli *cli, struct arena *arena)
{
	char **list = arena_array(arena, 2 * cli->given_count + cli->word_count + 1, sizeof(*list));
	size_t n = 0;

	for (size_t i = 0; list && i < cli->given_count; i++) {
		const struct cli_given *g = &cli->given[i];

		list[n] = arena_printf(arena, "--%s", g->option->name);
		if (!list[n++])
			return NULL;
		if (g->option->argument) {
			list[n] = arena_copy(arena, g->value, strlen(g->value));
			if (!list[n++])
				return NULL;
		}
	}
	for (size_t i = 1; list && i < cli->word_count; i++)
		list[n++] = cli->words[i];
	return list;
}

int session_use(struct cli_sessions *at, const struct store_session *s, struct err *e)
{
	int r = s->state == STORE_STOPPED ? store_set_state(at->store, s->id, STORE_OPEN, e) : 0;

	return r == 0 ? store_touch_session(at->store, s->id, e) : r;
}

static int run_here(
	struct cli *cli, struct cli_sessions *at, const struct store_session *s, char **arguments)
{
	struct exec_job job = { .session = s,
		.root = at->root,
		.arguments = arguments,
		.command_line = cli->command_line,
		.command_line_size = cli->command_line_size,
		.is_quiet = cli->is_quiet };
	struct exec_result result;
	struct err e = { 0 };

	if (session_use(at, s, &e) < 0) {
		cli_complain("cannot use session %s: %s", s->id, e.text);
		return CLI_FAILED;
	}
	/* A cage begins as a copy of this process: it shall have nothing of the store. */
	store_close(at->store);
	at->store = NULL;
	exec_run(&job, &result);
	buf_done(&result.record);
	return result.status;
}

static int leave_to_worker(
	struct cli *parsed, struct cli_sessions *at, const struct store_session *s)
{
	struct err e = { 0 };

	if (session_use(at, s, &e) < 0) {
		cli_complain("cannot use session %s: %s", s->id, e.text);
		return CLI_FAILED;
	}
	return session_queue(parsed, at->store, s);
}

static int exec_found(struct cli *cli, struct cli *parsed, struct cli_sessions *at,
	const struct store_session *s, char **arguments)
{
	if (cli_value(parsed, "queue"))
		return leave_to_worker(parsed, at, s);
	if (!cli_value(parsed, "wait"))
		return run_here(cli, at, s, arguments);
	cli_complain("--wait is for --queue: what is not queued is waited for in any case");
	return CLI_FAILED;
}

static int exec_in(struct cli *cli, struct cli_sessions *at, char **arguments)
{
	struct store_session session = { 0 };
	struct cli parsed = { 0 };
	int status = exec_parse(&parsed, arguments);

	if (status == CLI_OK && cli_value(&parsed, "help"))
		cli_print_command_help(cli->command);
	else if (status == CLI_OK) {
		status = cli_sessions_find(at, cli->words[0], &session);
		if (status == CLI_OK)
			status = exec_found(cli, &parsed, at, &session, arguments);
		else if (status == CLI_NO)
			status = CLI_FAILED;
	} else {
		status = CLI_FAILED;
	}
	store_session_done(&session);
	free(parsed.given);
	return status;
}

int session_exec(struct cli *cli)
{
	struct cli_sessions at;
	struct arena arena;
	struct err e = { 0 };
	char **arguments;
	int status = CLI_FAILED;

	if (cli->word_count < 1) {
		cli_complain(
			"say which session and what to run: bawn session exec SESSION -- make");
		return CLI_FAILED;
	}
	arena_init(&arena, (size_t)16 << 20);
	arguments = list_arguments(cli, &arena);
	if (cli_sessions_open(&at, false, &e) < 0)
		cli_complain("%s", e.text);
	else if (!arguments)
		cli_complain("not enough memory for the arguments");
	else
		status = exec_in(cli, &at, arguments);
	cli_sessions_done(&at);
	arena_done(&arena);
	return status;
}

/* --- stop --- */

static int stop(struct cli_sessions *at, const struct store_session *s)
{
	struct err e = { 0 };
	int r = store_set_state(at->store, s->id, STORE_STOPPED, &e);

	/* Where its files are elsewhere, so is what runs: the worker there hears of it. */
	if (r == 0 && at->root >= 0)
		r = session_stop_runs(at->root, s->id, PATIENCE_MS, &e);
	if (r >= 0)
		return CLI_OK;
	cli_complain("cannot stop session %s: %s", s->id, e.text);
	return CLI_FAILED;
}

int session_stop(struct cli *cli)
{
	struct cli_sessions at;
	struct store_session session = { 0 };
	struct err e = { 0 };
	int status = CLI_OK;

	if (cli->word_count < 1) {
		cli_complain("say which session: bawn session stop SESSION");
		return CLI_MISUSE;
	}
	if (cli_sessions_open(&at, false, &e) < 0) {
		cli_complain("%s", e.text);
		status = CLI_FAILED;
	}
	for (size_t i = 0; status == CLI_OK && i < cli->word_count; i++) {
		status = cli_sessions_find(&at, cli->words[i], &session);
		if (status == CLI_OK)
			status = stop(&at, &session);
		store_session_done(&session);
		session = (struct store_session){ 0 };
	}
	cli_sessions_done(&at);
	return status;
}
