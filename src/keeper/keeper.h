#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/tail.h"
#include "base/tree.h"
#include "cage/cage.h"
#include "change/change.h"
#include "plan/plan.h"
#include "proof/log/log.h"
#include "proof/record/record.h"
#include "seccomp/filter.h"

/*
 * The keeper of one run: starts the cage, looks at it from outside, lets the command go, passes
 * signals and terminals' bytes, and sees to its end. Whoever has something run calls one phase
 * after the other, and does what is its own in between; the keeper calls nobody back.
 *
 *     keeper_new      a keeper, and a record in which nothing of an earlier attempt is
 *     keeper_open     what the plan shows is open: the user approves it with keeper_shown, and
 * starts the session's cage where keeper_needs_cage keeper_prepare  what the cage is made of is
 * there keeper_start    the cage is being made keeper_inspect  it stands, and is what was planned
 *     keeper_go       the command runs
 *     keeper_wait     it has ended
 *     keeper_finish   so has all of the cage, and the record is complete
 *     keeper_free     nothing is left
 */

enum keeper_tty {
	KEEPER_TTY_AUTO, /* if input and output are terminals */
	KEEPER_TTY_ALWAYS,
	KEEPER_TTY_NEVER,
};

/* How a run comes to its cage. */
enum keeper_mode {
	KEEPER_FRESH,    /* it has one made for itself */
	KEEPER_WARMING,  /* it is none yet: the cage is made before anybody needs it */
	KEEPER_WARM,     /* it uses one that was made in that way: keeper_warm.c */
	KEEPER_JOINING,  /* it enters that of its session, in which other commands run too */
	KEEPER_RESIDENT, /* it has no command, and is the cage that they join */
	KEEPER_MODE_COUNT
};

struct keeper_cast;
struct keeper;

#define KEEPER_PATIENCE_MS 1000

struct keeper_request {
	const struct plan *plan;
	const char *project, *git, *home; /* git and home may be NULL */
	const char *git_identity;         /* a section of a git configuration, or NULL */
	struct filter filter;
	char *command_line; /* bawn's own, as ps shows it */
	size_t command_line_size;
	enum keeper_tty tty;      /* has the command a terminal? */
	bool is_unfiltered;       /* what it prints reaches the operator's terminal as it is */
	struct keeper_cast *cast; /* what it prints goes here too; or NULL */
	struct tail *printed[2];  /* output and error are kept here, and go nowhere; or NULL */
	int status_fd;            /* events as lines of JSON, or -1 */
	int *patience_ms;         /* what its reader of decisions has left; NULL: nothing */
	struct log *log;          /* events go here as they happen; or NULL */
	struct cage_times *times; /* shared with the cage, or NULL */
	const char *const *held;  /* paths of the project that the operator protects */
	size_t held_count;
	struct change_progress progress;
	struct keeper *warm; /* a cage that waits for a session, used up by keeper_new; or NULL */
	int *hold; /* gets what keeps the workspace mounted, where it is -1: keeper_pin_workspace */
	enum keeper_mode mode;
	int told;      /* resident: who had it started hears here that it stands; borrowed */
	int workspace; /* of the session that this is a run of, borrowed; -1: of none */
	enum record_output_mode output; /* what is on record of what it prints */
	bool digests_project;           /* what it is before the run goes on record */
	struct buf *project_list; /* gets what that digest is of, as much as is kept; or NULL */
	int digests;              /* the folder of those that are known, borrowed; or -1 */
	int folder; /* the run's, borrowed; it may be opened late: keeper_needs_folder; or -1 */
	bool is_start_late; /* keeper_go returns a moment after the start, if it still runs then */
	int kill_signal;    /* this one is not passed on: it kills the command; 0: none does */
};

/*
 * --- the phases ---
 *
 * Each gives 0, or -errno and a sentence. After a failure of one, or of the user's own in between,
 * keeper_finish and keeper_free are what is left.
 */

/*
 * A keeper for one attempt at a run, whose record has its `run`. Both are borrowed until
 * keeper_free. Where q->warm fits the plan, it is that cage's keeper from here on; otherwise that
 * one is ended.
 */
int keeper_new(
	struct keeper **ret, const struct keeper_request *q, struct record *record, struct err *e);

/* Before keeper_open: is q->folder needed already? */
bool keeper_needs_folder(const struct keeper *k);

/* The folder of the private home that is kept, and that operation `i` shows; NULL: none. */
const char *keeper_state_of(const struct plan *p, uint32_t i);

