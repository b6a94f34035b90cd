#pragma once

#include "keeper/stream/keeper_turn.h"

/* What hooks in the cage tell: a part of struct keeper. */
struct keeper;
struct pollfd;

#define KEEPER_TOLD "told" /* a socket in the run's folder, for who is in the cage */

struct keeper_report {
	int socket; /* or -1: nobody is heard */
	int folder; /* the run's, borrowed */
	struct keeper_turn turn;
	uint64_t events; /* that were said of it */
};
