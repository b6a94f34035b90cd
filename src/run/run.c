/*
 * run - one run, from a settled spec to its exit status.
 *
 * Runs as: the operator.
 * Leaves:  the record of the run, and of a session's what it wrote to the workspace.
 *
 * The plan is first made for a host that is taken to be able to do everything: trying it all would
 * take longer than making the cage. Where the cage cannot be made, the host is looked at closely,
 * and either the plan for it is another one, which is then carried out, or it is refused with the
 * reasons.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "run/run.h"
#include "run/run_prune.h"
#include "run/run_session.h"

#define HOST_NS ((uint64_t)5000000000) /* how long a host is taken to be what it was */

void run_tell(const struct run *r, const char *fmt, ...)
{
	char text[4096];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	r->sink->say(r->sink->of, text, NULL);
}

void run_tell_err(const struct run *r, const struct err *e)
{
	r->sink->say(r->sink->of, e->text, e->hint[0] ? e->hint : NULL);
}

static int run_refuse(const struct run *r, const struct err *e)
{
	r->sink->refused(r->sink->of, r, e);
	keeper_say_failed(&r->request, e, RUN_FAILED);
	return RUN_FAILED;
}

/* --- before the start --- */

/* A profile of the operator's, in the containers' format. */
static int read_filter(struct run *r, const char *name, struct err *e)
{
	own_free char *bytes = NULL;
	char path[4096];
	size_t n = 0;
	int ret = run_resolve_source(name, &r->place, path);

	if (ret == 0)
		ret = file_read_path(path, YAML_MAX_SIZE, &bytes, &n);
	if (ret < 0)
		return err_set(e, ERR_REFUSED, -ret, "cannot read the system-call profile '%s': %s",
			name, ret == -EXDEV ? "it leads out of the project" : strerror(-ret));
	return filter_read_profile(name, bytes, n, &r->made, e);
}

/* The filter that the plan names. */
static int choose_filter(struct run *r, struct err *e)
{
	const char *name = spec_text(&r->spec, SPEC_SYSCALLS);
	const struct filter *known = filter_named(name);
	int ret = known ? 0 : read_filter(r, name, e);

	r->request.filter = known ? *known : (struct filter){ r->made.code, r->made.count };
	return ret;
}

static int make_plan(struct run *r, struct err *e)
{
	int ret;

	run_tell_host(&r->place, &r->host);
	r->host.in_session = r->request.workspace >= 0;
	run_look_at_project(&r->host, &r->place);
	r->spec_text.max = PLAN_MAX_SIZE;
	ret = plan_build_with_spec(&r->spec, &r->host, &r->plan, &r->spec_text, &r->choice, e);

	if (ret < 0)
		return ret;
	r->request.plan = r->record.plan = r->plan;
	r->record.note_count = 0;
	memset(r->record.observations, 0, sizeof(r->record.observations));
	if (r->host.in_session && plan_find_captured(r->plan) &&
		!(plan_find_captured(r->plan)->flags & PLAN_SHARED))
		return err_hint(e,
			err_set(e, ERR_REFUSED, EOPNOTSUPP,
				"cannot capture writes to '%s' in a session: no overlay can be put "
				"over it here",
				r->place.project),
			"set project.mode to read_only or writable in its spec");
	return keeper_check_plan(r->plan, r->request.mode != KEEPER_RESIDENT, &r->record, e);
}

static void tell_copied(const struct run *r, const struct keeper *k, enum cage_layer which)
{
	const char *what;
	const struct tree_counts *counts = keeper_copied(k, which, &what);
	uint64_t files = counts ? counts->files + counts->links + counts->others : 0;
	uint64_t unit = files && counts->bytes >= (uint64_t)10 << 20 ? 1 << 20 : 1 << 10;
	char size[NUM_TEXT_SIZE], text[512], git[PATH_MAX + 8], hint[PATH_MAX + 128];
	struct stat st;

	if (r->sink->is_quiet || !files)
		return;
	num_print_size((counts->bytes + unit - 1) / unit * unit, size);
	snprintf(text, sizeof(text), "files copied for this run: %" PRIu64 " of %s (%s)", files,
		what, size);
	snprintf(git, sizeof(git), "%s/.git", r->place.project);
	if (stat(git, &st) == 0)
		snprintf(hint, sizeof(hint),
			"they belong to others; a clone of your own needs no copy: git clone '%s'",
			r->place.project);
	else
		snprintf(hint, sizeof(hint),
			"they belong to others; --read-only and --write copy nothing");
	r->sink->say(r->sink->of, text, run_is_of_others(&r->place) ? hint : NULL);
}

