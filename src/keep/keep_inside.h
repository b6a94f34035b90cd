#pragma once

#include <sys/types.h>

#include "base/arena.h"
#include "cgroup/cgroup.h"
#include "keep/keep.h"
#include "keep/keep_join.h"
#include "keep/keep_names.h"
#include "keep/keep_notify.h"
#include "keep/keep_streams.h"
#include "wire/wire.h"
#include "wire/wire_gate.h"
#include "work/work.h"
#include "work/work_overlay.h"

/* What the files of the keeper share. Nobody else includes it. */

/* --- keep_words.c: what the command is told --- */

struct keep_words {
	struct arena arena;
	char **arguments, **environment, **own_variables;
	char *shared; /* with a warm cage, which finds its words there later; or NULL */
	size_t shared_size;
};

int keep_words_make(struct keep_words *ret, const struct cage_start *start, struct err *e);
void keep_words_done(struct keep_words *words);

/* --- keep_ids.c --- */

/* The id a cage of ours has outside, and whether we must give it. */
int keep_choose_ids(const struct keep_request *q, struct cage_ids *ret, struct err *e);

/* --- keep_sources.c --- */

struct keep_sources {
	struct arena arena;
	struct cage_source *items; /* one per operation */
	int *fds;                  /* the same, open with O_PATH, or -1 */
	int *given;                /* the same, for keep_open; or NULL */
	struct cage_source layers[CAGE_LAYER_COUNT];
	struct cage_idmap map; /* root's */
	int unmapped;          /* what is captured and has no map: the operation, or -1 */
	uint32_t count;
};

void keep_sources_init(struct keep_sources *s);

int keep_sources_make(struct keep_sources *ret, const struct cage_start *start,
	const struct keep_request *q, struct err *e);
void keep_sources_done(struct keep_sources *s);

/* And a layer, which is an open folder of ours; `start` gets it. */
int keep_sources_add_layer(struct keep_sources *s, struct cage_start *start, enum cage_layer which,
	int fd, struct err *e);

/* And what an overlay keeps, for operation `i`. */
int keep_sources_add_overlay(
	struct keep_sources *s, const struct cage_start *start, uint32_t i, int fd, struct err *e);

/* And one that another process has mounted: a detached tree, which is owned from here on. */
void keep_sources_take_layer(
	struct keep_sources *s, struct cage_start *start, enum cage_layer which, int tree);

/*
 * Is something of the operator's shown for operation `i`? *ret_from: as the plan calls it,
 * *ret_real: where it is.
 */
bool keep_sources_shown(const struct keep_sources *s, const struct cage_start *start, uint32_t i,
	const char **ret_from, const char **ret_real);

/* Is it a session that brings what operation `i` shows? */
bool keep_sources_is_late(const struct plan *p, uint32_t i);

/* Do the names that were declared still lead to what was opened? Not asked of a session's. */
bool keep_sources_are_current(const struct keep_sources *s, const struct cage_start *start);

/* Opens what a session has, once there is one; until then they are not there. */
int keep_sources_make_late(struct keep_sources *s, const struct cage_start *start,
	const struct keep_request *q, struct err *e);

/* Puts a folder of ours, which is owned from here on, in the place of a source. */
int keep_sources_replace(
	struct keep_sources *s, const struct cage_start *start, uint32_t i, int fd, struct err *e);

/* Makes the tree of a source that is mapped and not needed until now. */
int keep_sources_map(
	struct keep_sources *s, const struct cage_start *start, uint32_t i, struct err *e);

/* Closes what is open; the names stay. */
void keep_sources_close(struct keep_sources *s);

/* --- keep_layer.c --- */

struct keep_layer {
	int folder;                /* the run's, borrowed; -1: it has none */
	struct timespec began;     /* no file had a later time then */
	struct keep_point *points; /* places for mounts, which bawn made in the project's */
	struct arena arena;        /* of these */
	struct {
		int top;        /* `layer` or `git-layer` in it, or -1: nothing is captured there */
		int below;      /* the project, or the folder of its git; -1: it is not captured */
		bool is_copied; /* instead of being under an overlay */
		bool is_filled; /* under one whose layer begins with what is others' in it */
		struct tree_counts copied; /* for the run */
	} trees[CAGE_LAYER_COUNT];
	struct {
		uint64_t max;          /* bytes; 0: nobody watches */
		uint64_t next_ns;      /* when to look again */
		uint64_t count_ns;     /* when to count, even if nothing seems to be taken */
		uint64_t bytes, files; /* in the layer, when it was last counted */
		uint64_t first_bytes, first_files; /* what a copy has before the run */
		uint64_t free, free_files;         /* of its file system, at that time */
		uint64_t free_at_start;
		int kept; /* the folder of what the private home keeps; -1: it keeps nothing */
	} disk;
};

