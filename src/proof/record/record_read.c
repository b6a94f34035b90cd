#include "proof/record/record_read.h"

#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "proof/record/record_read_values.h"

#define AT(member) offsetof(struct record_read, member)

/* --- the parts of a record --- */

static bool record_read_read_version(void *reader, void *into)
{
	struct json_reader *json = reader;
	const struct record_read *ret = into;
	int64_t version;

	if (!json_read_int(json, &version))
		return false;
	return version == ret->version
		       ? true
		       : json_wrong(json, ret->version == 1 ? "version 1" : "version 2");
}

static bool read_level(void *reader, void *into)
{
	static const char *const words[] = { "custom", "hardened" };
	struct record_read *ret = into;
	unsigned which = 0;

	if (!record_read_word(reader, words, 2, &which))
		return false;
	ret->is_hardened = which == 1;
	ret->level = words[which];
	return true;
}

static bool read_outcome(void *reader, void *into)
{
	enum record_outcome *ret = into;
	unsigned which = 0;

	if (!record_read_word(reader, record_outcome_words, RECORD_OUTCOME_COUNT, &which))
		return false;
	*ret = which;
	return true;
}

/* A map that may be null. */
#define READ_PART(reader, fields, into)                                                            \
	(json_take_null(reader) || JSON_READ_FIELDS(reader, fields, into))

static bool read_image(void *reader, void *into)
{
	static const struct json_field fields[] = {
		{ "name", record_read_text, AT(image.name) },
		{ "sha256", record_read_sha256, AT(image.sha256) },
	};

	return READ_PART(reader, fields, into);
}

static bool record_read_read_project(void *reader, void *into)
{
	static const struct json_field fields[] = {
		{ "sha256", record_read_sha256, AT(project.sha256) },
		{ "files", record_read_count, AT(project.files) },
		{ "bytes", record_read_count, AT(project.bytes) },
		{ "list_sha256", record_read_sha256, AT(project.list_sha256) },
	};

	return READ_PART(reader, fields, into);
}

static bool read_used(void *reader, void *into)
{
	static const struct json_field fields[] = {
		{ "memory_peak", record_read_count, AT(used.memory_peak) },
		{ "cpu_us", record_read_count, AT(used.cpu_us) },
		{ "processes_peak", record_read_count, AT(used.processes_peak) },
		{ "written", record_read_count, AT(used.written) },
		{ "printed", record_read_count, AT(used.printed) },
	};

	return READ_PART(reader, fields, into);
}

static bool record_read_read_stream(void *reader, void *into)
{
	static const struct json_field fields[] = {
		{ "bytes", record_read_count, offsetof(struct record_read_stream, bytes), true },
		{ "sha256", record_read_sha256, offsetof(struct record_read_stream, sha256) },
		{ "kept", record_read_count, offsetof(struct record_read_stream, kept) },
		{ "kept_sha256", record_read_sha256,
			offsetof(struct record_read_stream, kept_sha256) },
	};

	return READ_PART(reader, fields, into);
}

static bool read_output(void *reader, void *into)
{
	static const struct json_field fields[] = {
		{ "together", record_read_bool, AT(output.is_together) },
		{ "stdout", record_read_read_stream, AT(output.streams[0]) },
		{ "stderr", record_read_read_stream, AT(output.streams[1]) },
		{ "error", record_read_text, AT(output.error) },
	};

	return READ_PART(reader, fields, into);
}

static bool read_log(void *reader, void *into)
{
	static const struct json_field fields[] = {
		{ "events", record_read_count, AT(log.events), true },
		{ "last", record_read_sha256, AT(log.last), true },
	};

	return JSON_READ_FIELDS(reader, fields, into);
}

