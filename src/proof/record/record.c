#include "proof/record/record.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/json.h"
#include "base/own.h"
#include "base/str.h"
#include "plan/plan.h"
#include "spec/spec.h"

const char *const record_vantage_words[RECORD_VANTAGE_COUNT] = { "none", "inside", "keeper",
	"outside" };
const char *const record_outcome_words[RECORD_OUTCOME_COUNT] = { "refused", "exited", "signaled",
	"timed_out", "cut_off", "broken", "interrupted" };
const char *const record_stream_names[2] = { "stdout", "stderr" };
static const char *const needs[] = { "none", "may", "must" };

/* What goes without saying is not said: null, "", 0, and what a reader takes for granted. */
static void print_text(struct json *j, const char *key, const char *text)
{
	if (text && text[0])
		json_text(j, key, text);
}

static void print_count(struct json *j, const char *key, uint64_t count)
{
	if (count)
		json_int(j, key, (int64_t)count);
}

static void print_bool(struct json *j, const char *key, bool value, bool usual)
{
	if (value != usual)
		json_bool(j, key, value);
}

void record_print_time(struct json *j, const char *key, const struct timespec *t)
{
	char text[CLOCK_TEXT_SIZE];

	clock_print(t, text);
	json_text(j, key, text);
}

/* --- guarantees --- */

#define REASON_SIZE 160

bool record_holds(const struct record *r, enum plan_guarantee g)
{
	const struct record_observation *o = &r->observations[g];

	return o->vantage != RECORD_UNSEEN && o->holds;
}

/* Why one does not hold, as far as that is known. */
static const char *why_missing(
	const struct record *r, enum plan_guarantee g, char ret[static REASON_SIZE])
{
	const struct plan_promise *p = &plan_promises(r->plan)[g];
	const struct record_observation *o = &r->observations[g];

	if (o->seen[0] || !p->ability)
		return o->seen;
	snprintf(ret, REASON_SIZE, "this machine does not give %s",
		host_ability_defs[p->ability - 1].meaning);
	return ret;
}

/* Is it what is seen of it in most runs? */
static bool is_usual(enum plan_guarantee g, const char *seen)
{
	return plan_guarantee_defs[g].usual && str_eq(plan_guarantee_defs[g].usual, seen);
}

/* Names of those that hold, by from where that was seen; none of them, no list. */
static void print_holding(
	const struct record *r, enum plan_need need, enum record_vantage vantage, struct json *j)
{
	bool is_open = false;

	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
		if (plan_promises(r->plan)[g].need != need || !record_holds(r, g) ||
			r->observations[g].vantage != vantage)
			continue;
		if (!is_open)
			json_open_list(j, record_vantage_words[vantage]);
		is_open = true;
		json_text(j, NULL, plan_guarantee_defs[g].name);
	}
	if (is_open)
		json_close_list(j);
}

/* Those that do not, and from where that was seen. */
static void print_missing(const struct record *r, enum plan_need need, struct json *j)
{
	bool is_open = false;

	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
		if (plan_promises(r->plan)[g].need != need || record_holds(r, g))
			continue;
		if (!is_open)
			json_open_map(j, "missing");
		is_open = true;
		json_text(j, plan_guarantee_defs[g].name,
			record_vantage_words[r->observations[g].vantage]);
	}
	if (is_open)
		json_close_map(j);
}

static void print_need(const struct record *r, enum plan_need need, struct json *j)
{
	json_open_map(j, needs[need]);
	for (enum record_vantage v = RECORD_VANTAGE_COUNT; v-- > RECORD_UNSEEN + 1;)
		print_holding(r, need, v, j);
	print_missing(r, need, j);
	json_close_map(j);
}

void record_print_guarantees(const struct record *r, bool has_all_seen, struct json *j)
{
	const struct plan_promise *promises = plan_promises(r->plan);

	json_open_map(j, "guarantees");
	print_need(r, PLAN_MUST, j);
	print_need(r, PLAN_MAY, j);
	json_open_map(j, "declared");
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
		const char *declared = plan_str(r->plan, promises[g].declared);

		if (promises[g].need != PLAN_NONE && !str_eq(declared, RECORD_USUAL))
			json_text(j, plan_guarantee_defs[g].name, declared);
	}
	json_close_map(j);
	json_open_map(j, "seen");
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
		char reason[REASON_SIZE];
		const char *seen =
			record_holds(r, g) ? r->observations[g].seen : why_missing(r, g, reason);

		if (promises[g].need != PLAN_NONE && seen[0] && !is_usual(g, seen) &&
			(has_all_seen || (!record_holds(r, g) && r->observations[g].seen[0])))
			json_text(j, plan_guarantee_defs[g].name, seen);
	}
	json_close_map(j);
	json_close_map(j);
}

