#include "proof/verify/verify_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"
#include "change/overlay/change_overlay.h"
#include "proof/log/log.h"
#include "proof/record/record_read_values.h"
#include "proof/verify/verify_policy.h"

/*
 * verify_trees - is the image, is the overlay, still what the record tells of?
 *
 * Runs as:  whoever wants to know.
 * Must not: follow a link below their tops, change anything, or take what could not be read as
 * good.
 */

struct hashing {
	const struct change_progress *progress;
	const char *what;
	struct tree_counts counts;
};

static int trees_tell(void *of)
{
	struct hashing *h = of;

	if (h->progress->tell)
		h->progress->tell(h->progress->of, h->what, h->counts.bytes >> 20, 0);
	return 0;
}

static int digest_tree(int fd, const char *what, const struct change_progress *progress,
	char ret[static SHA256_HEX_SIZE], struct err *e)
{
	struct hashing h = { .progress = progress, .what = what };
	struct tree_options o = { .counts = &h.counts, .step = trees_tell, .of = &h };
	int r = tree_digest_with(fd, &o, ret, e);

	change_progress_end(progress);
	return r;
}

/* Where a path leads that is written as plans have it; false: that cannot be known. */
static bool trees_resolve(
	const char *path, const struct verify_options *o, char ret[static PATH_MAX])
{
	const struct {
		const char *prefix, *stands_for;
	} parts[] = { { "~", o->home }, { "$PROJECT", o->project }, { "", "" } };

	for (size_t i = 0; i < COUNT_OF(parts); i++) {
		size_t n = strlen(parts[i].prefix);
		int len;

		if (!str_starts(path, parts[i].prefix) || (path[n] && path[n] != '/'))
			continue;
		len = snprintf(ret, PATH_MAX, "%s%s",
			parts[i].stands_for ? parts[i].stands_for : "", path + n);
		return parts[i].stands_for && ret[0] == '/' && len < PATH_MAX;
	}
	return false;
}

/* --- the image --- */

static void compare_image(const struct record_artifact *image, const char *path,
	const struct change_progress *progress, struct verify_report *report)
{
	own_fd int fd = file_open(path, O_RDONLY | O_DIRECTORY);
	char digest[SHA256_HEX_SIZE];
	struct err e = { 0 };

	if (fd < 0)
		verify_say(report, "image", VERIFY_ABSENT, "'%s' cannot be opened: %s", path,
			strerror(-fd));
	else if (digest_tree(fd, "hashing the image, MiB", progress, digest, &e) < 0)
		verify_say(
			report, "image", VERIFY_ABSENT, "'%s' cannot be hashed: %s", path, e.text);
	else if (!str_eq(digest, image->sha256))
		verify_say(report, "image", VERIFY_NO, "'%s' is not what it was: its digest is %s",
			path, digest);
	else
		verify_say(report, "image", VERIFY_YES, "'%s': %s", path, digest);
}

static void verify_image(
	const struct verify_record *v, const struct verify_options *o, struct verify_report *report)
{
	const struct record_artifact *image = &v->record.image;
	const char *name = image->name ? image->name : "";
	char path[PATH_MAX];

	if (!image->sha256)
		verify_say(
			report, "image", VERIFY_ABSENT, "the record has no digest of '%s'", name);
	else if (o->is_quick)
		verify_say(report, "image", VERIFY_UNASKED, "%s was not hashed again", name);
	else if (!str_starts(name, "dir:") || !trees_resolve(name + strlen("dir:"), o, path))
		verify_say(report, "image", VERIFY_ABSENT,
			"'%s' cannot be hashed again: only dir: with a path that is known can",
			name);
	else
		compare_image(image, path, &o->progress, report);
}

/* --- the overlay --- */

/* Opens it, and sees what the last run left; false where that was said. */
static bool open_overlay(const char *path, const char *after, struct change_overlay *ret,
	struct verify_report *report)
{
	struct err e = { 0 };
	int r = change_overlay_find(ret, path, &e);