static bool record_read_read_effects(void *reader, void *into)
{
	static const struct json_field fields[] = {
		{ "sha256", record_read_sha256, AT(effects.sha256) },
		{ "file_sha256", record_read_sha256, AT(effects.file_sha256) },
		{ "added", record_read_count, AT(effects.added) },
		{ "changed", record_read_count, AT(effects.changed) },
		{ "deleted", record_read_count, AT(effects.deleted) },
		{ "renamed", record_read_count, AT(effects.renamed) },
		{ "runs_on_host", record_read_count, AT(effects.runs_on_host) },
		{ "error", record_read_text, AT(effects.error) },
	};

	return READ_PART(reader, fields, into);
}

static bool read_overlay(void *reader, void *into)
{
	static const struct json_field fields[] = {
		{ "path", record_read_text, AT(overlay.path), true },
		{ "size", record_read_count, AT(overlay.size) },
		{ "sha256_before", record_read_sha256, AT(overlay.sha256_before) },
		{ "sha256_after", record_read_sha256, AT(overlay.sha256_after) },
		{ "saved", record_read_bool, AT(overlay.is_saved) },
		{ "full", record_read_bool, AT(overlay.is_full) },
		{ "skipped", record_read_count, AT(overlay.skipped) },
		{ "error", record_read_text, AT(overlay.error) },
	};

	return READ_PART(reader, fields, into);
}

/* --- lists --- */

static bool record_read_read_events(void *reader, void *into)
{
	static const struct json_field fields[] = {
		{ "type", record_read_text, offsetof(struct record_read_event, type), true },
		{ "times", record_read_count, offsetof(struct record_read_event, times) },
		{ "text", record_read_text, offsetof(struct record_read_event, text) },
	};
	struct record_reader *r = reader;
	struct record_read *ret = into;
	void *items = NULL;

	if (json_take_null(&r->json))
		return true;
	if (!json_enter_list(&r->json))
		return false;
	while (json_next_item(&r->json)) {
		struct record_read_event *one =
			record_grow(r, &items, &ret->events.count, sizeof(*one));

		if (!one)
			return false;
		one->times = -1;
		one->bytes = r->json.at;
		if (!JSON_READ_FIELDS(reader, fields, one))
			return false;
		one->size = (size_t)(r->json.at - one->bytes);
	}
	ret->events.items = items;
	return !r->json.wrong;
}

static bool read_skipped(void *reader, void *into)
{
	static const struct json_field fields[] = {
		{ "op", record_read_text, offsetof(struct record_read_skipped, op), true },
		{ "a", record_read_text, offsetof(struct record_read_skipped, a) },
		{ "b", record_read_text, offsetof(struct record_read_skipped, b) },
		{ "why", record_read_text, offsetof(struct record_read_skipped, why) },
	};
	struct record_reader *r = reader;
	struct record_read *ret = into;
	void *items = NULL;

	if (json_take_null(&r->json))
		return true;
	if (!json_enter_list(&r->json))
		return false;
	while (json_next_item(&r->json)) {
		struct record_read_skipped *one =
			record_grow(r, &items, &ret->skipped.count, sizeof(*one));

		if (!one || !JSON_READ_FIELDS(reader, fields, one))
			return false;
	}
	ret->skipped.items = items;
	return !r->json.wrong;
}

/* --- all of it --- */