/* --- the run --- */

/* Folders of the private home that are kept: per operation of the plan one, or -1. */
static int open_states(struct run *r, int **ret, struct err *e)
{
	for (uint32_t i = 0; i < r->plan->op_count; i++) {
		const char *name = keeper_state_of(r->plan, i);

		if (!name)
			continue;
		if (!*ret) {
			*ret = malloc(r->plan->op_count * sizeof(**ret));
			if (!*ret)
				return err_set(e, ERR_SYS, ENOMEM,
					"cannot open what is kept of the home: out of memory");
			memset(*ret, -1, r->plan->op_count * sizeof(**ret));
		}
		(*ret)[i] = run_open_state(r, name, e);
		if ((*ret)[i] < 0)
			return (*ret)[i];
	}
	return 0;
}

/* Those that the keeper has not taken. */
static void close_states(const struct run *r, int *states)
{
	for (uint32_t i = 0; states && i < r->plan->op_count; i++)
		if (states[i] >= 0)
			close(states[i]);
	free(states);
}

static int approve_sources(struct run *r, const struct keeper *k, struct err *e)
{
	int ret = 0;

	for (uint32_t i = 0; ret == 0 && i < r->plan->op_count; i++) {
		const struct plan_op *op = &plan_ops(r->plan)[i];
		const char *real = keeper_shown(k, i);

		if (real)
			ret = run_approve_source(
				&r->spec, &r->place, op->a_root, plan_str(r->plan, op->a), real, e);
	}
	return ret;
}

int run_start_cage(struct run *r, struct keeper *k, struct err *e)
{
	int ret = keeper_needs_folder(k) ? run_open_folder(r, e) : 0;
	int *states = NULL;

	if (ret >= 0)
		ret = open_states(r, &states, e);
	if (ret == 0)
		ret = keeper_open(k, states, e);
	close_states(r, states);
	if (ret == 0)
		ret = approve_sources(r, k, e);
	if (ret == 0 && keeper_needs_cage(k))
		ret = run_start_shared_cage(r->job, e);
	if (ret < 0)
		return ret;
	ret = keeper_prepare(k, e);
	for (enum cage_layer which = 0; which < CAGE_LAYER_COUNT; which++)
		tell_copied(r, k, which);
	return ret == 0 ? keeper_start(k, e) : ret;
}

/* One attempt to carry out the plan; when the command has run, its record is signed. */
static int run_once(struct run *r, struct err *e)
{
	struct keeper *k = NULL;
	int ret;

	r->request.warm = r->pool ? run_pool_take(r->pool, r->plan) : NULL;
	r->keep_ns = clock_ns();
	ret = keeper_new(&k, &r->request, &r->record, e);
	r->request.warm = NULL;
	if (ret < 0)
		return ret;
	ret = run_start_cage(r, k, e);
	if (ret == 0)
		ret = run_prepare_record(r, e);
	if (ret == 0)
		ret = keeper_inspect(k, e);
	if (ret == 0)
		ret = keeper_go(k, e);
	if (ret == 0 && keeper_is_running(k))
		run_record_start(r);
	if (ret == 0)
		ret = keeper_wait(k, e);
	r->ended_ns = clock_ns();
	keeper_finish(k, ret, e);
	/* While the kernel takes the cage down. */
	if (ret == 0)
		run_record_end(r, e);
	r->recorded_ns = clock_ns();
	keeper_free(k);
	r->gone_ns = clock_ns();
	return ret;
}

/* --- another plan, where this one failed --- */

/* There is no other plan: the run and its record are of the one that was tried. */
static void take_back(struct run *r, struct plan *old)
{
	free(r->plan);
	r->request.plan = r->record.plan = r->plan = old;
}

static const char ways_to_do_without[] =
	"project.mode: captured does not need it; allow_degraded: [fs.protect] goes on without";

