/*
 * run_resident - the cage of a session whose commands share one (session.background).
 *
 * Runs as:     the operator; the cage's keeper as nobody's child, in a session of its own, without
 *              a terminal, from the first command until the session is stopped.
 * Enters with: the memory of whoever ran that command, and nothing of its descriptors.
 * Leaves:      a run with its own record: its limits and its network are those of the session.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "run/run_session.h"
#include "wire/wire.h"

/* What of a run is its own, where all of a session are in one cage. */
static bool resident_is_of_command(enum spec_key key)
{
	static const enum spec_key own[] = { SPEC_NAME, SPEC_COMMAND, SPEC_WORKDIR, SPEC_ENV_PASS,
		SPEC_ENV_SET, SPEC_LIMITS_TIME, SPEC_LIMITS_OUTPUT, SPEC_LIMITS_OUTPUT_THEN,
		SPEC_LIMITS_FILES };

	for (size_t i = 0; i < COUNT_OF(own); i++)
		if (own[i] == key)
			return true;
	return false;
}

int run_check_sharing(const struct spec *s, struct err *e)
{
	for (enum spec_key key = 0; key < SPEC_KEY_COUNT; key++)
		if (s->layers[SPEC_LAYER_FILE].v[key].is_set && !resident_is_of_command(key))
			return err_hint(e,
				err_set(e, ERR_REFUSED, EOPNOTSUPP,
					"cannot narrow %s for one command: the commands of this "
					"session share one cage (session.background)",
					spec_keys[key].path),
				"use a session without session.background");
	return 0;
}

/* Nothing stays open but these, which get new numbers; and nothing is said to anybody. */
static int resident_let_go(int *root, int *told)
{
	int null = file_open("/dev/null", O_RDWR);
	int *const kept[] = { root, told };

	for (int i = 0; i <= STDERR_FILENO; i++)
		if (null < 0 || dup2(null, i) < 0)
			return -1;
	return file_keep_only(STDERR_FILENO + 1, kept, 2);
}

static void keep_cage(const struct run_job *job, int told)
{
	struct err e = { 0 };
	struct run r;

	run_init(&r, job->sink, job->request, job->command_line, job->command_line_size);
	r.record.session = job->session->id;
	r.request.mode = KEEPER_RESIDENT;
	r.request.told = told;
	r.request.workspace = run_open_workspace(job, &e);
	if (r.request.workspace >= 0 && run_load_job(job, &r, &e) == 0) {
		/* The spec's own is what each exec runs that names none. */
		r.spec.settled.v[SPEC_COMMAND] = (struct spec_value){ 0 };
		(void)run_to_end(&r);
		e = r.record.error;
	}
	/* Whoever waits hears why there is no cage; once there is one, nobody waits. */
	if (e.kind == ERR_NONE)
		err_set(&e, ERR_SYS, ECHILD, "it has ended");
	(void)wire_send(told, WIRE_FAILED, -1, &e);
	run_done(&r);
}

static noreturn void be_keeper(const struct run_job *job, int told)
{
	struct run_job own = *job;
	struct run_sink nobody = *job->sink;
	const struct run_request nothing = { 0 };
	sigset_t none;

	nobody.is_quiet = true;
	own.sink = &nobody;
	own.request = &nothing;
	own.run = own.worker = NULL;
	own.token = 0;
	own.is_still_ours = NULL;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (resident_let_go(&own.root, &told) < 0 || chdir("/") < 0)
		_exit(125);
	memset(job->command_line, 0, job->command_line_size);
	snprintf(job->command_line, job->command_line_size, "bawn: cage of a session");
	keep_cage(&own, told);
	_exit(0);
}

static int start_keeper(const struct run_job *job, int told, struct err *e)
{
	pid_t parent = fork();

	if (parent == 0) {
		/* In between, so that it is nobody's child. */
		if (setsid() >= 0 && fork() == 0)
			be_keeper(job, told);
		_exit(0);
	}
	if (parent < 0)
		return err_sys(e, errno, "cannot start the keeper of the session's cage");
	while (waitpid(parent, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

int run_start_shared_cage(const struct run_job *job, struct err *e)
{
	struct wire_message m = { 0 };
	int ends[2], r = wire_pair(ends);

	if (r < 0)
		return err_sys(e, -r, "cannot make a channel");
	r = start_keeper(job, ends[1], e);
	close(ends[1]);
	if (r == 0)
		r = wire_receive(ends[0], &m, NULL);
	close(ends[0]);
	if (r == 0 && m.kind == WIRE_READY)
		return 0;
	if (r == 0 && m.kind == WIRE_FAILED && m.err.text[0]) {
		*e = m.err;
		err_prefix(e, "cannot make the session's cage");
		return -EPROTO;
	}
	return e->kind != ERR_NONE ? -EPROTO
				   : err_set(e, ERR_SYS, EPIPE,
					     "cannot make the session's cage: its keeper ended");
}