/* In the order in which they are written. */
static const struct json_field record_fields[] = {
	{ "version", record_read_read_version, 0, true },
	{ "run", record_read_text, AT(run), true },
	{ "session", record_read_text, AT(session) },
	{ "worker", record_read_text, AT(worker) },
	{ "lease", record_read_count, AT(lease) },
	{ "cage", record_read_text, AT(cage) },
	{ "bawn", record_read_text, AT(bawn), true },
	{ "kernel", record_read_text, AT(kernel) },
	{ "landlock_abi", record_read_count, AT(landlock_abi) },
	{ "engine", record_read_text, AT(engine), true },
	{ "name", record_read_text, AT(name) },
	{ "level", read_level, 0, true },
	{ "level_reasons", record_read_text, AT(level_reasons) },
	{ "self_governance", record_read_text, AT(self_governance) },
	{ "in_chain", record_read_bool, AT(in_chain) },
	{ "spec_sha256", record_read_sha256, AT(spec_sha256), true },
	{ "plan_sha256", record_read_sha256, AT(plan_sha256), true },
	{ "filter_sha256", record_read_sha256, AT(filter_sha256) },
	{ "preflight_sha256", record_read_sha256, AT(preflight_sha256) },
	{ "preflight_passed", record_read_bool, AT(preflight_passed) },
	{ "preflight_by", record_read_text, AT(preflight_by) },
	{ "warm", record_read_bool, AT(is_warm) },
	{ "image", read_image, 0 },
	{ "project", record_read_read_project, 0 },
	{ "capture", record_read_text, AT(capture) },
	{ "terminal", record_read_bool, AT(has_terminal) },
	{ "escapes_dropped", record_read_count, AT(escapes_dropped) },
	{ "outcome", read_outcome, AT(outcome), true },
	{ "status", record_read_count, AT(status) },
	{ "signal", record_read_count, AT(signal) },
	{ "error", record_read_text, AT(error) },
	{ "began", record_read_text, AT(began), true },
	{ "ended", record_read_text, AT(ended) },
	{ "start_us", record_read_count, AT(start_us) },
	{ "run_us", record_read_count, AT(run_us) },
	{ "used", read_used, 0 },
	{ "output", read_output, 0 },
	{ "log", read_log, 0, true },
	{ "events", record_read_read_events, 0 },
	{ "effects", record_read_read_effects, 0 },
	{ "overlay", read_overlay, 0 },
	{ "guarantees", record_read_guarantees, 0, true },
	{ "degraded", record_read_texts, AT(degraded) },
	{ "skipped", read_skipped, 0 },
	{ "skipped_count", record_read_count, AT(skipped_count) },
};

/* No number is known until it is read. */
static const struct record_read nothing = {
	.landlock_abi = -1,
	.project = { .files = -1, .bytes = -1 },
	.escapes_dropped = -1,
	.status = -1,
	.signal = -1,
	.start_us = -1,
	.run_us = -1,
	.used = { -1, -1, -1, -1, -1 },
	.output = { .streams = { { .bytes = -1, .kept = -1 }, { .bytes = -1, .kept = -1 } } },
	.log = { .events = -1 },
	.effects = { .added = -1, .changed = -1, .deleted = -1, .renamed = -1, .runs_on_host = -1 },
	.overlay = { .size = -1, .skipped = -1 },
	.skipped_count = -1,
};

/* --- what goes without saying --- */

/* Digests of nothing: what a stream without bytes has. */
static const char empty_sha256[] =
	"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

static void fill_texts(struct record_read *x)
{
	if (!x->name)
		x->name = "";
	if (!x->level_reasons)
		x->level_reasons = "";
	if (!x->image.name)
		x->image.name = RECORD_HOST_IMAGE;
	for (int i = 0; i < 2; i++)
		if (x->output.streams[i].bytes == 0 && !x->output.streams[i].sha256)
			x->output.streams[i].sha256 = empty_sha256;
}

static void fill_numbers(struct record_read *x)
{
	int64_t *const numbers[] = { &x->landlock_abi, &x->escapes_dropped, &x->skipped_count };
	int64_t *const effects[] = { &x->effects.added, &x->effects.changed, &x->effects.deleted,
		&x->effects.renamed, &x->effects.runs_on_host };

	for (size_t i = 0; i < COUNT_OF(numbers); i++)
		if (*numbers[i] < 0)
			*numbers[i] = 0;
	for (size_t i = 0; x->effects.sha256 && i < COUNT_OF(effects); i++)
		if (*effects[i] < 0)
			*effects[i] = 0;
}

