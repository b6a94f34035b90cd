#pragma once

#include "keeper/stream/keeper_turn.h"

/* What hooks in the cage tell: a part of struct keeper. */
struct keeper;
struct pollfd;

/* --- keeper_report.c: what is told from inside --- */

#define KEEPER_TOLD "told" /* a socket in the run's folder, for who is in the cage */

struct keeper_report {
	int socket; /* or -1: nobody is heard */
	int folder; /* the run's, borrowed */
	struct keeper_turn turn;
	uint64_t events; /* that were said of it */
};

void keeper_report_init(struct keeper_report *t);

/* Makes the socket, if the plan shows one. */
int keeper_report_make(struct keeper *k, struct err *e);

void keeper_report_want(const struct keeper_report *t, struct pollfd *ret);

/* How long nobody is heard, because too many came, or -1. */
int keeper_report_wait(const struct keeper_report *t);

/* Hears those that wait, but not too many. */
void keeper_report_hear(struct keeper *k);

/* The cage has ended, or there will be none: nobody is heard any more. */
void keeper_report_end(struct keeper *k);
