#pragma once

#include <stdatomic.h>
#include <sys/types.h>

#include "base/buf.h"
#include "proof/log/log.h"
#include "session/metrics/metrics.h"
#include "session/worker/worker.h"

/* What the files of the worker share. Nobody else includes it. */

/* --- worker_letter.c: what the processes tell each other --- */

enum worker_kind {
	/* From the coordinator to a runner, which does one of them at a time. */
	WORKER_RUN,    /* head, spec, project, request → head, record, output, error */
	WORKER_MOVE,   /* head: makes its workspace out of another one */
	WORKER_UNPACK, /* head, bytes: or out of what was saved */
	WORKER_PACK,   /* head → head, bytes */
	WORKER_YES,    /* to what it asked */
	WORKER_NO,
	/* From a runner. */
	WORKER_ASK,  /* may the result still be written? */
	WORKER_HOLD, /* with what keeps its session mounted */
	WORKER_DONE,
	/* Between coordinator and warden. */
	WORKER_START,   /* a runner, for a slot */
	WORKER_STARTED, /* with the runner's channel, and then */
	WORKER_PROCESS, /* with its pidfd */
	WORKER_FAILED,  /* it could not be: an errno */
	WORKER_KIND_COUNT,
};

#define WORKER_MAX_PARTS 4

struct worker_part {
	const void *bytes;
	size_t size;
};

/* Parts are in sealed memory, which is mapped; borrowed from the letter. */
struct worker_letter {
	enum worker_kind kind;
	unsigned slot;
	int number;
	int fd; /* that came with it, owned; or -1 */
	size_t count;
	struct worker_part parts[WORKER_MAX_PARTS];
	void *map;
	size_t map_size;
};

int worker_send(int channel, enum worker_kind kind, const struct worker_part *parts, size_t count);
int worker_send_note(int channel, enum worker_kind kind, unsigned slot, int number, int fd);

/* Waits. -EPIPE: the other side has ended; -EBADMSG: it is no letter. */
int worker_receive(int channel, struct worker_letter *ret);
void worker_letter_done(struct worker_letter *l);

/* A part that is a struct of this size, or NULL. */
const void *worker_struct(const struct worker_letter *l, size_t i, size_t size);

/* A part that is a text; its NUL is part of it. NULL: it is none. */
const char *worker_text(const struct worker_letter *l, size_t i);

/* The first part of what a runner is asked. */
struct worker_head {
	struct store_session session; /* its pointers are the sender's, and mean nothing */
	char run[STORE_RUN_SIZE], worker[STORE_NAME_SIZE];
	uint64_t from;    /* the workspace that WORKER_MOVE is about */
	bool wants_mount; /* it is to stay mounted after the run */
};

/* The first part of WORKER_DONE. */
struct worker_answer {
	enum store_run_state state;
	int status;
	struct metrics counted;
	struct err
		error; /* of a move, an unpacking or a packing: kind ERR_NONE where all is well */
};

/* --- worker_warden.c --- */

/* Memory of the coordinator and the warden. */
struct worker_shared {
	_Atomic uint64_t until_ns; /* of CLOCK_BOOTTIME: how long the leases hold */
	struct {
		_Atomic bool is_busy;
		_Atomic bool is_fenced; /* it was ended because they did not */
	} slots[WORKER_MAX_SLOTS];
};

/* Of the clock that goes on while the machine sleeps. */
uint64_t worker_boot_ns(void);

/* Starts it; *ret_channel and *ret_pidfd are the caller's. */
int worker_start_warden(const struct worker_settings *s, struct worker_shared *shared,
	int *ret_channel, int *ret_pidfd, struct err *e);

/* --- worker.c: the coordinator --- */

enum worker_step {
	WORKER_IDLE,
	WORKER_MOVING,
	WORKER_RUNNING,
	WORKER_PACKING,
	WORKER_REPORTING, /* how it ended is known here, and not yet in the store */
};

/* Why a run is ended before its time. */
enum worker_cause {
	WORKER_NO_CAUSE,
	WORKER_LEASE_LOST, /* another has the session: nothing is reported */
	WORKER_FENCED,     /* the lease was not renewed in time: reported as lost, if at all */
	WORKER_STOPPED,    /* the session was stopped */
	WORKER_GOING,      /* this worker was */
	WORKER_CAUSE_COUNT,
};

