/*
 * run_record - what is written down of a run, from before it starts until it is signed.
 *
 * Runs as: the operator.
 * Leaves:  in the run's folder events.jsonl and the signed record; in the state the spec and the
 * plan, each under its digest.
 *
 * The key is loaded when it is needed and wiped at once: a cage begins as a copy of this process.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "change/project/change_project.h"
#include "run/run.h"
#include "run/run_home.h"
#include "run/run_session.h"

void run_open_log(struct run *r)
{
	struct err e;

	/* Where it cannot be opened, the run is refused in a moment, with the reason. */
	r->state = record_open_state(r->place.home, true, &e);
	log_init(&r->log, r->state, r->record.run[0] ? r->record.run : NULL, r->record.session);
	r->log.is_synced = r->asked->is_synced;
	r->request.log = &r->log;
}

int run_open_folder(struct run *r, struct err *e)
{
	if (r->state < 0)
		r->state = r->log.state = record_open_state(r->place.home, true, e);
	if (r->folder < 0)
		r->folder =
			r->state < 0 ? r->state : record_make_folder(r->state, r->record.run, e);
	r->request.folder = r->folder;
	return r->folder;
}

int run_open_state(struct run *r, const char *name, struct err *e)
{
	if (r->state < 0)
		r->state = r->log.state = record_open_state(r->place.home, true, e);
	return r->state < 0 ? r->state
			    : run_home_open(r->state, r->place.project, name, &r->home_lock, e);
}

void run_open_digests(struct run *r)
{
	bool has_image = plan_find(r->record.plan, PLAN_IMAGE, NULL) != NULL;

	r->request.output = (enum record_output_mode)spec_choice(&r->spec, SPEC_RECORD_OUTPUT);
	r->request.digests_project = spec_bool(&r->spec, SPEC_AUDIT_DIGEST_PROJECT);
	r->project_list.max = CHANGE_PROJECT_MAX_LIST;
	r->request.project_list = &r->project_list;
	if (r->digests < 0 && r->state >= 0 && (has_image || r->request.digests_project) &&
		(mkdirat(r->state, "digests", 0700) == 0 || errno == EEXIST))
		r->digests = file_open_name(r->state, "digests", O_RDONLY | O_DIRECTORY);
	r->request.digests = r->digests;
}

/* --- before the start --- */

static void complain_unrecorded(struct run *r, const struct err *e)
{
	r->is_unrecorded = true;
	run_tell_err(r, e);
}

/*
 * There has to be a key before anything runs that is to be signed. It is read when that is signed:
 * one that has the form of ours and does not work is found then, and leaves the run unsigned.
 */
static int record_check_key(struct run *r, struct err *e)
{
	own(sign_key) struct sign_key key = { 0 };
	struct err unlogged = { 0 };
	int ret;

	if (sign_has_key(r->state))
		return 0;
	ret = run_take_key(r->state, &key, &unlogged, e);
	if (unlogged.kind != ERR_NONE)
		run_tell_err(r, &unlogged);
	return ret;
}

/* What the record's digests are of. */
static int print_parts(struct run *r, struct err *e)
{
	buf_done(&r->plan_text);
	r->plan_text.max = 4 * PLAN_MAX_SIZE;
	plan_print_json(r->plan, &r->plan_text);
	/* Planning has printed the spec, for its digest; it may be written already. */
	if (!r->spec_text.len) {
		r->spec_text.max = PLAN_MAX_SIZE;
		spec_print_canonical(&r->spec, &r->spec_text);
	}
	if (r->plan_text.failed || r->spec_text.failed)
		return err_set(
			e, ERR_REFUSED, ENOMEM, "cannot make the plan's digest: out of memory");
	sha256_hex(r->plan_text.data, r->plan_text.len, r->record.plan_digest);
	return 0;
}

static int record_write_parts(struct run *r, struct err *e)
{
	bool is_synced = r->log.is_synced;
	int ret = record_keep_part(r->state, RECORD_PLAN, r->record.run, r->record.plan_digest,
		&r->plan_text, is_synced, e);

	if (ret == 0)
		ret = record_keep_part(r->state, RECORD_SPEC, r->record.run, r->plan->spec_digest,
			&r->spec_text, is_synced, e);
	buf_done(&r->plan_text);
	buf_done(&r->spec_text);
	return ret;
}

