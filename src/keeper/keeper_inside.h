#pragma once

#include "cgroup/cgroup.h"
#include "keeper/keeper.h"
#include "keeper/keeper_process.h"
#include "keeper/session/keeper_join.h"
#include "keeper/session/keeper_member.h"
#include "keeper/start/keeper_gate.h"
#include "keeper/start/keeper_layers.h"
#include "keeper/start/keeper_sources.h"
#include "keeper/stream/keeper_log.h"
#include "keeper/stream/keeper_names.h"
#include "keeper/stream/keeper_notify.h"
#include "keeper/stream/keeper_report.h"
#include "keeper/stream/keeper_streams.h"

/* The keeper itself, for those of its files that need more than one of its parts. */

struct keeper {
	const struct keeper_request *q;
	struct record *record;
	enum keeper_mode mode;
	enum keeper_state state;
	uint32_t heard;     /* kinds of messages of the cage that have come, as bits */
	bool is_landlocked; /* the cage says so */

	/* What the cage is made of. */
	struct cage_start start;
	struct keeper_words words;
	struct keeper_sources sources;
	struct keeper_layer layer;
	struct keeper_overlay overlay;
	struct keeper_protect protects[CAGE_LAYER_COUNT];
	struct cgroup group;
	int disk;                 /* its own file system, or -1 */
	struct keeper_warm *warm; /* what a warm cage has of its own; or NULL */

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

/* Finds out what is to be seen; while the cage is being made there is time for that. */
int keeper_inspection_prepare(struct keeper_inspection **ret, const struct cage_start *start,
	const struct keeper_sources *sources, struct err *e);
void keeper_inspection_free(struct keeper_inspection *l);

/* And what a session brings, once it has. */
int keeper_inspection_prepare_late(
	struct keeper_inspection *l, const struct keeper_sources *sources, struct err *e);

/* The first look at a process that enters a cage: at all that it does not change afterwards. */
int keeper_inspection_begin(struct keeper_inspection *l, struct keeper *k, struct err *e);

/* What was seen. */
const struct keeper_snapshot *keeper_inspection_view(const struct keeper_inspection *l);

/* Compares the cage with the plan, guarantee by guarantee. */
int keeper_inspection_judge(
	struct keeper_inspection *l, const struct keeper *k, struct record *record, struct err *e);

/* --- keeper_warm.c --- */

/* The memory in which the first process finds its words, once there are some. */
int keeper_warm_share_words(struct keeper *k, struct err *e);

/* The keeper of a cage that waits is that of this run from here on; false: it does not fit. */
bool keeper_warm_use(struct keeper *k, const struct keeper_request *q, struct record *record);

/* What a warm cage has of its own; NULL is allowed. */
void keeper_warm_done(struct keeper_warm *w);

/* --- keeper_digest.c --- */

/* Digests of the image, and of the project where that was asked for, into the record. */
int keeper_digest(struct keeper *k, struct err *e);

/* --- keeper_limits.c --- */

/* Makes the cgroups that the plan's limits need. */
int keeper_limits_make(struct keeper *k, struct err *e);

/* Has the command printed more than it may, and is to be ended for that? */
bool keeper_ends_for_output(const struct keeper *k);

/* A limit may be the reason why something else failed. */
void keeper_limits_explain(const struct keeper *k, struct err *e);

/* How long its processes ran, as its first one knows it that still is there; or -1. */
int64_t keeper_ask_cpu_us(pid_t first);

/* What was used of the limits goes into the record, and which were reached. */
void keeper_limits_measure(struct keeper *k);
void keeper_limits_judge(struct keeper *k);

/* The controller that a limit is held by; CGROUP_COUNT: it is no limit, or by something else. */
enum cgroup_controller keeper_controller_of(const struct plan *p, const struct plan_op *op);