	if (r == 0 && ret->folder < 0)
		r = err_set(&e, ERR_SYS, ENOENT, "'%s' is not there", path);
	if (r == 0)
		r = change_overlay_open(ret, &e);
	if (r < 0)
		verify_say(report, "overlay", VERIFY_ABSENT, "%s", e.text);
	else if (!str_eq(ret->digest, after))
		verify_say(report, "overlay", VERIFY_ABSENT,
			"another run has written to '%s' since", path);
	else
		return true;
	return false;
}

static void compare_overlay(const char *path, const char *after,
	const struct change_progress *progress, struct verify_report *report)
{
	own(change_overlay) struct change_overlay x, again;
	char digest[SHA256_HEX_SIZE];
	struct err e = { 0 };
	own_fd int tree = -1;

	change_overlay_init(&x);
	change_overlay_init(&again);
	if (!open_overlay(path, after, &x, report))
		return;
	tree = change_overlay_tree(&x, &e);
	if (tree < 0 || digest_tree(tree, "hashing the overlay, MiB", progress, digest, &e) < 0)
		verify_say(report, "overlay", VERIFY_ABSENT, "'%s' cannot be hashed: %s", path,
			e.text);
	else if (str_eq(digest, after))
		verify_say(report, "overlay", VERIFY_YES, "'%s': %s", path, digest);
	/* A run may have ended meanwhile, and replaced it. */
	else if (open_overlay(path, after, &again, report))
		verify_say(report, "overlay", VERIFY_NO,
			"'%s' is not what the run left: its digest is %s", path, digest);
}

static void verify_overlay(
	const struct verify_record *v, const struct verify_options *o, struct verify_report *report)
{
	const char *name = v->record.overlay.path, *after = v->record.overlay.sha256_after;
	char path[PATH_MAX];

	if (!name)
		return;
	if (!v->record.overlay.is_saved || !after)
		verify_say(report, "overlay", VERIFY_ABSENT,
			"what the run wrote to '%s' was not saved", name);
	else if (o->is_quick)
		verify_say(report, "overlay", VERIFY_UNASKED, "'%s' was not hashed again", name);
	else if (!trees_resolve(name, o, path))
		verify_say(report, "overlay", VERIFY_ABSENT, "nobody knows where '%s' leads", name);
	else
		compare_overlay(path, after, &o->progress, report);
}

/* --- events --- */

/* What is written down of a run after its record was signed. */
static const char *const later_types[] = { "signed", "apply", "discard" };

struct event {
	const char *type, *run;
};

/* Is it an event of this run of a type that comes after the record? */
static bool events_is_later(const struct log_line *line, const char *run, struct arena *arena)
{
	static const struct json_field fields[] = {
		{ "type", record_read_text, offsetof(struct event, type), true },
		{ "run", record_read_text, offsetof(struct event, run), true },
	};
	own(record_reader) struct record_reader r;
	struct event event = { 0 };
	struct err e;

	record_reader_begin(&r, line->text, line->size, arena);
	JSON_READ_FIELDS(&r, fields, &event);
	if (record_reader_end(&r, "the event", &e) < 0 || !str_eq(event.run, run))
		return false;
	for (size_t i = 0; i < COUNT_OF(later_types); i++)
		if (str_eq(event.type, later_types[i]))
			return true;
	return false;
}

/* Those that the record covers; false where something was said. */
static bool read_covered(
	struct log_reader *log, const struct record_read *r, struct verify_report *report)
{
	struct log_line line;
	int got = 1;

	while (log->tail.count < (uint64_t)r->log.events && got > 0)
		got = log_read_line(log, &line);
	if (got < 0)
		verify_say(report, "events", VERIFY_NO, "%s", log->failure.text);
	else if (got == 0)
		verify_say(report, "events", VERIFY_NO,
			"events.jsonl has %" PRIu64
			" whole lines, and the record tells of %" PRId64,
			log->tail.count, r->log.events);
	else if (!str_eq(log->tail.last, r->log.last))
		verify_say(report, "events", VERIFY_NO,
			"line %" PRId64 " of events.jsonl is not the last one of the record",
			r->log.events);
	else
		return true;
	return false;
}

