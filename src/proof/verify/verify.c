/*
 * verify - judges a record: whether it agrees with itself, and with the files, trees and events it
 * names.
 *
 * Runs as:  whoever wants to know.
 * Must not: follow a link, block on a file that is no regular file, change anything, or report as
 * good what could not be read.
 */
#include "proof/verify/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"
#include "change/overlay/change_overlay.h"
#include "change/project/change_project.h"
#include "proof/log/log.h"
#include "proof/record/record_read_values.h"
#include "proof/verify/verify_policy.h"

/* --- files beside the record --- */

#define MOST_EFFECTS ((size_t)1 << 30) /* bytes of effects.json */

static void say_unopened(
	const char *property, const char *name, int failure, struct verify_report *report)
{
	if (failure == -ENOENT || failure == -ENOTDIR || failure == -EXDEV)
		verify_say(report, property, VERIFY_ABSENT, "'%s' is not beside the record", name);
	else
		verify_say(report, property, VERIFY_NO, "'%s' cannot be opened: %s", name,
			failure == -ELOOP ? "it is a link" : strerror(-failure));
}

static bool is_plain(int fd, const char *property, const char *name, struct verify_report *report)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return true;
	verify_say(report, property, VERIFY_NO, "'%s' is no plain file", name);
	return false;
}

static int verify_open_file(const struct verify_record *v, const char *property, const char *name,
	struct verify_report *report)
{
	own_fd int fd = v->folder < 0 ? -ENOENT
				      : file_open_beneath(v->folder, name,
						O_RDONLY | O_NOCTTY | O_NONBLOCK, 0);

	if (fd < 0)
		say_unopened(property, name, fd, report);
	else if (is_plain(fd, property, name, report))
		return take_fd(&fd);
	return -1;
}

/* Adds a property: whether an open file has that digest. */
static void verify_content(int fd, const char *property, const char *name, const char *sha256,
	struct verify_report *report)
{
	char hex[SHA256_HEX_SIZE];
	uint8_t bytes[SHA256_SIZE];
	uint64_t size = 0;
	int r = sha256_file(fd, bytes, &size);

	sha256_print(bytes, hex);
	if (r < 0)
		verify_say(
			report, property, VERIFY_NO, "'%s' cannot be read: %s", name, strerror(-r));
	else if (!str_eq(hex, sha256))
		verify_say(report, property, VERIFY_NO,
			"'%s' is not that of the record: its digest is %s", name, hex);
	else
		verify_say(report, property, VERIFY_YES, "%s", hex);
}

static void verify_file(const struct verify_record *v, const char *property, const char *name,
	const char *sha256, struct verify_report *report)
{
	own_fd int fd = verify_open_file(v, property, name, report);

	if (fd >= 0)
		verify_content(fd, property, name, sha256, report);
}

/* The spec or the plan: beside the record, or where the state keeps it for all runs that have it.
 */
static void verify_part(const struct verify_record *v, enum record_part part, const char *property,
	const char *sha256, struct verify_report *report)
{
	own_fd int fd = v->folder < 0 ? -ENOENT : record_open_part(v->folder, part, sha256);
	const char *name = record_part_name(part);

	if (fd < 0)
		say_unopened(property, name, fd, report);
	else if (is_plain(fd, property, name, report))
		verify_content(fd, property, name, sha256, report);
}

static void verify_plain_files(const struct verify_record *v, struct verify_report *report)
{
	verify_part(v, RECORD_SPEC, "spec", v->record.spec_sha256, report);
	verify_part(v, RECORD_PLAN, "plan", v->record.plan_sha256, report);
	if (v->record.project.list_sha256)
		verify_file(
			v, "project", CHANGE_PROJECT_FILE, v->record.project.list_sha256, report);
	for (int i = 0; i < 2; i++)
		if (v->record.output.streams[i].kept_sha256)
			verify_file(v, record_stream_names[i], record_stream_names[i],
				v->record.output.streams[i].kept_sha256, report);
}

/* --- effects --- */

