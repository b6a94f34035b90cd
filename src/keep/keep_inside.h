#pragma once

#include "cgroup/cgroup.h"
#include "keep/keep.h"
#include "keep/keep_gate.h"
#include "keep/keep_join.h"
#include "keep/keep_layers.h"
#include "keep/keep_log.h"
#include "keep/keep_names.h"
#include "keep/keep_notify.h"
#include "keep/keep_process.h"
#include "keep/keep_share.h"
#include "keep/keep_sources.h"
#include "keep/keep_streams.h"
#include "keep/keep_told.h"

/* The keeper itself, for those of its files that need more than one of its parts. */

struct keeper {
	const struct keep_request *q;
	struct record *record;
	enum keep_mode mode;
	enum keep_state state;
	uint32_t heard;     /* kinds of messages of the cage that have come, as bits */
	bool is_landlocked; /* the cage says so */

	/* What the cage is made of. */
	struct cage_start start;
	struct keep_words words;
	struct keep_sources sources;
	struct keep_layer layer;
	struct keep_overlay overlay;
	struct keep_hold holds[CAGE_LAYER_COUNT];
	struct cgroup group;
	int disk;               /* its own file system, or -1 */
	struct keep_warm *warm; /* what a warm cage has of its own; or NULL */

	/* Its process, and those that are watched beside it. */
	struct keep_process process;
	struct keep_clock clock;
	struct keep_job job;
	struct keep_ending end;
	int signals; /* that are for us or the command, or -1 */
	struct keep_terminal terminal;
	struct keep_stdio stdio;
	struct keep_gate gate;
	struct keep_notify notify;
	struct keep_names names;
	struct keep_told told;
	struct keep_look *look;

	/* In a session. */
	struct keep_share share;
	struct keep_joined joined;
	struct keep_resident resident;
};

/* The command was started; it may have ended since. */
static inline bool keep_has_started(const struct keeper *k)
{
	return k->clock.started_ns != 0;
}

/* A keeper without anything, and the end of all that it has. */
void keep_init(struct keeper *k, const struct keep_request *q, struct record *record);
void keep_release(struct keeper *k);

/* --- keep_look.c --- */

struct keep_look;

/* Finds out what is to be seen; while the cage is being made there is time for that. */
int keep_look_prepare(struct keep_look **ret, const struct cage_start *start,
	const struct keep_sources *sources, struct err *e);
void keep_look_free(struct keep_look *l);

/* And what a session brings, once it has. */
int keep_look_prepare_late(struct keep_look *l, const struct keep_sources *sources, struct err *e);

/* The first look at a process that enters a cage: at all that it does not change afterwards. */
int keep_look_begin(struct keep_look *l, struct keeper *k, struct err *e);

/* What was seen. */
const struct keep_view *keep_look_view(const struct keep_look *l);

/* Compares the cage with the plan, guarantee by guarantee. */
int keep_look(struct keep_look *l, const struct keeper *k, struct record *record, struct err *e);

/* --- keep_warm.c --- */

/* The memory in which the first process finds its words, once there are some. */
int keep_warm_share_words(struct keeper *k, struct err *e);

/* The keeper of a cage that waits is that of this run from here on; false: it does not fit. */
bool keep_warm_use(struct keeper *k, const struct keep_request *q, struct record *record);

/* What a warm cage has of its own; NULL is allowed. */
void keep_warm_done(struct keep_warm *w);

/* --- keep_digest.c --- */

/* Digests of the image, and of the project where that was asked for, into the record. */
int keep_digest(struct keeper *k, struct err *e);

/* --- keep_limits.c --- */

/* Makes the cgroups that the plan's limits need. */
int keep_limits_make(struct keeper *k, struct err *e);

/* Has the command printed more than it may, and is to be ended for that? */
bool keep_ends_for_output(const struct keeper *k);

/* A limit may be the reason why something else failed. */
void keep_limits_explain(const struct keeper *k, struct err *e);

/* How long its processes ran, as its first one knows it that still is there; or -1. */
int64_t keep_ask_cpu_us(pid_t first);

/* What was used of the limits goes into the record, and which were reached. */
void keep_limits_measure(struct keeper *k);
void keep_limits_judge(struct keeper *k);

/* The controller that a limit is held by; CGROUP_COUNT: it is no limit, or by something else. */
enum cgroup_controller keep_controller_of(const struct plan *p, const struct plan_op *op);
