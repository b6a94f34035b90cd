/*
 * cli_session_queue - hands a run to whichever worker takes it, and waits for what became of it.
 *
 * Runs as:  the operator.
 * Must not: queue what a worker would have to refuse; print what a command printed to a terminal
 *           as it is.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli_session.h"
#include "proof/record/record.h"
#include "session/worker/worker.h"
#include "term/term_filter.h"

/* --- what became of it --- */

static int write_filtered(int fd, const char *bytes, size_t n)
{
	struct term_filter filter = { 0 };
	own_free char *out = malloc(n + TERM_FILTER_HELD + TERM_FILTER_UNDO_MAX);
	size_t size;

	if (!out)
		return -ENOMEM;
	size = term_filter_pass(&filter, bytes, n, out);
	size += term_filter_undo(&filter, out + size);
	return file_write_all(fd, out, size);
}

static int write_stream(int fd, const char *bytes, size_t n)
{
	if (n == 0)
		return 0;
	return isatty(fd) ? write_filtered(fd, bytes, n) : file_write_all(fd, bytes, n);
}

static int session_queue_print(const struct store_run *x)
{
	static const char *const sentences[STORE_RUN_STATE_COUNT] = {
		[STORE_LOST] = "the worker that had it is gone, and nobody knows how far it came",
		[STORE_CANCELLED] = "its session was stopped or removed before it began",
		[STORE_FAILED] = "it failed",
	};
	int r = write_stream(STDOUT_FILENO, x->out, x->out_size);

	if (r == 0)
		r = write_stream(STDERR_FILENO, x->err, x->err_size);
	if (r < 0) {
		cli_complain("cannot write what run %s printed: %s", x->id, strerror(-r));
		return CLI_FAILED;
	}
	if (x->error[0])
		cli_complain("run %s: %s", x->id, x->error);
	else if (sentences[x->state])
		cli_complain("run %s: %s", x->id, sentences[x->state]);
	return x->state == STORE_ENDED || x->status ? x->status : CLI_FAILED;
}

struct waiting {
	struct store *store;
	const char *run;
};

/* A run that nobody takes waits for ever, and who waits for it should know. */
static void say_alone(void *of)
{
	const struct waiting *w = of;

	cli_complain("run %s waits: the store %s has no worker; start one with: bawn worker",
		w->run, store_name(w->store));
}

static int wait_for(const struct cli *cli, struct store *s, const char *run)
{
	own(store_run) struct store_run x = { 0 };
	struct waiting w = { s, run };
	struct err e = { 0 };
	int r = s && record_is_run(run, true)
			? run_wait_queued(s, run, cli->is_quiet ? NULL : say_alone, &w, &x, &e)
			: -ENOENT;

	if (r == 0)
		return session_queue_print(&x);
	if (r == -ENOENT)
		cli_complain("cannot wait for run '%s': no such run was queued", run);
	else
		cli_complain("cannot wait for run %s: %s", run,
			e.kind != ERR_NONE ? e.text : strerror(-r));
	return CLI_FAILED;
}

int session_wait(struct cli *cli)
{
	own(run_sessions) struct run_sessions at = { .state = -1, .root = -1 };
	struct err e = { 0 };

	if (cli->word_count != 1) {
		cli_complain("cannot wait: no run is named");
		cli_hint("bawn session wait RUN");
		return CLI_FAILED;
	}
	if (run_sessions_open(&at, false, &e) < 0) {
		cli_complain_err(&e);
		return CLI_FAILED;
	}
	return wait_for(cli, at.store, cli->words[0]);
}

/* --- what can be queued --- */

static int session_queue_check(const struct cli *cli, const struct store_session *x)
{
	const char *name = run_request_find_local(&cli->request);
	struct run_place place;
	struct err e = { 0 };
	struct spec s;
	int status;

	if (name) {
		cli_complain(
			"cannot use --%s together with --queue: a worker runs the command", name);
		return CLI_FAILED;
	}
	if (cli->word_count == 0) {
		cli_complain("cannot queue: no command is named");
		cli_hint("bawn session exec --queue SESSION -- COMMAND");
		return CLI_FAILED;
	}
	/* Where the project is not on this machine, the worker is the first who can tell. */
	if (access(x->project, F_OK) < 0)
		return CLI_OK;
	status = run_load_session_spec(&cli->request, x, &s, &place, &e) == 0 ? CLI_OK : CLI_FAILED;
	if (e.kind == ERR_SPEC)
		cli_print_diags(cli, &s);
	else if (status != CLI_OK)
		cli_complain_err(&e);
	spec_done(&s);
	return status;
}

int session_queue(struct cli *cli, struct store *s, const struct store_session *x)
{
	char run[STORE_RUN_SIZE];
	struct err e = { 0 };
	int status = session_queue_check(cli, x);

	if (status != CLI_OK)
		return status;
	if (run_queue(&cli->request, s, x, run, &e) < 0) {
		cli_complain_err(&e);
		return CLI_FAILED;
	}
	if (cli_value(cli, CLI_OPT_WAIT))
		return wait_for(cli, s, run);
	return printf("%s\n", run) < 0 || fflush(stdout) < 0 ? CLI_FAILED : CLI_OK;
}