struct worker_slot {
	unsigned number;
	enum worker_step step; /* of its run */
	enum worker_cause cause;
	int channel, pidfd; /* of its runner; -1: there is none, and the warden was asked for one */
	bool is_asking;     /* the runner, and the store did not answer yet */
	bool is_doomed;     /* the runner was killed, and may not have noticed: it gets no run */
	struct store_taken taken;
	uint64_t from;               /* the workspace that its own is made of */
	struct worker_answer answer; /* how it ended */
	struct worker_letter letter; /* the same, with what was printed and the record */
	struct worker_letter packed; /* its workspace, which is saved before that is reported */
	uint64_t kill_ns;            /* when it is killed, having been asked to end; or 0 */
};

/* A session that this worker has. */
struct worker_held {
	struct store_session session; /* id and token; no texts */
	uint64_t used_ns;
	int mount; /* what keeps its workspace mounted, or -1 */
	bool is_running;
	bool must_move; /* somebody may still write to the workspace that the store names */
};

struct worker {
	const struct worker_settings *settings;
	struct store *store;
	struct store_worker self;
	struct worker_shared *shared;
	int warden, warden_pidfd, signals;
	int mounts; /* an epoll of those of `held` */
	size_t mounted, most_mounted;
	struct worker_slot *slots;
	struct worker_held *held;
	size_t held_count, held_room;
	struct metrics metrics;
	uint64_t metrics_ns; /* when to write them; 0: they are as they were */
	uint64_t written_ns; /* when they were */
	uint64_t counted_ns; /* when what is in the store was counted */
	struct {
		pid_t pid;  /* or 0 */
		int output; /* or -1 */
		struct buf text;
		int64_t kept; /* what the last one kept */
	} sweep;
	uint64_t renew_ns, sweep_ns, look_ns, drain_ns; /* when to do that; 0: not */
	bool may_have_work;                             /* something may be there to be taken */
	bool has_other_place;
	bool is_cut;  /* the store does not answer */
	bool is_deaf; /* and we do not listen to it */
	bool is_going, is_ended;
	struct err failure;
};

/* A detail; and what nobody should miss. */
void worker_tell(struct worker *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void worker_warn(struct worker *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Counts sessions, workers and queued runs for the metrics, now and then. */
int worker_count_all(struct worker *w, struct err *e);

/* Something was counted: it is written soon, and not more often than once a second. */
void worker_note_count(struct worker *w);

/* The store said no: is it gone? Then it is tried again in a while, and that is said once. */
void worker_note_failure(struct worker *w, const char *attempt, int r, const struct err *e);

/* An event of the operator's log. */
void worker_log(struct worker *w, const char *type, const struct worker_slot *slot,
	const struct store_session *x, const char *text);

/* --- worker_slot.c --- */

/* Does its runner do something? */
bool worker_is_busy(const struct worker_slot *slot);

/* The warden has said something. */
void worker_hear_warden(struct worker *w);

/* Asks for a runner. */
void worker_start_runner(struct worker *w, struct worker_slot *slot);

/* A runner said something; and it has ended. */
void worker_hear_runner(struct worker *w, struct worker_slot *slot);
void worker_bury_runner(struct worker *w, struct worker_slot *slot);

/* Ends what it does, for a reason; the first one counts. */
void worker_end_slot(struct worker *w, struct worker_slot *slot, enum worker_cause cause);

/* Ends a run that never began, or of which nobody heard, with a sentence. */
void worker_fail(struct worker *w, struct worker_slot *slot, const struct err *e);

/* Takes runs while there are some, and runners for them. */
void worker_take(struct worker *w);

struct worker_held *worker_find_held(struct worker *w, const char *session);

/* Renews all leases, and finds out which are lost. */
void worker_renew(struct worker *w);

/* Ends everything if they were not renewed in time. */
void worker_fence(struct worker *w);

/* Are the sessions of runs that go on still open? Those of others are ended. */
void worker_look_at_sessions(struct worker *w);

/* --- worker.c: what stays mounted --- */

/* Is a session's workspace to stay mounted after its run? */
bool worker_wants_mount(struct worker *w, const struct store_session *x);

/* Takes what keeps it so, if it is wanted. */
void worker_keep_mount(struct worker *w, const struct store_session *x, int *fd);
void worker_drop_mount(struct worker *w, struct worker_held *held);
