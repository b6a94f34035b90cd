#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "change/change.h"
#include "cli/cli.h"
#include "run/run.h"

/* One line on the terminal that tells how far long work is, and is gone afterwards. */
struct cli_progress {
	bool is_shown; /* may be */
	bool has_line; /* is */
	uint64_t next; /* when something is told again */
};

struct cli_progress cli_progress_begin(const struct cli *cli);
void cli_progress_done(struct cli_progress *p);

/* Takes the line away, because something else is printed. */
void cli_progress_clear(struct cli_progress *p);

/* What work wants to be told through; borrows `p`. */
struct change_progress cli_progress_of(struct cli_progress *p);

/* Who tells a person how a run goes. */
struct cli_told {
	const struct cli *cli;
	struct cli_progress progress;
};

/* Says all of a run on standard error, as the command line wants it; borrows both. */
struct run_sink cli_sink(struct cli_told *told, const struct cli *cli);
void cli_told_done(struct cli_told *told);

struct store_session;

/* Says in one line what a session has done so far, after one of its commands. */
void cli_say_session_effects(const struct record *record, const struct store_session *s);
