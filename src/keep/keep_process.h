#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cgroup/cgroup.h"
#include "keep/keep.h"
#include "wire/wire.h"

/*
 * The process of a cage: how far it is, what it says, the signals to and from it, its time, and its
 * end. Parts of struct keeper.
 */
struct keeper;

#define KEEP_READY_MS 30000  /* a cage that is not ready by then never will be */
#define KEEP_LOAD_MS  600000 /* … and one that has an overlay to load */
#define KEEP_REAP_MS  10000  /* what is killed and not gone by then hangs in the kernel */

/* The first process of a cage; of a run that joins a session's cage, the command. */
struct keep_process {
	pid_t pid;      /* -1: there is none, or it was reaped */
	int pidfd;      /* or -1 */
	int channel;    /* to the cage; its end is that of the other side. -1: there is none */
	int64_t cpu_us; /* that the cage has used, or -1 */
};

struct keep_clock {
	int timer;           /* rings when the time of what goes on is over; or -1 */
	unsigned ready_ms;   /* what the cage may take to be made */
	uint64_t began_ns;   /* the run */
	uint64_t started_ns; /* the command; 0: it was not */
};

/* Keeper and command as one job of the operator's shell. */
struct keep_job {
	bool is_told_to_stop; /* and the command was told */
	bool is_stopped;      /* the command, and we are not */
};

/* How it came to an end. */
struct keep_ending {
	int wait_status;             /* of the command, once it has exited */
	int others;                  /* processes that it left */
	enum plan_guarantee limit;   /* it was ended for, or PLAN_GUARANTEE_COUNT */
	bool is_unwanted;            /* the session was stopped */
	bool is_disk_full;           /* when the command ended */
	bool has_failed;             /* the cage says so itself */
	bool has_fault;              /* the cage is not what was planned */
	bool is_gone;                /* the first process ended */
	bool is_hanging;             /* what was killed does not end */
	bool is_left;                /* and so something of it is left */
	bool is_finished;            /* keep_finish was called */
	struct cgroup_counts counts; /* taken before anybody is killed */
};

/* How far a run is. */
enum keep_state {
	KEEP_MAKING,  /* the cage is being made */
	KEEP_BUILT,   /* it stands; the gate may not yet, and it was not inspected */
	KEEP_LET_GO,  /* it was inspected and is what was planned: preflight, startup commands */
	KEEP_RUNNING, /* so does the command */
	KEEP_EXITED,  /* the command has ended, or did before it was started */
	KEEP_ENDED,   /* and so has all of the cage but its first process */
	KEEP_STATE_COUNT
};

/* --- keep_watch.c, keep_end.c --- */

enum keep_until {
	KEEP_UNTIL_BUILT,   /* and the gate stands too */
	KEEP_UNTIL_STARTED, /* q->is_start_late: and has run for a moment */
	KEEP_UNTIL_ENDED,
};

/*
 * Hears, passes on and waits, until the run is so far or the cage has ended; an error: it has to be
 * ended.
 */
int keep_watch(struct keeper *k, enum keep_until until, struct err *e);

/* The first process, or of a run that joined a session the command; the kernel ends the rest. */
void keep_kill(const struct keeper *k);

/* Waits until the process, which was killed, is gone, and with it every other of the cage. */
int keep_reap(struct keep_process *p, struct err *e);

/* --- keep_messages.c --- */

struct keep_message {
	struct wire_message said;
	int fd; /* what came with it, or -1; a handler that keeps it takes it from here */
};

/* A message that the cage may send, and when. */
struct keep_message_rule {
	enum wire_kind kind;
	unsigned states, modes; /* bits of enum keep_state and enum keep_mode */
	bool is_once;
	uint32_t needs; /* kinds that must have come before, as bits */
	int (*take)(struct keeper *k, struct keep_message *m, struct err *e);
};

/* The rule that allows a message; NULL: none does. */
const struct keep_message_rule *keep_find_rule(
	uint32_t kind, enum keep_state state, enum keep_mode mode, uint32_t heard);

/* Handles one message, or refuses it. An error ends the run. */
int keep_take_message(struct keeper *k, struct keep_message *m, struct err *e);

/*
 * The cage is dead, and what it said last may not have been heard: its reason is the better one,
 * and what it started was started. True when all of it was heard.
 */
bool keep_hear_last(struct keeper *k, struct err *e);

/* --- keep_signals.c --- */

/* Opens the descriptors by which signals and the clock are heard. */
int keep_watch_open(struct keeper *k, struct err *e);

/* When it rings next; 0: never. */
void keep_set_timer(const struct keep_clock *c, uint64_t ms);

/* For the command, or, as a stop is, for all of the cage. */
void keep_send_signal(const struct keeper *k, int number);

/* The command is asked to end, and a while later it is ended. */
int keep_begin_to_stop(struct keeper *k);

/* Takes one signal: an error, if it ends the run. */
int keep_hear_signal(struct keeper *k, struct err *e);

/* The command was stopped by a signal: if the operator did that, the keeper stops too. */
int keep_take_stop(struct keeper *k, int number, struct err *e);

/* The keeper may be in the foreground again: takes the keys and the window's size from there. */
int keep_come_back(struct keeper *k, struct err *e);

/* The operator's window has another size: so has the cage's terminal. */
void keep_take_size(struct keeper *k);