void keep_layer_init(struct keep_layer *l);
void keep_layer_done(struct keep_layer *l);

/* --- keep_told.c: what is told from inside --- */

#define KEEP_TOLD "told" /* a socket in the run's folder, for who is in the cage */

struct keep_told {
	int socket; /* or -1: nobody is heard */
	int folder; /* the run's, borrowed */
	struct keep_turn turn;
	uint64_t events; /* that were said of it */
};

void keep_told_init(struct keep_told *t);

/* --- keep_share.c: a run of a session --- */

struct keep_share {
	int connection; /* to the process that has the workspace mounted, or -1 */
	int lock;       /* of the workspace, shared with others that use it, or -1 */
	int turn;       /* to look for the session's cage and start one, or -1 */
	int kept[CAGE_TREE_COUNT - CAGE_LAYER_COUNT]; /* what it has beside its layers, or -1 */
};

struct keeper;

void keep_share_init(struct keep_share *s);
void keep_share_done(struct keep_share *s);

/* A file of the workspace to be locked, made where missing. A descriptor or -errno. */
int keep_share_open_lock(int workspace, const char *name, int how);

/* Sockets of the workspace, by name. -ENOENT: nobody listens. A descriptor or -errno. */
int keep_share_connect(int workspace, const char *name);
int keep_share_listen(int workspace, const char *name);

/* Locks it with others that use it. */
int keep_share_lock(struct keeper *k, struct err *e);

/* Takes part in the workspace: locks it, and gets its trees, where something is captured. */
int keep_share_join(struct keeper *k, struct err *e);

/* Passes what the session has on to the cage that waits for it. */
int keep_share_send(struct keeper *k, struct err *e);

/* The session is stopped, or nobody is there any more to say so. */
int keep_share_hear(struct keeper *k, struct err *e);

/* --- keep_overlay.c --- */

struct keep_overlay {
	struct work_overlay kept; /* on disk */
	const struct plan_op *op; /* NULL: there is none */
	int loaded;               /* the file system that the cage loaded it into, or -1 */
};

void keep_overlay_init(struct keep_overlay *o);
void keep_overlay_done(struct keep_overlay *o);

/* --- keep_hold.c, keep_hold_find.c --- */

struct keep_hold {
	struct arena arena;
	struct cage_held *items;
	size_t count;
	char name[64];                     /* of a folder for the layer's work */
	int folder, work;                  /* where it is; it, or -1 */
	int tree, tree_project, tree_work; /* root's: both id-mapped, for the cage; or -1 */
	int view;                          /* the layer's file system, or -1 */
	uint64_t next_ns;                  /* when it is to forget what it knows of the host */
};

void keep_hold_init(struct keep_hold *h);
void keep_hold_done(struct keep_hold *h);

/*
 * Finds out what has to be held of the open project, or of git's folder, for which `whole` is the
 * operation: what is there, missing, or on the way.
 */
int keep_hold_find(struct keep_hold *h, const struct plan *p, const struct plan_op *whole,
	int project, struct err *e);

/* --- keep_gate_rules.c, keep_gate.c, keep_gate_look.c --- */

struct keep_gate {
	bool is_awaited;                 /* there has to be one, and it does not stand yet */
	bool is_over;                    /* it has told all */
	bool is_outdated[WIRE_MAX_ROWS]; /* the log has another count of it */
	pid_t pids[3];                   /* the gate, the caller, and the vault if there is one */
	int channel;                     /* to the gate; -1: there is none, or it has ended */
	int rules;                       /* sealed, until they have them */
	bool has_secrets;
	int published[WIRE_MAX_PUBLISH];
	uint32_t published_count;
};

void keep_gate_init(struct keep_gate *g);
void keep_gate_done(struct keep_gate *g);

/* --- keep_events.c --- */

void keep_say_started(const struct keep_request *q, const struct record *record, pid_t pid);

/* As keep_say_decided, of a system call. */
void keep_say_denied(
	const struct keep_request *q, const struct record *record, const struct record_denial *d);

/* --- keep_log.c: what happens, for the log --- */

struct keeper;

/* Writes what was said. */
void keep_log_write(struct keeper *k);