/* Those after it; false where something was said. */
static bool read_later(struct log_reader *log, const struct record_read *r,
	struct verify_report *report, uint64_t *ret_count)
{
	struct log_line line;
	int got;

	*ret_count = 0;
	while ((got = log_read_line(log, &line)) > 0) {
		own(arena) struct arena arena;

		arena_init(&arena, 4 * LOG_LINE_SIZE);
		if (!events_is_later(&line, r->run, &arena)) {
			verify_say(report, "events", VERIFY_NO,
				"line %" PRIu64
				" of events.jsonl is none that comes after a record",
				log->tail.count);
			return false;
		}
		++*ret_count;
	}
	if (got < 0)
		verify_say(report, "events", VERIFY_NO, "%s", log->failure.text);
	return got == 0;
}

/* Is the file, as far as it was read, the subject of that name, where there is one? */
static bool is_subject(int fd, const struct log_tail *tail, const struct record_artifacts *subjects)
{
	const char *sha256 = NULL;
	uint8_t digest[SHA256_SIZE];
	char bytes[16384], hex[SHA256_HEX_SIZE];
	struct sha256 sum;
	ssize_t n = 1;

	for (size_t i = 0; i < subjects->count; i++)
		if (str_eq(subjects->items[i].name, LOG_RUN_FILE))
			sha256 = subjects->items[i].sha256;
	if (!sha256)
		return true;
	sha256_init(&sum);
	for (uint64_t at = 0; at < tail->size && n > 0; at += (uint64_t)n) {
		uint64_t left = tail->size - at;

		n = pread(fd, bytes, left < sizeof(bytes) ? left : sizeof(bytes), (off_t)at);
		if (n > 0)
			sha256_add(&sum, bytes, (size_t)n);
	}
	sha256_finish(&sum, digest);
	sha256_print(digest, hex);
	return str_eq(hex, sha256);
}

/* --- verify_files.c, verify_events.c, verify_trees.c: with what lies beside it? --- */
static void verify_events(const struct verify_record *v, struct verify_report *report)
{
	own_fd int fd = verify_open_file(v, "events", LOG_RUN_FILE, report);
	own(log_reader) struct log_reader log = { 0 };
	uint64_t later = 0;

	if (fd < 0)
		return;
	log_reader_init(&log, fd);
	if (!read_covered(&log, &v->record, report))
		return;
	if (!is_subject(fd, &log.tail, &v->statement.subjects)) {
		verify_say(report, "events", VERIFY_NO,
			"events.jsonl is not what the record is about: its digest is another one");
		return;
	}
	if (!read_later(&log, &v->record, report, &later))
		return;
	verify_say(report, "events", VERIFY_YES, "%" PRId64 " events, as the record has them",
		v->record.log.events);
	if (later)
		verify_say(report, "events.later", VERIFY_UNASKED,
			"%" PRIu64 " more, written after the record: no signature covers them",
			later);
}

/* --- demands --- */

#define MOST_SKEW_S 300 /* by which two clocks may differ */

/* What a demand is judged by. */
struct judging {
	const struct verify_record *v;
	const struct verify_options *options;
	struct verify_report *report;
	const struct record_texts *wanted;
	char name[64]; /* of the property */
};

static bool demands_is_wanted(const struct judging *j, const char *text)
{
	for (size_t i = 0; text && i < j->wanted->count; i++)
		if (str_eq(j->wanted->items[i], text))
			return true;
	return false;
}

static const char *list_wanted(const struct judging *j, struct buf *out)
{
	for (size_t i = 0; i < j->wanted->count; i++)
		buf_printf(out, "%s%s", i ? ", " : "", j->wanted->items[i]);
	return buf_text(out);
}