int verify_read_effects(int folder, struct change_effects *ret,
	char ret_sha256[static SHA256_HEX_SIZE], struct err *e)
{
	own_fd int fd = folder < 0 ? -ENOENT
				   : file_open_name(folder, RECORD_EFFECTS_FILE,
					     O_RDONLY | O_NOCTTY | O_NONBLOCK);
	own_free char *bytes = NULL;
	size_t n = 0;
	int r = fd < 0 ? fd : file_read_all(fd, MOST_EFFECTS, &bytes, &n);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return err_sys(e, -r, "effects.json cannot be read");
	sha256_hex(bytes, n, ret_sha256);
	r = change_effects_read(bytes, n, ret, e);
	return r < 0 ? r : 1;
}

/* A run that did nothing leaves no file. */
static void verify_no_effects(const struct verify_record *v, struct verify_report *report)
{
	own(change_effects) struct change_effects nothing;
	char digest[SHA256_HEX_SIZE];

	change_effects_init(&nothing);
	change_digest(&nothing, digest);
	if (v->folder >= 0 && str_eq(digest, v->record.effects.sha256))
		verify_say(
			report, "effects", VERIFY_YES, "none: the run did nothing to the project");
	else
		verify_say(report, "effects", VERIFY_ABSENT,
			"'effects.json' is not beside the record");
}

static bool are_counted_so(const struct record_read *r, const struct change_effects *x)
{
	struct change_sum sum = { 0 };

	change_sum_up(x, &sum);
	return (int64_t)sum.added == r->effects.added &&
	       (int64_t)sum.changed == r->effects.changed &&
	       (int64_t)sum.deleted == r->effects.deleted &&
	       (int64_t)sum.renamed == r->effects.renamed;
}

static void verify_effects(const struct verify_record *v, struct verify_report *report)
{
	const struct record_read *r = &v->record;
	own(change_effects) struct change_effects x;
	char file[SHA256_HEX_SIZE];
	struct err e = { 0 };
	int got;

	change_effects_init(&x);
	got = r->effects.sha256 ? verify_read_effects(v->folder, &x, file, &e) : 0;
	if (!r->effects.sha256)
		verify_say(report, "effects", VERIFY_ABSENT, "%s",
			r->effects.error ? r->effects.error
			: r->capture     ? "what became of the project is not in the record"
					 : "the project was not captured");
	else if (got < 0)
		verify_say(report, "effects", VERIFY_NO, "%s", e.text);
	else if (got == 0)
		verify_no_effects(v, report);
	else if (!str_eq(x.digest, r->effects.sha256))
		verify_say(report, "effects", VERIFY_NO,
			"'effects.json' tells of other effects: their digest is %s", x.digest);
	else if (r->effects.file_sha256 && !str_eq(file, r->effects.file_sha256))
		verify_say(report, "effects", VERIFY_NO,
			"'effects.json' was changed: its digest is %s", file);
	else if (!are_counted_so(r, &x))
		verify_say(report, "effects", VERIFY_NO,
			"'effects.json' has another number of effects than the record");
	else
		verify_say(report, "effects", VERIFY_YES, "%zu, as the record has them", x.count);
}

/* --- what the statement is about --- */

static void verify_subjects(const struct verify_record *v, struct verify_report *report)
{
	const struct record_artifacts *subjects = &v->statement.subjects;

	for (size_t i = 0; i < subjects->count; i++) {
		const struct record_artifact *s = &subjects->items[i];
		char name[256];

		if (str_eq(s->name, "effects")) {
			if (!v->record.effects.sha256 ||
				!str_eq(s->sha256, v->record.effects.sha256))
				verify_say(report, "subject", VERIFY_NO,
					"the subject's effects are not those of the record");
			continue;
		}
		/* For the file as it was then; verify_events knows where that ended. */
		if (str_eq(s->name, LOG_RUN_FILE))
			continue;
		snprintf(name, sizeof(name), "subject %.200s", s->name);
		verify_file(v, name, s->name, s->sha256, report);
	}
}

