#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/sha256.h"
#include "plan/plan_data.h"
#include "plan/plan_guarantees.h"
#include "proof/log/log.h"
#include "proof/record/record_folder.h"
#include "wire/wire_gate.h"
#include "wire/wire_report.h"

/*
 * What a run was: planned, seen, done. Plain data that the keeper fills in as things happen, and
 * that is printed once at the end. Nothing is in it that was merely intended.
 */

#define RECORD_RUN_SIZE   32
#define RECORD_RUN_LENGTH 24 /* 20260102-030405-0a0b0c0d */
#define RECORD_MAX_NOTES  16
#define RECORD_VERSION    2
#define RECORD_USUAL      "yes"  /* what is declared of a guarantee that has nothing to choose */
#define RECORD_HOST_IMAGE "host" /* the root is the system's own */
#define RECORD_MAX_SIZE   ((size_t)4 << 20) /* printed: as many decisions as there may be */

/* From where something was seen. */
enum record_vantage {
	RECORD_UNSEEN,
	RECORD_INSIDE,  /* bawn's own code in the cage said so: a claim */
	RECORD_KEEPER,  /* the keeper does it itself */
	RECORD_OUTSIDE, /* the keeper read it from the kernel: evidence */
};

#define RECORD_VANTAGE_COUNT (RECORD_OUTSIDE + 1)

struct record_observation {
	enum record_vantage vantage;
	bool holds;
	char seen[128]; /* what was seen, or what was missing */
};

enum record_outcome {
	RECORD_REFUSED, /* the command never ran */
	RECORD_EXITED,
	RECORD_SIGNALED,
	RECORD_TIMED_OUT,
	RECORD_CUT_OFF,     /* ended by the keeper for another limit */
	RECORD_BROKEN,      /* the command ran, and the cage ended in a way it should not */
	RECORD_INTERRUPTED, /* the keeper did not live to say: what a record says until the end */
};

#define RECORD_OUTCOME_COUNT (RECORD_INTERRUPTED + 1)

/* One word each, as records have them. */
extern const char *const record_vantage_words[RECORD_VANTAGE_COUNT];
extern const char *const record_outcome_words[RECORD_OUTCOME_COUNT];

/* What the run did to the project, if that was captured. */
struct record_effects {
	bool is_known;
	uint64_t added, changed, deleted, renamed;
	uint64_t held;                /* of these, what runs on the host by itself */
	char digest[SHA256_HEX_SIZE]; /* same effects, same digest */
	char file[SHA256_HEX_SIZE];   /* of effects.json; "": there is none */
	struct err error;             /* why it is not known */
};

/* Their types as events. */
#define RECORD_DENIED       "syscall_denied"
#define RECORD_WRITE_DENIED "write_denied"
#define RECORD_UNTOLD       "syscalls_untold"

/*
 * A call that the filter refused, as the first of its kind was made; or, with a path, one that the
 * kernel refuses because that path is protected.
 */
#define RECORD_MAX_DENIALS     128
#define RECORD_PROGRAM_SIZE    16 /* as the kernel has it, with the byte that ends it */
#define RECORD_DENIAL_PROGRAMS 4  /* that are told apart for one call and error */

#define RECORD_MAX_WRITES 64 /* rows with a path, which leave the others to other calls */
#define RECORD_PATH_SIZE  512

struct record_denial {
	uint32_t number;
	int error;                         /* the filter's; 0: it is a write */
	int pid;                           /* of the thread, on the host */
	char program[RECORD_PROGRAM_SIZE]; /* its name, which is its own choice; "": several */
	uint64_t arguments[6];
	uint64_t times;
	char path[RECORD_PATH_SIZE]; /* of a write, from the project's top; else "" */
};

/*
 * What bawn's program in the cage refused to an agent, as it told: anybody in the cage can tell
 * that, so it is no more than a claim.
 */
#define RECORD_BLOCKED_UNTOLD "blocked_untold"
#define RECORD_MAX_TOLD       256 /* events of a run */

struct record_report {
	uint64_t times[WIRE_REPORT_KIND_COUNT];
	uint64_t untold; /* of these, for which there is no event */
};

/* The overlay of the root that is kept, if there is one; its path is in the plan. */
struct record_overlay {
	uint64_t size; /* what it may take, in bytes; 0: there is none, or it was not found */
	char before[SHA256_HEX_SIZE], after[SHA256_HEX_SIZE]; /* digests of what it keeps; or "" */
	uint64_t skipped;                                     /* sockets and devices, not kept */
	bool is_full;                                         /* when the run ended */
	bool is_saved;                                        /* what the run left */
	struct err error;
};

