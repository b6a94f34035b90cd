/*
 * run_again - repeats a run that is on record, and says whether it came out the same.
 *
 * Runs as:  the operator.
 * Reads:    the record, and spec.json and effects.json beside it.
 * Must not: believe anything of a record that is not signed by a key that counts; run a spec that
 * is not the record's, that the policies do not allow, or on other trees than recorded.
 *
 * A record is no more than a file: whoever wrote the spec in it, it may ask for what a project's
 * own file may, unless --trust says that it is the operator's word.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "change/project/change_project.h"
#include "proof/verify/verify.h"
#include "run/run.h"

#define MOST_PATHS 20 /* that differ, and are named */

void run_again_done(struct run_again *a)
{
	free(a->spec);
	*a = (struct run_again){ .folder = -1 };
}

/* --- the record --- */

/* What decides what is run comes from the record, and from nowhere else. */
int run_check_again_request(const struct run_request *q, struct err *e)
{
	const char *option = q->here.file ? "file" : q->here.host ? "host" : NULL;

	if (q->command_count)
		return err_set(e, ERR_USE, EINVAL,
			"cannot run another command with --again: it repeats the recorded one");
	for (size_t i = 0; !option && i < q->setting_count; i++)
		if (q->settings[i].key != SPEC_PROJECT_PATH && q->settings[i].key != SPEC_KEY_COUNT)
			option = q->settings[i].from + strspn(q->settings[i].from, "-");
	if (!option)
		return 0;
	return err_set(e, ERR_USE, EINVAL,
		"cannot use --%s with --again: the spec is that of the record", option);
}

/* An earlier bawn wrote it without keys that there are now: from here on it has them. */
static int complete_spec(struct run *r, const struct spec *s, struct err *e)
{
	struct run_again *a = r->again;
	own(buf) struct buf whole = { .max = PLAN_MAX_SIZE };

	spec_print_canonical(s, &whole);
	if (whole.failed)
		return err_set(e, ERR_SYS, ENOMEM, "cannot read the spec: out of memory");
	if (whole.len != a->spec_size)
		run_tell(r,
			"run %s is of an earlier bawn: keys that its spec does not have are as "
			"by default, so that spec and plan have other digests",
			a->of->record.run);
	free(a->spec);
	a->spec_size = whole.len;
	a->spec = take_ptr(whole.data);
	return 0;
}

static int read_spec(struct run *r, struct err *e)
{
	struct run_again *a = r->again;
	const struct record_read *record = &a->of->record;
	own_fd int fd = a->folder < 0
				? -ENOENT
				: record_open_part(a->folder, RECORD_SPEC, record->spec_sha256);
	char digest[SHA256_HEX_SIZE];
	struct spec alone;
	int ret = fd < 0 ? fd : file_read_all(fd, YAML_MAX_SIZE, &a->spec, &a->spec_size);

	if (ret < 0)
		return err_set(e, ERR_REFUSED, -ret,
			"cannot read spec.json, which must be beside the record: %s",
			strerror(-ret));
	sha256_hex(a->spec, a->spec_size, digest);
	if (!record->spec_sha256 || !str_eq(digest, record->spec_sha256))
		return err_set(e, ERR_REFUSED, EBADMSG,
			"cannot use spec.json: its digest is %s, and the record says %s", digest,
			record->spec_sha256 ? record->spec_sha256 : "none");
	spec_init(&alone);
	ret = spec_read_canonical(&alone, a->spec, a->spec_size, e);
	if (ret == 0)
		ret = complete_spec(r, &alone, e);
	spec_done(&alone);
	if (ret < 0 && !str_eq(record->bawn, BAWN_VERSION))
		return err_set(e, ERR_REFUSED, EBADMSG,
			"cannot read spec.json: it is of bawn %.40s, and this is %s", record->bawn,
			BAWN_VERSION);
	if (ret < 0)
		err_prefix(e, "cannot read spec.json");
	return ret;
}

/* With the policies of today it may be another spec: limits that nobody declared, for example. */
static int again_check_spec(const struct run *r, struct err *e)
{
	own(buf) struct buf now = { .max = PLAN_MAX_SIZE };

	spec_print_canonical(&r->spec, &now);
	if (!now.failed && now.len == r->again->spec_size &&
		memcmp(buf_text(&now), r->again->spec, now.len) == 0)
		return 0;
	return err_hint(e,
		err_set(e, ERR_REFUSED, EPERM,
			"cannot repeat run %s: the policies of this machine change its spec",
			r->again->of->record.run),
		"bawn check --explain KEY says what they set");
}