/*
 * Is there another way to show the project than the one that failed? Then the plan is the one for
 * that. `told` is what was said before.
 */
static bool plan_other_way(struct run *r, struct err *told, struct err *e)
{
	own_free struct plan *old = NULL;
	struct err why = *e;

	if (!run_note_failed_way(&r->host, r->plan, r->record.failed_op, e))
		return false;
	old = take_ptr(r->plan);
	if (make_plan(r, e) < 0) {
		/* The first reason is the better one. */
		take_back(r, take_ptr(old));
		*e = why;
		if (r->host.no_protect && !why.hint[0])
			err_hint(e, -1, ways_to_do_without);
		return false;
	}
	if (!str_eq(why.text, told->text))
		run_tell(r, "%s; %s", why.text,
			r->host.no_protect ? "going on without" : "trying another way");
	*told = why;
	return true;
}

/*
 * Is the plan another one for what the host really can do? Where there is none for that, the reason
 * is the better one.
 */
static bool plan_for_probed_host(struct run *r, struct err *e)
{
	own_free struct plan *old = NULL;
	struct err again = { 0 };
	struct host host;

	if (e->kind != ERR_SYS || host_probe(&host, &again) < 0)
		return false;
	/* What failed for this project, a probe does not know. */
	host.no_capture = r->host.no_capture;
	host.no_team = r->host.no_team;
	r->host = host;
	old = take_ptr(r->plan);
	if (make_plan(r, &again) < 0) {
		take_back(r, take_ptr(old));
		*e = again;
		return false;
	}
	return old->size != r->plan->size || memcmp(old, r->plan, old->size) != 0;
}

/* Carries out the plan, or where it cannot be, the next one that there is. */
static int run_cage(struct run *r, struct err *e)
{
	struct err told = { 0 };
	bool is_probed = false;

	for (;;) {
		int ret = run_once(r, e);

		/* Never a second time what may have run. */
		if (ret == 0 || r->record.outcome == RECORD_BROKEN)
			return ret;
		if (!plan_other_way(r, &told, e)) {
			if (is_probed || !plan_for_probed_host(r, e))
				return ret;
			is_probed = true;
			told = (struct err){ 0 };
		}
		*e = (struct err){ 0 };
	}
}

/* --- afterwards --- */

static int exit_status(const struct record *record)
{
	switch (record->outcome) {
	case RECORD_EXITED:
		return record->status;
	case RECORD_SIGNALED:
		return 128 + record->status;
	case RECORD_TIMED_OUT:
		return 124;
	case RECORD_BROKEN:
		return 128 + SIGKILL; /* the kernel ended it with its first process */
	case RECORD_REFUSED:
	case RECORD_CUT_OFF:
	case RECORD_INTERRUPTED:
		break;
	}
	return RUN_FAILED;
}

static int status_of(const struct err *e)
{
	if (e->kind == ERR_SIGNAL)
		return 128 + e->num;
	return e->kind == ERR_USE ? RUN_FAILED : err_exit_status(e->kind);
}

/* --- the command --- */

static enum keeper_tty wanted_tty(const struct run *r)
{
	static const enum keeper_tty modes[] = { [RUN_TTY_AUTO] = KEEPER_TTY_AUTO,
		[RUN_TTY_ALWAYS] = KEEPER_TTY_ALWAYS,
		[RUN_TTY_NEVER] = KEEPER_TTY_NEVER };

	/* What is kept for later has nobody who could type. */
	return r->request.printed[0] ? KEEPER_TTY_NEVER : modes[r->asked->here.tty];
}

/*
 * Files the operator wants written are opened before anything runs: what runs may put a link in
 * their place. A link that is there already may be an earlier run's.
 */
static int open_outputs(struct run *r, struct err *e)
{
	const char *record = r->asked->here.record, *cast = r->asked->here.cast;

	if (record)
		r->copy = run_open_output(&r->place, record, "record", e);
	if (record && r->copy < 0)
		return r->copy;
	/* From here on nobody may take the record of an earlier run for this one's. */
	if (record && ftruncate(r->copy, 0) < 0)
		return err_set(e, ERR_REFUSED, errno, "cannot write the record to '%s': %s", record,
			strerror(errno));
	if (!cast)
		return 0;
	r->cast = run_open_output(&r->place, cast, "cast", e);
	if (r->cast < 0)
		return r->cast;
	if (ftruncate(r->cast, 0) < 0 || keeper_cast_open(&r->request.cast, r->cast, r->plan) < 0)
		return err_set(e, ERR_REFUSED, errno, "cannot write the cast to '%s': %s", cast,
			strerror(errno));
	return 0;
}

