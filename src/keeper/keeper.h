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
 * The keeper of one run: starts the cage, inspects it from outside, lets the command go, passes on
 * signals and the bytes of terminals, and waits for its end. The user of a keeper calls one phase
 * after the other, and does its own work in between; the keeper calls nobody back.
 *
 *     keeper_new      makes a keeper, and clears the record of an earlier attempt
 *     keeper_open     opens the sources of the plan: the user approves them with keeper_shown,
 *                     and starts the session's cage where keeper_needs_cage
 *     keeper_prepare  makes what the cage is made of
 *     keeper_start    starts making the cage
 *     keeper_inspect  waits until the cage stands, and compares it with the plan
 *     keeper_go       starts the command
 *     keeper_wait     waits for its end
 *     keeper_finish   ends all of the cage, and completes the record
 *     keeper_free     frees everything
 */

enum keeper_tty {
	KEEPER_TTY_AUTO, /* if input and output are terminals */
	KEEPER_TTY_ALWAYS,
	KEEPER_TTY_NEVER,
};

/* How a run gets its cage. */
enum keeper_mode {
	KEEPER_FRESH,    /* the cage is made for this run */
	KEEPER_WARMING,  /* there is no run yet: the cage is made before one needs it */
	KEEPER_WARM,     /* the run uses a cage that was made in that way: keeper_warm.c */
	KEEPER_JOINING,  /* the command enters its session's cage, beside other commands */
	KEEPER_RESIDENT, /* the cage that these commands enter; it has no command of its own */
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
	int *hold;           /* gets what keeps the workspace mounted, where it is -1; or NULL */
	enum keeper_mode mode;
	int told;      /* resident: who had it started hears here that it stands; borrowed */
	int workspace; /* of the session that this is a run of, borrowed; -1: of none */
	enum record_output_mode output; /* what is on record of what it prints */
	bool digests_project;           /* what it is before the run goes on record */
	struct buf *project_list; /* gets what that digest is of, as much as is kept; or NULL */
	int digests;              /* the folder of those that are known, borrowed; or -1 */
	int folder; /* the run's, borrowed; it may be opened late: keeper_needs_folder; or -1 */
	bool is_start_late; /* keeper_go returns a moment after the start, if it still runs then */
	int caller;      /* the process that the command is run for, where that is another, or -1;
			    borrowed. Its signals come by this, and the command ends with it */
	int kill_signal; /* this one is not passed on: it kills the command; 0: none does */
};

/*
 * --- the phases ---
 *
 * Each returns 0, or -errno and a sentence. After a failure, of a phase or of the user's own work
 * in between, only keeper_finish and keeper_free may be called.
 */

/*
 * Makes a keeper for one attempt at a run, whose record has its `run`. Borrows `q` and `record`
 * until keeper_free. If the warm cage of q->warm fits the plan, *ret is its keeper; otherwise that
 * cage is ended.
 */
int keeper_new(
	struct keeper **ret, const struct keeper_request *q, struct record *record, struct err *e);

/* Returns true if keeper_open needs q->folder. */
bool keeper_needs_folder(const struct keeper *k);

/* Returns the folder of the private home that operation `i` shows, or NULL. */
const char *keeper_state_of(const struct plan *p, uint32_t i);

/*
 * Opens the sources of the plan, and finds the cage of a session whose commands share one. `given`
 * has for each operation an open descriptor of the folder that keeper_state_of names, or -1, and
 * may be NULL. Takes ownership of the descriptors that it uses.
 */
int keeper_open(struct keeper *k, int *given, struct err *e);

/*
 * Returns, after keeper_open, the real path of the operator's file that operation `i` shows, for
 * the user to approve; NULL if it shows none.
 */
const char *keeper_shown(const struct keeper *k, uint32_t i);

/* Returns true, after keeper_open, if the session has no cage yet. The user must start one. */
bool keeper_needs_cage(const struct keeper *k);

/* Makes layers, cgroups, the gate's rules, the filter, streams; copies what has to be copied. */
int keeper_prepare(struct keeper *k, struct err *e);