int run_load_again(struct run *r, bool *ret_is_spec, struct err *e)
{
	struct run_again *a = r->again;
	int ret;

	*ret_is_spec = false;
	spec_init(&r->spec);
	/* A refusal is written down too. */
	r->place.home = run_home();
	if (a->of->record.outcome == RECORD_REFUSED)
		return err_set(e, ERR_REFUSED, EINVAL,
			"cannot repeat run %s: it was refused and ran nothing", a->of->record.run);
	ret = read_spec(r, e);
	if (ret < 0)
		return ret;
	spec_done(&r->spec);
	ret = run_load_kept_spec(r->asked, a->spec, a->spec_size, &r->spec, &r->place, e);
	*ret_is_spec = ret < 0 && e->kind == ERR_SPEC;
	if (ret == 0)
		ret = again_check_spec(r, e);
	if (ret == 0)
		memcpy(r->record.again.run, a->of->record.run,
			strnlen(a->of->record.run, RECORD_RUN_SIZE - 1));
	return ret;
}

/* --- before the command --- */

static enum record_same again_compare(const char *then, const char *now)
{
	if (!then || !now || !then[0] || !now[0])
		return RECORD_UNKNOWN;
	return str_eq(then, now) ? RECORD_SAME : RECORD_OTHER;
}

/* Where it was is a hint: the link beside the record is not signed. */
static void again_say_unknown(const struct run *r)
{
	const struct run_again *a = r->again;
	char then[4096];
	ssize_t n = a->folder < 0
			    ? -1
			    : readlinkat(a->folder, RECORD_PROJECT_LINK, then, sizeof(then) - 1);

	if (n > 0) {
		then[n] = '\0';
		if (!str_eq(then, r->place.project))
			run_tell(r, "run %s was in '%s', and this one is in '%s'",
				a->of->record.run, then, r->place.project);
	}
	if (a->of->record.session && a->of->record.session[0])
		run_tell(r,
			"run %s was in session %s, and this one begins without what the "
			"session had "
			"written by then",
			a->of->record.run, a->of->record.session);
	if (!a->of->record.project.sha256)
		run_tell(r,
			"whether the project is what it was is not known: the record of run %s "
			"has no digest of it, as --digest-project makes one",
			a->of->record.run);
	if (a->of->record.image.name && str_eq(a->of->record.image.name, "host"))
		run_tell(r, "whether this system is what it was is not known: only images have a "
			    "digest");
	else if (!a->of->record.image.sha256)
		run_tell(r,
			"whether the image '%s' is what it was is not known: the record has no "
			"digest of it",
			a->of->record.image.name ? a->of->record.image.name : "");
}

static void say_path(void *of, const char *path, const char *what)
{
	run_tell(of, "again: '%s' %s", path, what);
}

/* The list beside the record is believed where it is the one that was signed. */
static void name_paths(struct run *r)
{
	const struct run_again *a = r->again;
	const char *signed_digest = a->of->record.project.list_sha256;
	own_fd int fd = a->folder < 0 ? -ENOENT
				      : file_open_name(a->folder, CHANGE_PROJECT_FILE,
						O_RDONLY | O_NONBLOCK | O_NOCTTY);
	own_free char *then = NULL;
	char digest[SHA256_HEX_SIZE] = "";
	size_t n = 0, count;

	if (fd >= 0 && file_read_all(fd, CHANGE_PROJECT_MAX_LIST, &then, &n) == 0)
		sha256_hex(then, n, digest);
	if (!signed_digest || !str_eq(digest, signed_digest)) {
		run_tell(r,
			"again: " CHANGE_PROJECT_FILE
			" beside the record would say which paths, and is not %s",
			digest[0] ? "that of the record" : "there");
		return;
	}
	count = change_project_compare(
		then, n, buf_text(&r->project_list), r->project_list.len, MOST_PATHS, say_path, r);
	if (count > MOST_PATHS)
		run_tell(r, "again: … and %zu more paths differ", count - MOST_PATHS);
	/* Both lists end where no more of them is kept. */
	if (count == 0)
		run_tell(r,
			"again: the paths that differ are behind the %zu MiB that are kept of "
			"each list",
			CHANGE_PROJECT_MAX_LIST >> 20);
}

int run_check_again(struct run *r, struct err *e)
{
	const struct record_read *then = r->again ? &r->again->of->record : NULL;
	struct record_again *x = &r->record.again;

	if (!then)
		return 0;
	const struct {
		const char *what, *then, *now;
		enum record_same *same;
		const char *remedy;
	} trees[] = {
		{ "image", then->image.sha256, r->record.image.sha256, &x->image, "" },
		{ "project", then->project.sha256, r->record.project.sha256, &x->project,
			"were the effects of a run applied since? repeat it in a copy as it was, "
			"with --project" },
		{ "overlay", then->overlay.sha256_before, r->record.overlay.before, &x->overlay,
			"the next run finds what a run leaves there" },
	};

	for (size_t i = 0; i < COUNT_OF(trees); i++) {
		*trees[i].same = again_compare(trees[i].then, trees[i].now);
		if (trees[i].then && *trees[i].same != RECORD_SAME) {
			if (trees[i].same == &x->project && trees[i].now[0])
				name_paths(r);
			return err_hint(e,
				err_set(e, ERR_REFUSED, ESTALE,
					"cannot repeat run %s: the %s is not what it was when it "
					"began: "
					"its digest is %s, and was %s",
					then->run, trees[i].what,
					trees[i].now[0] ? trees[i].now : "unknown", trees[i].then),
				"%s", trees[i].remedy);
		}
	}
	/* Once: with another plan there is another start. */
	if (!r->sink->is_quiet && !r->again->is_said)
		again_say_unknown(r);
	r->again->is_said = true;
	return 0;
}