/* --- events --- */

/* The types of events that are written after the record was signed. */
static const char *const later_types[] = { "signed", "apply", "discard" };

struct event {
	const char *type, *run;
};

/* True for an event of this run of a type that comes after the record. */
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

/* Checks the events that the record covers. False if it has added a property. */
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

/* Checks the events after the record. False if it has added a property. */
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

/* True if the part of the file that was read is the subject of that name, if there is one. */
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

/* --- trees: image and overlay --- */

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
	int r = tree_digest(fd, &o, ret, e);

	change_progress_end(progress);
	return r;
}

/* Resolves a path of a plan on this host. False if that is not possible. */
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

/* --- does the record agree with itself? --- */

/* Both unknown, or both known and the same. */
static bool sense_are_same(const char *a, const char *b)
{
	return a && b ? str_eq(a, b) : a == b;
}

/* --- the provenance --- */

static bool have_same_subjects(const struct record_artifacts *a, const struct record_artifacts *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (!str_eq(a->items[i].name, b->items[i].name) ||
			!str_eq(a->items[i].sha256, b->items[i].sha256))
			return false;
	return true;
}

/* True if the provenance has an input of that name and digest; or none, if there is no digest. */
static bool has_dependency(const struct record_provenance *p, const char *name, const char *sha256)
{
	for (size_t i = 0; i < p->dependencies.count; i++)
		if (str_eq(p->dependencies.items[i].name, name))
			return sense_are_same(p->dependencies.items[i].sha256, sha256);
	return !sha256;
}

/* Returns what two records disagree on; NULL: nothing. */
static const char *find_difference(const struct verify_record *v)
{
	const struct record_provenance *p = &v->provenance;
	const struct record_read *r = &v->record;
	const struct {
		const char *what, *one, *other;
		bool may_be_unsaid; /* in a provenance: the record has it */
	} pairs[] = {
		{ "kind", p->build_type, RECORD_BUILD_TYPE, false },
		{ "run", p->run, r->run, false },
		{ "spec", p->spec_sha256, r->spec_sha256, false },
		{ "name", p->name, r->name, true },
		{ "level", p->level, r->level, true },
		{ "plan", p->plan_sha256, r->plan_sha256, true },
		{ "filter", p->filter_sha256, r->filter_sha256, true },
		{ "engine", p->engine, r->engine, true },
		{ "version", p->bawn, r->bawn, true },
		{ "kernel", p->kernel, r->kernel, true },
		{ "beginning", p->began, r->began, true },
		{ "end", p->ended, r->ended, true },
	};

	for (size_t i = 0; i < COUNT_OF(pairs); i++)
		if (!sense_are_same(pairs[i].one, pairs[i].other) &&
			(pairs[i].one || !pairs[i].may_be_unsaid))
			return pairs[i].what;
	if (!have_same_subjects(&v->statement.subjects, &v->provenance_statement.subjects))
		return "subject";
	if (!has_dependency(p, "image", r->image.sha256))
		return "image";
	if (!has_dependency(p, "project", r->project.sha256))
		return "project";
	return has_dependency(p, "overlay", r->overlay.sha256_before) ? NULL : "overlay";
}

static void verify_provenance(const struct verify_record *v, struct verify_report *report)
{
	const char *what = v->has_provenance ? find_difference(v) : NULL;

	if (!v->has_provenance)
		verify_say(report, "provenance", VERIFY_ABSENT, "the file has none");
	else if (what)
		verify_say(report, "provenance", VERIFY_NO,
			"it is not of the record's run: it names another %s", what);
	else
		verify_say(report, "provenance", VERIFY_YES, "it says the same as the record");
}

/* --- guarantees --- */

static bool sense_is_listed(const struct record_texts *names, const char *name)
{
	for (size_t i = 0; i < names->count; i++)
		if (str_eq(names->items[i], name))
			return true;
	return false;
}

