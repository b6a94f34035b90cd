#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cgroup/cgroup.h"
#include "keeper/keeper.h"
#include "wire/wire.h"

/*
 * The process of a cage: how far it is, what it says, the signals to and from it, its time, and its
 * end. Parts of struct keeper.
 */
struct keeper;

#define KEEPER_READY_MS 30000  /* a cage that is not ready by then never will be */
#define KEEPER_LOAD_MS  600000 /* … and one that has an overlay to load */
#define KEEPER_REAP_MS  10000  /* what is killed and not gone by then hangs in the kernel */

/* The first process of a cage; of a run that joins a session's cage, the command. */
struct keeper_process {
	pid_t pid;      /* -1: there is none, or it was reaped */
	int pidfd;      /* or -1 */
	int channel;    /* to the cage; its end is that of the other side. -1: there is none */
	int64_t cpu_us; /* that the cage has used, or -1 */
};

struct keeper_clock {
	uint64_t deadline_ns; /* when the time of what goes on is over; 0: it has no end */
	unsigned ready_ms;    /* what the cage may take to be made */
	uint64_t began_ns;    /* the run */
	uint64_t started_ns;  /* the command; 0: it was not */
};

/* Keeper and command as one job of the operator's shell. */
struct keeper_job {
	bool is_told_to_stop; /* and the command was told */
	uint64_t passed_ns;   /* when the command was sent a signal of the operator's; 0: never */
	bool is_stopped;      /* the command, and we are not */
	bool is_caller_gone;  /* q->caller has ended */
};

/* How it came to an end. */
struct keeper_ending {
	int wait_status;             /* of the command, once it has exited */
	int others;                  /* processes that it left */
	enum plan_guarantee limit;   /* it was ended for, or PLAN_GUARANTEE_COUNT */
	bool is_unwanted;            /* the session was stopped */
	bool is_disk_full;           /* when the command ended */
	bool has_failed;             /* the cage says so itself */
	bool has_run;                /* the command may have */
	bool has_fault;              /* the cage is not what was planned */
	bool is_gone;                /* the first process ended */
	bool is_hanging;             /* what was killed does not end */
	bool is_left;                /* and so something of it is left */
	bool is_finished;            /* keeper_finish was called */
	struct cgroup_counts counts; /* taken before anybody is killed */
};

/* How far a run is. */
enum keeper_state {
	KEEPER_MAKING,  /* the cage is being made */
	KEEPER_BUILT,   /* it stands; the gate may not yet, and it was not inspected */
	KEEPER_LET_GO,  /* it was inspected and is what was planned: preflight, startup commands */
	KEEPER_RUNNING, /* so does the command */
	KEEPER_EXITED,  /* the command has ended, or did before it was started */
	KEEPER_ENDED,   /* and so has all of the cage but its first process */
	KEEPER_STATE_COUNT
};

/* --- keeper_watch.c: the loop --- */

enum keeper_until {
	KEEPER_UNTIL_BUILT,   /* and the gate stands too */
	KEEPER_UNTIL_STARTED, /* q->is_start_late: and has run for a moment */
	KEEPER_UNTIL_ENDED,
};

/* Runs the loop until the run is so far or the cage has ended. After an error it must be ended. */
int keeper_watch(struct keeper *k, enum keeper_until until, struct err *e);

/* Asks the command to end because it reached a limit, unless one is ending it already. */
void keeper_end_for(struct keeper *k, enum plan_guarantee limit);

/* --- keeper_watch.c: what the cage says --- */

struct keeper_message {
	struct wire_message said;
	int fd; /* what came with it, or -1; a handler that keeps it takes it from here */
};

/* A message that the cage may send, and when. */
struct keeper_message_rule {
	enum wire_kind kind;
	unsigned states, modes; /* bits of enum keeper_state and enum keeper_mode */
	bool is_once;
	uint32_t needs; /* kinds that must have come before, as bits */
	int (*take)(struct keeper *k, struct keeper_message *m, struct err *e);
};

/* Returns the rule that allows a message, or NULL. */
const struct keeper_message_rule *keeper_find_rule(
	uint32_t kind, enum keeper_state state, enum keeper_mode mode, uint32_t heard);

/* Handles one message, or refuses it. An error ends the run. */
int keeper_take_message(struct keeper *k, struct keeper_message *m, struct err *e);

/*
 * Reads the last messages of a cage that has ended: the reason that it gives goes into `e`, and a
 * start that it reports is noted. Returns true when all messages were read.
 */
bool keeper_hear_last(struct keeper *k, struct err *e);

/* --- keeper_watch.c: signals --- */

/* Sets the time limit of what goes on; 0: none. */
void keeper_set_timer(struct keeper_clock *c, uint64_t ms);

/* Asks the command to end, and kills it if it has not ended a while later. */
int keeper_begin_to_stop(struct keeper *k);

/* Reads one signal. Fails if it ends the run. */
int keeper_hear_signal(struct keeper *k, struct err *e);
