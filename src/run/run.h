#pragma once

#include "change/change.h"
#include "keeper/keeper.h"
#include "proof/log/log.h"
#include "proof/sign/sign.h"
#include "proof/verify/verify.h"
#include "run/run_spec.h"

/* One run, from a settled spec to its exit status and its record. */

#define RUN_FAILED 125 /* the exit status where bawn refused or failed */

struct run;

/*
 * Who hears what a person should know of a run. The run itself prints nothing. All functions must
 * be there; `text` is NULL where the hint is about what was said before.
 */
struct run_sink {
	void *of;
	bool is_quiet; /* nothing but errors is wanted */
	struct change_progress progress;
	void (*say)(void *of, const char *text, const char *hint);
	void (*diags)(void *of, const struct spec *s);
	/* There is no cage for it, and why. */
	void (*refused)(void *of, const struct run *r, const struct err *e);
	/* The command has ended: the record says how. `e` is what failed nevertheless, if anything.
	 */
	void (*ended)(void *of, const struct run *r, const struct err *e);
	/* All is done, and r->request.times says when. Called only where that was asked for. */
	void (*timed)(void *of, const struct run *r);
};

#define RUN_MOST_SUBJECTS 64

/* Files of the project, by paths below it; borrowed from the request. */
struct run_subjects {
	const char *names[RUN_MOST_SUBJECTS];
	size_t count;
};

struct run_job;
struct run_again;

struct run {
	const struct run_sink *sink;
	const struct run_request *asked;
	struct spec spec;
	struct run_place place;
	struct host host;
	struct plan *plan; /* owned */
	struct filter_made made;
	struct keeper_request request;
	struct record record;
	struct log log;
	struct run_subjects subjects;
	struct run_again *again; /* the run that is repeated; borrowed, or NULL */
	struct plan_choice choice;
	int state;                       /* the folder of the operator's state, or -1 */
	int home_lock;                   /* held while what is kept of the home is used, or -1 */
	int digests;                     /* the folder of what is known of trees, or -1 */
	int folder, copy;                /* where the record goes, and also goes, or -1 */
	int patience_ms;                 /* with who reads decisions */
	int cast;                        /* where what is printed goes too, or -1 */
	struct buf plan_text, spec_text; /* until they are written */
	struct buf project_list;         /* what the project's digest is of */
	uint64_t keep_ns;                /* when the keeper began */
	uint64_t began_ns;
	/* What the command did is over, is on record, and the cage is gone. 0: not yet. */
	uint64_t ended_ns, recorded_ns, gone_ns;
	struct run_pool *pool;     /* of cages that wait, or NULL */
	bool is_unrecorded;        /* it could not be written */
	struct buf *signed_copy;   /* and also here, or NULL */
	const struct run_job *job; /* that it is for, in a session whose commands share a cage */
	/* Before it is signed: is it still ours to? Of a worker's; or NULL. */
	int (*is_still_ours)(void *of, struct err *e);
	void *of;
};

/* All is borrowed. `line` is what ps shows of this process, in one piece of memory. */
void run_init(struct run *r, const struct run_sink *sink, const struct run_request *asked,
	char *line, size_t line_size);

/* Takes the descriptor for events that was asked for. 0 or -errno. */
int run_open_status(struct run *r, struct err *e);

/* Says something to the sink; an error with its hint. */
void run_tell(const struct run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void run_tell_err(const struct run *r, const struct err *e);

/* Makes the plan of the settled spec, and opens what the run needs beside its cage. */
int run_plan(struct run *r, struct err *e);

/* Has a keeper make the cage of the run's plan, in which nothing runs yet. */
int run_start_cage(struct run *r, struct keeper *k, struct err *e);

/* Runs what the settled spec says, and returns the exit status. */
int run_to_end(struct run *r);

/* Signs what others could not, and lets go of everything. */
void run_done(struct run *r);

/* --- run_record.c --- */

/* Opens what the record needs as soon as anything is known of the run; a refusal is an event too.
 */
void run_open_log(struct run *r);

/* The run's folder: made when it is first asked for, and ours until the end. */
int run_open_folder(struct run *r, struct err *e);

/* A folder kept for the private home of this project's runs; made where it is missing. */
int run_open_state(struct run *r, const char *name, struct err *e);

/* The folder of digests of trees, where the run makes some. Without one they are made anew. */
void run_open_digests(struct run *r);

/* What the record needs, and a place for it: without one nothing is run. */
int run_prepare_record(struct run *r, struct err *e);

/* The command runs: what is known by now is in its record if we do not live to say more. */
void run_record_start(struct run *r);

/* The command was not started, or nobody knows: says why, and signs that. */
void run_record_refusal(struct run *r, const struct err *e);

/* The command has ended. */
void run_record_end(struct run *r, const struct err *e);

/* Signs what other keepers left that died. */
void run_sign_interrupted(struct run *r);

void run_close_record(struct run *r);

/* --- run_again.c: all of them do nothing where no run is repeated --- */

/* The record of the run to be repeated, which was verified; the spec beside it is the run's own. */
struct run_again {
	const struct verify_record *of;
	struct verify_report *report; /* gets which effects differ */
	int folder;                   /* of the record, or -1; borrowed */
	char *spec;
	size_t spec_size;
	bool is_said; /* what is not known of it */
};

void run_again_done(struct run_again *a);

/* Is all that was asked for something that a repeated run can have? */
int run_check_again_request(const struct run_request *q, struct err *e);

/*
 * Loads the spec of r->again. 0 or -errno; *ret_is_spec: r->spec has diagnostics, which say it.
 * r->spec is initialised in any case.
 */
int run_load_again(struct run *r, bool *ret_is_spec, struct err *e);

/* Are image, project and overlay, whose digests are in the record by now, what they were? */
int run_check_again(struct run *r, struct err *e);

/* The command has ended: what is the same goes into record and log; and is told. */
void run_compare_again(struct run *r);
void run_say_again(const struct run *r);

/* The status with --same. */
int run_again_status(const struct run *r, int status);

/* --- run_subjects.c --- */

/* Those of --subject, or what is wrong with one. */
int run_take_subjects(struct run *r, struct err *e);

/* Their digests as the run left them: how many. One that has none is said. */
size_t run_find_subjects(struct run *r, struct record_subject *ret);

/* What the run did, which is known; `ret` is initialised. */
int run_read_effects(const struct run *r, struct change_effects *ret, struct err *e);

/* --- run_key.c --- */

/*
 * The operator's signing key, made where there is none; wiped by the caller. Where the log of the
 * state does not say that it was made, *ret_unlogged is why.
 */
int run_take_key(int state, struct sign_key *ret, struct err *ret_unlogged, struct err *e);

/* Writes to the log of the state that a key was made; `former` may be NULL. */
int run_note_key(int state, const struct sign_key *key, const char *former, struct err *e);
