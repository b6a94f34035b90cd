/*
 * keeper - one run, as phases from a plan to the end of its cage.
 *
 * Runs as:     the operator.
 * Enters with: a plan, and nothing started.
 * Must not:    let the command start before the look from outside is done and good.
 *
 * Keeper and cage speak over one channel; its end is the end of the other side. A cage is made for
 * its run, or before anybody needs it, or for all commands of a session, or it is there already:
 * the table of steps says what is done for which.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/own.h"
#include "keeper/engine/keeper_engine.h"
#include "keeper/keeper_inside.h"
#include "wire/wire.h"

/* --- its parts --- */

/* In this order they are heard, and ended; the last are those that no descriptor wakes. */
const struct keeper_part *const keeper_parts[KEEPER_PARTS] = {
	&keeper_inspection_part,
	&keeper_stdio_part,
	&keeper_terminal_part,
	&keeper_signals_part,
	&keeper_caller_part,
	&keeper_sources_part,
	&keeper_gate_part,
	&keeper_member_part,
	&keeper_resident_part,
	&keeper_joined_part,
	&keeper_notify_part,
	&keeper_names_part,
	&keeper_report_part,
	&keeper_limits_part,
	&keeper_disk_part,
	&keeper_overlay_part,
	&keeper_protect_part,
	&keeper_copy_part,
	&keeper_layer_part,
	&keeper_large_part,
	&keeper_warm_part,
};

/* --- a keeper --- */

/* What the cage is told that does not have to be found out. */
static void tell_cage(struct keeper *k)
{
	const struct keeper_request *q = k->q;

	k->start = (struct cage_start){
		.plan = q->plan,
		.project = q->project,
		.git = q->git,
		.home = q->home,
		.git_identity = q->git_identity,
		.is_warm = k->mode == KEEPER_WARMING,
		.run = k->record->session ? k->record->session : k->record->run,
		.filter = q->filter.code,
		.filter_count = q->filter.count,
		.command_line = q->command_line,
		.command_line_size = q->command_line_size,
		.times = q->times,
		.stays = k->mode == KEEPER_RESIDENT,
	};
}

void keeper_init(struct keeper *k, const struct keeper_request *q, struct record *record)
{
	*k = (struct keeper){
		.q = q,
		.engine = keeper_engine_of(q->plan->engine),
		.mode = q->mode,
		.record = record,
		.process = { .pid = -1, .pidfd = -1, .channel = -1, .cpu_us = -1 },
		.clock = { .ready_ms = KEEPER_READY_MS },
		.end.limit = PLAN_GUARANTEE_COUNT,
		.signals = -1,
		.own.filter_count = -1,
		.disk = -1,
	};
	cgroup_init(&k->group);
	tell_cage(k);
	for (size_t i = 0; i < KEEPER_PARTS; i++)
		if (keeper_parts[i]->init)
			keeper_parts[i]->init(k);
}

/* What an attempt before this one left in the record. */
static void begin_record(struct record *record)
{
	record->outcome = RECORD_REFUSED;
	record->failed_op = -1;
	record->ended_for = PLAN_GUARANTEE_COUNT;
	record->is_preflight_passed = false;
	record->preflight_by = NULL;
	record_forget_decisions(record);
	record->denial_count = 0;
	record->denials_untold = 0;
	record->told = (struct record_report){ 0 };
}

int keeper_new(
	struct keeper **ret, const struct keeper_request *q, struct record *record, struct err *e)
{
	uint64_t began = clock_ns();
	struct keeper *k = q->warm;

	if (k && !keeper_warm_use(k, q, record)) {
		keeper_free(k);
		k = NULL;
	}
	begin_record(record);
	record->is_warm = k != NULL;
	if (!k) {
		k = malloc(sizeof(*k));
		if (!k)
			return err_set(e, ERR_SYS, ENOMEM, "cannot make a cage: out of memory");
		keeper_init(k, q, record);
	}
	k->clock.began_ns = began;
	*ret = k;
	return 0;
}

/* --- steps --- */

static int choose_ids(struct keeper *k, struct err *e)
{
	return keeper_choose_ids(k->q, &k->start.ids, e);
}

static int make_words(struct keeper *k, struct err *e)
{
	int r = keeper_words_make(&k->words, &k->start, e);

	k->start.arguments = k->words.arguments;
	k->start.environment = k->words.environment;
	return r;
}

static int keeper_spawn(struct keeper *k, struct err *e)
{
	int ends[2], r = wire_pair(ends);

	if (r < 0)
		return err_sys(e, -r, "cannot make a channel to the cage");
	k->process.channel = ends[0];
	k->start.channel = ends[1];
	k->start.keepers_end = ends[0];
	for (int i = 0; i < 3; i++)
		k->start.stdio[i] = k->stdio.streams[i].inside;
	r = k->engine->start(k, e);
	keeper_stdio_close_inside(&k->stdio);
	return r;
}

