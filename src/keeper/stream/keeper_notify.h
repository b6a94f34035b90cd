#pragma once

#include <limits.h>
#include <linux/seccomp.h>

#include "keeper/stream/keeper_turn.h"
#include "proof/record/record.h"
#include "seccomp/filter.h"

/* What the filter of a cage tells the keeper: a part of struct keeper. */

/* As the kernel has them, and larger than it ever made them. */
union keeper_call {
	struct seccomp_notif call;
	char room[256];
};

union keeper_answer {
	struct seccomp_notif_resp answer;
	char room[128];
};

/* Who a process was when it was looked at. */
struct keeper_dialer {
	uint32_t pid;
	uint64_t seen_ns;
	char program[RECORD_PROGRAM_SIZE + 1]; /* and a newline */
};

struct keeper_notify {
	int listener; /* -1: nothing is told */
	struct filter_made telling;
	bool is_watching;        /* writes, which are allowed, are told too */
	int failure;             /* errno of what it was given up for, or 0 */
	struct keeper_turn turn; /* of what is refused or told */
	struct keeper_dialer dialers[16];
};

void keeper_notify_init(struct keeper_notify *n);
void keeper_notify_done(struct keeper_notify *n);

struct keeper;
struct pollfd;

/* Makes the filter that tells, if the plan wants one; that there can be none is in the record. */
int keeper_notify_make(struct keeper *k, struct err *e);

/* The listener, which is ours from here on. */
void keeper_notify_take(struct keeper *k, int fd);

/* How long nothing is answered, because too much was, or -1. */
int keeper_notify_wait(const struct keeper_notify *n);

void keeper_notify_want(const struct keeper_notify *n, struct pollfd *ret);

/*
 * Answers those that wait, but not too many. An error: nobody can be answered any more, and what
 * is allowed waits for answers too.
 */
int keeper_notify_hear(struct keeper *k, const struct pollfd *seen, struct err *e);

/* The cage has ended: says how often each call was denied. */
void keeper_notify_end(struct keeper *k);

/* --- keeper_writes.c --- */

/* An absolute path without ".", ".." and needless slashes, as it is written; false: too long. */
bool keeper_join_path(const char *folder, const char *path, char ret[static PATH_MAX]);

/* Does a call that waits write to what is protected? To what, as far as that can be seen. */
bool keeper_writes_see(const struct keeper *k, const struct seccomp_notif *call,
	char ret[static RECORD_PATH_SIZE]);