/* What a run did has its digest as the subject of the statement. */
static void fill_effects(const struct record_statement *statement, struct record_read *x)
{
	for (size_t i = 0; i < statement->subjects.count; i++)
		if (!x->effects.error && !x->effects.sha256 &&
			str_eq(statement->subjects.items[i].name, RECORD_EFFECTS_SUBJECT))
			x->effects.sha256 = statement->subjects.items[i].sha256;
}

/* Those that may be missing, and are: from version 2 on the guarantees alone say it. */
static void fill_degraded(struct record_reader *r, struct record_read *x)
{
	void *items = NULL;

	for (size_t i = 0; i < x->guarantees.count; i++) {
		const struct record_read_guarantee *g = &x->guarantees.items[i];
		const char **name =
			g->holds || g->is_must
				? NULL
				: record_grow(r, &items, &x->degraded.count, sizeof(*name));

		if (name)
			*name = g->name;
	}
	x->degraded.items = items;
}

static void fill_in(
	struct record_reader *r, const struct record_statement *statement, struct record_read *x)
{
	fill_effects(statement, x);
	fill_texts(x);
	fill_numbers(x);
	if (!x->degraded.count)
		fill_degraded(r, x);
}

/* Do the parts make sense together? */
static void check_sense(struct record_reader *r, const struct record_read *x)
{
	if (!r->json.wrong && !record_is_run(x->run, true))
		json_wrong(&r->json, "a run's id");
	if (!r->json.wrong && x->outcome == RECORD_EXITED && x->status < 0)
		json_wrong(&r->json, "a status");
	for (int i = 0; i < 2; i++)
		if (!r->json.wrong && x->output.streams[i].bytes >= 0 &&
			!x->output.streams[i].sha256)
			json_wrong(&r->json, "a stream's SHA-256");
	if (!r->json.wrong && x->effects.sha256 && x->effects.error)
		json_wrong(&r->json, "effects or an error");
}

bool record_is_predicate(const char *type)
{
	return str_eq(type, RECORD_PREDICATE_TYPE) || str_eq(type, RECORD_PREDICATE_V1);
}

/* What version 1 always says, and later ones only if it is not as usual. */
static const char *const said_in_v1[] = { "in_chain", "degraded" };

static void read_record(struct record_reader *r, struct record_read *ret)
{
	struct json_field fields[COUNT_OF(record_fields)];

	memcpy(fields, record_fields, sizeof(fields));
	for (size_t i = 0; i < COUNT_OF(fields); i++)
		for (size_t k = 0; k < COUNT_OF(said_in_v1); k++)
			if (ret->version == 1 && str_eq(fields[i].key, said_in_v1[k]))
				fields[i].is_needed = true;
	JSON_READ_FIELDS(r, fields, ret);
}

int record_read_predicate(const struct record_statement *statement, struct arena *arena,
	struct record_read *ret, struct err *e)
{
	own(record_reader) struct record_reader r = { 0 };

	*ret = nothing;
	if (!record_is_predicate(statement->type))
		return err_set(e, ERR_SYS, EBADMSG,
			"it is no record of a run, which is of the type " RECORD_PREDICATE_TYPE
			", but '%.100s'",
			statement->type);
	ret->version = str_eq(statement->type, RECORD_PREDICATE_V1) ? 1 : RECORD_VERSION;
	ret->in_chain = ret->version > 1;
	record_reader_begin(&r, statement->predicate, statement->predicate_size, arena);
	read_record(&r, ret);
	if (!r.json.wrong && ret->version > 1)
		fill_in(&r, statement, ret);
	check_sense(&r, ret);
	if (record_reader_end(&r, "the record", e) == 0)
		return 0;
	*ret = nothing;
	return -EBADMSG;
}

int record_read(const char *bytes, size_t n, struct arena *arena,
	struct record_statement *ret_statement, struct record_read *ret, struct err *e)
{
	int r = record_read_statement(bytes, n, arena, ret_statement, e);

	return r < 0 ? r : record_read_predicate(ret_statement, arena, ret, e);
}