/* What was used of the limits, whether anybody declared one; -1: nobody counted. */
struct record_used {
	int64_t memory_peak; /* bytes */
	int64_t cpu_us;      /* of all processes, as finely as the kernel's ticks */
	int64_t processes_peak;
	int64_t written; /* bytes of what was captured */
	int64_t printed; /* bytes */
};

#define RECORD_USED_UNKNOWN                                                                        \
	{                                                                                          \
		-1, -1, -1, -1, -1                                                                 \
	}

/* What is on record of what the command printed, in the order of the key's choices. */
enum record_output_mode {
	RECORD_OUTPUT_KEEP,
	RECORD_OUTPUT_DIGEST,
	RECORD_OUTPUT_NO,
};

#define RECORD_MAX_OUTPUT ((size_t)16 << 20) /* bytes that are kept of each stream */

/* Standard output and error, and the files in which they are kept. */
extern const char *const record_stream_names[2];

struct record_stream {
	bool is_known; /* the keeper saw it: /dev/null is written to by the command itself */
	bool is_kept;
	uint64_t bytes, kept;
	char sha256[SHA256_HEX_SIZE];
	char kept_sha256[SHA256_HEX_SIZE]; /* of the file */
};

struct record_output {
	bool is_told;
	bool is_together; /* both in one stream, which is the first */
	struct record_stream streams[2];
	struct err error; /* why it is not kept */
};

/* What a tree was before the run; "": nobody asked, or nobody could tell. */
struct record_tree {
	char sha256[SHA256_HEX_SIZE];
	char list[SHA256_HEX_SIZE]; /* of project.list; "": there is none */
	uint64_t files, bytes;
	struct err error; /* why not */
};

enum record_same {
	RECORD_UNKNOWN,
	RECORD_SAME,
	RECORD_OTHER,
};

/* A run that repeats another: what was as it was then. */
struct record_again {
	char run[RECORD_RUN_SIZE]; /* the other; "": it repeats none */
	enum record_same image, project, overlay, plan, filter, outcome, effects, output;
};

struct record {
	char run[RECORD_RUN_SIZE];
	const char *session;        /* NULL: a run of its own */
	const char *worker;         /* who did it; NULL: whoever asked for it */
	uint64_t lease;             /* the token of its lease on the session, or 0 */
	char cage[RECORD_RUN_SIZE]; /* the run whose cage it ran in; "": one of its own */
	bool is_relaxed;
	const char
		*self_governance; /* the folder that is its own exception, as declared, or NULL */
	struct record_tree image, project;
	struct record_used used;
	struct record_output output;
	const struct plan *plan; /* borrowed */
	char kernel[72];         /* its release */
	char plan_digest[SHA256_HEX_SIZE];
	char filter_digest[SHA256_HEX_SIZE];
	struct timespec began, ended; /* of the clock on the wall */
	uint64_t start_ns, run_ns;    /* until the command was started, and from there to its end */
	bool is_preflight_passed;
	const char *preflight_by; /* "init"; "bawn" in a session's cage; NULL: it was not run */
	bool is_warm;             /* its cage stood before the run was requested */
	bool has_terminal;        /* the command had one of its own */
	uint64_t escapes_dropped; /* sequences that would have reached out of the screen */
	struct record_observation observations[PLAN_GUARANTEE_COUNT];
	uint64_t reached[PLAN_GUARANTEE_COUNT]; /* of limits: how often */
	unsigned note_count;                    /* may be more than are kept */
	struct {
		uint32_t op; /* an operation that may fail, and did */
		char text[160];
	} notes[RECORD_MAX_NOTES];
	struct record_effects effects;
	struct record_overlay overlay;
	struct record_again again;
	struct wire_decision *decisions; /* about the network; owned, or NULL */
	size_t decision_count;
	uint64_t decisions_untold;                        /* for which the gate had no room */
	struct record_denial denials[RECORD_MAX_DENIALS]; /* of system calls */
	size_t denial_count;
	uint64_t denials_untold; /* for which there was no room */
	struct record_report told;
	struct err gate;               /* why the network closed before the end, if it did */
	int failed_op;                 /* the operation that the start failed at, or -1 */
	enum plan_guarantee ended_for; /* the limit the command was ended for, or the count */
	enum record_outcome outcome;
	int status; /* exit status or signal of the command */
	struct err error;
	struct err
		late; /* what went wrong after it was written: nothing that concerns the command */
};

/* Makes room for as many as a gate tells; false: there is none. */
bool record_expect_decisions(struct record *r);

/* Frees them, and forgets how the gate ended. */
void record_forget_decisions(struct record *r);

/*
 * Counts a denial in the row of its call, error, path and program, or in a new one: *ret_is_new.
 * NULL: there is no room, and it is one of those that are untold.
 */
struct record_denial *record_count_denial(
	struct record *r, const struct record_denial *d, bool *ret_is_new);