/* --- afterwards --- */

static void find_differences(struct run *r)
{
	own(change_effects) struct change_effects then, now;
	struct run_again *a = r->again;
	char file[SHA256_HEX_SIZE];
	struct err e = { 0 };
	int ret;

	change_effects_init(&then);
	change_effects_init(&now);
	ret = verify_read_effects(a->folder, &then, file, &e);
	/* No effects, no file. */
	if (ret == 0)
		change_digest(&then, then.digest);
	if (ret >= 0)
		ret = run_read_effects(r, &now, &e);
	if (ret < 0 || !str_eq(then.digest, a->of->record.effects.sha256))
		verify_say(a->report, "effect", VERIFY_ABSENT,
			"effects.json beside the record would say which paths, and is %s",
			ret < 0 ? "not readable" : "not that of the record");
	else
		verify_name_differences(&then, &now, a->report);
}

static enum record_same compare_outcomes(const struct record_read *then, const struct record *now)
{
	int64_t status = then->outcome == RECORD_EXITED     ? then->status
			 : then->outcome == RECORD_SIGNALED ? then->signal
							    : now->status;

	if (then->outcome == RECORD_INTERRUPTED)
		return RECORD_UNKNOWN;
	return then->outcome == now->outcome && status == now->status ? RECORD_SAME : RECORD_OTHER;
}

/* What a terminal shows depends on its size, and of one stream it cannot be said who printed what.
 */
static enum record_same compare_outputs(const struct record_read *then, const struct record *now)
{
	if (!now->output.is_told || then->has_terminal != now->has_terminal ||
		then->output.is_together != now->output.is_together)
		return RECORD_UNKNOWN;
	for (int i = 0; i < (now->output.is_together ? 1 : 2); i++) {
		const struct record_stream *s = &now->output.streams[i];
		enum record_same same = again_compare(
			then->output.streams[i].sha256, s->is_known ? s->sha256 : NULL);

		if (same != RECORD_SAME)
			return same;
	}
	return RECORD_SAME;
}

void run_compare_again(struct run *r)
{
	const struct record_read *then = r->again ? &r->again->of->record : NULL;
	struct record_again *x = &r->record.again;
	struct json *j;

	if (!then)
		return;
	x->plan = again_compare(then->plan_sha256, r->record.plan_digest);
	x->filter = again_compare(then->filter_sha256, r->record.filter_digest);
	x->outcome = compare_outcomes(then, &r->record);
	x->effects = again_compare(
		then->effects.sha256, r->record.effects.is_known ? r->record.effects.digest : NULL);
	x->output = compare_outputs(then, &r->record);
	if (x->effects == RECORD_OTHER)
		find_differences(r);
	j = log_begin(&r->log, "repeated");
	record_print_again(&r->record, j);
	log_end(&r->log);
	(void)log_write(&r->log);
}

static const char *word_of(enum record_same same)
{
	static const char *const words[] = { [RECORD_UNKNOWN] = "not known to be the same",
		[RECORD_SAME] = "the same",
		[RECORD_OTHER] = "not the same" };

	return words[same];
}

void run_say_again(const struct run *r)
{
	const struct record_again *x = &r->record.again;
	const struct run_again *a = r->again;
	bool is_same = x->effects == RECORD_SAME && x->outcome == RECORD_SAME;

	if (!a || (is_same && r->sink->is_quiet))
		return;
	run_tell(r, "again: the effects are %s as in run %s%s%s", word_of(x->effects), x->run,
		x->effects == RECORD_SAME ? ": " : "",
		x->effects == RECORD_SAME ? r->record.effects.digest : "");
	for (size_t i = 0; i < a->report->count; i++)
		if (str_eq(a->report->items[i].name, "effect"))
			run_tell(r, "again: %s", a->report->items[i].text);
	run_tell(r, "again: the outcome is %s, the output is %s, the plan is %s, the filter is %s",
		word_of(x->outcome), word_of(x->output), word_of(x->plan), word_of(x->filter));
}

int run_again_status(const struct run *r, int status)
{
	const struct record_again *x = &r->record.again;

	if (!r->asked->here.is_same || r->is_unrecorded)
		return status;
	return x->effects == RECORD_SAME && x->outcome == RECORD_SAME ? 0 : 1;
}