static void close_cast(struct run *r)
{
	int ret = r->request.cast ? keeper_cast_close(r->request.cast) : 0;

	r->request.cast = NULL;
	if (ret == 0)
		return;
	r->is_unrecorded = true;
	run_tell(r, "cannot write the cast to '%s': %s", r->asked->here.cast, strerror(-ret));
}

/* A worker looks again after a while. */
static void assume_host(struct run *r)
{
	struct run_pool *pool = r->pool;

	if (!pool) {
		host_assume(&r->host, r->place.mounts);
		return;
	}
	if (!pool->host_ns || clock_ns() - pool->host_ns > HOST_NS) {
		host_assume(&pool->host, r->place.mounts);
		pool->host_ns = clock_ns();
	}
	r->host = pool->host;
}

int run_plan(struct run *r, struct err *e)
{
	struct err probing;
	int ret;

	r->request.tty = wanted_tty(r);
	r->request.is_unfiltered = r->asked->here.is_unfiltered;
	r->request.project = r->place.project;
	r->request.git = r->place.repository.folder[0] ? r->place.repository.folder : NULL;
	r->request.held = run_held_paths(&r->spec, &r->place, &r->request.held_count);
	if (!r->request.held)
		return err_set(
			e, ERR_SYS, ENOMEM, "cannot list the protected paths: out of memory");
	r->request.home = r->place.home;
	r->request.git_identity = run_git_identity(&r->spec, &r->place);
	r->record.is_relaxed = spec_bool(&r->spec, SPEC_RELAXED);
	if (r->spec.is_self_governed)
		r->record.self_governance = spec_text(&r->spec, SPEC_SELF_GOVERNANCE);
	assume_host(r);
	ret = make_plan(r, e);
	/* Why not is for the probe to say. */
	if (ret < 0 && e->kind == ERR_REFUSED && !r->plan && host_probe(&r->host, &probing) == 0) {
		*e = (struct err){ 0 };
		ret = make_plan(r, e);
	}
	if (ret == 0)
		run_open_digests(r);
	if (ret == 0)
		ret = choose_filter(r, e);
	return ret == 0 ? open_outputs(r, e) : ret;
}

/* A program that only the operator's home has is the usual reason. */
static void tell_hint(struct run *r, const struct err *e)
{
	const char *hint = e->kind == ERR_NOT_FOUND
				   ? run_hint_command(&r->spec, &r->place, r->record.session)
				   : NULL;

	if (hint)
		r->sink->say(r->sink->of, NULL, hint);
}

/* What became of the overlay; false: it should have been saved, and was not. */
static bool tell_overlay(const struct run *r)
{
	const struct record_overlay *x = &r->record.overlay;
	char size[NUM_TEXT_SIZE];

	num_print_size(x->size, size);
	if (x->is_full)
		run_tell(r, "the overlay was full when the command ended (root.overlay_size: %s)",
			size);
	if (x->skipped)
		run_tell(r, "an overlay keeps no sockets and devices; left out: %" PRIu64,
			x->skipped);
	if (x->error.kind == ERR_NONE)
		return true;
	run_tell_err(r, &x->error);
	return false;
}

/* Memory that the cage writes to as well; NULL where there is none. */
static struct cage_times *share_times(void)
{
	size_t size = sizeof(struct cage_times);
	/* cppcheck-suppress invalidFunctionArg ; -1 is what mmap(2) asks for here */
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return page == MAP_FAILED ? NULL : page; /* cppcheck-suppress memleak */
}

/* It was not started, or nobody knows how it ended. */
static int run_fail(struct run *r, const struct err *e)
{
	int status = r->record.outcome == RECORD_BROKEN && e->kind != ERR_SIGNAL
			     ? exit_status(&r->record)
			     : status_of(e);

	run_record_refusal(r, e);
	if (status == RUN_FAILED)
		return run_refuse(r, e);
	run_tell_err(r, e);
	tell_hint(r, e);
	keeper_say_failed(&r->request, e, status);
	return status;
}