static int limit_making(struct keeper *k, struct err *e)
{
	(void)e;
	keeper_set_timer(&k->clock, k->clock.ready_ms);
	return 0;
}

static int sweep_groups(struct keeper *k, struct err *e)
{
	(void)e;
	cgroup_sweep(&k->group);
	return 0;
}

/* --- which are taken for which cage --- */

static const struct step {
	enum keeper_phase phase;
	const struct keeper_part *part; /* that takes it; or NULL */
	int (*take)(struct keeper *k, struct err *e);
	bool in[KEEPER_MODE_COUNT];
} steps[] = {
	/* clang-format off */
	/*                                                      fresh warming warm joining resident */
	{ KEEPER_OPEN,      &keeper_terminal_part, NULL,       { 1,     1,      0,   1,      1 } },
	{ KEEPER_OPEN,      NULL, choose_ids,                  { 1,     1,      0,   1,      1 } },
	{ KEEPER_OPEN,      NULL, make_words,                  { 1,     0,      0,   1,      1 } },
	{ KEEPER_OPEN,      &keeper_warm_part, NULL,           { 0,     1,      0,   0,      0 } },
	{ KEEPER_OPEN,      &keeper_report_part, NULL,         { 1,     0,      0,   0,      1 } },
	{ KEEPER_OPEN,      &keeper_sources_part, NULL,        { 1,     1,      1,   0,      1 } },
	{ KEEPER_OPEN,      &keeper_overlay_part, NULL,        { 1,     0,      0,   0,      1 } },
	{ KEEPER_OPEN,      &keeper_joined_part, NULL,         { 0,     0,      0,   1,      0 } },
	{ KEEPER_PREPARE,   &keeper_joined_part, NULL,         { 0,     0,      0,   1,      0 } },
	{ KEEPER_PREPARE,   &keeper_overlay_part, NULL,        { 1,     0,      0,   0,      1 } },
	{ KEEPER_PREPARE,   &keeper_layer_part, NULL,          { 1,     0,      1,   0,      1 } },
	{ KEEPER_PREPARE,   &keeper_protect_part, NULL,        { 1,     0,      0,   0,      1 } },
	{ KEEPER_PREPARE,   &keeper_limits_part, NULL,         { 1,     1,      0,   0,      1 } },
	{ KEEPER_PREPARE,   &keeper_notify_part, NULL,         { 1,     1,      0,   0,      1 } },
	{ KEEPER_PREPARE,   &keeper_stdio_part, NULL,          { 1,     1,      1,   1,      1 } },
	{ KEEPER_PREPARE,   &keeper_signals_part, NULL,        { 1,     1,      0,   1,      1 } },
	{ KEEPER_PREPARE,   &keeper_gate_part, NULL,           { 1,     1,      0,   0,      1 } },
	{ KEEPER_PREPARE,   &keeper_copy_part, NULL,           { 1,     0,      0,   0,      1 } },
	{ KEEPER_PREPARE,   &keeper_disk_part, NULL,           { 1,     0,      1,   0,      1 } },
	{ KEEPER_START,     NULL, keeper_spawn,                { 1,     1,      0,   1,      1 } },
	{ KEEPER_START,     NULL, limit_making,                { 1,     0,      1,   1,      1 } },
	{ KEEPER_START,     &keeper_member_part, NULL,         { 1,     0,      1,   0,      1 } },
	{ KEEPER_START,     &keeper_gate_part, NULL,           { 1,     1,      0,   0,      1 } },
	{ KEEPER_MEANWHILE, &keeper_inspection_part, NULL,     { 1,     1,      1,   1,      1 } },
	{ KEEPER_MEANWHILE, NULL, sweep_groups,                { 1,     0,      0,   0,      1 } },
	{ KEEPER_MEANWHILE, &keeper_copy_part, NULL,           { 1,     0,      1,   0,      1 } },
	{ KEEPER_MEANWHILE, &keeper_sources_part, NULL,        { 1,     0,      1,   1,      1 } },
	{ KEEPER_MEANWHILE, &keeper_overlay_part, NULL,        { 1,     0,      0,   0,      1 } },
	{ KEEPER_INSPECT,   &keeper_inspection_part, NULL,     { 1,     0,      1,   1,      1 } },
	{ KEEPER_INSPECT,   &keeper_overlay_part, NULL,        { 1,     0,      0,   0,      1 } },
	{ KEEPER_INSPECTED, &keeper_layer_part, NULL,          { 1,     0,      1,   1,      1 } },
	{ KEEPER_GO,        &keeper_resident_part, NULL,       { 0,     0,      0,   0,      1 } },
	{ KEEPER_LET_RUN,   &keeper_names_part, NULL,          { 1,     0,      1,   0,      1 } },
	{ KEEPER_WAIT,      &keeper_resident_part, NULL,       { 0,     0,      0,   0,      1 } },
	/* clang-format on */
};

