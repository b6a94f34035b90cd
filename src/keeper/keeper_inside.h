#pragma once

#include "cgroup/cgroup.h"
#include "keeper/keeper.h"
#include "keeper/keeper_process.h"
#include "keeper/session/keeper_join.h"
#include "keeper/start/keeper_gate.h"
#include "keeper/start/keeper_layers.h"
#include "keeper/start/keeper_sources.h"
#include "keeper/stream/keeper_log.h"
#include "keeper/stream/keeper_names.h"
#include "keeper/stream/keeper_notify.h"
#include "keeper/stream/keeper_report.h"
#include "keeper/stream/keeper_streams.h"

/* The keeper itself, for those of its files that need more than one of its parts. */

struct keeper;
struct keeper_engine;
struct pollfd;

/* What is done on the way of a run, in this order. */
enum keeper_phase {
	KEEPER_OPEN,
	KEEPER_PREPARE,
	KEEPER_START,
	KEEPER_MEANWHILE, /* the cage takes a while to be made: what is needed later is done now */
	KEEPER_INSPECT,
	KEEPER_INSPECTED, /* and it is what was planned */
	KEEPER_GO,
	KEEPER_LET_RUN, /* the cage was told to start the command */
	KEEPER_WAIT,
	KEEPER_PHASE_COUNT
};

/*
 * A part of the keeper: what it does in which phase, what it waits for while the cage lives, and
 * what it does at the end. Every member may be NULL. keeper.c has the list of them, and the table
 * that says which step is taken for which mode.
 */
struct keeper_part {
	void (*init)(struct keeper *k);
	int (*take[KEEPER_PHASE_COUNT])(struct keeper *k, struct err *e);

	/* Sets the descriptor and, if it is not POLLIN, the events; untouched: nothing is awaited.
	 */
	void (*want)(const struct keeper *k, struct pollfd *ret);

	/* Milliseconds until hear has to be called in any case, or -1. */
	int (*wait)(const struct keeper *k);

	/* Something has come; without `want`: another turn of the loop. An error ends the run. */
	int (*hear)(struct keeper *k, const struct pollfd *seen, struct err *e);
	bool is_after_cage; /* it is heard only when the cage itself says nothing */

	void (*end)(struct keeper *k);  /* the cage has ended: nobody is heard any more */
	void (*save)(struct keeper *k); /* keeps or removes what the run left, by k->end */
	void (*done)(struct keeper *k);
};

#define KEEPER_PARTS 21

extern const struct keeper_part *const keeper_parts[KEEPER_PARTS];

extern const struct keeper_part keeper_inspection_part, keeper_stdio_part, keeper_sources_part,
	keeper_gate_part, keeper_member_part, keeper_resident_part, keeper_joined_part,
	keeper_notify_part, keeper_names_part, keeper_report_part, keeper_limits_part,
	keeper_disk_part, keeper_overlay_part, keeper_protect_part, keeper_layer_part,
	keeper_terminal_part, keeper_signals_part, keeper_caller_part, keeper_copy_part,
	keeper_warm_part, keeper_large_part;

struct keeper {
	const struct keeper_request *q;
	const struct keeper_engine *engine; /* its processes are reached only through this row */
	struct record *record;
	enum keeper_mode mode;
	enum keeper_state state;
	uint32_t heard;     /* kinds of messages of the cage that have come, as bits */
	bool is_landlocked; /* the cage says so */
	enum {
		KEEPER_LOOK_NONE,
		KEEPER_LOOK_DUE, /* the log has it with what comes next, or at the end */
		KEEPER_LOOK_TOLD,
	} look; /* what was seen of the cage */

	/* What the cage is made of. */
	struct cage_start start;
	struct keeper_words words;
	struct keeper_sources sources;
	struct keeper_layer layer;
	struct keeper_overlay overlay;
	struct keeper_large large;
	struct keeper_protect protects[CAGE_LAYER_COUNT];
	struct cgroup group;
	int disk;                 /* its own file system, or -1 */
	struct keeper_warm *warm; /* what a warm cage has of its own; or NULL */

	/* What this process is itself: signals that it ignores, as bits, and its filters. */
	struct {
		uint64_t ignored;
		int filter_count; /* -1: not known yet */
	} own;

	/* Its process, and those that are watched beside it. */
	struct keeper_process process;
	struct keeper_clock clock;
	struct keeper_job job;
	struct keeper_ending end;
	int signals; /* that are for us or the command, or -1 */
	struct keeper_terminal terminal;
	struct keeper_stdio stdio;
	struct keeper_gate gate;
	struct keeper_notify notify;
	struct keeper_names names;
	struct keeper_report reports;
	struct keeper_inspection *inspection;

	/* In a session. */
	struct keeper_member member;
	struct keeper_joined joined;
	struct keeper_resident resident;
};

/* The command was started; it may have ended since. */
static inline bool keeper_has_started(const struct keeper *k)
{
	return k->clock.started_ns != 0;
}

/* A keeper without anything, and the end of all that it has. */
void keeper_init(struct keeper *k, const struct keeper_request *q, struct record *record);
void keeper_release(struct keeper *k);

/* --- keeper_inspection.c --- */

struct keeper_inspection;

/* The first look at a process that enters a cage: at all that it does not change afterwards. */
int keeper_inspection_begin(struct keeper_inspection *l, struct keeper *k, struct err *e);

/* --- keeper_warm.c --- */

/* The keeper of a cage that waits is that of this run from here on; false: it does not fit. */
bool keeper_warm_use(struct keeper *k, const struct keeper_request *q, struct record *record);

/* --- keeper_limits.c --- */

/* Notes in the record which limits were reached. */
void keeper_limits_judge(struct keeper *k);

/* The controller that a limit is held by; CGROUP_COUNT: it is no limit, or by something else. */
enum cgroup_controller keeper_controller_of(const struct plan *p, const struct plan_op *op);