/* The type of its event. */
const char *record_denial_type(const struct record_denial *d);

/* What was refused, and what for, in a sentence. */
void record_say_denial(const struct record_denial *d, char *ret, size_t size);

/* Is it one that programs try, and do without? */
bool record_is_tried_only(const struct record_denial *d);

/* The members of a denial, and of how many are untold, into a map that is open. */
void record_print_denial(const struct record_denial *d, struct json *j);
void record_print_denials_untold(const struct record *r, struct json *j);

/* All of them, as items of a list that is open. */
void record_print_denials(const struct record *r, struct json *j);

/*
 * The members of what was told, of how many are untold, and all that is known of it as items of a
 * list that is open. record_report.c
 */
void record_print_told(const struct wire_report *told, struct json *j);
void record_print_blocked_untold(const struct record *r, struct json *j);
void record_print_blocked(const struct record *r, struct json *j);

/* Notes that an operation was left out, and why. */
void record_note(struct record *r, uint32_t op, const char *why);

/* Gets a sentence without a full stop; what is in it may be a stranger's. */
typedef void record_say(void *of, const char *sentence);

/* What of the network, and what else, was denied: a few sentences. record_news.c */
void record_say_network(const struct record *r, record_say *say, void *of);
void record_say_denials(const struct record *r, record_say *say, void *of);

/* Says in half a sentence that a limit was reached; nothing where it was not. */
void record_print_reached(const struct record *r, enum plan_guarantee limit, struct buf *out);

/*
 * The members of what a record and events have in common, into a map that is open: a decision
 * without its kind, how many were not told, all guarantees (an event has what was seen of each, a
 * record of those that are missing), names of those that may be missing and are, a limit that was
 * reached with the text for it, and how the run ended.
 */
void record_print_decision(const struct wire_decision *d, struct json *j);
void record_print_untold(const struct record *r, struct json *j);
void record_print_guarantees(const struct record *r, bool has_all_seen, struct json *j);
void record_print_degraded(const struct record *r, struct json *j);
void record_print_limit(
	const struct record *r, enum plan_guarantee limit, const char *text, struct json *j);
void record_print_outcome(const struct record *r, const struct err *e, struct json *j);
void record_print_again(const struct record *r, struct json *j);
void record_print_used(const struct record *r, struct json *j); /* as `used` */

/* All that is known of the network's use, as items of a list that is open. */
void record_print_net(const struct record *r, struct json *j);

/* --- record.c, record_provenance.c: what is said of a run --- */

/*
 * Two predicates, each one object of JSON: the record, and the same facts as SLSA provenance.
 * Where the log ends is not in them: whoever signs adds it.
 */
void record_print(const struct record *r, struct buf *out);
void record_print_provenance(const struct record *r, struct buf *out);

/* What they share, and what is known when a run begins: an event says it in the same members. */
void record_print_identity(const struct record *r, struct json *j);
void record_print_cage(const struct record *r, struct json *j);
void record_print_tree(
	struct json *j, const char *key, const char *name, const struct record_tree *t);
const char *record_image_name(const struct record *r, struct buf *scratch);
void record_print_time(struct json *j, const char *key, const struct timespec *t);

/* Was it seen to hold? */
bool record_holds(const struct record *r, enum plan_guarantee g);

/* Guarantees that may be missing, and are: bits 1 << enum plan_guarantee. */
uint64_t record_degraded(const struct record *r);

/* --- record_keep.c --- */

enum record_claim {
	RECORD_CLAIM, /* urn:bawn:record:v2 */
	RECORD_PROVENANCE,
	RECORD_CLAIM_COUNT,
};

struct record_subject {
	const char *name;
	char sha256[SHA256_HEX_SIZE];
};

/* --- record_keep.c: signed, in the run's folder --- */

/*
 * Notes that the run has no record yet, by a second name of its log: STATE/unsigned/RUN, which goes
 * when the record is signed. Whoever finds it signs what the log says, if nobody lives to say more.
 */
int record_begin(int state, int folder, const char *run, struct err *e);

/* What is known when a run has ended and its log has been written. */
struct record_end {
	const struct record_subject *subjects; /* without any, the log is the subject */
	size_t count;
	struct log *log; /* the run's; gets the event that the run has ended, for all runs */
	bool is_synced;  /* the record is to be there after a power cut too */
};

/*
 * Signs what is said of a run, and writes it to the run's folder whole or not at all. *ret_text
 * (may be NULL) gets the same. 0: it is signed; whether the log of all runs says so, end->log
 * knows.
 */
int record_sign(int state, int folder, const struct record *r, const struct record_end *end,
	struct buf *ret_text, struct err *e);

