/*
 * keeper_log - says in the log what happens in a run, as it becomes known.
 *
 * Runs as:  the keeper.
 * Leaves:   events in the run's log, and what was denied in the state's too; docs/format-events.md
 *           has their members.
 * Must not: write more than once in a turn of the keeper's loop, or before the command is let go
 *           what can be written in the moment after. Nothing in the cage decides how much that is:
 *           whatever it can do often is counted, and told again at the end.
 *
 * What cannot be written does not end a run: whoever opened the log says so at its end.
 */
#include <stdio.h>

#include "base/own.h"
#include "keeper/keeper_inside.h"
#include "proof/log/log.h"

#define MOST_HELD 64 /* paths that are named, of those that are held back */

void keeper_log_write(struct keeper *k)
{
	if (k->q->log)
		log_write(k->q->log);
}

/* --- the start --- */

/* A part of the plan that may be left out was. */
static void say_degraded(struct log *l, const char *op, const char *text)
{
	struct json *j = log_begin(l, "degraded");

	json_text(j, "op", op);
	json_text(j, "text", text);
	log_end(l);
}

static void add_preflight(const struct keeper *k, struct json *j)
{
	const struct plan_op *op = plan_find(k->start.plan, PLAN_PREFLIGHT, NULL);

	if (!op || !k->record->preflight_by)
		return;
	json_bool(j, "preflight_passed", k->record->is_preflight_passed);
	json_text(j, "preflight_sha256", plan_str(k->start.plan, op->a));
	json_text(j, "preflight_by", k->record->preflight_by);
}

/* What was seen of the cage, from outside and by its init. */
static void say_inspected(struct keeper *k)
{
	const struct record *r = k->record;
	struct log *l = k->q->log;
	struct json *j = log_begin(l, "inspected");

	k->look = KEEPER_LOOK_TOLD;
	add_preflight(k, j);
	record_print_cage(r, j);
	record_print_guarantees(r, true, j);
	log_end_of_run(l);
	for (unsigned i = 0; i < r->note_count && i < RECORD_MAX_NOTES; i++) {
		const struct plan_op *op = &plan_ops(r->plan)[r->notes[i].op];

		say_degraded(l, plan_op_defs[op->kind].name, r->notes[i].text);
	}
}

void keeper_log_look(struct keeper *k)
{
	/* The preflight is carried out in a moment: one event has both. */
	bool waits = k->state == KEEPER_LET_GO && k->mode != KEEPER_RESIDENT &&
		     plan_find(k->start.plan, PLAN_PREFLIGHT, NULL);

	if (!k->q->log || k->look == KEEPER_LOOK_TOLD)
		return;
	k->look = KEEPER_LOOK_DUE;
	if (!waits)
		say_inspected(k);
}

void keeper_log_preflight(struct keeper *k)
{
	struct log *l = k->q->log;

	if (!l)
		return;
	if (k->look != KEEPER_LOOK_TOLD) {
		say_inspected(k);
		return;
	}
	add_preflight(k, log_begin(l, "preflight"));
	log_end_of_run(l);
}

/* --- the network --- */

static void say_decision(struct log *l, const struct wire_decision *d)
{
	record_print_decision(d, log_begin(l, wire_decision_names[d->kind]));
	log_end(l);
}

void keeper_log_decision(struct keeper *k, uint32_t row, bool is_new)
{
	k->gate.is_outdated[row] = !is_new;
	if (k->q->log && is_new)
		say_decision(k->q->log, &k->record->decisions[row]);
}

static void say_text(struct log *l, const char *type, const char *text)
{
	json_text(log_begin(l, type), "text", text);
	log_end(l);
}

void keeper_log_closed(struct keeper *k)
{
	if (k->q->log)
		say_text(k->q->log, "network_closed", k->record->gate.text);
}

/* --- the end --- */

static void say_held(struct log *l, const struct change_effect *x)
{
	const char *reason = change_mark_reason(x->path);
	struct json *j = log_begin(l, "write_held");

	if (!reason && x->from)
		reason = change_mark_reason(x->from);
	if (!reason)
		reason = x->note;
	json_text(j, "path", x->path);
	json_text(j, "change", change_change_word(x->change));
	json_text(j, "text", reason ? reason : "the operator protects it");
	log_end(l);
}

void keeper_log_held(struct keeper *k, const struct change_effects *x)
{
	struct log *l = k->q->log;
	size_t count = 0;

	for (size_t i = 0; l && i < x->count; i++)
		if (x->items[i].mark == CHANGE_HELD && !x->items[i].is_implied &&
			count++ < MOST_HELD)
			say_held(l, &x->items[i]);
	if (count <= MOST_HELD)
		return;
	json_int(log_begin(l, "write_held"), "more", (int64_t)(count - MOST_HELD));
	json_text(&l->json, "text", "other paths that are held back");
	log_end(l);
}

static void say_limits(struct log *l, const struct record *r)
{
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
		own(buf) struct buf text = { .max = 512 };

		record_print_reached(r, g, &text);
		if (!text.len)
			continue;
		record_print_limit(r, g, buf_text(&text), log_begin(l, "limit_hit"));
		log_end(l);
	}
}

static void say_end(struct log *l, const struct record *r, const struct err *e)
{
	struct json *j = log_begin(l, "run_end");

	record_print_outcome(r, e, j);
	if (r->effects.is_known)
		json_text(j, "effects", r->effects.digest);
	record_print_used(r, j);
	log_end_of_run(l);
}

void keeper_log_end(struct keeper *k, const struct err *e)
{
	const struct record *r = k->record;
	struct log *l = k->q->log;

	if (!l)
		return;
	if (k->look == KEEPER_LOOK_DUE)
		say_inspected(k);
	/* What was told when it was new has other numbers by now. */
	for (size_t i = 0; i < r->decision_count; i++)
		if (k->gate.is_outdated[i])
			say_decision(l, &r->decisions[i]);
	if (r->decisions_untold) {
		record_print_untold(r, log_begin(l, "decisions_untold"));
		log_end(l);
	}
	if (r->outcome != RECORD_REFUSED) {
		say_limits(l, r);
		say_end(l, r, e);
	}
	log_write(l);
}