/*
 * Opens what the plan shows, and finds the cage of a session whose commands share one. `given` has
 * for each operation the folder that keeper_state_of names, which is taken out, or -1; NULL: there
 * is none.
 */
int keeper_open(struct keeper *k, int *given, struct err *e);

/*
 * After keeper_open: the real path of what operation `i` shows of the operator's, for the user to
 * approve; NULL: it shows nothing of the kind.
 */
const char *keeper_shown(const struct keeper *k, uint32_t i);

/* After keeper_open: has the session no cage yet? The user starts one, which is ready afterwards.
 */
bool keeper_needs_cage(const struct keeper *k);

/* Makes layers, cgroups, the gate's rules, the filter, streams; copies what has to be copied. */
int keeper_prepare(struct keeper *k, struct err *e);

/*
 * After keeper_prepare: what of the project or its git was copied for the run; NULL: nothing.
 * *ret_what names which of the two.
 */
const struct tree_counts *keeper_copied(
	const struct keeper *k, enum cage_layer which, const char **ret_what);

/*
 * Starts the cage. It takes a while to be made: in the meantime this finds out what is to be seen
 * in it, and takes digests; the user may do what it has to before the command runs.
 */
int keeper_start(struct keeper *k, struct err *e);

/* Waits until cage and gate stand, looks at both from outside, and compares them with the plan. */
int keeper_inspect(struct keeper *k, struct err *e);

/* Lets the command go, and waits until it runs: keeper_is_running, unless it is over already. */
int keeper_go(struct keeper *k, struct err *e);
bool keeper_is_running(const struct keeper *k);

/* Waits until the command has ended, and all of the cage. A command that never ran is an error. */
int keeper_wait(struct keeper *k, struct err *e);

/*
 * Ends what is left of the cage, and completes the record. `r` is what the last phase gave: with 0
 * the record says how the command ended, and `e` what else went wrong; otherwise `e` is made the
 * best reason there is. When the cage ended by itself, its first process is still on its way out.
 */
void keeper_finish(struct keeper *k, int r, struct err *e);

/* Waits for that, removes the cgroups (record->late, if they stay) and frees all. NULL is allowed.
 */
void keeper_free(struct keeper *k);

/* --- cages that are ready before anybody needs them: keeper_warm.c --- */

/*
 * The keeper of one for any session of this plan: with keeper_open, keeper_prepare and keeper_start
 * all of it stands but what a session brings, and nothing of any is in it. It is used once, as
 * q->warm, or ended by keeper_free. -EOPNOTSUPP, with nothing said: for this plan it cannot be
 * done.
 */
int keeper_new_warm(struct keeper **ret, const struct keeper_request *q, struct err *e);

/* Does the warm cage fit this plan, whatever its command is? */
bool keeper_warm_is_for(const struct keeper *k, const struct plan *p);

/* Is it alive, and do the declared names still lead to what it shows? */
bool keeper_warm_waits(const struct keeper *k);

/*
 * Ends all that runs in a workspace: asks, and kills what has not ended after half of that time.
 * 0 also where nothing runs; -EBUSY: something still does. keeper_member.c
 */
int keeper_stop_workspace(int workspace, unsigned patience_ms, struct err *e);

/*
 * Keeps a workspace mounted between runs, as long as the descriptor is open that this returns;
 * -ENOENT: it is not mounted. On it a message comes when the session is stopped.
 */
int keeper_pin_workspace(int workspace, struct err *e);

/*
 * What of a plan this version carries out itself: 0, or ERR_REFUSED with the part it does not.
 * Parts that may be missing are noted in the record.
 */
int keeper_check_plan(
	const struct plan *p, bool needs_command, struct record *record, struct err *e);

/* Says an event on q->status_fd, if there is one. */
void keeper_say_failed(const struct keeper_request *q, const struct err *e, int status);
void keeper_say_ended(const struct keeper_request *q, const struct record *record, int status);
void keeper_say_reached(
	const struct keeper_request *q, const struct record *record, enum plan_guarantee limit);

/*
 * The same for a decision about the network, which is new or has another count. The run goes on
 * while they are told: all together they wait no longer than *q->patience_ms, and one that nobody
 * takes by then is left out. The record has them all.
 */
void keeper_say_decided(
	const struct keeper_request *q, const struct record *record, const struct wire_decision *d);

/* --- what the command prints, as an asciicast --- */

/* Into an open file, which is borrowed, for a run of `p`. -ENOMEM or 0. */
int keeper_cast_open(struct keeper_cast **ret, int fd, const struct plan *p);

/* Writes the rest; 0 or -errno of the first write that failed. Frees it. */
int keeper_cast_close(struct keeper_cast *c);