/*
 * Signs the records of runs whose keepers died, as interrupted. At most some at a time: who comes
 * next does the rest. What cannot be signed is said in `e`, and left.
 */
int record_sign_interrupted(int state, struct err *e);

/* --- where: record_folder.c --- */

/*
 * A name for a new run that sorts by time, to the nanosecond: 20261115-224501-1f2e3d4c. The last
 * part is four times the nanoseconds, and two bits by chance. `when` may be NULL: now.
 */
int record_make_run(const struct timespec *when, char ret[static RECORD_RUN_SIZE], struct err *e);

/*
 * When a run began: as its log says, and where it has none, as its name does. A run that was queued
 * began later than it was named, and older names have no more than the second.
 */
void record_find_began(int runs, const char *run, struct timespec *ret);

/* The id of the session that a run belongs to, as its log begins; false: it belongs to none. */
bool record_find_session(int runs, const char *run, char ret[static 64]);

struct record_run {
	char id[RECORD_RUN_SIZE];
	struct timespec began;
};

/* For qsort: whichever began last comes first. */
int record_compare_runs(const void *a, const void *b);

/*
 * All runs in that order, or those of the session of this id, as their logs begin. The caller owns
 * *ret, which is NULL where there are none. 0 or -errno.
 */
int record_list_runs(int runs, const char *session, struct record_run **ret, size_t *ret_count);

/*
 * The `most` newest of all runs, in that order: read from the end of the log of all runs, so that
 * it takes no longer where there are more. Where that log does not know as many, as
 * record_list_runs.
 */
int record_list_newest(int runs, size_t most, struct record_run **ret, size_t *ret_count);

/* --- runs with changes that were neither applied nor discarded: record_pending.c --- */

/* True if the run's folder has what it wrote to its project. */
bool record_has_layer(int runs, const char *run);

/* Notes that a run has ended, if it has such changes; that it has none any more. 0 or -errno. */
int record_note_pending(int runs, const char *run);
void record_forget_pending(int runs, const char *run);

/*
 * Lists them, with those that go on or were interrupted, the newest first. It takes as long as
 * there are such runs, whatever else is kept. The caller frees *ret. 0 or -errno.
 */
int record_list_pending(int runs, struct record_run **ret, size_t *ret_count);

/*
 * Where the operator's state is: XDG's word, root's own place, or `home`, which may be NULL. It
 * need not be there. -ENOENT: nothing says where.
 */
int record_find_state(const char *home, char ret[static PATH_MAX]);

/*
 * Opens the folder of the operator's state, which must be the operator's alone; `makes` it, and
 * what leads to it, where missing. -ENOENT, with nothing in `e`, where it is missing and stays so.
 * `home` may be NULL. The caller owns the descriptor.
 */
int record_open_state(const char *home, bool makes, struct err *e);

/* --- record_parts.c: what many runs have in common --- */

enum record_part {
	RECORD_SPEC,
	RECORD_PLAN,
};

/*
 * Keeps a text under its digest, STATE/specs/DIGEST.json or STATE/plans/…, where it is not kept
 * yet; what is there and is not that text, is replaced. `run` is who does it: no other file has its
 * name.
 */
int record_keep_part(int state, enum record_part part, const char *run, const char *sha256,
	const struct buf *text, bool is_synced, struct err *e);

/* The digest of a run's text, as the first event in its folder says; false: it says none. */
bool record_find_part(int folder, enum record_part part, char ret[static SHA256_HEX_SIZE]);

/*
 * Opens the text of a run: in its folder, as exports and runs of before November 2026 have it, or
 * under its digest (NULL: as the log says), if the folder is in a state. Whoever reads it compares
 * the digest. A descriptor or -errno.
 */
int record_open_part(int folder, enum record_part part, const char *sha256);

/*
 * Removes the texts that no run's log names, and that nobody has used for a day. 0 or -errno.
 */
int record_prune_parts(int state, int runs);

/* What it is called in an export: spec.json, plan.json. */
const char *record_part_name(enum record_part part);

/* Makes the folder of a run below it, opens and locks it. The caller owns the descriptor. */
int record_make_folder(int state, const char *run, struct err *e);

/* Has a text the form of such a name, or of the beginning of one? */
bool record_is_run(const char *text, bool is_whole);

/*
 * Opens the folder that holds those of all runs. -ENOENT, with nothing in `e`, where no run was
 * ever kept. The caller owns the descriptor.
 */
int record_open_runs(const char *home, struct err *e);

/* Opens the folder of a run, which must be the operator's alone. */
int record_open_folder(int runs, const char *run, struct err *e);

/* Writes a file of the folder whole or not at all; with `is_synced` past a power cut. */
int record_write_file(
	int folder, const char *name, const struct buf *text, bool is_synced, struct err *e);