/* Is what the record has, or this other name of it, one of those that are wanted? */
static void judge_one(struct judging *j, const char *has, const char *other)
{
	own(buf) struct buf list = { .max = 2048 };

	if (demands_is_wanted(j, has) || demands_is_wanted(j, other))
		verify_say(j->report, j->name, VERIFY_YES, "%s",
			demands_is_wanted(j, has) ? has : other);
	else if (has)
		verify_say(j->report, j->name, VERIFY_NO, "%s, and demanded is: %s", has,
			list_wanted(j, &list));
	else
		verify_say(j->report, j->name, VERIFY_NO,
			"the record has none, and demanded is: %s", list_wanted(j, &list));
}

/* --- what a record says --- */

static const char *level_of(const struct verify_record *v)
{
	return v->record.level;
}

static const char *demands_network_of(const struct verify_record *v)
{
	return verify_network(&v->record);
}

static const char *preflight_of(const struct verify_record *v)
{
	return v->record.preflight_passed ? "true" : "false";
}

static const char *outcome_of(const struct verify_record *v)
{
	return record_outcome_words[v->record.outcome];
}

static const char *key_of(const struct verify_record *v)
{
	return v->key.id;
}

static const char *spec_of(const struct verify_record *v)
{
	return v->record.spec_sha256;
}

static const char *plan_of(const struct verify_record *v)
{
	return v->record.plan_sha256;
}

/* A name that looks like a digest is none: who demands one means what was in the image. */
static const char *demands_image_of(const struct verify_record *v)
{
	const char *name = v->record.image.name;
	uint8_t unused[SHA256_SIZE];

	return name && sha256_parse(name, unused) == 0 ? NULL : name;
}

static const char *image_digest_of(const struct verify_record *v)
{
	return v->record.image.sha256;
}

static const char *engine_of(const struct verify_record *v)
{
	return v->record.engine;
}

static const char *bawn_of(const struct verify_record *v)
{
	return v->record.bawn;
}

/* --- what takes more than a look --- */

static void judge_status(struct judging *j)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, j->v->record.status);
	judge_one(j, j->v->record.status < 0 ? NULL : text, NULL);
}

static void judge_each(struct judging *j, bool is_outside)
{
	for (size_t i = 0; i < j->wanted->count; i++) {
		const char *name = j->wanted->items[i];
		const struct record_read_guarantee *g = record_read_find(&j->v->record, name);

		if (g && g->holds && (!is_outside || g->vantage >= RECORD_KEEPER))
			continue;
		verify_say(j->report, j->name, VERIFY_NO, "%s %s", name,
			!g         ? "was not asked for in this run"
			: g->holds ? "is only claimed from inside the cage"
				   : "does not hold, or nobody saw it");
		return;
	}
	verify_say(j->report, j->name, VERIFY_YES, "all %zu hold%s", j->wanted->count,
		is_outside ? ", seen from outside the cage" : "");
}

static void judge_guarantees(struct judging *j)
{
	judge_each(j, false);
}

static void judge_outside(struct judging *j)
{
	judge_each(j, true);
}

/* By what was seen, not by what the record lists: verify_degraded holds that to it. */
static void judge_degraded(struct judging *j)
{
	const struct record_read *r = &j->v->record;
	size_t missing = 0;

	for (size_t i = 0; i < r->guarantees.count; i++) {
		const struct record_read_guarantee *g = &r->guarantees.items[i];

		if (g->holds)
			continue;
		missing++;
		if (!demands_is_wanted(j, g->name)) {
			verify_say(j->report, j->name, VERIFY_NO, "%s does not hold", g->name);
			return;
		}
	}
	verify_say(j->report, j->name, VERIFY_YES,
		missing ? "%zu are missing, and may be" : "none is missing", missing);
}

static void judge_age(struct judging *j)
{
	const char *text = j->v->record.ended ? j->v->record.ended : j->v->record.began;
	struct timespec then;
	uint64_t most = 0;
	int64_t age;

	if (num_parse_duration(j->wanted->items[0], &most, NULL) < 0 ||
		clock_parse(text, &then) < 0) {
		verify_say(j->report, j->name, VERIFY_NO, "'%s' is no time that can be read", text);
		return;
	}
	age = (int64_t)j->options->now.tv_sec - (int64_t)then.tv_sec;
	if (age < -MOST_SKEW_S)
		verify_say(j->report, j->name, VERIFY_NO, "%s is still to come", text);
	else if (age > 0 && (uint64_t)age * 1000 > most)
		verify_say(j->report, j->name, VERIFY_NO, "%s is longer ago than %s", text,
			j->wanted->items[0]);
	else
		verify_say(j->report, j->name, VERIFY_YES, "%s", text);
}