/*
 * The record has their digests, so a worker need not have them on disk before the command runs,
 * unless a power cut is to be survived.
 */
static void write_late_parts(struct run *r)
{
	struct err e = { 0 };

	if (r->plan_text.len && record_write_parts(r, &e) < 0)
		complain_unrecorded(r, &e);
}

/* Which network it has, so that who reads of a denial knows what could be seen at all. */
static const char *network_of(const struct plan *p)
{
	const struct plan_promise *promises = plan_promises(p);

	return promises[PLAN_NET_NONE].need != PLAN_NONE        ? "none"
	       : promises[PLAN_NET_ALLOWLIST].need != PLAN_NONE ? "allowlist"
								: "host";
}

/* What both logs have of the start: enough to say what it was. */
static void print_start(const struct run *r, struct json *j)
{
	const struct plan_op *command = plan_find(r->plan, PLAN_ARGUMENT, NULL);

	json_text(j, "project", r->place.project);
	json_text(j, "command", command ? plan_str(r->plan, command->a) : NULL);
	json_text(j, "network", network_of(r->plan));
	if (r->record.again.run[0])
		json_text(j, "again", r->record.again.run);
}

static int say_start(struct run *r, struct err *e)
{
	const struct record *record = &r->record;
	own(buf) struct buf scratch = { .max = RECORD_MAX_SIZE };
	struct json *j = log_begin(&r->log, "run_start");

	json_int(j, "version", LOG_VERSION);
	record_print_identity(record, j);
	json_int(j, "uid", (int64_t)getuid());
	print_start(r, j);
	json_text(j, "image", record_image_name(record, &scratch));
	record_print_tree(j, "image_tree", record_image_name(record, &scratch), &record->image);
	record_print_tree(j, "project_tree", NULL, &record->project);
	log_end_of_run(&r->log);
	print_start(r, log_begin(&r->log, "run_start"));
	log_end_of_state(&r->log);
	if (log_write(&r->log) == 0)
		return 0;
	*e = r->log.failure;
	return -e->num;
}

/* A log that nobody would find, if this process died, is not begun. */
static int begin_log(struct run *r, struct err *e)
{
	int ret = log_open_chain(&r->log, r->folder, e);

	if (ret < 0)
		return ret;
	ret = record_begin(r->state, r->folder, r->record.run, e);
	if (ret < 0) {
		close(r->log.chain);
		r->log.chain = -1;
	}
	return ret;
}

int run_prepare_record(struct run *r, struct err *e)
{
	int ret = run_open_folder(r, e);

	if (ret < 0)
		return ret;
	sha256_hex(r->request.filter.code, r->request.filter.count * sizeof(struct sock_filter),
		r->record.filter_digest);
	ret = record_check_key(r, e);
	if (ret == 0)
		ret = print_parts(r, e);
	if (ret == 0 && (!r->pool || r->log.is_synced))
		ret = record_write_parts(r, e);
	if (ret == 0 && r->record.project.list[0])
		ret = record_write_file(
			r->folder, CHANGE_PROJECT_FILE, &r->project_list, r->log.is_synced, e);
	/* With another plan there is another start. */
	if (ret == 0 && r->log.chain < 0)
		ret = begin_log(r, e);
	if (ret == 0)
		ret = say_start(r, e);
	/* That there was a run survives from here on: its folder, what it is of, what is signed if
	 * nobody signs more. */
	if (ret == 0 && r->log.is_synced && syncfs(r->folder) < 0)
		ret = err_sys(e, errno, "cannot sync the run's folder");
	/* Refused after it has begun: that is on record. */
	return ret == 0 ? run_check_again(r, e) : ret;
}

void run_record_start(struct run *r)
{
	write_late_parts(r);
}

/* --- afterwards --- */

/* Where the operator wants it too. */
static void write_copy(struct run *r, const struct buf *text)
{
	struct err e;
	int ret = ftruncate(r->copy, 0) < 0 ? -errno
					    : file_write_all(r->copy, buf_text(text), text->len);

	if (ret == 0)
		return;
	/* A part of one may look whole. */
	(void)!ftruncate(r->copy, 0);
	err_sys(&e, -ret, "cannot write the record to '%s'", r->asked->here.record);
	complain_unrecorded(r, &e);
}