/* The cage was looked at: its guarantees, and what is missing. */
void keep_log_look(struct keeper *k);

/* The preflight has been run. */
void keep_log_preflight(struct keeper *k);

/* A decision of the gate's that is new, or has another count. */
void keep_log_decision(struct keeper *k, uint32_t row, bool is_new);

/* The network is closed from here on, as the record says. */
void keep_log_closed(struct keeper *k);

/* What of the effects is held back. */
void keep_log_held(struct keeper *k, const struct work_effects *x);

/* The run has ended, with `e`: says the rest, and writes it. */
void keep_log_end(struct keeper *k, const struct err *e);

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

/* --- keep.c, keep_watch.c: the keeper itself --- */

#define KEEP_FOREGROUND_MS 300    /* between two looks whether we are in it */
#define KEEP_READY_MS      30000  /* a cage that is not ready by then never will be */
#define KEEP_LOAD_MS       600000 /* … and one that has an overlay to load */
#define KEEP_REAP_MS       10000  /* what is killed and not gone by then hangs in the kernel */

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

struct keeper {
	const struct keep_request *q;
	enum keep_mode mode;
	struct keep_warm *warm; /* what a warm cage has of its own; or NULL */
	enum keep_state state;
	uint32_t heard; /* kinds of messages of the cage that have come, as bits */
	struct record *record;
	struct cage_start start;
	struct keep_words words;
	struct keep_sources sources;
	struct keep_terminal terminal;
	struct keep_stdio stdio;
	struct keep_look *look;
	struct keep_layer layer;
	struct keep_overlay overlay;
	struct keep_hold holds[CAGE_LAYER_COUNT];
	struct keep_gate gate;
	struct keep_share share;
	struct keep_joined joined;
	struct keep_resident resident;
	struct keep_notify notify;
	struct keep_names names;
	struct keep_told told;
	struct cgroup group;
	struct cgroup_counts counts; /* taken before anybody is killed */
	int channel, pidfd, signals, timer;
	int disk; /* the cage's own file system, or -1 */
	pid_t pid;
	uint64_t began_ns, started_ns;
	unsigned ready_ms; /* what the cage may take to be made */
	int wait_status;
	int64_t cpu_us;     /* that the cage has used, or -1 */
	int others;         /* processes that the command left */
	bool is_landlocked; /* the cage says so */
	bool has_failed, is_told_to_stop;
	bool has_fault;                /* the cage is not what was planned */
	bool is_stopped;               /* the command, and we are not */
	bool is_gone;                  /* the first process too */
	enum plan_guarantee ended_for; /* the limit it was ended for, or PLAN_GUARANTEE_COUNT */
	bool is_disk_full;             /* when the command ended */
	bool is_hanging;               /* what was killed does not end */
	bool is_unwanted;              /* the session was stopped */
	bool is_finished;              /* keep_finish was called */
	bool is_left;                  /* something of the cage does not end */
};

/* A keeper without anything, and the end of all that it has. */
void keep_init(struct keeper *k, const struct keep_request *q, struct record *record);
void keep_release(struct keeper *k);

int keep_watch_open(struct keeper *k, struct err *e);
void keep_set_timer(const struct keeper *k, uint64_t ms);

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

/* The command was started; it may have ended since. */
static inline bool keep_has_started(const struct keeper *k)
{
	return k->started_ns != 0;
}

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

void keep_kill(const struct keeper *k);

/* Waits until its first process, which was killed, is gone, and with it every other. */
int keep_reap(struct keeper *k, struct err *e);

/* --- keep_warm.c --- */

/* The memory in which the first process finds its words, once there are some. */
int keep_warm_share_words(struct keeper *k, struct err *e);

/* The keeper of a cage that waits is that of this run from here on; false: it does not fit. */
bool keep_warm_use(struct keeper *k, const struct keep_request *q, struct record *record);

/* What a warm cage has of its own; NULL is allowed. */
void keep_warm_done(struct keep_warm *w);

/* --- keep_signals.c --- */

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

/* --- keep_layer.c --- */

/* Makes the layer, if the plan wants one in the run's folder. */
int keep_layer_make(struct keeper *k, struct err *e);

/* Is anything captured in a session's workspace? */
bool keep_layer_is_shared(const struct keeper *k);

/* Opens them, for who is in a cage that has them. */
int keep_layer_join(struct keeper *k, struct err *e);

