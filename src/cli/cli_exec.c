/*
 * cli_exec - one command in a session.
 *
 * Runs as:     the operator: `bawn session exec`, or a worker.
 * Enters with: the session's row, and the root that has its workspace.
 * Leaves:      a run with its own record; in the workspace what it wrote.
 * Must not:    let an argument widen what the session was created with.
 */
#include "cli/cli_exec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli_run.h"
#include "cli/commands.h"
#include "session/session.h"

const struct cli_option exec_options[] = {
	{ "queue", 0, NULL, SPEC_KEY_COUNT, NULL,
		"leave the run to a worker, and print the run's id" },
	{ "wait", 0, NULL, SPEC_KEY_COUNT, NULL,
		"with --queue: wait for the run, and print its output" },
	{ "record", 0, "FILE", SPEC_KEY_COUNT, NULL, "write the record to FILE too" },
	{ "subject", 0, "PATH", SPEC_KEY_COUNT, NULL,
		"record the digest of a project file after the run" },
	{ "sync", 0, NULL, SPEC_KEY_COUNT, NULL, "fsync the log and the record" },
	{ "status-fd", 0, "N", SPEC_KEY_COUNT, NULL,
		"write events to descriptor N as lines of JSON" },
	{ "tty", 't', NULL, SPEC_KEY_COUNT, NULL, "always allocate a terminal" },
	{ "no-tty", 0, NULL, SPEC_KEY_COUNT, NULL, "never allocate a terminal" },
	{ "raw", 0, NULL, SPEC_KEY_COUNT, NULL, "do not filter escape sequences" },
	{ "cast", 0, "FILE", SPEC_KEY_COUNT, NULL, "write the output to FILE as an asciicast" },
	{ "timing", 0, NULL, SPEC_KEY_COUNT, NULL, "print how long each step of the start took" },
	{ 0 },
};

int exec_check(const struct run_request *q, struct err *e)
{
	const char *option = run_request_find_fixed(q);

	if (!option)
		return 0;
	return err_hint(e,
		err_set(e, ERR_USE, EINVAL,
			"cannot use --%s: it is fixed when a session is created", option),
		"bawn session create --%s …", option);
}

int exec_open_workspace(const struct exec_job *job, struct err *e)
{
	const struct store_session *s = job->session;
	/* Under a lease it is the lease's, or none: a newer one is another worker's. */
	int fd = job->worker ? session_open_workspace(job->root, s->id, s->workspace, e)
			     : session_open_present(job->root, s, e);

	if (fd == -ENOENT)
		return err_hint(e,
			err_set(e, ERR_REFUSED, ENOENT,
				"cannot use session %s: its files are not on this machine",
				job->session->id),
			"bawn session exec --queue leaves it to a worker that has them, or can get "
			"them");
	return fd;
}

/* What the session wrote is in a layer that only a captured project has. */
static bool hides_layer(const struct spec *s)
{
	return spec_choice(s, SPEC_PROJECT_MODE) == SPEC_MODE_READ_ONLY &&
	       s->layers[SPEC_LAYER_USER].v[SPEC_PROJECT_MODE].choice == SPEC_MODE_CAPTURED;
}

int exec_load(const struct exec_job *job, struct run *r, struct err *e)
{
	struct err why = { 0 };
	int status = run_load_session_spec(r->asked, job->session, &r->spec, &r->place, &why) == 0
			     ? CLI_OK
		     : why.kind == ERR_SPEC ? CLI_NO
					    : CLI_FAILED;
	struct stat project;

	if (status == CLI_NO)
		cli_print_diags(r->cli, &r->spec);
	if (status == CLI_FAILED)
		cli_complain_err(&why);
	if (status == CLI_OK && hides_layer(&r->spec)) {
		err_hint(e,
			err_set(e, ERR_REFUSED, EOPNOTSUPP,
				"cannot show the project read-only to one command of a session: it "
				"would not see what the session wrote"),
			"bawn session create --read-only makes one that cannot write at all");
		cli_complain_err(e);
		return CLI_NO;
	}
	if (status == CLI_NO && r->spec.diags.count)
		err_set(e, ERR_SPEC, EINVAL, "%.400s", r->spec.diags.items[0].text);
	else if (status != CLI_OK && stat(job->session->project, &project) < 0)
		err_set(e, ERR_REFUSED, errno, "cannot use the session's project '%s': %s",
			job->session->project, strerror(errno));
	else if (status != CLI_OK)
		err_set(e, ERR_SPEC, EINVAL, "cannot use the session's spec");
	return status;
}

