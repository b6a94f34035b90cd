#pragma once

#include "base/buf.h"
#include "base/tail.h"
#include "cli/cli.h"
#include "metrics/metrics.h"
#include "store/store.h"

struct exec_result;
struct keeper;
struct plan;
struct record;
struct run;

/* One command in a session, from whoever wants it: `bawn session exec`, or a worker. */

/* Cages that wait for their session, one for each of the last plans. */
#define EXEC_POOL_SIZE 4

struct exec_pool {
	struct keeper *cages[EXEC_POOL_SIZE]; /* the one used last comes first; or NULL */
	uint64_t hits, misses;
	struct host host; /* as it was assumed to be */
	uint64_t host_ns; /* when; 0: never */
	uint64_t key;     /* the file of the one that was seen to work, or 0 */
	unsigned key_mode;
};

struct exec_job {
	const struct store_session *session; /* its spec, its project */
	const char *run;                     /* its id, given when it was queued; NULL: a new one */
	const char *worker;                  /* who does it, or NULL */
	uint64_t token;                      /* of its lease, or 0 */
	char *command_line;                  /* what ps shows, as struct cli has it */
	size_t command_line_size;
	bool is_quiet;
	int root;                /* the sessions', open; borrowed */
	int kill_signal;         /* keep_request; or 0 */
	struct tail *printed[2]; /* output and error are kept here instead: keep_request; or NULL */
	const struct run_request *request; /* its settings narrow the session's spec */
	/* Asked once the command has ended, before anything is signed: may the result still be
	 * written? 0 or -ESTALE. NULL: nobody else could have taken the session. */
	int (*is_still_ours)(void *of, struct err *e);
	/* What is known of it, before anything is let go; or NULL. */
	void (*look)(void *of, const struct record *r);
	/* All is done and signed; what comes before exec_run returns is for the next one. */
	void (*done)(void *of, struct exec_result *result);
	void *of;
	struct exec_pool *pool; /* or NULL */
	int *hold;              /* gets what keeps the workspace mounted, where it is -1; or NULL */
};

struct exec_result {
	enum store_run_state state; /* STORE_ENDED or STORE_FAILED */
	int status;
	char run[STORE_RUN_SIZE];
	uint64_t start_ns;      /* from the request until the command was let go */
	uint64_t end_ns;        /* and until its end was known */
	struct metrics counted; /* how it ended, and what was refused in it */
	struct err error;
	struct buf record; /* the signed one; the caller's: buf_done */
};

extern const struct cli_option exec_options[];

/* May it be asked in a session? What is fixed when that is created may not. */
int exec_check(const struct run_request *q, struct err *e);

/* Runs it to its end. What a person should know is said on stderr only by `session exec` itself. */
void exec_run(const struct exec_job *job, struct exec_result *ret);

/* --- cli_pool.c --- */

/* One for a plan, which is the caller's; or NULL. */
struct keeper *exec_pool_take(struct exec_pool *pool, const struct plan *p);

/* Makes one for the next run of this kind, if there is none. */
void exec_pool_fill(struct exec_pool *pool, struct run *r);

void exec_pool_done(struct exec_pool *pool);

/* --- cli_exec.c, cli_resident.c: what they share --- */

/* The workspace of the job's session, and its spec, which the job's options narrow. */
int exec_open_workspace(const struct exec_job *job, struct err *e);
int exec_load(const struct exec_job *job, struct run *r, struct err *e);

/* Starts the cage that the commands of a session share, and waits until it stands. */
int exec_start_cage(const struct exec_job *job, struct err *e);

/* In such a session: does a command ask for what only a cage of its own could have? */
int exec_check_sharing(const struct spec *s, struct err *e);