/* The names of those that must hold and do not. */
static size_t find_missing(const struct record_read *r, struct buf *ret)
{
	size_t count = 0;

	for (size_t i = 0; i < r->guarantees.count; i++) {
		const struct record_read_guarantee *g = &r->guarantees.items[i];

		if (g->is_must && !g->holds)
			buf_printf(ret, "%s%s", count++ ? ", " : "", g->name);
	}
	return count;
}

static void verify_degraded(const struct record_read *r, struct verify_report *report)
{
	size_t missing = 0;

	for (size_t i = 0; i < r->guarantees.count; i++) {
		const struct record_read_guarantee *g = &r->guarantees.items[i];
		bool is_degraded = !g->is_must && !g->holds;

		missing += is_degraded;
		if (is_degraded == sense_is_listed(&r->degraded, g->name))
			continue;
		verify_say(report, "degraded", VERIFY_NO,
			is_degraded ? "'%s' is missing, and not said to be"
				    : "'%s' is said to be missing, and holds or must hold",
			g->name);
		return;
	}
	if (missing != r->degraded.count)
		verify_say(report, "degraded", VERIFY_NO,
			"the list has names twice, or of what was not asked for");
	else if (missing)
		verify_say(report, "degraded", VERIFY_YES,
			"%zu optional guarantee%s not enforced, as the record says: %s first",
			missing, missing == 1 ? " was" : "s were", r->degraded.items[0]);
	else
		verify_say(report, "degraded", VERIFY_YES, "nothing that was asked for is missing");
}

static void verify_guarantees(const struct verify_record *v, struct verify_report *report)
{
	const struct record_read *r = &v->record;
	own(buf) struct buf names = { .max = 2048 };
	size_t missing = find_missing(r, &names), must = 0;

	for (size_t i = 0; i < r->guarantees.count; i++)
		must += r->guarantees.items[i].is_must;
	if (missing)
		verify_say(report, "guarantees", VERIFY_NO,
			"%zu of %zu that are required do not hold, or nobody saw it: %s", missing,
			must, buf_text(&names));
	else
		verify_say(report, "guarantees", VERIFY_YES,
			"all %zu that are required were seen to hold", must);
	verify_degraded(r, report);
}

/* --- how it ended --- */

static void verify_outcome(const struct verify_record *v, struct verify_report *report)
{
	const struct record_read *r = &v->record;
	bool has_status = r->status >= 0, has_signal = r->signal >= 0;
	const char *word = record_outcome_words[r->outcome];

	if (has_status != (r->outcome == RECORD_EXITED) ||
		has_signal != (r->outcome == RECORD_SIGNALED))
		verify_say(report, "outcome", VERIFY_NO,
			"'%s' does not go with the status or the signal that is there", word);
	else if (has_status)
		verify_say(report, "outcome", VERIFY_YES, "exited with %" PRId64, r->status);
	else if (has_signal)
		verify_say(report, "outcome", VERIFY_YES, "ended by signal %" PRId64, r->signal);
	else if (r->outcome == RECORD_INTERRUPTED)
		verify_say(report, "outcome", VERIFY_YES,
			"interrupted: bawn ended before it signed what became of the run");
	else
		verify_say(report, "outcome", VERIFY_YES, "%s%s%s", word, r->error ? ": " : "",
			r->error ? r->error : "");
}

/* --- the judgement --- */

/* True if the policy accepts a relaxed run; `policy` may be NULL. */
static bool policy_allows_relaxed(const struct verify_policy *policy)
{
	const struct record_texts *texts = policy ? &policy->demands[VERIFY_IN_CHAIN].texts : NULL;

	return texts && texts->count && str_eq(texts->items[0], "false");
}

/* A relaxed run is recorded like any other, and nothing should be built on it. */
static void verify_in_chain(
	const struct verify_record *v, const struct verify_options *o, struct verify_report *report)
{
	if (v->record.in_chain)
		verify_say(report, "in_chain", VERIFY_YES, "nothing was relaxed");
	else if (policy_allows_relaxed(o->policy))
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
		verify_judge_policy(v, o, report);
}
