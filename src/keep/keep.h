#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/tail.h"
#include "base/tree.h"
#include "cage/cage.h"
#include "filter/filter.h"
#include "log/log.h"
#include "plan/plan.h"
#include "record/record.h"
#include "work/work.h"

/*
 * The keeper of one run: starts the cage, looks at it from outside, lets the command go, passes
 * signals and terminals' bytes, and sees to its end.
 */

enum keep_tty {
	KEEP_TTY_AUTO, /* if input and output are terminals */
	KEEP_TTY_ALWAYS,
	KEEP_TTY_NEVER,
};

/* How a run comes to its cage. */
enum keep_mode {
	KEEP_FRESH,    /* it has one made for itself */
	KEEP_WARM,     /* one was made before anybody needed it: keep_warm.c */
	KEEP_JOINING,  /* it enters that of its session, in which other commands run too */
	KEEP_RESIDENT, /* it has no command, and is the cage that they join */
	KEEP_MODE_COUNT
};

struct keep_cast;
struct keep_warm;

#define KEEP_PATIENCE_MS 1000

struct keep_request {
	const struct plan *plan;
	const char *project, *git, *home; /* git and home may be NULL */
	const char *git_identity;         /* a section of a git configuration, or NULL */
	struct filter filter;
	char *command_line; /* bawn's own, as ps shows it */
	size_t command_line_size;
	enum keep_tty tty;        /* has the command a terminal? */
	bool is_unfiltered;       /* what it prints reaches the operator's terminal as it is */
	struct keep_cast *cast;   /* what it prints goes here too; or NULL */
	struct tail *printed[2];  /* output and error are kept here, and go nowhere; or NULL */
	int status_fd;            /* events as lines of JSON, or -1 */
	int *patience_ms;         /* what its reader of decisions has left; NULL: nothing */
	struct log *log;          /* events go here as they happen; or NULL */
	struct cage_times *times; /* shared with the cage, or NULL */
	const char *const *held;  /* paths of the project that the operator protects */
	size_t held_count;
	struct work_progress progress;
	struct keep_warm *warm; /* a cage that waits for a session, used up by this; or NULL */
	int *hold; /* gets what keeps the workspace mounted, where it is -1: keep_hold_workspace */
	enum keep_mode mode;
	/* Joining: starts the session's cage where there is none, which says WIRE_READY at `told`,
	 * or WIRE_FAILED. */
	int (*start_cage)(void *of, int told, struct err *e);
	int told;      /* resident: that descriptor, borrowed */
	int workspace; /* of the session that this is a run of, borrowed; -1: of none */
	enum record_output_mode output; /* what is on record of what it prints */
	bool digests_project;           /* what it is before the run goes on record */
	struct buf *project_list; /* gets what that digest is of, as much as is kept; or NULL */
	int digests;              /* the folder of those that are known, borrowed; or -1 */
	/* The run's folder, which is the caller's; made when it is first asked for. */
	int (*open_folder)(void *of, struct err *e);
	/* A folder that is kept for the private home, made when it is first asked for. */
	int (*open_state)(void *of, const char *name, struct err *e);
	/* Done while the cage is being made, and before the command may start. */
	int (*meanwhile)(void *of, struct err *e);
	/* Of the project or its git so much was copied for the run; or NULL. */
	void (*copied)(void *of, const char *what, const struct tree_counts *counts);
	/* The command runs, and the record says what was seen before that. */
	void (*started)(void *of);
	bool is_start_late; /* that is told after a moment, if it still runs then */
	int kill_signal;    /* this one is not passed on: it kills the command; 0: none does */
	/* The command has ended, and the record is complete; `e` says what else went wrong. */
	void (*afterwards)(void *of, const struct err *e);
	/* May a source of the plan be shown, which leads to `real`? Asked before anything is
	 * started. */
	int (*approve)(
		void *of, enum plan_root root, const char *path, const char *real, struct err *e);
	void *of;
};

/*
 * Runs the plan to its end and fills the record, whose `run` is set. 0 when the command ran, and
 * then the record says how it ended; -errno and a sentence when it did not.
 */
int keep_run(const struct keep_request *q, struct record *record, struct err *e);

/* --- cages that are ready before anybody needs them: keep_warm.c --- */

/*
 * Makes one for any session of this plan: all of it stands but what a session brings, and nothing
 * of any is in it. What is printed in it is kept. -EOPNOTSUPP, with nothing said: for this plan it
 * cannot be done. It is used once, by keep_run.
 */
int keep_warm_make(const struct keep_request *q, struct keep_warm **ret, struct err *e);

/* Is it the one for this plan, whatever its command is? */
bool keep_warm_is_for(const struct keep_warm *w, const struct plan *p);

/* Is it there still, and what it shows of the host what the declared names lead to now? */
bool keep_warm_waits(const struct keep_warm *w);

/* Ends it, if nobody has used it. */
void keep_warm_free(struct keep_warm *w);

/*
 * Ends all that runs in a workspace: asks, and kills what has not ended after half of that time.
 * 0 also where nothing runs; -EBUSY: something still does. keep_share.c
 */
int keep_stop_workspace(int workspace, unsigned patience_ms, struct err *e);

/*
 * Keeps a workspace mounted between runs, as long as the descriptor is open that this returns;
 * -ENOENT: it is not mounted. On it a message comes when the session is stopped.
 */
int keep_hold_workspace(int workspace, struct err *e);

/*
 * What of a plan this version carries out itself: 0, or ERR_REFUSED with the part it does not.
 * Parts that may be missing are noted in the record.
 */
int keep_check_plan(const struct plan *p, bool needs_command, struct record *record, struct err *e);

/* Says an event on q->status_fd, if there is one. */
void keep_say_failed(const struct keep_request *q, const struct err *e, int status);
void keep_say_ended(const struct keep_request *q, const struct record *record, int status);
void keep_say_reached(
	const struct keep_request *q, const struct record *record, enum plan_guarantee limit);

/*
 * The same for a decision about the network, which is new or has another count. The run goes on
 * while they are told: all together they wait no longer than *q->patience_ms, and one that nobody
 * takes by then is left out. The record has them all.
 */
void keep_say_decided(
	const struct keep_request *q, const struct record *record, const struct wire_decision *d);

/* --- what the command prints, as an asciicast --- */

/* Into an open file, which is borrowed, for a run of `p`. -ENOMEM or 0. */
int keep_cast_open(struct keep_cast **ret, int fd, const struct plan *p);

/* Writes the rest; 0 or -errno of the first write that failed. Frees it. */
int keep_cast_close(struct keep_cast *c);
