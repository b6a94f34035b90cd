#pragma once

#include "keep/keep_turn.h"

/* What hooks in the cage tell: a part of struct keeper. */
struct keeper;
struct pollfd;

/* --- keep_told.c: what is told from inside --- */

#define KEEP_TOLD "told" /* a socket in the run's folder, for who is in the cage */

struct keep_told {
	int socket; /* or -1: nobody is heard */
	int folder; /* the run's, borrowed */
	struct keep_turn turn;
	uint64_t events; /* that were said of it */
};

void keep_told_init(struct keep_told *t);

/* Makes the socket, if the plan shows one. */
int keep_told_make(struct keeper *k, struct err *e);

void keep_told_want(const struct keep_told *t, struct pollfd *ret);

/* How long nobody is heard, because too many came, or -1. */
int keep_told_wait(const struct keep_told *t);

/* Hears those that wait, but not too many. */
void keep_told_hear(struct keeper *k);

/* The cage has ended, or there will be none: nobody is heard any more. */
void keep_told_end(struct keeper *k);
