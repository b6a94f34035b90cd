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

struct keeper;
struct pollfd;

/* An absolute path without ".", ".." and needless slashes, as it is written; false: too long. */
bool keeper_join_path(const char *folder, const char *path, char ret[static PATH_MAX]);
