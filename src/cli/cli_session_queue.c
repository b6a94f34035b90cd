/*
 * cli_session_queue - hands a run to whichever worker takes it, and waits for what became of it.
 *
 * Runs as:  the operator.
 * Must not: queue what a worker would have to refuse; print what a command printed to a terminal
 *           as it is.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli_session.h"
#include "proof/record/record.h"
#include "session/worker/worker.h"
#include "term/term_filter.h"

#define AGAIN_MS 1000 /* until a store that is gone is asked again */
#define ALONE_MS 1000 /* until it is said that no worker is there */

/* --- what became of it --- */

static bool session_queue_has_ended(const struct store_run *x)
{
	return x->state != STORE_QUEUED && x->state != STORE_RUNNING;
}

static int session_queue_count_worker(void *of, const struct store_worker *x)
{
	*(unsigned *)of += x->is_alive && x->slots > 0;
	return 0;
}

/* A run that nobody takes waits for ever, and who waits for it should know. */
static void say_alone(struct store *s, const char *run)
{
	unsigned workers = 0;
	struct err e = { 0 };

	if (store_each_worker(s, session_queue_count_worker, &workers, &e) == 0 && workers == 0)
		cli_complain(
			"run %s waits: the store %s has no worker; start one with: bawn worker",
			run, store_name(s));
}

/* Until somebody says that something happened; or a while, where nobody can or `most_ms` say. */
static int wait_for_news(struct store *s, bool *is_listening, int most_ms, struct err *e)
{
	struct pollfd news = { .events = POLLIN };
	int n, r = *is_listening ? 0 : store_listen(s, e);

	if (r == 0 && !*is_listening) {
		/* What happened before we listened is asked for once more. */
		*is_listening = true;
		return 0;
	}
	news.fd = r == 0 ? store_wait_fd(s) : -1;
	n = poll(&news, 1, r == 0 ? most_ms : AGAIN_MS);
	if (n < 0 && errno != EINTR)
		return -errno;
	if (r == 0 && n != 0)
		r = store_hear(s, e);
	*is_listening = r == 0;
	return 0;
}

static int wait_for_end(
	struct store *s, const char *run, bool is_quiet, struct store_run *ret, struct err *e)
{
	uint64_t began = clock_ns();
	bool is_listening = false, may_say = !is_quiet;

	for (;;) {
		struct err why = { 0 };
		int r = store_find_run(s, run, ret, e);
		bool is_late = clock_ns() - began >= (uint64_t)ALONE_MS * 1000000;

		if (r == 0 && session_queue_has_ended(ret))
			return 0;
		if (r < 0 && r != -EPIPE)
			return r;
		if (r == 0 && may_say && is_late) {
			may_say = false;
			if (ret->state == STORE_QUEUED)
				say_alone(s, run);
		}
		if (r == 0)
			store_run_done(ret);
		is_listening = is_listening && r == 0;
		r = wait_for_news(s, &is_listening, may_say ? ALONE_MS : -1, &why);
		if (r < 0)
			return r;
	}
}

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

static int wait_for(const struct cli *cli, struct store *s, const char *run)
{
	own(store_run) struct store_run x = { 0 };
	struct err e = { 0 };
	int r = s && record_is_run(run, true) ? wait_for_end(s, run, cli->is_quiet, &x, &e)
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
