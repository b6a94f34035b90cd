/*
 * run_session - one command in a session.
 *
 * Runs as:     the operator: `bawn session exec`, MCP, or a worker.
 * Enters with: the session's row, and the root that has its workspace.
 * Leaves:      a run with its own record; in the workspace what it wrote.
 * Must not:    let an argument widen what the session was created with.
 */
#include "run/run_session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "session/folder/session.h"

int run_check_session(const struct run_request *q, struct err *e)
{
	const char *option = run_request_find_fixed(q);

	if (!option)
		return 0;
	return err_hint(e,
		err_set(e, ERR_USE, EINVAL,
			"cannot use --%s: it is fixed when a session is created", option),
		"bawn session create --%s …", option);
}

int run_open_workspace(const struct run_job *job, struct err *e)
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

int run_load_job(const struct run_job *job, struct run *r, struct err *e)
{
	struct err why = { 0 };
	int ret = run_load_session_spec(r->asked, job->session, &r->spec, &r->place, &why);
	struct stat project;

	if (ret == 0 && !hides_layer(&r->spec))
		return 0;
	if (ret == 0) {
		ret = err_hint(e,
			err_set(e, ERR_REFUSED, EOPNOTSUPP,
				"cannot show the project read-only to one command of a session: it "
				"would not see what the session wrote"),
			"bawn session create --read-only makes one that cannot write at all");
		run_tell_err(r, e);
		return ret;
	}
	if (why.kind != ERR_SPEC)
		run_tell_err(r, &why);
	else
		r->sink->diags(r->sink->of, &r->spec);
	if (why.kind == ERR_SPEC && r->spec.diags.count)
		return err_set(e, ERR_SPEC, EINVAL, "%.400s", r->spec.diags.items[0].text);
	if (stat(job->session->project, &project) < 0)
		return err_set(e, ERR_REFUSED, errno, "cannot use the session's project '%s': %s",
			job->session->project, strerror(errno));
	return err_set(e, ERR_SPEC, EINVAL, "cannot use the session's spec");
}

/* The same, and what follows from its being one of those that share a cage. */
static int session_prepare(const struct run_job *job, struct run *r, struct err *e)
{
	int ret = run_load_job(job, r, e);

	if (ret < 0 || !spec_bool(&r->spec, SPEC_SESSION_BACKGROUND))
		return ret;
	r->job = job;
	r->pool = NULL;
	r->request.mode = KEEPER_JOINING;
	ret = run_check_sharing(&r->spec, e);
	if (ret < 0)
		run_tell_err(r, e);
	return ret;
}

/*
 * A cage that waits has copies of what is open when it is made. Of this session, and of its run,
 * whose folder is locked while it lasts, there are to be none.
 */
static void session_close_all(struct run *r, int *workspace)
{
	run_sign_interrupted(r);
	run_close_record(r);
	r->request.workspace = -1;
	if (*workspace >= 0)
		close(take_fd(workspace));
}

static void run_asked(const struct run_job *job, struct run_result *ret)
{
	uint64_t began = clock_ns();
	own_fd int workspace = run_open_workspace(job, &ret->error);
	struct err unfit = { 0 };
	struct run r;

	run_init(&r, job->sink, job->request, job->command_line, job->command_line_size);
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
	r.request.caller = job->caller ? job->caller : -1;
	memcpy(r.request.printed, job->printed, sizeof(r.request.printed));
	if (job->run)
		snprintf(r.record.run, sizeof(r.record.run), "%s", job->run);
	ret->status = RUN_FAILED;
	if (workspace < 0 && !r.sink->is_quiet)
		run_tell_err(&r, &ret->error);
	if (workspace >= 0 && run_open_status(&r, &unfit) < 0) {
		run_tell_err(&r, &unfit);
	} else if (workspace >= 0) {
		if (session_prepare(job, &r, &ret->error) == 0) {
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
	session_close_all(&r, &workspace);
	/* What was refused may have come to a plan, and not to all that a cage needs. */
	if (r.pool && r.plan && r.record.outcome != RECORD_REFUSED)
		run_pool_fill(r.pool, &r);
	run_done(&r);
}

void run_warm_session(const struct run_job *job)
{
	struct err e = { 0 };
	own_fd int workspace = run_open_workspace(job, &e);
	struct run_sink nobody = *job->sink;
	struct run r;

	nobody.is_quiet = true;
	run_init(&r, &nobody, job->request, job->command_line, job->command_line_size);
	r.record.session = job->session->id;
	r.pool = job->pool;
	r.request.workspace = workspace;
	run_open_log(&r);
	if (workspace >= 0 && session_prepare(job, &r, &e) == 0 && r.pool &&
		run_plan(&r, &e) == 0) {
		session_close_all(&r, &workspace);
		run_pool_fill(r.pool, &r);
	}
	run_done(&r);
}

void run_in_session(const struct run_job *job, struct run_result *ret)
{
	*ret = (struct run_result){
		.state = STORE_FAILED, .status = RUN_FAILED, .record.max = 4 * RECORD_MAX_SIZE
	};
	if (run_check_session(job->request, &ret->error) == 0) {
		run_asked(job, ret);
		return;
	}
	metrics_count_run(&ret->counted, METRICS_FAILED, 0);
	if (job->done)
		job->done(job->of, ret);
}