static void sign_record(struct run *r)
{
	own(buf) struct buf text = { .max = 4 * RECORD_MAX_SIZE };
	struct record_subject subjects[1 + RUN_MOST_SUBJECTS] = { { .name = "effects" } };
	struct record_end end = { .subjects = subjects,
		.count = r->record.effects.is_known,
		.log = &r->log,
		.is_synced = r->log.is_synced };
	struct err e = { 0 };
	bool was_broken;

	write_late_parts(r);
	clock_gettime(CLOCK_REALTIME, &r->record.ended);
	memcpy(subjects[0].sha256, r->record.effects.digest, sizeof(subjects[0].sha256));
	end.count += run_find_subjects(r, subjects + end.count);
	/* A run that was refused for it says so itself. */
	was_broken = r->log.failure.kind != ERR_NONE;
	if (was_broken && !str_eq(r->log.failure.text, r->record.error.text))
		complain_unrecorded(r, &r->log.failure);
	if (record_sign(r->state, r->folder, &r->record, &end, &text, &e) < 0)
		complain_unrecorded(r, &e);
	else if (r->copy >= 0)
		write_copy(r, &text);
	if (r->signed_copy)
		buf_add(r->signed_copy, text.data, text.len);
	/* Signed, and the log of all runs does not say so. */
	if (!was_broken && r->log.failure.kind != ERR_NONE && !r->is_unrecorded)
		complain_unrecorded(r, &r->log.failure);
}

/* A session that another worker has taken is not this one's any more: so the run says itself. */
static void check_lease(struct run *r)
{
	struct err e = { 0 };
	struct json *j;

	if (!r->is_still_ours || r->is_still_ours(r->of, &e) == 0)
		return;
	j = log_begin(&r->log, "result_refused");
	json_text(j, "worker", r->record.worker);
	json_int(j, "token", (int64_t)r->record.lease);
	json_text(j, "text", e.text);
	log_end(&r->log);
	r->record.error = e;
	(void)log_write(&r->log);
}

/*
 * Before it is signed, and so before it is no longer among those that are unsigned: what it wrote
 * is to be found without a look at all runs. One that cannot be noted is found by a name only.
 */
static void note_pending(struct run *r)
{
	const struct record_effects *x = &r->record.effects;
	own_fd int runs = -1;
	struct err e;
	int failure;

	if ((x->is_known && !(x->added + x->changed + x->deleted + x->renamed)) || r->folder < 0)
		return;
	runs = openat(r->folder, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	failure = runs < 0 ? -errno : record_note_pending(runs, r->record.run);
	if (failure < 0) {
		err_sys(&e, -failure, "cannot note that run %s has changes", r->record.run);
		run_tell_err(r, &e);
	}
}

void run_record_end(struct run *r, const struct err *e)
{
	r->record.error = *e;
	note_pending(r);
	run_compare_again(r);
	check_lease(r);
	sign_record(r);
}

void run_record_refusal(struct run *r, const struct err *e)
{
	struct err late;
	struct json *j;

	/* What has begun is signed as refused, also where it is refused for something else yet. */
	if (r->plan && r->log.chain < 0)
		(void)run_prepare_record(r, &late);
	r->record.error = *e;
	if (r->record.outcome == RECORD_REFUSED) {
		j = log_begin(&r->log, "refused");
		json_text(j, "error", e->text);
		json_text(j, "kind", err_kind_word(e->kind));
		log_end(&r->log);
		(void)log_write(&r->log);
	}
	if (r->log.chain >= 0)
		sign_record(r);
}

void run_sign_interrupted(struct run *r)
{
	struct err e = { 0 };

	if (r->state < 0 || record_sign_interrupted(r->state, &e) >= 0 || r->sink->is_quiet)
		return;
	/* A run that was refused for it says so itself. */
	if (!str_eq(e.text, r->record.error.text))
		run_tell_err(r, &e);
}

void run_close_record(struct run *r)
{
	int *const fds[] = { &r->folder, &r->state, &r->copy, &r->digests, &r->home_lock };

	log_done(&r->log);
	buf_done(&r->plan_text);
	buf_done(&r->spec_text);
	buf_done(&r->project_list);
	for (size_t i = 0; i < COUNT_OF(fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
	r->request.folder = -1;
}