static int keeper_take_steps(struct keeper *k, enum keeper_phase phase, struct err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < COUNT_OF(steps); i++)
		if (steps[i].phase == phase && steps[i].in[k->mode])
			r = (steps[i].part ? steps[i].part->take[phase] : steps[i].take)(k, e);
	return r;
}

/* --- phases --- */

bool keeper_needs_folder(const struct keeper *k)
{
	const struct plan *p = k->start.plan;
	const struct plan_op *end = plan_ops(p) + p->op_count;

	if (k->mode == KEEPER_WARMING || k->mode == KEEPER_JOINING)
		return false;
	for (const struct plan_op *op = plan_ops(p); op < end; op++)
		if ((op->kind == PLAN_PROJECT || op->kind == PLAN_GIT) &&
			(op->flags & PLAN_PROTECTS ||
				(op->flags & (PLAN_CAPTURED | PLAN_SHARED)) == PLAN_CAPTURED))
			return true;
	return plan_find(p, PLAN_OVERLAY, NULL) || plan_find_from(p, PLAN_BIND, PLAN_ROOT_TOLD) ||
	       plan_find(p, PLAN_IDS, "team");
}

int keeper_open(struct keeper *k, int *given, struct err *e)
{
	int r;

	k->sources.given = given;
	r = keeper_take_steps(k, KEEPER_OPEN, e);
	k->sources.given = NULL;
	return r;
}

bool keeper_needs_cage(const struct keeper *k)
{
	return k->mode == KEEPER_JOINING && k->joined.connection < 0;
}

int keeper_prepare(struct keeper *k, struct err *e)
{
	return keeper_take_steps(k, KEEPER_PREPARE, e);
}

int keeper_start(struct keeper *k, struct err *e)
{
	int r = keeper_take_steps(k, KEEPER_START, e);

	return r == 0 ? keeper_take_steps(k, KEEPER_MEANWHILE, e) : r;
}

int keeper_inspect(struct keeper *k, struct err *e)
{
	int r = keeper_watch(k, KEEPER_UNTIL_BUILT, e);

	if (r < 0 || k->state != KEEPER_BUILT)
		return r;
	keeper_protect_part.save(k);
	r = keeper_take_steps(k, KEEPER_INSPECT, e);
	k->end.has_fault = r < 0;
	if (r == 0)
		r = keeper_take_steps(k, KEEPER_INSPECTED, e);
	if (r < 0)
		keeper_log_look(k);
	return r;
}

/* The time limit in ms, or 0. */
static uint64_t time_limit(const struct keeper *k)
{
	const struct plan_op *op = plan_find(k->start.plan, PLAN_LIMIT, "limits.time");

	return op && k->mode != KEEPER_RESIDENT ? op->n : 0;
}

int keeper_go(struct keeper *k, struct err *e)
{
	int r;

	/* It ended before it stood. */
	if (k->state != KEEPER_BUILT)
		return 0;
	r = keeper_take_steps(k, KEEPER_GO, e);
	/* What the host changes from here on has a later time than what the command finds. */
	clock_pass_mark(&k->layer.to_pass);
	/* From here on what runs is the user's: startup commands are part of the time. */
	keeper_set_timer(&k->clock, time_limit(k));
	if (r == 0 && wire_send(k->process.channel, WIRE_GO, 0, NULL) < 0)
		r = err_set(e, ERR_SYS, EPIPE, "cannot start the command: the cage ended before");
	if (r == 0)
		k->state = KEEPER_LET_GO;
	keeper_log_look(k);
	if (r == 0)
		r = keeper_take_steps(k, KEEPER_LET_RUN, e);
	return r == 0 ? keeper_watch(k, KEEPER_UNTIL_STARTED, e) : r;
}

bool keeper_is_running(const struct keeper *k)
{
	return k->state == KEEPER_RUNNING;
}

int keeper_wait(struct keeper *k, struct err *e)
{
	int r;

	r = keeper_take_steps(k, KEEPER_WAIT, e);
	if (r == 0)
		r = keeper_watch(k, KEEPER_UNTIL_ENDED, e);
	if (r == 0 && !keeper_has_started(k) && k->end.limit == PLAN_GUARANTEE_COUNT)
		r = err_set(e, ERR_SYS, ECHILD, "cannot start the command: the cage ended before");
	return r;
}