/* The same, and what follows from its being one of those that share a cage. */
static int prepare(const struct exec_job *job, struct run *r, struct err *e)
{
	int status = exec_load(job, r, e);

	if (status != CLI_OK || !spec_bool(&r->spec, SPEC_SESSION_BACKGROUND))
		return status;
	r->job = job;
	r->pool = NULL;
	r->request.mode = KEEP_JOINING;
	if (exec_check_sharing(&r->spec, e) == 0)
		return CLI_OK;
	cli_complain_err(e);
	return CLI_FAILED;
}

/*
 * A cage that waits has copies of what is open when it is made. Of this session, and of its run,
 * whose folder is locked while it lasts, there are to be none.
 */
static void close_all(struct run *r, int *workspace)
{
	run_sign_interrupted(r);
	run_close_record(r);
	r->request.workspace = -1;
	if (*workspace >= 0)
		close(take_fd(workspace));
}

static void run_asked(const struct exec_job *job, const struct cli *cli, struct exec_result *ret)
{
	uint64_t began = clock_ns();
	own_fd int workspace = exec_open_workspace(job, &ret->error);
	struct run r;

	run_init(&r, cli, job->request);
	r.record.session = job->session->id;
	r.record.worker = job->worker;
	r.record.lease = job->token;
	r.signed_copy = &ret->record;
	r.is_still_ours = job->is_still_ours;
	r.of = job->of;
	r.pool = job->pool;
	r.keep_ns = began;
	r.request.workspace = workspace;
	r.request.is_start_late = job->pool != NULL;
	r.request.hold = job->hold;
	r.request.kill_signal = job->kill_signal;
	memcpy(r.request.printed, job->printed, sizeof(r.request.printed));
	if (job->run)
		snprintf(r.record.run, sizeof(r.record.run), "%s", job->run);
	ret->status = CLI_FAILED;
	if (workspace < 0 && !job->is_quiet)
		cli_complain_err(&ret->error);
	if (workspace >= 0 && run_open_status(&r) == CLI_OK) {
		if (prepare(job, &r, &ret->error) == CLI_OK) {
			ret->status = run_to_end(&r);
			ret->error = r.record.error;
		} else {
			run_open_log(&r);
			run_record_refusal(&r, &ret->error);
		}
	}
	ret->state = r.record.outcome == RECORD_REFUSED ? STORE_FAILED : STORE_ENDED;
	ret->start_ns = r.keep_ns - began + r.record.start_ns;
	ret->end_ns = ret->start_ns + r.record.run_ns;
	/* It is written by now: what counts is how long it was waited for. */
	r.record.start_ns = ret->start_ns;
	metrics_count_record(&ret->counted, &r.record);
	snprintf(ret->run, sizeof(ret->run), "%s", r.record.run);
	if (job->look)
		job->look(job->of, &r.record);
	if (job->done)
		job->done(job->of, ret);
	close_all(&r, &workspace);
	/* What was refused may have come to a plan, and not to all that a cage needs. */
	if (r.pool && r.plan && r.record.outcome != RECORD_REFUSED)
		exec_pool_fill(r.pool, &r);
	run_done(&r);
}

void exec_run(const struct exec_job *job, struct exec_result *ret)
{
	const struct cli cli = { .command_line = job->command_line,
		.command_line_size = job->command_line_size,
		.is_quiet = job->is_quiet };

	*ret = (struct exec_result){
		.state = STORE_FAILED, .status = CLI_FAILED, .record.max = 4 * RECORD_MAX_SIZE
	};
	if (exec_check(job->request, &ret->error) == 0) {
		run_asked(job, &cli, ret);
		return;
	}
	metrics_count_run(&ret->counted, METRICS_FAILED, 0);
	if (job->done)
		job->done(job->of, ret);
}
