#include "proof/record/record_read.h"

#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "proof/record/record_read_values.h"

#define RECORD_VERSION 1

#define AT(member) offsetof(struct record_read, member)

/* --- the parts of a record --- */

static bool record_read_read_version(void *reader, void *into)
{
	struct json_reader *json = reader;
	int64_t version;

	(void)into;
	if (!json_read_int(json, &version))
		return false;
	return version == RECORD_VERSION ? true : json_wrong(json, "version 1");
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
		{ "sha256", record_read_sha256, offsetof(struct record_read_stream, sha256), true },
		{ "kept", record_read_count, offsetof(struct record_read_stream, kept) },
		{ "kept_sha256", record_read_sha256,
			offsetof(struct record_read_stream, kept_sha256) },
	};

	return READ_PART(reader, fields, into);
}

static bool read_output(void *reader, void *into)
{
	static const struct json_field fields[] = {
		{ "together", record_read_bool, AT(output.is_together), true },
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

/* --- guarantees --- */

static bool read_need(void *reader, void *into)
{
	static const char *const words[] = { "may", "must" };
	unsigned which = 0;

	if (!record_read_word(reader, words, 2, &which))
		return false;
	*(bool *)into = which == 1;
	return true;
}

static bool read_vantage(void *reader, void *into)
{
	enum record_vantage *ret = into;
	unsigned which = 0;

	if (!record_read_word(reader, record_vantage_words, RECORD_VANTAGE_COUNT, &which))
		return false;
	*ret = which;
	return true;
}

static bool read_guarantee(void *reader, struct record_read_guarantee *into)
{
	static const struct json_field fields[] = {
		{ "need", read_need, offsetof(struct record_read_guarantee, is_must), true },
		{ "declared", record_read_text, offsetof(struct record_read_guarantee, declared) },
		{ "holds", record_read_bool, offsetof(struct record_read_guarantee, holds), true },
		{ "vantage", read_vantage, offsetof(struct record_read_guarantee, vantage), true },
		{ "seen", record_read_text, offsetof(struct record_read_guarantee, seen) },
	};
	struct record_reader *r = reader;

	if (!JSON_READ_FIELDS(reader, fields, into))
		return false;
	/* What nobody saw does not hold. */
	if (into->holds && into->vantage == RECORD_UNSEEN)
		return json_wrong(&r->json, "a vantage");
	return true;
}

#define MAX_GUARANTEES 256

static bool read_guarantees(void *reader, void *into)
{
	struct record_reader *r = reader;
	struct record_read *ret = into;
	void *items = NULL;
	const char *name;

	if (!json_enter_map(&r->json))
		return false;
	while (json_next_key(&r->json, &name)) {
		struct record_read_guarantee *one;

		if (record_read_find(ret, name))
			return json_wrong(&r->json, "each guarantee once");
		one = ret->guarantees.count < MAX_GUARANTEES
			      ? record_grow(r, &items, &ret->guarantees.count, sizeof(*one))
			      : NULL;
		ret->guarantees.items = items;
		if (one)
			one->name = arena_copy(r->arena, name, strlen(name));
		if (!one || !one->name)
			return json_wrong(&r->json, "fewer guarantees");
		if (!read_guarantee(reader, one))
			return false;
	}
	return !r->json.wrong;
}

const struct record_read_guarantee *record_read_find(const struct record_read *r, const char *name)
{
	for (size_t i = 0; i < r->guarantees.count; i++)
		if (str_eq(r->guarantees.items[i].name, name))
			return &r->guarantees.items[i];
	return NULL;
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
	{ "in_chain", record_read_bool, AT(in_chain), true },
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
	{ "guarantees", read_guarantees, 0, true },
	{ "degraded", record_read_texts, AT(degraded), true },
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

/* Do the parts make sense together? */
static void check_sense(struct record_reader *r, const struct record_read *x)
{
	if (!r->json.wrong && !record_is_run(x->run, true))
		json_wrong(&r->json, "a run's id");
	if (!r->json.wrong && x->outcome == RECORD_EXITED && x->status < 0)
		json_wrong(&r->json, "a status");
	if (!r->json.wrong && x->effects.sha256 && x->effects.error)
		json_wrong(&r->json, "effects or an error");
}

int record_read_predicate(const struct record_statement *statement, struct arena *arena,
	struct record_read *ret, struct err *e)
{
	own(record_reader) struct record_reader r = { 0 };

	*ret = nothing;
	if (!str_eq(statement->type, RECORD_PREDICATE_TYPE))
		return err_set(e, ERR_SYS, EBADMSG,
			"it is no record of a run, which is of the type " RECORD_PREDICATE_TYPE
			", but '%.100s'",
			statement->type);
	record_reader_begin(&r, statement->predicate, statement->predicate_size, arena);
	JSON_READ_FIELDS(&r, record_fields, ret);
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