/*
 * Returns, after keeper_prepare, how much of the project or its git was copied for the run; NULL if
 * nothing was. *ret_what names which of the two.
 */
const struct tree_counts *keeper_copied(
	const struct keeper *k, enum cage_layer which, const char **ret_what);

/*
 * Starts making the cage. In the meantime this works out what the inspection must see, and takes
 * digests. The user may do its own work before it calls keeper_inspect.
 */
int keeper_start(struct keeper *k, struct err *e);

/* Waits until cage and gate stand, looks at both from outside, and compares them with the plan. */
int keeper_inspect(struct keeper *k, struct err *e);

/* Starts the command, and waits until it runs (keeper_is_running) or has ended already. */
int keeper_go(struct keeper *k, struct err *e);
bool keeper_is_running(const struct keeper *k);

/* Waits until the command and all of the cage have ended. Fails if the command never ran. */
int keeper_wait(struct keeper *k, struct err *e);

/*
 * Ends what is left of the cage, and completes the record. `r` is the result of the last phase:
 * with 0 the record says how the command ended, and `e` what else went wrong; otherwise `e` gets
 * the best reason there is. The first process of a cage that ended by itself may still be exiting.
 */
void keeper_finish(struct keeper *k, int r, struct err *e);

/*
 * Waits for the first process, removes the cgroups (record->late says if they stay) and frees
 * everything. `k` may be NULL.
 */
void keeper_free(struct keeper *k);

/* --- cages that are ready before anybody needs them: keeper_warm.c --- */

/*
 * Makes the keeper of a cage that any session of this plan can use: after keeper_open,
 * keeper_prepare and keeper_start all of the cage stands but what the session brings. It is used
 * once, as q->warm, or ended by keeper_free. Returns -EOPNOTSUPP, with `e` untouched, for a plan
 * whose cage cannot be made in advance.
 */
int keeper_new_warm(struct keeper **ret, const struct keeper_request *q, struct err *e);

/* Returns true if the warm cage fits this plan, whatever the command is. */
bool keeper_warm_is_for(const struct keeper *k, const struct plan *p);

/* Returns true if the warm cage is alive and its sources still resolve to the same inodes. */
bool keeper_warm_waits(const struct keeper *k);

/*
 * Ends all runs in a workspace: asks them, and kills those that have not ended after three quarters
 * of the time. Returns 0 also where nothing runs, -EBUSY if something still does. keeper_join.c
 */
int keeper_stop_workspace(int workspace, unsigned patience_ms, struct err *e);

/* Asks for a workspace in which nothing runs to be unmounted soon. Does not wait. keeper_join.c */
void keeper_yield_workspace(int workspace);

/*
 * Checks that the plan's engine is one that runs and can carry out every part of the plan: 0, or
 * ERR_REFUSED with the part that it cannot. Notes in the record the versions of the engine, and
 * parts that are left out because they may be.
 */
int keeper_check_plan(
	const struct plan *p, bool needs_command, struct record *record, struct err *e);

/* Write an event to q->status_fd, if there is one. */
void keeper_say_failed(const struct keeper_request *q, const struct err *e, int status);
void keeper_say_ended(const struct keeper_request *q, const struct record *record, int status);
void keeper_say_reached(
	const struct keeper_request *q, const struct record *record, enum plan_guarantee limit);

/*
 * The same for a decision about the network, which is new or has another count. The run goes on
 * meanwhile: all of these events together wait no longer than *q->patience_ms, and one that nobody
 * reads by then is dropped. The record has them all.
 */
void keeper_say_decided(
	const struct keeper_request *q, const struct record *record, const struct wire_decision *d);

/* --- what the command prints, as an asciicast --- */

/* Writes to an open file, which is borrowed, for a run of `p`. Returns 0 or -ENOMEM. */
int keeper_cast_open(struct keeper_cast **ret, int fd, const struct plan *p);

/* Writes the rest and frees `c`. Returns 0 or -errno of the first write that failed. */
int keeper_cast_close(struct keeper_cast *c);