static void judge_checked(struct judging *j)
{
	for (size_t i = 0; i < j->wanted->count; i++)
		if (!verify_is_yes(j->report, j->wanted->items[i])) {
			verify_say(j->report, j->name, VERIFY_NO, "%s was not found to be so",
				j->wanted->items[i]);
			return;
		}
	verify_say(j->report, j->name, VERIFY_YES, "all %zu", j->wanted->count);
}

/* --- all of them --- */

/* in_chain is a property of every record. */
static const struct {
	const char *(*has)(const struct verify_record *v), *(*other)(const struct verify_record *v);
	void (*judge)(struct judging *j);
} rows[VERIFY_DEMAND_COUNT] = {
	[VERIFY_LEVEL] = { level_of },
	[VERIFY_NETWORK] = { demands_network_of },
	[VERIFY_GUARANTEES] = { .judge = judge_guarantees },
	[VERIFY_OUTSIDE] = { .judge = judge_outside },
	[VERIFY_DEGRADED] = { .judge = judge_degraded },
	[VERIFY_PREFLIGHT] = { preflight_of },
	[VERIFY_OUTCOME] = { outcome_of },
	[VERIFY_STATUS] = { .judge = judge_status },
	[VERIFY_KEYS] = { key_of },
	[VERIFY_SPEC] = { spec_of },
	[VERIFY_PLAN] = { plan_of },
	[VERIFY_IMAGE] = { demands_image_of, image_digest_of },
	[VERIFY_ENGINE] = { engine_of },
	[VERIFY_BAWN] = { bawn_of },
	[VERIFY_MAX_AGE] = { .judge = judge_age },
	[VERIFY_CHECKED] = { .judge = judge_checked },
};

/* --- verify_demands.c --- */
static void verify_demands(
	const struct verify_record *v, const struct verify_options *o, struct verify_report *report)
{
	for (enum verify_demand d = 0; d < VERIFY_DEMAND_COUNT; d++) {
		struct judging j = { .v = v,
			.options = o,
			.report = report,
			.wanted = &o->policy->demands[d].texts };

		if (!o->policy->demands[d].is_given)
			continue;
		snprintf(j.name, sizeof(j.name), "policy.%s", verify_demand_defs[d].key);
		if (rows[d].judge)
			rows[d].judge(&j);
		else if (rows[d].has)
			judge_one(&j, rows[d].has(v), rows[d].other ? rows[d].other(v) : NULL);
	}
}

/* A relaxed run is recorded like any other, and nothing should be built on it. */
static void verify_in_chain(
	const struct verify_record *v, const struct verify_options *o, struct verify_report *report)
{
	if (v->record.in_chain)
		verify_say(report, "in_chain", VERIFY_YES, "nothing was relaxed");
	else if (verify_policy_allows_relaxed(o->policy))
		verify_say(report, "in_chain", VERIFY_UNASKED,
			"the run was relaxed, which the policy does not mind");
	else
		verify_say(report, "in_chain", VERIFY_NO,
			"the run was relaxed: what it did is known, and nothing should be built "
			"on it");
}

void verify_judge(
	const struct verify_record *v, const struct verify_options *o, struct verify_report *report)
{
	verify_provenance(v, report);
	verify_subjects(v, report);
	verify_events(v, report);
	verify_effects(v, report);
	verify_plain_files(v, report);
	verify_image(v, o, report);
	verify_overlay(v, o, report);
	verify_guarantees(v, report);
	verify_in_chain(v, o, report);
	verify_outcome(v, report);
	if (o->policy)
		verify_demands(v, o, report);
}