/* Makes the layers of a workspace, for who mounts them; and opens them, for who uses them. */
int keep_layer_make_shared(struct keeper *k, struct err *e);
int keep_layer_open_shared(struct keeper *k, struct err *e);

/*
 * The cage has ended: finds out what it changed, and keeps that; or, if the command never ran,
 * removes the layer. What goes wrong is in the record.
 */
void keep_layer_end(struct keeper *k, bool has_run, bool is_gone);

/* --- keep_copy.c --- */

/* Copies the project, if the plan captures it in that way. Signals are heard already. */
int keep_copy_make(struct keeper *k, struct err *e);

/* Writes down what is in the copies: what differs from it later is the run's. */
int keep_copy_list(const struct keeper *k, struct err *e);

/* --- keep_digest.c --- */

/* Digests of the image, and of the project where that was asked for, into the record. */
int keep_digest(struct keeper *k, struct err *e);

/* --- keep_points.c --- */

/* The cage stands and the command has not started: what is in the layer now is bawn's own. */
int keep_points_find(struct keeper *k, struct err *e);

/* Takes that out of the layer again. */
void keep_points_remove(struct keep_layer *l, int upper);

/* --- keep_hold.c --- */

/* Makes what the cage needs to hold what is protected, if the plan wants that. */
int keep_hold_make(struct keeper *k, struct err *e);

/* The cage has what it needs, or will never: removes what was made on disk. */
void keep_hold_end(struct keeper *k);

/* The file system of a layer that holds, as the cage hands it over: in the order of the plan. */
void keep_hold_take_view(struct keeper *k, int fd);

/* How long to wait until keep_hold_refresh, or -1. */
int keep_hold_wait(const struct keeper *k);

/*
 * The layer remembers names, and does not notice that the host puts something else there. So it is
 * made to forget them now and then.
 */
void keep_hold_refresh(struct keeper *k);

/* --- keep_disk.c: how much the layer takes --- */

#define KEEP_DISK_MS 100 /* between two looks */

/* Begins to watch, if a limit holds that no file system holds. */
void keep_disk_open(struct keeper *k);

/* How long to wait for the next look, or -1. */
int keep_disk_wait(const struct keeper *k);

/* Does the run take more than it may? */
bool keep_disk_is_over(struct keeper *k);

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

/* --- keep_overlay.c, with the keeper --- */

/* Finds the plan's overlay, which may be missing, where it may be. */
int keep_overlay_find(struct keeper *k, struct err *e);

/* Makes it, if it is missing; locks it; and hands what is in it to the cage. */
int keep_overlay_take(struct keeper *k, struct err *e);

/* Notes what it keeps before the command runs. */
int keep_overlay_digest(struct keeper *k, struct err *e);

/* Is what the cage loaded it into as large as it may be, and no larger? */
int keep_overlay_look(const struct keeper *k, struct err *e);

/* Saves what the run left of it; record->overlay says whether, and why not. */
void keep_overlay_end(struct keeper *k, bool has_run, bool is_gone);

/* --- keep_gate*.c, with the keeper --- */

/* Gathers the rules of the plan's network, and takes the ports of the host that lead into it. */
int keep_gate_make(struct keeper *k, struct err *e);

/*
 * keep_keys.c: can every key of a secret be read? And all of them, as a file without a name for the
 * vault: a descriptor, or -errno. The vault's own program.
 */
int keep_keys_check(const struct keeper *k, struct err *e);
int keep_keys_open(const struct keeper *k, struct err *e);
int keep_vault_find(char *ret, size_t size, struct err *e);

/* The cage has its namespaces: starts the gate and the caller. */
int keep_gate_start(struct keeper *k, struct err *e);

/* What the gate has said. An error: it will never stand. */
int keep_gate_hear(struct keeper *k, struct err *e);

/* Is the gate what it should be? "", or what is wrong. */
void keep_gate_look(const struct keeper *k, char *ret, size_t size);

/* The cage has ended: hears the last of the gate, and ends it. */
void keep_gate_end(struct keeper *k);

/* --- keep_told.c, with the keeper --- */

/* Makes the socket, if the plan shows one. */
int keep_told_make(struct keeper *k, struct err *e);

void keep_told_want(const struct keeper *k, struct pollfd *ret);

/* How long nobody is heard, because too many came, or -1. */
int keep_told_wait(const struct keeper *k);

/* Hears those that wait, but not too many. */
void keep_told_hear(struct keeper *k);

/* The cage has ended, or there will be none: nobody is heard any more. */
void keep_told_end(struct keeper *k);