static void tell_late(const struct run *r)
{
	const struct err *e = &r->record.late;
	char text[ERR_TEXT_SIZE + 32];

	snprintf(text, sizeof(text), "%s; the next run tries again", e->text);
	r->sink->say(r->sink->of, text, e->hint[0] ? e->hint : NULL);
}

static void tell_reached(struct run *r)
{
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
		own(buf) struct buf text = { .max = 512 };

		record_print_reached(&r->record, g, &text);
		if (text.len)
			keeper_say_reached(&r->request, &r->record, g);
	}
}

int run_to_end(struct run *r)
{
	struct err e = { 0 };
	int status, failure;

	r->began_ns = clock_ns();
	clock_gettime(CLOCK_REALTIME, &r->record.began);
	failure = r->record.run[0] ? 0 : record_make_run(&r->record.began, r->record.run, &e);
	if (failure == 0)
		failure = run_take_subjects(r, &e);
	run_open_log(r);
	failure = failure < 0 ? failure : run_plan(r, &e);
	r->sink->diags(r->sink->of, &r->spec);
	if (failure < 0) {
		run_record_refusal(r, &e);
		return run_refuse(r, &e);
	}
	if (r->asked->here.is_timed)
		r->request.times = share_times();
	r->request.progress = r->sink->progress;
	failure = run_cage(r, &e);
	close_cast(r);
	r->is_unrecorded |= !tell_overlay(r);
	if (failure < 0)
		return run_fail(r, &e);
	r->sink->ended(r->sink->of, r, &e);
	tell_reached(r);
	run_say_again(r);
	status = run_again_status(r, exit_status(&r->record));
	if (r->record.late.kind != ERR_NONE)
		tell_late(r);
	/* What the command printed did not all arrive, what it did is not known or not on record:
	 * that is no success. */
	if ((e.kind != ERR_NONE || r->is_unrecorded || r->record.effects.error.kind != ERR_NONE) &&
		status == 0)
		status = RUN_FAILED;
	keeper_say_ended(&r->request, &r->record, status);
	return status;
}

int run_open_status(struct run *r, struct err *e)
{
	const char *text = r->asked->here.status_fd;
	struct err unfit = { 0 };
	int64_t fd;

	if (!text)
		return 0;
	if (num_parse_int(text, 0, 1 << 20, &fd, &unfit) < 0 || fcntl((int)fd, F_GETFD) < 0)
		return err_set(e, ERR_USE, EBADF,
			"cannot use --status-fd: '%s' is not the number of an open descriptor",
			text);
	r->request.status_fd = (int)fd;
	r->patience_ms = KEEPER_PATIENCE_MS;
	r->request.patience_ms = &r->patience_ms;
	return 0;
}

void run_init(struct run *r, const struct run_sink *sink, const struct run_request *asked,
	char *line, size_t line_size)
{
	*r = (struct run){ .sink = sink,
		.asked = asked,
		.state = -1,
		.digests = -1,
		.home_lock = -1,
		.folder = -1,
		.copy = -1,
		.cast = -1,
		.record.used = RECORD_USED_UNKNOWN,
		.request.status_fd = -1,
		.request.command_line = line,
		.request.command_line_size = line_size,
		.request.workspace = -1,
		.request.caller = -1,
		.request.folder = -1 };
}

/* After a run of its own, once in a while. A worker's runners have no store; its sweeps do it. */
static void prune_state(struct run *r)
{
	struct err e = { 0 };

	if (r->job || !r->plan || r->state < 0)
		return;
	run_prune_sometimes(r->state, r->record.run, &r->spec, &e);
	if (e.kind != ERR_NONE)
		run_tell_err(r, &e);
}

void run_done(struct run *r)
{
	run_sign_interrupted(r);
	prune_state(r);
	run_close_record(r);
	close_cast(r);
	if (r->cast >= 0)
		close(r->cast);
	filter_made_done(&r->made);
	record_forget_decisions(&r->record);
	free(r->plan);
	spec_done(&r->spec);
	if (r->request.times)
		r->sink->timed(r->sink->of, r);
}