void record_print_outcome(const struct record *r, const struct err *e, struct json *j)
{
	bool has_status = r->outcome == RECORD_EXITED, has_signal = r->outcome == RECORD_SIGNALED;

	json_text(j, "outcome", record_outcome_words[r->outcome]);
	if (has_status)
		json_int(j, "status", r->status);
	if (has_signal)
		json_int(j, "signal", r->status);
	if (e->kind != ERR_NONE)
		json_text(j, "error", e->text);
}

static void print_end(const struct record *r, struct json *j)
{
	record_print_outcome(r, &r->error, j);
	if (r->ended.tv_sec)
		record_print_time(j, "ended", &r->ended);
	json_int(j, "start_us", (int64_t)(r->start_ns / 1000));
	json_int(j, "run_us", (int64_t)(r->run_ns / 1000));
}

/* --- limits that were reached --- */

static const struct {
	enum plan_guarantee limit;
	const char *text, *count; /* what a cgroup counts; NULL: nothing */
	const char *ended;        /* the text if the command was ended for it; NULL: the same */
} sentences[] = {
	{ PLAN_LIMITS_MEMORY, "the cage ran out of memory", "processes ended" },
	{ PLAN_LIMITS_PIDS, "the cage ran out of processes", "starts refused" },
	{ PLAN_LIMITS_DISK, "the cage's own file system was full when the command ended", NULL,
		"the command was ended, because what it wrote takes more than it may" },
	{ PLAN_LIMITS_TIME, "the command was ended, because its time was over", NULL },
	{ PLAN_LIMITS_OUTPUT, "the command printed more than it may, and the rest was cut off",
		NULL },
};

void record_print_reached(const struct record *r, enum plan_guarantee limit, struct buf *out)
{
	const struct plan_op *op = plan_find(r->plan, PLAN_LIMIT, plan_guarantee_defs[limit].name);
	const struct plan_promise *p = &plan_promises(r->plan)[limit];
	bool is_ended = r->ended_for == limit;
	bool is_counted = op && str_starts(plan_str(r->plan, op->b), "cgroup");
	uint64_t times = r->reached[limit];

	for (size_t i = 0; times && i < COUNT_OF(sentences); i++) {
		if (sentences[i].limit != limit)
			continue;
		buf_printf(out, "%s (%s: %s)",
			is_ended && sentences[i].ended ? sentences[i].ended : sentences[i].text,
			plan_guarantee_defs[limit].name, plan_str(r->plan, p->declared));
		if (sentences[i].count && is_counted)
			buf_printf(out, "; %s: %" PRIu64, sentences[i].count, times);
	}
}

void record_print_limit(
	const struct record *r, enum plan_guarantee limit, const char *text, struct json *j)
{
	json_text(j, "limit", plan_guarantee_defs[limit].name);
	json_text(j, "declared", plan_str(r->plan, plan_promises(r->plan)[limit].declared));
	json_int(j, "times", (int64_t)r->reached[limit]);
	json_text(j, "text", text);
}

static void print_events(const struct record *r, struct json *out)
{
	own(buf) struct buf all = { .max = RECORD_MAX_SIZE };
	struct json events, *j = &events;

	json_init(j, &all, 0);
	json_open_list(j, NULL);
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
		own(buf) struct buf text = { .max = 512 };

		record_print_reached(r, g, &text);
		if (!text.len)
			continue;
		json_open_map(j, NULL);
		json_text(j, "type", "limit_hit");
		record_print_limit(r, g, buf_text(&text), j);
		json_close_map(j);
	}
	record_print_denials(r, j);
	record_print_blocked(r, j);
	record_print_net(r, j);
	json_close_list(j);
	out->out->failed |= all.failed;
	if (all.len > strlen("[]"))
		json_raw(out, "events", buf_text(&all));
}

/* Where the project's writes were kept; NULL: they were not captured. */
static const char *capture_of(const struct plan *p)
{
	const struct plan_op *op = plan_find_captured(p);

	if (!op)
		return NULL;
	if (op->flags & PLAN_COPIED)
		return "copy";
	return op->flags & PLAN_IN_POOL ? "memory" : "disk";
}

static void print_effects(const struct record *r, struct json *j)
{
	const struct record_effects *x = &r->effects;

	if (!x->is_known && x->error.kind == ERR_NONE)
		return;
	/* Their digest is that of the subject. */
	json_open_map(j, "effects");
	if (x->is_known) {
		if (x->file[0])
			json_text(j, "file_sha256", x->file);
		print_count(j, "added", x->added);
		print_count(j, "changed", x->changed);
		print_count(j, "deleted", x->deleted);
		print_count(j, "renamed", x->renamed);
		print_count(j, "runs_on_host", x->held);
	} else {
		json_text(j, "error", x->error.text);
	}
	json_close_map(j);
}

void record_print_again(const struct record *r, struct json *j)
{
	const struct record_again *x = &r->again;
	const struct {
		const char *key;
		enum record_same same;
	} parts[] = {
		{ "same_image", x->image },
		{ "same_project", x->project },
		{ "same_overlay", x->overlay },
		{ "same_plan", x->plan },
		{ "same_filter", x->filter },
		{ "same_outcome", x->outcome },
		{ "same_effects", x->effects },
		{ "same_output", x->output },
	};

	json_text(j, "of", x->run);
	for (size_t i = 0; i < COUNT_OF(parts); i++)
		if (parts[i].same == RECORD_UNKNOWN)
			json_text(j, parts[i].key, NULL);
		else
			json_bool(j, parts[i].key, parts[i].same == RECORD_SAME);
}

static void print_overlay(const struct record *r, struct json *j)
{
	const struct plan_op *op = plan_find(r->plan, PLAN_OVERLAY, NULL);
	const struct record_overlay *x = &r->overlay;
	own(buf) struct buf scratch = { .max = RECORD_MAX_SIZE };

	if (!op)
		return;
	json_open_map(j, "overlay");
	json_text(j, "path", plan_text_a(r->plan, op, &scratch));
	json_int(j, "size", (int64_t)x->size);
	json_text(j, "sha256_before", x->before[0] ? x->before : NULL);
	json_text(j, "sha256_after", x->after[0] ? x->after : NULL);
	json_bool(j, "saved", x->is_saved);
	json_bool(j, "full", x->is_full);
	json_int(j, "skipped", (int64_t)x->skipped);
	if (x->error.kind != ERR_NONE)
		json_text(j, "error", x->error.text);
	json_close_map(j);
}

void record_print_tree(
	struct json *j, const char *key, const char *name, const struct record_tree *t)
{
	if ((!name || str_eq(name, RECORD_HOST_IMAGE)) && !t->sha256[0] &&
		t->error.kind == ERR_NONE)
		return;
	json_open_map(j, key);
	print_text(j, "name", name);
	print_text(j, "sha256", t->sha256);
	if (t->sha256[0]) {
		json_int(j, "files", (int64_t)t->files);
		json_int(j, "bytes", (int64_t)t->bytes);
	}
	if (t->list[0])
		json_text(j, "list_sha256", t->list);
	if (t->error.kind != ERR_NONE)
		json_text(j, "error", t->error.text);
	json_close_map(j);
}

void record_print_used(const struct record *r, struct json *j)
{
	const struct {
		const char *key;
		int64_t value;
	} parts[] = {
		{ "memory_peak", r->used.memory_peak },
		{ "cpu_us", r->used.cpu_us },
		{ "processes_peak", r->used.processes_peak },
		{ "written", r->used.written },
		{ "printed", r->used.printed },
	};

	json_open_map(j, "used");
	for (size_t i = 0; i < COUNT_OF(parts); i++)
		if (parts[i].value >= 0)
			json_int(j, parts[i].key, parts[i].value);
	json_close_map(j);
}

static void print_output(const struct record *r, struct json *j)
{
	const struct record_output *x = &r->output;

	if (!x->is_told)
		return;
	json_open_map(j, "output");
	print_bool(j, "together", x->is_together, false);
	for (int i = 0; i < 2; i++) {
		const struct record_stream *s = &x->streams[i];

		if (!s->is_known)
			continue;
		json_open_map(j, record_stream_names[i]);
		json_int(j, "bytes", (int64_t)s->bytes);
		if (s->bytes)
			json_text(j, "sha256", s->sha256);
		if (s->is_kept) {
			json_int(j, "kept", (int64_t)s->kept);
			json_text(j, "kept_sha256", s->kept_sha256);
		}
		json_close_map(j);
	}
	if (x->error.kind != ERR_NONE)
		json_text(j, "error", x->error.text);
	json_close_map(j);
}

uint64_t record_degraded(const struct record *r)
{
	static_assert(PLAN_GUARANTEE_COUNT <= 64, "a bit for each");
	uint64_t ret = 0;

	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++)
		if (plan_promises(r->plan)[g].need == PLAN_MAY && !r->observations[g].holds)
			ret |= (uint64_t)1 << g;
	return ret;
}

void record_print_degraded(const struct record *r, struct json *j)
{
	uint64_t degraded = record_degraded(r);

	if (!degraded)
		return;
	json_open_list(j, "degraded");
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++)
		if (degraded >> g & 1)
			json_text(j, NULL, plan_guarantee_defs[g].name);
	json_close_list(j);
}

const char *record_image_name(const struct record *r, struct buf *scratch)
{
	for (uint32_t i = 0; i < r->plan->op_count; i++)
		if (plan_is_image(&plan_ops(r->plan)[i]))
			return plan_text_a(r->plan, &plan_ops(r->plan)[i], scratch);
	return RECORD_HOST_IMAGE;
}

void record_note(struct record *r, uint32_t op, const char *why)
{
	unsigned i = r->note_count++;

	if (i >= RECORD_MAX_NOTES)
		return;
	r->notes[i].op = op;
	snprintf(r->notes[i].text, sizeof(r->notes[i].text), "%.150s", why);
}

static void print_skipped(const struct record *r, struct json *j)
{
	own(buf) struct buf scratch = { .max = RECORD_MAX_SIZE };

	if (!r->note_count)
		return;
	json_open_list(j, "skipped");
	for (unsigned i = 0; i < r->note_count && i < RECORD_MAX_NOTES; i++) {
		const struct plan_op *op = &plan_ops(r->plan)[r->notes[i].op];

		json_open_map(j, NULL);
		json_text(j, "op", plan_op_defs[op->kind].name);
		json_text(j, "a", plan_text_a(r->plan, op, &scratch));
		json_text(j, "b", plan_text_b(r->plan, op, &scratch));
		json_text(j, "why", r->notes[i].text);
		json_close_map(j);
	}
	json_close_list(j);
}

void record_print_identity(const struct record *r, struct json *j)
{
	const struct plan_op *landlock = plan_find(r->plan, PLAN_LANDLOCK, NULL);

	/* First, so that whoever lists runs need not read far. */
	record_print_time(j, "began", &r->began);
	print_text(j, "worker", r->worker);
	print_count(j, "lease", r->lease);
	print_text(j, "cage", r->cage);
	json_text(j, "bawn", BAWN_VERSION);
	json_text(j, "kernel", r->kernel);
	print_count(j, "landlock_abi", landlock ? (uint64_t)landlock->n : 0);
	print_text(j, "name", plan_str(r->plan, r->plan->name));
	json_text(j, "engine", spec_keys[SPEC_ENGINE].choices[r->plan->engine]);
	json_text(j, "level", r->plan->is_hardened ? "hardened" : "custom");
	print_text(j, "level_reasons", plan_str(r->plan, r->plan->level_reasons));
	print_text(j, "self_governance", r->self_governance);
	print_bool(j, "in_chain", !r->is_relaxed, true);
	json_text(j, "spec_sha256", r->plan->spec_digest);
	json_text(j, "plan_sha256", r->plan_digest);
	json_text(j, "filter_sha256", r->filter_digest);
	print_text(j, "capture", capture_of(r->plan));
}

void record_print_cage(const struct record *r, struct json *j)
{
	print_bool(j, "warm", r->is_warm, false);
	print_bool(j, "terminal", r->has_terminal, false);
	print_overlay(r, j);
}

void record_print(const struct record *r, struct buf *out)
{
	own(buf) struct buf scratch = { .max = RECORD_MAX_SIZE };
	const struct plan_op *preflight = plan_find(r->plan, PLAN_PREFLIGHT, NULL);
	struct json j;

	json_init(&j, out, 0);
	json_open_map(&j, NULL);
	json_int(&j, "version", RECORD_VERSION);
	json_text(&j, "run", r->run);
	print_text(&j, "session", r->session);
	record_print_identity(r, &j);
	print_text(&j, "preflight_sha256", preflight ? plan_str(r->plan, preflight->a) : NULL);
	json_bool(&j, "preflight_passed", r->is_preflight_passed);
	print_text(&j, "preflight_by", r->preflight_by);
	record_print_tree(&j, "image", record_image_name(r, &scratch), &r->image);
	record_print_tree(&j, "project", NULL, &r->project);
	print_count(&j, "escapes_dropped", r->escapes_dropped);
	print_end(r, &j);
	record_print_used(r, &j);
	print_output(r, &j);
	print_events(r, &j);
	print_effects(r, &j);
	record_print_cage(r, &j);
	if (r->again.run[0]) {
		json_open_map(&j, "again");
		record_print_again(r, &j);
		json_close_map(&j);
	}
	record_print_guarantees(r, false, &j);
	print_skipped(r, &j);
	print_count(&j, "skipped_count", r->note_count);
	json_close_map(&j);
}
